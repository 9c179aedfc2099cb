"""Seven events of UCF-Crime, each against all other videos: mean AUC of WeightedGMIL over ten folds.

``GMIL_DATA_HOME=... python benchmarks/ucf_events.py [seed]``
"""

from __future__ import annotations

import sys

import numpy as np

import gmil
from gmil.model_selection.folds import fold_numbers
from gmil.model_selection.metrics import auc


def main(seed: int) -> None:
    data = gmil.fetch_ucf_crime()
    shown = np.array(data.events)
    events = [event for event in np.unique(shown) if event != "Normal"]
    labels = np.column_stack([shown == event for event in events]).astype(int)
    folds = fold_numbers(10, shown, None, seed)
    areas = []
    for fold in range(10):
        test = folds == fold
        model = gmil.WeightedGMIL(random_state=fold).fit(data.bags[~test], labels[~test])
        decisions = model.decision_function(data.bags[test])
        areas.append([auc(labels[test, i] == 1, decisions[:, i]) for i in range(len(events))])
    for event, area in zip(events, np.mean(areas, axis=0), strict=True):
        print(f"{event}: {area:.3f}")
    print(f"mean: {np.mean(areas):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
