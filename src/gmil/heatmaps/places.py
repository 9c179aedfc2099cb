"""Where the patches of a slide are: corners, sides and unit, as ``instance_info`` has them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers

_ANCHOR = b"gmil.slides.anchor"
COLUMNS = ("x", "y")
"""The columns of ``instance_info`` that a map needs: the top left corner of a patch."""
_USUAL_SHARE = 0.2
"""Of the patches that have the commonest distance to a neighbour; with fewer there is no lattice."""
_WIDEST_SEAM = 0.05
"""Of the side of a patch: patches of rounded size lie so far apart, and no picture shows a gap there."""


class Slide(NamedTuple):
    """One slide: its name, its bag, and the rows of its patches among the instances of all bags."""

    name: str
    bag: int
    rows: Integers


def has_places(info: Any) -> bool:
    """Tell whether patches have coordinates."""
    return info is not None and set(COLUMNS) <= set(info.column_names)


def slides_of(bags: Bags, names: Sequence[str] | None = None) -> Iterator[Slide]:
    """Yield the slides of bags: a bag is one, or has those that its column ``slide`` names.

    ``names`` are those of the bags, by default their ids.
    """
    if names is None:
        names = [str(name) for name in (range(len(bags)) if bags.bag_ids is None else bags.bag_ids.tolist())]
    info = bags.instance_info
    named = None if info is None or "slide" not in info.column_names else np.asarray(info.column("slide").to_pylist())
    for bag in range(len(bags)):
        rows = np.arange(bags.offsets[bag], bags.offsets[bag + 1])
        if named is None:
            yield Slide(names[bag], bag, rows)
            continue
        for name in dict.fromkeys(named[rows].tolist()):
            yield Slide(str(name), bag, rows[named[rows] == name])


@dataclass(frozen=True, eq=False)
class Places:
    """Squares on a slide.

    Parameters
    ----------
    x, y : array of shape (n_patches,)
        The top left corners.
    side : array of shape (n_patches,)
    unit : {"px", "um"}
        Pixels of level 0, or micrometres.
    spacing : float
        The usual distance between neighbours; NaN where there is no neighbour.
    is_estimated : bool
        Whether sides were unknown and are the spacing.
    """

    x: Floats
    y: Floats
    side: Floats
    unit: str = "px"
    spacing: float = float("nan")
    is_estimated: bool = False

    def __len__(self) -> int:
        return len(self.x)

    @property
    def drawn_side(self) -> Floats:
        """The sides as pictures show them: no seam between patches whose size was rounded."""
        seam = self.spacing - self.side
        return np.where((seam > 0) & (seam <= _WIDEST_SEAM * self.side), self.spacing, self.side)

    def in_pixels(self, mpp: float | None) -> Places:
        """Return the places in pixels of level 0.

        Parameters
        ----------
        mpp : float or None
            Micrometres of a pixel, which coordinates in micrometres need.
        """
        if self.unit == "px":
            return self
        if mpp is None:
            msg = "The coordinates are in micrometres, but pixels of level 0 are needed."
            raise BagValidationError(msg, parameter="mpp", fix="Give the micrometres of a pixel with {mpp}")
        lengths = {name: getattr(self, name) / mpp for name in ("x", "y", "side", "spacing")}
        return replace(self, unit="px", **lengths)

    def take(self, rows: Any) -> Places:
        """Return some of the places."""
        return replace(self, x=self.x[rows], y=self.y[rows], side=self.side[rows])


def places_of(info: Any, name: str, patch_size: float | None = None) -> Places:
    """Return the places of the patches of one slide.

    Parameters
    ----------
    info : pyarrow.Table
        The rows of ``instance_info`` of the slide: ``x``, ``y``, and ``patch_size`` and ``unit`` where they are known.
    name : str
        The slide, for messages.
    patch_size : float, optional
        The side of a patch, in place of that of the table.
    """
    x, y = (_numbers(info, column, name) for column in COLUMNS)
    for column, numbers in zip(COLUMNS, (x, y), strict=True):
        if not np.isfinite(numbers).all():
            msg = f"{np.isnan(numbers).sum()} of the {len(numbers)} patches of slide {name!r} have no {column}."
            raise BagValidationError(msg, parameter="instance_info", fix="Leave them out.")
    spacing = neighbour_spacing(x, y)
    known = _numbers(info, "patch_size", name) if "patch_size" in info.column_names else np.full(len(x), np.nan)
    side = known if patch_size is None else np.full(len(x), float(patch_size))
    side = np.where(side > 0, side, np.nan)
    unknown = np.isnan(side)
    if unknown.any() and np.isnan(spacing):
        msg = f"The size of the patches of slide {name!r} is not known, and a single place does not tell it."
        raise BagValidationError(msg, parameter="patch_size", fix="Give the side of a patch with {patch_size}")
    side = np.where(unknown, spacing, side)
    shift = np.where(np.isnan(known), side / 2, 0) if _are_centres(info) else 0
    return Places(x - shift, y - shift, side, _unit(info, name), spacing, bool(unknown.any()))


def neighbour_spacing(x: Floats, y: Floats) -> float:
    """Return the commonest distance of a patch to the next one, along the axis where they are farther apart.

    Pieces of tissue have lattices of their own, and some patches have no neighbour: neither changes what is common.

    >>> neighbour_spacing(np.array([0.0, 256.0, 512.0, 1000.0, 1256.0]), np.zeros(5))
    256.0
    """
    points = np.unique(np.column_stack([x, y]), axis=0)
    if len(points) < 2:
        return float("nan")
    nearest = KDTree(points).query(points, k=2, p=np.inf)[0][:, 1]
    rounded = np.array([float(f"{distance:.3g}") for distance in nearest])
    values, counts = np.unique(rounded, return_counts=True)
    common = nearest[rounded == values[np.argmax(counts)]]
    return float(np.median(common if len(common) >= _USUAL_SHARE * len(points) else nearest))


def _numbers(info: Any, column: str, name: str) -> Floats:
    values = info.column(column).to_numpy(zero_copy_only=False)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        msg = f"{column!r} of instance_info must be numbers, but slide {name!r} has {values[0]!r}."
        raise BagValidationError(msg, parameter="instance_info", fix="Convert the column.") from None


def _are_centres(info: Any) -> bool:
    """Tell whether a reader of slides says that x and y stayed centres, as the size of patches was not known."""
    return json.loads((info.schema.metadata or {}).get(_ANCHOR, b'"corner"')) == "centre"


def _unit(info: Any, name: str) -> str:
    units = set(info.column("unit").to_pylist()) - {None} if "unit" in info.column_names else set()
    if len(units) > 1 or not units <= {"px", "um"}:
        msg = f"unit of instance_info must be 'px' or 'um', one a slide, but slide {name!r} has {sorted(units)}."
        raise BagValidationError(msg, parameter="instance_info", fix="Correct the column.")
    return units.pop() if units else "px"
