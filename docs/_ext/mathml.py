"""Formulas as MathML, which browsers draw by themselves: nothing is loaded, and no script runs."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

_logger = logging.getLogger(__name__)


def _drawn(node: nodes.Element, *, as_block: bool) -> str:
    """Return a formula as MathML; one that cannot be read is a warning, and stands as it was typed."""
    text = re.sub(r"\\([Bb]igg?)(?![A-Za-z])", r"\\\1l", node.astext())  # docutils knows \Bigl, and no \Big
    try:
        return tex2mathml(text, as_block=as_block)
    except MathError as error:
        _logger.warning("%s: %s", error, text, location=node)
        return f"<code>{html.escape(text)}</code>"


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_drawn(node, as_block=False))
    raise nodes.SkipNode


def _display(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_drawn(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer that ``html_math_renderer = "mathml"`` chooses."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
