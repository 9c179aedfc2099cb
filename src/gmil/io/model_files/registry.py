"""The classes that can be saved, by name: a file names a class, and loading looks the name up here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    EstimatorClass = TypeVar("EstimatorClass", bound=type[BaseEstimator])

_classes: dict[str, type[BaseEstimator]] = {}
_late_modules: list[str] = []


def register_class(cls: EstimatorClass) -> EstimatorClass:
    """Let a class be saved and loaded under its name; loading looks names up and imports nothing that a file names."""
    _classes[cls.__name__] = cls
    return cls


def register_late(module: str) -> None:
    """Let a module of gmil, which registers classes, be imported when the classes are looked up for the first time."""
    _late_modules.append(module)


def import_late_modules() -> None:
    """Import the modules that `register_late` put off."""
    for module in _late_modules:
        import_module(module)


def registered_classes() -> dict[str, type[BaseEstimator]]:
    """Return every class that can be saved, by name."""
    import_late_modules()
    return dict(_classes)


def class_named(name: str) -> type[BaseEstimator] | None:
    """Return the class of a name, or None; modules that were put off are imported only where they are needed."""
    return _classes.get(name) or registered_classes().get(name)


def is_registered(model: BaseEstimator) -> bool:
    """Tell whether a model is of a registered class, and not of one that only has its name."""
    return _classes.get(type(model).__name__) is type(model)
