"""Which instances are witnesses? Held-out scores of instances by all methods, on all sets with labels of instances.

``GMIL_DATA_HOME=... python benchmarks/instances.py --out FOLDER [--methods NAME,...] [--sets NAME,...]
[--seeds 77,78,79] [--most-seconds 120] [--by-set] [--reliability FILE.svg] [--show]``

Every cell (method, set, seed) is a file, ``METHOD-SET-SEED.json``; those that are there are not computed again, so
that a run goes on where it was stopped, and several runs with other sets may fill one folder. A cell is a 5-fold, the
folds of ``StratifiedKFold(5, shuffle=True, random_state=seed)``, in a process of its own. It is stopped where its five
fits, with scores, take longer than five times ``--most-seconds``; the table then has "slow". Names may be patterns,
such as ``birds_*``.

The table has, for every family of sets, the means over sets and seeds of pooled AUC / average precision; mean AUC
within bags. A second one has accuracy and AUC of bags and the seconds of a fit. ``weighted-gmil:NAME`` are the rules
for scores that were tried, see witness_variants.py. Generated bags and slides are made anew for every seed.
``--reliability`` draws, for WeightedGMIL, the share of witnesses against the probability ``expit(score)``; it means
something where scores are log-odds of being a witness.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.utils import get_tags

import gmil
from gmil.base import methods
from gmil.reporting.plots.reliability import Reliability, reliability_figure
from gmil.safety.atomic import replacing
from witness_variants import VARIANTS

SEEDS = (77, 78, 79)
N_FOLDS = 5
FIGURES = ("auc", "average_precision", "auc_within")
SLOW, FAILED, DONE = "slow", "failed", "done"


class Labelled(NamedTuple):
    bags: gmil.Bags
    y: np.ndarray
    instance_y: np.ndarray


class Set(NamedTuple):
    family: str
    load: Any  # seed -> Labelled


# -------------------------------------------------------------------------------- sets


def from_file(name: str, _seed: int) -> Labelled:
    bags, y = gmil.read(Path(os.environ.get("GMIL_DATA_HOME", "")) / "more" / f"{name}.npz")
    return Labelled(bags, y, bags.instance_info.column("y_instance").to_numpy())


def ucf_crime(_seed: int) -> Labelled:
    found = gmil.fetch_ucf_crime()
    return Labelled(found.bags, found.y, found.instance_y)


def generated(witness_rate: float, seed: int, n_bags: int = 200) -> Labelled:
    made = gmil.make_bags(
        n_bags, n_features=20, bag_size=(20, 60), separation=4, witness_rate=witness_rate, random_state=seed
    )
    return Labelled(made.bags, made.y, made.instance_y)


def slides(n_classes: int, seed: int, n_slides: int = 200, n_features: int = 384) -> Labelled:
    """Make slides of 50 to 3000 patches: tissues in other shares on every slide, a slight stain of its own, 5 % tumour.

    A kind of tissue, or of tumour, is a normal cloud around a centre of its own. Slides of class 0 have no tumour;
    every other class has a kind of tumour of its own. With more than two classes healthy patches are of no class, and
    not of class 0: what is asked is where the tumour is.
    """
    rng = np.random.default_rng(seed)
    tissues, tumours = rng.normal(size=(8, n_features)), rng.normal(size=(n_classes, n_features))
    y = rng.permutation(np.arange(n_slides) % n_classes)
    sizes = np.exp(rng.uniform(np.log(50), np.log(3000), n_slides)).astype(int)
    parts, kinds = [], []
    for label, size in zip(y.tolist(), sizes.tolist(), strict=True):
        centers = tissues[rng.choice(8, size, p=rng.dirichlet(np.full(8, 0.5)))]
        ill = np.zeros(size, dtype=bool)
        if label:
            ill[rng.choice(size, max(1, round(0.05 * size)), replace=False)] = True
            centers[ill] = tumours[label]
        stain = 0.1 * rng.normal(size=n_features)
        parts.append((centers + stain + rng.normal(size=centers.shape)).astype(np.float32))
        kinds.append(np.where(ill, label, 0 if n_classes == 2 else n_classes))
    return Labelled(gmil.Bags.from_list(parts), y, np.concatenate(kinds))


NEWSGROUPS = (
    "alt_atheism", "comp_graphics", "misc_forsale", "rec_autos", "rec_sport_hockey", "sci_crypt", "sci_med",
    "soc_religion_christian", "talk_politics_guns", "talk_religion_misc",
)  # fmt: skip
BIRDS = ("brown_creeper", "winter_wren", "hammonds_flycatcher")
SETS: dict[str, Set] = {
    **{f"birds_{name}": Set("Birds", partial(from_file, f"birds_{name}")) for name in BIRDS},
    **{f"newsgroups_{name}": Set("Newsgroups", partial(from_file, f"newsgroups_{name}")) for name in NEWSGROUPS},
    "ucf_crime": Set("UCF-Crime", ucf_crime),
    **{f"generated_{rate:g}": Set(f"generated, {rate:.0%}", partial(generated, rate)) for rate in (0.05, 0.1, 0.3)},
    "slides": Set("slides", partial(slides, 3)),
    "slides_2": Set("slides, two classes", partial(slides, 2)),
}


# -------------------------------------------------------------------------------- methods


@cache
def known_methods() -> dict[str, Any]:
    """Return what makes every method: those of the command line, and WeightedGMIL with other rules for scores."""
    return {**methods(), **{f"weighted-gmil:{name}": make for name, make in VARIANTS.items()}}


def reason_to_leave_out(estimator: Any, y: np.ndarray) -> str | None:
    if not hasattr(estimator, "score_instances"):
        return "it has no score_instances"
    several = len(np.unique(y)) > 2
    return "two classes only" if several and not get_tags(estimator).classifier_tags.multi_class else None


# -------------------------------------------------------------------------------- one cell


def measure(estimator: Any, data: Labelled, seed: int) -> dict[str, Any]:
    """Return the figures of one 5-fold, those of the bag's decision given to all its instances, and reliability."""
    started = time.perf_counter()
    result = gmil.cross_validate(estimator, *data[:2], cv=N_FOLDS, random_state=seed, instance_y=data.instance_y)
    seconds = time.perf_counter() - started
    instances: Any = result.instances
    decisions = result.decisions * result._sign_of(result.positive_label)
    repeated = np.repeat(decisions, data.bags.sizes, axis=2).reshape(instances.scores.shape)
    of_bags = replace(instances, scores=repeated)
    known = instances.labels >= 0
    probabilities = expit(instances.scores[0, 0])[known]
    return {
        "status": DONE,
        "figures": instances.figures(),
        "figures_of_decision": {name: getattr(of_bags, name)() for name in FIGURES},
        "accuracy": result.accuracy(),
        "bag_auc": result.auc(),
        "fit_seconds": float(result.fit_seconds.mean()),
        "seconds": seconds,
        "reliability": Reliability.of(probabilities, instances.labels[known] == 1).to_dict(),
    }


def write_cell(path: Path, cell: dict[str, Any]) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({**cell, "version": gmil.__version__}, indent=1) + "\n", encoding="utf-8")


def _do(path: Path, estimator: Any, data: Labelled, seed: int) -> None:
    try:
        cell = measure(estimator, data, seed)
    except Exception as error:  # what a method refuses is part of the table
        cell = {"status": FAILED, "reason": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
    write_cell(path, cell)


def do_cell(path: Path, estimator: Any, data: Labelled, seed: int, most_seconds: float) -> None:
    """Measure a cell in a process of its own, so that one that takes too long can be stopped."""
    worker = multiprocessing.get_context("fork").Process(target=_do, args=(path, estimator, data, seed))
    worker.start()
    worker.join(N_FOLDS * most_seconds)
    if worker.is_alive():
        worker.kill()
        worker.join()
        write_cell(path, {"status": SLOW, "most_seconds": most_seconds})
    elif worker.exitcode:
        write_cell(path, {"status": FAILED, "reason": f"the process ended with {worker.exitcode}"})


# -------------------------------------------------------------------------------- a folder of cells


def path_of(folder: Path, method: str, name: str, seed: int) -> Path:
    return folder / f"{method.replace(':', '_')}-{name}-{seed}.json"


def cell_at(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def is_missing(path: Path, most_seconds: float) -> bool:
    """Tell whether a cell is to be measured: it is not there, or was stopped at a smaller bound."""
    cell = cell_at(path)
    return cell is None or (cell["status"] == SLOW and cell["most_seconds"] < most_seconds)


def fill(folder: Path, names: list[str], sets: list[str], seeds: list[int], most_seconds: float) -> None:
    """Measure what is missing in a folder; every set is loaded once a seed."""
    for name, seed in ((name, seed) for name in sets for seed in seeds):
        missing = [method for method in names if is_missing(path_of(folder, method, name, seed), most_seconds)]
        data = SETS[name].load(seed) if missing else None
        for method in missing:
            estimator, path = known_methods()[method](), path_of(folder, method, name, seed)
            if reason_to_leave_out(estimator, data.y) is None:
                do_cell(path, estimator, data, seed, most_seconds)
                print(f"{path.stem}: {shown(cell_at(path))}", flush=True)


def shown(cell: dict[str, Any]) -> str:
    if cell["status"] != DONE:
        return cell.get("reason", cell["status"])
    return f"{figures_text([cell['figures']])}, {cell['seconds']:.0f} s"


def figures_text(figures: list[dict[str, Any]]) -> str:
    """Return means over cells as AUC / average precision; AUC within bags.

    >>> figures_text([{"auc": 0.75, "average_precision": 0.5, "auc_within": None}])
    '.750 / .500; -'
    """
    means = []
    for name in FIGURES:
        known = [figure[name] for figure in figures if figure[name] is not None and figure[name] == figure[name]]
        means.append(f"{np.mean(known):.3f}".removeprefix("0") if known else "-")
    return "{} / {}; {}".format(*means)


def table_cell(cells: list[dict[str, Any] | None], key: str = "figures") -> str:
    """Return the means of the cells that are done, how many these are where not all, or why there is none."""
    done = [cell[key] for cell in cells if cell is not None and cell["status"] == DONE]
    if not done:
        reasons = [cell["status"] for cell in cells if cell is not None]
        return reasons[0] if reasons else "-"
    return figures_text(done) + ("" if len(done) == len(cells) else f" ({len(done)} of {len(cells)})")


def show(folder: Path, names: list[str], sets: list[str], seeds: list[int], *, by_set: bool) -> None:
    """Print a table: a row for every method, a column for every family of sets, or for every set."""
    columns: dict[str, list[str]] = {}
    for name in sets:
        columns.setdefault(name if by_set else SETS[name].family, []).append(name)
    print(f"| | {' | '.join(f'{title} ({len(some)})' for title, some in columns.items())} |")
    print("|---" * (len(columns) + 1) + "|")
    for method in names:
        rows = {method: "figures"}
        if method == "weighted-gmil":
            rows["the bag's decision (weighted-gmil)"] = "figures_of_decision"
        for title, key in rows.items():
            texts = [table_cell(cells_of(folder, method, some, seeds), key) for some in columns.values()]
            print(f"| {title} | {' | '.join(texts)} |")
    print_notes(folder, names, sets, seeds)
    print("\nAccuracy and AUC of bags; seconds of a fit.")
    for method in names:
        texts = [bags_text(cells_of(folder, method, some, seeds)) for some in columns.values()]
        print(f"| {method} | {' | '.join(texts)} |")


def bags_text(cells: list[dict[str, Any] | None]) -> str:
    """Return mean accuracy / AUC of bags; and seconds of a fit."""
    done = [cell for cell in cells if cell is not None and cell["status"] == DONE]
    if not done:
        return "-"
    accuracy, area, seconds = (np.mean([cell[key] for cell in done]) for key in ("accuracy", "bag_auc", "fit_seconds"))
    return f"{accuracy:.3f} / {area:.3f}; {seconds:.2f} s"


def cells_of(folder: Path, method: str, sets: list[str], seeds: list[int]) -> list[dict[str, Any] | None]:
    return [cell_at(path_of(folder, method, name, seed)) for name in sets for seed in seeds]


def print_notes(folder: Path, names: list[str], sets: list[str], seeds: list[int]) -> None:
    """Say which methods were stopped or refused, and why."""
    notes = {}
    for method, name in ((method, name) for method in names for name in sets):
        for cell in cells_of(folder, method, [name], seeds):
            if cell is not None and cell["status"] == SLOW:
                notes[f"{method} on {name}"] = f"stopped: a fit takes more than {cell['most_seconds']:g} s"
            elif cell is not None and cell["status"] == FAILED:
                notes[f"{method} on {name}"] = cell["reason"]
    print(
        f"\nPooled AUC / average precision; mean AUC within bags. {N_FOLDS}-fold, seeds {', '.join(map(str, seeds))}."
    )
    for cell, reason in notes.items():
        print(f"* {cell}: {reason}")


def draw_reliability(
    folder: Path, sets: list[str], seeds: list[int], path: Path, method: str = "weighted-gmil"
) -> None:
    """Draw the share of witnesses against the probability given, a line for every family."""
    found: dict[str, list[Reliability]] = {}
    for name in sets:
        cells = cells_of(folder, method, [name], seeds)
        done = [Reliability(**cell["reliability"]) for cell in cells if cell is not None and cell["status"] == DONE]
        found.setdefault(SETS[name].family, []).extend(done)
    curves = {family: Reliability.joined(parts) for family, parts in found.items() if parts}
    if not curves:
        print(f"No cell of {method} is there to be drawn.")
        return
    reliability_figure(curves, f"Reliability of instance probabilities, {method}", "instances").save(
        path.with_suffix("")
    )
    for family, curve in curves.items():
        print(f"{family}: mean gap {curve.gap():.3f} over {int(np.sum(curve.counts))} instances")


# -------------------------------------------------------------------------------- command


def chosen(text: str, known: list[str]) -> list[str]:
    """Return the names that a list with commas and patterns means, in the order of those known."""
    patterns = text.split(",")
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            msg = f"There is no {pattern!r}; there are {', '.join(known)}."
            raise SystemExit(msg)
    return [name for name in known if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", default="*")
    parser.add_argument("--sets", default="*")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=list(SEEDS))
    parser.add_argument("--most-seconds", type=float, default=120.0, help="of one fit with its scores")
    parser.add_argument("--by-set", action="store_true")
    parser.add_argument("--reliability", type=Path)
    parser.add_argument("--show", action="store_true", help="measure nothing")
    given = parser.parse_args(arguments)
    names, sets = chosen(given.methods, list(known_methods())), chosen(given.sets, list(SETS))
    given.out.mkdir(parents=True, exist_ok=True)
    if not given.show:
        fill(given.out, names, sets, given.seeds, given.most_seconds)
    show(given.out, names, sets, given.seeds, by_set=given.by_set)
    if given.reliability is not None:
        draw_reliability(given.out, sets, given.seeds, given.reliability)


if __name__ == "__main__":
    main()
