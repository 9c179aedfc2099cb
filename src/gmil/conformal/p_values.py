"""Class-conditional p-values from scores of bags that no model had seen, and the sets that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

_ROUNDING = 1e-12
"""A p-value of 2/20 is not above 1 - 0.9, whatever the last digit."""


class Calibration(NamedTuple):
    """Labelled bags, each scored by a model that was fitted without it (without its group, where there are groups).

    Parameters
    ----------
    scores : array of shape (n_bags, n_classes)
        How well every bag conforms with every class; larger is better. Bags with NaN are left out.
    members : array of shape (n_bags, n_classes)
        Which bags are of which class.
    groups : array of shape (n_bags,) or None
        Bags of one group count as one bag of each class together: other groups are what a new bag comes from.
    folds : array of shape (n_bags,) or None
        Which of several models scored the bag; None is one model for all.
    """

    scores: Floats
    members: Booleans
    groups: Integers | None = None
    folds: Integers | None = None

    def weights(self) -> Floats:
        """Return how much every bag counts for every class, (n_bags, n_classes); they add up to bags, or groups."""
        counted = (self.members & ~np.isnan(self.scores)).astype(np.float64)  # infinity is sure, and counts
        if self.groups is None:
            return counted
        _, numbers = np.unique(self.groups, return_inverse=True)
        in_group = np.zeros((int(numbers.max(initial=0)) + 1, counted.shape[1]))
        np.add.at(in_group, numbers, counted)
        return counted / np.maximum(in_group[numbers], 1)


def conformity(decisions: Floats, *, several: bool = False) -> Floats:
    """Return how well bags conform with classes, (..., n_classes): the margin of a class before all others.

    Parameters
    ----------
    decisions : array of shape (..., n_bags) or (..., n_bags, n_classes)
        About the second of two classes, or about every class.
    several : bool
        Whether a bag may have several labels. Columns then are: has label 0, has label 1, ..., lacks label 0, ...

    Examples
    --------
    >>> conformity(np.array([0.5, -2.0])).tolist()
    [[-0.5, 0.5], [2.0, -2.0]]
    >>> conformity(np.array([[3.0, 1.0, 0.0]])).tolist()
    [[2.0, -2.0, -3.0]]
    """
    if several:
        return np.concatenate([decisions, -decisions], axis=-1)
    if decisions.ndim == 1:
        return np.stack([-decisions, decisions], axis=-1)
    return decisions - _largest_of_others(decisions)


def _largest_of_others(decisions: Floats) -> Floats:
    first, second = np.moveaxis(np.sort(decisions, axis=-1)[..., [-1, -2]], -1, 0)
    is_first = np.arange(decisions.shape[-1]) == decisions.argmax(axis=-1)[..., None]
    return np.where(is_first, second[..., None], first[..., None])


def p_values(scores: Floats, calibration: Calibration, generator: np.random.Generator | None = None) -> Floats:
    """Return for every bag and class how likely a bag of that class conforms no better, (n_bags, n_classes).

    It is the share of the bags of the class, the new one among them, that conform with it at most as well. With
    several models every calibration bag is compared with what its own model tells of the new bag (cross-conformal).

    Parameters
    ----------
    scores : array of shape (n_bags, n_classes) or (n_folds, n_bags, n_classes)
        Of new bags, by the one model or by all.
    calibration : Calibration
    generator : Generator, optional
        Draws ties apart, the new bag's with itself among them: p-values are then uniform, not only no smaller.

    Examples
    --------
    >>> left_out = Calibration(np.array([[1.0], [2.0], [3.0]]), np.ones((3, 1), dtype=bool))
    >>> p_values(np.array([[0.5], [2.0], [9.0]]), left_out).ravel().tolist()
    [0.25, 0.75, 1.0]
    """
    by_model = scores if scores.ndim == 3 else scores[None]
    weights = calibration.weights()
    folds = np.zeros(len(weights), dtype=np.int64) if calibration.folds is None else calibration.folds
    below, ties = np.zeros(by_model.shape[1:]), np.ones(by_model.shape[1:])
    for fold, new in enumerate(by_model):
        for column in range(new.shape[1]):
            own = (folds == fold) & (weights[:, column] > 0)
            less, equal = _counted(calibration.scores[own, column], weights[own, column], new[:, column])
            below[:, column] += less
            ties[:, column] += equal
    part = 1.0 if generator is None else generator.random(below.shape)
    return np.asarray((below + part * ties) / (weights.sum(axis=0) + 1))


def _counted(own: Floats, weights: Floats, new: Floats) -> tuple[Floats, Floats]:
    """Return how much of ``own`` lies below each new score, and how much is equal to it."""
    order = np.argsort(own)
    until = np.concatenate([[0.0], np.cumsum(weights[order])])
    low, high = (until[np.searchsorted(own[order], new, side)] for side in ("left", "right"))
    return low, high - low


def prediction_sets(p: Floats, coverage: float) -> Booleans:
    """Return which classes cannot be ruled out, of the same shape: those with a p-value above 1 - coverage.

    >>> prediction_sets(np.array([[0.1, 0.4]]), coverage=0.9).tolist()
    [[False, True]]
    """
    check_coverage(coverage)
    return np.asarray(p > 1 - coverage + _ROUNDING)


def check_coverage(coverage: Any) -> None:
    """Refuse a coverage that is none."""
    if not isinstance(coverage, (int, float, np.floating)) or not 0 < coverage < 1:
        msg = f"must be a number above 0 and below 1, got {coverage!r}."
        raise BagValidationError(msg, parameter="coverage")


def fewest_bags(coverage: float) -> int:
    """Return how many bags of a class are needed before the class can be ruled out at all.

    >>> [fewest_bags(coverage) for coverage in (0.8, 0.9, 0.95)]
    [4, 9, 19]
    """
    return int(np.ceil(1 / (1 - coverage) - 1 - 1e-9))
