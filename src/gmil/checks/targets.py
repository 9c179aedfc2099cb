"""Is there anything to learn of values or times? Controls, shuffled targets, and the size of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from gmil.checks.findings import DataCheck, Finding
from gmil.checks.repeats import repeat_findings
from gmil.checks.signal import LEVEL, permutation_p_value, shuffle_labels, without_gaps
from gmil.checks.values import value_findings
from gmil.errors import BagValidationError
from gmil.model_selection.folds import fold_numbers
from gmil.model_selection.survival import concordance
from gmil.model_selection.target_metrics import r2
from gmil.target_checks import Outcomes, check_outcomes, check_values
from gmil.targets.hazards import martingale_residuals
from gmil.targets.regression import WeightedGMILRegressor

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.checks.findings import Level
    from gmil.engine.arrays import Floats, Integers

FOLDS = 5
_KNOTS = 4


class MeanValue(RegressorMixin, BaseEstimator):
    """Predicts the mean of the training bags, of values or of events beyond those expected."""

    def fit(self, X: Bags, y: Any) -> Self:  # noqa: ARG002
        """Take the mean."""
        self.value_ = np.mean(values_of(y), axis=0)
        return self

    def predict(self, X: Bags) -> Floats:
        """Return it for every bag."""
        return np.full((len(X), *self.value_.shape), self.value_)


class SizeValue(RegressorMixin, BaseEstimator):
    """Ridge regression on a spline of the logarithm of the number of instances, and on nothing else."""

    def fit(self, X: Bags, y: Any) -> Self:
        """Fit on the sizes of the training bags."""
        sizes = np.log(X.sizes)[:, None]
        knots = np.unique(np.quantile(sizes, np.linspace(0, 1, _KNOTS)))
        steps: list[Any] = [RidgeCV(np.logspace(-3, 3, 7))]
        if len(knots) > 1:
            steps.insert(0, SplineTransformer(degree=2, knots=knots[:, None], extrapolation="constant"))
        self.model_ = make_pipeline(*steps).fit(sizes, values_of(y))
        return self

    def predict(self, X: Bags) -> Floats:
        """Return what bags of that size have."""
        return np.asarray(self.model_.predict(np.log(X.sizes)[:, None]), dtype=np.float64)


class MeanRisk(MeanValue):
    """Gives every bag the same risk."""

    _target = "survival"


class SizeRisk(SizeValue):
    """Predicts events beyond those expected by the size of the bag alone."""

    _target = "survival"


CONTROLS = {
    "regression": {"mean": ("mean of the training bags", MeanValue), "bag-size": ("bag size alone", SizeValue)},
    "survival": {"mean": ("one risk for all", MeanRisk), "bag-size": ("bag size alone", SizeRisk)},
}
"""What every method must beat, for every kind of target: its title, and what it is."""


def values_of(y: Any) -> Floats:
    """Return what is to be predicted as numbers: values, or events less those expected."""
    given = np.asarray(y)
    return given.astype(np.float64) if given.dtype.names is None else martingale_residuals(check_outcomes(given))


def check_target_data(
    bags: Bags, y: Any, target: str, groups: Integers | None, *, n_permutations: int, random_state: int
) -> DataCheck:
    """Check bags with values or times: what `gmil.check_data` does for classes."""
    outcomes = check_outcomes(y, bags) if target == "survival" else None
    values = check_values(y, bags, WeightedGMILRegressor()) if outcomes is None else martingale_residuals(outcomes)
    if values.ndim > 1:
        msg = "check_data takes one value per bag. Pass one column of y."
        raise BagValidationError(msg, parameter="y")
    labels = (values > np.median(values)).astype(np.int64)
    findings = [*value_findings(bags), *repeat_findings(bags, labels, groups)]
    folds = fold_numbers(FOLDS, labels, groups, random_state)
    truth: Any = values if outcomes is None else outcomes
    size = _measure(truth, _by_size(bags, values, folds), folds)
    generator = np.random.default_rng(random_state)
    order = np.arange(len(values))
    shuffles = [order, *(shuffle_labels(order, groups, generator) for _ in range(n_permutations))]
    held_out = _held_out(bags, values[np.stack(shuffles, axis=1)], folds, groups, random_state)
    found = [_measure(_shuffled(truth, rows), held_out[:, i], folds) for i, rows in enumerate(shuffles)]
    signal = [_permutation_finding(found[0], np.array(found[1:]), target), _size_finding(found[0], size, target)]
    better = [finding.level == "ok" for finding in signal]
    verdict = "no better than chance" if not better[0] else "no better than bag size" if not better[1] else None
    return DataCheck(verdict or "better than chance and than bag size", [*findings, *signal])


def _shuffled(truth: Any, rows: Integers) -> Any:
    return Outcomes(truth.event[rows], truth.time[rows]) if isinstance(truth, Outcomes) else truth[rows]


def _by_size(bags: Bags, values: Floats, folds: Integers) -> Floats:
    found = np.empty(len(values))
    for fold in np.unique(folds):
        test = folds == fold
        found[test] = SizeValue().fit(bags[~test], values[~test]).predict(bags[test])
    return found


def _held_out(bags: Bags, columns: Floats, folds: Integers, groups: Any, seed: int) -> Floats:
    """Return out-of-fold predictions for every order of the targets: all are columns of one problem."""
    found = np.empty(columns.shape)
    for fold in np.unique(folds):
        test = folds == fold
        model = WeightedGMILRegressor(50, scales=("standard",), witness_model=False, random_state=seed)
        training, held_out = without_gaps(bags[~test], bags[test])
        model.fit(training, columns[~test], groups=None if groups is None else groups[~test])
        found[test] = model.predict(held_out)
    return found


def _measure(truth: Any, predictions: Floats, folds: Integers) -> float:
    """Return R2 of values, or the concordance of risks, the mean over folds where there is one."""
    if not isinstance(truth, Outcomes):
        return r2(truth, predictions)
    found = []
    for fold in np.unique(folds):
        own = np.flatnonzero(folds == fold)
        if truth.event[own].any() and len(np.unique(truth.time[own])) > 1:
            found.append(concordance(np.column_stack([truth.event[own], truth.time[own]]), predictions[own]))
    return float(np.mean(found))


def _name(target: str) -> str:
    return "R²" if target == "regression" else "concordance"


def _permutation_finding(value: float, by_chance: Floats, target: str) -> Finding:
    p_value = permutation_p_value(value, by_chance)
    text = (
        f"Cross-validated {_name(target)} {value:.3f}; with {len(by_chance)} permutations of the targets "
        f"{by_chance.mean():.3f} on average and {by_chance.max():.3f} at most (permutation test: p = {p_value:.2g})."
    )
    return Finding("shuffled targets", "ok" if p_value <= LEVEL else "warning", p_value, text)


def _size_finding(value: float, size: float, target: str) -> Finding:
    level: Level = "ok" if value > size else "warning"
    text = f"{_name(target)} {value:.3f} with the instances, {size:.3f} with the size of the bag alone."
    return Finding("instances against bag size", level, value - size, text)
