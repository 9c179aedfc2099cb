"""Topics: a few numbers for the many words of a frame.

A motion shows in dozens of words, each of them rare and none of them sure, and detectors that use one word at a
time hardly see it. Topics are directions in the space of words, found without labels: histograms are rooted, rare words
count more (inverse document frequency), the directions of most variance are kept, as in latent semantic analysis, and
turned until they are as independent as can be (independent component analysis). What happens now and then becomes one
topic that is loud now and then.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from gmil.engine import one_blas_thread
from gmil.engine.eigen import eigh
from gmil.errors import VideoError
from gmil.io.model_files.schema import Array, Record

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats

TOPICS = (25, 50, 100)
"""The numbers of topics into which words are condensed where nothing else is asked for."""
_MOST_FRAMES = 20_000  # from which topics are learned
_FRAMES_AT_ONCE = 8192
_LEAST_VARIANCE = 1e-6  # of that of the first direction; what varies less is rounding


SAVED_TOPICS = Record({"weights": Array("w"), "center": Array("w"), "directions": Array("w", "t")}, local=("w", "t"))
"""What `Topics.as_parts` is."""


@dataclass(frozen=True)
class Topics:
    """What turns the word histogram of a frame into topics.

    Attributes
    ----------
    weights : array of shape (n_words,)
        How much a word counts.
    center : array of shape (n_words,)
        The mean of rooted and weighted histograms.
    directions : array of shape (n_words, n_topics)
    """

    weights: Floats
    center: Floats
    directions: Floats

    def of(self, bags: Bags) -> Bags:
        """Return videos with topics in place of words.

        Parameters
        ----------
        bags : Bags
            Word histograms of frames.
        """
        parts = [
            self._of_block(bags.instances[start : start + _FRAMES_AT_ONCE])
            for start in range(0, bags.n_instances, _FRAMES_AT_ONCE)
        ]
        return bags.with_instances(np.concatenate(parts))

    def _of_block(self, histograms: Floats) -> Floats:
        return np.asarray((np.sqrt(histograms) * self.weights - self.center) @ self.directions, dtype=np.float32)

    def as_parts(self) -> dict[str, Any]:
        """Return plain data, from which `from_parts` makes the same topics."""
        return {"weights": self.weights, "center": self.center, "directions": self.directions}

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Topics:
        """Return the topics of `as_parts`."""
        return cls(parts["weights"], parts["center"], parts["directions"])


def learn_topics(bags: Bags, n_topics: int, *, seed: int = 0) -> Topics:
    """Learn topics from the frames of videos; labels have no part in it.

    Parameters
    ----------
    bags : Bags
        Word histograms of frames.
    n_topics : int
        The most topics; there are never more than videos, or than words that differ from each other.
    seed : int
        The seed of the search, and of the sample of frames where there are many.
    """
    frames = bags.instances
    if not frames.min() >= 0:
        msg = f"Topics are for word histograms, but a feature of a frame is {frames.min():g}. Pass topics=0."
        raise VideoError(msg)
    if len(frames) > _MOST_FRAMES:
        chosen = np.random.default_rng(seed).choice(len(frames), _MOST_FRAMES, replace=False)
        frames = frames[np.sort(chosen)]
    frames_with = np.maximum((frames > 0).mean(axis=0), 1 / len(frames))
    weights = np.log1p(1 / frames_with).astype(np.float32)
    rows = np.sqrt(frames, dtype=np.float64) * weights
    center = rows.mean(axis=0)
    rows -= center
    with one_blas_thread():  # hundreds of products too small to be shared: on busy cores threads wait ten times as long
        directions = _varied_directions(rows, min(n_topics, len(bags)))
        directions = directions @ _independent(rows @ directions, seed)
    return Topics(weights, center.astype(np.float32), directions.astype(np.float32))


def _varied_directions(rows: Floats, most: int) -> Floats:
    """Return the directions in which centred rows vary most, (n_words, n), at most so many, for unit variance."""
    variances, vectors = eigh(rows.T @ rows / len(rows))
    variances, vectors = variances[::-1][:most], vectors[:, ::-1][:, :most]
    n_real = max(1, int((variances > _LEAST_VARIANCE * variances[0]).sum()))
    return vectors[:, :n_real] / np.sqrt(np.where(variances > 0, variances, 1.0)[:n_real])


def _independent(rows: Floats, seed: int) -> Floats:
    """Return the rotation, (n, n), that makes the columns of rows of unit variance as independent as can be."""
    turning = FastICA(whiten=False, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any rotation will do, a better one does better
        return np.asarray(turning.fit(rows).components_.T)
