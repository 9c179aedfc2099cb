"""Predictions of a Gaussian process for new instances and new bags, with their variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import log_expit, logsumexp

from gmil.bags.parts import blocks_of_bags
from gmil.engine.reference import dense_rows
from gmil.methods.gaussian_process.likelihood import share_matrix, soft_maxima

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.gaussian_process.evidence import Fit
    from gmil.methods.gaussian_process.gram import Kernel

_BLOCK_ROWS = 1024
"""Instances of one bag that meet at once: 8 MiB of covariances in double precision."""

_BLOCK_ENTRIES = 1 << 22
"""Covariances with the basis that are held at once, but for a bag that alone has more: 32 MiB."""

_LEAST_SHARE = 1e-6
"""Instances with less than this share of the largest in their bag leave its variance as it is."""

_NODES = np.linspace(-8, 8, 401)
"""Where the Gaussian is summed, in deviations: the trapezoidal rule, all but exact for smooth functions."""

_LOG_WEIGHTS = -0.5 * _NODES**2 - logsumexp(-0.5 * _NODES**2)


class BagMoments(NamedTuple):
    """Mean and variance of the soft maximum of every bag."""

    means: Floats  # (n_bags,)
    variances: Floats  # (n_bags,)

    @property
    def log_odds(self) -> Floats:
        """Log P(positive) - log P(negative), (n_bags,), the probabilities being averaged over the soft maximum."""
        maxima = self.means[:, None] + np.sqrt(self.variances)[:, None] * _NODES
        positive = logsumexp(_LOG_WEIGHTS + log_expit(maxima), axis=1)
        negative = logsumexp(_LOG_WEIGHTS + log_expit(-maxima), axis=1)
        return np.asarray(positive - negative)


class Posterior(NamedTuple):
    """The Gaussian process after training: mean k(x, basis) weights, covariance k(x, z) - k(x, basis) root root' k."""

    kernel: Kernel
    sharpness: float
    basis: Floats  # (n_basis, n_features)
    weights: Floats  # (n_basis,)
    root: Floats  # (n_basis, n_training_bags), or square where that is less

    @classmethod
    def of(cls, fit: Fit, basis: Floats) -> Posterior:
        """Return what prediction needs of a fit."""
        weights = fit.gram.lift(fit.gram.merging.collect(fit.mode.alpha))
        return cls(fit.settings.kernel, fit.settings.sharpness, basis, weights, fit.around.root)

    def instances(self, X: Instances, offsets: Integers, backend: Backend, deviations: bool) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of f, (n_instances,) each; the latter are empty unless asked for."""
        means, variances = np.empty(X.shape[0]), np.empty(X.shape[0] if deviations else 0)
        for _, rows, cross in self._blocks(X, offsets, backend):
            means[rows] = cross @ self.weights
            if deviations:
                variances[rows] = self.kernel.variance - ((cross @ self.root) ** 2).sum(axis=1)
        return means, np.sqrt(np.maximum(variances, 0))

    def bags(self, X: Instances, offsets: Integers, backend: Backend) -> BagMoments:
        """Return mean and variance of the soft maximum of every bag, which is taken as linear around the mean."""
        means, variances = np.empty(len(offsets) - 1), np.empty(len(offsets) - 1)
        for bags, rows, cross in self._blocks(X, offsets, backend):
            inside = offsets[bags.start : bags.stop + 1] - offsets[bags.start]
            means[bags], shares = soft_maxima(cross @ self.weights, inside, self.sharpness)
            reduction = (share_matrix(shares, inside) @ cross) @ self.root
            prior = shared_variances(self.kernel, X[rows], shares, inside, backend)
            variances[bags] = prior - (reduction**2).sum(axis=1)
        return BagMoments(means, np.maximum(variances, 0))

    def _blocks(self, X: Instances, offsets: Integers, backend: Backend) -> Iterator[tuple[slice, slice, Floats]]:
        """Yield runs of bags, their instances, and the covariance of these with the basis."""
        for bags in blocks_of_bags(offsets, max(1, _BLOCK_ENTRIES // len(self.basis))):
            rows = slice(int(offsets[bags.start]), int(offsets[bags.stop]))
            yield bags, rows, self.kernel.between(X[rows], self.basis, backend)


def shared_variances(kernel: Kernel, X: Instances, shares: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return the prior variance of the mean of every bag by its shares, (n_bags,)."""
    variances = np.empty(len(offsets) - 1)
    for bag, (start, stop) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        own = shares[start:stop]
        counts = np.flatnonzero(own > _LEAST_SHARE * own.max())
        blocks = [counts[i : i + _BLOCK_ROWS] for i in range(0, len(counts), _BLOCK_ROWS)]
        variances[bag] = sum(
            # Blocks off the diagonal stand for two.
            (1 if i == j else 2) * float(own[rows] @ kernel.between(X[start + rows], points, backend) @ own[columns])
            for j, columns in enumerate(blocks)
            for points in [dense_rows(X, start + columns)]
            for i, rows in enumerate(blocks[: j + 1])
        )
    return variances
