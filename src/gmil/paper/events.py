"""Events in videos, each against all other videos: the data of Table 3 and Figure 9."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil import datasets
from gmil.datasets.fingerprint import data_fingerprint
from gmil.errors import BagValidationError
from gmil.greedy import GMIL
from gmil.methods import WitnessSVM
from gmil.safety.guard import physical_memory
from gmil.scale import LazyBags
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from gmil.engine.arrays import Integers

UCF = "ucf-crime"
MED11 = "med11"
_NO_EVENT = "Normal"
_BYTES_PER_NUMBER = 24
"""What MI-SVM with LIBLINEAR takes of memory for every number of its training bags."""


@dataclass(frozen=True)
class Videos:
    """Bags of which each shows one event, or none."""

    name: str
    bags: Any  # Bags, or LazyBags
    shown: NDArray[Any]  # (n_bags,), the event of every video

    @property
    def events(self) -> list[str]:
        """The names of the events."""
        return [str(event) for event in np.unique(self.shown) if event != _NO_EVENT]

    @property
    def indicator(self) -> Integers:
        """1 where a video shows an event, (n_bags, n_events)."""
        return np.column_stack([self.shown == event for event in self.events]).astype(np.int64)

    @property
    def fingerprint(self) -> str:
        """A hash of the data; of files that are read in blocks, their sizes and times stand for their content."""
        if not isinstance(self.bags, LazyBags):
            return data_fingerprint(self.bags, self.shown)
        files = sorted({self.bags.source.place(part) for part in range(len(self.bags.source.edges) - 1)})
        stamps = [(Path(file).name, Path(file).stat().st_size, Path(file).stat().st_mtime_ns) for file in files]
        return hashlib.sha256(repr((stamps, self.bags.sizes.tolist(), self.shown.tolist())).encode()).hexdigest()

    def some(self, n_bags: int, seed: int) -> Videos:
        """Return a random choice of so many videos, of every event its share."""
        order = np.random.default_rng(seed).permutation(len(self.shown))
        order = order[np.argsort(self.shown[order], kind="stable")]
        chosen = np.sort(order[np.linspace(0, len(order) - 1, n_bags).round().astype(int)])
        return Videos(self.name, self.bags[chosen], self.shown[chosen])


def load_videos(source: str | os.PathLike[str]) -> Videos:
    """Return UCF-Crime by its name, or videos that ``gmil data make med11`` wrote, by their folder."""
    if source == UCF:
        found = datasets.fetch_ucf_crime()
        return Videos(UCF, found.bags, np.asarray(found.events))
    bags, y = datasets.scan(source)
    if y is None or len(np.unique(y)) < 2:
        msg = f"{source} must have a label column that names the event of every video."
        raise BagValidationError(msg)
    return Videos(MED11, bags, y)


def methods() -> dict[str, BaseEstimator]:
    """Return the methods that Table 3 compares, by their names on the command line."""
    return {
        "gmil": GMIL.from_paper(MED11),
        "weighted-gmil": WeightedGMIL(),
        "mi-svm-witness": WitnessSVM(kernel="linear", solver="liblinear"),
    }


LABELS = {"gmil": "GMIL (K=50, p=3, q=9)", "weighted-gmil": "WeightedGMIL", "mi-svm-witness": "MI-SVM (LIBLINEAR)"}


def why_not_in_memory(bags: Any) -> str | None:
    """Return why bags do not fit into memory for MI-SVM, or None where they do."""
    needed = _BYTES_PER_NUMBER * bags.n_instances * bags.n_features
    there = physical_memory()
    if there is None or needed <= there:
        return None
    return f"needs about {needed / 2**30:.0f} GiB of memory for all instances, and this machine has {there / 2**30:.0f}"
