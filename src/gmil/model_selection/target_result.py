"""What cross-validation found about values or times: held-out predictions, and measures of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.integrate import trapezoid

from gmil.errors import count_of
from gmil.model_selection import survival, target_metrics
from gmil.target_checks import check_outcomes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers

_MOST_PAIRED = 2000
"""Of more bags than this, the interval of a concordance is by so many of them."""


@dataclass(frozen=True, eq=False, repr=False)
class TargetResult:
    """Held-out predictions of values or risks by repeated cross-validation.

    Arrays begin with the axes (n_settings, n_repeats); without ``param_grid`` there is one setting. Measures return one
    number per setting, and a plain number where there is one setting only.

    Attributes
    ----------
    y : array of shape (n_bags,) or (n_bags, n_targets), or a structured array of events and times
    predictions : array of shape (n_settings, n_repeats, n_bags) or (n_settings, n_repeats, n_bags, n_targets)
        The value, or the risk, predicted for every bag when it was in the test fold.
    folds : array of shape (n_repeats, n_bags)
        The test fold of every bag.
    fit_seconds, predict_seconds : arrays of shape (n_settings, n_repeats, n_folds)
    target : {"regression", "survival"}
    params : list of dict
        The parameters of every setting that differ from the estimator given.
    groups : array of shape (n_bags,) or None
        Which bags belong together.
    random_state : int or None
        The seed of folds and estimators.
    times : array of shape (n_times,) or None
        The times at which survival curves were asked for.
    curves : array of shape (n_settings, n_repeats, n_bags, n_times) or None
        The predicted probability of no event up to each time; None where the estimator has no curves.
    """

    y: NDArray[Any]
    predictions: Floats
    folds: Integers
    fit_seconds: Floats
    predict_seconds: Floats
    target: str = "regression"
    params: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    groups: NDArray[Any] | None = None
    random_state: int | None = None
    times: Floats | None = None
    curves: Floats | None = None

    def __repr__(self) -> str:
        """Return a line with what was asked and the main measure: the arrays would fill pages."""
        name = self.measures[0]
        shown = ", ".join(f"{value:.3f}" for value in np.atleast_1d(getattr(self, name)()))
        return (
            f"TargetResult({len(self.folds)} x {self.n_folds}-fold of {count_of(len(self.y), 'bag')}, {name} {shown})"
        )

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.fit_seconds.shape[-1])

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures, the main one first; larger is better for the main one."""
        return ("r2", "mae", "rmse", "spearman") if self.target == "regression" else ("concordance", "brier")

    # ---------------------------------------------------------------- values

    def r2(self) -> Any:
        """Return the share of variance explained, over all held-out bags; the mean over repeats and targets."""
        return self._mean("r2")

    def mae(self) -> Any:
        """Return the mean absolute error."""
        return self._mean("mae")

    def rmse(self) -> Any:
        """Return the root mean squared error."""
        return self._mean("rmse")

    def spearman(self) -> Any:
        """Return the rank correlation of values and predictions."""
        return self._mean("spearman")

    def _mean(self, name: str) -> Any:
        self._only("regression", name)
        measure, values = target_metrics.MEASURES[name], self.y.reshape(len(self.y), -1)
        found = [
            [_over_targets(measure, values, repeat.reshape(values.shape)) for repeat in setting]
            for setting in self.predictions
        ]
        return _plain(np.mean(found, axis=1))

    # ---------------------------------------------------------------- times

    def concordance(self) -> Any:
        """Return Harrell's concordance of held-out risks: of pairs within a fold, the share in order."""
        self._only("survival", "concordance")
        pairs = [[self._pairs(setting, repeat) for repeat in range(len(self.folds))] for setting in range(len(self))]
        return _plain(np.array([np.mean([right.sum() / total.sum() for right, total in found]) for found in pairs]))

    def brier(self) -> Any:
        """Return the integrated Brier score of held-out survival curves; NaN where there are none."""
        self._only("survival", "brier")
        if self.curves is None or self.times is None or len(self.times) < 2:
            return _plain(np.full(len(self), np.nan))
        found = [
            [survival.integrated_brier_score(self.y, self.y, repeat, self.times) for repeat in setting]
            for setting in self.curves
        ]
        return _plain(np.mean(found, axis=1))

    def _pairs(self, setting: int, repeat: int) -> tuple[Floats, Floats]:
        """Return which pairs of bags of one fold are in order, and which can be, (n_bags, n_bags) each."""
        event, time = check_outcomes(self.y)
        same = self.folds[repeat][:, None] == self.folds[repeat]
        return survival.ordered_pairs(event, time, self.predictions[setting, repeat], same)

    # ---------------------------------------------------------------- all

    def intervals(self, level: float = 0.95, random_state: int = 0) -> dict[str, tuple[float, float]]:
        """Return the interval of every measure of the first setting, by bootstrap over bags or groups.

        Parameters
        ----------
        level : float
        random_state : int
            The seed of the draws.
        """
        own: dict[str, Any] = {"level": level, "random_state": random_state}
        if self.target == "survival":
            return {"concordance": self._concordance_interval(own), **self._brier_interval(own)}
        values, repeats = self.by_repeat()
        return {
            name: target_metrics.resampled_interval(partial(over_repeats, measure), values, repeats, self.groups, **own)
            for name, measure in target_metrics.MEASURES.items()
        }

    def by_repeat(self) -> tuple[Floats, Floats]:
        """Return values, (n_bags, n_targets), and predictions of the first setting, (n_bags, n_repeats, n_targets)."""
        values = self.y.reshape(len(self.y), -1)
        return values, np.stack([repeat.reshape(values.shape) for repeat in self.predictions[0]], axis=1)

    def mean_pairs(self) -> tuple[Floats, Floats]:
        """Return which pairs of bags are in order, and which can be, means over repeats of the first setting."""
        by_repeat = zip(*(self._pairs(0, repeat) for repeat in range(len(self.folds))), strict=True)
        right, total = (np.asarray(np.mean(parts, axis=0), dtype=np.float32) for parts in by_repeat)
        return right, total

    def _concordance_interval(self, own: dict[str, Any]) -> tuple[float, float]:
        right, total = self.mean_pairs()
        some = slice(None)
        if len(right) > _MOST_PAIRED:
            some = np.random.default_rng(0).choice(len(right), _MOST_PAIRED, replace=False)  # type: ignore[assignment]
        groups = None if self.groups is None else self.groups[some]
        return target_metrics.concordance_interval(right[some][:, some], total[some][:, some], groups, **own)

    def _brier_interval(self, own: dict[str, Any]) -> dict[str, tuple[float, float]]:
        """Return the interval of the integrated Brier score, to which every bag adds its mean error over time."""
        if self.curves is None or self.times is None or len(self.times) < 2:
            return {}
        by_repeat = [survival.brier_errors(self.y, self.y, repeat, self.times) for repeat in self.curves[0]]
        errors = trapezoid(np.mean(by_repeat, axis=0), self.times) / (self.times[-1] - self.times[0])
        limits = target_metrics.resampled_interval(lambda one, _: float(one.mean()), errors, errors, self.groups, **own)
        return {"brier": limits}

    def figures(self) -> dict[str, Any]:
        """Return the measures that ``gmil cv --json`` reports and pages show, of one setting."""
        limits = self.intervals()
        found: dict[str, Any] = {"target": self.target}
        for name in self.measures:
            value = float(np.atleast_1d(getattr(self, name)())[0])
            found[name] = None if np.isnan(value) else value
            found[f"{name}_interval"] = list(limits[name]) if name in limits else None
        return found

    def __len__(self) -> int:
        return len(self.predictions)

    def _only(self, target: str, measure: str) -> None:
        if self.target != target:
            msg = f"{measure} is a measure of {target}, but this result is of {self.target}."
            raise ValueError(msg)


def _over_targets(measure: Any, values: Floats, predictions: Floats) -> float:
    return float(np.mean([measure(one, other) for one, other in zip(values.T, predictions.T, strict=True)]))


def over_repeats(measure: Any, values: Floats, repeats: Floats) -> float:
    """Return the mean of a measure over repeats, (n_bags, n_repeats, n_targets): that of mean predictions is better."""
    return float(np.mean([_over_targets(measure, values, repeats[:, i]) for i in range(repeats.shape[1])]))


def _plain(values: Floats) -> Any:
    return float(values[0]) if len(values) == 1 else values
