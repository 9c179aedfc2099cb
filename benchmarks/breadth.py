"""Accuracy and AUC of `WeightedGMIL()` on the five benchmark sets and on every file of ``$GMIL_DATA_HOME/more``.

Run it in two trees and compare what it wrote: folds and seeds are the same.

    python benchmarks/breadth.py --out results/breadth.json
    python benchmarks/breadth.py --compare before.json results/breadth.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import gmil
from many_sets import FIVE, further_files, load_set

KEYS = ("accuracy", "auc")


def measure(bags: Any, y: Any, repeats: int, groups: Any = None) -> dict[str, float]:
    """Return mean accuracy and mean AUC of repeated 10-folds, seeds 0, 1, ..."""
    result = gmil.cross_validate(gmil.WeightedGMIL(), bags, y, cv=10, repeats=repeats, groups=groups)
    decisions = result.decisions[0]  # (n_repeats, n_bags)
    aucs = [roc_auc_score(y, decision) for decision in decisions]
    return {"accuracy": float(np.mean(result.predictions[0] == y)), "auc": float(np.mean(aucs))}


def run(out: Path, repeats: int) -> None:
    """Measure what the file does not have yet."""
    found: dict[str, dict[str, float]] = json.loads(out.read_text()) if out.exists() else {}
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in [*FIVE, *further_files()]:
        if name in found:
            continue
        bags, y, groups = load_set(name)
        found[name] = measure(bags, y, repeats if name in FIVE else 1, groups)
        print(name, found[name], flush=True)
        out.write_text(json.dumps(found, indent=1))


def compare(before: Path, after: Path) -> None:
    """Print both figures of every set that both have, and the means."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    for title, names in (("five sets", FIVE), ("further sets", [name for name in old if name not in FIVE])):
        names = [name for name in names if name in old and name in new]
        if not names:
            continue
        print(f"{title:36} {'accuracy':>17} {'AUC':>17}")
        for name in names:
            print(
                f"{name:36}", *(f"{100 * file[name][key]:8.2f}" for key in ("accuracy", "auc") for file in (old, new))
            )
        means = [np.mean([file[name][key] for name in names]) for key in ("accuracy", "auc") for file in (old, new)]
        print(f"{'mean':36}", *(f"{100 * mean:8.2f}" for mean in means))


def main() -> None:
    """Run or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/breadth.json"))
    parser.add_argument("--repeats", type=int, default=10, help="of the 10-fold on the five sets")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    options = parser.parse_args()
    if options.compare:
        compare(*options.compare)
    else:
        run(options.out, options.repeats)


if __name__ == "__main__":
    main()
