"""The whole 10-fold of Citation kNN against the distance matrices that it needs, and nothing else.

``python benchmarks/citation.py [musk2 ...] [--rounds 3] [--out results/citation]``

A scaling that does not depend on the training bags needs one matrix of distances between bags, any other needs one for
every fold. The peer computes just these, as a careful user would: `euclidean_distances` of scikit-learn between all
instances, then the least of every pair of bags by ``reduceat``. Ratios are the time of the matrices over that of our
whole 10-fold, so 0.5 says that we take twice as long as they do. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics import euclidean_distances
from sklearn.preprocessing import MinMaxScaler

import gmil
from gmil.engine import describe_native, resolve
from gmil.methods.neighbours.distances import distances_within, grouped
from gmil.model_selection.crossval import fold_numbers
from side_by_side import Comparison, Way, compare, write

TARGET, AIM = 0.5, 1.0


def plain_matrix(X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    squares = euclidean_distances(X, squared=True)
    return np.minimum.reduceat(np.minimum.reduceat(squares, offsets[:-1]), offsets[:-1], axis=1)


def our_matrix(X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return distances_within(grouped(X, offsets), "min", 1, resolve("auto", 1))


def matrices(matrix, bags: gmil.Bags, folds: np.ndarray, scale: str | None) -> None:
    """Compute the distances that a 10-fold needs, one fold after the other."""
    if scale is None:
        matrix(bags.instances, bags.offsets)
        return
    for fold in range(folds.max() + 1):
        scaler = MinMaxScaler().fit(bags[folds != fold].instances)
        matrix(scaler.transform(bags.instances), bags.offsets)


def whole(name: str, scale: str | None, rounds: int) -> Comparison:
    data = gmil.datasets.load(name)
    bags, y = data.bags, data.y
    folds, model = fold_numbers(10, y, None, 0), gmil.CitationKNN(scale=scale)
    return compare(
        f"{name}, scale {scale}: whole 10-fold",
        Way("gmil", lambda: gmil.cross_validate(model, bags, y, n_jobs=1), 1),
        [Way("matrices by scikit-learn", lambda: matrices(plain_matrix, bags, folds, scale), 1)],
        also=[Way("matrices by gmil", lambda: matrices(our_matrix, bags, folds, scale), 1)],
        rounds=rounds,
        target=TARGET,
        aim=AIM,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["musk2"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None, help="write OUT.json and OUT.md")
    options = parser.parse_args()
    found = [whole(name, scale, options.rounds) for name in options.datasets for scale in (None, "minmax")]
    if options.out is not None:
        write(found, options.out, {"native": describe_native(), "threads": 1, "rounds": options.rounds})


if __name__ == "__main__":
    main()
