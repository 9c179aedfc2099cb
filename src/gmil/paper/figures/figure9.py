"""Figure 9: seconds over the number of bags, GMIL and MI-SVM, both measured up to what ends in a budget."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.paper.events import LABELS, Videos, load_videos, methods
from gmil.paper.runs import environment
from gmil.paper.runs.execution import one_line
from gmil.safety.processes import bound
from gmil.scale import LazyBags

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

COMPARED = ("gmil", "mi-svm-witness")
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)


def measure_figure9(
    source: str | os.PathLike[str],
    *,
    minutes: float = 30.0,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure both methods on ever more bags and return their curves; JSON can say all of it.

    What is measured is learning all events from data on disk: GMIL does so in one fit, MI-SVM in one for each event.
    Every measurement is a process of its own, which is ended when the time is over; each method has half of it.

    Parameters
    ----------
    source : str or path
        As in `gmil.paper.events.load_videos`.
    minutes : float
        The time for everything.
    seed : int
        The seed of the choice of bags, and of the methods.
    progress : callable, optional
        Called with a sentence before every measurement.
    """
    videos = load_videos(source)
    numbers = sorted({max(2 * len(np.unique(videos.shown)), round(share * len(videos.shown))) for share in SHARES})
    numbers = [number for number in numbers if number <= len(videos.shown)]
    curves = [_curve(name, str(source), videos, numbers, 30 * minutes, seed, progress) for name in COMPARED]
    return {
        "experiment": "figure9",
        "title": "Figure 9: seconds over the number of bags",
        "dataset": videos.name,
        "minutes": minutes,
        "seed": seed,
        "curves": curves,
        "notes": _notes(curves, minutes),
        "failures": [],
        **environment.as_facts(),
    }


def _curve(
    name: str,
    source: str,
    videos: Videos,
    numbers: list[int],
    budget: float,
    seed: int,
    progress: Callable[[str], None] | None,
) -> dict[str, Any]:
    points: list[dict[str, Any]] = []
    deadline = time.monotonic() + budget
    stopped = None
    for number in numbers:
        if progress is not None:
            progress(f"{LABELS[name]}, {number} bags")
        found = in_own_process(name, source, number, seed, deadline - time.monotonic())
        if "seconds" not in found:
            stopped = {"bags": number, "reason": found["reason"]}
            break
        points.append({"bags": number, "instances": videos.some(number, seed).bags.n_instances, **found})
    return {"method": name, "label": LABELS[name], "points": points, "stopped": stopped}


def in_own_process(name: str, source: str, n_bags: int, seed: int, limit: float) -> dict[str, Any]:
    """Return the seconds that a method takes, or the reason why it has none."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=bound(_report), args=(sender, name, source, n_bags, seed), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(max(0.0, limit)):
            return {"reason": "the time limit was reached"}
        found: dict[str, Any] = receiver.recv()
    except EOFError:
        process.join()
        return {"reason": f"its process ended with code {process.exitcode}, perhaps for want of memory"}
    else:
        return found
    finally:
        process.kill()
        process.join()


def _report(sender: Any, name: str, source: str, n_bags: int, seed: int) -> None:
    try:
        sender.send(learn_events(name, source, n_bags, seed))
    except Exception as error:  # what a method raises is up to the method
        sender.send({"reason": one_line(error)})


def learn_events(name: str, source: str, n_bags: int, seed: int) -> dict[str, Any]:
    """Read some videos and learn all their events; return seconds of the clock and of the processor."""
    load_videos(source).some(2, seed)  # what a first use costs is no part of it
    start, cpu = time.perf_counter(), time.process_time()
    videos = load_videos(source).some(n_bags, seed)
    estimator = methods()[name]
    if name == "mi-svm-witness":
        bags = videos.bags.load() if isinstance(videos.bags, LazyBags) else videos.bags
        for y in videos.indicator.T:
            estimator.set_params(random_state=seed).fit(bags, y)
    else:
        estimator.set_params(random_state=seed).fit(videos.bags, videos.shown)
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}


def _notes(curves: list[dict[str, Any]], minutes: float) -> list[str]:
    notes = [
        "Wall-clock training time for all events from data on disk, reading included; every point is measured in a "
        "process of its own.",
    ]
    for curve in curves:
        if curve["stopped"] is not None:
            stopped = curve["stopped"]
            notes.append(
                f"{curve['label']} was not timed with {stopped['bags']} bags: {stopped['reason']} "
                f"({minutes / 2:g} minutes for each method)."
            )
    return notes


def flat_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return Figure 9 with one line per point, for CSV."""
    return [{"method": curve["method"], **point} for curve in summary["curves"] for point in curve["points"]]
