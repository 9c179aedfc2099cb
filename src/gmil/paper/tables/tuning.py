"""Choosing parameters inside the training bags, by the same rule for every method."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if

from gmil.model_selection.crossval import cross_validate
from gmil.model_selection.folds import fit_with_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats


class Tuned(ClassifierMixin, BaseEstimator):
    """An estimator with the setting that is most accurate in an inner cross-validation of the training bags.

    Parameters
    ----------
    estimator : estimator
    settings : sequence of dict
        What to choose from; of equally accurate settings the first is taken.
    inner_folds : int
    on_choice : callable, optional
        Called in every fit with its seed, and with the setting that was chosen and the seconds that it took.
    random_state : int
        Seed of the inner folds and of the estimator.
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: BaseEstimator,
        settings: Sequence[dict[str, Any]] = ({},),
        inner_folds: int = 5,
        on_choice: Callable[[int, tuple[dict[str, Any], float]], object] | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.settings = settings
        self.inner_folds = inner_folds
        self.on_choice = on_choice
        self.random_state = random_state

    def fit(self, X: Bags, y: Any, *, groups: Any = None) -> Self:
        """Choose a setting, then fit it on all training bags; those of one group are tested together."""
        start = time.perf_counter()
        # A single setting is taken as it is: a method that chooses by itself is told so by one.
        best = int(np.argmax(self._accuracies(X, y, groups))) if len(self.settings) > 1 else 0
        self.best_params_ = dict(self.settings[best])
        self.tune_seconds_ = time.perf_counter() - start
        if self.on_choice is not None:
            self.on_choice(self.random_state, (self.best_params_, self.tune_seconds_))
        chosen = clone(self.estimator).set_params(**self.best_params_)
        self.best_estimator_ = fit_with_groups(chosen, X, y, groups)
        self.classes_ = self.best_estimator_.classes_
        return self

    def _accuracies(self, X: Bags, y: Any, groups: Any) -> Floats:
        """Return the inner accuracy of every setting; one that cannot be fitted has none and is never chosen."""
        try:
            return self._inner(X, y, groups, self.settings)
        except Exception:  # some setting cannot be fitted: what it raises is up to the method
            return self._one_by_one(X, y, groups)

    def _one_by_one(self, X: Bags, y: Any, groups: Any) -> Floats:
        found, failures = np.full(len(self.settings), -np.inf), []
        for i, setting in enumerate(self.settings):
            try:
                found[i] = self._inner(X, y, groups, [setting])[0]
            except Exception as error:  # the next setting may do
                failures.append(error)
        if len(failures) == len(self.settings):
            raise failures[0]
        return found

    def _inner(self, X: Bags, y: Any, groups: Any, settings: Sequence[dict[str, Any]]) -> Floats:
        grid = [{name: [value] for name, value in setting.items()} for setting in settings]
        result = cross_validate(
            self.estimator,
            X,
            y,
            cv=self.inner_folds if groups is None else min(self.inner_folds, len(np.unique(groups))),
            groups=groups,
            param_grid=grid,
            random_state=self.random_state,
            n_jobs=1,
        )
        return np.atleast_1d(result.accuracy())

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the labels that the chosen setting predicts."""
        return np.asarray(self.best_estimator_.predict(X))

    @available_if(lambda self: hasattr(self.estimator, "score_instances"))
    def score_instances(self, X: Bags) -> Floats:
        """Return the scores of instances that the chosen setting gives."""
        return np.asarray(self.best_estimator_.score_instances(X))

    def decision_function(self, X: Bags) -> Floats:
        """Return the decisions of the chosen setting, NaN where the method has none."""
        model = self.best_estimator_
        if hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(X))
        n_classes = len(self.classes_)
        if hasattr(model, "predict_proba"):
            probabilities = np.asarray(model.predict_proba(X))
            return probabilities[:, 1] if n_classes == 2 else probabilities
        return np.full(len(X) if n_classes == 2 else (len(X), n_classes), np.nan)
