"""Deterministic annealing of MI-SVM and mi-SVM: assignments are probabilities that harden as the temperature falls.

Rows are arranged as `gmil.rivals.svm_kernels.Arrangement` says: those of positive bags first, cut by ``offsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import entr, expit

from gmil.rivals.svm_kernels import Machine, first_maxima, hinge, solve_svm, svm_objective
from gmil.rivals.svm_training import Assignments, relabel, witness_costs

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Integers

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

    ``objective`` is "witness" (one positive instance a bag), "labels" (one at least) or "labels-prior" (a share).
    """

    objective: str
    C: float
    balance: bool = True
    positive_share: float = 0.5
    cooling: float = 1.5
    max_iter: int = 5


def temperatures(annealing: Annealing) -> list[float]:
    """Return the temperatures from hot to cold, zero last.

    >>> temperatures(Annealing("witness", C=1.0, cooling=100.0))
    [10.0, 0.1, 0.0]
    """
    found = [_FIRST_TEMPERATURE * annealing.C]
    while found[-1] / annealing.cooling >= _LAST_TEMPERATURE * annealing.C:
        found.append(found[-1] / annealing.cooling)
    return [*found, 0.0]


def train_annealed(gram: Floats, offsets: Integers, annealing: Annealing, backend: Backend) -> tuple[Machine, Floats]:
    """Train from hot to cold; return the machine and the temperature of every machine on the way.

    The objective is that of the machine, expected over the assignments, less the temperature times their entropy. At
    one temperature it never rises; the next, lower temperature raises it.
    """
    steps: list[_Step] = []
    values = _first_values(gram, offsets, annealing)
    for temperature in temperatures(annealing):
        shares = assign(values, offsets, annealing, temperature, backend)
        met, reason = Assignments(shares), "iterations"
        for _ in range(annealing.max_iter if temperature else _HARD_ROUNDS):
            steps.append(_take_step(gram, offsets, shares, temperature, annealing))
            values = gram @ steps[-1].dual + steps[-1].intercept
            before, shares = shares, assign(values, offsets, annealing, temperature, backend)
            stop = met.stop_reason(shares)
            if stop is not None or (temperature and np.abs(shares - before).max() < _SETTLED):
                reason = stop or reason
                break
    objectives, course = np.array([[step.objective, step.temperature] for step in steps]).T
    return Machine(steps[-1].dual, steps[-1].intercept, objectives, reason), course


def _first_values(gram: Floats, offsets: Integers, annealing: Annealing) -> Floats:
    """Return the decision values to begin with: none for witnesses, those of the machine on bag labels for labels.

    Labels that begin even, half positive and half negative, would be outvoted by the negative bags for good.
    """
    if annealing.objective == "witness":
        return np.zeros(len(gram))
    dual, intercept, _ = solve_expected(gram, offsets, np.ones(int(offsets[-1])), annealing)
    return gram @ dual + intercept


class _Step(NamedTuple):
    """One machine on the way."""

    dual: Floats
    intercept: float
    objective: float
    temperature: float


def _take_step(gram: Floats, offsets: Integers, shares: Floats, temperature: float, annealing: Annealing) -> _Step:
    dual, intercept, energy = solve_expected(gram, offsets, shares, annealing)
    return _Step(dual, intercept, energy - temperature * entropy(shares, annealing.objective), temperature)


def solve_expected(
    gram: Floats, offsets: Integers, shares: Floats, annealing: Annealing
) -> tuple[Floats, float, float]:
    """Return dual coefficients, intercept and objective of the machine under probabilities of being positive.

    Parameters
    ----------
    gram : (n_rows, n_rows)
    offsets : (n_positive_bags + 1,)
    shares : (offsets[-1],)
        How positive every row of a positive bag is. With the objective "witness" the rest of it is ignored, else it
        is negative.
    annealing : Annealing
    """
    n_inside = int(offsets[-1])
    outside = np.arange(n_inside, len(gram))
    costs = witness_costs(len(offsets) - 1, len(outside), annealing.C, annealing.balance)[-1]
    as_positive, as_negative = np.flatnonzero(shares > _NO_WEIGHT), np.empty(0, dtype=np.int64)
    if annealing.objective != "witness":
        costs, as_negative = annealing.C, np.flatnonzero(shares < 1 - _NO_WEIGHT)
    rows = np.concatenate([as_positive, as_negative, outside])
    positive = np.arange(len(rows)) < len(as_positive)
    weights = np.concatenate(
        [
            annealing.C * shares[as_positive],
            annealing.C * (1 - shares[as_negative]),
            np.full(len(outside), costs),
        ]
    )
    every_row_once = len(rows) == len(gram) and len(as_negative) == 0
    by_row, intercept = solve_svm(gram if every_row_once else gram[np.ix_(rows, rows)], positive, weights)
    dual = np.bincount(rows, by_row, minlength=len(gram)).astype(float, copy=False)
    products = gram @ dual
    energy = svm_objective(float(dual @ products), (products + intercept)[rows], positive, weights)
    return dual, intercept, energy


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


def entropy(shares: Floats, objective: str) -> float:
    """Return the entropy of the assignment of all bags."""
    uncertain = entr(shares) if objective == "witness" else entr(shares) + entr(1 - shares)
    return float(uncertain.sum())


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
