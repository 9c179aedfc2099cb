"""Templates to texts: pages and figures."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from gmil.paper.runs.output import finite

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Return a template with values; a `Plot` is markup already, all other texts are escaped."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("gmil.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def script_json(data: Any) -> str:
    r"""Return JSON that may stand inside a script element, whatever texts it holds.

    >>> script_json("</script><b>&")
    '"\\u003c/script\\u003e\\u003cb\\u003e\\u0026"'
    """
    text = json.dumps(finite(data), separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
