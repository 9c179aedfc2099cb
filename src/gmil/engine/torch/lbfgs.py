"""`gmil.engine.lbfgs` in PyTorch: on a GPU the host seldom waits."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from gmil.engine.lbfgs import SPARE, Rules, State, begin, step

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS_BETWEEN_LOOKS = 8


def minimize(
    function: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    start: torch.Tensor,
    *,
    max_iter: int,
    tolerance: float,
) -> torch.Tensor:
    """Return where the value of every job no longer falls by more than ``tolerance`` of itself in a step.

    Parameters
    ----------
    function : callable
        Takes parameters, (n_jobs, n_parameters), and returns values, (n_jobs,), and gradients.
    start : (n_jobs, n_parameters), in double precision
    max_iter : int
        The most steps of a job.
    tolerance : float
    """
    rules = Rules(max_iter, tolerance, torch.linalg.solve_triangular)
    advance: Callable[[State], State] = functools.partial(step, function, rules=rules)
    state = begin(start, *function(start))
    if start.is_cuda:
        advance = _recorded(advance, state)
    for number in range(max_iter + SPARE):
        state = advance(state)
        if number % _STEPS_BETWEEN_LOOKS == _STEPS_BETWEEN_LOOKS - 1 and bool(state.has_ended.all()):
            break
    return state.x


def _recorded(advance: Callable[[State], State], state: State) -> Callable[[State], State]:
    """Return a step that is recorded on the GPU: to send a hundred small kernels one by one takes longer than they do.

    It goes on from where it was, whatever state it is given.
    """
    held = State(*(part.clone() for part in state))
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        advance(held)  # once before it is recorded, so that libraries have what they need
        graph.capture_begin(capture_error_mode="thread_local")
        for part, new in zip(held, advance(held), strict=True):
            part.copy_(new)
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)

    def replay(_: State) -> State:
        graph.replay()
        return held

    return replay
