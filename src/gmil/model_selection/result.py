"""What cross-validation found: out-of-fold predictions, and measures of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import count_of
from gmil.model_selection import metrics
from gmil.model_selection.target_metrics import kappa_interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers
    from gmil.model_selection.instance_result import InstanceResult


@dataclass(frozen=True, eq=False)
class CVResult:
    """Out-of-fold predictions of repeated cross-validation, and measures of them.

    Arrays begin with the axes (n_settings, n_repeats); without ``param_grid`` there is one setting. Measures
    return one number per setting, and a plain number where there is one setting only. Two results are equal where
    everything but the seconds is.

    Attributes
    ----------
    y : array of shape (n_bags,), or an indicator matrix of shape (n_bags, n_labels)
    predictions : array of shape (n_settings, n_repeats, n_bags) or (n_settings, n_repeats, n_bags, n_labels)
        The label predicted for every bag when it was in the test fold; without meaning where it was in none.
    decisions : array of shape (n_settings, n_repeats, n_bags) or (n_settings, n_repeats, n_bags, n_classes)
        Of two classes they are about the second of ``np.unique(y)``, whichever is positive. NaN where the estimator
        has no decisions.
    folds : array of shape (n_repeats, n_bags)
        The test fold of every bag. Where splits were given that test some bags again, each is a repeat of one fold, and
        bags that it does not test are below zero.
    fit_seconds, predict_seconds : arrays of shape (n_settings, n_repeats, n_folds)
        Where folds are worked on together, the whole time is shared evenly among the fits.
    params : list of dict
        The parameters of every setting that differ from the estimator given.
    positive_label : label or None
        The positive class of two.
    groups : array of shape (n_bags,) or None
        Which bags belong together.
    random_state : int or None
        The seed of folds and estimators; the one that was drawn where none was given.
    instances : InstanceResult or None
        Scores of instances by the model of the fold that tested their bag, and measures of them, where labels of
        instances were given: ``instances.auc()``, ``average_precision()``, ``auc_within()``, ``intervals()``.
    grades : list or None
        The classes from the lowest to the highest, where they are ordered.
    """

    y: NDArray[Any]
    predictions: NDArray[Any]
    decisions: Floats
    folds: Integers
    fit_seconds: Floats
    predict_seconds: Floats
    params: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    positive_label: Any = None
    groups: NDArray[Any] | None = None
    random_state: int | None = None
    instances: InstanceResult | None = None
    grades: Any = None

    __hash__ = None  # type: ignore[assignment]  # equal by content, and arrays can change

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CVResult):
            return NotImplemented
        return _same_fields(self, other, but=("fit_seconds", "predict_seconds"))

    def __repr__(self) -> str:
        """Return a line with what was asked and the accuracy: the arrays would fill pages."""
        accuracy = np.atleast_1d(self.accuracy())
        shown = f"{accuracy[0]:.3f}" if len(accuracy) == 1 else f"{accuracy.min():.3f} to {accuracy.max():.3f}"
        settings = "" if len(accuracy) == 1 else f"{len(accuracy)} settings, "
        how = f"{len(self.folds)} x {self.n_folds}-fold" if self.tested.all() else f"{len(self.folds)} splits"
        return f"CVResult({settings}{how} of {count_of(len(self.y), 'bag')}, accuracy {shown})"

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.fit_seconds.shape[-1])

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Which bags every repeat tests, (n_repeats, n_bags): all, unless splits were given that test some again."""
        return np.asarray(self.folds >= 0)

    @property
    def instance_scores(self) -> Floats | None:
        """Held-out scores of instances, (n_settings, n_repeats, n_instances) or (..., n_classes), or None."""
        if self.instances is None:
            return None
        return self.instances.scores[..., 0] if self.decisions.ndim == 3 else self.instances.scores

    @property
    def correct(self) -> NDArray[Any]:
        """Whether every bag was right, or the share of its labels that were, (n_settings, n_repeats, n_bags).

        A bag that is not ``tested`` is not right.
        """
        right = np.asarray(self.predictions == self.y)
        return (right.mean(axis=-1) if right.ndim == 4 else right) * self.tested

    def one_vs_rest(self, label: Any) -> CVResult:
        """Return the result of one class against all others, or of one label of several: classes True and False.

        Labels are those that were predicted, whatever the scale of the decisions, which only rank the bags.

        Parameters
        ----------
        label : label
            A class, or the number of a column of an indicator matrix.
        """
        labels = np.arange(self.y.shape[1]) if self.y.ndim == 2 else np.unique(self.y)
        found = np.flatnonzero(labels == label)
        if len(found) == 0:
            msg = f"label must be one of {labels.tolist()}, got {label!r}."
            raise ValueError(msg)
        column = int(found[0])
        decisions = self.decisions[..., column] if self.decisions.ndim == 4 else self.decisions * self._sign_of(label)
        if self.y.ndim == 2:
            y, predictions = self.y[:, column] > 0, self.predictions[..., column] > 0
        else:
            y, predictions = self.y == label, self.predictions == label
        return replace(
            self,
            y=y,
            predictions=predictions,
            decisions=decisions,
            positive_label=True,
            instances=self._instances_of(column, label),
        )

    def _instances_of(self, column: int, label: Any) -> InstanceResult | None:
        """Return what was found about instances of one class."""
        if self.instances is None or self.decisions.ndim == 4:
            return None if self.instances is None else self.instances.one_vs_rest(column)
        return self.instances if label == self.positive_label else self.instances.negated()

    def _sign_of(self, label: Any) -> float:
        """Return what makes decisions about the second of two classes decisions about ``label``: 1, or -1."""
        classes = np.unique(self.y)
        return -1.0 if len(classes) == 2 and label == classes[0] else 1.0

    def fold_accuracies(self) -> Floats:
        """Return the accuracy in every fold, (n_settings, n_repeats, n_folds)."""
        return metrics.mean_by_fold(self.correct, self.folds, self.n_folds)

    def accuracy(self) -> Any:
        """Return the mean accuracy over folds and repeats."""
        return _plain(self.fold_accuracies().mean(axis=(1, 2)))

    def accuracy_std(self) -> Any:
        """Return the standard deviation over repeats, by n - 1, of the mean over folds; NaN for one repeat."""
        by_repeat = self.fold_accuracies().mean(axis=2)
        several = by_repeat.shape[1] > 1
        return _plain(by_repeat.std(axis=1, ddof=1) if several else np.full(len(by_repeat), np.nan))

    def accuracy_interval(self, level: float = 0.95, n_resamples: int = 2000, random_state: int = 0) -> Any:
        """Return the interval of the accuracy by bootstrap, (low, high) for every setting.

        Drawn are bags or, where bags belong together, whole groups: bags of one patient err together. Where fewer than
        five of them are wrong, or right, the interval holds Wilson's, too: a bootstrap without errors has no width.

        Parameters
        ----------
        level : float
            How often such intervals hold the accuracy that more bags of the kind would show.
        n_resamples : int
            How often they are drawn again.
        random_state : int
            The seed of the draws.
        """
        often = self.tested.sum(axis=0)
        rates = ((self.correct * self.tested).sum(axis=1) / np.maximum(often, 1))[:, often > 0]  # (n_settings, n_bags)
        groups = None if self.groups is None else self.groups[often > 0]
        found = [
            metrics.mean_interval(r, groups, level=level, n_resamples=n_resamples, random_state=random_state)
            for r in rates
        ]
        # Folds of unequal size weigh bags unequally: the mean over folds may lie beside that over bags.
        means = np.atleast_1d(self.accuracy())
        found = [(min(low, mean), max(high, mean)) for (low, high), mean in zip(found, means.tolist(), strict=True)]
        return found[0] if len(found) == 1 else np.array(found)

    def balanced_accuracy(self) -> Any:
        """Return the mean over folds and repeats of the mean recall of the classes."""
        if self.y.ndim == 2:
            return _plain(np.mean([self.one_vs_rest(i)._balanced() for i in range(self.y.shape[1])], axis=0))
        return _plain(self._balanced())

    def _balanced(self) -> Floats:
        by_fold = metrics.balanced_accuracy_by_fold(self.correct, self.y, self.folds, self.n_folds)
        return np.asarray(by_fold.mean(axis=(1, 2)))

    def recall(self) -> Any:
        """Return the share of positive bags that were found, over the folds that have any; two classes only."""
        positive = self._two_classes("recall")
        return self._mean_over_folds(lambda s, r, test: _share(self.correct[s, r][test & positive]))

    def average_precision(self) -> Any:
        """Return the mean average precision over the folds that have positive bags; two classes only."""
        positive, sign = self._two_classes("average_precision"), self._sign_of(self.positive_label)
        return self._mean_over_folds(
            lambda s, r, test: metrics.average_precision(positive[test], sign * self.decisions[s, r][test])
        )

    def _two_classes(self, measure: str) -> NDArray[np.bool_]:
        if self.positive_label is None or self.decisions.ndim == 4:
            msg = f"{measure} is for two classes. Call result.one_vs_rest(label).{measure}()."
            raise ValueError(msg)
        return np.asarray(self.y == self.positive_label)

    def _mean_over_folds(self, measure: Callable[[int, int, NDArray[np.bool_]], float]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # no such fold at all: NaN is the answer
            return _plain(np.nanmean(self._by_fold(measure), axis=(1, 2)))

    def _by_fold(self, measure: Callable[[int, int, NDArray[np.bool_]], float]) -> Floats:
        return np.array(
            [
                [[measure(s, r, self.folds[r] == f) for f in range(self.n_folds)] for r in range(len(self.folds))]
                for s in range(len(self.predictions))
            ]
        )

    def fold_aucs(self) -> Floats:
        """Return the area under the curve in every fold, NaN where a fold has one class only.

        With more than two classes it is the mean over the classes, each against the others.
        """
        return self._by_fold(self._auc)

    def auc(self) -> Any:
        """Return the mean area under the curve over the folds that have two classes."""
        return self._mean_over_folds(self._auc)

    def auc_folds_dropped(self) -> int:
        """Return how many folds have one class only, so that they have no area under the curve."""
        columns = self.y.T if self.y.ndim == 2 else [self.y]
        tested = [row == f for row in self.folds for f in range(self.n_folds)]
        return sum(any(len(np.unique(column[test])) < 2 for column in columns) for test in tested)

    def kappa(self) -> Any:
        """Return Cohen's kappa with quadratic weights over all bags, the mean over repeats: for ordered grades.

        Grades are in the order of ``np.unique(y)``, or in that of the ``grades`` that the estimator was given.
        """
        true, predicted = self.ranks()
        found = [
            [metrics.quadratic_kappa(true[own], one[own]) for one, own in zip(setting, self.tested, strict=True)]
            for setting in predicted
        ]
        return _plain(np.mean(found, axis=1))

    def kappa_interval(self, level: float = 0.95, random_state: int = 0) -> tuple[float, float]:
        """Return the interval of the kappa of the first setting, by bootstrap over bags or groups.

        Parameters
        ----------
        level : float
        random_state : int
            The seed of the draws.
        """
        true, predicted = (part.astype(np.float64) for part in self.ranks())
        tested = np.where(self.tested, predicted, np.nan)[0].T
        return kappa_interval(true, tested, self.groups, level=level, random_state=random_state)

    def ranks(self) -> tuple[Integers, Integers]:
        """Return the ranks of the classes of all bags, and those of the predictions, from 0 for the lowest grade."""
        labels = np.unique(self.y)
        order = labels if self.grades is None else np.array([g for g in self.grades if g in set(labels.tolist())])
        rank = np.argsort(order)
        predicted = np.where(self.tested, self.predictions, labels[0])
        return rank[np.searchsorted(labels, self.y)], rank[np.searchsorted(labels, predicted)]

    def majority_accuracy(self) -> float:
        """Return the accuracy of always naming the most frequent class."""
        columns = self.y.T if self.y.ndim == 2 else [self.y]
        return float(np.mean([np.unique(column, return_counts=True)[1].max() / len(column) for column in columns]))

    def figures(self) -> dict[str, Any]:
        """Return the measures that ``gmil cv --json`` reports and pages show, of one setting."""
        auc = self.auc()
        return {
            "accuracy_mean": self.accuracy(),
            "accuracy_std": self.accuracy_std() if len(self.folds) > 1 else None,
            "accuracy_interval": list(self.accuracy_interval()),
            "auc_mean": None if auc != auc else auc,
            "auc_folds_dropped": self.auc_folds_dropped(),
            "balanced_accuracy_mean": self.balanced_accuracy(),
            "majority_accuracy": self.majority_accuracy(),
        }

    def _auc(self, setting: int, repeat: int, test: NDArray[np.bool_]) -> float:
        decisions, y = self.decisions[setting, repeat][test], self.y[test]
        if decisions.ndim == 1:
            return metrics.auc(y == self.positive_label, decisions * self._sign_of(self.positive_label))
        members = y > 0 if y.ndim == 2 else y[:, None] == np.unique(self.y)
        by_class = [metrics.auc(member, decisions[:, i]) for i, member in enumerate(members.T)]
        known = [value for value in by_class if not np.isnan(value)]
        return float(np.mean(known)) if known else float("nan")


def _share(hits: NDArray[Any]) -> float:
    return float(hits.mean()) if len(hits) else float("nan")


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, arrays element by element; a number that is none equals another such."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        a, b = np.asarray(one), np.asarray(other)
        return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return _same_fields(one, other) if is_dataclass(one) and is_dataclass(other) else bool(one == other)


def _same_fields(one: Any, other: Any, but: tuple[str, ...] = ()) -> bool:
    names = (f.name for f in fields(one) if f.name not in but)
    return all(_same(getattr(one, name), getattr(other, name)) for name in names)


def _plain(values: Floats) -> Any:
    return float(values[0]) if len(values) == 1 else values
