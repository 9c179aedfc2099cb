"""The paper's large experiment at its size: whole 10-fold, five events against all others, from Parquet on disk.

``python benchmarks/med11.py --data /somewhere/med11 [--method gmil|weighted-gmil] [--out results/med11]``

The data (813 bags, 2.6 million instances, 1000 features; 10 GB as float32) are made where they are not there. Seconds
are those of the clock, scanning included; memory is the largest resident size of the process. How much accuracies
differ from one set of videos to the next shows at a small size, with other seeds of the data:
``--made 200 80000 SEED --sample-size 8000 --folds 3``.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import gmil
from gmil.cli.console import StreamProgress
from gmil.datasets import make_med11
from gmil.engine.threads import n_threads

METHODS = {
    "gmil": lambda: gmil.GMIL.from_paper("med11"),
    "weighted-gmil": gmil.WeightedGMIL,
    "views-alone": lambda: gmil.WeightedGMIL(witness_model=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--method", choices=METHODS, default="gmil")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bags", type=int, help="only the first so many bags")
    parser.add_argument("--made", type=int, nargs=3, metavar=("BAGS", "INSTANCES", "SEED"), help="other data to make")
    parser.add_argument("--sample-size", type=int, help="of WeightedGMIL")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if not asked.data.exists():
        sizes = dict(zip(("n_bags", "n_instances", "random_state"), asked.made or (), strict=False))
        make_med11(asked.data, **sizes)
    start, before = time.perf_counter(), time.process_time()
    bags, y = gmil.scan(asked.data)
    bags, y = bags[: asked.bags], y[: asked.bags]
    with StreamProgress(asked.method, bags) as progress:
        estimator = METHODS[asked.method]()
        if asked.sample_size is not None:
            estimator.set_params(sample_size=asked.sample_size)
        result = gmil.cross_validate(estimator, bags.watched(progress), y, cv=asked.folds, random_state=asked.seed)
    found = {
        "method": asked.method,
        "bags": len(bags),
        "instances": bags.n_instances,
        "features": bags.n_features,
        "folds": asked.folds,
        "threads": n_threads(),
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - before,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "mean_auc": result.auc(),
        "accuracy": result.accuracy(),
        "auc": {str(event): result.one_vs_rest(event).auc() for event in np.unique(y)},
    }
    print(json.dumps(found, indent=2))
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.with_suffix(".json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
