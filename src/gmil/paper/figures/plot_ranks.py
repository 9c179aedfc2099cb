"""The critical-difference diagram: average ranks, and which of them cannot be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.paper.figures import plotting
from gmil.paper.statistics import average_ranks, critical_difference, refuse_few_datasets

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from gmil.engine.arrays import Floats


def draw_ranks(
    scores: ArrayLike, methods: Sequence[str], stem: str | os.PathLike[str], *, alpha: float = 0.05
) -> list[Path]:
    """Draw a critical-difference diagram; return the files.

    Parameters
    ----------
    scores : array of shape (n_datasets, n_methods)
        Larger is better. Fewer than 12 data sets are refused.
    methods : sequence of str
    stem : path
        Where to write, without suffix.
    alpha : float, default=0.05
        The level of Nemenyi's test.
    """
    table = np.asarray(scores, dtype=np.float64)
    refuse_few_datasets(len(table))
    ranks = average_ranks(table)
    width = critical_difference(table.shape[1], len(table), alpha=alpha)
    with plotting.figure(7.5, 1.4 + 0.3 * len(methods)) as (drawn, grid):
        _draw(grid[0][0], ranks, list(methods), width)
        level = f"at {alpha:g} (Nemenyi, CD = {width:.2f})"
        text = f"{len(table)} data sets. Methods under one bar are not told apart {level}."
        plotting.caption(drawn, "Average ranks", text)
        return plotting.save(drawn, stem)


def groups(ranks: Floats, width: float) -> list[tuple[int, int]]:
    """Return the longest runs of sorted ranks that lie within ``width``, as first and last position.

    >>> groups(np.array([1.0, 1.5, 3.0, 3.2]), 1.6)
    [(0, 1), (1, 2), (2, 3)]
    """
    ordered = np.sort(ranks)
    found: list[tuple[int, int]] = []
    for first in range(len(ordered)):
        last = int(np.searchsorted(ordered, ordered[first] + width, side="right")) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def _draw(axes: Axes, ranks: Floats, methods: list[str], width: float) -> None:
    order = np.argsort(ranks, kind="stable")
    for height, i in enumerate(order):
        axes.plot(ranks[i], height, "o", color=plotting.BLUE, markersize=6)
    for n, (first, last) in enumerate(groups(ranks, width)):
        axes.plot(
            [ranks[order[first]], ranks[order[last]]], [-0.9 - 0.35 * n] * 2, color=plotting.INK, linewidth=3,
            solid_capstyle="round",
        )  # fmt: skip
    axes.set_yticks(range(len(order)), [methods[i] for i in order])
    axes.invert_yaxis()
    axes.set_xlabel("average rank, 1 is best")
    plotting.bare(axes, grid="x")
