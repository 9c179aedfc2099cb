"""`gmil.weighted.noisy_or.fit_noisy_or` in PyTorch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from gmil.engine.torch.kernels import segments
from gmil.engine.torch.lbfgs import minimize
from gmil.engine.torch.tensors import full_precision, to_device, to_host
from gmil.weighted.noisy_or import LEAST_HAZARD, STEPS, TOLERANCE

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers
    from gmil.engine.torch.kernels import Segments
    from gmil.weighted.noisy_or import Jobs


def fit_on_device(features: torch.Tensor, offsets: Integers, jobs: Jobs) -> tuple[Floats, Floats]:
    """Return the coefficients and the intercept of every job, (n_jobs, n_columns + 1), and the loss there."""
    device = features.device
    # A bag without weight takes no part: the instances of all jobs stay where they are.
    weights, positive = to_device(jobs.weights.T, device), to_device(jobs.positive.T, device)
    loss = functools.partial(
        _loss, features=features, bags=segments(offsets, device), positive=positive, weights=weights
    )
    with full_precision():
        found = minimize(loss, to_device(jobs.start, device), max_iter=STEPS, tolerance=TOLERANCE)
        return to_host(found), to_host(loss(found)[0])


def _loss(
    parameters: torch.Tensor, features: torch.Tensor, bags: Segments, positive: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the negative log-posterior of every job, (n_jobs,), and its gradient, (n_jobs, n_columns + 1)."""
    coefficients, intercepts = parameters[:, :-1], parameters[:, -1]
    scores = (features @ coefficients.mT.to(features.dtype)).double() + intercepts  # (n_instances, n_jobs)
    hazards = bags.sum(torch.logaddexp(scores, scores.new_zeros(()))).clamp_(min=LEAST_HAZARD)
    chances = -torch.expm1(-hazards)
    likelihood = torch.where(positive, chances.log(), -hazards)
    slopes = weights * torch.where(positive, torch.exp(-hazards) / chances, -1.0)
    pull = -slopes[bags.bag_of] * scores.sigmoid_()
    value = coefficients.square().sum(dim=1) / 2 - (weights * likelihood).sum(dim=0)
    gradient = (features.mT @ pull.to(features.dtype)).mT.double() + coefficients
    return value, torch.cat([gradient, pull.sum(dim=0)[:, None]], dim=1)
