"""A linear classifier whose weights cost the sum of their absolute values, so that few columns have one.

It minimises |w|_1 + C sum_i max(0, 1 - y_i w.x_i)^2, where the intercept is the weight of a column of ones.
Similarities to instances that are close to each other are nearly the same column, and a solver that changes one weight
at a time needs a great many passes to part them. So columns enter a few at a time, those first that gain most,
and all weights change together: by Newton steps, each as far as the objective falls. A weight that comes to zero
leaves.
"""

from __future__ import annotations

import bisect
import contextlib
import warnings
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

_AT_ONCE = 50
"""So many columns enter at once, at most."""

_TOLERANCE = 1e-6
"""By how much the slope of a weight may differ from what it costs, which is 1."""
_RIDGES = (1e-10, 1e-7, 1e-4)
"""Relative to the curvature along every weight: columns may be nearly equal, or more than there are bags. The smallest
is taken that rounding lets be inverted."""
_ROUNDING = 1e-12
"""A relative gain that is none."""


class Weights(NamedTuple):
    """The columns that have a weight; the one behind the last column of the rows is the intercept."""

    columns: Integers  # (n_weights,)
    values: Floats  # (n_weights,), none is zero
    n_steps: int
    converged: bool


class L1Machine:
    """A linear support vector machine with a 1-norm penalty and squared errors, one against the rest of the classes.

    Parameters
    ----------
    C : float
        The price of a squared error, next to the absolute value of a weight.
    max_iter : int
        Newton steps at most, for every class.

    Attributes
    ----------
    coef_ : array of shape (1, n_columns) or (n_classes, n_columns)
    intercept_ : array of shape (1,) or (n_classes,)
    n_iter_ : int
    """

    def __init__(self, C: float = 1.0, max_iter: int = 100_000) -> None:
        self.C, self.max_iter = C, max_iter

    def fit(self, rows: Floats, labels: Integers) -> Self:
        """Learn the weights; of two classes, 0 and 1, the decision is for the second one."""
        rows, n_classes = np.asarray(rows, dtype=np.float64), int(labels.max()) + 1
        signs = [np.where(labels == k, 1.0, -1.0) for k in ([1] if n_classes <= 2 else range(n_classes))]
        found = [solve(rows, sign, self.C, self.max_iter) for sign in signs]
        if not all(weights.converged for weights in found):
            msg = f"The linear classifier has not converged after max_iter={self.max_iter} steps. Increase max_iter."
            warnings.warn(msg, ConvergenceWarning, stacklevel=2)
        weights = np.zeros((len(found), rows.shape[1] + 1))
        for k, (columns, values, *_) in enumerate(found):
            weights[k, columns] = values
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]
        self.n_iter_ = max(1, *(weights.n_steps for weights in found))
        return self

    def decision_function(self, rows: Floats) -> Floats:
        """Return the decisions about rows, (n_rows,) of two classes, else (n_rows, n_classes)."""
        decisions = rows @ self.coef_.T + self.intercept_
        return np.asarray(decisions[:, 0] if len(self.coef_) == 1 else decisions)


def solve(rows: Floats, signs: Floats, price: float, max_iter: int) -> Weights:
    """Return the weights with the least objective.

    Parameters
    ----------
    rows : (n_rows, n_columns)
    signs : (n_rows,)
        1 or -1.
    price : float
    max_iter : int
        Steps at most.
    """
    support = _Support(rows, signs, price)
    n_steps, at_once = 0, _AT_ONCE
    while n_steps < max_iter:
        before = support.state.objective
        if not support.enter(at_once):
            return Weights(*support.weights(), n_steps, converged=True)
        n_steps += support.descend(max_iter - n_steps)
        gains = support.gain_since(before) > _ROUNDING
        if not gains and at_once == 1:  # what is left to gain is rounding
            return Weights(*support.weights(), n_steps, converged=True)
        at_once = _AT_ONCE if gains else 1  # alone, a column cannot be in the way of another
    return Weights(*support.weights(), n_steps, converged=False)


class _State(NamedTuple):
    """The columns that have a weight or are about to get one, and all that depends on them."""

    columns: Integers  # (n_weights,)
    values: Floats  # (n_weights,)
    directions: Floats  # (n_weights,), the sign that a weight has, or will have
    signed: Floats  # (n_rows, n_weights), the columns, times the signs of the rows
    slacks: Floats  # (n_rows,), an error where it is above zero
    objective: float

    def keep(self, kept: Booleans) -> _State:
        """Return the same without the columns that are not kept, which have no weight."""
        if kept.all():
            return self
        of_columns = (self.columns[kept], self.values[kept], self.directions[kept], self.signed[:, kept])
        return _State(*of_columns, self.slacks, self.objective)


class _Support:
    """A problem, and how far its solution is."""

    def __init__(self, rows: Floats, signs: Floats, price: float) -> None:
        self.rows, self.signs, self.price = rows, signs, price
        n_rows, nothing = len(rows), np.empty(0)
        self.state = _State(
            np.empty(0, dtype=np.intp), nothing, nothing, np.empty((n_rows, 0)), np.ones(n_rows), price * n_rows
        )

    def weights(self) -> tuple[Integers, Floats]:
        """Return the columns that have a weight, and these."""
        kept = self.state.keep(self.state.values != 0)
        return kept.columns, kept.values

    def gain_since(self, objective: float) -> float:
        """Return by how much the objective is lower than it was, relative to that."""
        return (objective - self.state.objective) / objective

    def enter(self, most: int) -> bool:
        """Take up columns whose weight would lower the objective, the steepest first; of equal ones the first.

        Returns whether there are any.
        """
        errors = -2 * self.price * self.signs * np.maximum(self.state.slacks, 0)
        slopes = np.append(errors @ self.rows, errors.sum())
        gains = np.abs(slopes) - 1
        gains[self.state.columns] = 0
        steepest = np.argsort(-gains, kind="stable")[:most]
        steepest = steepest[gains[steepest] > _TOLERANCE]
        if not len(steepest):
            return False
        entering = self._columns(steepest)
        distinct = np.sort(np.unique(entering, axis=1, return_index=True)[1])
        steepest, entering = steepest[distinct], entering[:, distinct]
        self.state = _State(
            np.append(self.state.columns, steepest),
            np.append(self.state.values, np.zeros(len(steepest))),
            np.append(self.state.directions, -np.sign(slopes[steepest])),
            np.concatenate([self.state.signed, entering * self.signs[:, None]], axis=1),
            self.state.slacks,
            self.state.objective,
        )
        return True

    def _columns(self, numbers: Integers) -> Floats:
        """Return columns; the one behind the last is that of the intercept."""
        found, own = np.ones((len(self.rows), len(numbers))), numbers < self.rows.shape[1]
        found[:, own] = self.rows[:, numbers[own]]
        return found

    def descend(self, most: int) -> int:
        """Take steps until the objective is as low as these columns allow; return how many."""
        n_steps = 0
        while n_steps < most and len(self.state.columns):
            slopes = self._slopes()
            if np.abs(slopes).max() <= _TOLERANCE / 10:
                break
            step = self._newton_step(slopes)
            inward = (self.state.values != 0) | (step * self.state.directions > 0)
            if not inward.all():
                self.state = self.state.keep(inward)  # with these beside them, the others need no such weight
                continue
            n_steps += 1
            before, self.state = self.state, self._moved(step)
            if not self.state.objective < before.objective:  # by rounding, or not a number
                self.state = before
                break
            # A weight that is let go can be all that a step gains, and the way on is free.
            is_whole = len(self.state.columns) == len(before.columns)
            if is_whole and self.gain_since(before.objective) <= _ROUNDING:
                break
        self.state = self.state.keep(self.state.values != 0)
        return n_steps

    def _slopes(self) -> Floats:
        """Return the slopes of the objective by the weights, (n_weights,)."""
        return np.asarray(
            self.state.directions - 2 * self.price * (np.maximum(self.state.slacks, 0) @ self.state.signed)
        )

    def _newton_step(self, slopes: Floats) -> Floats:
        signed = self.state.signed[self.state.slacks > 0]
        curvature = 2 * self.price * (signed.T @ signed)
        # Of all rows: where none that is wrong has a say about a weight, a step would have no end.
        along = 2 * self.price * np.einsum("ij,ij->j", self.state.signed, self.state.signed)
        for ridge in _RIDGES:
            added = curvature + np.diag(ridge * along)
            with contextlib.suppress(np.linalg.LinAlgError):
                return np.asarray(-cho_solve(cho_factor(added, check_finite=False), slopes, check_finite=False))
        return np.asarray(-slopes / along)

    def _moved(self, step: Floats) -> _State:
        """Return where the objective is least along a step."""
        state = self.state
        length, stopped = best_length(state.values, step, state.slacks, -state.signed @ step, self.price)
        values = state.values + length * step
        if stopped is not None:
            values[stopped] = 0.0
        kept = state._replace(values=values, directions=np.sign(values)).keep(values != 0)
        slacks = 1 - kept.signed @ kept.values  # without the rounding of all steps before
        errors = self.price * np.square(np.maximum(slacks, 0)).sum()
        return kept._replace(slacks=slacks, objective=float(np.abs(kept.values).sum() + errors))


# -------------------------------------------------------------------------------- along a step


def best_length(values: Floats, step: Floats, slacks: Floats, change: Floats, price: float) -> tuple[float, int | None]:
    """Return how far along a step the objective is least, and which weight comes to zero there, if one does.

    The slope along the step rises: at once where a weight comes to zero, at another rate where a slack does, and evenly
    between these places.

    Parameters
    ----------
    values, step : (n_weights,)
    slacks, change : (n_rows,)
        Slacks at the start, and what the step adds to them.
    price : float
    """
    crossing = np.flatnonzero(values * step < 0)
    crossing = crossing[np.argsort(-values[crossing] / step[crossing], kind="stable")]
    zeros = -values[crossing] / step[crossing]
    # What the weights add to the slope: before the first of them is zero, after it, and so on.
    start = np.where(values == 0, np.abs(step), np.sign(values) * step).sum()
    of_weights = start + np.append(0.0, 2 * np.cumsum(np.abs(step[crossing])))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        turns = -slacks / change  # where a slack is zero
    places = np.unique(np.concatenate([[0.0], zeros, turns[np.isfinite(turns) & (turns > 0)]]))

    def of_errors(at: float, wrong: Booleans) -> float:
        return 2 * price * float((slacks[wrong] + at * change[wrong]) @ change[wrong])

    def wrong_behind(at: float) -> Booleans:
        return np.where(change > 0, turns <= at, turns > at) & (change != 0)

    def slope_behind(at: float) -> float:
        return of_errors(at, wrong_behind(at)) + of_weights[np.searchsorted(zeros, at, side="right")]

    last = bisect.bisect_left(places, 0.0, key=slope_behind)  # the first place behind which the slope is not below zero
    if last < len(places):
        end = float(places[last])
        first_zero = int(np.searchsorted(zeros, end, side="left"))
        is_zero = first_zero < len(zeros) and zeros[first_zero] == end
        before = wrong_behind(float(places[max(last - 1, 0)]))
        if is_zero and of_errors(end, before) + of_weights[first_zero] <= 0:
            return end, int(crossing[first_zero])
    else:
        end = np.inf
    if last == 0:
        return 0.0, None
    begin = float(places[last - 1])
    wrong = wrong_behind(begin)
    rate = 2 * price * float(change[wrong] @ change[wrong])
    ahead = -slope_behind(begin) / rate if rate > 0 else np.inf
    return float(min(begin + ahead, end)), None
