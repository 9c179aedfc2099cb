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
    """The energy of a labelling: the sum of its unary energies, and of the pairs that it makes, each pair once."""

    unary: Floats  # (n_states,); infinity forbids a state
    pairs: Floats  # (n_states, n_states), symmetric, zero between states of one bag
    offsets: Integers  # (n_bags + 1,)


def energy(graph: Graph, labels: Integers) -> float:
    """Return the energy of a labelling."""
    return float(graph.unary[labels].sum() + graph.pairs[np.ix_(labels, labels)].sum() / 2)


def conditional_energies(graph: Graph, labels: Integers) -> Floats:
    """Return what every state would cost its bag while all other bags stay as they are, (n_states,)."""
    return graph.unary + graph.pairs[labels].sum(axis=0)


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
    while True:
        gains = costs[labels][bag_of] - costs
        best = int(gains.argmax())
        if gains[best] <= least_gain:
            return labels
        bag = bag_of[best]
        costs += graph.pairs[best] - graph.pairs[labels[bag]]
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
