"""`LazyBags`: bags that stay where they are and are read in blocks, as often as something has to be computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gmil.bags import parts as bag_parts
from gmil.bags.bags import bags_drawn
from gmil.bags.finite import are_usable
from gmil.bags.tables import unmasked
from gmil.engine.resident import is_tensor
from gmil.engine.threads import n_threads
from gmil.scale.passes import (
    ArraySource,
    Joined,
    Part,
    call_on_whole_bags,
    in_threads,
    read_whole_bags,
    reduce_part,
    take_from_part,
)
from gmil.scale.resident import TensorSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.scale.passes import BagFunction, Join, Runner, Source

_BYTES_OF_A_BLOCK = 1 << 23


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LazyBags:
    """Out-of-core bags: instances stay in files, on a Dask cluster or on a GPU.

    `gmil.scan` makes them from a Parquet file, a folder of them, or a folder with one file a bag;
    `LazyBags.from_array` from a memory-mapped array. They are indexed like `Bags`. `GMIL`, `GMILCV`, `WeightedGMIL`,
    transformers to vectors such as `VLAD`, and `gmil.cross_validate` take them in place of `Bags`. What these compute
    is read in blocks of a few megabytes, in several threads; a bag larger than a block is read in pieces.

    Parameters
    ----------
    source : Source
        Where rows come from.
    source_offsets : array of shape (n_source_bags + 1,)
        Bag ``i`` of the source is its rows ``source_offsets[i]`` to ``source_offsets[i + 1]``.
    source_ids : array of shape (n_source_bags,), optional
        A name or number for every bag of the source.
    feature_names : tuple of str, optional
    positions : array of shape (n_bags,), optional
        Which bags of the source these are; all by default.
    runner : callable, optional
        What runs a pass over the parts of the source; threads by default, see `on`.
    watcher : callable, optional
        Called with the number of instances read and of all in every pass, see `watched`.

    Examples
    --------
    >>> import numpy as np
    >>> from gmil import LazyBags
    >>> bags = LazyBags.from_array(np.arange(12.0).reshape(6, 2), offsets=[0, 1, 4, 6])
    >>> bags
    LazyBags(n_bags=3, n_instances=6, n_features=2, float64)
    >>> bags[1:].sizes
    array([3, 2])
    >>> bags[[2, 0]].load()
    Bags(n_bags=2, n_instances=3, n_features=2, float64)
    """

    source: Source
    source_offsets: Integers
    source_ids: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    positions: Integers | None = None
    runner: Runner | None = None
    watcher: Callable[[int, int], None] | None = None

    @classmethod
    def from_array(
        cls, X: Any, offsets: ArrayLike, *, bag_ids: ArrayLike | None = None, feature_names: Sequence[str] | None = None
    ) -> LazyBags:
        """Make lazy bags of a matrix that is on disk, or in memory already, or on a GPU.

        Parameters
        ----------
        X : array or torch.Tensor of shape (n_instances, n_features)
            Memory-mapped, as from ``np.load(path, mmap_mode="r")``; the instances of a bag next to each other. A tensor
            stays on its device, where ``backend="torch"`` works on it.
        offsets : array of shape (n_bags + 1,)
            Where every bag begins, and where the last ends.
        bag_ids : array of shape (n_bags,), optional
        feature_names : sequence of str, optional
        """
        X = unmasked(X)
        cut = bag_parts.checked_offsets(offsets, X.shape[0])
        ids = None if bag_ids is None else bag_parts.checked_ids(bag_ids, len(cut) - 1)
        names = None if feature_names is None else bag_parts.checked_names(feature_names, X.shape[1])
        if not is_tensor(X):
            return cls(ArraySource.of(X), cut, ids, names)
        source = TensorSource.of(X)
        bags = cls(source, cut, ids, names)
        if not source.are_usable():
            bags._refuse_values()
        return bags

    @classmethod
    def like(cls, bags: Bags, X: Any) -> LazyBags:
        """Make lazy bags of bags in memory whose instances lie in another matrix.

        Parameters
        ----------
        bags : Bags
            What gives bags, ids and names; a bag that was drawn twice stays so.
        X : array or torch.Tensor of shape (n_instances, n_features)
        """
        return replace(cls.from_array(X, bags.offsets, feature_names=bags.feature_names), source_ids=bags.bag_ids)

    def tensor_on(self, device: Any) -> Any | None:
        """Return the tensor of all instances of the source where it lies on this device, else None.

        Parameters
        ----------
        device : torch.device or None
        """
        if isinstance(self.source, TensorSource) and self.source.X.device == device:
            return self.source.X
        return None

    # ---------------------------------------------------------------- shape

    def __len__(self) -> int:
        return len(self.source_offsets) - 1 if self.positions is None else len(self.positions)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_bags, n_features), so that scikit-learn counts bags as samples."""
        return len(self), self.n_features

    @property
    def n_features(self) -> int:
        """The number of features of an instance."""
        return self.source.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the features."""
        return self.source.dtype

    @property
    def sizes(self) -> Integers:
        """The number of instances of every bag, (n_bags,)."""
        sizes: Integers = np.diff(self.source_offsets)
        return sizes if self.positions is None else sizes[self.positions]

    @property
    def offsets(self) -> Integers:
        """Where the instances of every bag begin among those of all, (n_bags + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def n_instances(self) -> int:
        """The number of instances in all bags."""
        return int(self.sizes.sum())

    @property
    def segment_ids(self) -> Integers:
        """The position of the bag of every instance, (n_instances,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def bag_ids(self) -> NDArray[Any] | None:
        """A name or number for every bag, where there are any."""
        if self.source_ids is None or self.positions is None:
            return self.source_ids
        return self.source_ids[self.positions]

    @property
    def instance_info(self) -> pa.Table | None:
        """The columns about every instance that files have beside features, read when they are asked for."""
        source: Any = self.source
        if not getattr(source, "has_info", False) or len(self) == 0:
            return None
        return source.take_info(bag_parts.rows_of_bags(self.source_offsets, self.bags_of_source())[0])

    def __repr__(self) -> str:
        return (
            f"LazyBags(n_bags={len(self)}, n_instances={self.n_instances}, n_features={self.n_features}, {self.dtype})"
        )

    # ---------------------------------------------------------------- indexing

    @overload
    def __getitem__(self, key: int) -> Instances: ...
    @overload
    def __getitem__(self, key: slice | ArrayLike | tuple[Any, Any]) -> LazyBags: ...
    def __getitem__(self, key: Any) -> Instances | LazyBags:
        """Read one bag for an integer, else return the chosen bags as `LazyBags`; nothing is read then."""
        chosen = bag_parts.chosen_bag(key, len(self))
        places = self.bags_of_source()
        if isinstance(chosen, int):
            rows = np.arange(*self.source_offsets[places[chosen] : places[chosen] + 2])
            return replace(self, watcher=None)._read_rows(rows)
        return replace(self, positions=places[chosen])

    def __iter__(self) -> Iterator[Instances]:
        return (self[i] for i in range(len(self)))

    def load(self) -> Bags:
        """Read all these bags into memory."""
        rows = bag_parts.rows_of_bags(self.source_offsets, self.bags_of_source())[0]
        return bags_drawn(self._read_rows(rows), self.offsets, self.bag_ids, self.feature_names, self.instance_info)

    def on(self, runner: Any) -> LazyBags:
        """Return the same bags, read by a Dask cluster or by threads.

        Parameters
        ----------
        runner : dask.distributed.Client, callable or None
            A client whose workers see the same files; None is threads of this process.
        """
        if runner is not None and not callable(runner):
            from gmil.scale.dask import DaskRunner

            runner = DaskRunner(runner)
        return replace(self, runner=runner)

    def watched(self, watcher: Callable[[int, int], None] | None) -> LazyBags:
        """Return the same bags; whoever reads them reports how far it is.

        Parameters
        ----------
        watcher : callable or None
            Called with the number of instances read and of all, from the first to the last in every pass.
        """
        return replace(self, watcher=watcher)

    # ---------------------------------------------------------------- passes

    def take(self, rows: ArrayLike) -> Floats:
        """Read some instances, (n_rows, n_features).

        Parameters
        ----------
        rows : array of int
            Positions among the instances of these bags, in any order.
        """
        found = self._read_rows(self.rows_of_source(rows))
        if not are_usable(found):
            self._refuse_values()
        return found

    def rows_of_source(self, rows: ArrayLike) -> Integers:
        """Return positions among the instances of these bags as positions among those of the source.

        Parameters
        ----------
        rows : array of int
        """
        places, offsets = np.asarray(rows, dtype=np.int64), self.offsets
        wrong = (places < 0) | (places >= offsets[-1])
        if wrong.any():
            msg = f"Instance {places[wrong][0]} is out of range: there are {offsets[-1]} instances."
            raise IndexError(msg)
        return bag_parts.moved_rows(places, offsets, self.source_offsets[self.bags_of_source()])

    def blocks(self, rows: int | None = None) -> Iterator[Bags]:
        """Yield runs of whole bags of about so many instances; a larger bag is a block of its own.

        Bags come in the order of the source, whatever their order here.

        Parameters
        ----------
        rows : int, optional
            By default so many that a block takes about 8 MiB.
        """
        parts = self._parts(np.unique(self.bags_of_source()))
        return read_whole_bags(self.source, parts, rows or self.block_rows(), self.source_ids, self.feature_names)

    def by_blocks(self, function: Callable[[Bags], Any], *, per_instance: bool = False) -> Any:
        """Return what a function gives for every bag, or about every instance, in the order of these bags.

        Parameters
        ----------
        function : callable
            Takes `Bags`, all of them whole, and returns one row for each, or for each instance.
        per_instance : bool, default=False
            Whether there is one row per instance.
        """
        wanted, back = np.unique(self.bags_of_source(), return_inverse=True)
        found = np.concatenate(list(self._over_blocks(function, wanted)))
        if not per_instance:
            return self._in_order([found])[0]
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.source_offsets)[wanted])])
        return found[bag_parts.rows_of_bags(offsets, back)[0]]

    def _over_blocks(self, function: Callable[[Bags], Any], wanted: Integers) -> Iterator[Any]:
        """Yield what a function returns for whole bags, in order; a task of a cluster takes those of a part."""
        if self.runner is None:
            return map(function, self.blocks())
        part_of = np.searchsorted(self.source.edges, self.source_offsets[wanted], side="right")
        runs = np.split(wanted, np.flatnonzero(np.diff(part_of)) + 1)
        rest = self.block_rows(), self.source_ids, self.feature_names, function
        return self.runner(call_on_whole_bags, [(self.source, self._parts(run), *rest) for run in runs])

    def reduce(
        self, function: BagFunction, joins: Sequence[Join], *, n_threads: int = 1, rows: int | None = None
    ) -> list[NDArray[Any]]:
        """Read all bags once, block by block, and return one row of every table for every bag.

        The order in which parts are joined does not depend on the number of threads or workers.

        Parameters
        ----------
        function : callable
            Takes `Bags`, among them perhaps a piece of a bag, and returns tables with one row for each.
        joins : sequence of callable
            What makes one row of the rows of two pieces of a bag, for every table: ``np.add``, ``np.minimum`` ...
        n_threads : int, default=1
            How many blocks are worked on at the same time.
        rows : int, optional
            Instances of a block; by default so many that it takes about 8 MiB.
        """
        parts = self._parts(np.unique(self.bags_of_source()))
        size = rows or self.block_rows()
        tasks = [(self.source, part, function, tuple(joins), size, self._names_of(part)) for part in parts]
        joined = Joined(tuple(joins))
        for part, found in zip(parts, self._run(reduce_part, tasks, n_threads), strict=True):
            joined.add(*found)
            self._report(int(self.source.edges[part.number + 1]))
        return self._in_order(joined.tables())

    def _in_order(self, tables: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return tables with a row a bag, made in the order of the source, in the order of these bags."""
        places = self.bags_of_source()
        wanted, back = np.unique(places, return_inverse=True)
        return tables if np.array_equal(wanted, places) else [table[back] for table in tables]

    def block_rows(self) -> int:
        """Return how many instances make a block."""
        return max(1, _BYTES_OF_A_BLOCK // max(1, self.n_features * self.dtype.itemsize))

    # ---------------------------------------------------------------- how it is read

    def bags_of_source(self) -> Integers:
        """Return the number of every bag among those of the source, (n_bags,)."""
        return np.arange(len(self.source_offsets) - 1) if self.positions is None else self.positions

    def _names_of(self, part: Part) -> NDArray[Any] | None:
        return None if self.source_ids is None else self.source_ids[part.first_bag : part.first_bag + part.n_bags]

    def _parts(self, wanted: Integers) -> list[Part]:
        """Return the parts of the source that hold some of the wanted bags, (ascending) numbers of its bags."""
        edges, offsets = self.source.edges, self.source_offsets
        if not len(wanted):
            return []
        is_wanted = np.zeros(len(offsets) - 1, dtype=bool)
        is_wanted[wanted] = True
        first, last = np.searchsorted(edges, offsets[[wanted[0], wanted[-1] + 1]], side="right")
        numbers = range(first - 1, min(last, len(edges) - 1))
        parts = [Part.of(number, edges, offsets, is_wanted) for number in numbers]
        return [part for part in parts if part.wanted.any()]

    def _read_rows(self, rows: Integers) -> Floats:
        """Read rows of the source, in any order."""
        ordered, back = rows, None
        if len(rows) > 1 and (np.diff(rows) <= 0).any():
            ordered, back = np.unique(rows, return_inverse=True)
        edges = self.source.edges
        cuts = np.searchsorted(ordered, edges)
        numbers = np.flatnonzero(np.diff(cuts))
        tasks = [(self.source, int(i), ordered[cuts[i] : cuts[i + 1]] - edges[i], self.block_rows()) for i in numbers]
        out = np.empty((len(ordered), self.n_features), dtype=self.dtype)
        for i, found in zip(numbers, self._run(take_from_part, tasks, n_threads()), strict=True):
            out[cuts[i] : cuts[i + 1]] = found
            self._report(int(edges[i + 1]))
        return out if back is None else out[back]

    def _refuse_values(self) -> None:
        """Refuse what cannot be used, where some value is such: reading says in which bag it is."""
        for _ in self.blocks():
            pass

    def _run(self, function: Any, tasks: list[tuple[Any, ...]], threads: int) -> Iterator[Any]:
        return in_threads(function, tasks, threads) if self.runner is None else self.runner(function, tasks)

    def _report(self, done: int) -> None:
        if self.watcher is not None:
            self.watcher(done, int(self.source.edges[-1]))
