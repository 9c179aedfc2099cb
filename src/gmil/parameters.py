"""The parameters of estimators: constructors that only assign, what a parameter may be, texts that all share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar, cast, dataclass_transform

from gmil.compat import Interval, StrOptions
from gmil.engine import BACKENDS

AnyClass = TypeVar("AnyClass", bound=type)

ABOVE_ZERO = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
INSIDE_UNIT = Interval(Real, 0, 1, closed="neither")
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
NO_FEWER_THAN_ZERO = Interval(Integral, 0, None, closed="left")

PARAMETERS: dict[str, list[Any]] = {
    "C": [ABOVE_ZERO],
    "backend": [StrOptions(set(BACKENDS))],
    "gamma": [ABOVE_ZERO, StrOptions({"median"})],
    "kernel": [StrOptions({"rbf", "linear"})],
    "max_iter": [AT_LEAST_ONE],
    "n_jobs": [Integral, None],
    "n_processes": [Integral, None],
    "pos_label": [Real, str, "boolean", None],
    "random_state": ["random_state"],
    "tune": ["boolean"],
}
"""What a parameter of this name may be in every estimator that has it and names no rule of its own."""

LAST = ("scale", "tune", "pos_label", "n_jobs", "n_processes", "backend", "random_state")
"""What most estimators have: it comes last in their constructors, in this order."""

PARAMETER_TEXTS = {
    "scale": """\
scale : {{None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}}, default={default}
    Scaling of the features, fitted on the training instances, as in `gmil.GMIL`.
""",
    "pos_label": """\
pos_label : label or None, default={default}
    The positive class of two; None is ``classes_[1]``. It is what training, ``score_instances`` and ``explain`` are
    about; decisions are about ``classes_[1]`` in any case. A tie is not positive.
""",
    "n_jobs": """\
n_jobs : int or None, default={default}
    Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
    results do not depend on it.
""",
}
ATTRIBUTE_TEXTS = {
    "classes_": """\
classes_ : array of shape ({n_classes},)
""",
    "pos_label_": """\
pos_label_ : label or None
    The positive class of two; None where there are more.
""",
    "n_features_in_": """\
n_features_in_ : int
""",
}
"""What docstrings need not repeat: `parameters` puts it where a class has such and its docstring does not name it."""


def parameter(*, default: Any, rules: Sequence[Any] = (), kw_only: bool = True) -> Any:
    """Declare a parameter that may be what one of the rules allows; without rules those of its name hold.

    A rule is one of scikit-learn's constraints, or the texts to choose from. The rules of a name are those of a class
    above, or of `PARAMETERS`.
    """
    known = [
        rule if isinstance(rule, str) or not isinstance(rule, Collection) else StrOptions(set(rule)) for rule in rules
    ]
    return field(default=default, kw_only=kw_only, metadata={"rules": known} if rules else None)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter, field))
def parameters(cls: AnyClass) -> AnyClass:
    """Make the constructor of an estimator, which only assigns, from the annotated attributes of the class.

    A class has the parameters of decorated classes above it, too, and may give them other defaults. Parameters are
    keyword-only but for those with ``parameter(default=..., kw_only=False)``. The docstring is completed.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    signature = inspect.signature(made.__init__)
    ordered = sorted(signature.parameters.values(), key=lambda each: (each.kind, _place(each.name)))
    made.__init__.__signature__ = signature.replace(parameters=ordered)
    own = {each.name: each.metadata["rules"] for each in fields(made) if "rules" in each.metadata}
    made._parameter_constraints = {**vars(made).get("_parameter_constraints", {}), **own}
    made._parameter_constraints = rules_of(made)
    made.__doc__ = completed(made)
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


def completed(cls: Any) -> str | None:
    """Return the docstring of an estimator with the texts that all share, parameters in the order of the signature."""
    text = inspect.cleandoc(cls.__doc__ or "")
    own, found = _entries(text, "Parameters"), _entries(text, "Attributes")
    if not own or not found:  # a class that is no estimator, or Python without docstrings
        return cast("str | None", cls.__doc__)
    texts = []
    for name, each in inspect.signature(cls).parameters.items():
        default = repr(each.default).replace("'", '"')
        texts.append(own[name] if name in own else PARAMETER_TEXTS.get(name, "").format(default=default))
    known_texts = ATTRIBUTE_TEXTS if hasattr(cls, "_two_classes") else {}  # others than classifiers name their own
    n_classes = 2 if known_texts and cls._two_classes else "n_classes"
    missing = [text.format(n_classes=n_classes) for name, text in known_texts.items() if name not in found]
    known = "".join(found.values())
    return text.replace("".join(own.values()), "".join(texts), 1).replace(known, known + "".join(missing), 1)


def _entries(text: str, title: str) -> dict[str, str]:
    """Return the entries of a section of a docstring by the names that they begin with."""
    section = text.partition(f"\n{title}\n{'-' * len(title)}\n")[2].partition("\n\n")[0] + "\n"
    entries = re.split(r"^(?=\S)", section, flags=re.MULTILINE)[1:]
    return {entry.split(":")[0].strip(): entry for entry in entries}
