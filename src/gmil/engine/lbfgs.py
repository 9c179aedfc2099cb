"""L-BFGS for many smooth functions at once, the jobs: every step is a few operations for all of them.

The steps are the same for arrays and for tensors of PyTorch; `gmil.engine.torch.lbfgs` runs them on a GPU.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.engine.resident import namespace

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.engine.arrays import Floats, Integers

_HISTORY = 10
_SUFFICIENT = 1e-4
"""A step must lower the value by so much of what the slope promises."""
SPARE = 20
"""Steps that may be taken back beside those that count."""


class State(NamedTuple):
    """Where the jobs are, and the last steps and changes of gradients, the newest last."""

    x: Any  # (n_jobs, n_parameters)
    value: Any  # (n_jobs,)
    gradient: Any  # (n_jobs, n_parameters)
    steps: Any  # (n_jobs, history, n_parameters)
    changes: Any  # (n_jobs, history, n_parameters)
    length: Any  # (n_jobs,): how far to go along the next direction
    n_steps: Any  # (n_jobs,)
    has_ended: Any  # (n_jobs,)


class Rules(NamedTuple):
    """When a job ends, and what solves triangular systems where its numbers lie."""

    max_iter: int
    tolerance: float
    solve: Callable[..., Any]  # solve(matrices, columns, upper=...)


def minimize(
    function: Callable[[Integers, Floats], tuple[Floats, Floats]], start: Floats, *, max_iter: int, tolerance: float
) -> Floats:
    """Return where the value of every job no longer falls by more than ``tolerance`` of itself in a step.

    Parameters
    ----------
    function : callable
        Takes the numbers of some jobs and their parameters, (n_some, n_parameters); returns values, (n_some,), and
        gradients. Jobs that have ended are no longer asked for.
    start : array of shape (n_jobs, n_parameters)
    max_iter : int
        The most steps of a job.
    tolerance : float

    Examples
    --------
    >>> goals = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> def squares(jobs, x):
    ...     return np.square(x - goals[jobs]).sum(axis=1), 2 * (x - goals[jobs])
    >>> minimize(squares, goals * 0, max_iter=20, tolerance=1e-9).round(6)
    array([[1., 2.],
           [3., 4.]])
    """
    found, jobs = start.copy(), np.arange(len(start))
    rules, state = Rules(max_iter, tolerance, _solve), begin(start, *function(jobs, start))
    for _ in range(max_iter + SPARE):
        if state.has_ended.any():
            goes_on = ~state.has_ended
            found[jobs] = state.x
            jobs, state = jobs[goes_on], State(*(part[goes_on] for part in state))
        if not len(jobs):
            break
        state = step(functools.partial(function, jobs), state, rules)
    found[jobs] = state.x
    return found


def _solve(matrices: Floats, columns: Floats, *, upper: bool) -> Floats:  # noqa: ARG001
    return np.linalg.solve(matrices, columns)  # ten by ten: what is known of zeros would save nothing


def begin(start: Any, value: Any, gradient: Any) -> State:
    """Return the state before the first step."""
    xp = namespace(start)
    past = xp.stack([xp.zeros_like(start)] * _HISTORY, 1)
    sizes = xp.sqrt(xp.square(gradient).sum(1))
    return State(start, value, gradient, past, past, 1 / xp.clip(sizes, 1, None), xp.zeros_like(value), sizes == 0)


def step(function: Callable[[Any], tuple[Any, Any]], state: State, rules: Rules) -> State:
    """Try one step of every job; one that does not lower the value enough is tried again, half as long."""
    xp = namespace(state.x)
    move = -state.length[:, None] * _newton(state, rules)
    x = state.x + move
    value, gradient = function(x)
    promised = (state.gradient * move).sum(1)
    is_taken = ~state.has_ended & (value <= state.value + _SUFFICIENT * promised)
    change = gradient - state.gradient
    is_curved = is_taken & ((move * change).sum(1) > 1e-10 * xp.square(change).sum(1))
    n_steps = state.n_steps + is_taken
    gain = (state.value - value) / xp.clip(xp.maximum(abs(state.value), abs(value)), 1, None)
    is_flat = is_taken & ((gain <= rules.tolerance) | (xp.amax(abs(gradient), 1) <= rules.tolerance))
    is_lost = ~is_taken & (state.length < 1e-10)
    return State(
        xp.where(is_taken[:, None], x, state.x),
        xp.where(is_taken, value, state.value),
        xp.where(is_taken[:, None], gradient, state.gradient),
        _appended(state.steps, move, is_curved),
        _appended(state.changes, change, is_curved),
        xp.where(is_taken, 1.0, state.length / 2),
        n_steps,
        state.has_ended | is_flat | is_lost | (n_steps >= rules.max_iter),
    )


def _appended(past: Any, newest: Any, where: Any) -> Any:
    xp = namespace(past)
    return xp.where(where[:, None, None], xp.concatenate([past[:, 1:], newest[:, None]], 1), past)


def _newton(state: State, rules: Rules) -> Any:
    """Return gradients times the inverse Hessian of the last steps, in its compact form (Byrd, Nocedal, Schnabel 1994).

    Steps that were never taken are zero and drop out.
    """
    xp = namespace(state.x)
    S, Y, g = state.steps, state.changes, state.gradient[..., None]
    products, squares = S @ Y.swapaxes(1, 2), Y @ Y.swapaxes(1, 2)
    inner = (S * Y).sum(2)
    newest = inner[:, -1]
    scale = xp.where(newest > 0, newest / xp.clip(squares[:, -1, -1], 1e-300, None), 1.0)[:, None, None]
    # A step that was never taken has a row of zeros: a one in the diagonal lets the system be solved.
    diagonal = xp.tril(xp.triu(xp.ones_like(products)))
    upper = xp.triu(products) + diagonal * (inner == 0)[..., None]
    along = rules.solve(upper, S @ g, upper=True)
    middle = inner[..., None] * along + scale * (squares @ along - Y @ g)
    back = rules.solve(upper.swapaxes(1, 2), middle, upper=False)
    return (scale * (g - Y.swapaxes(1, 2) @ along) + S.swapaxes(1, 2) @ back)[..., 0]
