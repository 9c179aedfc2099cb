"""Inference on a dense graph of bags: the joint choice of one state for every bag that has little energy.

The states of a bag are its instances and "none"; all are rows of one list, cut into bags by offsets. A labelling is
one row for every bag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gmil.engine.arrays import Floats, Integers

_ROUNDING = 1e-10
"""A move must gain more than this share of the energies at hand, or rounding could move in circles."""


class Graph(NamedTuple):
    """The energy of a labelling: the sum of its unary energies, and of the pairs that it makes, each pair once.

    The energy of a pair is a weighted sum over kinds. It is added up where it is asked for: of all pairs of states only
    those with a chosen one ever are.
    """

    unary: Floats  # (n_states,); infinity forbids a state
    pairs: Floats  # (n_kinds, n_states, n_states), each symmetric, zero with "none" and between states of one bag
    strengths: Floats  # (n_kinds,)
    offsets: Integers  # (n_bags + 1,)

    def instances(self, labels: Integers) -> Integers:
        """Return the states of a labelling that are instances: "none", the first state of a bag, has no pairs."""
        return labels[labels != self.offsets[:-1]]

    def with_state(self, state: int) -> Floats:
        """Return the energies of the pairs of all states with one, (n_states,)."""
        return self.strengths @ self.pairs[:, state]


def energy(graph: Graph, labels: Integers) -> float:
    """Return the energy of a labelling."""
    chosen = graph.instances(labels)
    sums = np.array([kind[np.ix_(chosen, chosen)].sum() for kind in graph.pairs])
    return float(graph.unary[labels].sum() + graph.strengths @ sums / 2)


def conditional_energies(graph: Graph, labels: Integers) -> Floats:
    """Return what every state would cost its bag while all other bags stay as they are, (n_states,)."""
    chosen = graph.instances(labels)
    return graph.unary + graph.strengths @ np.array([kind[chosen].sum(axis=0) for kind in graph.pairs])


def descend(graph: Graph, labels: Integers) -> Integers:
    """Give one bag after the other a better state, the largest gain first, until no single change gains.

    Parameters
    ----------
    graph : Graph
    labels : (n_bags,)
        Where to begin; it must not hold a forbidden state.
    """
    labels = labels.copy()
    bag_of = np.repeat(np.arange(len(labels)), np.diff(graph.offsets))
    costs = conditional_energies(graph, labels)
    least_gain = _ROUNDING * (1 + np.abs(costs[labels]).max(initial=0))
    gains = np.empty_like(costs)
    while True:
        np.take(costs[labels], bag_of, out=gains, mode="clip")  # the other modes copy what they write to
        gains -= costs
        best = int(gains.argmax())
        if gains[best] <= least_gain:
            return labels
        bag = bag_of[best]
        none, before = graph.offsets[bag], labels[bag]
        if before == none:  # which has no pairs
            costs += graph.with_state(best)
        else:
            costs += (graph.with_state(best) if best != none else 0) - graph.with_state(before)
        labels[bag] = best


def minimise(graph: Graph, starts: Iterable[Integers]) -> Integers:
    """Return the labelling with the least energy of those that `descend` finds from several starts.

    Parameters
    ----------
    graph : Graph
    starts : iterable of (n_bags,)
        None may hold a forbidden state. Of equals the first wins.
    """
    found = [descend(graph, start) for start in starts]
    return min(found, key=lambda labels: energy(graph, labels))
