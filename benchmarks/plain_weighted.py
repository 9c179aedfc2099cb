"""The recipe of WeightedGMIL as a careful user would write it with NumPy, SciPy and scikit-learn, fold by fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.spatial.distance import cdist
from scipy.special import expit, log_expit
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize

from gmil.model_selection.folds import estimator_seed, fold_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil import Bags

PENALTIES = np.logspace(-4, 3, 22) / 10
N_CENTERS = (200, 500)


def scalings(X: np.ndarray) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    standard, minmax = StandardScaler().fit(X), MinMaxScaler().fit(X)
    knots = np.sort(X, axis=0)
    if len(knots) > 2000:
        knots = knots[np.linspace(0, len(knots) - 1, 2000).round().astype(int)]

    def rank(Z: np.ndarray) -> np.ndarray:
        columns = [
            np.searchsorted(knots[:, j], Z[:, j], "left") + np.searchsorted(knots[:, j], Z[:, j], "right")
            for j in range(Z.shape[1])
        ]
        return np.column_stack(columns) / (2 * len(knots))

    return {
        "standard": standard.transform,
        "minmax": minmax.transform,
        "l2": normalize,
        "standard+l2": lambda Z: normalize(standard.transform(Z)),
        "minmax+l2": lambda Z: normalize(minmax.transform(Z)),
        "rank": rank,
    }


def describe(Z: np.ndarray, starts: np.ndarray, sizes: np.ndarray, centers: np.ndarray, *, nearest_only: bool) -> dict:
    views = {"nearest": np.minimum.reduceat(cdist(Z, centers), starts, axis=0)}
    if not nearest_only:
        mean = np.add.reduceat(Z, starts, axis=0) / sizes[:, None]
        square = np.add.reduceat(Z**2, starts, axis=0) / sizes[:, None]
        low, high = np.minimum.reduceat(Z, starts, axis=0), np.maximum.reduceat(Z, starts, axis=0)
        views["range"] = np.hstack([low, high])
        views["moments"] = np.hstack([mean, np.sqrt(np.maximum(square - mean**2, 0))])
    return views


def view_decisions(train: np.ndarray, test: np.ndarray, target: np.ndarray, metric: str) -> tuple[np.ndarray, ...]:
    """Return decisions about left-out training bags and about test bags of one view."""
    deviation = train.std(axis=0)
    deviation[deviation == 0] = 1
    mean = train.mean(axis=0)
    train, test = (train - mean) / deviation, (test - mean) / deviation
    between, across = cdist(train, train, metric), cdist(test, train, metric)
    width = np.median(between[np.triu_indices(len(between), 1)]) or 1.0
    kernel, rows = np.exp(-between / width), np.exp(-across / width)
    means = kernel.mean(axis=0)
    centred = kernel - means - means[:, None] + means.mean()
    rows = rows - rows.mean(axis=1)[:, None] - means + means.mean()
    trace = np.trace(centred) / len(centred)
    values, vectors = np.linalg.eigh(centred / trace)
    values = values.clip(0)
    offset = target.mean()
    rotated = vectors.T @ (target - offset)
    best = (np.inf, None, None)
    for penalty in PENALTIES * len(target):
        shrink = values / (values + penalty)
        leverage = (vectors**2) @ shrink + 1 / len(target)
        residual = (target - offset - vectors @ (shrink * rotated)) / np.maximum(1 - leverage, 1e-6)
        error = np.mean(residual**2)
        if error < best[0]:
            best = error, target - residual, vectors @ (rotated / (values + penalty))
    return best[1], rows / trace @ best[2] + offset


def combine(left_out: np.ndarray, test: np.ndarray, target: np.ndarray) -> np.ndarray:
    n, n_views = left_out.shape
    pull = np.sqrt(0.1 * n)
    design = np.vstack([left_out, pull * np.eye(n_views)])
    share = nnls(design, np.concatenate([target, np.full(n_views, pull / n_views)]))[0]
    inside, positive = left_out @ share, target > 0
    goal = np.where(positive, (positive.sum() + 1) / (positive.sum() + 2), 1 / ((~positive).sum() + 2))
    size = np.sqrt(np.mean(inside**2)) or 1.0

    def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
        slope = np.exp(p[0])
        odds = slope * inside / size + p[1]
        value = -np.mean(goal * log_expit(odds) + (1 - goal) * log_expit(-odds))
        off = (expit(odds) - goal) / n
        return value, np.array([off @ (slope * inside / size), off.sum()])

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-5, 5), (-30, 30)]).x
    return np.exp(found[0]) / size * (test @ share) + found[1]


def fit_and_decide(train: Bags, y: np.ndarray, test: Bags, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    X = train.instances
    n_centers = min(len(X), int(np.clip(len(X) // 100, *N_CENTERS)))
    rows = np.sort(generator.choice(len(X), n_centers, replace=False))
    target = np.where(y == y.max(), 1.0, -1.0)
    left_out, decisions = [], []
    for name, scale in scalings(X).items():
        Z, new = scale(X), scale(test.instances)
        alone = name == "minmax"
        seen = describe(Z, train.offsets[:-1], train.sizes, Z[rows], nearest_only=alone)
        unseen = describe(new, test.offsets[:-1], test.sizes, Z[rows], nearest_only=alone)
        for kind in seen:
            for metric in ("cityblock", "sqeuclidean"):
                inside, outside = view_decisions(seen[kind], unseen[kind], target, metric)
                left_out.append(inside)
                decisions.append(outside)
    return combine(np.column_stack(left_out), np.column_stack(decisions), target)


def cross_validated_accuracy(bags: Bags, y: np.ndarray, n_folds: int = 10) -> float:
    folds = fold_numbers(n_folds, y, None, 0)
    decisions = np.empty(len(bags))
    for fold in range(n_folds):
        test = folds == fold
        decisions[test] = fit_and_decide(bags[~test], y[~test], bags[test], estimator_seed(0, 0, fold))
    return float(np.mean((decisions > 0) == (y == y.max())))
