"""Everything users pass becomes `Bags` and labels here, or one clear error."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from gmil.bags import Bags
from gmil.bags.finite import name_of_bag, refuse_non_finite
from gmil.bags.tables import missing_entries, unmasked
from gmil.errors import BagValidationError, count_of, listed
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator


_NO_BAGS = "X holds no bags; at least one bag is needed."


def check_bags(
    X: Any,
    *,
    estimator: BaseEstimator | None = None,
    reset: bool = False,
    allow_nan: bool = False,
    allow_large: bool = False,
) -> Bags:
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
    allow_large : bool
        Let values pass whose squares overflow, for who does not square them.
    """
    if isinstance(X, LazyBags):
        owner = "This" if estimator is None else type(estimator).__name__
        msg = (
            f"{owner} needs all bags in memory, but X is {X!r}. GMIL, GMILCV and WeightedGMIL read bags in blocks; for "
            "others call X.load(), or X[positions].load() for some of the bags."
        )
        raise BagValidationError(msg)
    _refuse_no_sequence(X)
    if is_table(X):
        bags = _one_instance_bags(unmasked(X), estimator, reset)
        if not allow_nan:
            refuse_non_finite(bags, allow_large=allow_large)
        return bags
    bags = X if isinstance(X, Bags) else Bags.from_list(X)
    if len(bags) == 0:
        raise BagValidationError(_NO_BAGS)
    if not allow_nan:
        refuse_non_finite(bags, allow_large=allow_large)
    if estimator is not None:
        _compare_features(bags, estimator, reset)
    return bags


def check_lazy_bags(X: LazyBags, *, estimator: BaseEstimator | None = None, reset: bool = False) -> LazyBags:
    """Check what can be known of bags before they are read; each block is checked for NaN when it is.

    Parameters
    ----------
    X : LazyBags
    estimator, reset
        As in `check_bags`.
    """
    if len(X) == 0:
        raise BagValidationError(_NO_BAGS)
    if estimator is not None:
        _compare_features(X, estimator, reset)
    return X


def is_table(X: Any) -> bool:
    """Tell whether X is a table with one row per bag, and not bags: no `Bags`, list of bags or 3-D array."""
    return not (isinstance(X, Bags) or getattr(X, "ndim", None) == 3 or _is_list_of_bags(X))


def _refuse_no_sequence(X: Any) -> None:
    """Refuse what has no order, or can be read once only, and a list of nothing."""
    if sp.issparse(X):  # a matrix of keys is a dict
        return
    if isinstance(X, (dict, set, frozenset)) or hasattr(X, "__next__"):
        msg = (
            f"X must be Bags, a list of 2-D arrays, a 3-D array, or a table with one bag a row, got a "
            f"{type(X).__name__}. Pass a list, of X.values() for example; a table of columns becomes bags with "
            "Bags.from_frame."
        )
        raise BagValidationError(msg)
    if isinstance(X, (list, tuple)) and len(X) == 0:
        raise BagValidationError(_NO_BAGS)


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


def _one_instance_bags(X: Any, estimator: Any, reset: bool) -> Bags:
    checks: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "order": "C",
        "ensure_all_finite": False,
    }
    try:
        matrix = check_array(X, **checks) if estimator is None else validate_data(estimator, X, reset=reset, **checks)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        msg = (
            f"X must be bags, or a table of numbers with one bag a row: {error}. Turn a table of instances into bags "
            "with Bags.from_frame(table, bag=...), and read a file with gmil.read(path)."
        )
        raise BagValidationError(msg) from error
    return Bags(matrix, np.arange(matrix.shape[0] + 1))


def _compare_features(bags: Bags | LazyBags, estimator: Any, reset: bool) -> None:
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
            f"{estimator.n_features_in_} features as input{_other_names(bags, estimator)}."
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


def _other_names(bags: Bags | LazyBags, estimator: Any) -> str:
    """Say which features are too many or missing, where both sides have names."""
    known, found = getattr(estimator, "feature_names_in_", None), bags.feature_names
    if known is None or found is None:
        return ""
    added = [repr(name) for name in found if name not in set(known)]
    absent = [repr(name) for name in known if name not in set(found)]
    parts = [f"not known from fit: {listed(added)}"] if added else []
    parts += [f"missing: {listed(absent)}"] if absent else []
    return f" ({'; '.join(parts)})" if parts else ""


def check_bag_labels(y: Any, bags: Bags | LazyBags, estimator: BaseEstimator) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes and the class number of every bag; labels that do not fit the bags are refused."""
    owner = type(estimator).__name__
    if y is None:
        msg = f"This {owner} estimator requires y to be passed, but the target y is None."
        raise BagValidationError(msg)
    labels = label_column(y, owner)
    check_label_count(len(labels), bags)
    refuse_missing_labels(labels, bags)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        msg = f"Input y contains infinity: {name_of_bag(bags, int(np.isinf(labels).argmax()))} has such a label."
        raise BagValidationError(msg)
    classes, encoded = _numbered(labels, "labels in y")
    refuse_fractions(labels)
    check_classification_targets(labels)
    if len(classes) < 2:
        msg = (
            f"y holds one class only, {classes.tolist()[0]!r}, but {owner} needs bags of at least 2 classes. "
            "Add bags of another class."
        )
        raise BagValidationError(msg)
    return classes, encoded


def _numbered(values: NDArray[Any], what: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the different values, sorted, and the number of each value among them."""
    try:
        different, numbers = np.unique(values, return_inverse=True)
    except TypeError:
        msg = f"The {what} must all be of one kind, strings or numbers, got a mixture. Turn them into strings."
        raise BagValidationError(msg) from None
    return different, numbers.astype(np.int64)


def label_column(y: Any, owner: str) -> NDArray[Any]:
    """Return one label per bag, as a column that hides nothing; ``owner`` is who needs it."""
    try:
        return column_or_1d(unmasked(y), warn=True)
    except ValueError as error:
        msg = (
            f"{owner} takes one label per bag: {str(error).rstrip('.')}. Where bags have several labels, pass an "
            "indicator matrix, which MultiLabelBinarizer of scikit-learn makes, to WeightedGMIL."
        )
        raise BagValidationError(msg) from error


def indicator_of(y: Any) -> NDArray[Any] | None:
    """Return an indicator matrix of labels, or None where y is none."""
    if y is None or getattr(y, "ndim", 2) != 2:
        return None
    try:
        matrix = y.toarray() if sp.issparse(y) else np.asarray(y)
    except ValueError:  # rows of different lengths
        return None
    return matrix if matrix.ndim == 2 and type_of_target(matrix) == "multilabel-indicator" else None


def refuse_missing_labels(labels: NDArray[Any], bags: Bags | LazyBags) -> None:
    """Refuse a label that is not there, and name its bag."""
    missing = missing_entries(labels)
    if missing.any():
        msg = f"Input y contains NaN: the label of {name_of_bag(bags, int(missing.argmax()))} is missing."
        raise BagValidationError(msg)


def refuse_fractions(labels: NDArray[Any]) -> None:
    """Refuse labels that are measurements and not classes."""
    if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
        fraction = labels[labels != np.rint(labels)][0].item()
        msg = (
            f"Unknown label type: y must name classes, by strings or whole numbers, got fractions such as "
            f"{fraction!r}. Turn them into classes first."
        )
        raise BagValidationError(msg)


def check_label_count(n_labels: int, bags: Bags | LazyBags) -> None:
    """Refuse a number of labels that is not the number of bags, and guess what was meant."""
    if n_labels == len(bags):
        return
    if bags.n_instances == len(bags):
        msg = (
            f"X is read as {len(bags)} one-instance bags, but y has {count_of(n_labels, 'label')}: inconsistent "
            "numbers of samples. If the rows of X are instances of larger bags, pass Bags.from_ids(X, bag_ids)."
        )
    elif n_labels == bags.n_instances:
        msg = (
            f"y has {n_labels} labels, one per instance, but X has {count_of(len(bags), 'bag')} and labels belong to "
            "bags. Pass one label per bag, for example y[bags.offsets[:-1]] where all instances of a bag agree."
        )
    else:
        msg = f"y has {count_of(n_labels, 'label')}, but X has {count_of(len(bags), 'bag')}. Pass one label per bag."
    raise BagValidationError(msg)


def check_groups(groups: Any, n_bags: int, least: int = 1) -> NDArray[np.int64] | None:
    """Return the number of the group of every bag, (n_bags,), or None; refuse groups that do not fit the bags.

    Parameters
    ----------
    groups : array of shape (n_bags,) or None
    n_bags : int
    least : int
        How many groups there must be.
    """
    if groups is None:
        return None
    if np.shape(groups) != (n_bags,):
        msg = f"groups must name the group of each of the {n_bags} bags, got shape {np.shape(groups)}."
        raise BagValidationError(msg)
    given = np.asarray(unmasked(groups))
    missing = missing_entries(given)
    if missing.any():
        msg = f"The group of bag {int(missing.argmax())} is missing in groups. Fill it in, or leave out the bag."
        raise BagValidationError(msg)
    names, numbers = _numbered(given, "groups")
    if len(names) < least:
        fix = "Leave groups out, or add another group."
        msg = f"groups must name at least {least} groups, but all bags are of one. {fix}"
        raise BagValidationError(msg)
    return numbers


def check_sample_weight(sample_weight: Any, bags: Bags | LazyBags) -> NDArray[np.float64] | None:
    """Return the weight of every bag, (n_bags,), or None; refuse weights that are no weights."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (len(bags),):
        msg = f"sample_weight must be one number for each of the {len(bags)} bags, got shape {weights.shape}."
        raise BagValidationError(msg)
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        first = int(wrong.argmax())
        msg = f"sample_weight must be finite and not negative, but {name_of_bag(bags, first)} has {weights[first]}."
        raise BagValidationError(msg)
    if not weights.any():
        msg = "sample_weight is zero for every bag. Give the bags that count a weight above zero."
        raise BagValidationError(msg)
    return weights


def warn_of_positive_class(label: Any) -> None:
    """Say which of two strings is taken as the positive class, as a warning about the line that called gmil."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("gmil", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"The labels are strings; {label!r} is taken as the positive class. "
        "Pass pos_label to choose, or to silence this.",
        UserWarning,
        stacklevel=level,
    )


def choose_positive_class(pos_label: Any, classes: NDArray[Any]) -> Any:
    """Return the positive class of two, None of more; a ``pos_label`` that is no class, or one of many, is refused."""
    labels = classes.tolist()
    if len(labels) > 2:
        if pos_label is not None:
            msg = f"pos_label={pos_label!r} names the positive class of two, but y has {len(labels)} classes."
            raise BagValidationError(msg)
        return None
    if pos_label is not None and pos_label not in labels:
        msg = f"pos_label={pos_label!r} is not a class of y; the classes are {labels}."
        raise BagValidationError(msg)
    return labels[1] if pos_label is None else labels[labels.index(pos_label)]
