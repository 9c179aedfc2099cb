"""Weights of views, by what each predicts of bags that it left out; and sums that no weight has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.model_selection.folds import combinations, inner_folds
from gmil.stacking import calibrate, cross_fitted, ridge_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.weighted.fitting import Learning
    from gmil.weighted.model import Candidate
    from gmil.weighted.views import CentersInSpace

_N_FOLDS = 10
"""Of training bags, whose weights are found on the others: nearly as many as a new bag has."""
_N_FOLDS_OF_VALUES = 5
"""Values are not calibrated, so that fewer bags change less."""
_NOISE = 0.5
"""Of values, in units of the error of the best view."""


class LeftOut(NamedTuple):
    """What is predicted of training bags by fits without them, (n_bags, n_problems); NaN for bags outside a sample."""

    weighed: Floats  # with the weights of all bags: further weights are found on these
    cross_fitted: Floats  # with weights and calibration from other bags: nothing has seen what the bag is

    @property
    def known(self) -> Booleans:
        """Which bags were in the sample."""
        return np.asarray(np.isfinite(self.weighed).all(axis=1))

    def some(self, rows: Any) -> LeftOut:
        """Return the same for some of the bags."""
        return LeftOut(*(part[rows] for part in self))

    def among(self, rows: Integers | None, n_bags: int) -> LeftOut:
        """Return the same for bags that are these of many; None means that they are all."""
        return self if rows is None else LeftOut(*(_among(part, rows, n_bags) for part in self))


def _among(part: Floats, rows: Integers, n_bags: int) -> Floats:
    found = np.full((n_bags, part.shape[1]), np.nan)
    found[rows] = part
    return found


class Weighed(NamedTuple):
    """Views fitted on a sample of bags, with the weight of each and what makes log-odds of their sum."""

    candidates: list[Candidate]
    shares: Floats  # (n_views, n_problems)
    slopes: Floats  # (n_problems,)
    shifts: Floats  # (n_problems,)
    left_out: LeftOut  # of the sample

    def summary(self, spaces: list[CentersInSpace]) -> list[dict[str, Any]]:
        """Return scaling, kind, kernel and weights of every view."""
        return [
            {"scale": spaces[c.view.space].name, "kind": c.view.kind, "kernel": c.view.kernel, "weights": weights}
            for c, weights in zip(self.candidates, self.shares, strict=True)
        ]


def weigh(candidates: list[Candidate], learning: Learning) -> Weighed:
    """Find the weight of every view, and slopes and shifts that make log-odds of the sum.

    A sum that predicts values is taken as it is.
    """
    folds = stacking_folds(learning)
    of_candidates = [candidate.left_out for candidate in candidates], [candidate.unseen for candidate in candidates]
    found = []
    for problem, goals in enumerate(learning.goals.T):
        tables = LeftOut(*(_side_by_side(parts, problem, len(goals)) for parts in of_candidates))
        found.append(_weigh_problem(tables, goals, learning, folds))
    shares, slopes, shifts, *sums = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
    return Weighed(candidates, shares, slopes, shifts, LeftOut(*sums))


def _side_by_side(parts: Sequence[Floats], problem: int, n_bags: int) -> Floats:
    """Return one column of every table; a sample may have led to no view."""
    return np.column_stack([part[:, problem] for part in parts]) if parts else np.empty((n_bags, 0))


def stacking_folds(learning: Learning) -> list[Booleans]:
    """Return which bags each fold tests: weights for them are found on the others. The same bags have the same folds.

    None where a class has a single bag: weights are then those of all bags. Of bags with several labels, rare
    combinations count as one.
    """
    patterns = label_patterns(learning.positive, _N_FOLDS)
    n_folds = _N_FOLDS if learning.values is None else _N_FOLDS_OF_VALUES
    return inner_folds(patterns, n_folds, np.random.default_rng(0), learning.groups)


def label_patterns(positive: Booleans, n_folds: int) -> Integers:
    """Return a number for the labels of every bag; of several labels, combinations rarer than folds count as one."""
    have_several = positive.shape[1] > 1 and bool((positive.sum(axis=1) != 1).any())
    return combinations(positive, n_folds if have_several else 1)


def _weigh_problem(
    tables: LeftOut, goals: Floats, learning: Learning, folds: list[Booleans]
) -> tuple[Floats, float, float, Floats, Floats]:
    """Return weights of views, slope and shift; and sums for every bag with these, and with those of other folds.

    ``tables`` are what every view predicts of bags without them, (n_bags, n_views).
    """

    def weights_of(columns: Floats, rows: Booleans) -> tuple[Floats, float, float]:
        known = columns[rows], goals[rows], learning.weights[rows]
        noise = _noise(*known) if learning.measured else 1.0
        shares = ridge_weights(*known, noise) if columns.shape[1] else np.empty(0)
        if learning.values is not None:
            return shares, 1.0, 0.0
        return shares, *calibrate(known[0] @ shares, known[1] > 0, known[2], share=float(rows.mean()))

    def as_one(rows: Booleans) -> Floats:
        own, slope, shift = weights_of(tables.cross_fitted, rows)
        return np.append(slope * own, shift)

    shares, slope, shift = weights_of(tables.weighed, np.ones(len(goals), dtype=bool))
    whole = np.append(slope * shares, shift)
    sums = tables.weighed @ whole[:-1] + shift, cross_fitted(tables.cross_fitted, whole, folds, as_one)
    return shares, slope, shift, *sums


def _noise(columns: Floats, goals: Floats, weights: Floats) -> float:
    """Return how much values vary beyond what views tell: the error of the best view."""
    errors = weights @ (goals[:, None] - columns) ** 2 / weights.sum()
    return _NOISE * float(errors.min(initial=1.0))


class Joined(NamedTuple):
    """Models of instances stacked with the views: weights in the sum, and what it predicts of bags without them."""

    base: Floats  # (n_problems,): of the views
    stacking: Floats  # (n_models, n_problems)
    shifts: Floats  # (n_problems,)
    left_out: LeftOut


def join_views(
    left_out: LeftOut,
    values: Sequence[Floats],
    learning: Learning,
    known: Booleans,
    weigh: Callable[[Floats, int, Booleans], Floats],
) -> Joined:
    """Weigh models of instances beside the views of bags.

    Parameters
    ----------
    left_out : LeftOut
        By the views.
    values : sequence of arrays of shape (n_bags, n_problems)
        What every model tells about bags that it did not learn from.
    learning : Learning
    known : array of shape (n_bags,)
        The bags that count.
    weigh : callable
        Returns weights, the intercept last, from columns (views first), the number of the problem, and the bags to
        find them on.
    """
    folds, weights, sums = stacking_folds(learning), [], []
    for problem in range(learning.positive.shape[1]):
        own = [table[:, problem] for table in values]
        columns, unseen = (np.column_stack([part[:, problem], *own]) for part in left_out)
        whole = weigh(columns, problem, known)

        def weights_without(rows: Booleans, unseen: Floats = unseen, problem: int = problem) -> Floats:
            return weigh(unseen, problem, rows & known)

        weights.append(whole)
        sums.append((columns @ whole[:-1] + whole[-1], cross_fitted(unseen, whole, folds, weights_without)))
    table = np.stack(weights, axis=1)
    return Joined(
        table[0], table[1:-1], table[-1], LeftOut(*(np.stack(part, axis=1) for part in zip(*sums, strict=True)))
    )
