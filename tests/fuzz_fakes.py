"""What child processes of the fuzzer do in its own tests: one harm each."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import numpy as np
from tools.fuzz.judging import Rules, judge
from tools.fuzz.mutations.hostile import PICKLES
from tools.fuzz.results import Result

from gmil.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path

EXPECTED = [np.array([1.0, 2.0])]


def raise_raw() -> None:
    msg = "list index out of range"
    raise IndexError(msg)


def refuse() -> None:
    msg = "The file is damaged."
    raise FormatError(msg)


def refuse_for_want_of_memory() -> None:
    try:
        np.ones(2**42)
    except MemoryError as error:
        msg = "The file is damaged."
        raise FormatError(msg) from error


def take_memory() -> list[np.ndarray]:
    np.ones(300 * 2**20, dtype=np.uint8).sum()
    return EXPECTED


def unpickle() -> list[np.ndarray]:
    import pickle

    pickle.loads(PICKLES[0])
    return EXPECTED


def start_process() -> list[np.ndarray]:
    subprocess.run(["true"], check=True)
    return EXPECTED


def write_elsewhere() -> list[np.ndarray]:
    with open(os.devnull, "w") as file:  # noqa: PTH123
        file.write("x")
    return EXPECTED


USES = {
    "raw": raise_raw,
    "refused": refuse,
    "asked": refuse_for_want_of_memory,
    "memory": take_memory,
    "large": take_memory,
    "pickle": unpickle,
    "process": start_process,
    "written": write_elsewhere,
    "same": lambda: EXPECTED,
    "changed": lambda: [EXPECTED[0] + 1],
    "unnoticed": lambda: [EXPECTED[0] + 1],
    "not finite": lambda: [np.array([np.nan, 1.0])],
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda: time.sleep(60),
}


class FakeWork:
    """Does the harm that a case has as its group."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._is_poisoned = False

    def __call__(self, case, announce) -> Result:
        if case.group == "broken":
            msg = "no such mutation"
            raise ValueError(msg)
        if self._is_poisoned:
            os.kill(os.getpid(), signal.SIGABRT)
        self._is_poisoned = case.group == "poison"
        result = Result(str(case), "fake", "file", case.group)
        announce(result)
        rules = Rules(EXPECTED, guarded=case.group == "unnoticed", may_be_large=case.group == "large")
        outcome, note = judge(USES.get(case.group, USES["same"]), self._scratch, 1000, rules)
        return dataclasses.replace(result, outcome=outcome, note=note)
