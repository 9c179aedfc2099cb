"""Compare ways to compute the same thing: interleaved in one process, medians, ratios with their spread.

On a machine that others use too, only the ratio of two times taken one right after the other means something, so
every round runs every way once, and the spread is that of the ratios of the rounds. The ratio of the processor times
says the same where other programs take turns on the cores, but counts spinning threads as work.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


SETTLE = 0.02
"""Seconds between two runs: the threads of the last one spin for a while before they sleep."""


AT_LEAST = 0.05
"""Seconds that one measurement takes at least."""


@dataclass
class Way:
    """One way to compute something; ``threads`` limits BLAS and OpenMP while it runs."""

    name: str
    run: Callable[[], Any]
    threads: int | None = None
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    def once(self) -> None:
        """Take the mean time of as many runs as fill `AT_LEAST` seconds, one for all that take longer."""
        with threadpool_limits(self.threads):
            n_runs = 0
            start, cpu_start = time.perf_counter(), time.process_time()
            while n_runs == 0 or time.perf_counter() - start < AT_LEAST:
                self.run()
                n_runs += 1
            self.seconds.append((time.perf_counter() - start) / n_runs)
            self.cpu_seconds.append((time.process_time() - cpu_start) / n_runs)


@dataclass(frozen=True)
class Comparison:
    """What a comparison found: times, and how many times faster we are than the best peer."""

    title: str
    target: float | None
    aim: float | None
    seconds: dict[str, float]
    peer: str
    ratio: float
    spread: tuple[float, float]
    cpu_ratio: float
    notes: dict[str, Any] = field(default_factory=dict)


def peers(name: str, run: Callable[[], Any], threads: Sequence[int] = (1, 2)) -> list[Way]:
    """Return the same peer with one and with two threads: it is judged by the better one."""
    return [Way(f"{name}, {n} thread{'s' if n > 1 else ''}", run, n) for n in threads]


def compare(
    title: str,
    ours: Way,
    others: Sequence[Way],
    *,
    also: Sequence[Way] = (),
    rounds: int = 7,
    target: float | None = None,
    aim: float | None = None,
    notes: dict[str, Any] | None = None,
) -> Comparison:
    """Run everything in turn; our ratio is against the peer with the smallest median, ``also`` goes into the notes."""
    ways = [ours, *others, *also]
    for way in ways:
        way.once()
        way.seconds.clear()
        way.cpu_seconds.clear()
    for number in range(rounds):
        for way in ways if number % 2 == 0 else reversed(ways):
            gc.collect()
            time.sleep(SETTLE)
            way.once()
    best = min(others, key=lambda way: statistics.median(way.seconds))
    ratios = sorted(theirs / mine for theirs, mine in zip(best.seconds, ours.seconds, strict=True))
    found = Comparison(
        title,
        target,
        aim,
        {way.name: statistics.median(way.seconds) for way in ways},
        best.name,
        statistics.median(ratios),
        (ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]),
        min(statistics.median(way.cpu_seconds) for way in others) / statistics.median(ours.cpu_seconds),
        {**(notes or {}), **{way.name: f"{_ratio(way, ours):.1f}x" for way in also}},
    )
    print(line(found), flush=True)
    return found


def _ratio(way: Way, ours: Way) -> float:
    return statistics.median(way.seconds) / statistics.median(ours.seconds)


def line(found: Comparison) -> str:
    low, high = found.spread
    ours = next(iter(found.seconds.values()))
    return (
        f"{found.title}: {found.ratio:.1f}x ({low:.1f} to {high:.1f}) against {found.peer}, "
        f"{1e3 * ours:.2f} ms, processor time {found.cpu_ratio:.1f}x; "
        f"target {found.target}, aim {found.aim}; {found.notes}"
    )


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next((row.split(":")[1].strip() for row in lines if row.startswith("model name")), model)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processor": model, "cores": cores, "python": platform.python_version(), "numpy": np.__version__}


def write(found: Sequence[Comparison], stem: Path, about: dict[str, Any]) -> None:
    """Write ``stem.json`` and ``stem.md``."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    record = {"machine": machine(), **about, "comparisons": [vars(one) for one in found]}
    stem.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    stem.with_suffix(".md").write_text(as_markdown(found, record), encoding="utf-8")


def as_markdown(found: Sequence[Comparison], record: dict[str, Any]) -> str:
    head = "; ".join(f"{key}: {value}" for key, value in record.items() if key != "comparisons")
    table = [
        "| what | ours | best peer | its time | ratio | middle half | processor time | target | aim | notes |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_row(one) for one in found),
    ]
    return "\n".join([head, "", *table, ""])


def _row(one: Comparison) -> str:
    ours = next(iter(one.seconds.values()))
    cells = [
        one.title,
        f"{1e3 * ours:.2f} ms",
        one.peer,
        f"{1e3 * one.seconds[one.peer]:.2f} ms",
        f"{one.ratio:.1f}x",
        f"{one.spread[0]:.1f} to {one.spread[1]:.1f}",
        f"{one.cpu_ratio:.1f}x",
        str(one.target or ""),
        str(one.aim or ""),
        "; ".join(f"{key} {value}" for key, value in one.notes.items()),
    ]
    return f"| {' | '.join(cells)} |"
