"""Are the probabilities of WeightedGMIL true? Brier scores and reliability of out-of-fold probabilities.

``GMIL_DATA_HOME=... python benchmarks/calibration.py [--repeats 5] [--seed 0] [--plot docs/reliability.svg]``
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.special import expit

import gmil
from ablation import available
from gmil.reporting.plots.charts import Axis, Kind, Series, line_chart
from gmil.reporting.plots.figure import Figure

EDGES = np.linspace(0, 1, 11)


def reliability(probabilities: np.ndarray, positive: np.ndarray) -> list[tuple[float, float, int]]:
    """Return mean probability, share of positives and number of predictions in every tenth that is not empty."""
    tenth = np.clip(np.digitize(probabilities, EDGES) - 1, 0, 9)
    return [
        (float(probabilities[tenth == i].mean()), float(positive[tenth == i].mean()), int((tenth == i).sum()))
        for i in range(10)
        if (tenth == i).any()
    ]


def plot(curves: dict[str, list[tuple[float, float, int]]], path: Path) -> None:
    shapes = ("circle", "square", "diamond", "up", "right")
    kinds = [Kind(name, i, shapes[i % len(shapes)]) for i, name in enumerate(curves)]
    series = [
        Series([(p, seen) for p, seen, _ in curve], kind) for curve, kind in zip(curves.values(), kinds, strict=True)
    ]
    calibrated = Kind("calibrated", 7, line="line dashed", size=0.5)
    axes = Axis("predicted probability", 0, 1), Axis("share of positive bags", -0.02, 1.02)
    chart = line_chart("Reliability", [Series([(0, 0), (1, 1)], calibrated), *series], *axes, width=460, height=460)
    Figure("Reliability of WeightedGMIL", "", [("", chart)], legend=[*kinds, calibrated]).save(path.with_suffix(""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, default=None)
    options = parser.parse_args()
    curves = {}
    print("| | Brier score | of the class shares | mean gap |\n|---|---|---|---|")
    for name, (bags, y) in available().items():
        result = gmil.cross_validate(gmil.WeightedGMIL(), bags, y, repeats=options.repeats, random_state=options.seed)
        probabilities = expit(result.decisions[0]).ravel()
        positive = np.tile(y == result.positive_label, options.repeats)
        brier, base = np.mean((probabilities - positive) ** 2), positive.mean() * (1 - positive.mean())
        curves[name] = reliability(probabilities, positive)
        gap = sum(n * abs(p - share) for p, share, n in curves[name]) / len(positive)
        print(f"| {name} | {brier:.3f} | {base:.3f} | {gap:.3f} |", flush=True)
    if options.plot is not None:
        plot(curves, options.plot)


if __name__ == "__main__":
    main()
