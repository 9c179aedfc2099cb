"""Visual words: centres of descriptors, learned by the engine's k-means, saved and used again."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gmil.engine import kmeans, resolve
from gmil.errors import ModelFileError, VideoError
from gmil.io import model_files
from gmil.io.model_files.schema import Array, Number
from gmil.video.settings import SAVED_SETTINGS, IndexSettings, short_digest

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Integers

KIND = "video vocabulary"
SAVED_VOCABULARY = {"words": Array("W", "w"), "spread": Number(at_least=0), "settings": SAVED_SETTINGS}
"""What `Vocabulary.as_parts` is."""


@dataclass(frozen=True)
class Vocabulary:
    """Words, and the settings under which they were learned.

    Attributes
    ----------
    words : array of shape (n_words, n_features)
    spread : float
        The mean squared distance of the sample to its words: the width of soft assignment.
    settings : IndexSettings
    """

    words: Floats
    spread: float
    settings: IndexSettings

    @functools.cached_property
    def digest(self) -> str:
        """A short name for the words and their settings."""
        return short_digest(self.words.tobytes() + json.dumps(self.settings.as_dict(), sort_keys=True).encode())

    def histogram(self, descriptors: Floats, backend: Backend) -> Floats:
        """Return how often every word occurs among descriptors, (n_words,).

        Parameters
        ----------
        descriptors : array of shape (n, n_features)
        backend : Backend
        """
        n_words = len(self.words)
        if self.settings.assignment == "hard":
            return np.bincount(backend.assign(descriptors, self.words)[0], minlength=n_words).astype(np.float32)
        nearest, weights = self._nearest(backend.sq_distances(descriptors, self.words))
        return np.bincount(nearest.ravel(), weights=weights.ravel(), minlength=n_words).astype(np.float32)

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
        return {"words": self.words, "spread": self.spread, "settings": self.settings.as_dict()}

    @classmethod
    def from_parts(cls, parts: dict[str, object]) -> Vocabulary:
        """Return the vocabulary of `as_parts`."""
        found = cls(parts["words"], parts["spread"], IndexSettings.from_dict(parts["settings"]))  # type: ignore[arg-type]
        expected = (found.settings.n_words, found.settings.descriptor.n_features)
        if found.words.shape != expected:
            msg = f"The words must be of shape {expected}, as their settings state, but they are {found.words.shape}."
            raise ModelFileError(msg)
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
        """
        with model_files.clear_damage(path):
            return cls.from_parts(model_files.load_parts(path, KIND, SAVED_VOCABULARY))


def learn_vocabulary(samples: Sequence[Floats], settings: IndexSettings, *, n_jobs: int | None = None) -> Vocabulary:
    """Cluster descriptors of several videos into words.

    Parameters
    ----------
    samples : sequence of arrays of shape (n, n_features)
        The descriptors drawn from every video.
    settings : IndexSettings
    n_jobs : int, optional
        Threads; None is every core.
    """
    pool = np.concatenate([np.asarray(sample, dtype=np.float32) for sample in samples])
    if len(pool) < settings.n_words:
        msg = (
            f"{settings.n_words} words cannot be learned from {len(pool)} descriptors. Ask for fewer words (--words), "
            "or list more or livelier videos."
        )
        raise VideoError(msg)
    generator = np.random.default_rng(settings.seed)
    if len(pool) > settings.sample_size:
        pool = pool[np.sort(generator.choice(len(pool), settings.sample_size, replace=False))]
    clusters = kmeans(
        pool, settings.n_words, backend=resolve("auto", n_jobs), generator=generator, max_iter=settings.max_iter
    )
    words = np.ascontiguousarray(clusters.centers, dtype=np.float32)
    return Vocabulary(words, float(clusters.inertia) / len(pool), settings)


class DescriptorSample:
    """A uniform sample of a stream: every descriptor draws a number, those with the smallest stay."""

    def __init__(self, size: int, n_features: int, generator: np.random.Generator) -> None:
        self.size, self._generator = size, generator
        self.values: Floats = np.empty((0, n_features), dtype=np.float32)
        self._draws: Floats = np.empty(0)

    def add(self, descriptors: Floats) -> None:
        """Let more descriptors draw."""
        draws = self._generator.random(len(descriptors))
        if len(self._draws) == self.size:
            wins = draws < self._draws.max()
            descriptors, draws = descriptors[wins], draws[wins]
            if not len(draws):
                return
        draws = np.concatenate([self._draws, draws])
        keep = np.argsort(draws, kind="stable")[: self.size]
        self.values = np.concatenate([self.values, descriptors])[keep]
        self._draws = draws[keep]
