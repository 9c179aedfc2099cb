"""Which estimators there are, and what methods are called on the command line."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gmil.io import model_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sklearn.base import BaseEstimator

AnyEstimator = TypeVar("AnyEstimator", bound="type[BaseEstimator]")

_methods: dict[str, Callable[..., Any]] = {}


def register(
    method: str | None = None, *, variants: Mapping[str, Mapping[str, Any]] | None = None
) -> Callable[[AnyEstimator], AnyEstimator]:
    """Make an estimator known: to `all_estimators`, to `load` and, by name, to the command line.

    Parameters
    ----------
    method : str, optional
        The name on the command line of the class with its defaults.
    variants : dict of dict, optional
        Further names on the command line, each with the parameters that it presets.
    """

    def enlist(cls: AnyEstimator) -> AnyEstimator:
        if method is not None:
            _methods[method] = cls
        for name, preset in (variants or {}).items():
            _methods[name] = functools.partial(cast("Callable[..., Any]", cls), **preset)
        return model_files.register_class(cls)

    return enlist


def methods() -> dict[str, Any]:
    """Return what makes each classifier, a class or a class with preset parameters, by its name on the command line."""
    model_files.import_estimators()
    return dict(sorted(_methods.items()))  # in whatever order they were imported
