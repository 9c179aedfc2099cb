"""L-BFGS for many smooth functions at once: every step is a few kernels for all of them, and the host seldom waits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
    """Takes parameters, (n_jobs, n_parameters), and returns values, (n_jobs,), and gradients."""

_HISTORY = 10
_SUFFICIENT = 1e-4
"""A step must lower the value by so much of what the slope promises."""
_STEPS_BETWEEN_LOOKS = 8
_SPARE = 20
"""Steps that may be taken back beside those that count."""


class _State(NamedTuple):
    """Where the jobs are, and the last steps and changes of gradients, the newest last."""

    x: torch.Tensor  # (n_jobs, n_parameters)
    value: torch.Tensor  # (n_jobs,)
    gradient: torch.Tensor  # (n_jobs, n_parameters)
    steps: torch.Tensor  # (n_jobs, history, n_parameters)
    changes: torch.Tensor  # (n_jobs, history, n_parameters)
    length: torch.Tensor  # (n_jobs,): how far to go along the next direction
    n_steps: torch.Tensor  # (n_jobs,)
    has_ended: torch.Tensor  # (n_jobs,)


def minimize(function: Function, start: torch.Tensor, *, max_iter: int, tolerance: float) -> torch.Tensor:
    """Return where the value of every job no longer falls by more than ``tolerance`` of itself in a step.

    Parameters
    ----------
    function : callable
    start : (n_jobs, n_parameters), in double precision
    max_iter : int
        The most steps of a job.
    tolerance : float
    """
    step = functools.partial(_step, function, max_iter=max_iter, tolerance=tolerance)
    state = _begin(function, start)
    advance = _recorded(step, state) if start.is_cuda else step
    for number in range(max_iter + _SPARE):
        state = advance(state)
        if number % _STEPS_BETWEEN_LOOKS == _STEPS_BETWEEN_LOOKS - 1 and bool(state.has_ended.all()):
            break
    return state.x


def _recorded(step: Callable[[_State], _State], state: _State) -> Callable[[_State], _State]:
    """Return a step that is recorded on the GPU: to send a hundred small kernels one by one takes longer than they do.

    It goes on from where it was, whatever state it is given.
    """
    held = _State(*(part.clone() for part in state))
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step(held)  # once before it is recorded, so that libraries have what they need
        graph.capture_begin(capture_error_mode="thread_local")
        for part, new in zip(held, step(held), strict=True):
            part.copy_(new)
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)

    def replay(_: _State) -> _State:
        graph.replay()
        return held

    return replay


def _begin(function: Function, start: torch.Tensor) -> _State:
    value, gradient = function(start)
    past = start.new_zeros((len(start), _HISTORY, start.shape[1]))
    sizes = torch.linalg.vector_norm(gradient, dim=1)
    return _State(
        start,
        value,
        gradient,
        past,
        past,
        1 / sizes.clamp(min=1),
        torch.zeros(len(start), dtype=torch.int64, device=start.device),
        sizes == 0,
    )


def _step(function: Function, state: _State, *, max_iter: int, tolerance: float) -> _State:
    """Try one step of every job; one that does not lower the value enough is tried again, half as long."""
    direction = -_newton(state)
    step = state.length[:, None] * direction
    x = state.x + step
    value, gradient = function(x)
    promised = (state.gradient * step).sum(dim=1)
    is_taken = ~state.has_ended & (value <= state.value + _SUFFICIENT * promised)
    change = gradient - state.gradient
    is_curved = is_taken & ((step * change).sum(dim=1) > 1e-10 * change.square().sum(dim=1))
    n_steps = state.n_steps + is_taken
    gain = (state.value - value) / torch.maximum(state.value.abs(), value.abs()).clamp(min=1)
    is_flat = is_taken & ((gain <= tolerance) | (gradient.abs().amax(dim=1) <= tolerance))
    is_lost = ~is_taken & (state.length < 1e-10)
    return _State(
        torch.where(is_taken[:, None], x, state.x),
        torch.where(is_taken, value, state.value),
        torch.where(is_taken[:, None], gradient, state.gradient),
        _appended(state.steps, step, is_curved),
        _appended(state.changes, change, is_curved),
        torch.where(is_taken, 1.0, state.length / 2),
        n_steps,
        state.has_ended | is_flat | is_lost | (n_steps >= max_iter),
    )


def _appended(past: torch.Tensor, newest: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    return torch.where(where[:, None, None], torch.cat([past[:, 1:], newest[:, None]], dim=1), past)


def _newton(state: _State) -> torch.Tensor:
    """Return gradients times the inverse Hessian of the last steps, in its compact form (Byrd, Nocedal, Schnabel 1994).

    Steps that were never taken are zero and drop out.
    """
    S, Y, g = state.steps, state.changes, state.gradient[..., None]
    products = S @ Y.mT
    inner = products.diagonal(dim1=1, dim2=2)
    newest = inner[:, -1]
    squares = Y @ Y.mT
    scale = torch.where(newest > 0, newest / squares[:, -1, -1].clamp(min=1e-300), 1.0)[:, None, None]
    upper = products.triu() + torch.diag_embed((inner == 0).to(g.dtype))
    along = torch.linalg.solve_triangular(upper, S @ g, upper=True)
    middle = inner[..., None] * along + scale * (squares @ along - Y @ g)
    back = torch.linalg.solve_triangular(upper.mT, middle, upper=False)
    return (scale * (g - Y.mT @ along) + S.mT @ back)[..., 0]
