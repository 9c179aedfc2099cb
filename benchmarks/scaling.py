"""Seconds and memory of a whole 10-fold of GMIL against the number of instances, from Parquet on disk.

``python benchmarks/scaling.py --data /somewhere/scaling [--most 10000000] [--out results/scaling]``

1000 bags of 100 features, with 10 to 10 000 instances each; every size is measured in a process of its own, and its
data, made before, are removed behind it. Writes a JSON file and a plot (SVG).
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
from gmil.reporting.plots.charts import Axis, Kind, Series, line_chart
from gmil.reporting.plots.figure import Figure

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
    instances, last = [point["instances"] for point in points], points[-1]
    x_axis = Axis("instances", instances[0] / 1.5, instances[-1] * 1.5, log=True)
    seconds = [(point["instances"], point["cpu_seconds"]) for point in points]
    slope = [(n, last["cpu_seconds"] * n / last["instances"]) for n in instances]
    values = [value for _, value in (*seconds, *slope)]
    time_axis = Axis("CPU seconds of a 10-fold", min(values) / 1.5, max(values) * 1.5, log=True)
    memory = [(point["instances"], point["peak_mib"]) for point in points]
    measured, proportional = Kind("measured", 0), Kind("proportional to the instances", 7, line="line dashed", size=0.5)
    panels = [
        ("Time", line_chart("Time", [Series(slope, proportional), Series(seconds, measured)], x_axis, time_axis)),
        (
            "Memory",
            line_chart(
                "Memory",
                [Series(memory, measured)],
                x_axis,
                Axis("peak resident MiB", 0, 1.1 * max(value for _, value in memory)),
            ),
        ),
    ]
    caption = f"{N_BAGS} bags, {N_FEATURES} features, 10-fold"
    legend = [measured, proportional]
    Figure("GMIL against the number of instances", caption, panels, columns=2, legend=legend).save(stem)


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
