"""What a model file tells of the data that the model was fitted on: the columns of its table, and marks of its bags."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from gmil.io.model_files.schema import Choice, Items, OrNone, Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans

_MOST_BAGS = 20_000
"""Of more bags no marks are kept: they would be a good part of the text that a file has room for."""


class Origin(NamedTuple):
    """Columns, where they were named, and marks of the training bags; files without them do."""

    bag: str | None = None
    label: str | None = None
    group: str | None = None
    features: str | None = None
    """One list column; the names of several are the features of the model."""
    marks: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, str]:
        """The columns that were named, by what they are."""
        return {role: name for role, name in self._asdict().items() if role != "marks" and name is not None}

    def seen(self, bags: Bags) -> Booleans | None:
        """Tell which bags are among those that the model was fitted on, (n_bags,); None where nobody knows."""
        known = set(self.marks)
        marks = list(marks_of(bags)) if known else []
        return np.array([mark in known for mark in marks]) if marks else None

    def count_seen(self, bags: Bags) -> int:
        """Return how many bags are among those that the model was fitted on."""
        seen = self.seen(bags)
        return 0 if seen is None else int(seen.sum())

    def to_json(self) -> dict[str, Any]:
        """Return what a file keeps."""
        return {**self._asdict(), "marks": list(self.marks)}

    @classmethod
    def from_json(cls, found: Any) -> Self:
        """Return what a file has kept, checked; None is a file that keeps nothing."""
        if found is None:
            return cls()
        _KIND.check(found, "the origin of the model", {})
        return cls(**{**found, "marks": tuple(found["marks"])})


_KIND = Record({**dict.fromkeys(Origin._fields, OrNone(Choice())), "marks": Items(Choice())})


def marks_of(bags: Bags) -> Iterable[str]:
    """Return a mark of every bag, a hash of its numbers in their order; of very many bags none."""
    return [_mark(bag) for bag in bags] if len(bags) <= _MOST_BAGS else []


def _mark(bag: Any) -> str:
    parts = (bag.indices, bag.indptr, bag.data) if sp.issparse(bag) else (bag,)
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return digest.hexdigest()
