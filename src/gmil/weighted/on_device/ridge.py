"""`gmil.weighted.model.fit_candidate` for many views at once: kernels of bags never leave the device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from gmil.engine.resident import resident
from gmil.engine.torch.tensors import full_precision, to_device, to_host
from gmil.weighted.model import Candidate, View, column_units, dissimilarity
from gmil.weighted.ridge import LEAST_LEFT, PENALTIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats

_STREAMS = 8
_ENTRIES_AT_ONCE = 1 << 27
"""Kernels of so many numbers are decomposed together, 1 GiB in double precision."""


def fit_candidates(
    views: Iterable[tuple[int, str, Any, str]],
    targets: Floats,
    weights: Floats,
    backend: Backend,
    folds: Sequence[Booleans] = (),
) -> list[Candidate]:
    """Fit many views on training bags.

    Parameters
    ----------
    views : iterable of tuple
        The number of the scaling, the kind, the vectors of bags and the kernel of every view.
    targets : array of shape (n_bags, n_problems)
        1 and -1.
    weights : array of shape (n_bags,)
    backend : Backend
        One that runs in PyTorch.
    folds : sequence of arrays of shape (n_bags,)
        Which bags each tests, see `gmil.weighted.ridge.fit_ridge`.
    """
    fitted, n_at_once = [], max(1, _ENTRIES_AT_ONCE // len(weights) ** 2)
    prepared = list(_prepared(views, backend))
    for start in range(0, len(prepared), n_at_once):
        some = prepared[start : start + n_at_once]
        distances = torch.stack([_distances(view, backend) for view in some])
        fitted += _fit_batch(some, distances, targets, weights, folds)
    return fitted


def _prepared(views: Iterable[tuple[int, str, Any, str]], backend: Backend) -> Iterable[View]:
    """Yield views with their points on the device; two kernels on the same vectors share them."""
    last: Any = None
    view: Any = None
    for space, kind, features, kernel in views:
        if features is not last:
            there = resident(features, backend)
            view = View(space, kind, *column_units(there), kernel, None, 1.0, np.empty((0, 0)))
            columns = view.standardised(there)
            last, view = features, view.limited(columns)._replace(points=columns)
        yield view._replace(space=space, kind=kind, kernel=kernel)


def _distances(view: View, backend: Backend) -> torch.Tensor:
    points: Any = view.points
    with full_precision():
        return cast("Any", dissimilarity(points, points, view.kernel, backend))


def _fit_batch(
    views: list[View], distances: torch.Tensor, targets: Floats, weights: Floats, folds: Sequence[Booleans]
) -> list[Candidate]:
    device = distances.device
    widths = _median_widths(distances)
    kernels = torch.exp(distances / -widths[:, None, None]).double()
    weight, target = to_device(weights, device), to_device(targets, device)
    shares = weight / weight.sum()
    means = kernels @ shares
    grand = means @ shares
    centred = kernels - means[:, :, None] - means[:, None, :] + grand[:, None, None]
    trace = centred.diagonal(dim1=1, dim2=2).mean(dim=1)
    trace = torch.where(trace > 0, trace, 1.0)
    dual, left_out, penalties, unseen = _fit_ridge(centred / trace[:, None, None], target, weight, folds)
    # Centring is linear in the kernel, so it is folded into coefficients and intercepts.
    total = dual.sum(dim=1)
    coefficients = (dual - shares[:, None] * total[:, None]) / trace[:, None, None]
    constant = (grand[:, None] * total - (means[:, None] @ dual)[:, 0]) / trace[:, None]
    tables = coefficients, left_out, shares @ target + constant, penalties, trace, unseen, widths.double()
    return [
        Candidate(view._replace(width=float(width), coefficients=own), out, constants, chosen, float(scale), others)
        for view, own, out, constants, chosen, scale, others, width in zip(views, *map(to_host, tables), strict=True)
    ]


def _median_widths(distances: torch.Tensor) -> torch.Tensor:
    """Return the median distance between two different bags in every view, or 1 where all are alike."""
    n_views, n = distances.shape[:2]
    if n < 2:
        return distances.new_ones(n_views)
    # Without the diagonal every pair is there twice, which leaves the median as it is.
    pairs = distances.flatten(1)[:, 1:].reshape(n_views, n - 1, n + 1)[:, :, :-1].flatten(1).sort(dim=1).values
    middle = pairs.shape[1] // 2  # the number of pairs is even
    widths = pairs[:, middle - 1 : middle + 1].mean(dim=1)
    return torch.where(widths > 0, widths, 1.0)


def _eigh(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ascending eigenvalues, and vectors, of symmetric matrices; one alone would leave a GPU idle."""
    if not matrices.is_cuda or len(matrices) == 1:
        values, vectors = torch.linalg.eigh(matrices)
        return values, vectors
    values, vectors = torch.empty_like(matrices[:, 0]), torch.empty_like(matrices)
    ready = torch.cuda.current_stream().record_event()

    def decompose(first: int) -> None:
        stream = torch.cuda.Stream(matrices.device)
        stream.wait_event(ready)
        with torch.cuda.stream(stream):
            for number in range(first, len(matrices), _STREAMS):
                values[number], vectors[number] = torch.linalg.eigh(matrices[number])
        stream.synchronize()

    with ThreadPoolExecutor(_STREAMS) as pool:
        list(pool.map(decompose, range(_STREAMS)))
    return values, vectors


def _fit_ridge(
    kernels: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, folds: Sequence[Booleans]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return coefficients and left out predictions, (n_views, n, n_targets), penalties, and predictions by folds.

    Penalties are (n_views, n_targets); those of predictions by folds are chosen on bags of other folds. See
    `gmil.weighted.ridge.fit_ridge`; kernels are (n_views, n, n).
    """
    root, shares = weights.sqrt(), weights / weights.sum()
    eigenvalues, vectors = _eigh(root[:, None] * kernels * root)
    apart = targets - shares @ targets
    rotated = vectors.mT @ (root[:, None] * apart)  # (n_views, n, n_targets)
    penalties = to_device(PENALTIES, kernels.device) * weights.sum()
    eigenvalues = eigenvalues.clamp_(min=0)[:, :, None]
    shrink = eigenvalues / (eigenvalues + penalties)  # (n_views, n, n_penalties)
    shrunk = (shrink[..., None] * rotated[:, :, None]).flatten(2)
    fits = (vectors @ shrunk / root[:, None]).unflatten(2, (len(penalties), -1))
    leverage = vectors.square() @ shrink + shares[:, None]
    residuals = (apart[:, None] - fits) / (1 - leverage).clamp(min=LEAST_LEFT)[..., None]
    errors = torch.einsum("b,vbpt->vpt", shares, residuals.square())
    best = errors.argmin(dim=1)  # (n_views, n_targets)
    chosen = penalties[best]
    dual = root[:, None] * (vectors @ (rotated / (eigenvalues + chosen[:, None])))
    left_out = targets - _at(residuals, best)
    unseen = left_out.clone()
    for test in folds:
        rows = torch.from_numpy(np.flatnonzero(test)).to(kernels.device)
        own = residuals[:, rows]
        elsewhere = (errors - torch.einsum("b,vbpt->vpt", shares[rows], own.square())).argmin(dim=1)
        unseen[:, rows] = targets[rows] - _at(own, elsewhere)
    return dual, left_out, chosen, unseen


def _at(residuals: torch.Tensor, penalties: torch.Tensor) -> torch.Tensor:
    """Return the residuals, (n_views, n, n_targets), at the penalties of these numbers, (n_views, n_targets)."""
    place = penalties[:, None, None].expand(-1, residuals.shape[1], 1, -1)
    return residuals.gather(2, place)[:, :, 0]
