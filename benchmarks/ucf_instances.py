"""How well instance scores find the annotated clips of UCF-Crime, by models that never saw the video.

``GMIL_DATA_HOME=... python benchmarks/ucf_instances.py [seed]``

The kind of score is chosen on generated bags first: the one with the larger mean area within bags. The area is
computed within every video that has clips of both kinds, and averaged over videos.
"""

from __future__ import annotations

import sys

import numpy as np

import gmil
from gmil.model_selection.folds import fold_numbers
from gmil.model_selection.instance_metrics import aucs_within_bags

KINDS = ("effect", "alone")


def areas_within(bags: gmil.Bags, truth: np.ndarray, scores: np.ndarray, which: np.ndarray) -> list[float]:
    found = aucs_within_bags(truth, scores, bags.offsets)[which]
    return found[~np.isnan(found)].tolist()


def chosen_kind() -> str:
    areas: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for seed in range(6):
        for separation in (2.0, 4.0):
            data = gmil.make_bags(
                200, n_features=20, bag_size=(20, 60), witness_rate=0.15, separation=separation, random_state=seed
            )
            test = np.arange(200) % 4 == 0
            model = gmil.WeightedGMIL(random_state=seed).fit(data.bags[~test], data.y[~test])
            for kind in KINDS:
                scores = model.score_instances(data.bags, kind=kind)
                areas[kind] += areas_within(data.bags, data.instance_y, scores, test & (data.y == 1))
    for kind in KINDS:
        print(f"generated bags, kind={kind!r}: {np.mean(areas[kind]):.3f}")
    return max(KINDS, key=lambda kind: np.mean(areas[kind]))


def main(seed: int) -> None:
    kind = chosen_kind()
    data = gmil.fetch_ucf_crime()
    folds = fold_numbers(10, data.y, None, seed)
    areas: dict[str, list[float]] = {name: [] for name in KINDS}
    decisions = np.empty(len(data.y))
    for fold in range(10):
        test = folds == fold
        model = gmil.WeightedGMIL(random_state=fold).fit(data.bags[~test], data.y[~test])
        held_out = data.bags[test]
        decisions[test] = model.decision_function(held_out)
        truth = data.instance_y[np.repeat(test, data.bags.sizes)]
        for name in KINDS:
            scores = model.score_instances(held_out, kind=name)
            areas[name] += areas_within(held_out, truth, scores, data.y[test] == 1)
        print(f"fold {fold}: {len(areas[kind])} videos so far, {np.mean(areas[kind]):.3f}", flush=True)
    for name in KINDS:
        spread = np.std(areas[name], ddof=1) / np.sqrt(len(areas[name]))
        mark = ", chosen on generated bags" if name == kind else ""
        print(f"kind={name!r}{mark}: mean {np.mean(areas[name]):.3f} ± {spread:.3f} over {len(areas[name])} videos")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
