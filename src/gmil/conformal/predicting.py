"""What a classifier needs to predict sets: one mixin for all that have scores of bags that they did not see."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gmil.conformal.abstention import single_labels
from gmil.conformal.p_values import Calibration, check_coverage, conformity, fewest_bags, p_values, prediction_sets
from gmil.errors import BagValidationError, listed
from gmil.io.model_files.schema import Array, Either, Kind, OrMissing
from gmil.sampling import make_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

TRAINING_LABELS: dict[str, Kind] = {
    "training_labels_": OrMissing(Either(Array("B", dtype="i", at_least=0, below="C"), Array("B", "C", dtype="b"))),
    "training_groups_": OrMissing(Array("B", dtype="i", at_least=0)),
}
"""Labels of training bags, as class numbers or as an indicator matrix, and which bags belong together, or None."""


class PredictsSets:
    """Prediction sets by class-conditional conformal prediction.

    A class sets ``left_out_decisions_``, of its training bags by models that did not see them, ``training_labels_``
    and ``training_groups_``. Where these models are several, it defines ``_models_of_left_out`` and
    ``_decisions_by_model``.
    """

    classes_: NDArray[Any]
    left_out_decisions_: Floats
    training_labels_: Any
    training_groups_: Integers | None

    def _models_of_left_out(self) -> Integers | None:
        """Return the number of the model that decided about each training bag; None where it is one for all."""
        return None

    def _decisions_by_model(self, X: Any) -> Sequence[Floats]:
        """Return decisions about new bags by each model behind the left-out decisions."""
        return [self.decision_function(X)]  # type: ignore[attr-defined]

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, randomized: bool = False, random_state: Any = None
    ) -> Booleans:
        """Return for every bag the classes that cannot be ruled out, (n_bags, n_classes).

        Of the bags of every class, a share of ``coverage`` has that class in its set, if new bags come from where the
        training bags came from. A set may be empty (the bag is like no class) or hold several classes. With indicator
        labels, column j tells whether label j cannot be ruled out.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        coverage : float, default=0.9
            How often the class of a bag is to be in its set.
        randomized : bool, default=False
            Draw ties apart, which makes sets smaller and the coverage neither smaller nor larger than asked for.
        random_state : int, RandomState instance or None, default=None
            Seed of these draws.

        Returns
        -------
        array of shape (n_bags, n_classes)
            True where the class is in the set.
        """
        check_is_fitted(self)
        generator = make_generator(random_state) if randomized else None
        return self._sets(X, coverage, generator)[:, : len(self.classes_)]

    def predict_p_values(self, X: Any, *, randomized: bool = False, random_state: Any = None) -> Floats:
        """Return how well every bag agrees with the training bags of every class, (n_bags, n_classes).

        It is the share of left-out training bags of the class that agree with it no better. The prediction set of a
        coverage of 90 % are the classes with a p-value above 0.1.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        randomized : bool, default=False
        random_state : int, RandomState instance or None, default=None
            Both as in ``predict_set``.
        """
        check_is_fitted(self)
        generator, calibration = make_generator(random_state) if randomized else None, self._calibration()
        return p_values(self._conformity(X), calibration, generator)[:, : len(self.classes_)]

    def _sets(self, X: Any, coverage: float, generator: np.random.Generator | None = None) -> Booleans:
        """Return which classes are possible; of indicator labels also, behind them, which labels may be lacking."""
        check_coverage(coverage)
        calibration = self._calibration()
        self._warn_of_small_classes(calibration, coverage)
        return prediction_sets(p_values(self._conformity(X), calibration, generator), coverage)

    def _conformity(self, X: Any) -> Floats:
        """Return how well new bags conform with classes, by every model."""
        several = self.training_labels_.ndim == 2
        return np.stack([conformity(own, several=several) for own in self._decisions_by_model(X)])

    def _calibration(self) -> Calibration:
        if getattr(self, "training_labels_", None) is None:
            msg = f"This {type(self).__name__} comes from a file of an older version, without labels. Fit it again."
            raise BagValidationError(msg)
        several = self.training_labels_.ndim == 2
        known = _members(self.training_labels_, len(self.classes_)), self.training_groups_, self._models_of_left_out()
        return Calibration(conformity(self.left_out_decisions_, several=several), *known)

    def _warn_of_small_classes(self, calibration: Calibration, coverage: float) -> None:
        counts, fewest = calibration.weights().sum(axis=0), fewest_bags(coverage)
        small = np.unique(np.flatnonzero(counts < fewest - 1e-9) % len(self.classes_))
        if len(small):
            what = "bags" if calibration.groups is None else "groups"
            names = listed([f"{self.classes_[i]!s} ({counts[i]:.0f})" for i in small])
            warnings.warn(
                f"Too few {what} to rule out the class {names}: at a coverage of {coverage:g} a class needs {fewest}. "
                "It is in every set. Ask for less coverage, or add bags.",
                UserWarning,
                stacklevel=4,
            )


def _members(labels: Any, n_classes: int) -> Booleans:
    """Return which bags are of which class; of indicator labels, which have every label and then which lack it."""
    if labels.ndim == 2:
        return np.concatenate([labels, ~labels], axis=1)
    return np.asarray(labels[:, None] == np.arange(n_classes))


def predict_or_abstain(model: Any, X: Any, coverage: float) -> NDArray[Any]:
    """Return the label of every bag whose prediction set has one class, and `abstain_label` for the others.

    Of indicator labels, each is 1, 0, or -1 where having and lacking it are both possible, or neither.
    """
    if not isinstance(model, PredictsSets):
        name = type(model).__name__
        msg = f"{name} has no prediction sets, and so cannot abstain. Wrap it: ConformalClassifier({name}())."
        raise BagValidationError(msg)
    sets, n = model._sets(X, coverage), len(model.classes_)
    if sets.shape[1] == n:
        return single_labels(sets, model.classes_)
    return np.where(sets[:, :n] == sets[:, n:], -1, sets[:, :n].astype(np.int64))
