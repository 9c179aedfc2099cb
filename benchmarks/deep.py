"""Networks under the protocol of their papers: repeated 10-fold on small sets, all folds trained at once.

    python benchmarks/deep.py --out deep.jsonl --sets musk1 --repeats 1
    python benchmarks/deep.py --out deep.jsonl --backend torch:cuda --seconds 540

A row is one method on one set with one repeat. What is in the file is not done again, and ``--seconds`` ends a run
before the next row: call it again to go on. ``--table`` prints the rows of a file.

Nothing is chosen on test folds: epochs are fixed and the last weights are kept. The published figures are from the
papers, mean accuracy of 5 x 10-fold: ABMIL and MI-Net report the last epoch, too. ``mi_net.py`` shows what the protocol
of the authors of MI-Net adds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import gmil
from many_sets import FIVE, Rows, all_names, load_set

# The setting of MI-Net and ABMIL: gradient descent with momentum, one bag a step. Rates and decay were chosen for each
# set by the authors of MI-Net, on these very sets: (learning rate, weight decay).
PAPER: dict[str, Any] = {"hidden": (256, 128, 64), "dropout": 0.5, "batch_size": 1, "optimizer": "sgd"}
CHOSEN = {
    "musk1": (5e-4, 0.005),
    "musk2": (5e-4, 0.03),
    "elephant": (1e-4, 0.005),
    "fox": (1e-4, 0.01),
    "tiger": (5e-4, 0.005),
}
METHODS: dict[str, Any] = {
    "mean-mlp": gmil.MeanMLP(),
    "mi-net": gmil.MINet(),
    "abmil": gmil.ABMIL(),
    "gated-abmil": gmil.ABMIL(gated=True),
    "dsmil": gmil.DSMIL(),
    "clam": gmil.CLAM(),
    "trans-mil": gmil.TransMIL(),
    "mi-net-paper": gmil.MINet(**PAPER, epochs=50),
    "abmil-paper": gmil.ABMIL(**PAPER, epochs=100),
    "gated-abmil-paper": gmil.ABMIL(gated=True, **PAPER, epochs=100),
}
PUBLISHED = {
    "abmil": (89.2, 85.8, 86.8, 61.5, 83.9),
    "gated-abmil": (90.0, 86.3, 85.7, 60.3, 84.5),
    "mi-net": (89.4, 87.4, 87.2, 63.0, 84.5),
}
"""Accuracy on musk1, musk2, elephant, fox and tiger."""


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(FIVE), help="names, or 'all'")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no row after so many seconds")
    parser.add_argument("--table", action="store_true", help="only print the table")
    asked = parser.parse_args()
    rows = Rows(asked.out, "set", "method", "repeat")
    if not asked.table:
        run(asked, rows)
    print_table(rows)


def run(asked: argparse.Namespace, rows: Rows) -> None:
    """Add the rows that are not there, small sets first, until the time is over."""
    start = time.perf_counter()
    for name in all_names() if asked.sets == "all" else asked.sets.split(","):
        bags, y, groups = load_set(name)
        for method in asked.methods.split(","):
            missing = [repeat for repeat in range(asked.repeats) if (name, method, repeat) not in rows]
            if not missing:
                continue
            if time.perf_counter() - start > asked.seconds:
                print(f"Stopped before {name} {method}: call again to go on.", flush=True)
                return
            measure(rows, name, method, (bags, y, groups), missing, asked)


def measure(rows: Rows, name: str, method: str, data: tuple[Any, Any, Any], repeats: list[int], asked: Any) -> None:
    """Cross-validate all missing repeats at once; repeat r is what ``random_state=r`` gives alone."""
    bags, y, groups = data
    model = METHODS[method].set_params(backend=asked.backend, **chosen_for(method, name))
    start, cpu = time.perf_counter(), time.process_time()
    first, n = min(repeats), max(repeats) - min(repeats) + 1
    found = gmil.cross_validate(model, bags, y, cv=asked.folds, repeats=n, random_state=first, groups=groups)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    for repeat in repeats:
        decisions, predictions = found.decisions[0, repeat - first], found.predictions[0, repeat - first]
        rows.add(
            {
                "set": name,
                "method": method,
                "repeat": repeat,
                "accuracy": float(np.mean(predictions == y)),
                "auc": float(auc_of(y, decisions)),
                "seconds": round(seconds / n, 3),
                "cpu_seconds": round(cpu / n, 3),
                "backend": asked.backend,
                "decisions": np.round(decisions, 6).tolist(),
            }
        )
    print(f"{name} {method}: {seconds:.1f} s for {n} x {asked.folds}-fold", flush=True)


def chosen_for(method: str, name: str) -> dict[str, float]:
    """Return rate and decay of a paper for a set; none for the default settings.

    MI-Net sums the losses of its three classifiers and adds decay times squares; here the losses are averaged and the
    decay is half of it.
    """
    if not method.endswith("-paper"):
        return {}
    rate, decay = CHOSEN.get(name, CHOSEN["musk1"])
    if method == "mi-net-paper":
        return {"learning_rate": 3 * rate, "weight_decay": 2 * decay / 3}
    return {"learning_rate": rate, "weight_decay": decay}


def auc_of(y: Any, decisions: Any) -> float:
    """Return the area under the curve, of several classes the mean of each against the others."""
    from sklearn.metrics import roc_auc_score

    if decisions.ndim == 1:
        return float(roc_auc_score(y, decisions))
    return float(
        np.mean([roc_auc_score(y == label, own) for label, own in zip(np.unique(y), decisions.T, strict=True)])
    )


def print_table(rows: Rows) -> None:
    """Print mean accuracy, its deviation over repeats, AUC, seconds, and the published accuracy."""
    print("set method repeats accuracy sd auc seconds published")
    keys = dict.fromkeys((row["set"], row["method"]) for row in rows.rows)
    for name, method in keys:
        own = list(rows.of(set=name, method=method))
        accuracy = 100 * np.array([row["accuracy"] for row in own])
        published = PUBLISHED.get(method.removesuffix("-paper"), ())
        known = f"{published[FIVE.index(name)]:.1f}" if published and name in FIVE else "-"
        auc, seconds = 100 * np.mean([row["auc"] for row in own]), np.mean([row["seconds"] for row in own])
        print(f"{name} {method} {len(own)} {accuracy.mean():.1f} {accuracy.std():.1f} {auc:.1f} {seconds:.1f} {known}")


if __name__ == "__main__":
    main()
