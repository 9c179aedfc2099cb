"""What tuned methods choose from, read from ``grids.toml``."""

from __future__ import annotations

import itertools
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np

from gmil.errors import SpecificationError
from gmil.paper.runs.parsing import python_value

_UNTUNED = "untuned"
"""The table of ``grids.toml`` that says why methods have no grid."""


@cache
def _document() -> dict[str, Any]:
    text = files("gmil.paper.tables").joinpath("grids.toml").read_text(encoding="utf-8")
    return dict(python_value(tomllib.loads(text)))


def _grids() -> dict[str, list[dict[str, list[Any]]]]:
    return {name: blocks for name, blocks in _document().items() if name != _UNTUNED}


def has_grid(method: str) -> bool:
    """Tell whether there is a grid for a method."""
    return method in _grids()


def why_untuned(method: str) -> str | None:
    """Return why a method has no grid; None where it has one, or is not known.

    >>> why_untuned("gmil-cv")
    'it is GMIL tuned inside the training bags'
    """
    return cast("dict[str, str]", _document()[_UNTUNED]).get(method)


def settings_of(method: str, *, most: int, seed: int) -> list[dict[str, Any]]:
    """Return the settings that a tuned method may choose from, in order.

    Parameters
    ----------
    method : str
    most : int
        A larger grid is thinned at random to this number; the order stays.
    seed : int
        Of that thinning. It depends on neither data nor results.

    Examples
    --------
    >>> settings_of("gmil", most=30, seed=0)[0]
    {'scale': None, 'n_clusters': 10, 'n_positive': 2, 'n_negative': 0}
    >>> len(settings_of("gmil", most=6, seed=0))
    6
    """
    if not has_grid(method):
        msg = f"There is no grid for the method {method!r}; grids.toml has {', '.join(_grids())}."
        raise SpecificationError(msg)
    every = expand_grid(_grids()[method])
    if len(every) <= most:
        return every
    kept = np.random.default_rng(seed).choice(len(every), size=most, replace=False)
    return [every[i] for i in sorted(kept)]


def expand_grid(blocks: list[dict[str, list[Any]]]) -> list[dict[str, Any]]:
    """Return every combination of every block, the first name varying slowest.

    >>> expand_grid([{"a": [1, 2], "b": [3]}, {"a": [9]}])
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}, {'a': 9}]
    """
    return [dict(zip(block, values, strict=True)) for block in blocks for values in itertools.product(*block.values())]
