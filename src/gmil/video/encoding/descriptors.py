"""Every kind of descriptor behind one interface: computed side by side, from one reading of a video."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from gmil.video.hog3d import hog3d_by_frame
from gmil.video.motion.stream import motion_by_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from gmil.video.hog3d import Descriptors
    from gmil.video.settings import IndexSettings

HOG3D, BOXES, PICTURE = "hog3d", "boxes", "picture"
"""Families: descriptors that are rows of one matrix."""


class Place(NamedTuple):
    """Where a kind of descriptor is found: in which family, and in which columns of its rows."""

    family: str
    columns: slice


def places_of(settings: IndexSettings) -> dict[str, Place]:
    """Return where the kinds of descriptors are that settings ask for."""
    motion = settings.motion
    known = {HOG3D: Place(HOG3D, slice(None))}
    known |= {name: Place(BOXES, columns) for name, columns in motion.columns.items()}
    known |= {name: Place(PICTURE, columns) for name, columns in motion.picture_columns.items()}
    return {name: known[name] for name in settings.descriptors}


def widths_of(settings: IndexSettings) -> dict[str, int]:
    """Return the length of a row of every family from which codebooks are learned."""
    known = {HOG3D: settings.descriptor.n_features, BOXES: settings.motion.n_features}
    families = {place.family for place in places_of(settings).values()}
    return {family: width for family, width in known.items() if family in families}


def descriptors_by_frame(
    frames: Iterable[NDArray[np.uint8]], settings: IndexSettings
) -> Iterator[Mapping[str, list[Descriptors]]]:
    """Yield, for every frame, the descriptors of every family that end with it.

    Parameters
    ----------
    frames : iterable of uint8 arrays of shape (height, width)
    settings : IndexSettings
    """
    families = {place.family for place in places_of(settings).values()}
    boxes, picture = BOXES in families, PICTURE in families
    if not (boxes or picture):
        for found in hog3d_by_frame(frames, settings.descriptor):
            yield {HOG3D: found}
    elif HOG3D not in families:
        yield from motion_by_frame(frames, settings.motion, boxes=boxes, picture=picture)
    else:
        once, again = itertools.tee(frames)  # they are never more than a few frames apart
        moving = motion_by_frame(again, settings.motion, boxes=boxes, picture=picture)
        for found, others in zip(hog3d_by_frame(once, settings.descriptor), moving, strict=True):
            yield {HOG3D: found, **others}
