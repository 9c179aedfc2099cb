"""Templates to texts: pages and figures."""

from __future__ import annotations

import json
from typing import Any

from gmil import templating
from gmil.paper.runs.output import finite


def render(template: str, **values: Any) -> str:
    """Return a template with values; a `Plot` is markup already, all other texts are escaped."""
    return templating.render("gmil.reporting", "templates", template, **values)


def script_json(data: Any) -> str:
    r"""Return JSON that may stand inside a script element, whatever texts it holds.

    >>> script_json("</script><b>&")
    '"\\u003c/script\\u003e\\u003cb\\u003e\\u0026"'
    """
    text = json.dumps(finite(data), separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
