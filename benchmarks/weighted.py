"""What WeightedGMIL and the sweep of GMILCV cost, side by side with plain scikit-learn and NumPy; and how they grow.

``python benchmarks/weighted.py [--only fit,folds,sweep,instances,bags] [--rounds 5] [--out results/weighted]``
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import gmil
from gmil.errors import DatasetError
from plain_weighted import cross_validated_accuracy
from side_by_side import Comparison, Way, compare, peers, write


def fit(rounds: int) -> list[Comparison]:
    bags, y = gmil.load_musk2(return_X_y=True)
    ours = Way("WeightedGMIL().fit", lambda: gmil.WeightedGMIL(random_state=0).fit(bags, y))
    others = peers("KMeans(300, n_init=1).fit", lambda: KMeans(300, n_init=1, random_state=0).fit(bags.instances))
    notes = {"at most": "3 times the time of the clustering, so a ratio of 0.33"}
    return [compare("fit on Musk2 with every choice", ours, others, rounds=rounds, target=0.33, notes=notes)]


def folds(rounds: int) -> list[Comparison]:
    found = []
    for name, load in (("Musk2", gmil.load_musk2), ("Elephant", gmil.fetch_elephant)):
        try:
            bags, y = load(return_X_y=True)
        except DatasetError:
            print(f"{name} is not here and is left out.")
            continue
        accuracy = gmil.cross_validate(gmil.WeightedGMIL(), bags, y).accuracy()
        notes = {"accuracy": round(accuracy, 3), "peer's": round(cross_validated_accuracy(bags, y), 3)}
        ours = Way("gmil.cross_validate", lambda b=bags, t=y: gmil.cross_validate(gmil.WeightedGMIL(), b, t))
        others = peers("NumPy and SciPy", lambda b=bags, t=y: cross_validated_accuracy(b, t))
        title = f"whole 10-fold on {name}"
        found.append(compare(title, ours, others, rounds=rounds, target=5, notes=notes))
    return found


def sweep(rounds: int) -> list[Comparison]:
    """75 settings of p, q and epsilon against one setting, the same clusters."""
    bags, y = gmil.load_musk1(return_X_y=True)
    one = {"n_clusters": [20], "n_positive": [2], "n_negative": [2], "epsilon": [0.05]}
    many = {**one, "n_positive": [1, 2, 4, 6, 8], "n_negative": [1, 2, 4, 6, 8], "epsilon": [0.01, 0.05, 0.1]}
    found = []
    for scale in (None, "standard"):
        grids = [{**grid, "scale": [scale]} for grid in (one, many)]
        ways = [
            Way(name, lambda g=grid: gmil.GMILCV(g, cv=10, random_state=0).fit(bags, y))
            for name, grid in zip(("1 setting", "75 settings"), grids, strict=True)
        ]
        title = f"GMILCV, 75 settings of p, q and epsilon against one, Musk1, scale {scale}"
        notes = {"at most": "1.3 times the time, so a ratio of 0.77"}
        found.append(compare(title, ways[1], ways[:1], rounds=rounds, target=0.77, notes=notes))
    return found


def _growth(title: str, sizes: list[tuple[int, int]], n_features: int) -> None:
    print(title)
    for n_bags, size in sizes:
        rng = np.random.default_rng(0)
        instances = rng.normal(size=(n_bags * size, n_features)).astype(np.float32)
        y = np.arange(n_bags) % 2
        instances[:: 2 * size] += 2  # a witness in every other bag
        bags = gmil.Bags(instances, np.arange(n_bags + 1) * size)
        start = time.perf_counter()
        gmil.WeightedGMIL(random_state=0).fit(bags, y)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"  {n_bags:>7} bags, {n_bags * size:>8} instances: {seconds:7.2f} s, "
            f"{1e6 * seconds / (n_bags * size):6.1f} us an instance, peak {peak:.2f} GB",
            flush=True,
        )


def instances(rounds: int) -> list[Comparison]:  # noqa: ARG001
    _growth("1000 bags of 50 features, more and more instances", [(1000, n) for n in (10, 100, 1000)], 50)
    return []


def bags(rounds: int) -> list[Comparison]:  # noqa: ARG001
    _growth("bags of 10 instances of 20 features, more and more bags", [(n, 10) for n in (2000, 10_000, 100_000)], 20)
    return []


CASES = {"fit": fit, "folds": folds, "sweep": sweep, "instances": instances, "bags": bags}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="which cases, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="write OUT.json and OUT.md")
    options = parser.parse_args()
    found: list[Comparison] = []
    for name in options.only.split(","):
        found += CASES[name](options.rounds)
    if options.out is not None:
        write(found, options.out, {"rounds": options.rounds})


if __name__ == "__main__":
    main()
