"""The last check of a loaded model: it decides about two tiny bags, as it did when it was saved."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from gmil.bags import Bags
from gmil.errors import BackendUnavailableError, BagValidationError
from gmil.io.model_files.damage import DamageError
from gmil.io.model_files.sklearn_models import models_inside

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.base import BaseEstimator

_MOST_FEATURES = 1_000_000
"""A probe has four rows; models of more features are not probed, whatever they keep of them."""

_NOT_FINITE = "not finite"
_CHOOSY = {
    "CategoricalNB",
    "FunctionTransformer",
    "LabelPropagation",
    "LabelSpreading",
    "OneHotEncoder",
    "OrdinalEncoder",
    "QuadraticDiscriminantAnalysis",
    "TargetEncoder",
}
"""What may have nothing to say about a value that is far from all it has seen."""


def probe(model: BaseEstimator) -> str:
    """Return what happens when a model decides about small bags: nothing, "not finite", or what was raised.

    A model of scikit-learn inside may have good reasons to refuse them, so the outcome is kept in the file.
    """
    n_features = getattr(model, "n_features_in_", None)  # a pipeline has that of its first step
    if n_features is None or n_features > _MOST_FEATURES:
        return ""
    names, sparse = getattr(model, "feature_names_in_", None), getattr(model, "sparse_", False)
    found = [
        _outcome(lambda bags=bags: _ask(model, bags))  # type: ignore[misc]
        for bags in _tiny_bags(int(n_features), None if names is None else tuple(names), sparse=sparse)
    ]
    return max(found, key=len)


def probe_decisions(decide: Callable[[Bags], Any], n_features: int, n_decisions: int) -> str:
    """Return what happens when a function gives so many decisions about every one of small bags."""
    if n_features > _MOST_FEATURES:
        return ""
    bags = _tiny_bags(n_features)[0]
    return _outcome(lambda: _expect(decide(bags), (len(bags), n_decisions)))


def check_probe(model: BaseEstimator, expected: str | None) -> None:
    """Raise `DamageError` where a model no longer does what it did; None is a file that does not say what it did."""
    found = probe(model)
    if found == (expected or "") or (expected is None and is_choosy(model)):
        return
    msg = (
        f"its {type(model).__name__} cannot predict ({found or 'it did not when it was saved'}), or was saved with "
        "another version of scikit-learn"
    )
    raise DamageError(msg)


def is_choosy(model: BaseEstimator) -> bool:
    """Tell whether something inside a model may have nothing to say about values that it has never seen."""
    return any(type(part).__name__ in _CHOOSY for part in models_inside(model))


def _tiny_bags(n_features: int, names: tuple[str, ...] | None = None, *, sparse: bool = False) -> list[Bags]:
    """Return a bag of one instance and one of three, above zero as some transformers ask, in both precisions."""
    rows = np.array([[1.0], [0.5], [2.0], [1.0]]) * np.linspace(0.5, 1, n_features)
    instances = sp.csr_array(rows) if sparse else rows
    return [
        Bags(instances.astype(dtype), np.array([0, 1, 4]), feature_names=names) for dtype in (np.float64, np.float32)
    ]


def _outcome(ask: Callable[[], None]) -> str:
    """Return the type of what is raised, or nothing."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            ask()
        except BackendUnavailableError:
            return ""  # it was fitted elsewhere; set_params(backend="auto") makes it run here
        except _NotFiniteError:
            return _NOT_FINITE
        except Exception as error:
            return type(error).__name__
    return ""


class _NotFiniteError(ValueError):
    """Decisions that are NaN or infinite."""


def _ask(model: Any, bags: Bags) -> None:
    if hasattr(model, "predict") and not is_classifier(model):
        values = model.predict(bags)
        _expect(values, (len(bags), *np.shape(values)[1:2]))
        if hasattr(model, "score_instances"):
            _expect(model.score_instances(bags), (bags.n_instances, *np.shape(values)[1:2]))
        return
    if not is_classifier(model):
        model.transform(bags)
        return
    n_classes = len(model.classes_)
    by_class = (n_classes,) if n_classes > 2 or getattr(model, "multilabel_", False) else ()
    _expect(model.decision_function(bags), (len(bags), *by_class))
    model.predict(bags)
    if hasattr(model, "predict_proba"):
        _expect(model.predict_proba(bags), (len(bags), n_classes))
    if hasattr(model, "score_instances"):
        with contextlib.suppress(BagValidationError):  # some models have no scores for such bags, and say so
            _expect(model.score_instances(bags), (bags.n_instances, *by_class))


def _expect(found: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is not an array of finite numbers of this shape."""
    if not isinstance(found, np.ndarray) or found.shape != shape:
        msg = f"{np.shape(found)} is not {shape}"
        raise ValueError(msg)
    if not np.isfinite(found).all():
        raise _NotFiniteError
