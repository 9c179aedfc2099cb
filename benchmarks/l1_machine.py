"""How much faster than liblinear are the weights of MILES found, and how far from the optimum does each stop?

``python benchmarks/l1_machine.py [--sets elephant corel2000_10_dogs] [--prices 0.1 1 10] [--rounds 3]``

Both get the similarities of all bags of a set to its training instances, as `MILES` makes them, on one thread, in
turns. liblinear has its default tolerance, and the 100 000 iterations that `MILES` allowed it. The objective is
|w|_1 + C times the sum of squared errors; beside it, how many columns have a weight.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import gmil
from gmil.methods.embeddings.l1_machine import L1Machine
from side_by_side import Way, compare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["elephant", "corel2000_10_dogs"])
    parser.add_argument("--prices", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.sets:
        data = gmil.datasets.load(name)
        rows = gmil.InstanceSimilarities(random_state=0).fit_transform(data.bags)
        for price in options.prices:
            measure(f"{name} {rows.shape}, C={price:g}", rows, np.asarray(data.y), price, options.rounds)


def measure(title: str, rows: np.ndarray, y: np.ndarray, price: float, rounds: int) -> None:
    """Print the ratio of times, and what the objectives are."""
    ours = L1Machine(price)
    peer = LinearSVC(penalty="l1", dual=False, C=price, max_iter=100_000, random_state=0)

    def run_peer() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            peer.fit(rows, y)

    ways = Way("L1Machine", lambda: ours.fit(rows, y), 1), Way("liblinear", run_peer, 1)
    compare(title, ways[0], ways[1:], rounds=rounds)
    print(f"  objectives: {objective(ours, rows, y, price)}; liblinear {objective(peer, rows, y, price)}", flush=True)


def objective(model: L1Machine | LinearSVC, rows: np.ndarray, y: np.ndarray, price: float) -> str:
    """Return the objective, and the number of weights."""
    errors = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(rows))
    weights = np.append(model.coef_.ravel(), model.intercept_)
    return f"{np.abs(weights).sum() + price * (errors**2).sum():.4f} with {np.count_nonzero(weights)} weights"


if __name__ == "__main__":
    main()
