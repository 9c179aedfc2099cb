"""Everything users pass becomes `Bags` and labels here, or one clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from gmil.bags import Bags
from gmil.errors import BagValidationError
from gmil.tables import missing_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator


def check_bags(X: Any, *, estimator: BaseEstimator | None = None, reset: bool = False, allow_nan: bool = False) -> Bags:
    """Turn what a user passed into `Bags`.

    Parameters
    ----------
    X : Bags, list of 2-D arrays, 3-D array, or 2-D array
        A 2-D array (or data frame, or sparse matrix) is read as bags of one instance each.
    estimator : estimator, optional
        The estimator that asks: its ``n_features_in_`` (and ``feature_names_in_``) are set when ``reset`` and
        compared otherwise.
    reset : bool
        True in ``fit``.
    allow_nan : bool
        Let missing and infinite values pass.
    """
    if is_table(X):
        return _one_instance_bags(X, estimator, reset, allow_nan)
    bags = X if isinstance(X, Bags) else Bags.from_list(X)
    if len(bags) == 0:
        msg = "X holds no bags; at least one bag is needed."
        raise BagValidationError(msg)
    if not allow_nan:
        refuse_non_finite(bags)
    if estimator is not None:
        _compare_features(bags, estimator, reset)
    return bags


def is_table(X: Any) -> bool:
    """Tell whether X is a table with one row per bag, and not bags: no `Bags`, list of bags or 3-D array."""
    return not (isinstance(X, Bags) or getattr(X, "ndim", None) == 3 or _is_list_of_bags(X))


def _is_list_of_bags(X: Any) -> bool:
    """Tell a list of 2-D bags from a plain 2-D table written as lists."""
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return False
    # A bag without instances tells nothing; what follows it says what X was meant to be.
    first = next((item for item in X if not _is_blank(item)), X[0])
    if sp.issparse(first) or hasattr(first, "__array__"):
        return np.ndim(first) == 2 or sp.issparse(first)
    return isinstance(first, (list, tuple)) and len(first) > 0 and np.ndim(first[0]) >= 1


def _is_blank(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return item.shape == (0,)
    return isinstance(item, (list, tuple)) and not item


def _one_instance_bags(X: Any, estimator: Any, reset: bool, allow_nan: bool) -> Bags:
    checks: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "order": "C",
        "ensure_all_finite": not allow_nan,
    }
    matrix = check_array(X, **checks) if estimator is None else validate_data(estimator, X, reset=reset, **checks)
    return Bags(matrix, np.arange(matrix.shape[0] + 1))


def refuse_non_finite(bags: Bags) -> None:
    """Refuse NaN and infinity, naming the first bag and column that hold one."""
    stored = bags.instances.data if sp.issparse(bags.instances) else bags.instances
    # One sum is finite if and only if (overflow aside) every entry is: far cheaper than a mask of the data.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(stored)):
            return
    finite = np.isfinite(stored)
    if finite.all():
        return
    if sp.issparse(bags.instances):
        entry = int((~finite).argmax())
        row = int(np.searchsorted(bags.instances.indptr, entry, side="right")) - 1
        feature = int(bags.instances.indices[entry])
        value = bags.instances.data[entry]
    else:
        row, feature = (int(i) for i in np.argwhere(~finite)[0])
        value = bags.instances[row, feature]
    bag = int(np.searchsorted(bags.offsets, row, side="right")) - 1
    msg = (
        f"X contains {'NaN' if np.isnan(value) else 'infinity'}: in {name_of_bag(bags, bag)}, instance "
        f"{row - bags.offsets[bag]}, {_name_of_feature(bags, feature)} ({int((~finite).sum())} such values in "
        "all). Every value must be a finite number. Fill or drop them, for example with "
        "gmil.PerInstance(SimpleImputer())."
    )
    raise BagValidationError(msg)


def name_of_bag(bags: Bags, position: int) -> str:
    """Return how an error speaks of a bag: its position and, where it has one, its id."""
    return f"bag {position}" if bags.bag_ids is None else f"bag {position} ({bags.bag_ids[position]!s})"


def _name_of_feature(bags: Bags, position: int) -> str:
    names = bags.feature_names
    return f"column {position}" if names is None else f"column {position} ({names[position]})"


def _compare_features(bags: Bags, estimator: Any, reset: bool) -> None:
    if bags.n_features == 0:
        msg = f"X has 0 features, but {type(estimator).__name__} needs at least 1."
        raise BagValidationError(msg)
    if reset:
        estimator.n_features_in_ = bags.n_features
        if bags.feature_names is not None:
            estimator.feature_names_in_ = np.array(bags.feature_names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    if bags.n_features != estimator.n_features_in_:
        msg = (
            f"X has {bags.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
        raise BagValidationError(msg)
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and bags.feature_names is not None and list(known) != list(bags.feature_names):
        wrong = next(i for i, (a, b) in enumerate(zip(known, bags.feature_names, strict=True)) if a != b)
        msg = (
            f"The features of X must be those of fit, in the same order, but feature {wrong} is "
            f"{bags.feature_names[wrong]!r} and was {known[wrong]!r}. Reorder or rename the features."
        )
        raise BagValidationError(msg)


def check_bag_labels(y: Any, bags: Bags, estimator: BaseEstimator) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes and the class number of every bag; labels that do not fit the bags are refused."""
    owner = type(estimator).__name__
    if y is None:
        msg = f"This {owner} estimator requires y to be passed, but the target y is None."
        raise BagValidationError(msg)
    labels = column_or_1d(y, warn=True)
    check_label_count(len(labels), bags)
    missing = missing_entries(labels)
    if missing.any():
        msg = f"Input y contains NaN: the label of {name_of_bag(bags, int(missing.argmax()))} is missing."
        raise BagValidationError(msg)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        msg = f"Input y contains infinity: {name_of_bag(bags, int(np.isinf(labels).argmax()))} has such a label."
        raise BagValidationError(msg)
    try:
        classes, encoded = np.unique(labels, return_inverse=True)
    except TypeError:
        msg = "The labels in y must all be of one kind, strings or numbers, got a mixture. Turn them into strings."
        raise BagValidationError(msg) from None
    check_classification_targets(labels)
    if len(classes) < 2:
        msg = (
            f"y holds one class only, {classes.tolist()[0]!r}, but {owner} needs bags of at least 2 classes. "
            "Add bags of another class."
        )
        raise BagValidationError(msg)
    return classes, encoded.astype(np.int64)


def check_label_count(n_labels: int, bags: Bags) -> None:
    """Refuse a number of labels that is not the number of bags, and guess what was meant."""
    if n_labels == len(bags):
        return
    if bags.n_instances == len(bags):
        msg = (
            f"X is read as {len(bags)} one-instance bags, but y has {n_labels} labels: inconsistent numbers of "
            "samples. If the rows of X are instances of larger bags, pass Bags.from_ids(X, bag_ids)."
        )
    elif n_labels == bags.n_instances:
        msg = (
            f"y has {n_labels} labels, one per instance, but X has {len(bags)} bags and labels belong to bags. "
            "Pass one label per bag, for example y[bags.offsets[:-1]] where all instances of a bag agree."
        )
    else:
        msg = f"y has {n_labels} labels, but X has {len(bags)} bags. Pass one label per bag."
    raise BagValidationError(msg)
