"""Generated slides: how fast folders are read, what a cross-validation of them takes, and whether tumours are found.

``python benchmarks/slides.py speed --out FOLDER [--slides 200] [--patches 5000] [--features 1024] [--folds 5]``
``python benchmarks/slides.py tumours --out FOLDER [--slides 200] [--patches 1000] [--features 128] [--folds 3]
[--older SRC]``

``speed`` writes a cohort of float16 embeddings as TRIDENT does (200 x 5000 x 1024 take 2 GB), and removes it. Rates are
medians of three passes, in turns: plain h5py reads every file at once; the sampling pass draws 20 000 patches of all
slides, as a fit of WeightedGMIL does; the whole pass sums the features of every slide. Then ``gmil cv`` runs in a
process of its own, whose largest resident memory is measured. A rate is bytes of all embeddings over seconds.

``tumours`` measures scores of patches on slides of patients that the model never saw: AUC over all patches, that of a
logistic regression that was trained on true labels of patches, and whether the largest region of patches above a
threshold, each next to another on four sides, overlaps the true tumour (intersection over union of at least 0.5). AUCs
are those of every fold. With ``--older SRC`` an older version scores the patches of the first fold too.
Threshold and bandwidth of smoothing are chosen on training slides.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
from scipy.ndimage import label as label_regions
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold

import gmil
from gmil.bags.parts import rows_of_bags

SIDE = 512
SAMPLE = 20_000
BANDWIDTHS = (0.0, 0.5, 0.7, 1.0)
LEVELS = np.linspace(0.5, 0.995, 45)


# -------------------------------------------------------------------------------- speed


def speed(asked: argparse.Namespace) -> dict:
    folder = Path(asked.out) / "cohort"
    made = gmil.make_slides(
        folder, n_slides=asked.slides, n_patches=asked.patches, n_features=asked.features, random_state=asked.seed
    )
    try:
        seconds = rates(folder)
        n_bytes = asked.slides * asked.patches * asked.features * 2
        found = {name: n_bytes / taken / 1e6 for name, taken in seconds.items() if name != "scan"}
        return {
            "gigabytes": n_bytes / 1e9,
            "scan_seconds": seconds["scan"],
            "megabytes_per_second": found,
            "sampling_share_of_plain": found["sampling"] / found["plain"],
            "cv": cross_validation(made, asked.folds),
        }
    finally:
        shutil.rmtree(folder)


def rates(folder: Path) -> dict[str, float]:
    start = time.perf_counter()
    bags = gmil.scan(folder)[0]
    scan = time.perf_counter() - start
    files = [slide.features.file for slide in bags.source.slides]
    rows = np.random.default_rng(0).choice(bags.n_instances, min(SAMPLE, bags.n_instances // 2), replace=False)

    def plain() -> None:
        for file in files:
            with h5py.File(file, "r") as opened:
                opened["features"][()]

    passes = {
        "plain": plain,
        "sampling": lambda: bags.take(rows),
        "whole": lambda: bags.reduce(sums, [np.add], n_threads=2),
    }
    taken: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(3):
        for name, run in passes.items():
            start = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - start)
    return {"scan": scan} | {name: statistics.median(found) for name, found in taken.items()}


def sums(bags: gmil.Bags) -> list[np.ndarray]:
    return [np.add.reduceat(bags.instances, bags.offsets[:-1])]


def cross_validation(made: dict, folds: int) -> dict:
    command = [
        *(sys.executable, "-m", "gmil", "cv", made.folder, "--labels", made.labels, "--bag", made.bag),
        *("--label", made.label, "--group", made.group, "--folds", str(folds), "--json"),
    ]
    start = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "2"}
    )
    seconds = time.perf_counter() - start
    row = json.loads(done.stdout)[0]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return {
        "seconds": seconds,
        "peak_gib": peak,
        "auc": row["auc_mean"],
        "accuracy": row["accuracy_mean"],
        "folds": folds,
    }


# -------------------------------------------------------------------------------- tumours


def tumours(asked: argparse.Namespace) -> dict:
    folder = Path(asked.out) / "tumours"
    made = gmil.make_slides(
        folder, n_slides=asked.slides, n_patches=asked.patches, n_features=asked.features, random_state=asked.seed
    )
    try:
        found = gmil.read(folder, labels=made.labels, bag=made.bag, label=made.label, group=made.group)
        truth = np.loadtxt(made.patch_labels, delimiter=",", skiprows=1, usecols=3)
    finally:
        shutil.rmtree(folder)
    folds = StratifiedGroupKFold(asked.folds, shuffle=True, random_state=0).split(found.y, found.y, found.groups)
    cells = []
    for number, (train, test) in enumerate(folds):
        cell = of_fold(found.bags, found.y, truth, train, test)
        if asked.older and number == 0:
            cell["older"] = older_scores(asked, found.bags[train], found.y[train], found.bags[test])
        cells.append(cell)
        print(number, cell["seconds"], float(np.mean(cell["overlaps"] >= 0.5)), file=sys.stderr, flush=True)

    def auc(values: str, known: str = "truth") -> list[float]:
        return [round(float(roc_auc_score(cell[known], cell[values])), 4) for cell in cells if values in cell]

    return {
        "auc_of_patches": auc("scores"),
        "auc_by_true_labels": auc("supervised"),
        "auc_of_patches_by_the_older_version": auc("older"),
        "auc_of_bags": auc("decisions", "y"),
        "share_of_tumours_found": float(np.mean(np.concatenate([cell["overlaps"] for cell in cells]) >= 0.5)),
        "mean_overlap": float(np.mean(np.concatenate([cell["overlaps"] for cell in cells]))),
        "chosen": [cell["chosen"] for cell in cells],
        "seconds_of_fit": [cell["seconds"] for cell in cells],
    }


def of_fold(bags: gmil.Bags, y: np.ndarray, truth: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict:
    start = time.perf_counter()
    model = gmil.WeightedGMIL(random_state=0).fit(bags[train], y[train])
    seconds = time.perf_counter() - start
    marks = {name: truth[rows_of_bags(bags.offsets, part)[0]] for name, part in (("train", train), ("test", test))}
    scores = {name: model.score_instances(bags[part]) for name, part in (("train", train), ("test", test))}
    chosen = choose(bags[train], scores["train"], marks["train"])
    supervised = LogisticRegression(max_iter=500).fit(bags[train].instances, marks["train"])
    return {
        "truth": marks["test"],
        "scores": scores["test"],
        "supervised": supervised.decision_function(bags[test].instances),
        "y": y[test],
        "decisions": model.decision_function(bags[test]),
        "overlaps": overlaps(bags[test], smoothed(bags[test], scores["test"], chosen[0]), marks["test"], chosen[1]),
        "chosen": chosen,
        "seconds": seconds,
    }


OLDER = """
import sys, numpy as np, gmil
found = np.load(sys.argv[1])
model = gmil.WeightedGMIL(random_state=0).fit(gmil.Bags(found["X"], found["offsets"]), found["y"])
np.save(sys.argv[2], model.score_instances(gmil.Bags(found["Z"], found["z_offsets"])))
"""


def older_scores(asked: argparse.Namespace, train: gmil.Bags, y: np.ndarray, test: gmil.Bags) -> np.ndarray:
    """Return scores of test patches by the version of gmil whose sources lie at ``--older``."""
    given, scores = Path(asked.out) / "older.npz", Path(asked.out) / "older.npy"
    np.savez(given, X=train.instances, offsets=train.offsets, y=y, Z=test.instances, z_offsets=test.offsets)
    command = [sys.executable, "-c", OLDER, str(given), str(scores)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": asked.older})
    given.unlink()
    return np.load(scores)


def choose(bags: gmil.Bags, scores: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return bandwidth and threshold with the largest mean overlap on training slides."""
    best = (-1.0, 0.0, 0.0)
    for bandwidth in BANDWIDTHS:
        found = smoothed(bags, scores, bandwidth)
        for threshold in np.unique(np.quantile(found, LEVELS)):
            mean = float(np.mean(overlaps(bags, found, truth, threshold)))
            best = max(best, (mean, bandwidth, float(threshold)))
    return best[1], best[2]


def smoothed(bags: gmil.Bags, scores: np.ndarray, bandwidth: float) -> np.ndarray:
    return gmil.smooth_scores(scores, bags, bandwidth * SIDE) if bandwidth else scores


def overlaps(bags: gmil.Bags, scores: np.ndarray, truth: np.ndarray, threshold: float) -> np.ndarray:
    """Return the overlap of the largest region with the tumour, for every slide that has one."""
    info = bags.instance_info
    cells = np.column_stack([info.column(name).to_numpy() for name in ("x", "y")]).astype(int) // SIDE
    parts = zip(*(bags.split(values) for values in (scores, truth)), np.split(cells, bags.offsets[1:-1]), strict=True)
    return np.array([_overlap(own > threshold, marks > 0, places) for own, marks, places in parts if marks.any()])


def _overlap(above: np.ndarray, tumour: np.ndarray, places: np.ndarray) -> float:
    grid = np.zeros(places.max(axis=0) + 1, dtype=int)
    grid[tuple(places[above].T)] = 1
    regions, n_regions = label_regions(grid)
    if n_regions == 0:
        return 0.0
    own = regions[tuple(places.T)]
    largest = own == np.argmax(np.bincount(own[own > 0]))
    return float((largest & tumour).sum() / (largest | tumour).sum())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["speed", "tumours"])
    parser.add_argument("--out", required=True, help="a folder for the cohort and the figures")
    parser.add_argument("--slides", type=int, default=200)
    parser.add_argument("--patches", type=int, default=None)
    parser.add_argument("--features", type=int, default=None)
    parser.add_argument("--folds", type=int, default=None)
    parser.add_argument("--older", help="the src folder of an older version, to score patches of the first fold by")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    defaults = {"speed": (5000, 1024, 5), "tumours": (1000, 128, 3)}[given.what]
    for name, default in zip(("patches", "features", "folds"), defaults, strict=True):
        setattr(given, name, getattr(given, name) or default)
    Path(given.out).mkdir(parents=True, exist_ok=True)
    figures = {"speed": speed, "tumours": tumours}[given.what](given)
    (Path(given.out) / f"{given.what}.json").write_text(json.dumps(figures, indent=2))
    print(json.dumps(figures, indent=2))
