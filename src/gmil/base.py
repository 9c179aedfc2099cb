"""What all estimators on bags share: input checks, registration, saving, decisions to labels."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from gmil.compat import checks_parameters
from gmil.conformal.predicting import predict_or_abstain
from gmil.engine import resolve
from gmil.errors import BagValidationError, ModelFileError
from gmil.io import model_files
from gmil.io.model_files.schema import Count, Kind, Labels, OrMissing, Plain, Texts
from gmil.parameters import rules_of
from gmil.registry import methods as methods
from gmil.registry import register as register
from gmil.sampling import make_generator
from gmil.scale import LazyBags
from gmil.validation import (
    check_bag_labels,
    check_bags,
    check_groups,
    check_label_count,
    check_lazy_bags,
    check_sample_weight,
    choose_positive_class,
    warn_of_positive_class,
)
from gmil.witnesses.carriers import find_witnesses
from gmil.witnesses.effects import effects, left_out, score_by_effect
from gmil.witnesses.explanation import explain_bag

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.fold_work import FoldWork, Worker

AnyClassifier = TypeVar("AnyClassifier", bound="BagClassifier")


def all_estimators() -> list[tuple[str, type[BaseEstimator]]]:
    """Return the name and the class of every public estimator; `gmil.Pipeline`, which needs steps, is none of them.

    >>> import gmil
    >>> dict(gmil.all_estimators())["GMIL"] is gmil.GMIL
    True
    """
    classes = model_files.registered_classes().items()
    return sorted((name, cls) for name, cls in classes if issubclass(cls, BagEstimator))


class BagEstimator(BaseEstimator):
    """An estimator on bags: it takes `Bags`, lists of 2-D arrays, 3-D arrays, and 2-D arrays of one-instance bags."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    """What parameters may be. A class names what `gmil.parameters.PARAMETERS` and the classes above it do not."""

    _kept_parameters: ClassVar[tuple[str, ...]] = ()
    """Parameters that a fitted model goes by: ``fit`` keeps them as attributes, and no later ``set_params`` matters."""

    _reads_blocks: ClassVar[bool] = False  # whether `LazyBags` do in place of `Bags`
    _folds_in_threads: ClassVar[bool] = False  # whether cross-validation is faster with a fold in every thread
    _takes_estimators: ClassVar[bool] = False  # whether estimators are among its parameters

    n_features_in_: int

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "n_features_in_": Count(1, "d"),
        "feature_names_in_": OrMissing(Texts("d")),
    }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._parameter_constraints = rules_of(cls)
        if has_fit_parameter(cls, "groups"):  # scikit-learn's metadata routing then hands them on without being told
            setattr(cls, "__metadata_request__fit", {"groups": True})

    @classmethod
    @functools.cache  # reading the signature is most of the time of get_params and clone
    def _get_param_names(cls) -> list[str]:
        return cast("list[str]", super()._get_param_names())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `gmil.load` reads; no file that it reads can run code.

        Parameters
        ----------
        path : path
            The file; one that exists is replaced in one step.
        """
        model_files.save(self, path)

    def _keep_parameters(self) -> None:
        for name in self._kept_parameters:
            setattr(self, f"{name}_", getattr(self, name))

    def _complete(self) -> None:
        """Set what a fitted model has now and files of older versions lack; `gmil.load` calls it for every model."""
        if hasattr(self, "n_features_in_") and not all(hasattr(self, f"{name}_") for name in self._kept_parameters):
            self._keep_parameters()

    def _check_bags(self, X: Any) -> Any:
        """Return training bags, in memory or not, and set what there is to know of their features."""
        lazy = self._reads_blocks and isinstance(X, LazyBags)
        return (check_lazy_bags if lazy else check_bags)(X, estimator=self, reset=True)

    def _new_bags(self, X: Any) -> Bags | LazyBags:
        """Return bags to predict, in memory or not."""
        return self._check_lazy_new(X) if self._reads_blocks and isinstance(X, LazyBags) else self._check_new(X)

    def _check_lazy_new(self, X: LazyBags) -> LazyBags:
        """Return bags that are not in memory, of the same features as the training bags."""
        check_is_fitted(self)
        return check_lazy_bags(X, estimator=self, reset=False)

    def _check_new(self, X: Any) -> Bags:
        """Return bags to predict, of the same features as the training bags."""
        check_is_fitted(self)
        return check_bags(X, estimator=self, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags


class Training(NamedTuple):
    """What a classifier learns from, and with."""

    bags: Any  # Bags, or LazyBags where the class reads blocks
    y: NDArray[Any]  # (n_bags,), as given
    labels: Integers  # (n_bags,), numbers of classes; of two classes the positive one is 1
    groups: Integers | None  # (n_bags,)
    weights: Floats  # (n_bags,), how often each bag counts
    backend: Backend
    generator: np.random.Generator

    @property
    def positive(self) -> Booleans:
        """Which bags are of the positive class of two, (n_bags,)."""
        return self.labels == 1


class BagClassifier(ClassifierMixin, BagEstimator, ABC):
    """A classifier of bags whose labels follow from ``decision_function``.

    A class defines ``_learn``, which ``fit`` calls with all that is checked. Where it can make use of groups, or of
    weights of bags, its ``fit`` is `grouped_fit` or `weighted_fit`.
    """

    classes_: NDArray[Any]
    pos_label_: Any
    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "classes_": Labels("C"),
        "pos_label_": Plain(bool, int, float, str, np.generic, type(None)),
    }

    _two_classes: ClassVar[bool] = False  # whether it knows no more than two

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls._two_classes:  # what a model file may hold
            cls._fitted_attributes = {**vars(cls).get("_fitted_attributes", {}), "classes_": Labels(2)}

    @checks_parameters
    def fit(self: AnyClassifier, X: Any, y: Any) -> AnyClassifier:
        """Learn from bags and their labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : array of shape (n_bags,)
            One label per bag.
        """
        return self._fit(X, y)

    def _fit(self: AnyClassifier, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> AnyClassifier:
        """Check everything and learn; bags that weigh nothing are left out."""
        bags = self._check_bags(X)
        numbers, weights = check_groups(groups, len(bags)), check_sample_weight(sample_weight, bags)
        if weights is not None and not weights.all():
            counts = weights > 0
            check_label_count(len(y), bags)
            bags, y, weights = bags[counts], np.asarray(y)[counts], weights[counts]
            numbers = None if numbers is None else numbers[counts]
        labels = self._check_labels(y, bags)
        self._learn(
            Training(
                bags=bags,
                y=self.classes_[labels],
                labels=self._is_positive(labels).astype(np.int64) if len(self.classes_) == 2 else labels,
                groups=numbers,
                weights=np.ones(len(bags)) if weights is None else weights,
                backend=resolve(getattr(self, "backend", "auto"), getattr(self, "n_jobs", None)),
                generator=make_generator(getattr(self, "random_state", 0)),
            )
        )
        return self

    def _learn(self, training: Training) -> None:
        """Set what a fitted model has; a class defines this, or a ``fit`` of its own."""
        msg = f"{type(self).__name__} defines neither _learn nor fit."
        raise NotImplementedError(msg)

    def _folds_together(self, work: FoldWork) -> Worker | None:  # noqa: ARG002
        """Return what decides about all folds of a cross-validation together; None: they are fitted one by one.

        Every training fold has every class. The method counts for the class that defines it alone: a subclass may do
        anything else in ``fit``.
        """
        return None

    def decision_function(self, X: Any) -> Floats:
        """Return how much every bag is of ``classes_[1]``, (n_bags,), or of every class, (n_bags, n_classes).

        With two classes, decisions above zero are for ``classes_[1]`` and below zero for ``classes_[0]``, whichever
        of them is ``pos_label``: scikit-learn's scorers read them so.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self._oriented(self._decide(X))

    @abstractmethod
    def _decide(self, X: Any) -> Floats:
        """Return how positive every bag is, (n_bags,), or how much of every class, (n_bags, n_classes)."""

    def _oriented(self, decisions: Floats) -> Floats:
        """Turn decisions about the positive class of two into decisions about ``classes_[1]``, or back."""
        return -decisions if self.pos_label_ is not None and self.classes_[1] != self.pos_label_ else decisions

    def predict(self, X: Any, *, abstain: bool = False, coverage: float = 0.9) -> NDArray[Any]:
        """Return the label of every bag, (n_bags,), or an indicator matrix where the model was fitted on one.

        With two classes it is that for which the decision is; a tie is negative: not the class ``pos_label``. With
        more, the class with the largest decision is taken.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        abstain : bool, default=False
            For classes with ``predict_set``: where the prediction set of a bag is not one class, its label is -1, or
            "unsure" among strings (``gmil.conformal.abstain_label``). Other bags have the class of their set.
        coverage : float, default=0.9
            Of these sets.
        """
        check_is_fitted(self)
        if abstain:
            return predict_or_abstain(self, X, coverage)
        return self._labels_of(self.decision_function(X))

    def _labels_of(self, decisions: Floats) -> NDArray[Any]:
        if decisions.ndim == 2:
            return cast("NDArray[Any]", self.classes_[decisions.argmax(axis=1)])
        positive = self._oriented(decisions) > 0
        return np.where(positive == (self.classes_[1] == self.pos_label_), self.classes_[1], self.classes_[0])

    def _decisions_of(self, by_class: Floats) -> Floats:
        """Return how much of every class, (n_bags, n_classes); of two classes the positive less the negative one."""
        return by_class if len(self.classes_) > 2 else self._oriented(by_class[:, 1] - by_class[:, 0])

    def _set_classes(self, classes: NDArray[Any]) -> None:
        """Set the classes, and which of two is positive; of two strings it is said where no one chose."""
        pos_label = getattr(self, "pos_label", None)
        self.classes_, self.pos_label_ = classes, choose_positive_class(pos_label, classes)
        if pos_label is None and len(classes) == 2 and classes.dtype.kind in "UO":
            warn_of_positive_class(self.pos_label_)

    def _is_positive(self, labels: Integers) -> NDArray[np.bool_]:
        """Tell of class numbers of two classes which are the positive one."""
        return np.asarray(self.classes_[labels] == self.pos_label_)

    def _complete(self) -> None:
        super()._complete()
        if not hasattr(self, "classes_"):
            return
        labels = self.classes_.tolist()
        has_two = len(labels) == 2 and not getattr(self, "multilabel_", False)
        if not hasattr(self, "pos_label_"):
            given = getattr(self, "pos_label", None)
            self.pos_label_ = None if not has_two else labels[1] if given is None else given
        if not (self.pos_label_ in labels if has_two else self.pos_label_ is None):
            msg = f"The file gives {type(self).__name__} the positive class {self.pos_label_!r} of {labels}."
            raise ModelFileError(msg)

    # ---------------------------------------------------------------- instances

    score_instances = score_by_effect
    witnesses = find_witnesses
    explain = explain_bag
    _effects = effects

    def _decide_without(self, bags: Bags) -> Iterator[tuple[Any, Floats]]:
        """Yield rows of instances, and for each of them what ``_decide`` returns about its bag without it.

        Bags of one instance are left out. A class defines this where it knows a faster way.
        """
        return ((rows, self._decide(some)) for rows, some in left_out(bags))

    def _decision_of_nothing(self) -> Any:
        """Return what ``_decide`` would return about a bag without instances: a number, or one for every class."""
        return 0.0

    def _evidence(self, scores: Floats) -> Floats:
        """Return the evidence of instances for a class, not below zero, given their scores for it, (n_instances,)."""
        return np.maximum(scores, 0)

    # ---------------------------------------------------------------- checks

    def _check_training(self, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
        """Return bags and class numbers, and set what every fitted classifier has."""
        bags = self._check_bags(X)
        return bags, self._check_labels(y, bags)

    def _check_labels(self, y: Any, bags: Bags | LazyBags) -> NDArray[np.int64]:
        classes, labels = check_bag_labels(y, bags, self)
        if self._two_classes and len(classes) > 2:
            msg = (
                f"Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(classes)} classes."
            )
            fix = f"Wrap {type(self).__name__} in OneVsRestClassifier."
            raise BagValidationError(msg, parameter="y", fix=fix)
        self._set_classes(classes)
        self._keep_parameters()
        return labels

    def _linear_decisions(self, rows: Floats, weights: Floats, intercepts: Floats) -> Floats:
        """Return linear decisions, (n_rows,) for two classes, else (n_rows, n_classes)."""
        decisions = rows @ weights + intercepts
        return decisions if len(self.classes_) > 2 else decisions[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._two_classes
        return tags


@checks_parameters
def grouped_fit(self: AnyClassifier, X: Any, y: Any, *, groups: Any = None) -> AnyClassifier:
    """Learn from bags and their labels.

    Parameters
    ----------
    X : Bags, list of 2-D arrays, 3-D array, or 2-D array
        The training bags; a 2-D array is read as bags of one instance each.
    y : array of shape (n_bags,)
        One label per bag.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) stay together wherever something is chosen or scored on folds of the
        training bags. Estimators inside that take groups are given them.
    """
    return self._fit(X, y, groups)


@checks_parameters
def weighted_fit(
    self: AnyClassifier, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
) -> AnyClassifier:
    """Learn from bags and their labels.

    Parameters
    ----------
    X : Bags, list of 2-D arrays, 3-D array, or 2-D array
        The training bags; a 2-D array is read as bags of one instance each.
    y : array of shape (n_bags,)
        One label per bag.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) stay together in the inner folds of ``tune``.
    sample_weight : array of shape (n_bags,), optional
        How often each bag counts: 2 is the bag twice, 0 is without it. Inner folds are drawn as without weights, and
        a scaling by means or deviations counts every bag that is left once.
    """
    return self._fit(X, y, groups, sample_weight)
