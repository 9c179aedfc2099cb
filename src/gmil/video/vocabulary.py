"""Visual words: centres of descriptors, learned by the engine's k-means, saved and used again.

Beside the words of HOG3D a vocabulary may hold codebooks of other descriptors and for other encodings.
"""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gmil.engine import kmeans, resolve
from gmil.errors import ModelFileError, VideoError
from gmil.io import model_files
from gmil.io.model_files.schema import Array, Items, Number, OrMissing
from gmil.video.encoding.codebooks import ENERGIES, SAVED_CODEBOOK, Codebook, learn_codebook
from gmil.video.encoding.descriptors import HOG3D, Place, places_of, widths_of
from gmil.video.encoding.energies import N_SUMS
from gmil.video.settings import SAVED_SETTINGS, IndexSettings, short_digest

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Integers

KIND = "video vocabulary"
SAVED_VOCABULARY = {
    "words": Array("W", "w"),
    "spread": Number(at_least=0),
    "settings": SAVED_SETTINGS,
    "codebooks": OrMissing(Items(SAVED_CODEBOOK)),
}
"""What `Vocabulary.as_parts` is."""


class Block(NamedTuple):
    """Features of one descriptor in one encoding: which columns of a frame they are."""

    name: str
    start: int
    stop: int
    words: bool


class Encoder(Protocol):
    """What turns descriptors into a block: sums over descriptors, and a vector of sums."""

    @property
    def n_sums(self) -> int:
        """How many numbers add up over descriptors."""

    def sums(self, values: Floats, offsets: Integers, backend: Backend) -> Floats:
        """Return what groups of descriptors add up to, (n_groups, n_sums)."""

    def vector(self, sums: Floats) -> Floats:
        """Return the features."""


@dataclass(frozen=True)
class Vocabulary:
    """Words, and the settings under which they were learned.

    Attributes
    ----------
    words : array of shape (n_words, n_features)
        Of HOG3D; none where its words are not asked for.
    spread : float
        The mean squared distance of the sample to its words: the width of soft assignment.
    settings : IndexSettings
    codebooks : tuple of Codebook
        Of everything else.
    """

    words: Floats
    spread: float
    settings: IndexSettings
    codebooks: tuple[Codebook, ...] = ()

    @functools.cached_property
    def digest(self) -> str:
        """A short name for the words and their settings."""
        arrays = [self.words, *(part for book in self.codebooks for part in book.as_parts().values())]
        known = b"".join(array.tobytes() for array in arrays if isinstance(array, np.ndarray))
        return short_digest(known + json.dumps(self.settings.as_dict(), sort_keys=True).encode())

    @property
    def blocks(self) -> list[Block]:
        """What the features of a frame are, block by block."""
        named = [(book.name, book.n_features, book.encoding == "words") for book in self.codebooks]
        if len(self.words):
            named.insert(0, ("hog3d words", len(self.words), True))
        stops = list(itertools.accumulate(width for _, width, _ in named))
        return [Block(name, stop - width, stop, words) for (name, width, words), stop in zip(named, stops, strict=True)]

    @property
    def n_features(self) -> int:
        """How many features a frame has."""
        return self.blocks[-1].stop

    def encoders(self) -> list[tuple[Place, Encoder]]:
        """Return what makes every block, and the descriptors that it is made of."""
        places = places_of(self.settings)
        own: list[tuple[Place, Encoder]] = [(places[HOG3D], _Words(self))] if len(self.words) else []
        return [*own, *((places[book.descriptor], book) for book in self.codebooks)]

    def histogram(self, descriptors: Floats, backend: Backend) -> Floats:
        """Return how often every word occurs among descriptors, (n_words,).

        Parameters
        ----------
        descriptors : array of shape (n, n_features), n at least 1
        backend : Backend
        """
        return self.histograms(descriptors, np.array([0, len(descriptors)]), backend)[0]

    def histograms(self, descriptors: Floats, offsets: Integers, backend: Backend) -> Floats:
        """Return how often every word occurs among groups of descriptors, (n_groups, n_words).

        Parameters
        ----------
        descriptors : array of shape (n, n_features)
        offsets : array of shape (n_groups + 1,)
            Where groups begin, none of them empty, and where the last one ends.
        backend : Backend
        """
        n_words = len(self.words)
        if self.settings.assignment == "hard":
            nearest = backend.assign(descriptors, self.words)[0]
            return backend.bag_histograms(nearest, offsets, n_words).astype(np.float32)
        words, weights = self._nearest(backend.sq_distances(descriptors, self.words))
        groups = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[:, None]
        shape = len(offsets) - 1, n_words
        counted = np.bincount((groups * n_words + words).ravel(), weights.ravel(), shape[0] * shape[1])
        return counted.reshape(shape).astype(np.float32)

    def _nearest(self, squares: Floats) -> tuple[Integers, Floats]:
        """Return the nearest words of every descriptor and their shares, which add up to one."""
        n_nearest = min(self.settings.neighbours, len(self.words))
        nearest = np.argpartition(squares, n_nearest - 1, axis=1)[:, :n_nearest]
        found = np.take_along_axis(squares, nearest, axis=1).astype(np.float64)
        closest = found.min(axis=1, keepdims=True)
        weights = np.exp((closest - found) / (2 * self.spread)) if self.spread > 0 else (found == closest) * 1.0
        return nearest, weights / weights.sum(axis=1, keepdims=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary to a file that cannot run code.

        Parameters
        ----------
        path : path
        """
        model_files.save_parts({"kind": KIND, **self.as_parts()}, path, SAVED_VOCABULARY)

    def as_parts(self) -> dict[str, object]:
        """Return plain data, from which `from_parts` makes the same vocabulary."""
        parts = {"words": self.words, "spread": self.spread, "settings": self.settings.as_dict()}
        return {**parts, "codebooks": [book.as_parts() for book in self.codebooks]} if self.codebooks else parts

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Vocabulary:
        """Return the vocabulary of `as_parts`."""
        books = tuple(Codebook(**book) for book in parts.get("codebooks") or ())
        found = cls(parts["words"], parts["spread"], IndexSettings.from_dict(parts["settings"]), books)
        found._check_codebooks()
        n_words = found.settings.n_words if _has_words_of_hog3d(found.settings) else 0
        expected = (n_words, found.settings.descriptor.n_features)
        if found.words.shape != expected:
            msg = f"The words must be of shape {expected}, as their settings state, but they are {found.words.shape}."
            raise ModelFileError(msg)
        return found

    def _check_codebooks(self) -> None:
        """Refuse codebooks that are not those of the settings."""
        asked = _codebooks_of(self.settings)
        if [(book.descriptor, book.encoding) for book in self.codebooks] != asked:
            msg = f"The codebooks must be those of {asked}, as the settings state."
            raise ModelFileError(msg)
        places, widths = places_of(self.settings), widths_of(self.settings)
        for book in self.codebooks:
            place = places[book.descriptor]
            book.check(len(range(*place.columns.indices(widths.get(place.family, 0)))))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
        """
        with model_files.clear_damage(path):
            return cls.from_parts(model_files.load_parts(path, KIND, SAVED_VOCABULARY))


class _Words:
    """The words of HOG3D as an encoder."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @property
    def n_sums(self) -> int:
        return len(self.vocabulary.words)

    def sums(self, values: Floats, offsets: Integers, backend: Backend) -> Floats:
        return self.vocabulary.histograms(values, offsets, backend)

    def vector(self, sums: Floats) -> Floats:
        return np.asarray(sums / max(sums.sum(), np.float32(1e-12)))


def _has_words_of_hog3d(settings: IndexSettings) -> bool:
    return HOG3D in settings.descriptors and "words" in settings.encodings


def _codebooks_of(settings: IndexSettings) -> list[tuple[str, str]]:
    """Return the descriptors and encodings that need a codebook: all but the words of HOG3D."""
    pairs = [
        (descriptor, encoding)
        for descriptor in settings.descriptors
        for encoding in ((ENERGIES,) if descriptor in N_SUMS else settings.encodings)
    ]
    return [pair for pair in pairs if pair != (HOG3D, "words")]


def learn_vocabulary(
    samples: Sequence[Floats | Mapping[str, Floats]], settings: IndexSettings, *, n_jobs: int | None = None
) -> Vocabulary:
    """Cluster descriptors of several videos into words, and learn the codebooks that settings ask for.

    Parameters
    ----------
    samples : sequence of arrays of shape (n, n_features), or of dicts of them
        The descriptors drawn from every video; where there are others beside HOG3D, by family.
    settings : IndexSettings
    n_jobs : int, optional
        Threads; None is every core.
    """
    backend, generator = resolve("auto", n_jobs), np.random.default_rng(settings.seed)
    pools = {family: _pool(samples, family, settings, generator) for family in widths_of(settings)}
    words, spread = np.empty((0, settings.descriptor.n_features), dtype=np.float32), 0.0
    if _has_words_of_hog3d(settings):
        pool = pools[HOG3D]
        clusters = kmeans(pool, settings.n_words, backend=backend, generator=generator, max_iter=settings.max_iter)
        words = np.ascontiguousarray(clusters.centers, dtype=np.float32)
        spread = float(clusters.inertia) / len(pool)
    books = [
        _codebook(pools, descriptor, encoding, settings, backend) for descriptor, encoding in _codebooks_of(settings)
    ]
    return Vocabulary(words, spread, settings, tuple(books))


def _pool(samples: Sequence[Any], family: str, settings: IndexSettings, generator: np.random.Generator) -> Floats:
    """Return descriptors of all videos, at most as many as settings say."""
    parts = [sample[family] if isinstance(sample, dict) else sample for sample in samples]
    pool = np.concatenate([np.asarray(part, dtype=np.float32) for part in parts])
    needed = settings.n_words if "words" in settings.encodings else settings.n_centers
    if len(pool) < needed:
        msg = (
            f"{needed} words cannot be learned from {len(pool)} descriptors. Ask for fewer words (--words), "
            "or list more or livelier videos."
        )
        raise VideoError(msg)
    if len(pool) > settings.sample_size:
        pool = pool[np.sort(generator.choice(len(pool), settings.sample_size, replace=False))]
    return pool


def _codebook(
    pools: Mapping[str, Floats], descriptor: str, encoding: str, settings: IndexSettings, backend: Backend
) -> Codebook:
    if encoding == ENERGIES:
        return Codebook(descriptor, encoding)
    place = places_of(settings)[descriptor]
    rows = np.ascontiguousarray(pools[place.family][:, place.columns])
    n_centers = settings.n_words if encoding == "words" else settings.n_centers
    seed = [settings.seed, *descriptor.encode(), *encoding.encode()]
    return learn_codebook(descriptor, encoding, rows, n_centers, settings.n_components, backend, seed)


class DescriptorSample:
    """A uniform sample of a stream: every descriptor draws a number, those with the smallest stay."""

    def __init__(self, size: int, n_features: int, generator: np.random.Generator) -> None:
        self.size, self._generator = size, generator
        self._rows: Floats = np.empty((0, n_features), dtype=np.float32)
        self._draws: Floats = np.empty(0)

    @property
    def values(self) -> Floats:
        """The descriptors that stay, in the order of their numbers."""
        return self._rows[np.argsort(self._draws, kind="stable")]

    def add(self, descriptors: Floats) -> None:
        """Let more descriptors draw."""
        draws = self._generator.random(len(descriptors))
        n_free = self.size - len(self._draws)
        self._rows = np.concatenate([self._rows, descriptors[:n_free]]) if n_free else self._rows
        self._draws = np.concatenate([self._draws, draws[:n_free]])
        self._exchange(descriptors[n_free:], draws[n_free:])

    def _exchange(self, descriptors: Floats, draws: Floats) -> None:
        """Let those with smaller numbers take the places of those with the largest."""
        if not (len(draws) and draws.min() < self._draws.max()):
            return
        n_held = len(self._draws)
        everyone = np.concatenate([self._draws, draws])
        stay = np.zeros(len(everyone), dtype=bool)
        stay[np.argsort(everyone, kind="stable")[: self.size]] = True
        places, new = np.flatnonzero(~stay[:n_held]), np.flatnonzero(stay[n_held:])
        self._rows[places], self._draws[places] = descriptors[new], draws[new]
