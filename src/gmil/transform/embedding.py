"""Where clusters need not be round: maps of instances, by a Gaussian kernel, into a space where they are.

Both maps are made from at most `MOST_LANDMARKS` instances and take any other instance along, so that clusters, counts
and Eq. 7 see nothing but Euclidean distances between instances and centres.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import softmax

from gmil.engine.reference import dense_rows, sq_distances
from gmil.io.model_files.schema import Array, Choice, Fields

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances

MOST_LANDMARKS = 1000
NEIGHBOUR = 7
"""Which neighbour sets the width of the kernel in spectral clustering."""

_BLOCK_ENTRIES = 1 << 22
_NO_DIRECTION = 1e-10


FITTED_EMBEDDING = Fields(Choice("kernel", "spectral"), Array("l", "f"), Array("l", above=0), Array("l", "m"))
"""What the fields of an `Embedding` are."""


class Embedding(NamedTuple):
    """A map of instances, by their kernel with landmarks."""

    kind: str
    landmarks: Floats  # (n_landmarks, n_features)
    widths: Floats  # (n_landmarks,)
    projection: Floats  # (n_landmarks, n_dimensions)

    def apply(self, X: Instances) -> Floats:
        """Return the coordinates of instances; with "kernel" there is one more than the projection has."""
        place = _kernel_coordinates if self.kind == "kernel" else _spectral_coordinates
        rows = max(1, _BLOCK_ENTRIES // len(self.landmarks))
        blocks = [X[start : start + rows] for start in range(0, X.shape[0], rows)]
        return np.concatenate([place(to_landmarks(block, self.landmarks), self) for block in blocks]).astype(X.dtype)


def to_landmarks(X: Instances, landmarks: Floats) -> Floats:
    """Return squared distances to landmarks in double precision, (n_instances, n_landmarks)."""
    return sq_distances(X.astype(np.float64), landmarks)


# -------------------------------------------------------------------------------- kernel k-means


def _kernel_coordinates(squares: Floats, embedding: Embedding) -> Floats:
    """Return where instances lie in the span of the centres, and, last, how far from that span."""
    inside = np.exp(-squares / (2 * embedding.widths**2)) @ embedding.projection
    # Every instance has length 1 in the space of the kernel, so what the span does not hold is known.
    outside = np.sqrt(np.maximum(1 - np.einsum("ij,ij->i", inside, inside), 0))
    return np.column_stack([inside, outside])


def median_width(squares: Floats) -> float:
    """Return half the median distance between landmarks; half the mean where that is zero, 1 where all are the same.

    A kernel as wide as the median itself is nearly linear, and its clusters are those of plain k-means.
    """
    distances = np.sqrt(squares[np.triu_indices(len(squares), 1)])
    if len(distances) == 0:
        return 1.0
    return float(np.median(distances)) / 2 or float(distances.mean()) / 2 or 1.0


def gaussian_gram(landmarks: Floats) -> tuple[Floats, float]:
    """Return the Gaussian kernel between landmarks and its width."""
    squares = to_landmarks(landmarks, landmarks)
    width = median_width(squares)
    gram = np.exp(-(squares + squares.T) / (4 * width**2))
    np.fill_diagonal(gram, 1)
    return gram, width


def gram_coordinates(gram: Floats) -> Floats:
    """Return points whose products are ``gram``, so that k-means of them is kernel k-means."""
    # Landmarks that are the same make the matrix singular; so little on its diagonal moves no cluster.
    return np.linalg.cholesky(gram + 1e-9 * np.eye(len(gram)))


def kernel_embedding(landmarks: Floats, gram: Floats, width: float, members: Floats) -> tuple[Embedding, Floats]:
    """Return the map into the span of the centres of kernel k-means, and the centres there.

    The distance of an instance to a centre is then exactly that between its image under the kernel and the mean of
    the images of the members.

    Parameters
    ----------
    landmarks : (n_landmarks, n_features)
    gram : (n_landmarks, n_landmarks)
    width : float
    members : (n_clusters, n_landmarks)
        The weight of every landmark in the mean of every cluster; each row adds up to 1.
    """
    lengths, turn = np.linalg.eigh(members @ gram @ members.T)
    kept = lengths > _NO_DIRECTION * lengths[-1]
    lengths, turn = np.sqrt(lengths[kept]), turn[:, kept]
    centers = np.column_stack([turn * lengths, np.zeros(len(members))])
    return Embedding("kernel", landmarks, np.full(len(landmarks), width), members.T @ (turn / lengths)), centers


# -------------------------------------------------------------------------------- spectral clustering


def _spectral_coordinates(squares: Floats, embedding: Embedding) -> Floats:
    """Return the mean of the eigenvectors' entries over the neighbours of an instance, at length 1."""
    widths = neighbour_widths(squares, smallest=float(embedding.widths.min()))
    steps = softmax(-squares / (widths[:, None] * embedding.widths), axis=1)
    points = steps @ embedding.projection
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(lengths > 0, lengths, 1))


def neighbour_widths(squares: Floats, smallest: float | None = None) -> Floats:
    """Return the distance of every instance to its seventh nearest landmark, itself included where it is one."""
    nth = min(NEIGHBOUR, squares.shape[1]) - 1
    widths = np.sqrt(np.partition(squares, nth, axis=1)[:, nth])
    if smallest is None:  # copies of one landmark have no width of their own
        smallest = 1e-6 * float(widths.max()) or 1.0
    return np.maximum(widths, smallest)


def spectral_embedding(landmarks: Floats, n_dimensions: int) -> Embedding:
    """Return the map by the leading eigenvectors of the random walk between landmarks.

    Widths are local (the distance to the seventh neighbour), so that dense and thin regions are both connected. An
    instance lies at the mean of its neighbours in one step of the walk, landmarks too, and then at length 1: the
    extension needs no division by small eigenvalues.
    """
    squares = to_landmarks(landmarks, landmarks)
    squares = (squares + squares.T) / 2
    np.fill_diagonal(squares, 0)
    widths = neighbour_widths(squares)
    affinity = np.exp(-squares / (widths[:, None] * widths))
    roots = np.sqrt(affinity.sum(axis=1))
    n_landmarks = len(landmarks)
    leading = (max(0, n_landmarks - n_dimensions), n_landmarks - 1)
    _, vectors = scipy.linalg.eigh(affinity / roots[:, None] / roots, subset_by_index=leading)
    return Embedding("spectral", landmarks, widths, vectors / roots[:, None])


def as_landmarks(X: Instances) -> Floats:
    """Return instances dense and in double precision."""
    return np.ascontiguousarray(dense_rows(X, np.arange(X.shape[0])), dtype=np.float64)
