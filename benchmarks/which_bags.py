"""Which method for which bags: generated bags in which one property changes at a time.

    python benchmarks/which_bags.py --out which_bags.jsonl
    python benchmarks/which_bags.py --out which_bags.jsonl --table

A row is one method on the bags of one seed: AUC of 300 new bags. What is in the file is not done again. All methods
have their default settings; no choice was made on these bags.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import gmil
from many_sets import Rows

SEEDS = (201, 202, 203)
N_NEW = 300
METHODS: dict[str, Any] = {
    "WeightedGMIL": gmil.WeightedGMIL,
    "ABMIL": gmil.ABMIL,
    "MI-SVM": gmil.WitnessSVM,
    "single instance": gmil.SingleInstance,
    "bag statistics": gmil.BagStatistics,
    "miVLAD": gmil.VLADClassifier,
}
# What bags have where a table does not say otherwise.
COMMON = {"n_training": 100, "n_features": 20, "bag_size": (20, 40), "witness_rate": 0.1, "separation": 3.0}
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "share of witnesses": {
        "one in 30": {"witness_rate": 0.02},
        "10 %": {},
        "30 %, nearer": {"witness_rate": 0.3, "separation": 2.0},
        "all, barely moved": {"witness_rate": 1.0, "separation": 0.4},
    },
    "instances a bag": {
        "5": {"bag_size": 5},
        "30": {"bag_size": 30},
        "150": {"bag_size": 150, "witness_rate": 0.02},
    },
    "features": {"5": {"n_features": 5}, "20": {}, "100": {"n_features": 100}, "400": {"n_features": 400}},
    "training bags": {"30": {"n_training": 30}, "100": {}, "400": {"n_training": 400}},
    "kinds of witnesses": {"1": {}, "4": {"n_concepts": 4}, "10": {"n_concepts": 10}},
}


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="only print the tables")
    asked = parser.parse_args()
    rows = Rows(asked.out, "bags", "method", "seed")
    if not asked.table:
        fill(rows)
    for title, columns in TABLES.items():
        print_table(rows, title, columns)


def fill(rows: Rows) -> None:
    """Measure every method on every kind of bags that the tables have; bags that two tables share are measured once."""
    every = [{**COMMON, **changes} for columns in TABLES.values() for changes in columns.values()]
    for bags in every:
        for seed in SEEDS:
            for name in METHODS:
                if (key(bags), name, seed) not in rows:
                    rows.add({"bags": key(bags), "method": name, "seed": seed, **measure(METHODS[name], bags, seed)})


def key(bags: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in bags.items())


def measure(method: Any, bags: dict[str, Any], seed: int) -> dict[str, float]:
    """Return the AUC of new bags, and the CPU seconds of the fit."""
    n, how = bags["n_training"], {name: value for name, value in bags.items() if name != "n_training"}
    made = gmil.make_bags(n + N_NEW, **how, random_state=seed)
    order = np.random.default_rng(seed).permutation(n + N_NEW)
    training, new = order[:n], order[n:]
    start = time.process_time()
    model = method().set_params(**({"random_state": seed} if "random_state" in method().get_params() else {}))
    model.fit(made.bags[training], made.y[training])
    seconds = time.process_time() - start
    auc = roc_auc_score(made.y[new], model.decision_function(made.bags[new]))
    return {"auc": float(auc), "cpu_seconds": round(seconds, 3)}


def mean_auc(rows: Rows, bags: dict[str, Any], method: str) -> float:
    """Return the mean over seeds; NaN where none is measured."""
    return float(np.mean([row["auc"] for row in rows.of(bags=key(bags), method=method)] or [np.nan]))


def print_table(rows: Rows, title: str, columns: dict[str, dict[str, Any]]) -> None:
    """Print the mean AUC over seeds, in per cent; the best of a column is bold."""
    means = {
        (name, column): np.mean(
            [row["auc"] for row in rows.of(bags=key({**COMMON, **changes}), method=name)] or [np.nan]
        )
        for name in METHODS
        for column, changes in columns.items()
    }
    best = {column: np.nanmax([means[name, column] for name in METHODS]) for column in columns}
    print(f"\n| {title} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name in METHODS:
        cells = [f"{100 * means[name, column]:.1f}" for column in columns]
        shown = [
            f"**{text}**" if means[name, column] == best[column] else text
            for text, column in zip(cells, columns, strict=True)
        ]
        print(f"| {name} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
