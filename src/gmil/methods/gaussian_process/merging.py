"""Instances that are equal have one value: their covariances need to be kept but once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.methods.gaussian_process.likelihood import share_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.gaussian_process.likelihood import LocalLikelihood


class Merging(NamedTuple):
    """Which row every instance is, where instances that are equal share a row."""

    which: Integers | None  # (n_instances,); None where every instance has a row of its own, in their order
    n_rows: int

    def spread(self, values: Floats) -> Floats:
        """Return values of rows, one for every instance."""
        return values if self.which is None else values[self.which]

    def collect(self, values: Floats) -> Floats:
        """Return sums of values of the instances, (n_instances,), over the rows that they share."""
        return (
            values
            if self.which is None
            else np.bincount(self.which, values, self.n_rows).astype(np.float64, copy=False)
        )

    def take(self, rows: Floats, start: int, stop: int) -> Floats:
        """Return the rows of some instances in a run."""
        return rows[start:stop] if self.which is None else rows[self.which[start:stop]]

    def share_matrix(self, local: LocalLikelihood) -> Instances:
        """Return the sparse matrix (n_bags, n_rows) of the shares that rows have in bags."""
        plain = share_matrix(local.shares, local.bags.offsets)
        if self.which is None:
            return plain
        return sp.csr_array((plain.data, self.which, plain.indptr), shape=(plain.shape[0], self.n_rows))


class RowCurvature(NamedTuple):
    """Minus the exact Hessian of the likelihood by values of rows: S' outer S + diagonal, S being shares of rows."""

    shares: Instances  # (n_bags, n_rows)
    outer: Floats  # (n_bags,)
    diagonal: Floats  # (n_rows,)

    @classmethod
    def of(cls, local: LocalLikelihood, merging: Merging) -> RowCurvature:
        """Return the curvature of the likelihood where equal instances move together."""
        return cls(merging.share_matrix(local), local.outer_weights, merging.collect(local.diagonal_weights))

    def times(self, values: Floats) -> Floats:
        """Return the curvature times values of rows, (n_rows,)."""
        return self.shares.T @ (self.outer * (self.shares @ values)) + self.diagonal * values


def merge_equal(X: Instances) -> tuple[Integers, Merging]:
    """Return the first of all instances that are equal to each other, in their order, and who is one of them."""
    found: dict[bytes, int] = {}
    which = np.array([found.setdefault(row, len(found)) for row in _as_bytes(X)], dtype=np.int64)
    if len(found) == len(which):
        return np.arange(len(which)), Merging(None, len(which))
    return np.unique(which, return_index=True)[1], Merging(which, len(found))


def _as_bytes(X: Instances) -> Iterator[bytes]:
    if not sp.issparse(X):
        yield from (row.tobytes() for row in X)
        return
    rows = X.tocsr()
    rows.sort_indices()
    for start, stop in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
        yield rows.indices[start:stop].tobytes() + rows.data[start:stop].tobytes()
