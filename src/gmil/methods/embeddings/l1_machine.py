"""A linear classifier whose weights cost the sum of their absolute values, so that few columns have one.

It minimises |w|_1 + C sum_i max(0, 1 - y_i w.x_i)^2, where the intercept is the weight of a column of ones.
Similarities to instances that are close to each other are nearly the same column, and a solver that changes one weight
at a time needs tens of thousands of passes to part them. So columns enter a few at a time, those first that gain most,
and all weights change together: by Newton steps, each as far as the objective falls. A weight that comes to zero
leaves.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

_AT_ONCE = 50
"""So many columns enter at once, at most."""

_TOLERANCE = 1e-6
"""By how much the slope of a weight may differ from what it costs, which is 1."""
_RIDGE = 1e-10
"""Relative to the curvature along every weight: columns may be equal, or more than there are bags."""
_ROUNDING = 1e-13
"""A relative gain that is none."""
_MOST_LOOKS = 100


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
        before = support.objective
        entering, slopes = _entering(rows, support, at_once)
        if not len(entering):
            return Weights(support.columns, support.values, n_steps, converged=True)
        support.enter(entering, -np.sign(slopes))
        n_steps += support.descend(max_iter - n_steps)
        if support.gain_since(before) <= _ROUNDING:
            if at_once == 1:  # what is left to gain is rounding
                return Weights(support.columns, support.values, n_steps, converged=True)
            at_once = 1  # alone, a column cannot be in the way of another
        else:
            at_once = _AT_ONCE
    return Weights(support.columns, support.values, n_steps, converged=False)


def _entering(rows: Floats, support: _Support, most: int) -> tuple[Integers, Floats]:
    """Return columns without a weight that would lower the objective, the steepest first, and their slopes."""
    errors = support.errors()
    slopes = np.append(errors @ rows, errors.sum())
    gains = np.abs(slopes) - 1
    gains[support.columns] = 0
    steepest = np.argsort(-gains, kind="stable")[:most]
    steepest = steepest[gains[steepest] > _TOLERANCE]
    return steepest, slopes[steepest]


class _Support:
    """The columns that have a weight or are about to get one, and all that depends on them."""

    def __init__(self, rows: Floats, signs: Floats, price: float) -> None:
        self.rows, self.signs, self.price = rows, signs, price
        self.columns = np.empty(0, dtype=np.intp)
        self.values = np.empty(0)
        self.directions = np.empty(0)  # the sign that a weight has, or will have
        self.signed = np.empty((len(rows), 0))  # the columns, times the signs of the rows
        self.slacks = np.ones(len(rows))  # an error where it is above zero
        self.objective = self._objective()

    def _objective(self) -> float:
        return float(np.abs(self.values).sum() + self.price * np.square(np.maximum(self.slacks, 0)).sum())

    def gain_since(self, objective: float) -> float:
        """Return by how much the objective is lower than it was, relative to that."""
        return (objective - self.objective) / objective

    def errors(self) -> Floats:
        """Return the slope of the objective by the decision about every row, (n_rows,)."""
        return np.asarray(-2 * self.price * self.signs * np.maximum(self.slacks, 0))

    def enter(self, columns: Integers, directions: Floats) -> None:
        """Take up columns, with weights of zero."""
        n_columns = self.rows.shape[1]
        new = np.ones((len(self.rows), len(columns)))
        new[:, columns < n_columns] = self.rows[:, columns[columns < n_columns]]
        self.signed = np.concatenate([self.signed, new * self.signs[:, None]], axis=1)
        self.columns = np.concatenate([self.columns, columns])
        self.values = np.concatenate([self.values, np.zeros(len(columns))])
        self.directions = np.concatenate([self.directions, directions])

    def _keep(self, kept: Booleans) -> None:
        if not kept.all():
            self.columns, self.values, self.directions = self.columns[kept], self.values[kept], self.directions[kept]
            self.signed = self.signed[:, kept]

    def descend(self, most: int) -> int:
        """Take steps until the objective is as low as these columns allow; return how many."""
        n_steps = 0
        while n_steps < most and len(self.columns):
            before, step = self.objective, self._newton_step()
            inward = (self.values != 0) | (step * self.directions > 0)
            if not inward.all():
                self._keep(inward)  # with these beside them, the others need no such weight
                continue
            self._go(step)
            n_steps += 1
            if self.gain_since(before) <= _ROUNDING:
                break
        self._keep(self.values != 0)
        return n_steps

    def _newton_step(self) -> Floats:
        wrong = self.slacks > 0
        signed = self.signed[wrong]
        slopes = self.directions - 2 * self.price * (self.slacks[wrong] @ signed)
        curvature = 2 * self.price * (signed.T @ signed)
        along = curvature.diagonal()
        curvature[np.diag_indices_from(curvature)] += np.where(along > 0, _RIDGE * along, 1.0)
        return np.asarray(-scipy.linalg.solve(curvature, slopes, assume_a="pos", check_finite=False))

    def _go(self, step: Floats) -> None:
        """Go along a step as far as the objective falls."""
        change = -self.signed @ step
        length, stopped = best_length(self.values, step, self.slacks, change, self.price)
        values, slacks = self.values + length * step, self.slacks + length * change
        if stopped is not None:
            values[stopped] = 0.0
        self.values, self.slacks = values, slacks
        self._keep(values != 0)
        self.directions = np.sign(self.values)
        self.slacks = 1 - self.signed @ self.values  # without the rounding of all steps before
        self.objective = self._objective()


def best_length(values: Floats, step: Floats, slacks: Floats, change: Floats, price: float) -> tuple[float, int | None]:
    """Return how far along a step the objective is least, and which weight comes to zero there, if one does.

    Parameters
    ----------
    values, step : (n_weights,)
    slacks, change : (n_rows,)
        Slacks at the start, and what the step adds to them.
    price : float
    """

    def slope_of_errors(length: float) -> float:
        reached = slacks + length * change
        wrong = reached > 0
        return 2 * price * float(reached[wrong] @ change[wrong])

    crossing = np.flatnonzero(values * step < 0)
    crossing = crossing[np.argsort(-values[crossing] / step[crossing])]
    lengths = -values[crossing] / step[crossing]
    # The slope of the sum of absolute values: before the first crossing, after it, and so on.
    start = np.where(values == 0, np.abs(step), np.sign(values) * step).sum()
    of_weights = start + np.concatenate([[0.0], 2 * np.cumsum(np.abs(step[crossing]))])
    first, last = 0, len(lengths)
    while first < last:
        middle = (first + last) // 2
        if slope_of_errors(lengths[middle]) + of_weights[middle + 1] >= 0:
            last = middle
        else:
            first = middle + 1
    if first < len(lengths) and slope_of_errors(lengths[first]) + of_weights[first] <= 0:
        return float(lengths[first]), int(crossing[first])
    low = float(lengths[first - 1]) if first else 0.0
    high = float(lengths[first]) if first < len(lengths) else np.inf
    return _root(slacks, change, price, float(of_weights[first]), (low, high)), None


def _root(slacks: Floats, change: Floats, price: float, of_weights: float, bounds: tuple[float, float]) -> float:
    """Return where the slope along a step is zero, between two crossings, by Newton's method or halving."""
    low, high = bounds
    length = min(max(1.0, low), high)
    for _ in range(_MOST_LOOKS):
        wrong = slacks + length * change > 0
        curvature = 2 * price * float(change[wrong] @ change[wrong])
        slope = 2 * price * float((slacks[wrong] + length * change[wrong]) @ change[wrong]) + of_weights
        low, high = (low, length) if slope > 0 else (length, high)
        following = length - slope / curvature if curvature > 0 else np.inf
        if not low < following < high:
            following = (low + high) / 2 if np.isfinite(high) else 2 * length + 1
        if abs(following - length) <= 1e-15 * max(1.0, length):
            break
        length = following
    return length
