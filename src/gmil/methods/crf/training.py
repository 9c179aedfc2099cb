"""Training of the graph of bags: weights by cutting planes, then the witnesses that suit them best, in turns.

A labelling has features, and its energy is their weighted sum: minus the scores of the chosen instances, one scorer
after the other, the dissimilarities between all pairs of them, one kind after the other, and how many there are. The
weights of all but the last are never negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import nnls

from gmil.methods.crf.graph import Graph, minimise
from gmil.methods.svm.training import Assignments

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.methods.crf.states import States

_BIAS_RIDGE = 1e-4
"""The weight of the count is a threshold, which a margin should not shrink; the solver needs a little of it."""

_TOLERANCE = 1e-3
"""A labelling joins the constraints where it adds this much to the mean slack of a bag."""

_MOST_CUTS = 200

_FIRST_STRENGTHS = (1.0, 10.0)
"""Weights of pairs, next to a unit of score, under which first witnesses are chosen jointly."""


class Solution(NamedTuple):
    """The weights, the labelling of the training bags, and how they were found."""

    weights: Floats  # (n_scorers + n_kinds + 1,)
    labels: Integers  # (n_bags,)
    objectives: Floats  # (n_iterations,)
    stop_reason: str


def features_of(states: States, labels: Integers) -> Floats:
    """Return the features of a labelling, (n_scorers + n_kinds + 1,)."""
    chosen = labels[labels != states.none]
    pairs = [kind[np.ix_(chosen, chosen)].sum() / 2 for kind in states.pairs]
    return np.array([*-states.scores[:, chosen].sum(axis=1), *pairs, len(chosen)])


def graph_of(states: States, weights: Floats) -> Graph:
    """Return the graph in which the energy of a labelling is the weighted sum of its features."""
    n_scorers = len(states.scores)
    unary = np.where(states.is_instance, weights[-1] - weights[:n_scorers] @ states.scores, 0)
    return Graph(unary, states.pairs, weights[n_scorers:-1], states.offsets)


def clamped(graph: Graph, positive: Booleans) -> Graph:
    """Forbid all that contradicts the labels: "none" to positive bags, and every instance to negative ones."""
    is_none = np.zeros(len(graph.unary), dtype=bool)
    is_none[graph.offsets[:-1]] = True
    allowed = is_none != np.repeat(positive, np.diff(graph.offsets))
    return graph._replace(unary=np.where(allowed, graph.unary, np.inf))


def with_losses(graph: Graph, positive: Booleans) -> Graph:
    """Make every state one cheaper that contradicts the label of its bag."""
    is_none = np.zeros(len(graph.unary), dtype=bool)
    is_none[graph.offsets[:-1]] = True
    wrong = is_none == np.repeat(positive, np.diff(graph.offsets))
    return graph._replace(unary=graph.unary - wrong)


def train_crf(
    states: States, positive: Booleans, C: float, max_iter: int, n_restarts: int, generator: np.random.Generator
) -> Solution:
    """Learn weights and witnesses in turns, from several first witnesses, and return what has the least objective.

    Witnesses that are not alike teach that pairs do not matter, and then stay. So training begins with the best scores,
    and with witnesses that are chosen jointly as if pairs mattered, a little and much.

    Parameters
    ----------
    states : States
    positive : (n_bags,)
    C : float
        Half of it is what the squared mean slack of a bag costs, next to half the squared norm of the weights.
    max_iter : int
        How often weights are learned at most, from each of the first witnesses.
    n_restarts : int
        Random labellings from which inference starts too.
    generator : Generator
    """
    cuts = Cuts(states, positive, n_restarts, generator)
    solutions = [alternate(cuts, labels, C, max_iter) for labels in _first_witnesses(cuts)]
    return min(solutions, key=lambda solution: float(solution.objectives[-1]))


def _first_witnesses(cuts: Cuts) -> list[Integers]:
    best = np.where(cuts.positive, best_rows(cuts.states), cuts.states.none)
    found = [best]
    for strength in _FIRST_STRENGTHS if len(cuts.states.pairs) else ():
        n_scorers, n_kinds = len(cuts.states.scores), len(cuts.states.pairs)
        weights = np.concatenate([np.full(n_scorers, 1 / n_scorers), np.full(n_kinds, strength), [0.0]])
        labels = cuts.impute(weights, best)
        if not any(np.array_equal(labels, other) for other in found):
            found.append(labels)
    return found


def alternate(cuts: Cuts, labels: Integers, C: float, max_iter: int) -> Solution:
    """Learn weights and witnesses in turns until witnesses stay, from given ones."""
    met, objectives, reason = Assignments(labels), [], "iterations"
    for _ in range(max_iter):
        weights, objective = cuts.learn(labels, C)
        objectives.append(objective)
        labels = cuts.impute(weights, labels)
        stop = met.stop_reason(labels)
        if stop is not None:
            reason = stop
            break
    return Solution(weights, labels, np.array(objectives), reason)


def best_rows(states: States) -> Integers:
    """Return the instance with the largest score of every bag, all scorers added up; the first of equals."""
    scores = states.scores.sum(axis=0)
    bounds = zip(states.offsets[:-1] + 1, states.offsets[1:], strict=True)
    return np.array([start + scores[start:stop].argmax() for start, stop in bounds])


class Cuts:
    """Labellings that contradict the labels; those met in one round still bind in the next."""

    def __init__(self, states: States, positive: Booleans, n_restarts: int, generator: np.random.Generator) -> None:
        self.states, self.positive = states, positive
        self.n_restarts, self.generator = n_restarts, generator
        self.last = states.none
        self.features: list[Floats] = []
        self.losses: list[float] = []

    def learn(self, truth: Integers, C: float) -> tuple[Floats, float]:
        """Return the weights that tell a labelling from all others with the largest margin, and their objective."""
        wanted = features_of(self.states, truth)
        weights, slack = self._solve(wanted, C)
        for _ in range(_MOST_CUTS):
            graph = with_losses(graph_of(self.states, weights), self.positive)
            self.last = minimise(graph, [truth, self.last, *self._random_labels()])
            features, loss = features_of(self.states, self.last), self._loss(self.last)
            if (loss - weights @ (features - wanted)) / len(truth) <= slack + _TOLERANCE:
                break
            self.features.append(features)
            self.losses.append(loss)
            weights, slack = self._solve(wanted, C)
        return weights, crf_objective(weights, slack, C)

    def impute(self, weights: Floats, labels: Integers) -> Integers:
        """Return the best labelling without contradictions that is found from one without and from random ones."""
        graph = clamped(graph_of(self.states, weights), self.positive)
        rows = self._random_labels()
        random = np.where(self.positive, np.maximum(rows, self.states.none + 1), self.states.none)
        return minimise(graph, [labels, *random])

    def _random_labels(self) -> Integers:
        """Draw states for every bag, (n_restarts, n_bags)."""
        size = (self.n_restarts, len(self.positive))
        return self.states.none + self.generator.integers(np.diff(self.states.offsets), size=size)

    def _loss(self, labels: Integers) -> float:
        return float(((labels != self.states.none) != self.positive).sum())

    def _solve(self, wanted: Floats, C: float) -> tuple[Floats, float]:
        n_bags = len(self.positive)
        rows = (np.array(self.features).reshape(-1, len(wanted)) - wanted) / n_bags
        return solve_margin(rows, np.array(self.losses) / n_bags, C)


def crf_objective(weights: Floats, slack: float, C: float) -> float:
    """Return half the squared norm of the weights, all but the threshold, plus C / 2 times the squared slack."""
    return float(weights[:-1] @ weights[:-1] / 2 + C * slack**2 / 2)


def solve_margin(rows: Floats, losses: Floats, C: float) -> tuple[Floats, float]:
    """Minimise ``|w|^2 / 2 + C s^2 / 2`` where ``rows @ w + s >= losses`` and no weight but the last is negative.

    In scaled variables this asks for the point of a polyhedron that is nearest to the origin, which non-negative least
    squares finds exactly (Lawson and Hanson, chapter 23). Columns have unit norm, as their order of magnitude differs
    and SciPy's tolerance is absolute.

    Parameters
    ----------
    rows : (n_cuts, n_weights)
    losses : (n_cuts,)
    C : float

    Returns
    -------
    weights : (n_weights,)
    slack : float
    """
    n_weights = rows.shape[1]
    scales = np.concatenate([np.ones(n_weights - 1), [1 / np.sqrt(_BIAS_RIDGE), 1 / np.sqrt(C)]])
    signs = np.eye(n_weights - 1, n_weights + 1)
    constraints = np.concatenate([np.column_stack([rows, np.ones(len(rows))]), signs]) * scales
    bounds = np.concatenate([losses, np.zeros(n_weights - 1)])
    system = np.column_stack([constraints, bounds]).T  # (n_weights + 2, n_constraints)
    target = np.eye(n_weights + 2)[-1]
    system /= np.linalg.norm(system, axis=0)  # no norm is 0: the slack is part of each cut
    multipliers, _ = nnls(system, target)
    residual = system @ multipliers - target
    found = -residual[:-1] / residual[-1] * scales
    found[: n_weights - 1] = np.maximum(found[: n_weights - 1], 0)
    return found[:-1], float(max(found[-1], (losses - rows @ found[:-1]).max(initial=0)))
