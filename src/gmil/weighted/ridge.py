"""Kernel ridge regression with leave-one-out (or leave-group-out) predictions in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.engine.eigen import eigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers

PENALTIES = np.logspace(-4, 3, 22) / 10
"""Penalties to choose from, per training bag, for kernels whose trace is the number of bags."""

LEAST_LEFT = 1e-6
"""The least that a bag leaves to the others: one that decides about itself alone has no prediction."""


class Centering(NamedTuple):
    """What moves a kernel to the weighted mean of the training bags and gives it trace n."""

    means: Floats  # (n_train,), mean kernel of each training bag with all
    grand_mean: float
    trace: float


class RidgeFit(NamedTuple):
    """A kernel ridge regression of several targets."""

    coefficients: Floats  # (n_train, n_targets)
    intercepts: Floats  # (n_targets,)
    left_out: Floats  # (n_train, n_targets): predictions for each bag (or group) by all the others
    errors: Floats  # (n_targets,): weighted mean squared error of these
    penalties: Floats  # (n_targets,)
    cross_fitted: Floats  # (n_train, n_targets): as left_out, with penalties that were chosen on bags of other folds


def center_kernel(kernel: Floats, weights: Floats) -> tuple[Floats, Centering]:
    """Return the training kernel centred and scaled, and how to do the same to new rows."""
    shares = weights / weights.sum()
    means = kernel @ shares
    centering = Centering(means, float(means @ shares), 1.0)
    centred = kernel - means[:, None] - means[None, :] + centering.grand_mean
    trace = float(np.trace(centred)) / len(kernel)
    centering = centering._replace(trace=trace if trace > 0 else 1.0)
    return (centred / centering.trace).astype(kernel.dtype, copy=False), centering


def fit_ridge(
    kernel: Floats,
    targets: Floats,
    weights: Floats,
    groups: Integers | None = None,
    folds: Sequence[Booleans] = (),
) -> RidgeFit:
    """Fit all targets at every penalty and keep, for each, the penalty with the least error on what was left out.

    Parameters
    ----------
    kernel : array of shape (n, n)
        Centred by `center_kernel` with the same weights.
    targets : array of shape (n, n_targets)
    weights : array of shape (n,)
    groups : array of shape (n,), optional
        Bags of one group are left out together.
    folds : sequence of arrays of shape (n,)
        Which bags each tests, for ``cross_fitted``; a bag that none tests is as in ``left_out``.
    """
    root = np.sqrt(weights)
    # In the precision of the kernel: penalties are far above the rounding of single precision, at half the time.
    weighted = root.astype(kernel.dtype)[:, None] * kernel * root.astype(kernel.dtype)
    eigenvalues, vectors = eigh(weighted)
    eigenvalues, vectors = eigenvalues.astype(np.float64).clip(0), vectors.astype(np.float64)
    shares = weights / weights.sum()
    intercepts = shares @ targets
    rotated = vectors.T @ (root[:, None] * (targets - intercepts))
    penalties = PENALTIES * weights.sum()
    shrink = eigenvalues[:, None] / (eigenvalues[:, None] + penalties)  # (n, n_penalties)
    # All penalties and targets in one product.
    shrunk = (shrink[:, :, None] * rotated[:, None, :]).reshape(len(root), -1)
    fits = (vectors @ shrunk / root[:, None]).reshape(len(root), len(penalties), -1)
    residuals = (targets - intercepts)[:, None, :] - fits
    residuals = _left_out_residuals(residuals, vectors, shrink, root, shares, groups)
    losses = shares[:, None, None] * residuals**2
    errors = losses.sum(axis=0)  # (n_penalties, n_targets)
    best = errors.argmin(axis=0)
    columns = np.arange(targets.shape[1])
    dual = vectors @ (rotated / (eigenvalues[:, None] + penalties[best]))
    left_out = targets - residuals[:, best, columns]
    cross_fitted = left_out.copy()
    for test in folds:
        elsewhere = (errors - losses[test].sum(axis=0)).argmin(axis=0)
        cross_fitted[test] = targets[test] - residuals[test][:, elsewhere, columns]
    chosen = errors[best, columns], penalties[best]
    return RidgeFit(root[:, None] * dual, intercepts, left_out, *chosen, cross_fitted)


def _left_out_residuals(
    residuals: Floats, vectors: Floats, shrink: Floats, root: Floats, shares: Floats, groups: Integers | None
) -> Floats:
    """Turn residuals of the fit into residuals of fits without the bag, or without its group.

    Residuals are (n, n_penalties, n_targets), ``shrink`` (n, n_penalties).
    """
    if groups is None:
        leverage = (vectors**2) @ shrink + shares[:, None]
        return residuals / np.maximum(1 - leverage, LEAST_LEFT)[:, :, None]
    left_out = np.empty_like(residuals)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        part, ratios = vectors[rows], root[rows][None, :] / root[rows][:, None]
        hats = np.stack([(part * factors) @ part.T for factors in shrink.T]) * ratios + shares[rows]
        # Where a group decides about itself alone, the shortest of all solutions.
        inverses = np.linalg.pinv(np.eye(len(rows)) - hats, rcond=1e-10)  # (n_penalties, n_rows, n_rows)
        left_out[rows] = np.einsum("pij,jpt->ipt", inverses, residuals[rows])
    return left_out
