"""The private parts of scikit-learn that gmil needs, in one place: what a new version moves is mended here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.base import _fit_context
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.validation import _check_feature_names_in

__all__ = [
    "BaseSearchCV",
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_feature_names_in",
    "checks_parameters",
    "validate_parameter_constraints",
]

check_feature_names_in = _check_feature_names_in
"""Returns the names of features that an estimator was given or has seen, else x0, x1, ..."""

Fit = TypeVar("Fit", bound=Callable[..., Any])


def checks_parameters(fit: Fit) -> Fit:
    """Decorate ``fit``: parameters are checked against ``_parameter_constraints`` first.

    Estimators inside trust theirs, unless they are parameters themselves: a class that takes such says so by
    ``_takes_estimators``.
    """
    trusted, checked = (_fit_context(prefer_skip_nested_validation=skips)(fit) for skips in (True, False))

    @functools.wraps(fit)
    def fit_checked(model: Any, *arguments: Any, **keywords: Any) -> Any:
        chosen = checked if getattr(model, "_takes_estimators", False) else trusted
        return chosen(model, *arguments, **keywords)

    return cast("Fit", fit_checked)
