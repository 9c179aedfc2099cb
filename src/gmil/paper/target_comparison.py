"""A comparison of methods by values, grades or times of the same bags, on the same folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.checks.controls import CONTROLS as CLASS_CONTROLS
from gmil.checks.targets import CONTROLS
from gmil.model_selection.crossval import cross_validate
from gmil.model_selection.folds import last_step
from gmil.model_selection.metrics import quadratic_kappa
from gmil.model_selection.target_metrics import r2, resampled_rows
from gmil.model_selection.target_result import over_repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gmil.paper.target_store import KeptResults

METHODS = {
    "regression": (
        "weighted-gmil-regressor",
        "bag-regressor",
        "single-instance-regressor",
        "prime-instance",
        "cluster-regressor",
    ),
    "ordinal": ("weighted-gmil-ordinal", "weighted-gmil", "bag-statistics", "gmil"),
    "survival": ("weighted-gmil-survival", "bag-cox"),
}
"""What is compared where no methods are named."""
MEASURES = {"regression": "r2", "ordinal": "quadratic_kappa", "survival": "concordance"}
"""By what methods are ranked."""


@dataclass(frozen=True, repr=False)
class TargetComparison:
    """Methods on the same folds of the same bags, the best first.

    Attributes
    ----------
    results : dict of TargetResult or CVResult
        The cross-validation of every method and control.
    rows : list of dict
        Of every method and control ``method``, the main ``value`` with its 95 % interval ``low`` to ``high``, the
        ``difference_to_best`` with its own, and a ``verdict_to_best``.
    measure : str
        What the main value is.
    """

    results: dict[str, Any]
    rows: list[dict[str, Any]]
    measure: str

    @property
    def best(self) -> str:
        """The best method; controls do not count."""
        return str(next(row["method"] for row in self.rows if not row["control"]))

    @staticmethod
    def cells(row: dict[str, Any]) -> tuple[str, str]:
        """Return the main value of a row, and its interval, as texts."""
        return f"{row['value']:.3f}", f"{row['low']:.3f} - {row['high']:.3f}"

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __str__(self) -> str:
        width = max(len(row["method"]) for row in self.rows)
        lines = [
            f"{row['method']:<{width}}  {row['value']:.3f} ({row['low']:.3f} - {row['high']:.3f})"
            f"  {row['verdict_to_best'] or ''}".rstrip()
            for row in self.rows
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"TargetComparison({self.measure}, best {self.best!r} of {[row['method'] for row in self.rows]})"


def compare_values(
    estimators: Mapping[str, Any],
    bags: Any,
    y: Any,
    target: str,
    *,
    progress: Callable[[int, int], None] | None = None,
    kept: KeptResults | None = None,
    groups: Any = None,
    **protocol: Any,
) -> TargetComparison:
    """Cross-validate methods and controls, and compare them with the best by bootstrap over bags, or groups.

    With ``kept``, of the same bags, targets and groups, finished cross-validations are read and not done again.
    """
    controls = {name: cls() for name, (_, cls) in (CONTROLS.get(target) or CLASS_CONTROLS).items()}
    everything = {**estimators, **{name: control for name, control in controls.items() if name not in estimators}}
    results = {}
    for number, (name, estimator) in enumerate(everything.items(), start=1):
        results[name] = (
            cross_validate(estimator, bags, y, groups=groups, **protocol)
            if kept is None
            else kept.cross_validate(estimator, **protocol)
        )
        if progress is not None:
            progress(number, len(everything))
    if target == "ordinal":
        results = _in_one_order(results, estimators)
    drawn = {name: _resampled(result, target) for name, result in results.items()}
    values = {name: _value(result, target) for name, result in results.items()}
    ranked = sorted(values, key=lambda name: -values[name])
    best = next(name for name in ranked if name in estimators)
    rows = [_row(name, values, drawn, best, control=name not in estimators) for name in ranked]
    return TargetComparison(results, rows, MEASURES[target])


def _in_one_order(results: dict[str, Any], estimators: Mapping[str, Any]) -> dict[str, Any]:
    """Return results whose grades have the order that an estimator was given: others were told none."""
    given = [getattr(last_step(estimator)[1], "grades", None) for estimator in estimators.values()]
    grades = next((list(order) for order in given if order is not None), None)
    return results if grades is None else {name: replace(result, grades=grades) for name, result in results.items()}


def _value(result: Any, target: str) -> float:
    found = {"regression": "r2", "ordinal": "kappa", "survival": "concordance"}[target]
    return float(np.atleast_1d(getattr(result, found)())[0])


def _resampled(result: Any, target: str) -> Any:
    """Return the main measure in every resample; the same draws for all methods on the same bags."""
    draws = resampled_rows(len(result.y), result.groups, 0)
    if target == "survival":
        right, total = result.mean_pairs()
        counts = [np.bincount(rows, minlength=len(right)).astype(np.float32) for rows in draws]
        return np.array([(own @ right @ own) / (own @ total @ own) for own in counts])
    if target == "ordinal":
        true, predicted = result.ranks()
        return np.array([np.mean([quadratic_kappa(true[rows], one[rows]) for one in predicted[0]]) for rows in draws])
    values, repeats = result.by_repeat()
    return np.array([over_repeats(r2, values[rows], repeats[rows]) for rows in draws])


def _row(name: str, values: dict[str, float], drawn: dict[str, Any], best: str, *, control: bool) -> dict[str, Any]:
    low, high = np.nanquantile(drawn[name], [0.025, 0.975])
    row = {"method": name, "control": control, "value": values[name], "low": float(low), "high": float(high)}
    if name == best:
        return row | dict.fromkeys(("difference_to_best", "difference_low", "difference_high", "verdict_to_best"))
    from_low, to_high = np.nanquantile(drawn[name] - drawn[best], [0.025, 0.975])
    verdict = "worse" if to_high < 0 else "as good, so far as can be told"
    difference = {"difference_to_best": values[name] - values[best], "difference_low": float(from_low)}
    return {**row, **difference, "difference_high": float(to_high), "verdict_to_best": verdict}
