"""What all estimators on bags share: input checks, registration, saving, decisions to labels."""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gmil import persistence
from gmil.errors import BagValidationError
from gmil.validation import check_bag_labels, check_bags, check_lazy_bags

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats
    from gmil.scale import LazyBags

AnyEstimator = TypeVar("AnyEstimator", bound=type[BaseEstimator])

_methods: dict[str, Callable[..., Any]] = {}


def register(
    method: str | None = None, *, variants: Mapping[str, Mapping[str, Any]] | None = None
) -> Callable[[AnyEstimator], AnyEstimator]:
    """Make an estimator known: to `all_estimators`, to `load` and, by name, to the command line.

    Parameters
    ----------
    method : str, optional
        The name on the command line of the class with its defaults.
    variants : dict of dict, optional
        Further names on the command line, each with the parameters that it presets.
    """

    def enlist(cls: AnyEstimator) -> AnyEstimator:
        if method is not None:
            _methods[method] = cls
        for name, preset in (variants or {}).items():
            _methods[name] = functools.partial(cast("Callable[..., Any]", cls), **preset)
        return persistence.register_class(cls)

    return enlist


def all_estimators() -> list[tuple[str, type[BaseEstimator]]]:
    """Return the name and the class of every public estimator.

    >>> import gmil
    >>> dict(gmil.all_estimators())["GMIL"] is gmil.GMIL
    True
    """
    return sorted(persistence.registered_classes().items())


def methods() -> dict[str, Any]:
    """Return what makes each classifier, a class or a class with preset parameters, by its name on the command line."""
    persistence.import_late_modules()
    return dict(_methods)


class BagEstimator(BaseEstimator):
    """An estimator on bags: it takes `Bags`, lists of 2-D arrays, 3-D arrays, and 2-D arrays of one-instance bags."""

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
        persistence.save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags


def warn_of_positive_class(label: Any, stacklevel: int) -> None:
    """Say which of two strings is taken as the positive class."""
    warnings.warn(
        f"The labels are strings; {label!r} is taken as the positive class. "
        "Pass pos_label to choose, or to silence this.",
        UserWarning,
        stacklevel=stacklevel,
    )


class BagClassifier(ClassifierMixin, BagEstimator, ABC):
    """A classifier of bags whose labels follow from ``decision_function``."""

    classes_: NDArray[Any]
    n_features_in_: int
    _reads_blocks: ClassVar[bool] = False  # whether `LazyBags` do in place of `Bags`
    _folds_in_threads: ClassVar[bool] = False  # whether cross-validation is faster with a fold in every thread

    @abstractmethod
    def decision_function(self, X: Any) -> Floats:
        """Return how positive every bag is, (n_bags,), or how much of every class, (n_bags, n_classes).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of every bag, (n_bags,), or an indicator matrix where the model was fitted on one.

        With two classes a bag is positive where its decision is above zero; a tie is negative. With more, the
        class with the largest decision is taken.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        check_is_fitted(self)
        return self._labels_of(self.decision_function(X))

    def _labels_of(self, decisions: Floats) -> NDArray[Any]:
        if decisions.ndim == 2:
            return cast("NDArray[Any]", self.classes_[decisions.argmax(axis=1)])
        negative, positive = self._class_order()
        return np.where(decisions > 0, self.classes_[positive], self.classes_[negative])

    def _class_order(self) -> tuple[int, int]:
        """Return the positions in ``classes_`` of the negative and of the positive class."""
        pos_label = getattr(self, "pos_label", None)
        positive = 1 if pos_label is None else int(np.flatnonzero(self.classes_ == pos_label)[0])
        return 1 - positive, positive

    def _decisions_of(self, by_class: Floats) -> Floats:
        """Return how much of every class, (n_bags, n_classes); of two classes the positive less the negative one."""
        if len(self.classes_) > 2:
            return by_class
        negative, positive = self._class_order()
        return by_class[:, positive] - by_class[:, negative]

    def _check_positive_class(self) -> None:
        """Refuse a ``pos_label`` that is no class, or one of many; say which of two strings is taken as positive."""
        pos_label, classes = getattr(self, "pos_label", None), self.classes_.tolist()
        if len(classes) > 2:
            if pos_label is not None:
                msg = f"pos_label={pos_label!r} names the positive class of two, but y has {len(classes)} classes."
                raise BagValidationError(msg)
            return
        if pos_label is not None and pos_label not in classes:
            msg = f"pos_label={pos_label!r} is not a class of y; the classes are {classes}."
            raise BagValidationError(msg)
        if pos_label is None and self.classes_.dtype.kind in "UO":
            warn_of_positive_class(classes[1], stacklevel=6)

    def _check_training(self, X: Any, y: Any) -> tuple[Bags, NDArray[np.int64]]:
        """Return bags and class numbers, and set what every fitted classifier has."""
        bags = check_bags(X, estimator=self, reset=True)
        self.classes_, encoded = check_bag_labels(y, bags, self)
        return bags, encoded

    def _check_lazy_training(self, X: LazyBags, y: Any) -> tuple[LazyBags, NDArray[np.int64]]:
        """Do the same for bags that are not in memory."""
        bags = check_lazy_bags(X, estimator=self, reset=True)
        self.classes_, encoded = check_bag_labels(y, bags, self)
        return bags, encoded

    def _check_lazy_new(self, X: LazyBags) -> LazyBags:
        """Return bags that are not in memory, of the same features as the training bags."""
        check_is_fitted(self)
        return check_lazy_bags(X, estimator=self, reset=False)

    def _check_new(self, X: Any) -> Bags:
        """Return bags to predict, of the same features as the training bags."""
        check_is_fitted(self)
        return check_bags(X, estimator=self, reset=False)


class TwoClassMixin:
    """What a classifier of two classes adds to `BagClassifier`; it stands to the left of it."""

    def _check_two_classes(self: Any, X: Any, y: Any) -> tuple[Bags, NDArray[np.bool_]]:
        """Return training bags and which of them are positive; more classes than two are refused."""
        bags, labels = self._check_training(X, y)
        if len(self.classes_) > 2:
            msg = (
                f"Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(self.classes_)} classes. Wrap {type(self).__name__} in OneVsRestClassifier."
            )
            raise BagValidationError(msg)
        self._check_positive_class()
        return bags, labels == self._class_order()[1]

    def __sklearn_tags__(self) -> Any:
        tags = cast("Any", super()).__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
