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
    from gmil.engine.arrays import Floats, Integers
    from gmil.transform.space import Space

_MOST = 0.1
"""The share of numbers that may differ from zero: with more, products of dense rows are faster."""
_LARGEST = 1e30
"""Squares above this are left to dense rows, which are limited before they are squared."""
_FINEST = 1e-12
"""Units below this, too; and so are instances of which no more than the next is left where they are moved."""
_SHORTEST = 1e-6
_ROUNDING = 1e-13


class SparseRows(NamedTuple):
    """A block by the numbers in it that are not zero."""

    rows: Any  # csr_array of shape (n_instances, n_features), in single precision
    squares: Any  # the same with the squares of all numbers, in double precision
    bag_of_row: Integers  # (n_instances,)
    cell_of: Integers  # (n_values,): bag and column of every number, as one number
    row_of: Integers  # (n_values,)

    @classmethod
    def of(cls, X: Any, offsets: Integers) -> SparseRows | None:
        """Return the rows of a block, or None where too many numbers differ from zero."""
        if is_tensor(X) or sp.issparse(X):
            return None
        differs = X != 0
        counts = np.count_nonzero(differs, axis=1)
        if counts.sum() > _MOST * X.size:
            return None
        places = np.flatnonzero(differs)
        row_of, columns = np.divmod(places, X.shape[1])
        values = X.ravel()[places].astype(np.float32, copy=False)
        short, starts = columns.astype(np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        rows = sp.csr_array((values, short, starts), shape=X.shape)
        squares = sp.csr_array((np.square(values, dtype=np.float64), short, starts), shape=X.shape)
        bag_of_row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(rows, squares, bag_of_row, bag_of_row[row_of] * X.shape[1] + columns, row_of)

    def bag_sums(self, values: Floats, n_bags: int) -> Floats:
        """Return sums over bags of numbers that stand in the place of those that are not zero, (n_bags, n_features)."""
        n_features = self.rows.shape[1]
        found: Any = np.bincount(self.cell_of, values, minlength=n_bags * n_features)
        return np.asarray(found.reshape(n_bags, n_features))


class Factors(NamedTuple):
    """What rows are multiplied with to be compared with centres: these times -2."""

    matrix: Floats  # (n_features, n_centers), all in single precision
    added: Floats  # (n_centers,): to the product
    lengths: Floats  # (n_centers,): squared, of the centres


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
        parts = (-2 * own / self.divisor).T, -2 * added, np.square(own).sum(axis=1)
        return Factors(*(np.ascontiguousarray(part, dtype=np.float32) for part in parts))

    def sq_distances(self, block: SparseRows, factors: Factors) -> Floats | None:
        """Return squared distances to centres, (n_instances, n_centers); None where rounding would be too coarse."""
        lengths = self._sq_lengths(block)
        if lengths is None:
            return None
        found: Floats = block.rows @ factors.matrix
        if self.unit_length:
            found += factors.added
            found *= np.sqrt(_inverse(lengths)).astype(np.float32)[:, None]
            lengths = (lengths > 0).astype(np.float64)
        found += lengths.astype(np.float32)[:, None]
        found += factors.lengths
        return np.maximum(found, 0, out=found)

    def scorer(self, scorer: Any) -> Any:
        """Return a scorer by scaled features as one by the features themselves; not with unit length."""
        own = scorer.coefficients / self.divisor.reshape(-1, *[1] * (scorer.coefficients.ndim - 1))
        return scorer._replace(coefficients=own, intercepts=scorer.intercepts - np.tensordot(self.shift, own, axes=1))

    def moments(self, block: SparseRows, sizes: Integers) -> Floats | None:
        """Return what `gmil.engine.reference.bag_moments` does of instances at length one; None as above."""
        lengths = self._sq_lengths(block)
        if lengths is None:
            return None
        n_bags, weights = len(sizes), _inverse(lengths)
        roots = np.sqrt(weights)
        totals, whole = (np.bincount(block.bag_of_row, part, n_bags)[:, None] for part in (roots, weights))
        by_root, by_weight = roots[block.row_of], weights[block.row_of]
        sums = block.bag_sums(by_root * block.rows.data, n_bags) - totals * self.shift
        size = block.bag_sums(by_weight * block.squares.data, n_bags) + whole * self.shift**2
        squares = size - 2 * self.shift * block.bag_sums(by_weight * block.rows.data, n_bags)
        means, own = sums / self.divisor / sizes[:, None], self.divisor**-2
        deviations = squares * own - means**2 * sizes[:, None]
        deviations[deviations < _ROUNDING * size * own] = 0  # instances that are equal do not deviate
        return np.stack([np.broadcast_to(sizes[:, None], means.shape), means, deviations], axis=1)

    def _sq_lengths(self, block: SparseRows) -> Floats | None:
        """Return squared lengths: of what is brought to length one, or of rows that are divided and not moved."""
        own = self.divisor**-2
        lengths = block.squares @ own
        if self.unit_length:
            largest = lengths + self.shift**2 @ own
            lengths = largest - 2 * (block.rows @ (self.shift * own))
            if (lengths < _SHORTEST * largest).any():
                return None
        return lengths if lengths.max(initial=0) < _LARGEST else None


def _inverse(lengths: Floats) -> Floats:
    """Return one over lengths; an instance of zeros stays as it is."""
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
