"""What ``tune=True`` gives the max-margin rivals: repeated 10-folds, on the folds and seeds of `gmil.cross_validate`.

``GMIL_DATA_HOME=... python benchmarks/tuned_margins.py --out FOLDER [--methods NAME,...] [--sets NAME,...]
[--repeats 5] [--against FOLDER]``

Every repeat is a file, ``METHOD-SET-REPEAT.json``; those that are there are not computed again, so that a run goes on
where it was stopped, and two trees (by PYTHONPATH) fill two folders. At the end the folder is shown as a table;
``--against`` puts the figures of another folder beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import gmil
from gmil.model_selection.folds import estimator_seed, fold_numbers

SETS = {
    "musk1": gmil.load_musk1,
    "musk2": gmil.load_musk2,
    "elephant": gmil.fetch_elephant,
    "fox": gmil.fetch_fox,
    "tiger": gmil.fetch_tiger,
}
METHODS = {
    "mi-svm": lambda: gmil.WitnessSVM(tune=True),
    "aw-svm": lambda: gmil.AnnealedSVM(tune=True),
    "mica": lambda: gmil.MICA(tune=True),
    # 0.1.0 had nothing to tune in MI-CRF.
    "mi-crf": lambda: gmil.MICRF(**({"tune": True} if "tune" in gmil.MICRF().get_params() else {})),
}
N_FOLDS = 10
CHOSEN = ("kernel_", "gamma_", "C_", "nu_", "balance_")


def measure(method: str, name: str, repeat: int) -> dict[str, Any]:
    """Cross-validate once, as the repeat of this number does in ``cross_validate(..., random_state=0)``."""
    bags, y = SETS[name](return_X_y=True)
    folds = fold_numbers(N_FOLDS, y, None, repeat)
    started = time.process_time()
    right, chosen = np.zeros(len(y), dtype=bool), []
    for fold in range(N_FOLDS):
        test = folds == fold
        model = METHODS[method]().set_params(random_state=estimator_seed(0, repeat, fold)).fit(bags[~test], y[~test])
        right[test] = model.predict(bags[test]) == y[test]
        chosen.append(settings_of(model))
    accuracies = [float(right[folds == fold].mean()) for fold in range(N_FOLDS)]
    return {
        "method": method,
        "set": name,
        "repeat": repeat,
        "accuracy": float(np.mean(accuracies)),
        "folds": accuracies,
        "cpu_seconds": time.process_time() - started,
        "chosen": chosen,
        "version": gmil.__version__,
    }


def settings_of(model: Any) -> dict[str, Any]:
    """Return what a model chose; of MI-CRF, what its scorer did."""
    model = model.scorers_[0] if hasattr(model, "scorers_") else model
    return {name.rstrip("_"): getattr(model, name) for name in CHOSEN if hasattr(model, name)}


def fill(folder: Path, methods: list[str], sets: list[str], repeats: int) -> None:
    """Measure what is missing in a folder."""
    for method, name in ((method, name) for method in methods for name in sets):
        for repeat in range(repeats):
            path = folder / f"{method}-{name}-{repeat}.json"
            if not path.exists():
                found = measure(method, name, repeat)
                path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
                print(f"{path.stem}: {100 * found['accuracy']:.1f}, {found['cpu_seconds']:.0f} CPU s", flush=True)


def accuracies_of(folder: Path, method: str, name: str) -> dict[int, float]:
    """Return per cent by repeat, of the repeats that are there."""
    files = sorted(folder.glob(f"{method}-{name}-*.json"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return {one["repeat"]: 100 * one["accuracy"] for one in found}


def cell(values: list[float]) -> str:
    if not values:
        return "-"
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{spread} ({len(values)})"


def difference_cell(differences: list[float]) -> str:
    if not differences:
        return "-"
    n = len(differences)
    error = f" ± {np.std(differences, ddof=1) / np.sqrt(n):.1f}" if n > 1 else ""
    return f"{np.mean(differences):+.1f}{error} ({n})"


def show(folder: Path, against: Path | None, methods: list[str], sets: list[str]) -> None:
    """Print a table: mean, deviation and number of repeats.

    Differences are over the repeats that both folders have, with the standard error of their mean.
    """
    print("| method | set | this | other | difference |\n|---|---|---|---|---|")
    for method, name in ((method, name) for method in methods for name in sets):
        ours = accuracies_of(folder, method, name)
        theirs = {} if against is None else accuracies_of(against, method, name)
        both = sorted(set(ours) & set(theirs))
        difference = difference_cell([ours[repeat] - theirs[repeat] for repeat in both])
        print(f"| {method} | {name} | {cell(list(ours.values()))} | {cell(list(theirs.values()))} | {difference} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--methods", type=lambda names: names.split(","), default=list(METHODS))
    parser.add_argument("--sets", type=lambda names: names.split(","), default=list(SETS))
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    fill(given.out, given.methods, given.sets, given.repeats)
    show(given.out, given.against, given.methods, given.sets)


if __name__ == "__main__":
    main()
