"""Whether a model keeps to what its class declares: parameters, fitted attributes, and models inside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gmil.compat import validate_parameter_constraints
from gmil.errors import GmilError, listed
from gmil.io.model_files.damage import DamageError, expect
from gmil.io.model_files.schema import Kind, refuse

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

MOST_JOBS = 4096
"""A file that asks for more threads than this is no file of ours."""

_FITTED_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")


class Kept(Kind):
    """The value of a parameter at the time of the fit: what the constraints of the parameter allow."""

    def __init__(self, parameter: str, constraints: list[Any]) -> None:
        self.parameter, self.constraints = parameter, constraints

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:  # noqa: ARG002
        """Refuse what could not have been passed."""
        try:
            validate_parameter_constraints({self.parameter: self.constraints}, {self.parameter: value}, "the model")
        except ValueError:
            refuse(name, f"a value of the parameter {self.parameter!r}", f"is {value!r:.60}")


def fitted_values(model: BaseEstimator) -> dict[str, Any]:
    """Return what ``fit`` has set, by name: attributes that end with an underscore and do not begin with one."""
    return {name: value for name, value in sorted(vars(model).items()) if _FITTED_NAME.fullmatch(name)}


def declared(cls: type[BaseEstimator]) -> dict[str, Kind]:
    """Return the kind of every fitted attribute of a class: its own declarations and those of its bases.

    A parameter that ``fit`` keeps is what the parameter may be.
    """
    kinds: dict[str, Kind] = {}
    for base in reversed(cls.__mro__):
        kinds |= vars(base).get("_fitted_attributes", {})
    for name in getattr(cls, "_kept_parameters", ()):
        kinds[f"{name}_"] = Kept(name, cls._parameter_constraints[name])
    return kinds


def check_model(model: BaseEstimator) -> None:
    """Raise `DamageError` where parameters or fitted attributes are not what the class declares."""
    _check_parameters(model)
    values = fitted_values(model)
    if values:
        _check_fitted(model, values)


def check_jobs(model: BaseEstimator, attribute: str) -> None:
    """Refuse a number of threads that no machine has."""
    n_jobs = getattr(model, attribute, None)
    fits = not isinstance(n_jobs, int) or abs(n_jobs) <= MOST_JOBS
    expect(fits, f"{attribute} of {type(model).__name__} must be at most {MOST_JOBS}, but it is {n_jobs}")


def _check_parameters(model: BaseEstimator) -> None:
    check_jobs(model, "n_jobs")
    try:
        model._validate_params()
    except GmilError:
        raise
    except ValueError as error:
        msg = str(error).rstrip(".")
        raise DamageError(msg) from error


def _check_fitted(model: BaseEstimator, values: dict[str, Any]) -> None:
    name, kinds = type(model).__name__, declared(type(model))
    unknown = [repr(key) for key in values if key not in kinds]
    expect(not unknown, f"{name} has the attribute {listed(unknown)}, which no fitted {name} has")
    missing = [repr(key) for key, kind in kinds.items() if key not in values and not kind.may_be_missing]
    expect(not missing, f"{name} is fitted, but lacks the attribute {listed(missing)}")
    sizes: dict[str, int] = {}
    for key, kind in kinds.items():
        if key in values:
            kind.check(values[key], f"{key} of {name}", sizes)
        if key == "classes_":
            n_classes = len(values[key])
            one_decision = n_classes == 2 and not values.get("multilabel_", False)
            one_decision = one_decision or getattr(type(model), "_one_score", False)
            sizes |= {"C": n_classes, "P": 1 if one_decision else n_classes}
