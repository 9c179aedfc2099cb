"""Are wrong labels found? A tenth of the labels is flipped at random, and `gmil.find_label_issues` has to name them.

    python benchmarks/label_issues.py --seeds 10 --out results/label_issues.jsonl
    python benchmarks/label_issues.py --unflipped --out results/label_issues.jsonl
    python benchmarks/label_issues.py --table results/label_issues.jsonl

``alone`` is the AUC of the left-out decision of one `WeightedGMIL`, which the ranking is compared with; ``taught`` is
that of the same model taught by the labels before they were flipped: about what can be had. ``mended`` is that of a
model taught with every flip corrected that ``alone`` finds more doubtful than 95 % of the right labels, and no right
label touched: what distrusting labels could bring at best. False alarms are counted over all seeds, and seed by seed,
where a seed without a flag has none: the false discovery rate.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import gmil
from gmil.model_selection.metrics import auc
from many_sets import Rows, load_set

SETS = (
    "musk1",
    "elephant",
    "tiger",
    "fox",
    "newsgroups_sci_med",
    "birds_brown_creeper",
    "mutagenesis_easy",
)
SHARE = 0.1
EASY = 0.95
"""A flip is easy to find if its label is more doubtful than so many of the right ones."""
AREAS = ("alone", "auc", "mended", "taught")


def flipped(y: Any, seed: int) -> tuple[Any, Any]:
    """Return labels with a tenth of them flipped, and which."""
    wrong = np.zeros(len(y), dtype=bool)
    chosen = np.random.default_rng(seed).choice(len(y), round(SHARE * len(y)), replace=False)
    wrong[chosen] = True
    return np.where(wrong, 1 - y, y), wrong


def measure(name: str, seed: int, *, flip: bool) -> dict[str, Any]:
    """Return the AUC of the ranking, and how many labels are flagged, rightly and not."""
    bags, y, groups = load_set(name)
    labels, wrong = flipped(y, seed) if flip else (y, np.zeros(len(y), dtype=bool))
    found = gmil.find_label_issues(bags, labels, groups=groups, random_state=seed, n_jobs=1)
    return {
        "set": name,
        "seed": seed,
        "flipped": flip,
        "bags": len(y),
        "wrong": int(wrong.sum()),
        "auc": auc(wrong, -found.evidence) if flip else None,
        **(bounds(bags, y, labels, groups, seed) if flip else {}),
        "flagged": int(found.flagged.sum()),
        "found": int((found.flagged & wrong).sum()),
        "names": [str(found.bag_ids[i]) for i in np.flatnonzero(found.flagged)] if not flip else [],
    }


def bounds(bags: Any, y: Any, labels: Any, groups: Any, seed: int) -> dict[str, float]:
    """Return the AUC of models taught by flipped labels, by right ones, and with flips corrected that are easy."""
    wrong, side = labels != y, np.where(labels == 1, -1, 1)
    doubt = side * left_out(bags, labels, groups, seed)
    mended = np.where(wrong & (doubt > np.quantile(doubt[~wrong], EASY)), y, labels)
    taught = {"taught": y, "mended": mended}
    found = {key: auc(wrong, side * left_out(bags, own, groups, seed)) for key, own in taught.items()}
    return {"alone": auc(wrong, doubt), **found}


def left_out(bags: Any, labels: Any, groups: Any, seed: int) -> Any:
    """Return the left-out decisions of one `WeightedGMIL`."""
    return gmil.WeightedGMIL(random_state=seed, n_jobs=1).fit(bags, labels, groups=groups).left_out_decisions_


def table(rows: Rows) -> None:
    """Print what was found on flipped labels, and what was flagged on labels as they are."""
    rates = "flipped labels flagged, % | false alarms of all, % | seed by seed, % | flagged as they are, %"
    print(f"| set | seeds | AUC alone | AUC | easy flips corrected | taught by right labels | {rates} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    means = []
    for name in SETS:
        own, clean = list(rows.of(set=name, flipped=True)), list(rows.of(set=name, flipped=False))
        if not own:
            continue
        flagged, right = (sum(row[key] for row in own) for key in ("flagged", "found"))
        means.append(
            [
                *(float(np.mean([row[key] for row in own])) for key in AREAS),
                100 * right / sum(row["wrong"] for row in own),
                100 * (1 - right / flagged) if flagged else 0.0,
                100 * float(np.mean([1 - row["found"] / row["flagged"] if row["flagged"] else 0.0 for row in own])),
                100 * float(np.mean([row["flagged"] / row["bags"] for row in clean])) if clean else float("nan"),
            ]
        )
        print(f"| {name} | {len(own)} | {_cells(means[-1])} |")
    print(f"| mean | | {_cells(np.nanmean(means, axis=0))} |")
    flagged, found, wrong = (sum(row[key] for row in rows.of(flipped=True)) for key in ("flagged", "found", "wrong"))
    print(
        f"all together: {found / wrong:.1%} of the flips flagged, {1 - found / flagged:.1%} of the flags false alarms"
    )
    for seeds in _seed_errors(rows):
        print(seeds)
    for row in rows.of(flipped=False):
        print(f"{row['set']}, as it is: {', '.join(row['names']) or 'none'}")


def _seed_errors(rows: Rows) -> Any:
    """Yield the standard error over seeds of every mean AUC."""
    seeds = sorted({row["seed"] for row in rows.of(flipped=True)})
    for key in AREAS if len(seeds) > 1 else ():
        means = [np.mean([row[key] for row in rows.of(seed=seed, flipped=True)]) for seed in seeds]
        yield f"standard error over seeds, {key}: {np.std(means, ddof=1) / np.sqrt(len(means)):.4f}"


def _cells(values: Any) -> str:
    return " | ".join(f"{v:.3f}" if i < len(AREAS) else f"{v:.1f}" for i, v in enumerate(values))


def main() -> None:
    """Run, or print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/label_issues.jsonl"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--unflipped", action="store_true", help="labels as they are, one seed")
    parser.add_argument("--sets", help="only these, with commas between them")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        table(Rows(options.table, "set", "seed", "flipped"))
        return
    rows = Rows(options.out, "set", "seed", "flipped")
    names = options.sets.split(",") if options.sets else SETS
    for seed in range(1 if options.unflipped else options.seeds):
        for name in names:
            if (name, seed, not options.unflipped) not in rows:
                rows.add(measure(name, seed, flip=not options.unflipped))


if __name__ == "__main__":
    main()
