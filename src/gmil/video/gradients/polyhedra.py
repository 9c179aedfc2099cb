"""Directions of gradients in space and time, quantised on the faces of a regular polyhedron."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.errors import VideoError

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats

_GOLDEN = (1 + 5**0.5) / 2


class Polyhedron(NamedTuple):
    """The centres of the faces as unit vectors, and the cosine between two neighbours."""

    normals: Floats  # (n_bins, 3)
    neighbour_cosine: float
    half: bool  # opposite directions share a bin


@cache
def polyhedron(name: str, *, half: bool = False) -> Polyhedron:
    """Return the "icosahedron" (20 faces) or the "dodecahedron" (12 faces).

    With ``half``, a face and the one opposite are one bin, so that light on dark is dark on light.

    >>> polyhedron("icosahedron").normals.shape, polyhedron("dodecahedron", half=True).normals.shape
    ((20, 3), (6, 3))
    """
    # The faces of an icosahedron are centred on the corners of a dodecahedron, and the other way round.
    if name == "icosahedron":
        corners = [*product((-1.0, 1.0), repeat=3), *_cyclic(1 / _GOLDEN, _GOLDEN)]
    elif name == "dodecahedron":
        corners = _cyclic(1.0, _GOLDEN)
    else:
        msg = f"polyhedron must be 'icosahedron' or 'dodecahedron', got {name!r}."
        raise VideoError(msg)
    normals = np.array(sorted(corners, reverse=True))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    cosines = np.sort(normals @ normals[0])
    if half:
        normals = normals[: len(normals) // 2]  # sorted, so that the second half mirrors the first
    return Polyhedron(normals, float(cosines[-2]), half)


def _cyclic(a: float, b: float) -> list[tuple[float, ...]]:
    """Return (0, ±a, ±b) and its cyclic shifts."""
    signed = [(0.0, i * a, j * b) for i, j in product((-1, 1), repeat=2)]
    return [vector[shift:] + vector[:shift] for vector in signed for shift in range(3)]


def summed_histograms(gradients: Floats, solid: Polyhedron) -> tuple[Floats, Floats]:
    """Return the histogram of every group of gradients, (n_groups, n_bins), and the sum of their lengths, (n_groups,).

    ``gradients (n_groups, n_members, 3)``. A gradient is projected on all normals; what exceeds the projection of a
    normal on its neighbour is kept, and the length of the gradient is shared out in proportion to it (Klaeser et al.,
    section 3.2). The length enters as a fourth coordinate, so that projection and threshold are one product.
    """
    lengths = np.sqrt(np.einsum("gmi,gmi->gm", gradients, gradients))
    if solid.half:
        votes = np.abs(gradients @ solid.normals.T.astype(gradients.dtype))
        votes -= solid.neighbour_cosine * lengths[..., None]
    else:
        extended = np.concatenate([gradients, lengths[..., None]], axis=-1)  # (n_groups, n_members, 4)
        cosines = np.full((1, len(solid.normals)), -solid.neighbour_cosine)
        votes = extended @ np.concatenate([solid.normals.T, cosines]).astype(gradients.dtype)
    np.maximum(votes, 0, out=votes)
    squares = np.einsum("gmb,gmb->gm", votes, votes)
    weights = np.divide(lengths, np.sqrt(squares), out=np.zeros_like(lengths), where=squares > 0)
    return np.einsum("gm,gmb->gb", weights, votes), lengths.sum(axis=1)
