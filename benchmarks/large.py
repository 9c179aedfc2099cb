"""WeightedGMIL on much data in memory: processor seconds, peak memory and what was learned, each case in a new process.

``python benchmarks/large.py [--only instances,bags,...] [--rounds 1] [--than /checkout/of/an/older/gmil/src]``

``--than`` measures the same cases with another version, in turn with this one, where it ends within ``--most`` seconds.
The AUC is of fresh bags. Memory is the largest resident size of the process; the input is in it once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

import gmil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def make(
    sizes: np.ndarray, n_features: int, *, seed: int, dtype: Any = np.float32, classes: int = 2
) -> tuple[Any, Any]:
    """Return normal bags; about every twentieth instance, at least one, of a bag of class k is shifted in feature k."""
    generator = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    y = np.arange(len(sizes)) % classes
    instances = np.empty((offsets[-1], n_features), dtype)
    for begin in range(0, len(instances), 50_000):  # in pieces, for the sake of the peak
        piece = instances[begin : begin + 50_000]
        piece[:] = generator.standard_normal(piece.shape, dtype=np.float32)
    label = np.repeat(y, sizes)
    witness = generator.random(len(instances)) < 0.05
    witness[offsets[:-1]] = True
    for k in range(1, classes):
        instances[witness & (label == k), k] += 3
    return gmil.Bags(instances, offsets), y


def _sizes(n_bags: int, n_instances: int, seed: int) -> np.ndarray:
    """Return sizes between 1/10 and 19/10 of the mean that add up to ``n_instances``."""
    share = np.random.default_rng(seed).uniform(0.1, 1.9, n_bags)
    sizes = np.maximum(1, (share / share.sum() * n_instances).astype(int))
    sizes[-1] += n_instances - sizes.sum()
    return sizes


def _fit(bags: Any, y: Any) -> tuple[Any, dict[str, float]]:
    start, before = time.perf_counter(), time.process_time()
    model = gmil.WeightedGMIL(random_state=0).fit(bags, y)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - before
    # The peak is taken before the fresh bags are made.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {"seconds": seconds, "cpu_seconds": cpu_seconds, "input_gb": bags.instances.nbytes / 1e9}
    return model, {**found, "peak_gb": peak / 1e9, "beyond_input_gb": (peak - bags.instances.nbytes) / 1e9}


def _auc(model: Any, bags: Any, y: Any) -> float:
    return float(roc_auc_score(y, model.decision_function(bags)))


def instances(dtype: Any = np.float32) -> dict[str, float]:
    """1000 bags, 723 000 x 384."""
    model, found = _fit(*make(_sizes(1000, 723_000, 0), 384, seed=0, dtype=dtype))
    return {**found, "auc": _auc(model, *make(_sizes(300, 216_900, 1), 384, seed=1, dtype=dtype))}


def instances_float16() -> dict[str, float]:
    """The same in half precision."""
    return instances(np.float16)


def bags(n_bags: int = 1_000_000) -> dict[str, float]:
    """10^6 bags of 3 x 10."""
    model, found = _fit(*make(np.full(n_bags, 3), 10, seed=0))
    return {**found, "auc": _auc(model, *make(np.full(20_000, 3), 10, seed=1))}


def fewer_bags() -> dict[str, float]:
    """10^5 bags of 3 x 10."""
    return bags(100_000)


def one_bag() -> dict[str, float]:
    """100 bags, one with 10^6 instances, 50 features."""
    sizes = np.full(100, 50)
    sizes[1] = 1_000_000
    model, found = _fit(*make(sizes, 50, seed=0))
    return {**found, "auc": _auc(model, *make(np.full(400, 50), 50, seed=1))}


def million() -> dict[str, float]:
    """1000 bags, 10^6 x 384: fit, and then scores of all instances."""
    data, y = make(_sizes(1000, 1_000_000, 0), 384, seed=0)
    model, found = _fit(data, y)
    before = time.process_time()
    model.score_instances(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found |= {"peak_gb": peak / 1e9, "beyond_input_gb": (peak - data.instances.nbytes) / 1e9}
    return {**found, "scores_cpu_seconds": time.process_time() - before}


def scores() -> dict[str, float]:
    """Scores of 60 bags, 38 000 x 384, three classes, against the fit on 140 such bags."""
    model, found = _fit(*make(_sizes(140, 88_667, 0), 384, seed=0, classes=3))
    fresh, _ = make(_sizes(60, 38_000, 1), 384, seed=1, classes=3)
    for kind in ("default", "effect"):
        before = time.process_time()
        model.score_instances(fresh) if kind == "default" else model.score_instances(fresh, kind="effect")
        found[f"{kind}_against_fit"] = (time.process_time() - before) / found["cpu_seconds"]
    return found


CASES: dict[str, Callable[[], dict[str, float]]] = {
    case.__name__: case for case in (instances, instances_float16, bags, fewer_bags, one_bag, million, scores)
}


def measured(name: str, source: Path | None, most: float) -> dict[str, float] | None:
    """Return what a case finds in a process of its own, None where it does not end in time."""
    environment = dict(os.environ) if source is None else {**os.environ, "PYTHONPATH": str(source)}
    try:
        run = subprocess.run(
            [sys.executable, __file__, "--case", name],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=most,
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(run.stdout)


def table(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a record for every case, version and round, and print it."""
    versions = {"this version": None, **({"than": asked.than} if asked.than else {})}
    for name in asked.only.split(","):
        for number in range(asked.rounds):
            for version, source in versions.items():
                found = measured(name, source, asked.most)
                text = "did not end" if found is None else ", ".join(f"{k} {v:.3f}" for k, v in found.items())
                print(f"{name} ({CASES[name].__doc__}) {version}: {text}", flush=True)
                yield {"case": name, "version": version, "round": number, "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="which cases, separated by commas")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--than", type=Path, help="the src of another version")
    parser.add_argument("--most", type=float, default=300, help="seconds that a case may take")
    parser.add_argument("--out", type=Path, help="a JSON file")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case is not None:
        print(json.dumps(CASES[asked.case]()))
        return
    found = list(table(asked))
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
