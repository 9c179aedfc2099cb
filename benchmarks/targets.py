"""Values, grades and times of bags: the methods of gmil beside references, on the same bags.

``GMIL_DATA_HOME=... python benchmarks/targets.py [PART ...] [--only METHOD ...]``, see ``PARTS`` at the end; by default
all. ``--only`` leaves out other rows of values and grades: references stay as they are when a method of gmil changes.

``affinities`` and the second half of ``ordinal`` need the four sets ``regression/CHEMBL*.npz`` in that folder, and take
their training and test bags as given. Everything else is generated, from seeds that no choice was made on. No parameter
is set for any of the data.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gmil
from gmil.model_selection.target_metrics import quadratic_kappa, r2
from gmil.target_checks import check_outcomes
from gmil.targets.cox import fit_cox

SEEDS = (101, 102, 103)
GRADES = 5


def kernel_ridge() -> Any:
    """Return kernel ridge regression on standardised vectors and values: it has no intercept of its own.

    Kernel, width and penalty are chosen by cross-validation of the training bags.
    """
    grid = {"kernel": ["rbf", "laplacian"], "alpha": np.logspace(-3, 1, 5), "gamma": np.logspace(-4, -1, 7)}
    search = GridSearchCV(KernelRidge(), grid, cv=KFold(5, shuffle=True, random_state=0))
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), search), transformer=StandardScaler())


def references() -> dict[str, Any]:
    """Return the regressors to be measured against; forests and kernels with settings that suit most data."""
    forest = RandomForestRegressor(300, min_samples_leaf=2, max_features=1 / 3, random_state=0)
    return {
        "forest on statistics": gmil.BagRegressor(forest),
        "forest on instances": gmil.SingleInstanceRegressor(clone(forest).set_params(n_estimators=100)),
        "kernel ridge on means": gmil.BagRegressor(kernel_ridge(), statistics=("mean",)),
        "ridge on statistics": gmil.BagRegressor(),
        "single instance, mean": gmil.SingleInstanceRegressor(),
        "single instance, median": gmil.SingleInstanceRegressor(aggregate="median"),
        "prime instance": gmil.PrimeInstanceRegressor(random_state=0),
        "MI-ClusterRegress": gmil.ClusterRegressor(random_state=0),
    }


ONLY: list[str] = []


def regressors() -> dict[str, Any]:
    """Return our regressor and the references, those of ``--only`` where that names some."""
    models = {"WeightedGMILRegressor": gmil.WeightedGMILRegressor(random_state=0), **references()}
    return {name: model for name, model in models.items() if not ONLY or name in ONLY}


def affinity_sets() -> dict[str, tuple[Any, Any, Any, Any]]:
    """Return name: training bags, their values, test bags, their values."""
    found = {}
    for path in sorted(Path(os.environ.get("GMIL_DATA_HOME", ".")).glob("regression/*.npz")):
        with np.load(path) as data:
            bags, y = gmil.Bags.from_ids(data["X"], data["bag_index"]), data["y"].astype(float)
            test = data["split"] == "test"
        found[path.stem] = bags[~test], y[~test], bags[test], y[test]
    return found


def table(title: str, rows: dict[str, list[float]], columns: list[str]) -> None:
    """Print a table in Markdown, the mean last."""
    print(f"\n{title}\n\n| | {' | '.join(columns)} | mean |\n|---|{'---|' * (len(columns) + 1)}")
    for name, values in rows.items():
        print(f"| {name} | {' | '.join(f'{value:.3f}' for value in [*values, float(np.mean(values))])} |", flush=True)


def affinities() -> None:
    """R2 on the four sets of affinities, training and test bags as given."""
    sets = affinity_sets()
    models = regressors()
    rows = {
        name: [r2(y, clone(model).fit(bags, values).predict(new)) for bags, values, new, y in sets.values()]
        for name, model in models.items()
    }
    table("R2, affinities", rows, list(sets))


def shared_bags(make: Any, seed: int) -> tuple[Any, Any]:
    """Return bags of two to six noisy copies of what a function of Friedman's is of, and its values."""
    rng = np.random.default_rng(seed)
    rows, y = make(500, noise=0.0, random_state=seed)
    owners = np.repeat(np.arange(500), rng.integers(2, 7, 500))
    instances = rows[owners] + 0.3 * rows.std(axis=0) * rng.normal(size=(len(owners), rows.shape[1]))
    return gmil.Bags.from_ids(instances, owners), y + 0.1 * y.std() * rng.normal(size=500)


def shared() -> None:
    """R2 where the instances of a bag tell the value together, as conformers do: 300 training bags, 200 test bags."""
    models = regressors()
    makers = {"Friedman 1": make_friedman1, "Friedman 2": make_friedman2, "Friedman 3": make_friedman3}
    rows: dict[str, list[float]] = {name: [] for name in models}
    for make in makers.values():
        made = [shared_bags(make, seed) for seed in SEEDS]
        for name, model in models.items():
            found = [r2(y[300:], clone(model).fit(bags[:300], y[:300]).predict(bags[300:])) for bags, y in made]
            rows[name].append(float(np.mean(found)))
    table("R2, all instances of a bag tell its value, mean of three seeds", rows, list(makers))


def _sized(rng: Any, low: int, high: int) -> Any:
    """Return which of 500 bags every instance is of."""
    return np.repeat(np.arange(500), rng.integers(low, high + 1, 500))


def pixel_bags(seed: int) -> tuple[Any, Any]:
    """Pixels of fields: ten bands follow three causes of the yield; up to two fifths of a field are under clouds."""
    rng = np.random.default_rng(seed)
    causes, owners = rng.normal(size=(500, 3)), _sized(rng, 15, 40)
    pixels = (causes @ rng.normal(size=(3, 10)))[owners] + rng.normal(size=(len(owners), 10))
    clouds = rng.random(len(owners)) < 0.4 * rng.random(500)[owners]
    pixels[clouds] += 6 + 2 * rng.normal(size=(clouds.sum(), 1))
    return gmil.Bags.from_ids(pixels, owners), causes[:, 0] + causes[:, 1] ** 2 / 2 + np.sin(2 * causes[:, 2])


def conformer_bags(seed: int) -> tuple[Any, Any]:
    """Shapes of molecules: the one that fits best, by a function that is not linear, has the affinity."""
    rng = np.random.default_rng(seed)
    owners = _sized(rng, 2, 8)
    shapes = rng.normal(size=(500, 6))[owners] + 0.7 * rng.normal(size=(len(owners), 6))
    fits = shapes[:, 0] - shapes[:, 1] + np.sin(2 * shapes[:, 2])
    return gmil.Bags.from_ids(shapes, owners), np.maximum.reduceat(fits, np.unique(owners, return_index=True)[1])


def patch_bags(seed: int, *, count: bool = False) -> tuple[Any, Any]:
    """Patches of slides: the share that differs in one direction is the score; or frames, and how many do."""
    rng = np.random.default_rng(seed)
    owners, share, direction = _sized(rng, 15, 40), rng.beta(1, 2, 500), rng.normal(size=20)
    differ = rng.random(len(owners)) < share[owners]
    patches = rng.normal(size=(len(owners), 20)) + 2.5 * differ[:, None] * direction / np.linalg.norm(direction)
    found = np.bincount(owners, differ)
    return gmil.Bags.from_ids(patches, owners), found if count else found / np.bincount(owners)


def quantile_bags(seed: int) -> tuple[Any, Any]:
    """Samples of a site: nine of ten are below the value, by a linear function; sites differ in their spread."""
    rng = np.random.default_rng(seed)
    owners, spread = _sized(rng, 15, 30), np.exp(0.3 * rng.normal(size=500))
    samples = rng.normal(size=(500, 10))[owners] / 2 + spread[owners, None] * rng.normal(size=(len(owners), 10))
    level = samples @ rng.normal(size=10) / np.sqrt(10)
    return gmil.Bags.from_ids(samples, owners), np.array([np.quantile(level[owners == i], 0.9) for i in range(500)])


def cell_bags(seed: int) -> tuple[Any, Any]:
    """Cells of a person: shares of six types change with age, and so do the cells of one type."""
    rng = np.random.default_rng(seed)
    age, owners, types = rng.uniform(-1, 1, 500), _sized(rng, 20, 50), 2 * rng.normal(size=(6, 20))
    odds = np.exp(rng.normal(size=6) + 0.8 * np.outer(age, rng.normal(size=6)) + 0.5 * rng.normal(size=(500, 6)))
    below = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)[owners]
    kind = (rng.random(len(owners))[:, None] > below).sum(axis=1).clip(0, 5)
    cells = types[kind] + rng.normal(size=(len(owners), 20)) + 0.6 * rng.normal(size=(500, 20))[owners]
    cells += np.outer((kind == 2) * age[owners], 0.8 * rng.normal(size=20))
    return gmil.Bags.from_ids(cells, owners), age


def spread_bags(seed: int) -> tuple[Any, Any]:
    """Readings of a machine: how much three of ten channels vary is the wear."""
    rng = np.random.default_rng(seed)
    wear, owners = rng.normal(size=500), _sized(rng, 5, 15)
    readings = rng.normal(size=(len(owners), 10)) + rng.normal(size=(500, 10))[owners] / 2
    readings[:, :3] *= np.exp(wear / 2)[owners, None]
    return gmil.Bags.from_ids(readings, owners), wear


def regimes() -> None:
    """R2 where bags tell their values in other ways: 300 training bags, 200 test bags, a tenth of noise."""
    makers = {
        "pixels, mean": pixel_bags,
        "conformers, best": conformer_bags,
        "patches, share": patch_bags,
        "frames, count": partial(patch_bags, count=True),
        "samples, quantile": quantile_bags,
        "cells, types": cell_bags,
        "readings, spread": spread_bags,
    }
    names = [name for name in regressors() if not name.startswith(("single", "prime", "forest on i"))]
    rows: dict[str, list[float]] = {name: [] for name in names}
    for make in makers.values():
        found: dict[str, list[float]] = {name: [] for name in names}
        for seed in SEEDS:
            bags, values = make(seed)
            y = values + 0.1 * values.std() * np.random.default_rng(seed + 1000).normal(size=500)
            for name in names:
                model = regressors()[name].fit(bags[:300], y[:300])
                found[name].append(r2(y[300:], model.predict(bags[300:])))
        for name in names:
            rows[name].append(float(np.mean(found[name])))
    table("R2, seven ways in which bags tell values, mean of three seeds", rows, list(makers))


def max_bags(seed: int) -> tuple[Any, Any, Any]:
    """Return bags whose value is the largest of a linear function of their instances, values, and who has it."""
    rng = np.random.default_rng(seed)
    instances, direction = rng.normal(size=(500 * 15, 20)), rng.normal(size=20) / np.sqrt(20)
    values = (instances @ direction).reshape(500, 15)
    largest = (values == values.max(axis=1, keepdims=True)).ravel()
    return gmil.Bags(instances, np.arange(501) * 15), values.max(axis=1) + 0.1 * rng.normal(size=500), largest


def witness_bags(seed: int, n_features: int) -> tuple[Any, Any, Any]:
    """Return bags in which a tenth of the instances carries the value, values, and which instances these are."""
    options = {"witness_rate": 0.1, "bag_size": (10, 20), "n_features": n_features}
    made = gmil.make_bags(500, target="regression", random_state=seed, **options)
    return made.bags, made.y, made.instance_y > 0


def by_true_witnesses(bags: Any, y: Any, marks: Any) -> float:
    """Return the R2 of ridge regression on the mean of the true witnesses: what no method can know."""
    sums = np.add.reduceat(bags.instances * marks[:, None], bags.offsets[:-1])
    means = sums / np.add.reduceat(marks.astype(float), bags.offsets[:-1])[:, None]
    return r2(y[300:], RidgeCV(np.logspace(-2, 3, 11)).fit(means[:300], y[:300]).predict(means[300:]))


def witnesses() -> None:
    """R2 where few instances carry the value: 300 training bags, 200 test bags."""
    models = regressors()
    kinds = {
        "10 features": partial(witness_bags, n_features=10),
        "30 features": partial(witness_bags, n_features=30),
        "maximum": max_bags,
    }
    for kind, make in kinds.items():
        rows: dict[str, list[float]] = {name: [] for name in ["ridge on true witnesses", *models]}
        for seed in SEEDS:
            bags, y, marks = make(seed)
            rows["ridge on true witnesses"].append(by_true_witnesses(bags, y, marks))
            for name, model in models.items():
                rows[name].append(r2(y[300:], clone(model).fit(bags[:300], y[:300]).predict(bags[300:])))
        table(f"R2, a tenth are witnesses: {kind}", rows, [f"seed {seed}" for seed in SEEDS])


def survival() -> None:
    """Concordance on generated bags whose hazard follows the riskiest instance: 300 training bags, 300 test bags."""
    for n_features in (10, 30):
        rows: dict[str, list[float]] = {}
        for seed in SEEDS:
            options = {"witness_rate": 0.1, "bag_size": (10, 20), "n_features": n_features}
            made = gmil.make_bags(600, target="survival", random_state=seed, **options)
            largest = np.maximum.reduceat(made.instance_risk, made.bags.offsets[:-1])[:, None]
            true = largest @ fit_cox(largest[:300], check_outcomes(made.y[:300]), 1e-6)
            found = {"Cox on the largest true risk": true[300:]}
            models = {
                "WeightedGMILSurvival": gmil.WeightedGMILSurvival(random_state=0),
                "Cox on means": gmil.BagCox(random_state=0),
                "Cox on statistics": gmil.BagCox(("min", "mean", "max", "sd"), random_state=0),
                **_forest(),
            }
            for name, model in models.items():
                found[name] = model.fit(made.bags[:300], made.y[:300]).predict(made.bags[300:])
            for name, risk in found.items():
                rows.setdefault(name, []).append(gmil.concordance(made.y[300:], risk))
        table(f"Concordance, {n_features} features", rows, [f"seed {seed}" for seed in SEEDS])


def _forest() -> dict[str, Any]:
    """Return a random survival forest on statistics where scikit-survival is installed, which gmil does not need."""
    try:
        from sksurv.ensemble import RandomSurvivalForest
    except ImportError:
        return {}
    return {
        "survival forest on statistics": gmil.make_pipeline(
            gmil.BagSummaries(), RandomSurvivalForest(200, min_samples_leaf=5, random_state=0)
        )
    }


def ordinal() -> None:
    """Quadratic kappa of grades: generated ones of the size of UCF-Crime, and affinities cut into five."""
    names = ("WeightedGMILOrdinal", "regression, rounded", "WeightedGMIL")
    rows: dict[str, list[float]] = {name: [] for name in names if not ONLY or name in ONLY}
    columns = []
    for seed in SEEDS[:2]:
        options = {"n_features": 64, "bag_size": (60, 124), "witness_rate": 0.1, "n_classes": GRADES}
        bags, y = gmil.make_bags(830, target="ordinal", random_state=seed, return_X_y=True, **options)
        columns.append(f"generated, seed {seed}")
        _add_kappas(rows, bags[:550], y[:550], bags[550:], y[550:])
    for name, (bags, values, new, y) in affinity_sets().items():
        cuts = np.quantile(values, np.arange(1, GRADES) / GRADES)
        columns.append(name)
        _add_kappas(rows, bags, np.searchsorted(cuts, values), new, np.searchsorted(cuts, y))
    table("Quadratic kappa, five grades", rows, columns)


def _add_kappas(rows: dict[str, list[float]], bags: Any, y: Any, new: Any, new_y: Any) -> None:
    models = {
        "WeightedGMILOrdinal": gmil.WeightedGMILOrdinal(random_state=0),
        "regression, rounded": gmil.WeightedGMILRegressor(random_state=0),
        "WeightedGMIL": gmil.WeightedGMIL(random_state=0),
    }
    for name in rows:
        predicted = models[name].fit(bags, y).predict(new)
        rows[name].append(quadratic_kappa(new_y, np.clip(np.rint(predicted), 0, GRADES - 1)))


def coverage() -> None:
    """How often intervals hold the value of a test bag."""
    rows: dict[str, list[float]] = {}
    sets = {f"seed {seed}": witness_bags(seed, 10) for seed in SEEDS}
    splits = {name: (bags[:300], y[:300], bags[300:], y[300:]) for name, (bags, y, _) in sets.items()}
    splits |= affinity_sets()
    for bags, y, new, new_y in splits.values():
        model = gmil.WeightedGMILRegressor(random_state=0).fit(bags, y)
        for wanted in (0.8, 0.9, 0.95):
            low, high = model.predict_interval(new, coverage=wanted).T
            rows.setdefault(f"{wanted:.0%} wanted", []).append(float(np.mean((low <= new_y) & (new_y <= high))))
    table("Coverage of intervals", rows, list(splits))


def cost() -> None:
    """CPU seconds of a fit, beside WeightedGMIL on the same bags; the best of three, in turns."""
    rows: dict[str, list[float]] = {}
    for n_bags, n_features in ((300, 30), (800, 64)):
        options = {"bag_size": (10, 20), "n_features": n_features, "witness_rate": 0.1}
        times = gmil.make_bags(n_bags, target="survival", random_state=1, **options)
        grades = np.argsort(np.argsort(times.risk)) * GRADES // n_bags
        models = {
            "WeightedGMIL, two classes": (gmil.WeightedGMIL(random_state=0), times.risk > 0),
            "WeightedGMIL, five classes": (gmil.WeightedGMIL(random_state=0), grades),
            "WeightedGMILRegressor": (gmil.WeightedGMILRegressor(random_state=0), times.risk),
            "WeightedGMILOrdinal": (gmil.WeightedGMILOrdinal(random_state=0), grades),
            "WeightedGMILSurvival": (gmil.WeightedGMILSurvival(random_state=0), times.y),
        }
        best = dict.fromkeys(models, np.inf)
        for _ in range(3):
            for name, (model, y) in models.items():
                start = time.process_time()
                clone(model).fit(times.bags, y)
                best[name] = min(best[name], time.process_time() - start)
        for name, seconds in best.items():
            rows.setdefault(name, []).append(seconds)
    table("CPU seconds of a fit", rows, ["300 bags x 30 features", "800 bags x 64 features"])


PARTS = {part.__name__: part for part in (affinities, shared, regimes, witnesses, survival, ordinal, coverage, cost)}


def main() -> None:
    """Run the parts that are named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--only", nargs="+", default=[], help="The rows to print, of values and grades.")
    asked = parser.parse_args()
    ONLY.extend(asked.only)
    for name in asked.parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
