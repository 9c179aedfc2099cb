"""What is to be written, in the shapes that file formats need."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.bags.parts import refuse_equal_ids
from gmil.bags.roles import BAG_NAMES, INSTANCE_LABEL_NAMES, is_called_label
from gmil.bags.tables import is_number, is_row_number, unmasked
from gmil.errors import BagValidationError, ColumnWarning, listed
from gmil.io.formats.rows import is_missing, tidy_labels
from gmil.validation import check_bags, check_label_count

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats

_WHOLE_IN_SINGLE, _WHOLE_IN_DOUBLE = 2.0**24, 2.0**53
"""Up to this single and double precision have all whole numbers."""
MOST_CELLS = 1 << 27  # 1 GiB of float64: beyond that, a sparse matrix is not to be made dense in passing


@dataclass(frozen=True)
class Contents:
    """Bags and labels that were checked, on their way into a file."""

    bags: Bags
    y: NDArray[Any] | None
    dtype: np.dtype[Any] | None

    @classmethod
    def checked(cls, bags: Any, y: Any, dtype: DTypeLike | None) -> Contents:
        """Check what a user wants to write; missing features are fine, missing labels are not."""
        bags = check_bags(bags, allow_nan=True)
        if bags.n_features == 0:
            msg = "Bags without features cannot be written; at least one feature is needed."
            raise BagValidationError(msg)
        if bags.bag_ids is not None:
            refuse_equal_ids(bags.bag_ids)
        chosen = None if dtype is None else np.dtype(dtype)
        if chosen is not None and chosen not in (np.float32, np.float64):
            msg = f"dtype must be float32 or float64, got {chosen}."
            raise BagValidationError(msg)
        return cls(bags, None if y is None else _checked_labels(y, bags), chosen)

    @property
    def ids(self) -> NDArray[Any]:
        """A name or number for every bag."""
        ids = self.bags.bag_ids
        if ids is None:
            return np.arange(len(self.bags))
        return np.array(ids.tolist()) if ids.dtype.kind == "O" else ids

    @property
    def feature_names(self) -> list[str]:
        """A name for every feature: f0, f1, ... where there are none."""
        names = self.bags.feature_names
        return list(names) if names else [f"f{i}" for i in range(self.bags.n_features)]

    def dense(self, dtype: DTypeLike | None = None) -> Floats:
        """Return all instances as a dense matrix, for formats that know no other."""
        instances = self.bags.instances
        if sp.issparse(instances):
            if instances.shape[0] * instances.shape[1] > MOST_CELLS:
                msg = (
                    f"Sparse bags of {instances.shape[0]} instances and {instances.shape[1]} features do "
                    "not fit this format, which is dense. Write .npz, .mat or .arff."
                )
                raise BagValidationError(msg)
            instances = instances.toarray()
        return self.converted(instances, dtype or self.dtype)

    def converted(self, values: Any, dtype: DTypeLike | None) -> Any:
        """Return numbers in another type; one that does not hold them is refused."""
        if dtype is None or values.dtype == dtype:
            return values
        with np.errstate(over="ignore"):
            smaller = values.astype(dtype)
        lost = ~np.isfinite(smaller) & np.isfinite(values)
        if lost.any():
            msg = f"A feature of {values[lost].flat[0]!s} is too large for {np.dtype(dtype)}."
            raise BagValidationError(msg, parameter="dtype", fix="Write it with dtype='float64'.")
        return smaller

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns ``bag`` and ``label``, one entry per instance, for tabular formats."""
        columns = {"bag": np.repeat(self.ids, self.bags.sizes)}
        if self.y is not None:
            columns["label"] = np.repeat(self.y, self.bags.sizes)
        return columns

    def _info_names(self) -> list[str]:
        info = self.bags.instance_info
        return [] if info is None else info.column_names

    def _names(self) -> list[str]:
        return [*self.feature_names, *self._info_names()]

    def refuse_equal_names(self) -> None:
        """Refuse two columns of one name."""
        name, count = Counter(self._names()).most_common(1)[0]
        if count > 1:
            msg = f"The name {name!r} is there {count} times among features and info. Rename one."
            raise BagValidationError(msg)

    def refuse_confusing_names(self) -> None:
        """Refuse names of columns that would be read back as something else; labels of instances are known by name."""
        self.refuse_equal_names()
        names = self._names()
        of_instances = [name for name in self._info_names() if name.casefold() in INSTANCE_LABEL_NAMES]
        wrong = [name for name in names if name.casefold() in BAG_NAMES or is_called_label(name, names)]
        wrong = [name for name in wrong if name not in of_instances]
        if wrong:
            msg = f"The name {wrong[0]!r} would be read back as the bag or as a label. Rename the column."
            raise BagValidationError(msg)
        wrong = [name for name in self.feature_names if is_row_number(name)]
        if wrong:
            msg = f"The name {wrong[0]!r} would be read back as the row number of a data frame. Rename the feature."
            raise BagValidationError(msg)

    def warn_of_numbers(self, suffix: str) -> None:
        """Say which columns of info a format cannot tell from features: read back, they would teach."""
        table = self.bags.instance_info
        numbers = [] if table is None else [field.name for field in table.schema if is_number(field.type)]
        names = [repr(name) for name in numbers if name.casefold() not in INSTANCE_LABEL_NAMES]
        if names:
            are = "is a number, which" if len(names) == 1 else "are numbers, which"
            msg = f"{listed(names)} in instance_info {are} {suffix} cannot tell from a feature."
            fix = f"When you read the file, leave {'it' if len(names) == 1 else 'them'} out with {{drop}}"
            warnings.warn(ColumnWarning(msg, parameter="drop", fix=fix), stacklevel=3)

    def warn_of_rounding(self, dtype: DTypeLike) -> None:
        """Say that whole numbers change in a smaller type: they may be identifiers or times."""
        values = self.bags.instances.data if sp.issparse(self.bags.instances) else self.bags.instances
        sizes = np.abs(values)
        large = values[(sizes > _WHOLE_IN_SINGLE) & (sizes <= _WHOLE_IN_DOUBLE)]
        changed = large[(np.rint(large) == large) & (large.astype(dtype) != large)]
        if len(changed):
            msg = f"A feature of {changed[0]:.0f} becomes {float(changed.astype(dtype)[0]):.0f} in {np.dtype(dtype)}."
            fix = "Keep whole numbers with {dtype}"
            warnings.warn(ColumnWarning(msg, parameter="dtype", fix=fix), stacklevel=3)


def _checked_labels(y: Any, bags: Bags) -> NDArray[Any]:
    labels = np.asarray(unmasked(y))
    if labels.ndim != 1:
        msg = f"y must hold one label per bag in a 1-D array, got shape {labels.shape}."
        raise BagValidationError(msg)
    check_label_count(len(labels), bags)
    missing = is_missing(labels)
    if missing.any():
        msg = f"The label of bag {int(missing.argmax())} is missing. Fill it in, or leave y out."
        raise BagValidationError(msg)
    return tidy_labels(labels)


def info_columns(bags: Bags, kind: str) -> dict[str, NDArray[Any]]:
    """Return the info columns as arrays of numbers or texts, for formats that hold arrays."""
    if bags.instance_info is None:
        return {}
    columns = {}
    for name in bags.instance_info.column_names:
        column = bags.instance_info.column(name)
        values = column.to_numpy()
        if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
            values = np.array(values.tolist(), dtype=np.str_)
        if values.dtype.kind not in "biufU":
            msg = (
                f"The instance_info column {name!r} holds {column.type} (or gaps), which {kind} cannot "
                "hold. Write .parquet, or leave the column out."
            )
            raise BagValidationError(msg)
        columns[name] = values
    return columns
