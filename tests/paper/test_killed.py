"""A run that is killed at any moment goes on where it stopped, and ends with the rows of one that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gmil.paper import parse_spec, run
from gmil.safety.processes import is_alive

# It imports once and forks for every run, so that ten runs cost one start; it has one thread, so forking is safe.
LAUNCHER = """
import json, os, sys
import pyarrow.parquet
from gmil.paper import parse_spec, run
spec = parse_spec(json.loads(sys.argv[1]), "toy")
print("ready", flush=True)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        run(spec, output=sys.argv[2])
        os._exit(0)
    print(pid, flush=True)
    print(os.waitpid(pid, 0)[1], flush=True)
"""
FRESH = """
import json, sys
from gmil.paper import parse_spec, run
run(parse_spec(json.loads(sys.argv[1]), "toy"), output=sys.argv[2], jobs=2)
"""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}


def n_rows(output):
    return len(list((output / "rows").glob("[!.]*.parquet")))


def wait_for_rows(output, wanted):
    """Wait until so many jobs are done, so that every kill finds the run somewhere else."""
    end = time.monotonic() + 60
    while n_rows(output) < wanted and time.monotonic() < end:
        time.sleep(0.002)


@pytest.fixture
def larger(toy_document):
    """Enough jobs that a kill finds some done and some not."""
    toy_document["protocol"] |= {"repeats": 10, "tuned_repeats": 2}
    return toy_document


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("n_kills", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments(larger, tmp_path, stable, n_kills):
    larger["controls"] = n_kills == 10  # without them it has a third of the jobs, and the quick ones
    whole = run(parse_spec(larger, "toy"), output=tmp_path / "whole")
    output = tmp_path / "killed"
    command = [sys.executable, "-c", LAUNCHER, json.dumps(larger), str(output)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": {**os.environ, **ONE_THREAD}}
    moments = random.Random(2012)
    finished = [0]
    with subprocess.Popen(command, **pipes) as launcher:
        assert launcher.stdout.readline() == "ready\n"
        for _ in range(n_kills):
            launcher.stdin.write("run\n")
            launcher.stdin.flush()
            pid = int(launcher.stdout.readline())
            wait_for_rows(output, finished[-1] + moments.randint(0, 4))
            time.sleep(moments.uniform(0, 0.03))
            os.kill(pid, signal.SIGKILL)
            assert int(launcher.stdout.readline()) == signal.SIGKILL
            finished.append(n_rows(output))
        launcher.stdin.close()
    assert finished == sorted(finished)  # what is done stays done
    assert 0 < finished[-1] < len(list((tmp_path / "whole" / "rows").iterdir()))
    assert stable(run(parse_spec(larger, "toy"), output=output)) == stable(whole)
    assert not list((output / "rows").glob(".*"))


@pytest.mark.slow
def test_killed_with_its_worker_processes(larger, tmp_path, stable):
    whole = run(parse_spec(larger, "toy"), output=tmp_path / "whole")
    output = tmp_path / "killed"
    moments = random.Random(7)
    for _ in range(10):
        command = [sys.executable, "-c", FRESH, json.dumps(larger), str(output)]
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(1, 5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert stable(run(parse_spec(larger, "toy"), output=output, jobs=2)) == stable(whole)


def workers_of(pid):
    """Return the worker processes of a run."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if b"Loky" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_workers_of_a_killed_run_do_not_go_on(larger, tmp_path):
    larger["generated"] = {name: {**how, "n_bags": 200} for name, how in larger["generated"].items()}
    larger["method"] = [{"name": "dd", "columns": ["paper"]}]  # one job takes a minute
    command = [sys.executable, "-c", FRESH, json.dumps(larger), str(tmp_path / "killed")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        assert wait_until(lambda: len(workers_of(process.pid)) == 2, 60)
        time.sleep(1)
        workers = workers_of(process.pid)
        process.kill()
    try:
        assert wait_until(lambda: not any(map(is_alive, workers)), 20)
    finally:
        for worker in filter(is_alive, workers):
            os.kill(worker, signal.SIGKILL)


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()
