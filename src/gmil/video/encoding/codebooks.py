"""Codebooks: what turns the descriptors of a stretch of video into one vector.

Every encoding adds up over descriptors, so that sums of frames make the sums of any window: how often every word
occurs, differences from the nearest centre (VLAD), gradients of a mixture's likelihood (Fisher vectors), or energies.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.engine import kmeans
from gmil.engine.eigen import eigh
from gmil.errors import ModelFileError
from gmil.io.model_files.schema import Array, Choice, OrNone, Record
from gmil.transform.vectors.fisher import fisher_vectors, fit_mixture
from gmil.transform.vectors.mixtures import Mixture
from gmil.transform.vectors.vlad import normalize_vectors, vlad_vectors
from gmil.video.encoding.energies import N_FEATURES, N_SUMS, energy_vector

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Integers

ENCODINGS = ("words", "vlad", "fisher")
ENERGIES = "energies"
"""The one encoding of the flow of whole pictures, for which nothing is learned."""
SAVED_CODEBOOK = Record(
    {
        "descriptor": Choice(),
        "encoding": Choice(*ENCODINGS, ENERGIES),
        "middle": OrNone(Array("d")),
        "directions": OrNone(Array("d", "e")),
        "centers": OrNone(Array("k", "e")),
        "variances": OrNone(Array("k", "e", above=0)),
        "weights": OrNone(Array("k", at_least=0)),
    },
    local=("d", "e", "k"),
)
"""What `Codebook.as_parts` is."""
_MOST_ITERATIONS = 50


@dataclass(frozen=True)
class Codebook:
    """What is known of one kind of descriptor.

    Attributes
    ----------
    descriptor : str
    encoding : {"words", "vlad", "fisher", "energies"}
    middle, directions : arrays of shape (n_features,) and (n_features, n_components), or None
        The principal components in which VLAD and Fisher vectors are computed.
    centers : array of shape (n_centers, n_components) or None
        Words, centres of VLAD, or means of the mixture.
    variances, weights : arrays of shape (n_centers, n_components) and (n_centers,), or None
        Of the mixture.
    """

    descriptor: str
    encoding: str
    middle: Floats | None = None
    directions: Floats | None = None
    centers: Floats | None = None
    variances: Floats | None = None
    weights: Floats | None = None

    @property
    def name(self) -> str:
        """What the block of features is called."""
        return self.descriptor if self.encoding == ENERGIES else f"{self.descriptor} {self.encoding}"

    @property
    def n_sums(self) -> int:
        """How many numbers add up over descriptors."""
        if self.centers is None:
            return N_SUMS[self.descriptor]
        n_centers, n_components = self.centers.shape
        per_center = {"words": 1, "vlad": n_components + 1, "fisher": 2 * n_components}
        return n_centers * per_center[self.encoding]

    @property
    def n_features(self) -> int:
        """The length of a vector."""
        return N_FEATURES[self.descriptor] if self.encoding == ENERGIES else self.n_sums

    def sums(self, values: Floats, offsets: Integers, backend: Backend) -> Floats:
        """Return what groups of descriptors add to their vectors, (n_groups, n_sums).

        Parameters
        ----------
        values : array of shape (n, n_features)
        offsets : array of shape (n_groups + 1,)
            Where groups begin, none of them empty, and where the last one ends.
        backend : Backend
        """
        sizes = np.diff(offsets)[:, None]
        if self.centers is None:
            return np.hstack([np.add.reduceat(values, offsets[:-1]), sizes.astype(np.float32)])
        if self.encoding == "words":
            nearest = backend.assign(values, self.centers)[0]
            return backend.bag_histograms(nearest, offsets, len(self.centers)).astype(np.float32)
        middle: Any = self.middle  # VLAD and Fisher vectors have both
        rows = np.asarray((values - middle) @ self.directions, dtype=np.float32)
        if self.encoding == "vlad":
            means = vlad_vectors(rows, offsets, self.centers, backend, occupancy=True)
        else:
            means = fisher_vectors(rows, offsets, self._mixture(), backend)
        return np.asarray(means * sizes, dtype=np.float32)

    def _mixture(self) -> Mixture:
        return Mixture(self.weights, self.centers, self.variances, 0)  # type: ignore[arg-type]  # Fisher vectors only

    def vector(self, sums: Floats) -> Floats:
        """Return the vector of what was summed up; zeros where there was nothing.

        Parameters
        ----------
        sums : array of shape (n_sums,)
        """
        if self.encoding == ENERGIES:
            return energy_vector(self.descriptor, sums)
        if self.encoding == "words":
            return np.asarray(sums / max(sums.sum(), np.float32(1e-12)))
        return normalize_vectors(sums[None])[0].astype(np.float32)

    def as_parts(self) -> dict[str, Any]:
        """Return plain data, from which ``Codebook(**parts)`` is the same."""
        return asdict(self)

    def check(self, width: int) -> None:
        """Refuse a codebook that does not fit descriptors of so many numbers."""
        has = {name: getattr(self, name) is not None for name in ("middle", "directions", "centers", "variances")}
        wants = dict.fromkeys(has, False)
        wants |= {"centers": self.encoding != ENERGIES, "variances": self.encoding == "fisher"}
        wants |= dict.fromkeys(("middle", "directions"), self.encoding in ("vlad", "fisher"))
        known = self.centers if self.encoding == "words" else self.directions
        length = None if known is None else known.shape[1 if self.encoding == "words" else 0]
        if has != wants or (self.weights is not None) != wants["variances"] or length not in (None, width):
            msg = f"The codebook of {self.name} does not fit descriptors of {width} numbers."
            raise ModelFileError(msg)


def learn_codebook(
    descriptor: str, encoding: str, rows: Floats, n_centers: int, n_components: int, backend: Backend, seed: list[int]
) -> Codebook:
    """Learn a codebook from descriptors of the training videos.

    Parameters
    ----------
    descriptor, encoding : str
    rows : array of shape (n, n_features)
    n_centers : int
        Words, centres of VLAD, or Gaussians.
    n_components : int
        Principal components for VLAD and Fisher vectors.
    backend : Backend
    seed : list of int
    """
    generator = np.random.default_rng(seed)
    if encoding == "words":
        words = kmeans(rows, n_centers, backend=backend, generator=generator, max_iter=_MOST_ITERATIONS).centers
        return Codebook(descriptor, encoding, centers=np.ascontiguousarray(words, dtype=np.float32))
    middle = rows.mean(axis=0)
    directions = eigh(np.cov(rows.T.astype(np.float64)))[1][:, ::-1][:, :n_components].astype(np.float32)
    reduced = np.ascontiguousarray((rows - middle) @ directions)
    if encoding == "vlad":
        found = kmeans(reduced, n_centers, backend=backend, generator=generator, max_iter=_MOST_ITERATIONS).centers
        return Codebook(descriptor, encoding, middle, directions, np.ascontiguousarray(found, dtype=np.float32))
    mixture = fit_mixture(reduced, n_centers, _MOST_ITERATIONS, backend, generator)
    means, variances, weights = (np.asarray(part, dtype=np.float32) for part in (mixture[1], mixture[2], mixture[0]))
    return Codebook(descriptor, encoding, middle, directions, means, variances, weights)
