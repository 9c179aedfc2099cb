"""The parameters of estimators: constructors that only assign, and what a parameter may be."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeVar, cast, dataclass_transform

from gmil.compat import Interval, StrOptions
from gmil.engine import BACKENDS

AnyClass = TypeVar("AnyClass", bound=type)

PARAMETERS: dict[str, list[Any]] = {
    "C": [Interval(Real, 0, None, closed="neither")],
    "backend": [StrOptions(set(BACKENDS))],
    "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
    "kernel": [StrOptions({"rbf", "linear"})],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "n_jobs": [Integral, None],
    "n_processes": [Integral, None],
    "pos_label": [Real, str, "boolean", None],
    "random_state": ["random_state"],
    "tune": ["boolean"],
}
"""What a parameter of this name may be in every estimator that has it and names no rule of its own."""

LAST = ("scale", "tune", "pos_label", "n_jobs", "n_processes", "backend", "random_state")
"""What most estimators have: it comes last in their constructors, in this order."""


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def parameters(cls: AnyClass) -> AnyClass:
    """Make the constructor of an estimator, which only assigns, from the annotated attributes of the class.

    A class has the parameters of decorated classes above it, too, and may give them other defaults. Parameters are
    keyword-only but for those with ``field(default=..., kw_only=False)``.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    signature = inspect.signature(made.__init__)
    ordered = sorted(signature.parameters.values(), key=lambda each: (each.kind, _place(each.name)))
    made.__init__.__signature__ = signature.replace(parameters=ordered)
    made._parameter_constraints = rules_of(made)
    return cast("AnyClass", made)


def _place(name: str) -> int:
    return LAST.index(name) if name in LAST else -1


def rules_of(cls: type) -> dict[str, list[Any]]:
    """Return what every parameter may be: by the class, by a class above it, or by `PARAMETERS`.

    Without a constructor of its own, which `parameters` may be about to make, a class has the rules of all names.
    """
    rules = dict(PARAMETERS)
    for base in reversed(cls.__mro__):
        rules |= vars(base).get("_parameter_constraints", {})
    if "__init__" not in vars(cls):
        return rules
    return {name: rules[name] for name in inspect.signature(cls).parameters if name in rules}
