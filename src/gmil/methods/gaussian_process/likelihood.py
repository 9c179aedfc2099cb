"""The likelihood of bag labels given a value f of every instance, and its derivatives, on plain arrays.

A bag has the soft maximum g = log(mean(exp(b f))) / b of its instances, b being the sharpness, and is positive with the
probability 1 / (1 + exp(-g)). The mean in place of a sum keeps large bags from looking positive: where all f are equal,
g is that f, whatever the size of the bag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances, Integers


class SoftMaxima(NamedTuple):
    """The soft maximum of every bag, and its derivative by every instance: shares that add up to 1 in a bag."""

    values: Floats  # (n_bags,)
    shares: Floats  # (n_instances,)


def soft_maxima(f: Floats, offsets: Integers, sharpness: float) -> SoftMaxima:
    """Return the soft maximum of every bag and the share of every instance in it."""
    starts, sizes = offsets[:-1], np.diff(offsets)
    largest = np.maximum.reduceat(f, starts)
    relative = np.exp(sharpness * (f - np.repeat(largest, sizes)))
    sums = np.add.reduceat(relative, starts)
    return SoftMaxima(largest + np.log(sums / sizes) / sharpness, relative / np.repeat(sums, sizes))


def share_matrix(shares: Floats, offsets: Integers) -> Instances:
    """Return the sparse matrix (n_bags, n_instances) that averages instances by their shares."""
    return sp.csr_array((shares, np.arange(len(shares)), offsets), shape=(len(offsets) - 1, len(shares)))


class LabelledBags(NamedTuple):
    """Where bags begin, which of them are positive, and how sharp their soft maximum is."""

    offsets: Integers  # (n_bags + 1,)
    positive: Floats  # (n_bags,), 0 or 1
    sharpness: float

    def around(self, f: Floats) -> LocalLikelihood:
        """Return the likelihood and its derivatives at the values ``f`` of the instances."""
        maxima, shares = soft_maxima(f, self.offsets, self.sharpness)
        probability = expit(maxima)
        return LocalLikelihood(
            bags=self,
            f=f,
            maxima=maxima,
            shares=shares,
            log_likelihood=float(log_expit(np.where(self.positive > 0, maxima, -maxima)).sum()),
            residuals=self.positive - probability,
            curvatures=probability * expit(-maxima),
        )


class LocalLikelihood(NamedTuple):
    """The logarithm of the likelihood at one f, and its derivatives by f and by the sharpness.

    Minus its Hessian by f is, within a bag with shares s, (curvature + b residual) s s' - b residual diag(s). Its
    expectation over labels, the Fisher information, is curvature s s': never negative, of rank one for every bag.
    """

    bags: LabelledBags
    f: Floats  # (n_instances,)
    maxima: Floats  # (n_bags,), g
    shares: Floats  # (n_instances,), dg / df
    log_likelihood: float
    residuals: Floats  # (n_bags,), the derivative by g
    curvatures: Floats  # (n_bags,), minus the second derivative by g

    def spread(self, values: Floats) -> Floats:
        """Return values of bags repeated for their instances."""
        return np.repeat(values, np.diff(self.bags.offsets), axis=0)

    def averages(self, values: Floats) -> Floats:
        """Return the mean of values of instances by their shares, (n_bags,)."""
        return np.add.reduceat(self.shares * values, self.bags.offsets[:-1])

    @property
    def gradient(self) -> Floats:
        """The derivative by f, (n_instances,)."""
        return self.spread(self.residuals) * self.shares

    @property
    def outer_weights(self) -> Floats:
        """How much s s' there is in minus the exact Hessian, (n_bags,)."""
        return self.curvatures + self.bags.sharpness * self.residuals

    @property
    def diagonal_weights(self) -> Floats:
        """The diagonal matrix in minus the exact Hessian, (n_instances,)."""
        return -self.bags.sharpness * self.gradient

    def hessian_times(self, values: Floats) -> Floats:
        """Return minus the exact Hessian times a matrix (n_instances, any number) or a vector."""
        shares, diagonal = (each.reshape(-1, *[1] * (values.ndim - 1)) for each in (self.shares, self.diagonal_weights))
        averages = np.add.reduceat(shares * values, self.bags.offsets[:-1], axis=0)
        outer = self.outer_weights.reshape(-1, *[1] * (values.ndim - 1))
        return shares * self.spread(outer * averages) + diagonal * values

    @property
    def maxima_by_sharpness(self) -> Floats:
        """The derivative of g by the sharpness, (n_bags,)."""
        return (self.averages(self.f) - self.maxima) / self.bags.sharpness

    @property
    def shares_by_sharpness(self) -> Floats:
        """The derivative of the shares by the sharpness, (n_instances,)."""
        return self.shares * (self.f - self.spread(self.averages(self.f)))

    @property
    def gradient_by_sharpness(self) -> Floats:
        """The derivative of ``gradient`` by the sharpness at fixed f, (n_instances,)."""
        by_maxima = self.spread(self.curvatures * self.maxima_by_sharpness) * self.shares
        return self.spread(self.residuals) * self.shares_by_sharpness - by_maxima

    @property
    def curvatures_by_maxima(self) -> Floats:
        """The derivative of the curvatures by g, (n_bags,)."""
        return self.curvatures * (1 - 2 * expit(self.maxima))
