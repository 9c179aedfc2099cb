"""The approximate evidence of Laplace's approximation, its gradient, and its maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gmil.methods.gaussian_process.curved import solve_curved
from gmil.methods.gaussian_process.gram import FullGram, GramSlopes, Kernel, LowRankGram, Pairs, times
from gmil.methods.gaussian_process.inducing import Basis
from gmil.methods.gaussian_process.laplace import Mode, Surroundings, find_mode, surroundings
from gmil.methods.gaussian_process.likelihood import LabelledBags
from gmil.methods.gaussian_process.merging import Merging, merge_equal

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.gaussian_process.gram import Gram

_TOLERANCE = 1e-5
_PRIOR_DEVIATION = 2.0
"""How far the logarithm of a parameter strays from its start: parameters that labels say nothing about stay there."""

_REACH = 3 * _PRIOR_DEVIATION
"""Beyond this a line search that extrapolates would only meet infinity."""


class Settings(NamedTuple):
    """What the evidence chooses: the kernel, and the sharpness of the soft maximum."""

    kernel: Kernel
    sharpness: float

    @property
    def vector(self) -> Floats:
        """Logarithms of amplitude, offset, sharpness and length scales."""
        with np.errstate(divide="ignore"):
            front = np.log([self.kernel.amplitude, self.kernel.offset, self.sharpness])
        return np.concatenate([front, np.log(self.kernel.length_scales)])

    @classmethod
    def of(cls, vector: Floats) -> Settings:
        """Return the settings that have these logarithms."""
        amplitude, offset, sharpness = (float(value) for value in np.exp(vector[:3]))
        return cls(Kernel(amplitude, offset, np.exp(vector[3:])), sharpness)

    def for_each(self, n_features: int) -> Settings:
        """Return the same settings with a length scale for every feature."""
        lengths = np.broadcast_to(self.kernel.length_scales, n_features).copy()
        return self._replace(kernel=self.kernel._replace(length_scales=lengths))


class TrainingSet(NamedTuple):
    """Scaled instances of labelled bags, and the points that the Gaussian process is built on."""

    X: Instances  # (n_rows, n_features)
    offsets: Integers  # (n_bags + 1,)
    positive: Floats  # (n_bags,), 0 or 1
    basis: Basis
    merging: Merging | None = None  # where instances that are equal share a row of X
    pairs: Pairs | None = None  # of X and the basis, with their distances

    def merged(self) -> TrainingSet:
        """Return the same with one row for all instances that are equal."""
        rows, merging = merge_equal(self.X)
        basis = self.basis if self.basis.inducing else Basis(self.basis.points[rows], inducing=False)
        return self._replace(X=self.X[rows], basis=basis, merging=merging)

    def measured(self, backend: Backend) -> TrainingSet:
        """Return the same with distances, for many kernels that have one length scale."""
        Z = self.basis.points
        inner_squares = backend.sq_distances(Z, Z) if self.basis.inducing else None
        return self._replace(pairs=Pairs(self.X, Z, backend.sq_distances(self.X, Z), inner_squares))

    def gram(self, kernel: Kernel, backend: Backend) -> Gram:
        """Return the covariance of the instances."""
        kind = LowRankGram if self.basis.inducing else FullGram
        pairs = self.pairs or Pairs(self.X, self.basis.points)
        return kind(kernel, pairs, self.merging or Merging(None, self.X.shape[0]), backend)


class Fit(NamedTuple):
    """A posterior, and the logarithm of the approximate evidence of its settings."""

    settings: Settings
    gram: Gram
    mode: Mode
    around: Surroundings

    @property
    def log_evidence(self) -> float:
        """Log p(y) by Laplace's approximation."""
        return self.mode.objective - 0.5 * self.around.log_determinant


def fit_posterior(data: TrainingSet, settings: Settings, backend: Backend, near: Floats | None = None) -> Fit:
    """Return the posterior under given settings; its mode is sought from 0, or ``near`` given values."""
    gram = data.gram(settings.kernel, backend)
    mode = find_mode(gram, LabelledBags(data.offsets, data.positive, settings.sharpness), near)
    return Fit(settings, gram, mode, surroundings(gram, mode.local))


def evidence_gradient(fit: Fit) -> Floats:
    """Return the derivative of the log-evidence by ``settings.vector``.

    The settings move the evidence directly and through the mode, which they move; the latter by implicit
    differentiation of f = K grad log p(y | f), with the exact Hessian.
    """
    local, gram, around = fit.mode.local, fit.gram, fit.around
    pulled = around.gain_times(around.lifted.T)  # (n_bags, n_basis)
    # Half the derivative of log |I + A C| by the share of an instance of bag b: its covariance with R' gain_b.
    by_share = _instance_products(gram, local.bags.offsets, pulled)
    by_maximum = around.posterior_variances * local.curvatures_by_maxima
    bend = 2 * local.bags.sharpness * (by_share - local.spread(local.averages(by_share)))
    by_f = -0.5 * local.shares * (local.spread(by_maximum) + bend)
    moved = solve_curved(gram, local, around, by_f)
    gradient = local.gradient
    slopes = gram.pull_back(GramSlopes(0.5 * gradient + moved, gradient, around.lifted, -0.5 * pulled, local))
    by_sharpness = float(
        (local.residuals - 0.5 * by_maximum) @ local.maxima_by_sharpness
        - by_share @ local.shares_by_sharpness
        + times(gram, moved) @ local.gradient_by_sharpness
    )
    front = [slopes.amplitude, slopes.offset, local.bags.sharpness * by_sharpness]
    return np.concatenate([front, slopes.length_scales])


def _instance_products(gram: Gram, offsets: Integers, weights: Floats) -> Floats:
    """Return the covariance of every instance with the basis, times the weights (n_bags, n_basis) of its bag."""
    edges = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    rows = (gram.merging.take(gram.cross, start, stop) for start, stop in edges)
    return np.concatenate([cross @ own for cross, own in zip(rows, weights, strict=True)])


def maximise_evidence(data: TrainingSet, start: Settings, backend: Backend, max_iter: int) -> tuple[Fit, int]:
    """Climb the log-evidence plus a weak prior by L-BFGS from ``start``, and count its steps.

    A sharp maximum has several modes; following the one of the best settings so far keeps the evidence continuous. An
    offset of zero stays zero.
    """
    at_start = start.vector
    free = np.isfinite(at_start)
    if len(start.kernel.length_scales) == 1:
        data = data.measured(backend)
    best: list[tuple[float, Fit]] = []

    def loss(logarithms: Floats) -> tuple[float, Floats]:
        vector = at_start.copy()
        vector[free] = logarithms
        near = best[0][1].mode.local.f if best else None
        fit = fit_posterior(data, Settings.of(vector), backend, near)
        strayed = (vector[free] - at_start[free]) / _PRIOR_DEVIATION
        value = 0.5 * float(strayed @ strayed) - fit.log_evidence
        if not best or value < best[0][0]:
            best[:] = [(value, fit)]
        slope = strayed / _PRIOR_DEVIATION - evidence_gradient(fit)[free]
        # Per bag, since the first step of L-BFGS is as long as the gradient.
        return value / len(data.positive), slope / len(data.positive)

    options = {"maxiter": max_iter, "ftol": _TOLERANCE}
    bounds = [(value - _REACH, value + _REACH) for value in at_start[free]]
    found = minimize(loss, at_start[free], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return best[0][1], max(1, int(found.nit))
