"""The backend that runs the compiled kernels."""

from __future__ import annotations

import atexit
import math
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from gmil.engine import margins, reference
from gmil.engine.margins import Margins
from gmil.engine.native import _kernels
from gmil.engine.rbf import Points
from gmil.engine.reference import BagMinima, Clusters, GramClusters, or_reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_MOST_STEPS = 10_000_000
_NOT_SETTLED = "A support vector machine has not settled after {} steps. Scale the features, or lower C."

_wanted = os.environ.get("GMIL_SIMD")
if _wanted:
    if _wanted not in _kernels.simd_levels():
        _msg = f"GMIL_SIMD={_wanted!r} is not one of {_kernels.simd_levels()}, the instruction sets that run here."
        raise ImportError(_msg)
    _kernels.set_simd_level(_wanted)

atexit.register(_kernels.join_helpers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_kernels.join_helpers, after_in_child=_kernels.forget_helpers)


@dataclass(frozen=True, slots=True)
class NativeBackend:
    """The kernels of ``gmil.engine.reference``, compiled; sparse instances are left to the reference.

    Parameters
    ----------
    n_threads : int
        The most threads that one kernel uses. Results do not depend on it.
    """

    n_threads: int = 1

    @property
    def name(self) -> str:
        """The name by which the backend is chosen."""
        return "native"

    @or_reference
    def sq_distances(self, X: Instances, centers: Floats) -> Floats:
        """See `gmil.engine.reference.sq_distances`."""
        return self._between_rows(_kernels.sq_distances, X, centers)

    def sparse_sq_distances(self, rows: Any, matrix: Floats, terms: Floats, per_row: Floats) -> Floats:
        """See `gmil.engine.reference.sparse_sq_distances`."""
        if not rows.nnz:
            return reference.sparse_sq_distances(rows, matrix, terms, per_row)
        out = np.empty((rows.shape[0], matrix.shape[1]), dtype=rows.dtype)
        stored = _plain(rows.data), _plain(rows.indices, np.int32), _plain(rows.indptr, np.int32)
        matrix, terms, per_row = (_plain(part, rows.dtype) for part in (matrix, terms, per_row))
        if out.size:
            _kernels.sparse_sq_distances(*stored, matrix, terms, per_row, out, self.n_threads)
        return out

    @or_reference
    def l1_distances(self, X: Floats, Y: Floats) -> Floats:
        """See `gmil.engine.reference.l1_distances`."""
        return self._between_rows(_kernels.l1_distances, X, Y)

    @or_reference
    def column_ranks(self, X: Floats, knots: Floats) -> Floats:
        """See `gmil.engine.reference.column_ranks`."""
        X, knots = _dense(X, knots)
        out = np.empty_like(X)
        if out.size:
            _kernels.column_ranks(X, knots, out, self.n_threads)
        return out

    def rbf_sums(self, left: Points, right: Points, gammas: Sequence[float]) -> Floats:
        """See `gmil.engine.reference.rbf_sums`."""
        if sp.issparse(left.features) or sp.issparse(right.features) or left.features.shape[1] == 0:
            return reference.rbf_sums(left, right, gammas)
        if left.features.shape[0] < right.features.shape[0]:  # those on the right are moved and packed first
            return self.rbf_sums(right, left, gammas).swapaxes(1, 2)
        sums = np.zeros((len(gammas), len(left.offsets) - 1, len(right.offsets) - 1))
        same = left is right
        left_bags, left_points = _filled(left)
        right_bags, right_points = (left_bags, left_points) if same else _filled(right)
        if not (len(gammas) and len(left_bags) and len(right_bags)):
            return sums
        whole = len(left_bags) == sums.shape[1] and len(right_bags) == sums.shape[2]
        out = sums if whole else np.empty((len(gammas), len(left_bags), len(right_bags)))
        widths = np.array(gammas, dtype=np.float64)
        _kernels.rbf_sums(*left_points, *right_points, widths, same, out, self.n_threads)
        if not whole:
            sums[:, left_bags[:, None], right_bags] = out
        return sums

    @or_reference
    def assign(self, X: Instances, centers: Floats) -> tuple[Integers, Floats]:
        """See `gmil.engine.reference.assign`."""
        X, centers = _dense(X, centers)
        labels, nearest = np.empty(len(X), dtype=np.int32), np.empty(len(X), dtype=X.dtype)
        if len(X):
            _kernels.assign(X, centers, labels, nearest, self.n_threads)
        return labels, nearest

    @or_reference
    def assign_sums(self, X: Instances, centers: Floats) -> tuple[Integers, Floats, Floats, Integers]:
        """See `gmil.engine.reference.assign_sums`."""
        X, centers = _dense(X, centers)
        labels, nearest = np.empty(len(X), dtype=np.int32), np.empty(len(X), dtype=X.dtype)
        sums, counts = np.zeros(centers.shape), np.zeros(len(centers), dtype=np.int64)
        if len(X):
            _kernels.assign_sums(X, centers, labels, nearest, sums, counts, self.n_threads)
        return labels, nearest, sums, counts

    @or_reference
    def seed(self, X: Instances, n_clusters: int, uniforms: Floats) -> Integers:
        """See `gmil.engine.reference.seed`."""
        chosen = np.empty(n_clusters, dtype=np.int64)
        _kernels.seed(_plain(X), _plain(uniforms, np.float64), chosen, self.n_threads)
        return chosen

    @or_reference
    def lloyd(self, X: Instances, centers: Floats, max_iter: int) -> Clusters:
        """See `gmil.engine.reference.lloyd`."""
        X = _plain(X)
        ends, labels = np.array(centers, dtype=X.dtype, order="C"), np.empty(len(X), dtype=np.int32)
        inertia, n_iter = _kernels.lloyd(X, ends, max_iter, labels, self.n_threads)
        return Clusters(ends, labels, inertia, n_iter)

    @or_reference
    def gram_matrix(self, X: Instances) -> Floats:
        """See `gmil.engine.reference.gram_matrix`."""
        out = np.empty((len(X), len(X)))
        _kernels.gram_matrix(_plain(X), out, self.n_threads)
        return out

    def gram_seed(self, gram: Floats, members: Booleans, uniforms: Floats) -> Integers:
        """See `gmil.engine.reference.gram_seed`."""
        chosen = np.empty(uniforms.shape[:2], dtype=np.int64)
        draws = _plain(uniforms, np.float64)
        _kernels.gram_seed(_plain(gram, np.float64), _bytes(members), draws, chosen, self.n_threads)
        return chosen

    def gram_lloyd(self, gram: Floats, members: Booleans, starts: Integers, max_iter: int) -> GramClusters:
        """See `gmil.engine.reference.gram_lloyd`."""
        (n_jobs, n_instances), n_clusters = members.shape, starts.shape[1]
        labels = np.empty((n_jobs, n_instances), dtype=np.int32)
        squares = np.empty((n_jobs, n_instances, n_clusters))
        inertia, n_iter = np.empty(n_jobs), np.empty(n_jobs, dtype=np.int64)
        rows = _plain(gram, np.float64), _bytes(members), _plain(starts, np.int64)
        _kernels.gram_lloyd(*rows, max_iter, labels, squares, inertia, n_iter, self.n_threads)
        return GramClusters(labels, squares, inertia, n_iter)

    def solve_svm(self, kernel: Floats, positive: Booleans, costs: Floats, start: Margins | None = None) -> Margins:
        """See `gmil.engine.margins.solve_svm`."""
        taking_part = positive[costs > 0]
        if taking_part.all() or not taking_part.any():  # refused, in the words of scikit-learn
            return reference.solve_svm(kernel, positive, costs)
        nothing = np.zeros(len(kernel))
        before = Margins(nothing, 0.0, nothing, costs) if start is None else start
        dual, products = before.dual.copy(), before.products.copy()
        # A row that was at its bound most likely stays there.
        bound = (dual != 0) & (np.abs(dual) >= before.costs)
        first = np.where(bound, np.copysign(costs, dual), dual)
        rows = _plain(kernel, np.float64), _bytes(positive), _plain(costs, np.float64)
        intercept, n_iter = _kernels.svm_solve(*rows, margins.TOLERANCE, _MOST_STEPS, first, dual, products)
        if n_iter == _MOST_STEPS:
            warnings.warn(_NOT_SETTLED.format(n_iter), ConvergenceWarning, stacklevel=2)
        return Margins(dual, intercept, products, costs)

    @or_reference
    def bag_min(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_min`."""
        return self._reduce("min", values, offsets)

    @or_reference
    def bag_max(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_max`."""
        return self._reduce("max", values, offsets)

    @or_reference
    def bag_mean(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_mean`."""
        return self._reduce("mean", values, offsets)

    @or_reference
    def bag_deviation(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_deviation`."""
        return self._reduce("deviation", values, offsets)

    @or_reference
    def bag_moments(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_moments`."""
        out = np.empty((len(offsets) - 1, 3, values.shape[1]))
        _kernels.bag_moments(_plain(values), _plain(offsets, np.int64), out, self.n_threads)
        return out

    @or_reference
    def bag_two_min(self, values: Floats, offsets: Integers) -> BagMinima:
        """See `gmil.engine.reference.bag_two_min`."""
        columns = _columns(values)
        shape = (len(offsets) - 1, columns.shape[1])
        smallest, second = np.empty(shape, dtype=values.dtype), np.empty(shape, dtype=values.dtype)
        where = np.empty(shape, dtype=np.int64)
        _kernels.bag_two_min(columns, _plain(offsets, np.int64), smallest, where, second, self.n_threads)
        like_values = shape[:1] + values.shape[1:]
        return BagMinima(smallest.reshape(like_values), where.reshape(like_values), second.reshape(like_values))

    def bag_histograms(self, labels: Integers, offsets: Integers, n_bins: int) -> Integers:
        """See `gmil.engine.reference.bag_histograms`."""
        counts = np.zeros((len(offsets) - 1, n_bins), dtype=np.int64)
        _kernels.bag_histograms(_plain(labels, np.int32), _plain(offsets, np.int64), counts)
        return counts

    def class_histograms(
        self, labels: Integers, offsets: Integers, classes: Integers, n_classes: int, n_bins: int
    ) -> Integers:
        """See `gmil.engine.reference.class_histograms`."""
        counts = np.zeros((n_classes, n_bins), dtype=np.int64)
        cuts, groups = _plain(offsets, np.int64), _plain(classes, np.int64)
        _kernels.class_histograms(_plain(labels, np.int32), cuts, groups, counts)
        return counts

    def margin_program(self, rows: Floats, most: Floats) -> tuple[Floats, Floats] | None:
        """Solve the linear program of MICA, see `gmil.methods.svm.mica_program`; return prices and shares.

        None where rounding got in the way, or where it takes too many steps.
        """
        rows = _plain(rows, np.float64)
        prices, shares = np.empty(rows.shape[1]), np.empty(rows.shape[0])
        max_steps = 50 * sum(rows.shape)
        solved = _kernels.solve_margin_program(rows, _plain(most, np.float64), max_steps, prices, shares)
        return (prices, shares) if solved else None

    def _between_rows(self, kernel: Any, X: Floats, Y: Floats) -> Floats:
        X, Y = _dense(X, Y)
        out = np.empty((len(X), len(Y)), dtype=X.dtype)
        if out.size:
            kernel(X, Y, out, self.n_threads)
        return out

    def _reduce(self, how: str, values: Floats, offsets: Integers) -> Floats:
        columns = _columns(values)
        out = np.empty((len(offsets) - 1, columns.shape[1]), dtype=values.dtype)
        _kernels.bag_reduce(columns, _plain(offsets, np.int64), how, out, self.n_threads)
        return out.reshape(out.shape[:1] + values.shape[1:])


def simd_levels() -> list[str]:
    """Return the instruction sets that can run here, the fastest last."""
    return _kernels.simd_levels()


def simd_level() -> str:
    """Return the instruction set in use."""
    return _kernels.simd_level()


def set_simd_level(name: str) -> None:
    """Use another instruction set from now on, in all threads; for tests and measurements."""
    _kernels.set_simd_level(name)


def _plain(values: Any, dtype: Any = None) -> NDArray[Any]:
    """Return an array without gaps whose numbers begin where the processor wants them; those of a file may not."""
    array = np.ascontiguousarray(values, dtype=dtype)
    return array if array.flags.aligned else array.copy()


def _dense(X: Floats, centers: Floats) -> tuple[Floats, Floats]:
    return _plain(X), _plain(centers, X.dtype)


def _filled(points: Points) -> tuple[Integers, Points]:
    """Return the bags that have points, and their points."""
    bags = np.flatnonzero(np.diff(points.offsets))
    cuts = np.append(points.offsets[bags], points.offsets[-1]).astype(np.int64, copy=False)
    return bags, Points(_plain(points.features, np.float64), _plain(points.weights, np.float64), cuts)


def _bytes(members: Booleans) -> Integers:
    return _plain(members, np.bool_).view(np.uint8)


def _columns(values: Floats) -> Floats:
    n_columns = math.prod(values.shape[1:])  # said, because nothing follows from no rows
    return _plain(values).reshape(len(values), n_columns)
