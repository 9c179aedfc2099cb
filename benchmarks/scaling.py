"""Seconds and memory of a whole 10-fold of GMIL against the number of instances, from Parquet on disk.

``python benchmarks/scaling.py --data /somewhere/scaling [--most 10000000] [--out results/scaling]``

1000 bags of 100 features, with 10 to 10 000 instances each; every size is measured in a process of its own, and its
data, made before, are removed behind it. Writes a JSON file and a plot.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import gmil
from gmil.datasets import make_med11
from gmil.paper.figures import plotting

N_BAGS, N_FEATURES = 1000, 100


def measure(data: Path) -> dict[str, float]:
    start, before = time.perf_counter(), time.process_time()
    bags, y = gmil.scan(data)
    gmil.cross_validate(gmil.GMIL.from_paper("med11"), bags, y, cv=10)
    return {
        "instances": bags.n_instances,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - before,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
    }


def draw(points: list[dict[str, float]], stem: Path) -> None:
    with plotting.figure(9.0, 3.8, nrows=1, ncols=2) as (drawn, grid):
        instances = [point["instances"] for point in points]
        for axes, name, title, label in (
            (grid[0, 0], "cpu_seconds", "Time", "CPU seconds of a 10-fold"),
            (grid[0, 1], "peak_mib", "Memory", "peak resident MiB"),
        ):
            axes.plot(instances, [point[name] for point in points], "o-", color=plotting.BLUE, linewidth=1.8)
            axes.set_xscale("log")
            axes.set_title(title)
            axes.set_xlabel("instances")
            axes.set_ylabel(label)
        last = points[-1]
        slope = [last["cpu_seconds"] * n / last["instances"] for n in instances]
        grid[0, 0].plot(instances, slope, ":", color=plotting.GREY, label="proportional")
        grid[0, 0].set_yscale("log")
        grid[0, 0].legend(fontsize=8)
        grid[0, 1].set_ylim(bottom=0)
        plotting.caption(
            drawn, "GMIL against the number of instances", f"{N_BAGS} bags, {N_FEATURES} features, 10-fold"
        )
        plotting.save(drawn, stem)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=Path("results/scaling"))
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure is not None:
        print(json.dumps(measure(asked.measure)))
        return
    asked.data.mkdir(parents=True, exist_ok=True)
    points = []
    size = 10_000
    while size <= asked.most:
        data = asked.data / str(size)
        make_med11(data, n_bags=N_BAGS, n_instances=size, n_features=N_FEATURES)
        command = [sys.executable, __file__, "--data", str(asked.data), "--measure", str(data)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        points.append(json.loads(done.stdout))
        print(json.dumps(points[-1]), flush=True)
        shutil.rmtree(data)
        size *= 10
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.with_suffix(".json").write_text(json.dumps(points, indent=2) + "\n")
    draw(points, asked.out)


if __name__ == "__main__":
    main()
