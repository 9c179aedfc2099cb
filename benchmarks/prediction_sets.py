"""Do prediction sets around `WeightedGMIL` hold the class as often as they claim? Random halves: one learns, one tests.

    python benchmarks/prediction_sets.py --halves 100 --large 20 --out results/prediction_sets.jsonl
    python benchmarks/prediction_sets.py --table results/prediction_sets.jsonl
    python benchmarks/prediction_sets.py --of alone --out results/left_out.jsonl
    python benchmarks/prediction_sets.py --of split --out results/split.jsonl
    python benchmarks/prediction_sets.py --patients 100
    python benchmarks/prediction_sets.py --words 50

A run that is stopped goes on where it was. Bags that are copies of each other (``dup_group``) stay in one half, and are
left out together. ``--of alone`` measures the sets of `WeightedGMIL` by itself, ``--of split`` those by a part of the
bags that calibrates, one fit a half each. ``--patients`` makes bags of patients that resemble each other, with and
without ``groups``. ``--words`` makes bags of short texts, most of whose words are rare: dense, and sparse features.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import gmil
from gmil.conformal import conformity, p_values, prediction_sets
from many_sets import Rows, all_names, load_set

COVERAGES = (0.8, 0.9, 0.95)
KINDS = ("cv+", "cv", "left out", "split")
LARGE = 600
"""Sets of more bags have fewer halves."""


def half_of(y: Any, groups: Any, seed: int) -> Any:
    """Return which bags learn: half of every class, or half of the groups."""
    rng = np.random.default_rng(seed)
    if groups is not None:
        units, numbers = np.unique(groups, return_inverse=True)
        return np.isin(numbers, rng.permutation(len(units))[: len(units) // 2])
    learns = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        own = rng.permutation(np.flatnonzero(y == label))
        learns[own[: len(own) // 2]] = True
    return learns


def covered(p: Any, y: Any) -> dict[str, list[float]]:
    """Return, for every coverage, the share of sets that hold the class, and their mean size."""
    sets = [prediction_sets(p, coverage) for coverage in COVERAGES]
    return {
        "covered": [float(own[np.arange(len(y)), y].mean()) for own in sets],
        "size": [float(own.sum(axis=1).mean()) for own in sets],
    }


def measure(model: Any, bags: Any, y: Any) -> dict[str, dict[str, list[float]]]:
    """Measure three kinds of sets, all from the fits of one `ConformalClassifier` with "cv+"; plain and randomized.

    "left out": by the closed form of the model of all bags, at no cost; "cv": that model against left-out decisions of
    the folds; "cv+": the models of the folds.
    """
    y = np.searchsorted(model.classes_, y)
    known, alone = model._calibration(), model.estimator_
    decided = model._decisions_by(alone, bags)
    kinds = {
        "left out": (conformity(decided), alone._calibration()),
        "cv": (conformity(decided), known._replace(folds=None)),
        "cv+": (model._conformity(bags), known),
    }
    return {name: part for kind, own in kinds.items() for name, part in both_ways(kind, *own, y).items()}


def measure_alone(model: Any, bags: Any, y: Any) -> dict[str, Any]:
    """Measure the sets of one model by what it was not taught, plain and randomized, and its accuracy."""
    scores, y = conformity(model.decision_function(bags)), np.searchsorted(model.classes_, y)
    kind = "split" if isinstance(model, gmil.ConformalClassifier) else "left out"
    found = both_ways(kind, scores, model._calibration(), y)
    return {**found, "accuracy": float(np.mean(scores.argmax(axis=1) == y))}


def both_ways(name: str, scores: Any, calibration: Any, y: Any) -> dict[str, dict[str, list[float]]]:
    """Return coverage and size by name, as they are and with ties drawn apart."""
    return {
        name: covered(p_values(scores, calibration), y),
        f"{name}, randomized": covered(p_values(scores, calibration, np.random.default_rng(0)), y),
    }


def conformal(seed: int, method: str = "cv+") -> Any:
    """Return `WeightedGMIL` with five folds around it, or with a fifth of the bags for calibration."""
    return gmil.ConformalClassifier(gmil.WeightedGMIL(n_jobs=1), method=method, random_state=seed)


def alone(seed: int) -> Any:
    """Return `WeightedGMIL` by itself."""
    return gmil.WeightedGMIL(n_jobs=1, random_state=seed)


MODELS = {
    "folds": (conformal, measure),
    "alone": (alone, measure_alone),
    "split": (partial(conformal, method="split"), measure_alone),
}
"""What is measured, and how."""


def run(rows: Rows, names: list[str], halves: int, large: int, of: str) -> None:
    """Measure what the file does not have yet, the first half of every set before the second of any."""
    for half in range(halves):
        for name in names:
            if (name, half) in rows:
                continue
            bags, y, groups = load_set(name)
            if len(y) > LARGE and half >= large:
                continue
            learns = half_of(y, groups, half)
            own = None if groups is None else groups[learns]
            model, measured = MODELS[of][0](half), MODELS[of][1]
            model.fit(bags[learns], y[learns], groups=own)
            found = measured(model, bags[~learns], y[~learns])
            rows.add({"set": name, "half": half, "bags": len(y), **found})


def table(rows: Rows) -> None:
    """Print the coverage of three kinds of sets on every data set, and means over data sets, also of drawn sets."""
    names = dict.fromkeys(row["set"] for row in rows.rows)
    kinds = [kind for kind in KINDS if kind in rows.rows[0]]
    print(f"| set | bags | halves | {' | '.join(f'{kind}: 80 % | 90 % | 95 % | size' for kind in kinds)} | accuracy |")
    print(f"|---|---|---|{'---|' * (4 * len(kinds) + 1)}")
    for name in names:
        own = list(rows.of(set=name))
        print(f"| {name} | {own[0]['bags']} | {len(own)} | {_cells(_means(own))} |")
    for title, ending in (("mean", ""), ("mean, randomized", ", randomized")):
        found = [_means(list(rows.of(set=name)), ending) for name in names]
        print(f"| {title} | | | {_cells(np.mean(found, axis=0))} |")


def _means(rows: list[dict[str, Any]], ending: str = "") -> list[float]:
    """Return coverages, and the size of sets at 90 %, of every kind."""
    found: list[float] = []
    for kind in (kind for kind in KINDS if kind in rows[0]):
        found += np.mean([row[f"{kind}{ending}"]["covered"] for row in rows], axis=0).tolist()
        found.append(float(np.mean([row[f"{kind}{ending}"]["size"][1] for row in rows])))
    return [*found, float(np.mean([row.get("accuracy", np.nan) for row in rows]))]


def _cells(values: Any) -> str:
    return " | ".join(f"{v:.2f}" if i % 4 == 3 else f"{100 * v:.1f}" for i, v in enumerate(values))


def patients(n_draws: int) -> None:
    """Print the coverage of new patients, where bags of a patient resemble each other, with groups and without."""
    found: dict[str, list[Any]] = {"groups": [], "no groups": []}
    for seed in range(n_draws):
        (bags, y, groups), (new, new_y, _) = (make_patients(30, 6, 2 * seed + part) for part in (0, 1))
        for name, own in (("groups", groups), ("no groups", None)):
            model = conformal(seed).fit(bags, y, groups=own)
            found[name].append(measure(model, new, new_y)["cv"]["covered"])
    print("| | 80 % | 90 % | 95 % |\n|---|---|---|---|")
    for name, values in found.items():
        print(f"| {name} | {' | '.join(f'{100 * v:.1f}' for v in np.mean(values, axis=0))} |")


def make_patients(n_patients: int, bags_each: int, seed: int) -> tuple[Any, Any, Any]:
    """Return bags of patients, all bags of one patient of one class, with a shift of the patient's own."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_patients), bags_each)
    y = groups % 2
    own = rng.normal(scale=1.5, size=(n_patients, 8))
    bags = []
    for patient, label in zip(groups, y, strict=True):
        bag = own[patient] + 0.5 * rng.normal(size=(rng.integers(4, 9), 8))
        bag[0, 0] += 2.5 * label
        bags.append(bag)
    return gmil.Bags.from_list(bags), y, groups


def words(n_draws: int) -> None:
    """Print coverage and accuracy on generated bags of words: 50 bags learn, 200 test."""
    print("| | 80 % | 90 % | 95 % | randomized: 80 % | 90 % | 95 % | accuracy |\n|---|---|---|---|---|---|---|---|")
    for name, kind in (("dense", np.asarray), ("sparse", sp.csr_array)):
        found = []
        for seed in range(n_draws):
            bags, y = make_words(250, seed)
            bags = bags.with_instances(kind(bags.instances))
            model = alone(seed).fit(bags[:50], y[:50])
            own = measure_alone(model, bags[50:], y[50:])
            found.append([*own["left out"]["covered"], *own["left out, randomized"]["covered"], own["accuracy"]])
        print(f"| {name} | {' | '.join(f'{100 * v:.1f}' for v in np.mean(found, axis=0))} |")


def make_words(n_bags: int, seed: int, n_words: int = 200) -> tuple[Any, Any]:
    """Return bags of texts of eight words, as frequencies of words; words are as rare as by Zipf's law.

    Half of the bags are positive: a few of their texts are of a topic with rare words of its own.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % 2
    ranks = 1 / np.arange(1, n_words + 1)
    topic = np.zeros(n_words)
    topic[rng.choice(np.arange(n_words // 4, n_words), n_words // 5, replace=False)] = 1
    sizes = rng.integers(15, 40, n_bags)
    bags = []
    for size, label in zip(sizes, y, strict=True):
        of_topic = np.arange(size) < label * rng.integers(1, 4)
        chances = np.where(of_topic[:, None], topic + 0.2 * ranks * topic.sum(), ranks)
        bags.append(rng.multinomial(8, chances / chances.sum(axis=1, keepdims=True)) / 8)
    return gmil.Bags.from_list(bags), y


def main() -> None:
    """Run, or print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/prediction_sets.jsonl"))
    parser.add_argument("--halves", type=int, default=100)
    parser.add_argument("--large", type=int, default=20, help=f"halves of sets of more than {LARGE} bags")
    parser.add_argument("--sets", help="only these, with commas between them")
    parser.add_argument("--of", choices=MODELS, default="folds")
    parser.add_argument("--patients", type=int, metavar="DRAWS")
    parser.add_argument("--words", type=int, metavar="DRAWS")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.patients:
        patients(options.patients)
    elif options.words:
        words(options.words)
    elif options.table:
        table(Rows(options.table, "set", "half"))
    else:
        names = options.sets.split(",") if options.sets else all_names()
        run(Rows(options.out, "set", "half"), names, options.halves, options.large, options.of)


if __name__ == "__main__":
    main()
