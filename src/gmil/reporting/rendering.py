"""Templates to texts: pages and figures."""

from __future__ import annotations

from typing import Any

from gmil import templating


def render(template: str, **values: Any) -> str:
    """Return a template with values; a `Plot` is markup already, all other texts are escaped."""
    return templating.render("gmil.reporting", "templates", template, **values)
