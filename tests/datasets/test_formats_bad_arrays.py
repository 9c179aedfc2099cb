"""NPZ and Matlab files that cannot be read, or must not be."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import scipy.io

from gmil.datasets import read
from gmil.errors import BagValidationError, FormatError
from gmil.safety import guard

SUFFIXES = (".parquet", ".csv", ".tsv", ".npz", ".data", ".arff", ".mat")


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"X": np.eye(2)}, r"No bag array was found; the arrays are 'X'"),
        ({"bag_index": [0, 1]}, r"No features array was found"),
        ({"X": np.eye(2), "bag_index": [0]}, r"There are 1 bag ids, but 2 instances"),
        (
            {"X": np.eye(3), "bag_index": [0, 0, 1], "y": [1, 0, 1, 0]},
            r"y has 4 entries, but there are 2",
        ),
        ({"X": np.eye(3), "bag_index": [9, 9, 5], "y": [1, 0]}, r"neither in order nor 1, 2"),
        ({"X": np.ones(2), "bag_index": [0, 1]}, r"must be 2-D"),
        ({"X": np.array([["a"], ["b"]]), "bag_index": [0, 1]}, r"must hold numbers"),
        (
            {"X": np.eye(2), "bag_index": [0, 1], "feature_names": ["a"]},
            r"one name per feature, 2; got 1",
        ),
        ({"X": np.eye(2) + 1j, "bag_index": [0, 1]}, r"Complex data not supported"),
    ],
)
def test_npz(arrays, match, tmp_path):
    np.savez(tmp_path / "bags.npz", **arrays)
    with pytest.raises((FormatError, BagValidationError), match=match) as caught:
        read(tmp_path / "bags.npz")
    assert "bags.npz" in str(caught.value)


def test_npz_with_pickles_is_refused(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    np.savez(tmp_path / "bags.npz", X=np.array([[Bomb()]], dtype=object), bag_index=[0])
    with pytest.raises(FormatError, match=r"X\.npy holds Python objects, which could run code"):
        read(tmp_path / "bags.npz")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pickle_in_disguise_is_refused(suffix, tmp_path):
    path = tmp_path / f"bags{suffix}"
    path.write_bytes(pickle.dumps({"X": np.eye(2)}))
    with pytest.raises((FormatError, BagValidationError)):
        read(path)


def lying_npz(shape: tuple[int, ...]) -> bytes:
    head = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, header)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("X.npy", head.getvalue() + b"\0" * 64)
    return whole.getvalue()


@pytest.mark.parametrize("shape", [(2**40, 2**20), (10**9, 8), (3, 3)])
def test_npz_that_lies_about_its_size(shape, tmp_path):
    (tmp_path / "bags.npz").write_bytes(lying_npz(shape))
    with pytest.raises(FormatError, match=r"X\.npy should be \d+ bytes .* but is 64"):
        read(tmp_path / "bags.npz")


def test_npz_sparse_index_out_of_range(tmp_path):
    parts = {"X_data": [1.0], "X_indices": [10**6], "X_indptr": [0, 1], "X_shape": [1, 2]}
    np.savez(tmp_path / "bags.npz", **parts, bag_index=[0])
    with pytest.raises(FormatError, match=r"bags\.npz cannot be read as NPZ"):
        read(tmp_path / "bags.npz")


def test_arrays_larger_than_memory(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bags.npz", X=np.zeros((100, 100)), bag_index=np.arange(100))
    monkeypatch.setattr(guard, "physical_memory", lambda: 1000)
    with pytest.raises(FormatError, match=r"does not fit: X\.npy takes .* GiB"):
        read(tmp_path / "bags.npz")


@pytest.mark.parametrize(
    ("variables", "match"),
    [
        ({"M": np.eye(2)}, r"No features variable was found; the variables are 'M'"),
        ({"X": np.eye(2)}, r"No bag variable was found"),
        ({"X": np.eye(2), "bag_ids": np.eye(2)}, r"'bag_ids' must be a vector, got shape \(2, 2\)"),
        ({"X": np.eye(3), "bag_ids": [1, 1]}, r"There are 2 bag ids, but 3 instances"),
        ({"X": np.eye(3), "bag_ids": [1, 1, 2], "y": [[1, 2, 3, 4]]}, r"y has 4 entries"),
        ({"X": np.eye(2), "bag_ids": [1, 1], "y": [1, 0]}, r"label of bag 1 varies: 1 and 0"),
        ({"X": "text", "bag_ids": [1, 1]}, r"'X' must be a matrix of numbers"),
    ],
)
def test_mat(variables, match, tmp_path):
    scipy.io.savemat(tmp_path / "bags.mat", variables)
    with pytest.raises((FormatError, BagValidationError), match=match) as caught:
        read(tmp_path / "bags.mat")
    assert "bags.mat" in str(caught.value)


def test_mat_73(tmp_path):
    (tmp_path / "bags.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: X" + b" " * 600)
    with pytest.raises(FormatError, match=r"Matlab 7\.3 .*Save it in Matlab with -v7"):
        read(tmp_path / "bags.mat")


def test_mat_that_lies_about_its_size(tmp_path):
    path = tmp_path / "bags.mat"
    scipy.io.savemat(path, {"X": np.eye(3)}, do_compression=False)
    content = bytearray(path.read_bytes())
    at = content.index(struct.pack("<ii", 3, 3))
    content[at : at + 8] = struct.pack("<ii", 2**30, 2**30)
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"9 values are stored, but \(1073741824, 1073741824\) takes"):
        read(path)
