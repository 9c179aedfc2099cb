"""How long passes over a Parquet file take on one, two and three local workers of Dask, beside threads of one process.

``python benchmarks/dask_workers.py [--bags 400] [--instances 400000] [--features 200] [--workers 1,2,3]``

A worker is a process with one thread. More workers than cores cannot be faster. Decisions must be the same bit for
bit, however many workers there are; the script ends with an error where they are not.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import gmil

METHODS = {"GMIL, 10-fold": (gmil.GMIL(50, 3, 3), 10), "WeightedGMIL, 3-fold": (gmil.WeightedGMIL(), 3)}


def make_file(path: Path, n_bags: int, n_instances: int, n_features: int) -> None:
    size = n_instances // n_bags
    made = gmil.make_bags(n_bags, n_features=n_features, bag_size=size, random_state=0)
    bags = made.bags.with_instances(made.bags.instances.astype(np.float32))
    gmil.write(path, bags, made.y)


def seconds_of(bags: gmil.LazyBags, y: np.ndarray) -> tuple[list[float], list[np.ndarray]]:
    seconds, decisions = [], []
    for model, folds in METHODS.values():
        start = time.perf_counter()
        decisions.append(gmil.cross_validate(model, bags, y, cv=folds).decisions)
        seconds.append(time.perf_counter() - start)
    return seconds, decisions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=400)
    parser.add_argument("--instances", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 3])
    asked = parser.parse_args()
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bags.parquet"
        make_file(path, asked.bags, asked.instances, asked.features)
        bags, y = gmil.scan(path)
        print(f"| | {' | '.join(METHODS)} |\n|---|{'---|' * len(METHODS)}")
        seconds, expected = seconds_of(bags, y)
        print(f"| threads of one process | {' | '.join(f'{s:.1f} s' for s in seconds)} |", flush=True)
        for n_workers in asked.workers:
            with (
                LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                bags.on(client).reduce(_size, (np.add,))  # workers import what they need
                seconds, found = seconds_of(bags.on(client), y)
            if not all(map(np.array_equal, expected, found)):
                msg = f"{n_workers} workers give other decisions."
                raise SystemExit(msg)
            print(f"| {n_workers} workers | {' | '.join(f'{s:.1f} s' for s in seconds)} |", flush=True)


def _size(bags: gmil.Bags) -> tuple[np.ndarray]:
    return (bags.sizes,)


if __name__ == "__main__":
    main()
