"""What fitted attributes are: every class declares its own in ``_fitted_attributes``, and a file must keep to it.

A declaration is a kind of value for every name. Lengths of arrays are numbers or names such as ``"d"``; a name stands
for one number throughout a model, whatever it is, and may be counted up or multiplied: ``"K+1"``, ``"2*d"``. Names that
stand for something from the start are ``d``, the number of features, ``C``, that of classes, and ``P``, that of
decisions about a bag: 1 for two classes, else ``C``.

>>> sizes = {"d": 3}
>>> Array("K", "d").check(np.zeros((5, 3)), "centers_", sizes)
>>> Array("K+1", dtype="i", at_least=0, below="K").check(np.array([0, 1, 2, 3, 4, 5]), "bins_", sizes)
Traceback (most recent call last):
gmil.io.model_files.damage.DamageError: bins_ must be below K = 5, but it has 5
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from gmil.io.model_files.damage import DamageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_LENGTH = re.compile(r"(?:(\d+)\*)?([A-Za-z]\w*)(?:\+(\d+))?")
_LARGEST = 1e300
"""What is larger is as good as infinite: the first sum or product with it is."""

_DTYPES = {"f": "f4 f8", "i": "i4 i8", "b": "bool"}


class Kind(ABC):
    """A kind of value."""

    may_be_missing = False  # whether files of older versions, or some models, do without

    @abstractmethod
    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Raise `DamageError` where a value is not of this kind; learn what names of lengths stand for."""


def refuse(name: str, rule: str, got: str) -> None:
    """Raise `DamageError`: a name, what it must be, and what it is or has."""
    msg = f"{name} must be {rule}, but it {got}"
    raise DamageError(msg)


# -------------------------------------------------------------------------------- arrays


class Array(Kind):
    """An array of numbers.

    Parameters
    ----------
    *shape : int or str
        Its lengths.
    dtype : {"f", "i", "b"}
        Floating point in single or double precision, whole numbers of 32 or 64 bits, or truth values.
    infinite, nan : bool
        Whether infinity and NaN are allowed.
    at_least : float, optional
    above : float, optional
    below : int or str, optional
        All values are below this; a name stands for what it stands for in shapes.
    by_class : bool
        Where there are more than two classes, an axis for these comes first.
    """

    def __init__(
        self,
        *shape: int | str,
        dtype: str = "f",
        infinite: bool = False,
        nan: bool = False,
        at_least: float | None = None,
        above: float | None = None,
        below: float | str | None = None,
        by_class: bool = False,
    ) -> None:
        self.shape, self.dtypes = shape, [np.dtype(name) for name in _DTYPES[dtype].split()]
        self.infinite, self.nan = infinite, nan
        self.at_least, self.above, self.below, self.by_class = at_least, above, below, by_class

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse what is no such array."""
        if not isinstance(value, np.ndarray) or value.dtype not in self.dtypes:
            got = f"is {value.dtype}" if isinstance(value, np.ndarray) else f"is a {type(value).__name__}"
            refuse(name, f"an array of {' or '.join(str(dtype) for dtype in self.dtypes)}", got)
        shape = ("C", *self.shape) if self.by_class and sizes["C"] > 2 else self.shape
        check_shape(value.shape, shape, name, sizes)
        self._check_values(value, name, sizes)

    def _check_values(self, value: NDArray[Any], name: str, sizes: Mapping[str, int]) -> None:
        if value.size == 0:
            return
        least, most = float(value.min()), float(value.max())  # NaN where there is one
        if np.isnan(least) and not self.nan:
            refuse(name, "free of NaN", "is not")
        if not self.infinite and (np.isinf(value).any() if np.isnan(least) else max(-least, most) > _LARGEST):
            refuse(name, "finite", f"has {max(-least, most):g}")
        if self.at_least is not None and least < self.at_least:
            refuse(name, f"at least {self.at_least:g}", f"has {least:g}")
        if self.above is not None and least <= self.above:
            refuse(name, f"above {self.above:g}", f"has {least:g}")
        limit = sizes[self.below] if isinstance(self.below, str) else self.below
        if limit is not None and most >= limit:
            refuse(name, f"below {self.below} = {limit:g}", f"has {most:g}")


def check_shape(shape: tuple[int, ...], expected: tuple[int | str, ...], name: str, sizes: dict[str, int]) -> None:
    """Refuse a shape that does not fit; learn what names stand for."""
    fits = len(shape) == len(expected)
    if not (fits and all(_fits(length, axis, sizes) for length, axis in zip(shape, expected, strict=True))):
        known = {axis: sizes[axis] for axis in expected if axis in sizes}
        where = f", where {known}" if known else ""
        refuse(name, f"of shape ({', '.join(map(str, expected))}){where}", f"is {shape}")


def _fits(length: int, axis: int | str, sizes: dict[str, int]) -> bool:
    if isinstance(axis, int):
        return length == axis
    match = _LENGTH.fullmatch(axis)
    assert match is not None, axis  # a mistake in a declaration
    factor, variable, more = int(match[1] or 1), match[2], int(match[3] or 0)
    if variable not in sizes and (length - more) % factor == 0 and length >= more:
        sizes[variable] = (length - more) // factor
    return length == factor * sizes.get(variable, -1) + more


class Offsets(Kind):
    """Where bags begin and end: from 0 up to a number of rows, every bag with at least ``least`` of them."""

    def __init__(self, length: str, rows: str, least: int = 1) -> None:
        self.length, self.rows, self.least = length, rows, least

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse what runs backwards, or past the rows."""
        Array(self.length, dtype="i").check(value, name, sizes)
        rows = sizes[self.rows]
        if len(value) == 0 or value[0] != 0 or value[-1] != rows or (np.diff(value) < self.least).any():
            refuse(name, f"offsets from 0 to {rows} in steps of at least {self.least}", "is something else")


class Rows(Kind):
    """Instances, dense or sparse: an array, a `scipy.sparse.csr_array`, or a dict of the arrays of one."""

    def __init__(self, n_rows: str, n_columns: int | str, dtype: str = "f") -> None:
        self.n_rows, self.n_columns, self.dtype = n_rows, n_columns, dtype

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse other shapes, and sparse arrays whose parts do not fit."""
        if isinstance(value, np.ndarray):
            Array(self.n_rows, self.n_columns, dtype=self.dtype).check(value, name, sizes)
            return
        if isinstance(value, sp.csr_array):
            shape, parts = value.shape, {"data": value.data, "indices": value.indices, "indptr": value.indptr}
        else:
            array = Plain(np.ndarray)
            Record({"data": array, "indices": array, "indptr": array, "n_features": Count()}).check(value, name, sizes)
            shape, parts = (len(value["indptr"]) - 1, value["n_features"]), value
        check_shape(shape, (self.n_rows, self.n_columns), name, sizes)
        inside = {"n": shape[0], "d": shape[1]}
        Array("m", dtype=self.dtype).check(parts["data"], f"{name} data", inside)
        Array("m", dtype="i", at_least=0, below="d").check(parts["indices"], f"{name} indices", inside)
        Offsets("n+1", "m", least=0).check(parts["indptr"], f"{name} indptr", inside)


class Labels(Kind):
    """The classes: at least ``least`` different numbers, strings or truth values, in order."""

    def __init__(self, length: int | str, least: int = 2) -> None:
        self.length, self.least = length, least

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse classes that are not in order, which looking them up needs."""
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUO":
            refuse(name, "an array of labels", f"is a {type(value).__name__}")
        check_shape(value.shape, (self.length,), name, sizes)
        items = value.tolist()
        if len(items) < self.least or not all(isinstance(item, (bool, int, float, str)) for item in items):
            refuse(name, f"at least {self.least} numbers or strings", f"has {items[:5]}")
        if not all(one < other for one, other in itertools.pairwise(items)):
            refuse(name, "different labels in order", f"has {items[:5]}")


class Texts(Kind):
    """An array of strings."""

    def __init__(self, length: str) -> None:
        self.length = length

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse other arrays."""
        if not isinstance(value, np.ndarray) or not all(isinstance(item, str) for item in value.ravel()):
            refuse(name, "an array of strings", "is not")
        check_shape(value.shape, (self.length,), name, sizes)


# -------------------------------------------------------------------------------- single values


class Number(Kind):
    """A number, finite unless ``infinite``, from ``at_least`` or above ``above`` up to ``at_most``."""

    def __init__(
        self,
        *,
        at_least: float = -np.inf,
        above: float | None = None,
        at_most: float = np.inf,
        infinite: bool = False,
    ) -> None:
        self.at_least, self.above, self.at_most, self.infinite = at_least, above, at_most, infinite

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:  # noqa: ARG002
        """Refuse numbers outside, and what is no number."""
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            refuse(name, "a number", f"is a {type(value).__name__}")
        if np.isnan(float(value)) or (abs(float(value)) > _LARGEST and not self.infinite):
            refuse(name, "finite", f"is {value}")
        if not self.at_least <= value <= self.at_most or (self.above is not None and value <= self.above):
            least = f"at least {self.at_least:g}" if self.above is None else f"above {self.above:g}"
            refuse(name, f"{least} and at most {self.at_most:g}", f"is {value}")


class Count(Kind):
    """A whole number from ``least`` to ``most``; with a name it says what that stands for."""

    def __init__(self, least: int = 0, size: str | None = None, *, most: int = 2**62, below: str | None = None) -> None:
        self.least, self.size, self.most, self.below = least, size, most, below

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse other numbers."""
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            refuse(name, "a whole number", f"is a {type(value).__name__}")
        most = sizes[self.below] - 1 if self.below is not None else self.most
        if not self.least <= value <= most:
            refuse(name, f"from {self.least} to {most}", f"is {value}")
        if self.size is not None and sizes.setdefault(self.size, int(value)) != value:
            refuse(name, f"{self.size} = {sizes[self.size]}", f"is {value}")


class Flag(Kind):
    """True or False."""

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:  # noqa: ARG002
        """Refuse everything else."""
        if not isinstance(value, (bool, np.bool_)):
            refuse(name, "true or false", f"is a {type(value).__name__}")


class Choice(Kind):
    """One of several strings, or None where it is one of them; without any, any string."""

    def __init__(self, *choices: str | None) -> None:
        self.choices = choices

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:  # noqa: ARG002
        """Refuse everything else."""
        if not isinstance(value, str) and not (value is None and None in self.choices):
            refuse(name, "a string", f"is a {type(value).__name__}")
        if self.choices and value not in self.choices:
            refuse(name, f"one of {list(self.choices)}", f"is {value!r}")


class Plain(Kind):
    """Plain data of one of these types, which no prediction looks into."""

    def __init__(self, *types: type) -> None:
        self.types = types

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:  # noqa: ARG002
        """Refuse other types."""
        if not isinstance(value, self.types):
            refuse(name, f"a {' or '.join(each.__name__ for each in self.types)}", f"is a {type(value).__name__}")


# -------------------------------------------------------------------------------- kinds made of kinds


class OrNone(Kind):
    """None, or what another kind allows."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse what the other kind does, but None."""
        if value is not None:
            self.kind.check(value, name, sizes)


class OrMissing(OrNone):
    """What another kind allows; or the attribute is not there at all."""

    may_be_missing = True


class Either(Kind):
    """What one of several kinds allows."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse what all of them do."""
        for kind in self.kinds[:-1]:
            learnt = dict(sizes)
            try:
                kind.check(value, name, learnt)
            except DamageError:
                continue
            sizes.update(learnt)
            return
        self.kinds[-1].check(value, name, sizes)


class Record(Kind):
    """A dict with these keys and no others; lengths named in ``local`` stand for one number in each record alone.

    Keys of kinds that may be missing may be.
    """

    def __init__(self, kinds: Mapping[str, Kind], local: tuple[str, ...] = ()) -> None:
        self.kinds, self.local = kinds, local

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse other keys, and values of other kinds."""
        needed = {key for key, kind in self.kinds.items() if not kind.may_be_missing}
        if not isinstance(value, dict) or not needed <= set(value) <= set(self.kinds):
            got = f"has {sorted(map(str, value))[:20]}" if isinstance(value, dict) else f"is a {type(value).__name__}"
            refuse(name, f"a dict of {sorted(self.kinds)}", got)
        for key, kind in self.kinds.items():
            if key in value:
                kind.check(value[key], f"{name} {key}", sizes)
        for size in self.local:
            sizes.pop(size, None)


class Items(Kind):
    """A list, or a tuple, of values of one kind."""

    def __init__(self, kind: Kind, length: str | None = None, least: int = 0) -> None:
        self.kind, self.length, self.least = kind, length, least

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse other lengths, and items of other kinds."""
        if not isinstance(value, (list, tuple)) or len(value) < self.least:
            refuse(name, f"a list of at least {self.least}", "is not")
        if self.length is not None:
            check_shape((len(value),), (self.length,), name, sizes)
        for number, item in enumerate(value):
            self.kind.check(item, f"{name} {number}", sizes)


class Fields(Kind):
    """A tuple of values, each of its own kind."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse other lengths, and values of other kinds."""
        if not isinstance(value, tuple) or len(value) != len(self.kinds):
            refuse(name, f"a tuple of {len(self.kinds)}", "is not")
        fields = getattr(value, "_fields", range(len(value)))  # a named tuple says what is wrong by its name
        for field, kind, item in zip(fields, self.kinds, value, strict=True):
            kind.check(item, f"{name} {field}", sizes)


class Fitted(Kind):
    """A fitted model with certain methods, on ``n_features`` features where it counts them."""

    def __init__(self, *methods: str, n_features: str | None = None, n_classes: str | None = None) -> None:
        self.methods, self.lengths = methods, {"n_features_in_": n_features, "classes_": n_classes}

    def check(self, value: Any, name: str, sizes: dict[str, int]) -> None:
        """Refuse other objects, and models of other features or classes."""
        lacking = [method for method in self.methods if not callable(getattr(value, method, None))]
        if not isinstance(value, BaseEstimator) or lacking:
            refuse(name, f"a model with {', '.join(self.methods)}", f"is a {type(value).__name__}")
        for attribute, size in self.lengths.items():
            found = getattr(value, attribute, None)
            if size is not None and found is not None:
                length = len(found) if isinstance(found, np.ndarray) else int(found)
                check_shape((length,), (size,), f"{attribute} of {name}", sizes)
