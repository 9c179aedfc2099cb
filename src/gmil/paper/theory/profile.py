"""Diverse Density of many points at once, at the width that suits it best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.engine import resolve
from gmil.methods.density.noisy_or import LEAST_EXPONENT, bag_nll, log_not

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers

WIDTHS = 2.0 ** np.arange(-4, 2)
"""Widths tried, in units of the median distance between a candidate and an instance over the root of 2."""


def density_profile(points: Floats, bags: Bags, positive: Booleans) -> tuple[Floats, float]:
    """Return -log DD at every point, (n_points,), and the width with the least of them.

    Pr(x = t | B_ij) = exp(-|x - B_ij|^2 / 2 b^2), with one width b for all features and all points.
    """
    ordered = bags[np.argsort(~positive, kind="stable")]
    n_positive = int(positive.sum())
    squares = np.asarray(resolve("auto").sq_distances(ordered.instances, points)).T  # (n_points, n_instances)
    unit = float(np.sqrt(np.median(squares) / 2)) or 1.0
    tried = [(points_nll(squares / (2 * width**2), ordered.offsets, n_positive), width) for width in unit * WIDTHS]
    nll, width = min(tried, key=lambda found: found[0].min())
    return nll, float(width)


def points_nll(exponents: Floats, offsets: Integers, n_positive: int) -> Floats:
    """Return -log DD of every point from the exponents of all instances, positive bags first, (n_points,)."""
    n_points, border = len(exponents), int(offsets[n_positive])
    starts = border * np.arange(n_points)[:, None]
    # Every point sees the same bags: one long row of bags, point after point.
    all_offsets = np.append((offsets[:n_positive] + starts).ravel(), n_points * border)
    present = bag_nll(exponents[:, :border].ravel(), all_offsets)[0].reshape(n_points, n_positive).sum(axis=1)
    absent = log_not(np.maximum(exponents[:, border:], LEAST_EXPONENT)).sum(axis=1)
    return np.asarray(present - absent)
