"""The classes that can be saved, by name: a file names a class, and loading looks the name up here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from gmil.names import ESTIMATORS, HOMES

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    EstimatorClass = TypeVar("EstimatorClass", bound=type[BaseEstimator])

_classes: dict[str, type[BaseEstimator]] = {}


def register_class(cls: EstimatorClass) -> EstimatorClass:
    """Let a class be saved and loaded under its name; loading looks names up and imports nothing that a file names."""
    _classes[cls.__name__] = cls
    return cls


def import_estimators() -> None:
    """Import every module of gmil with estimators, which then are registered."""
    for module in ESTIMATORS:
        import_module(module)


def registered_classes() -> dict[str, type[BaseEstimator]]:
    """Return every class that can be saved, by name."""
    import_estimators()
    return dict(_classes)


def class_named(name: str) -> type[BaseEstimator] | None:
    """Return the class of a name, or None; of gmil's modules the one that has it is imported, and no other."""
    if name not in _classes and name in HOMES:
        import_module(HOMES[name])
    return _classes.get(name)


def is_registered(model: BaseEstimator) -> bool:
    """Tell whether a model is of a registered class, and not of one that only has its name."""
    return _classes.get(type(model).__name__) is type(model)
