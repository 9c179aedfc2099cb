"""Is there anything to learn of values or times? Controls, shuffled targets, and the size of bags."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from gmil.checks.findings import DataCheck, Finding, infinite, not_assessable
from gmil.checks.repeats import repeat_findings
from gmil.checks.signal import LEVEL, permutation_p_value, shuffle_labels, without_gaps
from gmil.checks.values import value_findings
from gmil.errors import BagValidationError, count_of
from gmil.model_selection.folds import fold_numbers
from gmil.model_selection.survival import concordance
from gmil.model_selection.target_metrics import r2, resampled_rows
from gmil.target_checks import Outcomes, check_outcomes, check_values
from gmil.targets.hazards import martingale_residuals
from gmil.targets.regression import WeightedGMILRegressor

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers

FOLDS = 5
_KNOTS = 4
_RESAMPLES = 300
"""Enough for a standard error."""


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
    high = (values > np.median(values)).astype(np.int64)
    findings = [*value_findings(bags), *repeat_findings(bags, high, groups)]
    obstacle = infinite(findings) or _too_few(len(bags), groups)
    if obstacle is not None:
        return not_assessable(obstacle, findings, "shuffled targets")
    ranks = np.argsort(np.argsort(values, kind="stable"))
    folds = fold_numbers(FOLDS, 2 * ranks // len(ranks), groups, random_state)  # halves, also where values are equal
    truth: Any = values if outcomes is None else outcomes
    by_size = _by_size(bags, values, folds)
    generator = np.random.default_rng(random_state)
    order = np.arange(len(values))
    shuffles = [order, *(shuffle_labels(order, groups, generator) for _ in range(n_permutations))]
    held_out = _held_out(bags, values[np.stack(shuffles, axis=1)], folds, groups, random_state)
    found = [_measure(_shuffled(truth, rows), held_out[:, i], folds) for i, rows in enumerate(shuffles)]
    if np.isnan(found[0]):
        return not_assessable("in no fold is it known which event came first", findings, "shuffled targets")
    signal = [
        _permutation_finding(found[0], np.array(found[1:]), target),
        _size_finding(truth, held_out[:, 0], by_size, folds, groups, random_state),
    ]
    better = [finding.level == "ok" for finding in signal]
    verdict = "no better than chance" if not better[0] else "no better than bag size" if not better[1] else None
    return DataCheck(verdict or "better than chance and than bag size", [*findings, *signal])


def _too_few(n_bags: int, groups: Integers | None) -> str | None:
    """Return that there are too few bags for the folds, or None."""
    n_groups = n_bags if groups is None else len(np.unique(groups))
    if n_bags >= 2 * FOLDS and n_groups >= FOLDS:
        return None
    if n_groups < FOLDS and groups is not None:
        return f"all bags are in {count_of(n_groups, 'group')}, and {FOLDS} folds need {FOLDS}"
    return f"there are {count_of(n_bags, 'bag')}, and {FOLDS} folds need {2 * FOLDS}"


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
        varied = np.ptp(columns[~test], axis=0) > 0
        found[test] = columns[~test][0]
        if not varied.any():
            continue
        model = WeightedGMILRegressor(50, scales=("standard",), witness_model=False, random_state=seed)
        training, held_out = without_gaps(bags[~test], bags[test])
        model.fit(training, columns[~test][:, varied], groups=None if groups is None else groups[~test])
        found[np.ix_(test, varied)] = model.predict(held_out).reshape(len(held_out), -1)
    return found


def _measure(truth: Any, predictions: Floats, folds: Integers) -> float:
    """Return R2 of values, or the concordance of risks, the mean over folds where there is one."""
    if not isinstance(truth, Outcomes):
        return r2(truth, predictions)
    found = []
    for fold in np.unique(folds):
        own = np.flatnonzero(folds == fold)
        with suppress(BagValidationError):  # of no two bags is it known which event came first
            found.append(concordance(np.column_stack([truth.event[own], truth.time[own]]), predictions[own]))
    return float(np.mean(found)) if found else float("nan")


def _name(target: str) -> str:
    return "R²" if target == "regression" else "concordance"


def _permutation_finding(value: float, by_chance: Floats, target: str) -> Finding:
    p_value = permutation_p_value(value, by_chance)
    mean, most = np.nanmean(by_chance), np.nanmax(by_chance)
    text = (
        f"Cross-validated {_name(target)} {value:.3f}; with {len(by_chance)} permutations of the targets {mean:.3f} on "
        f"average and {most:.3f} at most (permutation test: p = {p_value:.2g})."
    )
    return Finding("shuffled targets", "ok" if p_value <= LEVEL else "warning", p_value, text)


def _size_finding(truth: Any, held_out: Floats, by_size: Floats, folds: Integers, groups: Any, seed: int) -> Finding:
    """Test whether instances tell more than size, one-sided; the error is that of a bootstrap over bags or groups."""

    def measures(rows: Any) -> Floats:
        own = _shuffled(truth, rows)
        return np.array([_measure(own, found[rows], folds[rows]) for found in (held_out, by_size)])

    instances, size = measures(np.arange(len(folds)))
    resamples = resampled_rows(len(folds), groups, seed)[:_RESAMPLES]
    error = float(np.nanstd([np.subtract(*measures(rows)) for rows in resamples]))
    difference = float(instances - size)
    p_value = float(stats.norm.sf(difference / error)) if error > 0 else float(difference <= 0)
    name = _name("survival" if isinstance(truth, Outcomes) else "regression")
    text = (
        f"{name} {instances:.3f} with the instances, {size:.3f} with the size of the bag alone, on the same folds "
        f"(one-sided bootstrap test: p = {p_value:.2g})."
    )
    return Finding("instances against bag size", "ok" if p_value <= LEVEL else "warning", difference, text)
