"""What each part of WeightedGMIL is worth: one part changed at a time, the same folds and seeds for all.

``GMIL_DATA_HOME=... python benchmarks/ablation.py [--repeats 2] [--seed 1000] [--only NAME,...] [--out FILE]``

The folds are seeded by 1000 and following, which no other figure uses. Parts that are no parameters are exchanged for
the time of a run. Differences are to the first row, over all repeats and sets.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

import gmil
from gmil.errors import DatasetError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

SETS = {
    "Musk1": gmil.load_musk1,
    "Musk2": gmil.load_musk2,
    "Elephant": gmil.fetch_elephant,
    "Fox": gmil.fetch_fox,
    "Tiger": gmil.fetch_tiger,
}
WEIGHTED = "gmil.weighted"
NO_RANKS = ("standard", "minmax", "l2", "standard+l2", "minmax+l2")


def equal_shares(left_out: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return np.full(left_out.shape[1], 1 / left_out.shape[1])


def best_alone(left_out: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    errors = weights @ (left_out - target[:, None]) ** 2
    return (np.arange(left_out.shape[1]) == errors.argmin()).astype(float)


def best_five(left_out: np.ndarray, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    errors = weights @ (left_out - target[:, None]) ** 2
    return np.isin(np.arange(left_out.shape[1]), np.argsort(errors)[:5]) / 5


def kernels(*names: str) -> AbstractContextManager[Any]:
    return mock.patch(f"{WEIGHTED}.estimator.KERNELS", names)


def stacking(how: Any) -> AbstractContextManager[Any]:
    return mock.patch(f"{WEIGHTED}.weighing.ridge_weights", how)


VARIANTS: dict[str, tuple[dict[str, Any], AbstractContextManager[Any]]] = {
    "as it is": ({}, nullcontext()),
    "centres by k-means": ({"centers": "k-means"}, nullcontext()),
    "centres ranked by Eq. 6": ({"centers": "ranked"}, nullcontext()),
    "no codebook": ({"views": ("range", "moments")}, nullcontext()),
    "codebook alone": ({"views": ("nearest",)}, nullcontext()),
    **{f"{n} centres": ({"n_centers": n}, nullcontext()) for n in (20, 50, 100, 200, 500)},
    "without the range": ({"views": ("moments", "nearest")}, nullcontext()),
    "without the moments": ({"views": ("range", "nearest")}, nullcontext()),
    "without ranks": ({"scales": NO_RANKS}, nullcontext()),
    "ranks alone": ({"scales": ("rank",)}, nullcontext()),
    "z alone": ({"scales": ("standard",)}, nullcontext()),
    "Laplacian kernels alone": ({}, kernels("laplacian")),
    "Gaussian kernels alone": ({}, kernels("gaussian")),
    "the best view alone": ({}, stacking(best_alone)),
    "mean of the best five views": ({}, stacking(best_five)),
    "mean of all views": ({}, stacking(equal_shares)),
    "linear vote": ({"vote": "linear"}, nullcontext()),
}


def accuracies(parameters: dict[str, Any], bags: gmil.Bags, y: np.ndarray, repeats: int, seed: int) -> np.ndarray:
    model = gmil.WeightedGMIL(**parameters)
    result = gmil.cross_validate(model, bags, y, repeats=repeats, random_state=seed)
    return 100 * result.fold_accuracies()[0].mean(axis=1)


def row(name: str, found: dict[str, np.ndarray], base: dict[str, np.ndarray]) -> str:
    means = [float(values.mean()) for values in found.values()]
    differences = np.mean([found[key] - base[key] for key in found], axis=0)  # one for every repeat
    spread = f" ± {differences.std(ddof=1):.1f}" if len(differences) > 1 else ""
    cells = [*(f"{mean:.1f}" for mean in means), f"{np.mean(means):.1f}", f"{differences.mean():+.1f}{spread}"]
    return f"| {name} | {' | '.join(cells)} |"


def available() -> dict[str, tuple[gmil.Bags, np.ndarray]]:
    found = {}
    for name, load in SETS.items():
        try:
            found[name] = load(return_X_y=True)
        except DatasetError:
            print(f"{name} is not here and is left out.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", default=",".join(VARIANTS), help="which variants, separated by commas")
    parser.add_argument("--out", type=Path, default=None, help="write the table there")
    options = parser.parse_args()
    sets = available()
    lines = [f"| | {' | '.join(sets)} | mean | difference |", "|---|" + "---|" * (len(sets) + 2)]
    base: dict[str, np.ndarray] = {}
    for name in options.only.split(","):
        parameters, exchanged = VARIANTS[name]
        with exchanged:
            found = {key: accuracies(parameters, *data, options.repeats, options.seed) for key, data in sets.items()}
        base = base or found
        lines.append(row(name, found, base))
        print(lines[-1], flush=True)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
