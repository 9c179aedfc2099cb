"""Fitting models of single instances for values of bags, see `gmil.targets.attention`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gmil.targets.losses import loss_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.targets.losses import Loss
    from gmil.weighted.fitting import Learning

_STEPS = 60
_TOLERANCE = 1e-5
_PRIOR = np.array([3.0, 10.0])
"""One over the variance of coefficients of gates, and of values: rows are of length three, so that values, which are
standardised, have a prior variance of about one, and gates may differ by more."""
_CURVATURE = 1.0
"""Where the curvature of gates starts, and the middle of its prior. Values of instances that tell are spread as those
of bags, with a variance of one, and those of others with a third of that: it is half the difference of one over both.
"""
_CURVATURE_PRIOR = 4.0
"""One over the variance of the curvature."""


class AttentionFit(NamedTuple):
    """Gates and values of instances."""

    coefficients: Floats  # (n_columns, 2): of gates, and of values
    intercept: float  # of values
    curvature: float = 0.0  # of gates, over the square of values

    def values(self, features: Any, offsets: Integers) -> Floats:
        """Return the values of bags, (n_bags,)."""
        gates, values = _gates_and_values(features, *self)
        weights = _shares(gates, offsets)
        return np.asarray(np.add.reduceat(weights * values, offsets[:-1]))


class FoldFits(NamedTuple):
    """Fits to several choices of bags, one after the other, for every problem."""

    coefficients: Floats  # (n_columns, 2, n_choices, n_problems)
    intercepts: Floats  # (2, n_choices, n_problems)
    curvatures: Floats  # (n_choices, n_problems)


def fit_folds(
    features: Any, offsets: Integers, inside: Sequence[Booleans], learning: Learning, *, curved: bool
) -> FoldFits:
    """Fit models to the bags inside, for each of several choices; the last of them are all bags.

    Parameters
    ----------
    features : array of shape (n_instances, n_columns)
    offsets : array of shape (n_bags + 1,)
    inside : sequence of arrays of shape (n_bags,)
    learning : Learning
    curved : bool
        Let gates bend with values where that predicts bags better that were left out.
    """
    parts = [_Part.of(features, offsets, rows) for rows in inside]
    problems = [_fit_problem(parts, learning, problem, curved=curved) for problem in range(learning.goals.shape[1])]
    return FoldFits(
        np.stack([np.stack([fit.coefficients for fit in fits], axis=2) for fits in problems], axis=3),
        np.array([[[0.0, fit.intercept] for fit in fits] for fits in problems]).T,
        np.array([[fit.curvature for fit in fits] for fits in problems]).T,
    )


class _Part(NamedTuple):
    """The bags that a fit learns from, and those that it does not."""

    rows: Booleans
    features: Any
    offsets: Integers
    others: tuple[Any, Integers]

    @classmethod
    def of(cls, features: Any, offsets: Integers, rows: Booleans) -> _Part:
        return cls(rows, *_some(features, offsets, rows), _some(features, offsets, ~rows))


def _some(features: Any, offsets: Integers, rows: Booleans) -> tuple[Any, Integers]:
    sizes = np.diff(offsets)
    return features[np.repeat(rows, sizes)], np.concatenate([[0], np.cumsum(sizes[rows])])


def _fit_problem(parts: Sequence[_Part], learning: Learning, problem: int, *, curved: bool) -> list[AttentionFit]:
    """Fit each part; bent gates go on from straight ones, and are kept where left-out bags say so."""
    losses = [loss_of(learning, problem, part.rows) for part in parts]
    straight = [fit_attention(part.features, part.offsets, loss) for part, loss in zip(parts, losses, strict=True)]
    if not curved:
        return straight
    *folds, _ = zip(parts, losses, straight, strict=True)
    bent = [fit_attention(part.features, part.offsets, loss, start) for part, loss, start in folds]

    def left_out_loss(fits: Sequence[AttentionFit]) -> float:
        return sum(
            loss_of(learning, problem, ~part.rows)(fit.values(*part.others))[0]
            for part, fit in zip(parts[:-1], fits, strict=True)
        )

    if left_out_loss(bent) >= left_out_loss(straight[:-1]):
        return straight
    whole = parts[-1]
    return [*bent, fit_attention(whole.features, whole.offsets, losses[-1], straight[-1])]


def fit_attention(features: Any, offsets: Integers, loss: Loss, start: AttentionFit | None = None) -> AttentionFit:
    """Return gates and values of instances that predict bags.

    Coefficients have normal priors. A gate is the same for all instances at first, so that values are learnt
    from means; where single instances tell more, gates then follow.

    Parameters
    ----------
    features : array of shape (n_instances, n_columns)
    offsets : array of shape (n_bags + 1,)
    loss : callable
        Of values of bags, (n_bags,); see `gmil.targets.losses`.
    start : AttentionFit, optional
        A fit whose gates are straight, to go on from with gates that may bend.
    """
    n_columns, sizes, starts = features.shape[1], np.diff(offsets), offsets[:-1]

    def total(parameters: Floats) -> tuple[float, Floats]:
        parts, intercept, curvature = _unpacked(parameters, n_columns)
        gates, values = _gates_and_values(features, parts, intercept, curvature)
        weights = _shares(gates, offsets)
        bags = np.add.reduceat(weights * values, starts)
        value, pull = loss(bags)
        own = np.repeat(pull, sizes) * weights
        by_gates = own * (values - np.repeat(bags, sizes))
        by_values = own + 2 * curvature * values * by_gates if curvature else own
        gradient = features.T @ np.column_stack([by_gates, by_values]).astype(features.dtype) + _PRIOR * parts
        away, slope = float((_PRIOR * parts**2).sum()) / 2, np.append(gradient.ravel(), by_values.sum())
        if start is None:
            return value + away, slope
        beyond = curvature - _CURVATURE
        away += _CURVATURE_PRIOR * beyond**2 / 2
        return value + away, np.append(slope, by_gates @ values**2 + _CURVATURE_PRIOR * beyond)

    first = np.zeros(2 * n_columns + 1)
    if start is not None:
        first = np.concatenate([start.coefficients.ravel(), [start.intercept, _CURVATURE]])
    options = {"maxiter": _STEPS, "ftol": _TOLERANCE}
    found: Any = minimize(total, first, jac=True, method="L-BFGS-B", options=options)
    return AttentionFit(*_unpacked(found.x, n_columns))


def _unpacked(parameters: Floats, n_columns: int) -> tuple[Floats, float, float]:
    """Return coefficients, intercept and curvature; parameters of straight gates have no curvature."""
    straight = len(parameters) == 2 * n_columns + 1
    curvature = 0.0 if straight else float(parameters[-1])
    return parameters[: 2 * n_columns].reshape(n_columns, 2), float(parameters[2 * n_columns]), curvature


def _gates_and_values(features: Any, coefficients: Floats, intercept: float, curvature: float) -> tuple[Floats, Floats]:
    """Return gates and values of instances, each (n_instances,)."""
    raw = np.asarray(features @ coefficients.astype(features.dtype), dtype=np.float64)
    values = raw[:, 1] + intercept
    return (raw[:, 0] + curvature * values**2 if curvature else raw[:, 0]), values


def _shares(gates: Floats, offsets: Integers) -> Floats:
    """Return the weights of instances in their bags, one in sum."""
    sizes, starts = np.diff(offsets), offsets[:-1]
    weights = np.exp(gates - np.repeat(np.maximum.reduceat(gates, starts), sizes))
    return np.asarray(weights / np.repeat(np.add.reduceat(weights, starts), sizes))
