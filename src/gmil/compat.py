"""The private parts of scikit-learn that gmil needs, in one place: what a new version moves is mended here."""

from __future__ import annotations

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
    "checks_nested_parameters",
    "checks_parameters",
    "validate_parameter_constraints",
]

check_feature_names_in = _check_feature_names_in
"""Returns the names of features that an estimator was given or has seen, else x0, x1, ..."""

checks_parameters = _fit_context(prefer_skip_nested_validation=True)
"""Decorates ``fit``: parameters are checked against ``_parameter_constraints`` first; estimators inside trust them."""

checks_nested_parameters = _fit_context(prefer_skip_nested_validation=False)
"""The same for estimators that take estimators as parameters, which check their own."""
