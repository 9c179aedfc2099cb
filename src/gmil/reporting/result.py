"""`Report`: what `gmil.report` returns."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from gmil.errors import FileAccessError
from gmil.safety.atomic import replacing
from gmil.templating.json_text import finite

if TYPE_CHECKING:
    import os

    from gmil.reporting.summary import Summary

_NOTEBOOK_HEIGHT = 720


class Report:
    """A report as an HTML page, Markdown or JSON; notebooks display it.

    Parameters
    ----------
    summary : Summary
        Its content, as plain data.
    """

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    def to_html(self) -> str:
        """Return one page that needs nothing else: pictures, style and script are inside."""
        from gmil.reporting.html import to_html

        return to_html(self.summary)

    def to_markdown(self) -> str:
        """Return the same as Markdown."""
        from gmil.reporting.markdown import to_markdown

        return to_markdown(self.summary)

    def to_json(self) -> str:
        """Return the same as JSON; NaN and infinity are null."""
        return json.dumps(finite(self.summary.to_dict()), indent=1) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report in the format that the suffix names.

        Parameters
        ----------
        path : path
            Ends with .html, .md or .json; a file that exists is replaced in one step.

        Returns
        -------
        pathlib.Path
        """
        target = checked_target(path)
        writers = {".html": self.to_html, ".htm": self.to_html, ".md": self.to_markdown, ".json": self.to_json}
        text = writers[target.suffix.lower()]()
        with replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        # A frame keeps the style of the page and that of the notebook apart.
        style = f"width:100%;height:{_NOTEBOOK_HEIGHT}px;border:0"
        return (
            f'<iframe srcdoc="{escape(self.to_html())}" style="{style}" title="{escape(self.summary.title)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Report({self.summary.title!r}: {self.summary.verdict})"


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Return where a report is to be written; a suffix that is none of a report is refused."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm", ".md", ".json"):
        msg = f"A report is written as .html, .md or .json, got {str(path)!r}. Choose one of these suffixes."
        raise FileAccessError(msg)
    return target
