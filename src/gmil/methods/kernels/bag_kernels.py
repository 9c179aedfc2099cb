"""Kernels between bags, and the width of a kernel between instances; plain arrays in, plain arrays out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.engine.rbf import Points, own_rbf_sums
from gmil.engine.sparse_rows import row_products, rows_beside
from gmil.transform.widths import median_gamma

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

_BLOCK_ROWS = 1024
"""Instances of either side that meet at once: 8 MiB of kernel values in double precision."""


class InstanceKernel(NamedTuple):
    """A kernel between instances: "rbf", exp(-gamma d^2), "poly", (gamma x.z + coef0)^degree, or "linear", x.z."""

    name: str
    gamma: float = 1.0
    degree: int = 2
    coef0: float = 1.0

    def of(self, base: Floats, out: Floats) -> Floats:
        """Return the kernel of squared distances (RBF) or of products (the others), written over ``out``."""
        if self.name == "linear":
            np.copyto(out, base)
            return out
        if self.name == "rbf":
            return np.exp(np.multiply(base, -self.gamma, out=out), out=out)
        np.multiply(base, self.gamma, out=out)
        out += self.coef0
        return np.power(out, self.degree, out=out)

    def of_itself(self, X: Instances) -> Floats:
        """Return the kernel of every instance with itself, (n_instances,)."""
        base = np.zeros(X.shape[0]) if self.name == "rbf" else np.asarray((X * X).sum(axis=1), dtype=np.float64)
        return self.of(base, base)


def mean_kernels(
    left: Instances,
    left_offsets: Integers,
    right: Instances,
    right_offsets: Integers,
    kernels: list[InstanceKernel],
    backend: Backend,
) -> Floats:
    """Return the mean of a kernel over all pairs of instances of two bags, (n_kernels, n_left_bags, n_right_bags).

    The kernels share one set of distances or products, so they must all be "rbf", or none. No matrix of all pairs
    of instances is ever held. Where both are the same bags, half of the pairs suffice.
    """
    mirrored = left is right and left_offsets is right_offsets
    if kernels[0].name == "rbf":
        rows = _points(left, left_offsets)
        columns = rows if mirrored else _points(right, right_offsets)
        sums = backend.rbf_sums(rows, columns, [kernel.gamma for kernel in kernels])
    else:
        sums = _sums_of_products(left, left_offsets, right, right_offsets, kernels, backend)
    sums /= np.diff(left_offsets)[:, None] * np.diff(right_offsets)
    return sums


def _points(X: Instances, offsets: Integers) -> Points:
    return Points(X, np.ones(X.shape[0]), offsets)


def _sums_of_products(
    left: Instances,
    left_offsets: Integers,
    right: Instances,
    right_offsets: Integers,
    kernels: list[InstanceKernel],
    backend: Backend,
) -> Floats:
    """Return sums of functions of products over all pairs of instances of two bags."""
    sums = np.zeros((len(kernels), len(left_offsets) - 1, len(right_offsets) - 1))
    mirrored = left is right and left_offsets is right_offsets
    for columns, right_bags, right_cut in _blocks(right_offsets):
        block = rows_beside(left, right, columns)
        for rows, left_bags, left_cut in _blocks(left_offsets):
            if mirrored and rows.start > columns.start:
                break
            base = row_products(left[rows], block)
            values = np.empty_like(base)
            for total, kernel in zip(sums, kernels, strict=True):
                part = _sum_pairs(kernel.of(base, values), left_cut, right_cut, backend)
                total[left_bags, right_bags] += part
                if mirrored and rows.start < columns.start:
                    total[right_bags, left_bags] += part.T
    return sums


def own_kernels(X: Instances, offsets: Integers, kernel: InstanceKernel, backend: Backend) -> Floats:
    """Return the mean kernel of every bag with itself, (n_bags,)."""
    if kernel.name == "rbf":
        return own_rbf_sums(_points(X, offsets), kernel.gamma, backend) / np.diff(offsets) ** 2
    found = np.empty(len(offsets) - 1)
    for i, (start, stop) in enumerate(pairwise(offsets.tolist())):
        bag, cut = X[start:stop], np.array([0, stop - start])
        found[i] = mean_kernels(bag, cut, bag, cut, [kernel], backend)[0, 0, 0]
    return found


def own_kernels_without(X: Instances, kernel: InstanceKernel, backend: Backend) -> Floats:
    """Return the mean kernel with itself of one bag without each of its instances, (n_instances,)."""
    size = X.shape[0]
    rows = mean_kernels(X, np.arange(size + 1), X, np.array([0, size]), [kernel], backend)[0, :, 0] * size
    return (rows.sum() - 2 * rows + kernel.of_itself(X)) / (size - 1) ** 2


def kernel_width(
    gamma: float | str,
    X: Instances,
    backend: Backend,
    generator: np.random.Generator,
    weights: Floats | None = None,
) -> float:
    """Return a parameter ``gamma`` as a number; "median" takes it from training instances."""
    return median_gamma(X, backend, generator, weights) if isinstance(gamma, str) else float(gamma)


def _blocks(offsets: Integers) -> Iterator[tuple[slice, slice, Integers]]:
    """Yield rows, the bags that they belong to and the offsets of those bags within the rows; bags may be cut."""
    n_instances = int(offsets[-1])
    for start in range(0, n_instances, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n_instances)
        first = int(np.searchsorted(offsets, start, side="right")) - 1
        last = int(np.searchsorted(offsets, stop, side="left"))
        yield slice(start, stop), slice(first, last), np.clip(offsets[first : last + 1], start, stop) - start


def _sum_pairs(values: Floats, left_cut: Integers, right_cut: Integers, backend: Backend) -> Floats:
    """Return sums over the pairs of instances of two bags, (n_left_bags, n_right_bags)."""
    by_left = backend.bag_mean(values, left_cut) * np.diff(left_cut)[:, None]
    by_both = backend.bag_mean(np.ascontiguousarray(by_left.T), right_cut) * np.diff(right_cut)[:, None]
    return np.asarray(by_both.T)
