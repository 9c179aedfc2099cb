"""Which mutation a case gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tools.fuzz.mutations import archives, matlab, models, parquet, texts
from tools.fuzz.mutations.plain import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.random import Generator

FORMATS: dict[str, Mapping[str, Callable[[bytes, Generator], bytes]]] = {
    ".npz": archives.NPZ,
    ".npy": archives.NPY_FILE,
    ".parquet": parquet.PARQUET,
    ".mat": matlab.MATLAB,
    ".csv": texts.TABLE,
    ".tsv": texts.TABLE,
    ".data": texts.TABLE,
    ".arff": texts.ARFF,
}
_OFTEN = {
    "archive": 4,
    "attribute": 2,
    "cell": 2,
    "class": 2,
    "column": 2,
    "fitted swapped": 2,
    "footer": 2,
    "mat beginning": 2,
    "mat number": 2,
    "metadata": 2,
    "page bit": 2,
    "reference": 2,
    "tensor value": 2,
    "zip array": 3,
}
_TRIES = 20


@dataclass(frozen=True)
class Mutated:
    """Changed bytes, what was done to them, and whether a stale checksum tells that it was done."""

    name: str
    data: bytes
    guarded: bool


def mutate(data: bytes, filename: str, rng: Generator, *, signed: bool = False) -> Mutated:
    """Return the bytes of a file changed by a mutation that suits its format, or any bytes."""
    suffix = PurePath(filename).suffix
    if suffix == ".gmil":
        name, found = _first_change(data, rng, models.SIGNED if signed else {**PLAIN, **models.UNSIGNED})
        return Mutated(name, found, guarded=not signed)
    format_aware = rng.random() < 0.6
    name, found = _first_change(data, rng, FORMATS[suffix] if format_aware else PLAIN)
    return Mutated(name, found, guarded=name in parquet.GUARDED)


def _first_change(data: bytes, rng: Generator, known: Mapping[str, Any]) -> tuple[str, bytes]:
    """Try mutations until one changes the bytes: not every one suits every file."""
    names = [name for name in known for _ in range(_OFTEN.get(name, 1))]
    for _ in range(_TRIES):
        name = names[int(rng.integers(len(names)))]
        found = known[name](data, rng)
        if found != data:
            return name, found
    name = "flip bit"
    return name, PLAIN[name](data, rng)
