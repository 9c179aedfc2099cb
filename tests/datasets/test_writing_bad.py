"""Targets that cannot be written: one clear sentence each, and nothing left behind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from gmil import Bags
from gmil.datasets import write
from gmil.errors import BagValidationError, FileAccessError, FormatError, MissingFileError
from gmil.safety import atomic as files
from gmil.safety import temporaries

SUFFIXES = (".parquet", ".csv", ".tsv", ".npz", ".data", ".arff", ".mat")


# ---------------------------------------------------------------- writing


def test_write_to_an_unknown_suffix(tmp_path, small):
    with pytest.raises(FormatError, match=r"suffix '\.xlsx' is not known"):
        write(tmp_path / "bags.xlsx", *small)


def test_write_to_a_folder_that_is_not_there(tmp_path, small):
    with pytest.raises(MissingFileError, match=r"folder .*nowhere does not exist"):
        write(tmp_path / "nowhere" / "bags.npz", *small)


def test_write_onto_a_folder(tmp_path, small):
    with pytest.raises(FileAccessError, match="is a folder; write needs the name of a file"):
        write(tmp_path, *small)


@pytest.mark.parametrize("suffix", [s for s in SUFFIXES if s != ".data"])
def test_failed_write_leaves_the_old_file(suffix, small, tmp_path, monkeypatch):
    path = tmp_path / f"bags{suffix}"
    path.write_text("old")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_flush_to_disk", full)
    with pytest.raises(FileAccessError, match="cannot be written: No space left on device"):
        write(path, *small)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_unwritable_folder(tmp_path, small, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(temporaries.tempfile, "mkstemp", refuse)
    with pytest.raises(FileAccessError, match="cannot be written: Permission denied"):
        write(tmp_path / "bags.npz", *small)
    assert list(tmp_path.iterdir()) == []


ONE = Bags(np.eye(3), [0, 2, 3], np.array(["p", "q"]))


@pytest.mark.parametrize(
    ("suffix", "bags", "y", "match"),
    [
        (".npz", ONE, [1], r"y has 1 label, but X has 2 bags"),
        (".npz", ONE, [[1], [0]], r"1-D array, got shape \(2, 1\)"),
        (".npz", ONE, [1.0, np.nan], r"label of bag 1 is missing"),
        (".npz", ONE[:0], None, r"X holds no bags"),
        (".data", ONE, None, r"needs a class for every bag, but y is None"),
        (".data", Bags(np.eye(1), [0, 1], np.array(["a,b"])), [1], r"'a,b' cannot be written"),
        (".csv", Bags(np.eye(2), [0, 1, 2], np.array(["t", "u"]))[[0, 0]], None, r"2 bags are called 't'"),
        (
            ".csv",
            Bags(np.eye(2), [0, 1, 2], None, ("bag", "g")),
            None,
            r"name 'bag' would be read back",
        ),
        (".csv", Bags(np.eye(2), [0, 1, 2], None, ("", "g")), None, r"name '' would be read back as the row number"),
        (".csv", Bags(np.eye(2), [0, 1, 2], None, ("g", "g")), None, r"name 'g' is there 2 times"),
        (".arff", Bags(np.eye(2), [0, 1, 2], None, ("g", "g")), None, r"name 'g' is there 2 times"),
        (
            ".parquet",
            Bags(np.full((1, 1), 1e300), [0, 1]),
            None,
            r"1e\+300 is too large for float32",
        ),
        (".csv", Bags(sp.csr_array((9, 10**8)), [0, 9]), None, r"Sparse bags of 9 instances"),
        (
            ".npz",
            Bags(np.eye(1), [0, 1], instance_info={"y": [1]}),
            None,
            r"'y' has the name of another",
        ),
        (
            ".mat",
            Bags(np.eye(1), [0, 1], instance_info={"a b": [1]}),
            None,
            r"'a b' cannot be the name",
        ),
        (".data", Bags(np.eye(1), [0, 1], instance_info={"t": [1]}), [1], r"no room for .* 't'"),
    ],
)
def test_what_cannot_be_written(suffix, bags, y, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        write(tmp_path / f"bags{suffix}", bags, y)
    assert list(tmp_path.iterdir()) == []


def test_info_that_does_not_fit_the_format(tmp_path):
    info = pa.table({"day": pa.array([1], pa.timestamp("ms"))})
    bags = Bags(np.eye(1), [0, 1], instance_info=info)
    for suffix in (".npz", ".mat", ".arff"):
        with pytest.raises(BagValidationError, match=r"'day' holds timestamp.* Write \.parquet"):
            write(tmp_path / f"bags{suffix}", bags)


def test_wrong_dtype(tmp_path, small):
    with pytest.raises(BagValidationError, match="dtype must be float32 or float64, got int32"):
        write(tmp_path / "bags.npz", *small, dtype="int32")
