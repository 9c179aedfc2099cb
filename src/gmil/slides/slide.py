"""`Slide`: what is known of a slide before its patches are read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import FormatError, count_of
from gmil.slides import arrays
from gmil.slides.arrays import Place, header_of, matrix_shape

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats


@dataclass(frozen=True)
class Frame:
    """How stored coordinates become top-left corners: ``scale * stored + shift``, in ``unit``."""

    unit: str = "px"  # of level 0; or "um"
    patch_size: float | None = None  # the side of a patch, in the same unit; None where nothing tells it
    scale: float = 1.0
    shift: float = 0.0

    def in_pixels(self, mpp: float | None) -> Frame:
        """Return a frame in micrometres as one in pixels of so many micrometres; where ``mpp`` is known."""
        if self.unit == "px" or mpp is None:
            return self
        size = None if self.patch_size is None else self.patch_size / mpp
        return Frame("px", size, self.scale / mpp, self.shift / mpp)

    def of_centres(self) -> Frame:
        """Return the frame of stored centres; without a size they stay centres."""
        return self if self.patch_size is None else replace(self, shift=self.shift - self.patch_size / 2)


@dataclass(frozen=True)
class Slide:
    """A slide: where its embeddings and coordinates lie, how large they are, and where they come from."""

    name: str
    features: Place
    n_patches: int
    n_features: int
    dtype: np.dtype[Any]
    coordinates: Place | None = None
    frame: Frame = field(default_factory=Frame)
    provenance: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, features: Place, coordinates: Place | None = None, **further: Any) -> Slide:
        """Look at the headers of both arrays, which must have as many rows."""
        header = header_of(features)
        n_patches, n_features = matrix_shape(features, header.shape)
        if coordinates is not None and n_patches:
            _refuse_other_rows(features, n_patches, coordinates)
        return cls(name, features, n_patches, n_features, header.dtype, coordinates, **further)

    def corners(self) -> Floats:
        """Read the top-left corner of every patch, (n_patches, 2); NaN where no coordinates are stored."""
        if self.coordinates is None:
            return np.full((self.n_patches, 2), np.nan)
        stored = np.asarray(arrays.read(self.coordinates), dtype=np.float64)
        stored = stored.reshape(-1, stored.shape[-1])[:, :2]
        if len(stored) != self.n_patches:
            raise _other_rows(self.features, self.n_patches, self.coordinates, len(stored))
        return stored * self.frame.scale + self.frame.shift


def _refuse_other_rows(features: Place, n_patches: int, coordinates: Place) -> None:
    shape = header_of(coordinates).shape
    if len(shape) == 3 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) != 2 or shape[1] < 2:
        msg = f"{coordinates} must hold x and y of every patch, (n_patches, 2), got shape {shape}."
        raise FormatError(msg)
    if shape[0] != n_patches:
        raise _other_rows(features, n_patches, coordinates, shape[0])


def _other_rows(features: Place, n_patches: int, coordinates: Place, n_rows: int) -> FormatError:
    msg = (
        f"{features} has {count_of(n_patches, 'patch', 'patches')}, but {coordinates} has coordinates of {n_rows}. "
        "They are of two runs, or "
        "one is cut short: write both again."
    )
    return FormatError(msg)
