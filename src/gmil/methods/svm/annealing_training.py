"""Deterministic annealing of MI-SVM and mi-SVM: assignments are probabilities that harden as the temperature falls.

Rows are arranged as `gmil.methods.svm.kernels.Arrangement` says: those of positive bags first, cut by ``offsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import entr, expit

from gmil.methods.svm.kernels import Machine, first_maxima, hinge, svm_objective
from gmil.methods.svm.training import Assignments, one_of_each, relabel, witness_costs

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Integers
    from gmil.methods.svm.gram import Gram

_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 10.0, 1e-2
"""Times C: from where all assignments are alike to where they are all but decided."""

_SETTLED = 1e-3
"""A temperature is left where no probability changes by more than this."""

_NO_WEIGHT = 1e-6
"""Rows with less of their cost than this are left to no machine."""

_HARD_ROUNDS = 50
_BISECTIONS = 60


class Annealing(NamedTuple):
    """What is annealed, and how.

    ``objective`` is "witness" (one positive instance a bag), "labels" (one at least) or "labels-prior" (a share). With
    "witness", ``negative_counts`` says how many negative instances each row stands for; ``weights``, how often the bag
    of every row counts. None: one.
    """

    objective: str
    C: float
    balance: bool = True
    positive_share: float = 0.5
    cooling: float = 1.5
    max_iter: int = 5
    negative_counts: Floats | None = None
    weights: Floats | None = None

    def row_weights(self, n_rows: int) -> Floats:
        """Return how often the bag of every row counts, (n_rows,)."""
        return np.ones(n_rows) if self.weights is None else self.weights

    def outside_costs(self, offsets: Integers, n_rows: int) -> Floats:
        """Return what slack of the rows of negative bags costs where each positive bag has one witness."""
        weights, n_inside = self.row_weights(n_rows), int(offsets[-1])
        counts = weights[n_inside:] if self.negative_counts is None else self.negative_counts
        return witness_costs(weights[offsets[:-1]], counts, self.C, self.balance)[len(offsets) - 1 :]


def temperatures(annealing: Annealing) -> list[float]:
    """Return the temperatures from hot to cold, zero last.

    >>> temperatures(Annealing("witness", C=1.0, cooling=100.0))
    [10.0, 0.1, 0.0]
    """
    found = [_FIRST_TEMPERATURE * annealing.C]
    while found[-1] / annealing.cooling >= _LAST_TEMPERATURE * annealing.C:
        found.append(found[-1] / annealing.cooling)
    return [*found, 0.0]


def train_annealed(gram: Gram, offsets: Integers, annealing: Annealing, backend: Backend) -> tuple[Machine, Floats]:
    """Train from hot to cold; return the machine and the temperature of every machine on the way.

    The objective is that of the machine, expected over the assignments, less the temperature times their entropy. At
    one temperature it never rises; the next, lower temperature raises it.
    """
    steps: list[tuple[float, float]] = []
    doubled, inside = with_negatives(gram, offsets, annealing), annealing.row_weights(len(gram))[: offsets[-1]]
    values = _first_values(doubled, offsets, annealing, backend)
    for temperature in temperatures(annealing):
        shares = assign(values, offsets, annealing, temperature, backend)
        met, reason = Assignments(shares), "iterations"
        for _ in range(annealing.max_iter if temperature else _HARD_ROUNDS):
            # Not from the machine before: of instances on the margin, which are equally good, the last digits decide
            # who becomes the witness, and these shall not depend on the way that led here.
            found = solve_expected(doubled, offsets, shares, annealing, backend)
            steps.append((found.energy - temperature * entropy(shares, annealing.objective, inside), temperature))
            before, shares = shares, assign(found.values, offsets, annealing, temperature, backend)
            stop = met.stop_reason(shares)
            if stop is not None or (temperature and np.abs(shares - before).max() < _SETTLED):
                reason = stop or reason
                break
        values = found.values
    objectives, course = np.array(steps).T
    return Machine(_undoubled(found.dual, len(gram)), found.intercept, objectives, reason), course


def _first_values(doubled: Gram, offsets: Integers, annealing: Annealing, backend: Backend) -> Floats:
    """Return the decision values to begin with: none for witnesses, those of the machine on bag labels for labels.

    Labels that begin even, half positive and half negative, would be outvoted by the negative bags for good.
    """
    if annealing.objective == "witness":
        return np.zeros(len(doubled))
    return solve_expected(doubled, offsets, np.ones(int(offsets[-1])), annealing, backend).values


class Expected(NamedTuple):
    """A machine under probabilities."""

    dual: Floats  # the coefficients of all rows
    intercept: float
    values: Floats  # the decision values of all rows
    energy: float  # half the squared norm plus the expected cost of all slacks


def with_negatives(gram: Gram, offsets: Integers, annealing: Annealing) -> Gram:
    """Return the rows and, where labels are sought, those of positive bags once more at the end, as negative ones."""
    if annealing.objective == "witness":
        return gram
    return gram.with_mixtures(one_of_each(np.arange(offsets[-1]), len(gram)))


def _undoubled(dual: Floats, n_rows: int) -> Floats:
    """Return the coefficients of the rows, with those of their second selves added."""
    once = dual[:n_rows].copy()
    once[: len(dual) - n_rows] += dual[n_rows:]
    return once


def solve_expected(
    doubled: Gram, offsets: Integers, shares: Floats, annealing: Annealing, backend: Backend
) -> Expected:
    """Return the machine under probabilities of being positive.

    Parameters
    ----------
    doubled : Gram
        Rows as `with_negatives` arranges them.
    offsets : (n_positive_bags + 1,)
    shares : (offsets[-1],)
        How positive every row of a positive bag is. With the objective "witness" the rest of it is ignored, else it
        is negative.
    annealing : Annealing
    backend : Backend
    """
    n_inside, C = int(offsets[-1]), annealing.C
    positive = np.arange(len(doubled)) < n_inside
    if annealing.objective == "witness":
        weights = annealing.row_weights(len(doubled))
        costs = np.concatenate(
            [_weights(shares, C) * weights[:n_inside], annealing.outside_costs(offsets, len(doubled))]
        )
    else:
        inside, outside = np.split(annealing.row_weights(len(doubled) - n_inside), [n_inside])
        costs = np.concatenate([_weights(shares, C) * inside, C * outside, _weights(1 - shares, C) * inside])
    found = doubled.solve(positive, costs, backend)
    values = found.products[doubled.rows] + found.intercept
    energy = svm_objective(float(found.dual @ found.products), values, positive, costs)
    return Expected(found.dual[doubled.rows], found.intercept, values, energy)


def _weights(shares: Floats, C: float) -> Floats:
    return C * np.where(shares > _NO_WEIGHT, shares, 0)


# -------------------------------------------------------------------------------- assignments


def assign(values: Floats, offsets: Integers, annealing: Annealing, temperature: float, backend: Backend) -> Floats:
    """Return the best probabilities of being positive, (offsets[-1],), at decision values and a temperature."""
    inside = values[: offsets[-1]]
    if annealing.objective == "witness":
        if temperature == 0:
            return _marked(first_maxima(inside, offsets, backend), len(inside))
        return _bag_softmax(-annealing.C * hinge(inside) / temperature, offsets, backend)
    gains = annealing.C * (hinge(-inside) - hinge(inside))
    if annealing.objective == "labels":
        if temperature == 0:
            return relabel(values, offsets, backend)[: len(inside)].astype(float)
        free = expit(gains / temperature)
        forced = _with_totals(gains / temperature, offsets, np.ones(len(offsets) - 1), backend)
        return np.where(np.repeat(_bag_totals(free, offsets, backend) >= 1, np.diff(offsets)), free, forced)
    sizes = np.diff(offsets)
    totals = np.maximum(1, annealing.positive_share * sizes)
    if temperature == 0:
        return _best_of_each(gains, offsets, np.round(totals).astype(np.int64))
    return _with_totals(gains / temperature, offsets, totals, backend)


def entropy(shares: Floats, objective: str, weights: Floats | float = 1.0) -> float:
    """Return the entropy of the assignment of all bags; ``weights`` say how often the bag of every row counts."""
    uncertain = entr(shares) if objective == "witness" else entr(shares) + entr(1 - shares)
    return float((uncertain * weights).sum())


def _bag_softmax(logits: Floats, offsets: Integers, backend: Backend) -> Floats:
    sizes = np.diff(offsets)
    raised = np.exp(logits - np.repeat(backend.bag_max(logits, offsets), sizes))
    return raised / np.repeat(_bag_totals(raised, offsets, backend), sizes)


def _with_totals(logits: Floats, offsets: Integers, totals: Floats, backend: Backend) -> Floats:
    """Return the sigmoid of logits moved, bag by bag, so that it sums to a total; by bisection."""
    sizes = np.diff(offsets)
    reach = np.abs(logits).max() + 50
    low, high = np.full(len(sizes), -reach), np.full(len(sizes), reach)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_much = _bag_totals(expit(logits + np.repeat(middle, sizes)), offsets, backend) > totals
        low, high = np.where(too_much, low, middle), np.where(too_much, middle, high)
    return np.asarray(expit(logits + np.repeat(high, sizes)))


def _bag_totals(values: Floats, offsets: Integers, backend: Backend) -> Floats:
    return backend.bag_mean(values, offsets) * np.diff(offsets)


def _best_of_each(values: Floats, offsets: Integers, counts: Integers) -> Floats:
    """Return ones at the largest values of every bag, so many as asked for, and zeros elsewhere."""
    bag_of = np.repeat(np.arange(len(counts)), np.diff(offsets))
    order = np.lexsort((-values, bag_of))
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.arange(len(values)) - offsets[bag_of]
    return (place < counts[bag_of]).astype(float)


def _marked(rows: Integers, n_rows: int) -> Floats:
    marks = np.zeros(n_rows)
    marks[rows] = 1
    return marks
