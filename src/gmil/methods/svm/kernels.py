"""Kernels between instances, slacks, and rows in order; plain arrays in, plain arrays out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.engine.sparse_rows import row_products, rows_beside
from gmil.errors import BagValidationError
from gmil.methods.shared.columns import as_double

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.methods.kernels.bag_kernels import InstanceKernel

_BLOCK_ENTRIES = 1 << 22
"""How many kernel values, or features in double precision, are held at once where no Gram matrix is: 32 MiB."""

_BLOCK_ROWS = 2048
"""Sparse rows that meet others at once."""

_MOST_GRAM_BYTES = 8 << 30


class Machine(NamedTuple):
    """A function of training rows, f(x) = sum_i dual_i k(x_i, x) + intercept, and how it was found."""

    dual: Floats  # (n_rows,), zero where a row has no weight
    intercept: float
    objectives: Floats  # (n_iterations,)
    stop_reason: str


class Plane(NamedTuple):
    """A linear function of features, f(x) = x.weights + intercept, and how it was found."""

    weights: Floats  # (n_features,)
    intercept: float
    objectives: Floats  # (n_iterations,)
    stop_reason: str


def pair_values(X: Instances, kernel: str, backend: Backend) -> Floats:
    """Return what a kernel is a function of, squared distances ("rbf") or products, of all pairs of rows, (n, n)."""
    n_rows = X.shape[0]
    if 8 * n_rows**2 > _MOST_GRAM_BYTES:
        msg = (
            f"{n_rows} instances make a kernel matrix of {8 * n_rows**2 / 2**30:.0f} GiB, above the "
            f"{_MOST_GRAM_BYTES >> 30} GiB that are allowed. Use fewer instances, or "
            "WitnessSVM(kernel='linear', solver='liblinear'), which needs no such matrix."
        )
        raise BagValidationError(msg)
    if not sp.issparse(X):
        return _between(X, X, kernel, backend)
    values = np.empty((n_rows, n_rows))
    for block in column_blocks(X, X):
        values[:, block] = _between(X, X[block], kernel, backend)
    return values


def expansion(X: Instances, support: Instances, dual: Floats, kernel: InstanceKernel, backend: Backend) -> Floats:
    """Return sum_j dual_j k(x, support_j) of every row, (n_rows,); never all kernel values at once."""
    found = np.zeros(X.shape[0])
    for columns in column_blocks(X, support):
        block = rows_beside(X, support, columns)
        rows = rows_at_once(block)
        for start in range(0, X.shape[0], rows):
            base = _between(as_double(X[start : start + rows]), block, kernel.name, backend)
            found[start : start + rows] += kernel.of(base, base) @ dual[columns]
    return found


def kernel_columns(X: Instances, basis: Instances, kernel: InstanceKernel, backend: Backend) -> Floats:
    """Return the kernel between every row and a basis, (n_rows, n_basis)."""
    base = _between(X, basis, kernel.name, backend)
    return kernel.of(base, base)


def column_blocks(X: Instances, others: Instances) -> Iterator[slice]:
    """Yield the other rows in blocks that meet ``X`` as `rows_beside` has them: all at once where they are dense."""
    n_rows, n_features = others.shape
    size = n_rows
    if sp.issparse(others):
        size = _BLOCK_ROWS if sp.issparse(X) else _BLOCK_ENTRIES // n_features
    for start in range(0, n_rows, max(1, size)):
        yield slice(start, start + max(1, size))


def rows_at_once(block: Instances) -> int:
    """Return how many rows meet a block at once, in bounded memory."""
    n_rows, n_features = block.shape
    return max(1, _BLOCK_ENTRIES // (n_rows if sp.issparse(block) else max(n_rows, n_features)))


def _between(X: Instances, Y: Instances, kernel: str, backend: Backend) -> Floats:
    return backend.sq_distances(X, Y) if kernel == "rbf" else row_products(X, Y)


def hinge(margins: Floats) -> Floats:
    """Return the slack of every margin, max(0, 1 - margin)."""
    return np.maximum(0, 1 - margins)


def svm_objective(norm_sq: float, values: Floats, positive: Booleans, costs: Floats) -> float:
    """Return half the squared norm plus the cost of all slacks at decision values."""
    return float(norm_sq / 2 + costs @ hinge(np.where(positive, values, -values)))


def first_maxima(values: Floats, offsets: Integers, backend: Backend) -> Integers:
    """Return the row of the largest value of every bag, the first of equals, (n_bags,)."""
    return np.asarray(backend.bag_two_min(-values, offsets).where)


class Arrangement(NamedTuple):
    """Rows of some bags: the instances of positive bags, bag after bag, then those of negative bags."""

    rows: Integers  # positions among all instances
    offsets: Integers  # (n_positive_bags + 1,); rows from offsets[-1] on are of negative bags
    negative_counts: Floats  # (n_negative_rows,), how many instances each of those stands for
    weights: Floats  # (n_rows,), how often the bag of each counts

    @property
    def n_positive_rows(self) -> int:
        """How many rows are instances of positive bags."""
        return int(self.offsets[-1])

    @property
    def bag_weights(self) -> Floats:
        """How often every positive bag counts, (n_positive_bags,)."""
        return self.weights[self.offsets[:-1]]


def arrange(
    offsets: Integers,
    positive: Booleans,
    chosen: Booleans | None = None,
    counts: Floats | None = None,
    weights: Floats | None = None,
) -> Arrangement:
    """Arrange the instances of the chosen bags, or of all; the order of bags within a class stays.

    ``counts``, one for every instance, says how many each stands for; ``weights``, how often every bag counts. None:
    one.
    """
    chosen = np.ones_like(positive) if chosen is None else chosen
    positive_bags, negative_bags = np.flatnonzero(positive & chosen), np.flatnonzero(~positive & chosen)
    sizes = np.diff(offsets)[positive_bags]
    inside, outside = rows_of(offsets, positive_bags), rows_of(offsets, negative_bags)
    rows = np.concatenate([inside, outside])
    of_rows = np.repeat(np.ones(len(positive)) if weights is None else weights, np.diff(offsets))[rows]
    negative_counts = of_rows[len(inside) :] * (1 if counts is None else counts[outside])
    cuts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Arrangement(rows, cuts, negative_counts, of_rows)


def rows_of(offsets: Integers, bags: Integers) -> Integers:
    """Return the positions of the instances of some bags, bag after bag."""
    parts = [np.arange(offsets[bag], offsets[bag + 1]) for bag in bags]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def chosen_rows(offsets: Integers, chosen: Booleans) -> tuple[Integers, Integers]:
    """Return the positions of the instances of the chosen bags, and the offsets of those bags among them."""
    return rows_of(offsets, np.flatnonzero(chosen)), np.concatenate([[0], np.cumsum(np.diff(offsets)[chosen])])
