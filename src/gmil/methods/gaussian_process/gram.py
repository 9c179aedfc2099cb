"""The covariance of instances: the squared exponential kernel, its Gram matrix in full or by inducing points."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve, cholesky, qr, solve_triangular

from gmil.transform.space import Space

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances
    from gmil.methods.gaussian_process.likelihood import LocalLikelihood
    from gmil.methods.gaussian_process.merging import Merging, RowCurvature

_JITTER = 1e-6
"""What is added to the diagonal of the covariance of inducing points, relative to the squared amplitude."""

_ROUNDING = 1e-12
"""What rounding may change of covariances, relative to the variance of an instance."""

_BAG_JITTER = 1e-9
"""The same for the covariance of bags, relative to the variance of an instance."""

_BLOCK_ROWS = 4096
"""Instances that are weighed at once."""


class Kernel(NamedTuple):
    """k(x, z) = amplitude^2 exp(-|(x - z) / length|^2 / 2) + offset^2."""

    amplitude: float
    offset: float
    length_scales: Floats  # (1,), or (n_features,)

    @property
    def variance(self) -> float:
        """The variance of every instance, k(x, x)."""
        return self.amplitude**2 + self.offset**2

    @property
    def jitter(self) -> float:
        """What keeps the covariance of inducing points positive definite, also where a large offset rounds it."""
        return max(_JITTER * self.amplitude**2, _ROUNDING * self.variance)

    def between(self, X: Instances, Z: Floats, backend: Backend) -> Floats:
        """Return the covariance of two sets of instances, (n_X, n_Z)."""
        return self._of_exponents(-0.5 * backend.sq_distances(self._shrunk(X), self._shrunk(Z)))

    def at_squares(self, squares: Floats) -> Floats:
        """Return covariances by squared distances, where one length scale is for all features."""
        return self._of_exponents(squares * (-0.5 / self.length_scales[0] ** 2))

    def _of_exponents(self, values: Floats) -> Floats:
        """Turn exponents into covariances, in place."""
        np.exp(values, out=values)
        values *= self.amplitude**2
        values += self.offset**2
        return values

    def _shrunk(self, X: Instances) -> Instances:
        return Space(divisor=np.broadcast_to(self.length_scales, X.shape[1])).apply(X)

    def pull_back(self, pairs: Pairs, values: Floats, slopes: Floats) -> KernelSlopes:
        """Turn derivatives by covariances into derivatives by the logarithms of the parameters.

        ``values`` are those of the pairs; ``slopes``, the derivatives of something by them, is overwritten.
        """
        total = float(slopes.sum())
        slopes *= values - self.offset**2
        if len(self.length_scales) > 1:
            by_length = self._by_features(pairs.X, pairs.Z, slopes)
        elif pairs.squares is None:
            by_length = self._by_features(pairs.X, pairs.Z, slopes).sum(keepdims=True)
        else:
            by_length = np.array([np.vdot(slopes, pairs.squares)])
        by_length = by_length / self.length_scales**2
        return KernelSlopes(2 * float(slopes.sum()), 2 * self.offset**2 * total, by_length)

    @staticmethod
    def _by_features(X: Instances, Z: Floats, slopes: Floats) -> Floats:
        """Return the sum of slopes times squared differences, for every feature."""
        rows, columns = slopes.sum(axis=1), slopes.sum(axis=0)
        if not sp.issparse(X):  # distances do not see a shift, sums of squares round less with it
            shift = Z.mean(axis=0)
            X, Z = X - shift, Z - shift
            squares = X**2
        else:
            squares = X.multiply(X)
        return np.asarray(squares.T @ rows + (Z**2).T @ columns - 2 * (Z * (X.T @ slopes).T).sum(axis=0))


class Pairs(NamedTuple):
    """Instances and points of a basis, with squared distances where these are needed more than once."""

    X: Instances  # (n_X, n_features)
    Z: Floats  # (n_Z, n_features)
    squares: Floats | None = None  # (n_X, n_Z)
    inner_squares: Floats | None = None  # (n_Z, n_Z)

    @property
    def inner(self) -> Pairs:
        """The pairs of points."""
        return Pairs(self.Z, self.Z, self.inner_squares)

    def covariances(self, kernel: Kernel, backend: Backend) -> Floats:
        """Return the covariance of all pairs, (n_X, n_Z)."""
        if self.squares is None or len(kernel.length_scales) > 1:
            return kernel.between(self.X, self.Z, backend)
        return kernel.at_squares(self.squares)


class KernelSlopes(NamedTuple):
    """Derivatives by the logarithms of amplitude, offset and length scales."""

    amplitude: float
    offset: float
    length_scales: Floats

    def plus(self, other: KernelSlopes) -> KernelSlopes:
        """Return the derivatives of a sum."""
        return KernelSlopes(
            self.amplitude + other.amplitude, self.offset + other.offset, self.length_scales + other.length_scales
        )


class GramSlopes(NamedTuple):
    """Derivatives by a Gram matrix, kept as factors: left right' + R' middle R, R being the shares of bags.

    What they are contracted with is symmetric, and so is ``middle``; the rest need not be.
    """

    left: Floats  # (n_instances,)
    right: Floats  # (n_instances,)
    lifted: Floats  # (n_basis, n_bags), `lift` of R'
    middle: Floats  # (n_bags, n_basis), middle times the transpose of that
    local: LocalLikelihood


class Gram(Protocol):
    """The covariance K of the training instances, by rows that equal instances share, as ``cross @ lift(.)``."""

    basis: Floats  # (n_basis, n_features)
    merging: Merging
    cross: Floats  # (n_rows, n_basis), K_nm
    inner: Floats  # (n_basis, n_basis), K_mm; without inducing points ``cross`` itself

    def lift(self, values: Floats) -> Floats:
        """Return what ``cross`` turns into K times values of the rows, (n_basis,)."""

    def bag_factor(self, local: LocalLikelihood) -> BagFactor:
        """Return the covariance of bags."""

    def solve_densely(self, curvature: RowCurvature, target: Floats) -> Floats:
        """Return h with h + lift(W cross h) = target, W being the curvature."""

    def pull_back(self, slopes: GramSlopes) -> KernelSlopes:
        """Return derivatives by the parameters of the kernel from derivatives by K."""


class BagFactor(NamedTuple):
    """The covariance of bags, R K R', R being their shares."""

    shared: Floats  # (n_bags, n_basis), R times ``cross``
    lifted: Floats  # (n_basis, n_bags), ``lift`` of R'
    prior: Floats  # (n_bags, rank), P with P P' = R K R'


def times(gram: Gram, values: Floats) -> Floats:
    """Return K times values of the instances, (n_instances,)."""
    return gram.merging.spread(gram.cross @ gram.lift(gram.merging.collect(values)))


def row_values(gram: Gram, weights: Floats, seen: Floats) -> Floats:
    """Return the value of every row by weights of the basis, (n_rows,); ``seen`` is K_mm times them."""
    return seen if gram.cross is gram.inner else gram.cross @ weights


class FullGram:
    """The Gram matrix of all training instances."""

    def __init__(self, kernel: Kernel, pairs: Pairs, merging: Merging, backend: Backend) -> None:
        self.kernel, self.basis, self.merging, self._pairs = kernel, pairs.Z, merging, pairs
        self.cross = self.inner = pairs.covariances(kernel, backend)

    def lift(self, values: Floats) -> Floats:
        """Return the values: ``cross`` is K itself."""
        return values

    def bag_factor(self, local: LocalLikelihood) -> BagFactor:
        """Return the transposed shares, and the root of the covariance of bags."""
        shares = self.merging.share_matrix(local)
        shared = shares @ self.cross
        covariance = shares @ shared.T
        covariance = (covariance + covariance.T) / 2
        # Equal bags make it singular.
        covariance.flat[:: len(covariance) + 1] += _BAG_JITTER * self.kernel.variance
        return BagFactor(shared, shares.T.toarray(), cholesky(covariance, lower=True, overwrite_a=True))

    def solve_densely(self, curvature: RowCurvature, target: Floats) -> Floats:
        """Solve for all rows."""
        system: Floats = curvature.shares.T @ (curvature.outer[:, None] * (curvature.shares @ self.cross))
        system += curvature.diagonal[:, None] * self.cross
        system.flat[:: len(system) + 1] += 1
        return np.linalg.solve(system, target)

    def pull_back(self, slopes: GramSlopes) -> KernelSlopes:
        """Write the derivatives out for all pairs of rows."""
        by_pair: Floats = self.merging.share_matrix(slopes.local).T @ slopes.middle
        by_pair += self.merging.collect(slopes.left)[:, None] * self.merging.collect(slopes.right)
        return self.kernel.pull_back(self._pairs, self.cross, by_pair)


class LowRankGram:
    """The Gram matrix that inducing points leave of it: K_nm K_mm^-1 K_mn."""

    def __init__(self, kernel: Kernel, pairs: Pairs, merging: Merging, backend: Backend) -> None:
        self.kernel, self.basis, self.merging, self._pairs = kernel, pairs.Z, merging, pairs
        self.cross = pairs.covariances(kernel, backend)
        self.inner = pairs.inner.covariances(kernel, backend)
        self.inner.flat[:: len(self.basis) + 1] = kernel.variance + kernel.jitter
        self._lower = cholesky(self.inner, lower=True)

    def lift(self, values: Floats) -> Floats:
        """Return K_mm^-1 K_mn values."""
        return cho_solve((self._lower, True), self.cross.T @ values, check_finite=False)

    def bag_factor(self, local: LocalLikelihood) -> BagFactor:
        """Return K_mm^-1 K_mn R', and R K_nm times the inverse root of K_mm."""
        shared = self.merging.share_matrix(local) @ self.cross
        half = solve_triangular(self._lower, shared.T, lower=True, check_finite=False)
        lifted = solve_triangular(self._lower, half, lower=True, trans="T", check_finite=False)
        # A root that is square will do where bags are fewer than inducing points.
        prior = half if half.shape[1] >= len(half) else qr(half, mode="r")[0][: half.shape[1]]
        return BagFactor(shared, lifted, prior.T)

    def solve_densely(self, curvature: RowCurvature, target: Floats) -> Floats:
        """Solve for all inducing points, K_mn W K_nm being added up in bounded memory."""
        shared = curvature.shares @ self.cross
        system: Floats = self.inner + shared.T @ (curvature.outer[:, None] * shared)
        for start in range(0, len(self.cross), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            system += self.cross[rows].T @ (curvature.diagonal[rows, None] * self.cross[rows])
        return np.linalg.solve(system, self.inner @ target)

    def pull_back(self, slopes: GramSlopes) -> KernelSlopes:
        """Pass the derivatives on to K_nm and K_mm."""
        row_left, row_right = self.merging.collect(slopes.left), self.merging.collect(slopes.right)
        left, right = self.lift(row_left), self.lift(row_right)
        by_inner = -(left[:, None] * right + slopes.lifted @ slopes.middle)
        by_cross: Floats = self.merging.share_matrix(slopes.local).T @ (2 * slopes.middle)
        by_cross += row_left[:, None] * right
        by_cross += row_right[:, None] * left
        first = self.kernel.pull_back(self._pairs, self.cross, by_cross)
        second = self.kernel.pull_back(self._pairs.inner, self.inner, by_inner)
        return first.plus(second)
