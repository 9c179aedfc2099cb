"""Damaged files: whatever one byte says, a reader ends with an error of its own, and never with the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp

from gmil import Bags
from gmil.datasets import read, scan, write
from gmil.errors import FormatError
from gmil.io.formats.mat import read_variables

if TYPE_CHECKING:
    from pathlib import Path

CHILD = """
import json, sys, warnings
from pathlib import Path
from gmil import read
from gmil.errors import GmilError
warnings.simplefilter("error")
warnings.filterwarnings("ignore", message="A column of labels")
for path, step, *flips in json.loads(sys.argv[1]):
    source = Path(path)
    target, good, raw = source.with_name(f"edited{source.suffix}"), source.read_bytes(), []
    for at in range(0, len(good), step):
        for flip in flips:
            bad = bytearray(good)
            bad[at] ^= flip
            target.write_bytes(bad)
            try:
                read(target)
            except GmilError:
                pass
            except Exception as error:
                raw.append((at, flip, repr(error)))
    print(json.dumps([source.name, raw]), flush=True)
"""


def single_byte_edits(*edits: tuple[Path, int, *tuple[int, ...]]) -> dict[str, list]:
    """Read files with bytes changed in one child process; return the foreign errors of every file.

    Each edit is a path, the step from one byte to the next, and what bytes are changed by.
    """
    run = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps([(str(path), *numbers) for path, *numbers in edits])],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, f"the process ended with {run.returncode} after {run.stdout}: {run.stderr[-2000:]}"
    return dict(map(json.loads, run.stdout.splitlines()))


VARIABLES = {
    "features": np.arange(12.0).reshape(6, 2),
    "bag_ids": np.array([1, 1, 2, 2, 3, 3]),
    "labels": np.array(["yes", "yes", "no", "no", "yes", "yes"], dtype=object),
    "time": np.arange(6, dtype=np.uint8),
}


def saved(path: Path, how: str) -> Path:
    variables = dict(VARIABLES)
    if how == "sparse":
        variables["features"] = sp.csc_array(variables["features"])
    if how == "level 4":
        variables["labels"] = np.array([1, 1, 0, 0, 1, 1])
    scipy.io.savemat(
        path, variables, do_compression=how == "compressed", oned_as="column", format="4" if how == "level 4" else "5"
    )
    return path


MASKS = {"plain": (0x01, 0x80, 0xFF), "compressed": (0x81,), "sparse": (0x81,), "level 4": (0x81,)}
"""What bytes of Matlab files are changed by; `make fuzz` has more."""


def written(folder: Path, suffix: str) -> Path:
    bags = Bags.from_list([np.eye(2), np.ones((1, 2))], bag_ids=["p", "q"])
    write(folder / f"bags{suffix}", bags, [0, 1])
    return folder / f"bags{suffix}"


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_no_byte_of_a_file_takes_the_process_down_or_raises_a_foreign_error(tmp_path, step):
    matlab = {how: saved(tmp_path / f"{how}.mat", how) for how in MASKS}
    for path in matlab.values():
        assert read(path)[1].tolist() in (["yes", "no", "yes"], [1, 0, 1])
    others = [written(tmp_path, suffix) for suffix in (".parquet", ".npz", ".csv", ".data", ".arff")]
    edits = [(path, step, *MASKS[how]) for how, path in matlab.items()]
    edits += [(path, step, 0x81) for path in others]
    assert single_byte_edits(*edits) == {path.name: [] for path in (*matlab.values(), *others)}


def everything():
    """Return a variable of every kind that Matlab files hold."""
    cells = np.empty((2, 3), dtype=object)
    for i in range(6):
        cells.flat[i] = np.full((i, 2), i / 3) if i % 2 else f"text {i}"
    alike = np.empty(2, dtype=object)
    alike[:] = [np.eye(2).tolist(), np.eye(2).tolist()]
    return {
        "double": np.random.default_rng(0).normal(size=(3, 4)),
        "single": np.ones((2, 2), dtype=np.float32),
        "short": np.arange(5, dtype=np.int16),
        "long": np.arange(5, dtype=np.uint64),
        "flags": np.array([True, False]),
        "sparse": sp.random(5, 4, 0.5, format="csc", random_state=0),
        "text": "hello",
        "letters": "äß€",
        "texts": np.array(["ab", "cde"]),
        "nothing": np.empty((0, 3)),
        "no_text": "",
        "cube": np.arange(24.0).reshape(2, 3, 4),
        "cells": cells,
        "alike": alike,
    }


def same(found, wanted):
    if sp.issparse(wanted):
        return sp.issparse(found) and np.array_equal(found.toarray(), wanted.toarray())
    if wanted.dtype == object:
        return found.shape == wanted.shape and all(map(same, found.ravel(), wanted.ravel()))
    return found.dtype == wanted.dtype and np.array_equal(found, wanted)


@pytest.mark.parametrize("compressed", [False, True])
def test_variables_are_those_that_scipy_reads(tmp_path, compressed):
    path = tmp_path / "all.mat"
    scipy.io.savemat(path, everything(), do_compression=compressed)
    wanted, found = scipy.io.loadmat(path), read_variables(path)
    assert [name for name in everything() if not same(found[name], wanted[name])] == []


def test_variables_of_level_4_are_those_that_scipy_reads(tmp_path):
    path = tmp_path / "old.mat"
    names = ("double", "single", "short", "sparse", "text", "texts")
    scipy.io.savemat(path, {name: everything()[name] for name in names}, format="4")
    wanted, found = scipy.io.loadmat(path), read_variables(path)
    assert [name for name in names if not same(found[name], wanted[name])] == []


def test_structs_and_complex_numbers_do_no_harm_beside_bags(tmp_path):
    scipy.io.savemat(tmp_path / "bags.mat", VARIABLES | {"about": {"a": 1}, "wave": np.array([1j])})
    assert read(tmp_path / "bags.mat")[0].n_instances == 6
    with pytest.raises(ValueError, match="'about' must be a matrix of numbers, got a struct"):
        read(tmp_path / "bags.mat", features="about")
    with pytest.raises(ValueError, match="'about' must be a vector of numbers or texts, got a struct"):
        read(tmp_path / "bags.mat", label="about")


def test_a_compressed_variable_that_claims_too_much_is_refused(tmp_path):
    import zlib

    path = saved(tmp_path / "bags.mat", "plain")
    header = path.read_bytes()[:128]
    tag = np.array([14, 2**31], dtype="<u4").tobytes()
    packed = zlib.compress(tag + b"\0" * 64)
    path.write_bytes(header + np.array([15, len(packed)], dtype="<u4").tobytes() + packed)
    with pytest.raises(FormatError, match=r"a compressed variable claims 2147483648 bytes, but only \d+ are stored"):
        read(path)


def test_a_text_stored_once_for_many_rows_is_bounded(tmp_path):
    path = tmp_path / "bags.parquet"
    note = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, dtype=np.int32)), pa.array(["x" * 1_000_000]))
    columns = {"bag": np.zeros(3000, dtype=int), "f": np.zeros(3000), "note": note}
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
    for door in (read, lambda path: scan(path)[0].load()):
        with pytest.raises(FormatError, match=r"the column 'note' claims 3000000000 bytes, but only \d+ are stored"):
            door(path)


def test_rows_that_a_parquet_file_cannot_hold_are_refused(tmp_path):
    path = tmp_path / "bags.parquet"
    with pq.ParquetWriter(path, pa.schema([("bag", pa.int8()), ("f", pa.float32())])) as writer:
        table = pa.table({"bag": np.zeros(10_000_000, dtype=np.int8), "f": np.zeros(10_000_000, dtype=np.float32)})
        for _ in range(4):
            writer.write_table(table, row_group_size=10_000_000)
    for door in (read, scan):
        with pytest.raises(FormatError, match=r"the table claims \d+ bytes, but only \d+ are stored"):
            door(path)


def test_sparse_rows_of_arff_take_time_and_memory_in_proportion(tmp_path):
    path = tmp_path / "bags.arff"
    header = "@relation r\n@attribute bag string\n@attribute a numeric\n"
    path.write_text(header + "@data\n{0 p, " + ",".join(["1 1"] * 200_000) + "}\n")
    assert read(path)[0].instances.tolist() == [[1.0]]  # and not in minutes
    many = "".join(f"@attribute a{i} numeric\n" for i in range(14_000))
    path.write_text(header + many + "@data\n" + "{0 p}\n" * 14_000)
    with pytest.raises(FormatError, match="too many for a table, 14000 of 14001 numbers"):
        read(path)
