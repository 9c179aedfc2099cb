"""Workers end when the process that started them is gone, and not before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from joblib import Parallel, delayed

from gmil.safety.processes import bound, is_alive

STARTS_WORKERS = """
import os, sys, time
from joblib import Parallel, delayed
from gmil.safety.processes import bound

def work(number):
    print(os.getpid(), flush=True)
    time.sleep(120)

Parallel(n_jobs=2, backend="loky")(delayed(bound(work))(number) for number in range(8))
"""


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is that of POSIX")
def test_workers_of_a_killed_process_end():
    command = [sys.executable, "-c", STARTS_WORKERS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL) as process:
        workers = [int(process.stdout.readline()) for _ in range(2)]
        assert all(map(is_alive, workers))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert wait_until(lambda: not any(map(is_alive, workers)), 10)


def test_a_function_gives_what_it_gives():
    assert Parallel(n_jobs=2)(delayed(bound(divmod))(n, 3) for n in range(4)) == [divmod(n, 3) for n in range(4)]
    assert bound(dict)(a=1) == {"a": 1}


def test_a_process_knows_who_is_alive():
    assert is_alive(os.getpid())
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert not is_alive(gone.pid)
