"""The weights of a network: their names, shapes and first values. Nothing here needs PyTorch."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.io.model_files.damage import DamageError
from gmil.io.model_files.schema import Array, Kind, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gmil.engine.arrays import Floats, Integers

    Layout = dict[str, "Weight"]


class Weight(NamedTuple):
    """One array of weights, before it is learnt."""

    shape: tuple[int, ...]
    bound: float = 0.0  # first values are uniform up to it, on either side of zero
    start: float = 0.0  # or all of them are this
    of_input: bool = False  # whether its first axis are the features of instances
    decays: bool = False

    def draw(self, generator: np.random.Generator) -> Floats:
        """Return first values in single precision."""
        if not self.bound:
            return np.full(self.shape, self.start, dtype=np.float32)
        return generator.uniform(-self.bound, self.bound, self.shape).astype(np.float32)


def linear(name: str, n_in: int, n_out: int, *, of_input: bool = False, bias: bool = True) -> Layout:
    """Return the weights of a linear map, drawn as Glorot and Bengio do; the bias begins with zeros.

    >>> {name: weight.shape for name, weight in linear("out", 64, 1).items()}
    {'out.weight': (64, 1), 'out.bias': (1,)}
    """
    matrix = Weight((n_in, n_out), float(np.sqrt(6 / (n_in + n_out))), of_input=of_input, decays=True)
    return {f"{name}.weight": matrix} | ({f"{name}.bias": Weight((n_out,))} if bias else {})


def perceptron(n_in: int, widths: Sequence[int]) -> Layout:
    """Return the weights of layers, one after the other, that take features of instances."""
    sizes = [n_in, *widths]
    layout: Layout = {}
    for number, (before, after) in enumerate(pairwise(sizes)):
        layout |= linear(f"hidden{number}", before, after, of_input=number == 0)
    return layout


def gates(n_in: int, width: int, *, gated: bool, of_input: bool) -> Layout:
    """Return the weights of an attention of one query."""
    layout = linear("attention", n_in, width, of_input=of_input)
    if gated:
        layout |= linear("gate", n_in, width, of_input=of_input)
    return layout | linear("query", width, 1, bias=False)


def normalisation(name: str, width: int) -> Layout:
    """Return the weights of a layer normalisation."""
    return {f"{name}.scale": Weight((width,), start=1.0), f"{name}.shift": Weight((width,))}


def draw_weights(layout: Layout, generator: np.random.Generator) -> dict[str, Floats]:
    """Return first values of all weights, drawn in the order of their names in the layout."""
    return {name: weight.draw(generator) for name, weight in layout.items()}


def widened(weights: Mapping[str, Floats], layout: Layout, columns: Integers, n_columns: int) -> dict[str, Floats]:
    """Return the same weights for more features; those of features that are not among the columns are zero."""
    found = dict(weights)
    for name, weight in layout.items():
        if weight.of_input:
            found[name] = np.zeros((n_columns, *weight.shape[1:]), dtype=np.float32)
            found[name][columns] = weights[name]
    return found


def narrowed(weights: Mapping[str, Floats], layout: Layout, columns: Integers) -> dict[str, Floats]:
    """Return what `widened` was given, or what has become of it."""
    return {name: each[columns] if layout[name].of_input else each for name, each in weights.items()}


class Weights(Kind):
    """A dict of arrays of weights; `check_layout` knows their names and shapes."""

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:  # noqa: ARG002
        """Refuse what is no such dict, and numbers that are not finite."""
        if not isinstance(value, dict) or not all(isinstance(each, np.ndarray) for each in value.values()):
            refuse(name, "a dict of arrays", f"is a {type(value).__name__}")
        for key, array in value.items():
            Array(*array.shape).check(array, f"{name} {key}", {})


def check_layout(weights: Any, layout: Layout) -> None:
    """Raise `DamageError` where weights are not those of a network."""
    shapes = {name: np.shape(each) for name, each in weights.items()} if isinstance(weights, dict) else None
    if shapes != {name: weight.shape for name, weight in layout.items()}:
        msg = f"weights_ must be those of the network, {sorted(layout)}, each of its shape, but it is something else"
        raise DamageError(msg)
