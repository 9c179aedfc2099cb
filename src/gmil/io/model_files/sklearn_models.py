"""Models of scikit-learn whose compiled code believes what their arrays say: these are checked before they predict.

libsvm reads its support vectors by lengths that other arrays give; k-means and sparse products do not look at lengths
either. Everything else in scikit-learn that skops trusts is NumPy, which refuses arrays that do not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from gmil.io.model_files.damage import DamageError, expect
from gmil.io.model_files.fitted import check_jobs
from gmil.io.model_files.schema import Choice, Count, Flag, Number, Rows, check_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 20
_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def check_sklearn_model(model: Any) -> None:
    """Raise `DamageError` where arrays inside a model could make compiled code read what is not there."""
    expect(isinstance(model, BaseEstimator), f"it holds a {type(model).__name__} in place of a model")
    for part in _parts(model, 0):
        if sp.issparse(part):
            expect(part.format in ("csr", "csc"), f"it holds a sparse array of format {part.format!r}")
            part.check_format(full_check=True)
        elif isinstance(part, BaseEstimator):
            _check_estimator(part)


def models_inside(model: BaseEstimator) -> Iterator[BaseEstimator]:
    """Yield a model and every model inside it."""
    return (part for part in _parts(model, 0) if isinstance(part, BaseEstimator))


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """Yield a value and everything inside it: attributes of models, items of lists, tuples, dicts and arrays."""
    expect(depth <= _DEEPEST, f"models lie more than {_DEEPEST} deep in each other")
    yield value
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
        inside = value
    elif isinstance(value, BaseEstimator):
        inside = vars(value).values()
    for item in inside:
        yield from _parts(item, depth + 1)


def _check_estimator(model: BaseEstimator) -> None:
    for name in ("n_jobs", "_n_threads"):
        check_jobs(model, name)
    for name in ("cluster_centers_", "coef_"):
        _check_columns(model, name)
    if hasattr(model, "support_vectors_") and hasattr(model, "_n_support"):
        _check_libsvm(model)


def _check_columns(model: Any, name: str) -> None:
    """Refuse centres or weights of another number of features than the model has."""
    array = vars(model).get(name)
    if isinstance(array, np.ndarray) and array.ndim and "n_features_in_" in vars(model):
        check_shape(array.shape[-1:], (int(model.n_features_in_),), f"{name} of {type(model).__name__}", {})


# -------------------------------------------------------------------------------- libsvm


def _check_libsvm(model: Any) -> None:
    """Refuse a machine whose support vectors, coefficients and counts do not fit each other."""
    name, values = f"{type(model).__name__}", vars(model)
    expect("_impl" not in values, f"{name} has its own _impl")  # which formula is used belongs to the class
    sizes: dict[str, int] = {}
    n_classes = len(model.classes_) if "classes_" in values else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    n_rows, n_columns = model.shape_fit_
    Flag().check(model._sparse, f"_sparse of {name}", sizes)
    Choice(*_KERNELS).check(model.kernel, f"kernel of {name}", sizes)
    Number(at_least=0).check(model._gamma, f"_gamma of {name}", sizes)
    Number().check(model.coef0, f"coef0 of {name}", sizes)
    Count().check(model.degree, f"degree of {name}", sizes)
    Count(1).check(n_rows, f"shape_fit_ of {name}", sizes)
    _check_array(model.support_, ("S",), np.int32, f"support_ of {name}", sizes)
    if sizes["S"] and not 0 <= model.support_.min() <= model.support_.max() < n_rows:
        msg = f"support_ of {name} must be rows of {n_rows}, but it has {model.support_.max()}"
        raise DamageError(msg)
    _check_counts(model, n_classes, sizes["S"], name)
    _check_vectors(model, n_columns, name, sizes)
    for attribute in ("dual_coef_", "_dual_coef_"):
        _check_coefficients(values[attribute], n_classes - 1, f"{attribute} of {name}", sizes, sparse=model._sparse)
    for attribute in ("intercept_", "_intercept_"):
        _check_array(values[attribute], (n_pairs,), np.float64, f"{attribute} of {name}", sizes)
    for attribute in ("_probA", "_probB"):
        expected = n_pairs if len(values[attribute]) else 0
        _check_array(values[attribute], (expected,), np.float64, f"{attribute} of {name}", sizes)
    if "class_weight_" in values:
        _check_array(model.class_weight_, (n_classes if len(model.class_weight_) else 0,), np.float64, name, sizes)


def _check_counts(model: Any, n_classes: int, n_support: int, name: str) -> None:
    _check_array(model._n_support, (n_classes,), np.int32, f"_n_support of {name}", {})
    counts = model._n_support.astype(np.int64)
    total = counts.sum() if hasattr(model, "classes_") else counts.max()  # without classes it is there twice
    fits = counts.min() >= 0 and total == n_support
    expect(fits, f"_n_support of {name} must count {n_support} support vectors, but it has {counts.tolist()}")


def _check_vectors(model: Any, n_columns: int, name: str, sizes: dict[str, int]) -> None:
    vectors, what = model.support_vectors_, f"support_vectors_ of {name}"
    if model.kernel == "precomputed":
        expect(not vectors.size, f"{what} must be empty for a precomputed kernel")
    elif model._sparse:
        _check_sparse(vectors, n_columns, what, sizes)
    else:
        _check_array(vectors, ("S", n_columns), np.float64, what, sizes)


def _check_coefficients(value: Any, n_rows: int, what: str, sizes: dict[str, int], *, sparse: bool) -> None:
    if not sparse:
        _check_array(value, (n_rows, "S"), np.float64, what, sizes)
        return
    shape = (n_rows, sizes["S"])
    expect(value.shape == shape, f"{what} must be of shape {shape}, but it is {value.shape}")
    _check_sparse(value, sizes["S"], what, {"S": n_rows})
    expect(len(value.data) == n_rows * sizes["S"], f"{what} must have a value for every support vector")


def _check_sparse(value: Any, n_columns: int, what: str, sizes: dict[str, int]) -> None:
    is_plain = sp.issparse(value) and value.format == "csr" and value.data.dtype == np.float64
    expect(is_plain, f"{what} must be sparse rows of float64")
    Rows("S", n_columns).check(sp.csr_array(value), what, sizes)


def _check_array(
    value: Any, shape: tuple[int | str, ...], dtype: type[np.generic], what: str, sizes: dict[str, int]
) -> None:
    """Refuse what is not an array of exactly this type and shape, of finite numbers."""
    is_plain = isinstance(value, np.ndarray) and value.dtype == dtype and np.isfinite(value).all()
    expect(is_plain, f"{what} must be an array of finite {np.dtype(dtype)}")
    check_shape(value.shape, shape, what, sizes)
