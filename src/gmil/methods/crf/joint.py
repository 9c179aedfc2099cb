"""Joint prediction: new bags choose together, and each is decided with the others as they chose."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gmil.methods.crf.graph import minimise
from gmil.methods.crf.states import make_states, pairwise_distances
from gmil.methods.crf.training import best_rows, graph_of

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.crf.states import Candidates, Dissimilarity


def joint_gains(
    gains: Floats,
    instances: Instances,
    offsets: Integers,
    candidates: Candidates,
    dissimilarity: Dissimilarity,
    weights: Floats,
    backend: Backend,
) -> Floats:
    """Return how much choosing each instance lowers the energy where the other bags chose jointly, (n_instances,).

    Parameters
    ----------
    gains : (n_instances,)
        The same for a bag alone, with the training bags but without the other new bags.
    instances : (n_instances, n_features)
    offsets : (n_bags + 1,)
    candidates : Candidates
    dissimilarity : Dissimilarity
    weights : (n_kinds,)
        What a unit of each kind of dissimilarity costs a pair of new bags.
    backend : Backend
    """
    chosen = joint_choice(gains, instances, candidates, dissimilarity, weights, backend)
    pull = dissimilarity.total(instances, instances[chosen[chosen >= 0]], weights, backend)
    for choice, (start, stop) in zip(chosen, pairwise(offsets), strict=True):
        if choice >= 0:  # a bag is no other bag to itself
            own = dissimilarity.total(instances[start:stop], instances[choice : choice + 1], weights, backend)
            pull[start:stop] -= own
    return gains - pull


def joint_choice(
    gains: Floats,
    instances: Instances,
    candidates: Candidates,
    dissimilarity: Dissimilarity,
    weights: Floats,
    backend: Backend,
) -> Integers:
    """Return the instance that every bag chooses, -1 for none, (n_bags,); parameters as in `joint_gains`."""
    apart = pairwise_distances(instances[candidates.rows], backend)
    states = make_states(gains[None, candidates.rows], apart, candidates.offsets, dissimilarity, per_pair=1.0)
    graph = graph_of(states, np.concatenate([[1.0], weights, [0.0]]))
    everyone = best_rows(states)
    alone = np.where(states.scores[0, everyone] > 0, everyone, states.none)
    return candidates.chosen(minimise(graph, [alone, everyone, states.none]))
