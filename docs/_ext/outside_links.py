"""Links to files outside docs/ lead to the repository, where its address is known, and are plain text elsewhere."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGES = {"CHANGELOG.md": "/development/changelog", "README.md": "/index"}
"""Files outside docs/ that are pages of the site."""


class OutsideLinks(SphinxTransform):
    """Replaces what MyST takes for a download, or for a missing page; runs before Sphinx collects downloads."""

    default_priority = 500

    def apply(self) -> None:
        """Replace every link to a file of the repository that is no page."""
        links = [*self.document.findall(addnodes.download_reference), *self.document.findall(_is_page_elsewhere)]
        for link in links:
            path = self._in_repository(link["reftarget"])
            if path is not None:
                link.replace_self(self._linked(link, path))

    def _in_repository(self, target: str) -> str | None:
        docs = Path(self.env.srcdir)
        target += ".md" * Path(target).is_absolute()
        path = Path(os.path.normpath(docs / Path(self.env.docname).parent / target))
        outside = path.is_relative_to(docs.parent) and not path.is_relative_to(docs)
        return path.relative_to(docs.parent).as_posix() if outside else None

    def _linked(self, link: nodes.Element, path: str) -> list[nodes.Node]:
        text = link.astext()
        if path in PAGES:
            return [
                addnodes.pending_xref(
                    "",
                    nodes.inline(text, text),
                    refdomain="std",
                    reftype="doc",
                    reftarget=PAGES[path],
                    refdoc=self.env.docname,
                    refexplicit=True,
                    refwarn=True,
                )
            ]
        if self.config.repository_url:
            return [nodes.reference("", text, refuri=f"{self.config.repository_url}/blob/main/{path}")]
        named = nodes.literal(path, path)
        return [named] if text in (path, Path(path).name) else [nodes.Text(f"{text} ("), named, nodes.Text(")")]


def _is_page_elsewhere(node: nodes.Node) -> bool:
    """Whether MyST links to a Markdown file outside docs/: it then names the whole path, without its suffix."""
    return isinstance(node, addnodes.pending_xref) and node["refdomain"] == "doc" and node["reftarget"].startswith("/")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform and the setting it reads."""
    app.add_config_value("repository_url", None, "env", types=(str, type(None)))
    app.add_transform(OutsideLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
