"""Whether the conditions of the paper's lemmas hold where the concept is, in bags that fit its assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.engine import resolve
from gmil.greedy.windows import window_distances, window_heights

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats


def dominates(positive: Floats, negative: Floats) -> bool:
    """Tell whether numbers can be paired so that every positive one is at least its negative one.

    Sorted, the k-th largest of one must be at least the k-th largest of the other, and there must be as many.

    >>> dominates(np.array([0.2, 0.9]), np.array([0.5, 0.1])), dominates(np.array([0.2, 0.9]), np.array([0.5, 0.3]))
    (True, False)
    """
    return len(positive) == len(negative) and bool((np.sort(positive) >= np.sort(negative)).all())


def condition_row(concept: Floats, bags: Bags, positive: Booleans, widths: dict[str, float]) -> dict[str, Any]:
    """Look, at the true concept, at the condition of the last lemma and at those of Theorem 1: printed, and weaker.

    Bags are numbered as suits the lemma best. Widths are of windows by kernel.
    """
    row: dict[str, Any] = {"candidates": "concept", "rule": "conditions"}
    in_positive = positive[bags.segment_ids]
    for kernel, width in widths.items():
        far = window_distances(concept[None], bags.instances, slice(None), kernel)[0]
        heights = window_heights(far, kernel, width)
        sums = resolve("numpy").bag_mean(heights[:, None], bags.offsets)[:, 0] * bags.sizes
        row[f"lemma_{kernel}"] = float(dominates(sums[positive], sums[~positive]))
        above, below = heights[in_positive], heights[~in_positive]
        row[f"pairing_{kernel}"] = float(dominates(above, below))
        row[f"printed_{kernel}"] = float(len(above) == len(below) and above.min() >= below.max())
    return row
