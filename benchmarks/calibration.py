"""Are the probabilities of WeightedGMIL true? Brier scores and reliability of out-of-fold probabilities.

``GMIL_DATA_HOME=... python benchmarks/calibration.py [--repeats 5] [--seed 0] [--plot docs/results/reliability.svg]``
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.special import expit

import gmil
from ablation import available
from gmil.reporting.plots.reliability import Reliability, reliability_figure


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
        curves[name] = Reliability.of(probabilities, positive)
        print(f"| {name} | {brier:.3f} | {base:.3f} | {curves[name].gap():.3f} |", flush=True)
    if options.plot is not None:
        reliability_figure(curves, "Reliability of WeightedGMIL").save(options.plot.with_suffix(""))


if __name__ == "__main__":
    main()
