"""`Bags`: the one data type. A bag is a set of instances; labels belong to bags and live apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
import scipy.sparse as sp

from gmil.bags import bag_files, parquet_files, tables
from gmil.bags import display as bag_display
from gmil.bags import parts as bag_parts
from gmil.bags.roles import Named, roles_of, rows_of
from gmil.errors import BagValidationError, count_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from gmil.engine.arrays import Instances, Integers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bags:
    """A sequence of bags of instances.

    All instances lie in one matrix, the instances of a bag next to each other; ``offsets`` tells where each
    bag begins. Most people build bags with one of the ``from_*`` constructors.

    Parameters
    ----------
    instances : array or sparse array of shape (n_instances, n_features)
        Kept as C-contiguous float32 or float64, or as a CSR array. float16 becomes float32, other numbers float64.
    offsets : array of shape (n_bags + 1,)
        Bag ``i`` is ``instances[offsets[i]:offsets[i + 1]]``; no bag may be empty.
    bag_ids : array of shape (n_bags,), optional
        A name or number for every bag, no two the same.
    feature_names : sequence of str, optional
        A name for every feature.
    instance_info : table, optional
        One row per instance (time, coordinates, conformer ...) in pandas, polars, pyarrow or a dict of
        columns. It is kept as an Arrow table and follows every indexing.

    Examples
    --------
    >>> from gmil import Bags
    >>> bags = Bags.from_list([[[0.0, 1.0]], [[2.0, 3.0], [4.0, 5.0]]])
    >>> bags
    Bags(n_bags=2, n_instances=3, n_features=2, float64)
    >>> bags.sizes
    array([1, 2])
    >>> bags[1]
    array([[2., 3.],
           [4., 5.]])
    >>> bags[[1]]
    Bags(n_bags=1, n_instances=2, n_features=2, float64)
    """

    instances: Instances
    offsets: Integers
    bag_ids: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    instance_info: pa.Table | None = None

    def __post_init__(self) -> None:
        instances = bag_parts.instance_matrix(self.instances, "instances")
        offsets = bag_parts.checked_offsets(self.offsets, instances.shape[0])
        self._set("instances", bag_parts.read_only(instances))
        self._set("offsets", bag_parts.read_only(offsets))
        if self.bag_ids is not None:
            self._set(
                "bag_ids",
                bag_parts.read_only(bag_parts.checked_ids(self.bag_ids, len(offsets) - 1)),
            )
        if self.feature_names is not None:
            self._set("feature_names", bag_parts.checked_names(self.feature_names, instances.shape[1]))
        if self.instance_info is not None:
            self._set("instance_info", bag_parts.checked_info(self.instance_info, instances.shape[0]))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    # ---------------------------------------------------------------- constructors

    @classmethod
    def from_list(cls, bags: Iterable[ArrayLike], **optional: Any) -> Bags:
        """Build from one 2-D array (or sparse array) a bag.

        Parameters
        ----------
        bags : iterable of array-like of shape (n_instances_of_the_bag, n_features)
        **optional
            ``bag_ids``, ``feature_names``, ``instance_info``.
        """
        matrices = [bag_parts.bag_matrix(bag, i) for i, bag in enumerate(bags)]
        if not matrices:
            msg = "X holds no bags; at least one bag is needed."
            raise BagValidationError(msg)
        bag_parts.refuse_other_widths(matrices)
        offsets = np.concatenate([[0], np.cumsum([matrix.shape[0] for matrix in matrices])])
        return cls(bag_parts.stacked(matrices), offsets, **optional)

    @classmethod
    def from_ids(
        cls,
        X: Any,
        ids: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        instance_info: Any = None,
    ) -> Bags:
        """Build from a matrix of instances and the bag id of every row.

        Bags come in the order of their first appearance, the rows of a bag in their order; the ids are kept
        in ``bag_ids``.

        Parameters
        ----------
        X : array or sparse array of shape (n_instances, n_features)
        ids : array of shape (n_instances,)
            The bag of every row: numbers or strings, none of them missing.
        feature_names : sequence of str, optional
        instance_info : table, optional
            One row per row of ``X``.
        """
        instances = bag_parts.instance_matrix(X, "X")
        ids = np.asarray(tables.unmasked(ids))
        if ids.ndim == 1 and len(ids) != instances.shape[0]:
            given, there = count_of(len(ids), "entry", "entries"), count_of(instances.shape[0], "row")
            msg = f"ids has {given}, but X has {there}. Give one bag id per instance."
            raise BagValidationError(msg)
        order, offsets, bag_ids = bag_parts.group_rows(ids)
        info = None if instance_info is None else bag_parts.checked_info(instance_info, instances.shape[0])
        if order is not None:
            instances = instances[order]
            info = None if info is None else info.take(order)
        names = None if feature_names is None else tuple(feature_names)
        return cls(instances, offsets, bag_ids, names, info)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        bag: str | None = None,
        label: str | None = None,
        features: str | Sequence[str] | None = None,
        info: str | Sequence[str] = (),
        drop: str | Sequence[str] = (),
    ) -> Bags:
        """Build from a pandas, polars or pyarrow table with one instance a row.

        `gmil.read` does the same and returns the labels too.

        Parameters
        ----------
        frame : table, or dict of columns
        bag : str, optional
            The column with the bag of every instance. By default ``bag``, or the only one called ``bag_id`` or alike.
        label : str, optional
            The column with the label, which is left out. By default ``label``, or the only one called ``y``, ``class``
            or ``target``; a ``y`` beside an ``x`` is a coordinate. A column of numbers that is left out for its name is
            a warning.
        features : str or sequence of str, optional
            The feature columns, or one list column. By default the list column ``features``, else every column of
            numbers (or of false and true, which are 0 and 1) that plays no other role.
        info : str or sequence of str
            Columns of numbers to carry along in ``instance_info``; columns that cannot be features (texts, dates) are
            carried along anyway.
        drop : str or sequence of str
            Columns that are none of these.
        """
        table = tables.to_arrow(frame)
        named = Named(bag, label, features, info, drop)
        rows = rows_of(table, roles_of(table.schema, named, keeps_labels=False))
        return cls.from_ids(rows.matrix, rows.ids, feature_names=rows.feature_names, instance_info=rows.info)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str], **columns: Any) -> Bags:
        """Build from a Parquet file.

        Parameters
        ----------
        path : path
            A file or a folder of files.
        **columns
            ``bag``, ``label``, ``features``, ``info`` and ``drop``, as in `from_frame`.
        """
        return cls.from_frame(parquet_files.read_parquet(path), **columns)

    @classmethod
    def from_folder(cls, path: str | os.PathLike[str], *, features: str | Sequence[str] | None = None) -> Bags:
        """Build from a folder with one file a bag: ``.npy``, ``.npz`` or Parquet.

        Bags come in the order of their names; the name of a file without its suffix is kept in ``bag_ids``. For
        folders larger than memory see `gmil.scan`.

        Parameters
        ----------
        path : path
            The folder; files of other kinds in it are left alone.
        features : str or sequence of str, optional
            The array of an NPZ file, or the columns of a Parquet file. By default its only matrix, and all numbers.
        """
        files = bag_files.list_bag_files(path)
        wanted = bag_files.Wanted.of(files, Named(features=features))
        matrices = (bag_files.read_bag_file(file, wanted) for file in files)
        return cls.from_list(matrices, bag_ids=[file.stem for file in files], feature_names=wanted.feature_names)

    @classmethod
    def concat(cls, parts: Iterable[Bags]) -> Bags:
        """Join bags of the same features, one after the other.

        Ids, feature names and ``instance_info`` are kept where every part has them.

        Parameters
        ----------
        parts : iterable of Bags

        Examples
        --------
        >>> one, two = Bags.from_list([[[0.0]]]), Bags.from_list([[[1.0], [2.0]]])
        >>> Bags.concat([one, two])
        Bags(n_bags=2, n_instances=3, n_features=1, float64)
        """
        return cls(**bag_parts.joined_parts(list(parts)))

    # ---------------------------------------------------------------- out again

    def split(self, values: ArrayLike) -> list[NDArray[Any]]:
        """Cut an array with one entry (or row) per instance into one array per bag (views).

        Parameters
        ----------
        values : array of shape (n_instances, ...)
            For example, scores of instances.

        Examples
        --------
        >>> Bags.from_list([[[0.0]], [[1.0], [2.0]]]).split([0.1, 0.2, 0.3])
        [array([0.1]), array([0.2, 0.3])]
        """
        return bag_parts.split_by_bag(np.asarray(values), self.offsets)

    def to_list(self) -> list[Instances]:
        """Return one matrix a bag (views)."""
        return list(self)

    def to_frame(self, *, bag: str = "bag", library: str = "pandas") -> Any:
        """Return one table with a row per instance: the bag, the info columns, a column per feature.

        Parameters
        ----------
        bag : str
            The name of the bag column.
        library : {"pandas", "polars", "pyarrow"}
            What kind of table.
        """
        ids = self.bag_ids if self.bag_ids is not None else np.arange(len(self))
        dense = self.instances.toarray() if sp.issparse(self.instances) else self.instances
        table = tables.to_table({bag: np.repeat(ids, self.sizes)}, dense, self.feature_names, self.instance_info)
        return tables.native(table, library)

    # ---------------------------------------------------------------- shape

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """(n_bags, n_features), so that scikit-learn counts bags as samples."""
        return len(self), int(self.instances.shape[1])

    @property
    def n_instances(self) -> int:
        """The number of instances in all bags."""
        return int(self.instances.shape[0])

    @property
    def n_features(self) -> int:
        """The number of features of an instance."""
        return int(self.instances.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the features."""
        return np.dtype(self.instances.dtype)

    @property
    def sizes(self) -> Integers:
        """The number of instances of every bag, (n_bags,)."""
        return np.diff(self.offsets)

    @property
    def segment_ids(self) -> Integers:
        """The position of the bag of every instance, (n_instances,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    # ---------------------------------------------------------------- indexing

    @overload
    def __getitem__(self, key: int) -> Instances: ...
    @overload
    def __getitem__(self, key: slice | ArrayLike | tuple[Any, Any]) -> Bags: ...
    def __getitem__(self, key: Any) -> Instances | Bags:
        """Return one bag as a matrix for an integer, else the chosen bags as `Bags`."""
        chosen = bag_parts.chosen_bag(key, len(self))
        if isinstance(chosen, slice):
            return self._take_slice(chosen)
        if isinstance(chosen, int):
            return self.instances[self.offsets[chosen] : self.offsets[chosen + 1]]
        return self._take(chosen)

    def __iter__(self) -> Iterator[Instances]:
        return (self[i] for i in range(len(self)))

    def _take_slice(self, key: slice) -> Bags:
        start, stop, step = key.indices(len(self))
        if step != 1:
            return self._take(np.arange(len(self))[key])
        stop = max(start, stop)
        rows = slice(int(self.offsets[start]), int(self.offsets[stop]))
        info = self.instance_info
        return self._rebuilt(
            self.instances[rows],
            self.offsets[start : stop + 1] - self.offsets[start],
            slice(start, stop),
            None if info is None else info.slice(rows.start, rows.stop - rows.start),
        )

    def _take(self, positions: Integers) -> Bags:
        rows, offsets = bag_parts.rows_of_bags(self.offsets, positions)
        info = self.instance_info
        return self._rebuilt(self.instances[rows], offsets, positions, None if info is None else info.take(rows))

    def _rebuilt(self, instances: Any, offsets: Integers, key: Any, info: pa.Table | None) -> Bags:
        bag_ids = None if self.bag_ids is None else self.bag_ids[key]
        return bags_drawn(instances, offsets, bag_ids, self.feature_names, info)

    def with_instances(self, instances: Any, feature_names: Sequence[str] | None = None) -> Bags:
        """Return the same bags with other features.

        Parameters
        ----------
        instances : array or sparse array of shape (n_instances, any number of features)
            One row per instance, in the same order.
        feature_names : sequence of str, optional
            The names of the new features.
        """
        names = None if feature_names is None else tuple(feature_names)
        return bags_drawn(instances, self.offsets, self.bag_ids, names, self.instance_info)

    # ---------------------------------------------------------------- manners

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilt by the constructor, copies and pickles are read-only too.
        return bags_drawn, (self.instances, self.offsets, self.bag_ids, self.feature_names, self.instance_info)

    def __repr__(self) -> str:
        kind = f"sparse {self.dtype}" if sp.issparse(self.instances) else str(self.dtype)
        return f"Bags(n_bags={len(self)}, n_instances={self.n_instances}, n_features={self.n_features}, {kind})"

    def _repr_html_(self) -> str:
        return bag_display.to_html(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        msg = (
            "Bags have no single array: bags differ in size. Use bags.instances for the instances, "
            "bags.to_list() for one array a bag, or gmil.PerInstance(transformer) to apply a "
            "scikit-learn transformer to the instances."
        )
        raise TypeError(msg)


def bags_drawn(
    instances: Any,
    offsets: Integers,
    bag_ids: NDArray[Any] | None,
    feature_names: tuple[str, ...] | None = None,
    instance_info: Any = None,
) -> Bags:
    """Build bags that were taken from others, with arguments as in `Bags`: a bag drawn twice has its id twice."""
    bags = Bags(instances, offsets, None, feature_names, instance_info)
    if bag_ids is not None:
        bags._set("bag_ids", bag_parts.read_only(bag_ids))
    return bags
