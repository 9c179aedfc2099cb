"""What do missing values cost? Accuracy on Musk1 with cells blanked at random, filled with training medians.

``python benchmarks/missing.py [--shares 0.01 0.05 0.2] [--masks 3] [--repeats 5] [--method weighted-gmil] [--jobs 1]``

Every mask blanks so many cells of all instances, anywhere. The folds and the seeds are those without gaps, so that the
difference is that of the gaps alone. The figures are those of ``gmil cv --missing median``.
"""

from __future__ import annotations

import argparse

import numpy as np

import gmil
from gmil.base import methods
from gmil.pipeline import imputing

ALLOWED = {0.01: 0.5, 0.05: 1.5, 0.2: 4.0}
"""Points of accuracy that so many gaps may cost at most."""


def blanked(bags: gmil.Bags, share: float, seed: int) -> gmil.Bags:
    """Return the bags with a share of their cells missing."""
    holes = bags.instances.copy()
    n_cells = round(share * holes.size)
    holes.flat[np.random.default_rng(seed).choice(holes.size, n_cells, replace=False)] = np.nan
    return bags.with_instances(holes, bags.feature_names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", type=float, nargs="+", default=list(ALLOWED))
    parser.add_argument("--masks", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--method", default="weighted-gmil")
    parser.add_argument("--missing", default="median", choices=["median", "drop"])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    bags, y = gmil.load_musk1(return_X_y=True)
    protocol = {"repeats": options.repeats, "n_processes": options.jobs}
    plain = methods()[options.method]()
    without = 100 * gmil.cross_validate(plain, bags, y, **protocol).accuracy()
    print(f"musk1, {options.method}, {options.repeats} x 10-fold; without gaps {without:.2f} per cent")
    print("| cells blanked | accuracy, each mask | mean | cost in points | allowed |\n|---|---|---|---|---|")
    for share in options.shares:
        model = imputing(plain, options.missing)
        found = [
            100 * gmil.cross_validate(model, blanked(bags, share, mask), y, **protocol).accuracy()
            for mask in range(options.masks)
        ]
        mean, allowed = float(np.mean(found)), ALLOWED.get(share)
        each = ", ".join(f"{accuracy:.2f}" for accuracy in found)
        limit = "-" if allowed is None else f"{allowed:.1f}"
        print(f"| {100 * share:g} % | {each} | {mean:.2f} | {without - mean:.2f} | {limit} |", flush=True)


if __name__ == "__main__":
    main()
