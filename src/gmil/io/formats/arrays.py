"""Named arrays as bags: what NPZ and Matlab files share, each with usual names of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gmil.bags.roles import Rows, choose, require
from gmil.errors import BagValidationError
from gmil.io.formats.rows import one_per_row, refuse_other_length

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.bags.roles import Named

    Arrays = Mapping[str, Any]


class Layout(NamedTuple):
    """What the arrays of a kind of file are called, and how they are read."""

    noun: str
    matrix_names: tuple[str, ...]
    bag_names: tuple[str, ...]
    label_names: tuple[str, ...]
    reserved: frozenset[str]
    vector: Callable[[Any, str], NDArray[Any]]
    """Return an array, which has a name, as a vector."""
    is_column: Callable[[Any, int], bool]
    """Tell whether an array has one entry for each of so many instances."""
    labels_of_rows: bool
    """Whether labels of one-instance bags are those of instances."""

    def matrix(self, arrays: Arrays, named: Named) -> str:
        """Return the name of the array with the instances."""
        if named.features is not None and not isinstance(named.features, str):
            msg = f"must be the name of one {self.noun} in this format, got {list(named.features)!r}."
            raise BagValidationError(msg, parameter="features")
        names = list(arrays)
        chosen = choose(names, named.features, self.matrix_names, "features", noun=self.noun)
        return require(chosen, names, "features", self.noun)

    def rows(
        self,
        arrays: Arrays,
        named: Named,
        matrix: Any,
        used: Collection[str],
        ids: NDArray[Any] | None = None,
        labels: NDArray[Any] | None = None,
    ) -> Rows:
        """Return the rows of a matrix; ids and labels are those given, or arrays of their own."""
        names = list(arrays)
        for name in named.all_of("info"):
            choose(names, name, (), "info", noun=self.noun)
        label = choose(names, named.label, self.label_names, "label", taken={*used, named.bag or ""}, noun=self.noun)
        bag = None
        if ids is None:
            bag = choose(names, named.bag, self.bag_names, "bag", taken={*used, label or ""}, noun=self.noun)
            bag = require(bag, names, "bag", self.noun)
            ids = self.vector(arrays[bag], bag)
        refuse_other_length(len(ids), matrix.shape[0], "bag ids")  # before anything is made of what may be far too long
        if label is not None:
            labels = self.vector(arrays[label], label)
        if labels is not None:
            labels = one_per_row(labels, ids, label or "labels", rows_first=self.labels_of_rows)
        bag_names = self._named(arrays, "bag_names")
        return Rows(
            matrix,
            ids,
            labels,
            self._named(arrays, "feature_names"),
            self._info(arrays, {*self.reserved, *used, bag, label, *named.dropped(names)}, len(ids)),
            None if bag_names is None else one_per_row(bag_names, ids, "bag_names"),
        )

    def _named(self, arrays: Arrays, name: str) -> NDArray[Any] | None:
        return self.vector(arrays[name], name) if name in arrays else None

    def _info(self, arrays: Arrays, used: Collection[str | None], n_rows: int) -> pa.Table | None:
        import pyarrow as pa

        columns = {
            name: pa.array(self.vector(array, name).tolist())
            for name, array in arrays.items()
            if name not in used and self.is_column(array, n_rows)
        }
        return pa.table(columns) if columns else None
