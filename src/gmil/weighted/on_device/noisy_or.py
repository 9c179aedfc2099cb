"""`gmil.weighted.noisy_or.fit_noisy_or` for many choices of bags and many problems at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from gmil.engine.torch.kernels import segments
from gmil.engine.torch.lbfgs import minimize
from gmil.engine.torch.tensors import full_precision, to_device, to_host
from gmil.weighted.noisy_or import LEAST_HAZARD, STEPS, TOLERANCE, balanced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.engine.torch.kernels import Segments


def fit_noisy_or_jobs(
    features: torch.Tensor, offsets: Integers, inside: Sequence[Booleans], positive: Booleans, weights: Floats
) -> list[tuple[Floats, Floats]]:
    """Return coefficients, (n_columns, n_problems), and intercepts, (n_problems,), for every choice of bags.

    Parameters
    ----------
    features : torch.Tensor of shape (n_instances, n_columns)
    offsets : array of shape (n_bags + 1,)
    inside : sequence of arrays of shape (n_bags,)
        The bags that a fit learns from.
    positive : array of shape (n_bags, n_problems)
    weights : array of shape (n_bags,)
    """
    bags, device = segments(offsets, features.device), features.device
    jobs = [_weights_of(some, own, weights) for some in inside for own in positive.T]
    # A bag without weight takes no part: the instances of all jobs stay where they are.
    weight = to_device(np.stack(jobs, axis=1), device)  # (n_bags, n_jobs)
    is_positive = to_device(np.tile(positive, (1, len(inside))), device)
    sizes = np.diff(offsets)
    levels = np.repeat([np.log(np.log(2) / sizes[some].mean()) for some in inside], positive.shape[1])
    can_learn = np.array([own.any() for own in jobs])
    start = np.zeros((len(jobs), features.shape[1] + 1))
    start[:, -1] = np.where(can_learn, levels, 0.0)

    def loss(parameters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return _loss(parameters, features, bags, is_positive, weight)

    with full_precision():
        found = to_host(minimize(loss, to_device(start, device), max_iter=STEPS, tolerance=TOLERANCE))
    found = np.where(can_learn[:, None], found, 0.0).reshape(len(inside), positive.shape[1], -1)
    return [(own[:, :-1].T, own[:, -1]) for own in found]


def _weights_of(inside: Booleans, positive: Booleans, weights: Floats) -> Floats:
    """Return balanced weights of the bags that are inside; none where they are all of one class."""
    found = np.zeros(len(weights))
    if positive[inside].any() and not positive[inside].all():
        found[inside] = balanced(weights[inside], positive[inside])
    return found


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
