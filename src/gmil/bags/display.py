"""How `Bags` show themselves in a notebook: sizes, features and the first instances, as one small HTML table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.errors import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable


_ROWS, _COLUMNS = 5, 6


def to_html(bags: Any) -> str:
    """Return a summary and a preview of bags."""
    return f"<div><p><b>{escape(repr(bags))}</b><br>{escape(_sizes(bags))}</p>{_preview(bags)}</div>"


def _sizes(bags: Any) -> str:
    if len(bags) == 0:
        return "no bags"
    sizes = bags.sizes
    return f"instances per bag: {sizes.min()} to {sizes.max()}, median {np.median(sizes):g}"


def _preview(bags: Any) -> str:
    """Return the first instances; columns beyond the first few are counted in the heading."""
    shown = bags.instances[:_ROWS, :_COLUMNS]
    values = shown.toarray() if sp.issparse(shown) else np.asarray(shown)
    names = bags.feature_names or tuple(str(i) for i in range(bags.n_features))
    left_out = bags.n_features - values.shape[1]
    more = [f"... {left_out} more"] if left_out else []
    ids = bags.bag_ids if bags.bag_ids is not None else np.arange(len(bags))
    heading = _row("th", ["bag", *names[:_COLUMNS], *more])
    body = (
        _row("td", [ids[bag], *(f"{value:.4g}" for value in row), *([""] if more else [])])
        for bag, row in zip(bags.segment_ids[:_ROWS], values, strict=True)
    )
    rest = bags.n_instances - len(values)
    last = _row("td", [f"... {count_of(rest, 'more instance')}"]) if rest else ""
    return f"<table><thead>{heading}</thead><tbody>{''.join(body)}{last}</tbody></table>"


def _row(tag: str, cells: Iterable[Any]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
