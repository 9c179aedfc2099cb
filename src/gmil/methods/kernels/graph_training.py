"""Kernels between bags that are read as graphs: who is near whom within a bag; plain arrays in, plain arrays out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from gmil.engine.distances import distances
from gmil.engine.rbf import Points

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_CLEARLY_LESS = 1 - 1e-9
"""Equal distances must not fall on both sides of their mean by rounding."""

_SHORTEST = 1e-3
"""The weight of an edge is one over its length, which counts as this much of the mean distance at least."""


def within_bags(X: Instances, offsets: Integers, backend: Backend) -> Iterator[Floats]:
    """Yield the distances between the instances of every bag, (size, size) each."""
    for start, stop in itertools.pairwise(offsets):
        bag = X[start:stop]
        yield distances(bag, bag, backend)


def neighbours(apart: Floats) -> Booleans:
    """Return which instances of a bag are nearer to each other than the mean of all pairs; none to itself."""
    return _nearer(apart, _pair_mean(apart))


def _pair_mean(apart: Floats) -> float:
    """Return the mean distance of the pairs of a bag, zero where it has none."""
    return float(apart[~np.tri(len(apart), dtype=bool)].mean()) if len(apart) > 1 else 0.0


def _nearer(apart: Floats, mean: float) -> Booleans:
    near: Booleans = apart < mean * _CLEARLY_LESS
    near = near & near.T
    np.fill_diagonal(near, val=False)
    return near


def clique_nodes(X: Instances, offsets: Integers, backend: Backend) -> Points:
    """Return the instances, each with the weight one over the number of its neighbours, itself included.

    Instances that lie together so share the weight of one.
    """
    weights = [1 / (1 + neighbours(apart).sum(axis=1)) for apart in within_bags(X, offsets, backend)]
    return Points(X, np.concatenate(weights), offsets)


def clique_weights_without(apart: Floats) -> Floats:
    """Return the weights of `clique_nodes` for one bag without each of its instances, (n, n); row i is without i.

    The distances between its instances are given; the weight of what is left out is zero.
    """
    size, pairs = len(apart), np.triu(apart, k=1)
    n_left = max(1, (size - 1) * (size - 2) // 2)  # pairs without an instance
    reach = (pairs.sum() - pairs.sum(axis=0) - pairs.sum(axis=1)) / n_left * _CLEARLY_LESS
    farther = np.maximum(apart, apart.T)
    np.fill_diagonal(farther, np.inf)
    counts = np.stack([np.searchsorted(np.sort(row), reach) for row in farther], axis=1)
    weights = 1 / (1 + counts - (farther < reach[:, None]))
    np.fill_diagonal(weights, 0)
    return np.asarray(weights)


def all_nodes(X: Instances, offsets: Integers) -> Points:
    """Return the instances with the weight 1 each."""
    return Points(X, np.ones(X.shape[0]), offsets)


# -------------------------------------------------------------------------------- edges


def graph_edges(bags: Iterable[Floats], max_edges: int | None) -> tuple[Points, int]:
    """Return the edges of the graphs of all bags and the number of bags whose edges had to be thinned.

    A bag is given by the distances between its instances, as `within_bags` yields them.
    Of more than ``max_edges`` edges, so many are taken evenly along the edges in order of length, each with the weight
    that makes up for those left out. No chance is involved, so a bag always has the same edges.
    """
    found, weights, n_thinned = [], [], 0
    for apart in bags:
        features, lengths = edge_features(apart)
        n_edges = len(features)
        if max_edges is not None and n_edges > max_edges:
            by_length = np.lexsort((*features.T, lengths))
            features = features[by_length[np.linspace(0, n_edges - 1, max_edges).round().astype(np.int64)]]
            n_thinned += 1
        found.append(features)
        weights.append(np.full(len(features), n_edges / max(1, len(features))))
    cuts = np.concatenate([[0], np.cumsum([len(features) for features in found])]).astype(np.int64)
    return Points(np.concatenate(found), np.concatenate(weights), cuts), n_thinned


def edge_features(apart: Floats) -> tuple[Floats, Floats]:
    """Return the features of the edges of one graph, (n_edges, 4), and their lengths.

    Neighbours are joined by an edge of weight one over its length. Each of its two ends gives its degree over the
    number of edges, and the share of this edge in the weight of all its edges. The smaller end comes first, as an edge
    has no direction.
    """
    mean = _pair_mean(apart)
    near = _nearer(apart, mean)
    first, second = np.nonzero(np.triu(near))
    lengths = apart[first, second]
    if len(first) == 0:
        return np.empty((0, 4)), lengths
    weights = near / np.maximum(apart, _SHORTEST * mean)
    degrees, totals = near.sum(axis=1) / len(first), weights.sum(axis=1)
    ends = [np.column_stack([degrees[end], weights[first, second] / totals[end]]) for end in (first, second)]
    turned = (ends[0][:, 0] > ends[1][:, 0]) | ((ends[0][:, 0] == ends[1][:, 0]) & (ends[0][:, 1] > ends[1][:, 1]))
    swapped = np.where(turned[:, None], ends[1], ends[0]), np.where(turned[:, None], ends[0], ends[1])
    return np.hstack(swapped), lengths


def edges_without(apart: Floats, max_edges: int | None) -> Points:
    """Return the edges of one bag without each of its instances, given the distances between them."""
    kept = (np.flatnonzero(np.arange(len(apart)) != i) for i in range(len(apart)))
    return graph_edges((apart[np.ix_(rows, rows)] for rows in kept), max_edges)[0]


def no_edges(n_bags: int) -> Points:
    """Return the edges of bags that have none."""
    return Points(np.empty((0, 4)), np.empty(0), np.zeros(n_bags + 1, dtype=np.int64))


# -------------------------------------------------------------------------------- kernels


def lengths(own_nodes: Floats, own_edges: Floats, normalize: str) -> tuple[Floats, Floats]:
    """Return what the sums over the nodes, and those over the edges, of every bag are divided by, (n_bags,) each.

    Parameters
    ----------
    own_nodes, own_edges : (n_bags,)
        The sums of every bag with itself; zero for the edges of a bag without any.
    normalize : {"each", "sum"}
    """
    if normalize == "sum":
        both = np.sqrt(own_nodes + own_edges)
        return both, both
    return np.sqrt(own_nodes), np.sqrt(np.where(own_edges > 0, own_edges, 1))


def graph_kernel(node_sums: Floats, edge_sums: Floats, normalize: str) -> Floats:
    """Return the kernel between graphs of the sums over pairs of nodes and of edges, (n_bags, n_bags) each."""
    by_nodes, by_edges = lengths(np.diag(node_sums), np.diag(edge_sums), normalize)
    return node_sums / by_nodes[:, None] / by_nodes + edge_sums / by_edges[:, None] / by_edges
