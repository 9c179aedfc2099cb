"""Templates to texts, for every page and figure; ``copy_image.js`` is the script that all pages share."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(package: str, folder: str, template: str, **values: Any) -> str:
    """Return a template with values; what has ``__html__`` is markup already, all other texts are escaped.

    Parameters
    ----------
    package, folder : str
        Where the template lies, and what it includes.
    template : str
    values
    """
    return _environment(package, folder).get_template(template).render(**values)


@cache
def _environment(package: str, folder: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(package, folder), PackageLoader(__name__, ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
