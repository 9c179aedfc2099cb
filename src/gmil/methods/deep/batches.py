"""Ragged bags in batches of several models at once: every model has bags of its own, and no bag is padded.

A batch has the instances of some bags of every model, (n_models, n_rows, n_columns), one bag after the other; models
with fewer instances are filled up with rows that belong to no bag.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from gmil.bags.parts import rows_of_bags
from gmil.engine.torch.tensors import to_device, to_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.engine.arrays import Floats, Integers
    from gmil.transform.space import Space

_LARGEST = 1e6
"""Scaled features are kept within this: networks multiply them with each other."""
_DENSE = 1 << 27
"""Sparse instances of at most so many cells become dense: 512 MiB in single precision."""


KEYS_APART = 1 << 12
"""The distance of the keys of a model in two steps that follow each other."""


class Dropout(NamedTuple):
    """Which units are left out of a training step: numbers of every model alone, the same on every device."""

    share: float
    keys: torch.Tensor  # (n_models,), another one in every step

    def apply(self, values: torch.Tensor, layer: int) -> torch.Tensor:
        """Leave out a share of the units, (n_models, n_rows, n_units), and scale the others up."""
        number = _arange(values.shape[1], values)
        # Keys of steps are as far apart as this: a row beyond it must not have the number of one in the next step.
        number = number % KEYS_APART + ((number // KEYS_APART) << 46)
        rows = _mixed(self.keys[:, None] + number + (layer << 40))
        units = _mixed(_arange(values.shape[2], values) - (1 << 50))
        drawn = _mixed(rows[:, :, None] ^ units) & 0xFFFF
        return values * (drawn >= round(self.share * 0x10000)) / (1 - self.share)


def _arange(n: int, like: torch.Tensor) -> torch.Tensor:
    return torch.arange(n, device=like.device)


def _mixed(x: torch.Tensor) -> torch.Tensor:
    """Return whole numbers that look random, by multiplications that overflow and shifts (as SplitMix64 does)."""
    x = (x ^ (x >> 30)) * -0x40A7B892E31B1A47
    return x ^ (x >> 27)


@dataclass(frozen=True)
class Batch:
    """Some bags of every model."""

    rows: torch.Tensor  # (n_models, n_rows, n_columns), scaled
    bag_of: torch.Tensor  # (n_models, n_rows): the place of its bag in the batch; n_bags of a row of no bag
    sizes: torch.Tensor  # (n_models, n_bags); 0 where a model has fewer bags
    labels: torch.Tensor | None = None  # (n_models, n_bags)
    dropout: Dropout | None = None

    @property
    def n_bags(self) -> int:
        """The largest number of bags of a model."""
        return self.sizes.shape[1]

    @cached_property
    def members(self) -> torch.Tensor:
        """Which rows are in which bag, (n_models, n_bags, n_rows)."""
        return self.bag_of[:, None, :] == _arange(self.n_bags, self.bag_of)[:, None]

    @cached_property
    def starts(self) -> torch.Tensor:
        """The first row of every bag, (n_models, n_bags)."""
        return self.sizes.cumsum(1) - self.sizes

    @cached_property
    def size_of(self) -> torch.Tensor:
        """The size of the bag of every row, (n_models, n_rows, 1); 0 of a row of no bag."""
        padded = torch.nn.functional.pad(self.sizes, (0, 1))
        return padded.gather(1, self.bag_of)[..., None].to(self.rows.dtype)

    def alone(self) -> Batch:
        """Return every row as a bag of its own."""
        sizes = (self.bag_of < self.n_bags).long()
        places = _arange(self.rows.shape[1], self.rows).expand_as(sizes)
        return Batch(self.rows, torch.where(sizes > 0, places, self.rows.shape[1]), sizes)


class Table:
    """All instances, and how every model scales them.

    Parameters
    ----------
    instances : array or sparse array of shape (n_instances, n_features)
    offsets : array of shape (n_bags + 1,)
    columns : list of arrays
        The features that each model knows.
    spaces : list of Space
        How it scales these.
        Instances are scaled in the precision that they have.
    device : torch.device
    """

    def __init__(
        self, instances: Any, offsets: Integers, columns: Sequence[Integers], spaces: Sequence[Space], device: Any
    ) -> None:
        self.offsets, self.device = offsets, device
        self.columns = columns[0] if len(columns) == 1 else np.unique(np.concatenate(columns))
        whole = len(self.columns) == instances.shape[1]
        kept = instances if whole else instances[:, self.columns]
        if sp.issparse(kept) and kept.shape[0] * kept.shape[1] <= _DENSE:
            kept = kept.toarray()  # copied to the device once, not with every batch
        self._sparse = sp.issparse(kept)
        if kept.dtype not in (np.float32, np.float64):
            kept = kept.astype(np.float64)
        self._instances = kept if self._sparse else to_device(kept, device)
        self.places = [np.searchsorted(self.columns, own) for own in columns]
        parts = [self._units(places, space) for places, space in zip(self.places, spaces, strict=True)]
        self._shift, self._divisor = (to_device(np.stack(part)[:, None], device) for part in zip(*parts, strict=True))
        self._unit_length = spaces[0].unit_length

    def _units(self, places: Integers, space: Space) -> tuple[Floats, Floats]:
        """Return what is subtracted, and what then divides; features that a model does not know become zero."""
        shift, divisor = np.zeros(len(self.columns)), np.full(len(self.columns), np.inf)
        shift[places] = 0.0 if space.shift is None else space.shift
        divisor[places] = 1.0 if space.divisor is None else space.divisor
        return shift, divisor

    def take(self, rows: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return instances of every model, (n_models, n_rows, n_columns), given their numbers, (n_models, n_rows)."""
        if self._sparse:
            some = self._instances[to_host(rows).ravel()].toarray().reshape(*rows.shape, -1)
            found = to_device(some, self.device)
        else:
            found = self._instances[rows]
        scaled = (found - self._shift.to(found.dtype)) / self._divisor.to(found.dtype)
        if self._unit_length:
            lengths = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
            scaled = scaled / torch.where(lengths > 0, lengths, 1)
        return scaled.clamp(-_LARGEST, _LARGEST).to(dtype)


class Plan:
    """The bags of every model in an order, cut into batches.

    Parameters
    ----------
    table : Table
    orders : list of arrays
        The bags of every model.
    labels : array of shape (n_bags,), optional
    batch_size : int
        How many bags a batch has.
    dtype : torch.dtype
    """

    def __init__(
        self,
        table: Table,
        orders: Sequence[Integers],
        labels: Integers | None = None,
        batch_size: int = 64,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.table, self.batch_size, self.dtype = table, batch_size, dtype
        found = [rows_of_bags(table.offsets, order) for order in orders]
        self.offsets = [offsets for _, offsets in found]
        self.n_bags = np.array([len(order) for order in orders])
        device = table.device
        self._first = np.concatenate([[0], np.cumsum([len(rows) for rows, _ in found])])[:-1]
        self._rows = to_device(np.concatenate([rows for rows, _ in found] + [np.zeros(1, dtype=np.int64)]), device)
        self._labels = [None if labels is None else labels[order] for order in orders]

    @property
    def n_batches(self) -> Integers:
        """How many batches every model has, (n_models,)."""
        return -(-self.n_bags // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        return (self.batch(number) for number in range(int(self.n_batches.max())))

    def cuts(self, number: int) -> tuple[Integers, Integers]:
        """Return which bags of every model are in a batch: the first one, and that behind the last, (n_models,)."""
        starts = np.minimum(number * self.batch_size, self.n_bags)
        return starts, np.minimum(starts + self.batch_size, self.n_bags)

    def batch(self, number: int, dropout: Dropout | None = None) -> Batch:
        """Return one batch."""
        device = self.table.device
        starts, stops = self.cuts(number)
        n_bags = int((stops - starts).max())
        spans = list(zip(self.offsets, starts.tolist(), stops.tolist(), strict=True))
        sizes = np.zeros((len(spans), n_bags), dtype=np.int64)
        for own, (offsets, start, stop) in zip(sizes, spans, strict=True):
            own[: stop - start] = np.diff(offsets[start : stop + 1])
        first = self._first + [offsets[start] for offsets, start, _ in spans]
        lengths = to_device(sizes, device)
        ends = lengths.cumsum(1)
        places = torch.arange(int(sizes.sum(1).max()), device=device)
        bag_of = torch.searchsorted(ends, places.expand(len(spans), -1).contiguous(), right=True)
        inside = places < ends[:, -1:]
        numbers = torch.where(inside, to_device(first, device)[:, None] + places, len(self._rows) - 1)
        bag_of = torch.where(inside, bag_of, n_bags)
        rows = self.table.take(self._rows[numbers], self.dtype)
        return Batch(rows, bag_of, lengths, self._labels_between(spans, n_bags), dropout)

    def _labels_between(self, spans: Sequence[tuple[Integers, int, int]], n_bags: int) -> torch.Tensor | None:
        if self._labels[0] is None:
            return None
        found = np.zeros((len(spans), n_bags), dtype=np.int64)
        for own, labels, (_, start, stop) in zip(found, self._labels, spans, strict=True):
            own[: stop - start] = labels[start:stop]  # type: ignore[index]
        return to_device(found, self.table.device)
