"""Blocks most of whose numbers are zero, such as histograms of words: only the others are multiplied.

A scaling by columns moves zeros away from zero, but distances do not see a shift, ``|(x - s) / d - c|`` is
``|x / d - (c + s / d)|``, and sums over a bag follow from those of the features. So one block of sparse rows serves the
scalings of all fits, and is never scaled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.engine.resident import is_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.transform.space import Space

_MOST = 0.1
"""The share of numbers that may differ from zero: with more, products of dense rows are faster."""
_LARGEST = 1e30
"""Squares above this are left to dense rows, which are limited before they are squared."""
_FINEST = 1e-12
"""Units below this, too; and so are instances of which no more than the next is left where they are moved."""
_SHORTEST = 1e-6
_ROUNDING = 1e-13
_ENTRIES_AT_ONCE = 1_000_000
"""Of tables with a row a bag that are made in one reading of a block."""


class SparseRows(NamedTuple):
    """A block by the numbers in it that are not zero."""

    rows: Any  # csr_array of shape (n_instances, n_features), in single precision
    values: Any  # the same in double precision
    squares: Any  # the same with the squares of all numbers
    offsets: Integers  # (n_bags + 1,)
    cell_of: Integers  # (n_values,): bag and column of every number, as one number

    @classmethod
    def of(cls, X: Any, offsets: Integers) -> SparseRows | None:
        """Return the rows of a block, or None where too many numbers differ from zero."""
        if is_tensor(X) or sp.issparse(X):
            return None
        differs = X != 0
        counts = np.count_nonzero(differs, axis=1)
        if counts.sum() > _MOST * X.size:
            return None
        row_of, columns = np.divmod(np.flatnonzero(differs), X.shape[1])
        single = X[differs].astype(np.float32, copy=False)
        short, starts = columns.astype(np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        double = single.astype(np.float64)
        rows, values, squares = (
            sp.csr_array((own, short, starts), shape=X.shape) for own in (single, double, double**2)
        )
        bag_of_row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(rows, values, squares, offsets, bag_of_row[row_of] * X.shape[1] + columns)

    def bag_sums(self, table: Any, weights: Floats) -> Floats:
        """Return sums over bags of the rows of a table of this block, with weights, (n_weights, n_bags, n_features).

        ``weights`` are (n_instances, n_weights); one reading of the numbers serves several.
        """
        n_bags, n_features = len(self.offsets) - 1, table.shape[1]
        shape = n_bags * n_features, len(weights)
        in_cells = sp.csc_array((table.data, self.cell_of, table.indptr), shape=shape)
        at_once = max(1, _ENTRIES_AT_ONCE // shape[0])
        runs = range(0, weights.shape[1], at_once)
        sums = [in_cells @ np.ascontiguousarray(weights[:, start : start + at_once]) for start in runs]
        return np.concatenate([found.T for found in sums]).reshape(-1, n_bags, n_features)


class Factors(NamedTuple):
    """What rows are multiplied with to be compared with centres: these times -2. All in single precision."""

    matrix: Floats  # (n_features, n_centers)
    terms: Floats  # (2, n_centers): what is added to the product, and squared lengths of the centres


class InColumns(NamedTuple):
    """A scaling by columns, with or without unit length after it, for sparse rows."""

    shift: Floats  # (n_features,), in double precision
    divisor: Floats  # (n_features,)
    unit_length: bool

    @classmethod
    def of(cls, space: Space, n_features: int) -> InColumns | None:
        """Return the scaling of a space; None where it is something else, or too fine for single precision."""
        if not space.is_a_scaling():
            return None
        shift = np.zeros(n_features) if space.shift is None else np.asarray(space.shift, dtype=np.float64)
        divisor = np.ones(n_features) if space.divisor is None else np.asarray(space.divisor, dtype=np.float64)
        is_plain = divisor.min(initial=1) > _FINEST and np.abs(shift / divisor).max(initial=0) * _FINEST < 1
        return cls(shift, divisor, space.unit_length) if is_plain else None

    def factors(self, centers: Floats) -> Factors:
        """Prepare centres, (n_centers, n_features), for `sq_distances`."""
        origin = self.shift / self.divisor
        if self.unit_length:
            own, added = np.asarray(centers, dtype=np.float64), -(centers @ origin)
        else:  # distances do not see a shift
            own, added = centers + origin, np.zeros(len(centers))
        parts = (-2 * own / self.divisor).T, np.stack([-2 * added, np.square(own).sum(axis=1)])
        return Factors(*(np.ascontiguousarray(part, dtype=np.float32) for part in parts))

    def sq_distances(self, block: SparseRows, factors: Factors, lengths: Floats, backend: Backend) -> Floats:
        """Return squared distances to centres, (n_instances, n_centers); ``lengths`` are those of `SideBySide`."""
        scales = np.ones_like(lengths)
        if self.unit_length:
            scales, lengths = np.sqrt(_inverse(lengths)), (lengths > 0).astype(np.float64)
        per_row = np.column_stack([scales, lengths]).astype(np.float32)
        return backend.sparse_sq_distances(block.rows, *factors, per_row)

    def scorer(self, scorer: Any) -> Any:
        """Return a scorer by scaled features as one by the features themselves; not with unit length."""
        own = scorer.coefficients / self.divisor.reshape(-1, *[1] * (scorer.coefficients.ndim - 1))
        return scorer._replace(coefficients=own, intercepts=scorer.intercepts - np.tensordot(self.shift, own, axes=1))


class Measured(NamedTuple):
    """What a scaling finds of a block."""

    lengths: Floats  # (n_instances,): squared
    moments: Floats | None  # (n_bags, 3, n_features), of instances at length one


class SideBySide:
    """Scalings of all fits of a pass: one reading of a block measures it in all of them."""

    def __init__(self, scalings: Sequence[InColumns | None], moments: Sequence[int] = ()) -> None:
        """Take scalings, and the numbers of those whose moments are wanted; None stands for one that is no scaling."""
        known = [(number, own) for number, own in enumerate(scalings) if own is not None]
        self._n_scalings, self._numbers = len(scalings), [number for number, _ in known]
        self._with_moments = np.array([number in moments for number in self._numbers], dtype=bool)
        self._is_unit = np.array([own.unit_length for _, own in known], dtype=bool)
        self._shift = np.array([own.shift for _, own in known])
        self._own = np.array([own.divisor**-2 for _, own in known])  # (n_scalings, n_features)
        parts = self._own, (self._shift * self._own)[self._is_unit] if known else self._own
        self._factors = [np.ascontiguousarray(part.T) for part in parts]

    def measure(self, block: SparseRows) -> list[Measured | None]:
        """Return what every scaling finds; None where rounding would be too coarse."""
        found: list[Measured | None] = [None] * self._n_scalings
        if not self._numbers:
            return found
        lengths, is_exact = self._sq_lengths(block)
        for i in np.flatnonzero(is_exact):
            found[self._numbers[i]] = Measured(lengths[:, i], None)
        wanted = np.flatnonzero(is_exact & self._with_moments)
        if len(wanted):
            for i, own in zip(wanted, self._moments(block, wanted, lengths[:, wanted]), strict=True):
                found[self._numbers[i]] = Measured(lengths[:, i], own)
        return found

    def _sq_lengths(self, block: SparseRows) -> tuple[Floats, Booleans]:
        """Return squared lengths, (n_instances, n_scalings), and for which scalings they are exact enough.

        They are of what is brought to length one, or of rows that are divided and not moved.
        """
        units, is_exact = self._is_unit, np.ones(len(self._numbers), dtype=bool)
        lengths = block.squares @ self._factors[0]
        if units.any():
            largest = lengths[:, units] + (self._shift**2 * self._own)[units].sum(axis=1)
            lengths[:, units] = largest - 2 * (block.values @ self._factors[1])
            is_exact[units] = (lengths[:, units] >= _SHORTEST * largest).all(axis=0)
        return lengths, is_exact & (lengths.max(axis=0, initial=0) < _LARGEST)

    def _moments(self, block: SparseRows, wanted: Integers, lengths: Floats) -> Floats:
        """Return what `gmil.engine.reference.bag_moments` does, (n_wanted, n_bags, 3, n_features)."""
        shift, own = (part[wanted, None, :] for part in (self._shift, self._own))
        weights, sizes = _inverse(lengths), np.diff(block.offsets)[:, None]
        both = np.hstack([np.sqrt(weights), weights])
        totals, whole = np.split(np.add.reduceat(both, block.offsets[:-1], axis=0).T[:, :, None], 2)
        sums, crossed = np.split(block.bag_sums(block.values, both), 2)
        size = block.bag_sums(block.squares, weights) + whole * shift**2
        means = (sums - totals * shift) * np.sqrt(own) / sizes
        deviations = (size - 2 * shift * crossed) * own - means**2 * sizes
        deviations[deviations < _ROUNDING * size * own] = 0  # instances that are equal do not deviate
        return np.stack([np.broadcast_to(sizes, means.shape), means, deviations], axis=2)


def _inverse(lengths: Floats) -> Floats:
    """Return one over lengths; an instance of zeros stays as it is."""
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
