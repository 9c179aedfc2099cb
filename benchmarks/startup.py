"""How long gmil takes to start, in fresh interpreters, in turn: against an empty program and against scikit-learn.

``python benchmarks/startup.py [--rounds 20]``

A shared machine changes from one second to the next: every round runs everything once, and ratios are of one round.
Processor time is beside them, because it does not count the turns of other programs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

EMPTY, SKLEARN = "python -c pass", "import sklearn.base"
GMIL = [sys.executable, "-m", "gmil"]
WAYS = {
    EMPTY: [sys.executable, "-c", "pass"],
    SKLEARN: [sys.executable, "-c", "import sklearn.base"],
    "import gmil": [sys.executable, "-c", "import gmil"],
    "gmil.GMIL": [sys.executable, "-c", "import gmil; gmil.GMIL"],
    "gmil --version": [*GMIL, "--version"],
    "gmil --help": [*GMIL, "--help"],
    "gmil methods --help": [*GMIL, "methods", "--help"],
    "first line of gmil cv musk1": [*GMIL, "cv", "musk1"],
}
TARGETS = {
    "import gmil": (SKLEARN, 1.0),
    "gmil --version": (EMPTY, 20.0),
    "gmil --help": (EMPTY, 20.0),
    "gmil methods --help": (EMPTY, 20.0),
    "first line of gmil cv musk1": (SKLEARN, 1.15),
}
"""What each is measured against, and how many times as long it may take."""


class Run(NamedTuple):
    """The time until a program ends, or until its first line."""

    seconds: float
    cpu_seconds: float


def run(name: str) -> Run:
    start = time.perf_counter()
    with subprocess.Popen(
        WAYS[name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    ) as process:
        if name.startswith("first line"):
            assert process.stdout is not None
            if not process.stdout.readline():
                msg = f"{name}: nothing was printed."
                raise SystemExit(msg)
            seconds = time.perf_counter() - start
            process.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if not name.startswith("first line"):
            seconds = time.perf_counter() - start
    return Run(seconds, usage.ru_utime + usage.ru_stime)


def spread(ratios: list[float]) -> str:
    ordered = sorted(ratios)
    low, high = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    return f"{statistics.median(ordered):.2f}x ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    for name in WAYS:  # once to read the files
        run(name)
    found: dict[str, list[Run]] = {name: [] for name in WAYS}
    for number in range(rounds):
        for name in WAYS if number % 2 == 0 else reversed(WAYS):
            found[name].append(run(name))
    print(f"medians of {rounds} rounds, ratios with their middle half")
    for name, runs in found.items():
        text = f"{name}: {1e3 * statistics.median(one.seconds for one in runs):.0f} ms"
        for base in (EMPTY, SKLEARN):
            against = [one.seconds / other.seconds for one, other in zip(runs, found[base], strict=True)]
            text += f"; {spread(against)} {base}"
        if not name.startswith("first line"):  # what was killed has no processor time to compare
            cpu = statistics.median(r.cpu_seconds for r in runs) / statistics.median(
                r.cpu_seconds for r in found[EMPTY]
            )
            text += f"; processor time {cpu:.1f}x {EMPTY}"
        if name in TARGETS:
            base, most = TARGETS[name]
            text += f"; target {most:g}x {base}"
        print(text)


if __name__ == "__main__":
    main()
