"""The rows of an ARFF file, collected as numbers and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.bags.roles import choose, is_called_label, is_carried, may_teach, warn_of_labels
from gmil.errors import FormatError, count_of, listed
from gmil.io.formats.arff_syntax import Attribute, split, split_sparse
from gmil.io.formats.contents import MOST_CELLS
from gmil.safety.guard import expect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags.roles import Named
    from gmil.engine.arrays import Instances


def row_cells(line: str, attributes: Sequence[Attribute], where: str) -> list[str | None]:
    """Split a row, dense or sparse, into one cell per attribute."""
    try:
        if line.startswith("{"):
            return _filled(_sparse_cells(line, len(attributes)), attributes)
        cells = split(line)
    except FormatError as error:
        msg = f"{where}: {error}"
        raise FormatError(msg) from None
    n = len(attributes)
    expect(len(cells) == n, f"{where} has {count_of(len(cells), 'value')}, but there are {n} attributes")
    return cells


def _sparse_cells(line: str, n_attributes: int) -> dict[int, str | None]:
    expect(line.endswith("}"), f"a sparse row does not end with a brace: {line[-40:]!r}")
    cells = split_sparse(line[1:-1])
    last = max(cells, default=-1)
    expect(last < n_attributes, f"a sparse row names position {last}, but there are {n_attributes} attributes")
    return cells


def _filled(cells: dict[int, str | None], attributes: Sequence[Attribute]) -> list[str | None]:
    return [cells.get(i, attribute.default) for i, attribute in enumerate(attributes)]


class ArffRows:
    """Collects instances row by row: numbers apart from texts, and sparse where a row is sparse."""

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        self.attributes = attributes
        self.numbers = [i for i, a in enumerate(attributes) if _is_number(a)]
        self.texts = [i for i, a in enumerate(attributes) if not _is_number(a)]
        self._place = {i: place for place, i in enumerate(self.numbers)}
        self._dense: list[Any] = []  # one array of numbers, or (places, values), a row
        self._sparse = False
        self._info: list[list[str | None]] = []

    def __len__(self) -> int:
        return len(self._dense)

    def add(self, line: str, where: str) -> None:
        """Add one row; ``where`` tells errors where it stands."""
        if line.startswith("{"):
            self._sparse = True
            self._add_sparse(line, where)
            return
        cells = row_cells(line, self.attributes, where)
        values = [self._float(cells[i], i, where) for i in self.numbers]
        self._dense.append(np.array(values, dtype=np.float64))
        if self.texts:
            self._info.append([self._text(cells[i], i, where) for i in self.texts])

    def _add_sparse(self, line: str, where: str) -> None:
        try:
            cells = _sparse_cells(line, len(self.attributes))
        except FormatError as error:
            msg = f"{where}: {error}"
            raise FormatError(msg) from None
        stored = sorted(i for i in cells if i in self._place)
        places = np.array([self._place[i] for i in stored], dtype=np.int64)
        values = np.array([self._float(cells[i], i, where) for i in stored], dtype=np.float64)
        self._dense.append((places, values))
        if self.texts:
            defaults = {i: self.attributes[i].default for i in self.texts}
            self._info.append([cells.get(i, defaults[i]) for i in self.texts])

    def _float(self, cell: str | None, i: int, where: str) -> float:
        if cell is None:
            return np.nan
        try:
            return float(cell)
        except ValueError:
            name = self.attributes[i].name
            msg = f"{where}: the attribute {name!r} must be a number, got {cell[:40]!r}"
            raise FormatError(msg) from None

    def _text(self, cell: str | None, i: int, where: str) -> str | None:
        attribute = self.attributes[i]
        if cell is not None and attribute.values and cell not in attribute.values:
            known = listed(list(attribute.values))
            msg = f"{where}: {cell[:40]!r} is none of the values of {attribute.name!r}, {known}"
            raise FormatError(msg)
        return cell

    def _matrix(self) -> Instances:
        n_features = len(self.numbers)
        if not self._sparse:
            return np.array(self._dense, dtype=np.float64).reshape(len(self), n_features)
        rows = [row if isinstance(row, tuple) else _stored(row) for row in self._dense]
        indptr = np.concatenate([[0], np.cumsum([len(places) for places, _ in rows])])
        places = np.concatenate([places for places, _ in rows])
        values = np.concatenate([values for _, values in rows])
        return sp.csr_array((values, places, indptr), shape=(len(rows), n_features))

    def _columns(self) -> dict[str, list[str | None]]:
        """Return the attributes that are no numbers."""
        return {self.attributes[i].name: [row[place] for row in self._info] for place, i in enumerate(self.texts)}

    def parts(self, named: Named) -> tuple[Instances, list[str], Any]:
        """Return the features, their names, and a table of everything else, None where there is none."""
        numbers = [self.attributes[i].name for i in self.numbers]
        texts = self._columns()
        info = named.all_of("info")
        for role, known in (("features", numbers), ("info", [*numbers, *texts])):
            for name in named.all_of(role):
                choose(known, name, (), role, noun="attribute")
        dropped = named.dropped([*numbers, *texts])
        chosen = named.all_of("features")
        if named.features is None:
            free = [n for n in numbers if n not in {*info, *dropped}]
            chosen = [n for n in free if may_teach(n, numbers)]
            warn_of_labels([n for n in free if is_called_label(n, numbers)])
        info += [n for n in numbers if is_carried(n) and n not in {*info, *dropped, *chosen}]
        expect(chosen, "no attribute of the instances is left that is a number")
        matrix = self._matrix()
        columns: dict[str, Any] = {name: _column(matrix, numbers.index(name)) for name in info if name in numbers}
        columns |= texts
        if chosen != numbers:
            matrix = matrix[:, [numbers.index(name) for name in chosen]]
        return matrix, chosen, _table(columns) if columns else None

    def table(self) -> Any:
        """Return all attributes as an Arrow table, a row an instance."""
        expect(len(self), "it has no instances below @data")
        matrix = self._matrix()
        if sp.issparse(matrix) and matrix.shape[0] * matrix.shape[1] > MOST_CELLS:
            msg = (
                f"its sparse rows are too many for a table, {matrix.shape[0]} of {matrix.shape[1]} numbers; put the "
                "rows of a bag into a relational attribute, which stays sparse"
            )
            raise FormatError(msg)
        matrix = matrix.tocsc() if sp.issparse(matrix) else matrix
        columns: dict[str, Any] = {
            self.attributes[i].name: _column(matrix, place) for place, i in enumerate(self.numbers)
        } | self._columns()
        return _table({attribute.name: columns[attribute.name] for attribute in self.attributes})


def _is_number(attribute: Attribute) -> bool:
    return attribute.kind == "number"


def _stored(row: Any) -> tuple[Any, Any]:
    places = np.flatnonzero(row)
    return places, row[places]


def _column(matrix: Any, place: int) -> Any:
    column = matrix[:, [place]]
    return column.toarray().ravel() if sp.issparse(matrix) else column.ravel()


def _table(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(column) for name, column in columns.items()})
