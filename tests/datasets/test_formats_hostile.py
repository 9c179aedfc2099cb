"""Files that no honest writer makes: pipes, columns of the wrong kind, and little that claims to be much."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gmil import Bags
from gmil.datasets import read, scan
from gmil.errors import BagValidationError, FileAccessError, FormatError, MissingFileError

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
FEATURES = {"f": [0.0, 1.0, 2.0]}


def lazily(path, **roles):
    bags, y = scan(path, **roles)
    return bags.load(), y


def as_folder(path):
    return Bags.from_parquet(path.parent)


@pytest.fixture(params=[read, lazily], ids=["read", "scan"])
def door(request):
    return request.param


def written(path, columns, **how):
    pq.write_table(pa.table(columns), path, **how)
    return path


# -------------------------------------------------------------------------------- pipes: opening one waits for ever


@needs_pipes
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".npz", ".data", ".arff", ".mat"])
def test_a_pipe_is_no_file(tmp_path, suffix):
    os.mkfifo(tmp_path / f"bags{suffix}")
    with pytest.raises(FileAccessError, match="not a regular file, but a pipe or a device"):
        read(tmp_path / f"bags{suffix}")


@needs_pipes
def test_a_pipe_cannot_be_scanned(tmp_path):
    os.mkfifo(tmp_path / "bags.parquet")
    with pytest.raises(FileAccessError, match="not a regular file, but a pipe or a device"):
        scan(tmp_path / "bags.parquet")


@needs_pipes
@pytest.mark.parametrize("name", ["a.npy", "z.npy", "a.npz", "z.npz", "a.parquet", "z.parquet", "labels.csv"])
def test_a_pipe_in_a_folder_of_bags_is_refused(tmp_path, door, name):
    np.save(tmp_path / "b.npy", np.eye(2))
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileAccessError, match=rf"{name} is not a regular file"):
        door(tmp_path)


@needs_pipes
@pytest.mark.parametrize("name", ["0.parquet", "9.parquet"])
def test_a_pipe_in_a_table_of_several_files_is_refused(tmp_path, door, name):
    written(tmp_path / "1.parquet", {"bag": [0, 0, 1], **FEATURES})
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileAccessError, match=rf"{name} is not a regular file"):
        door(tmp_path)


@pytest.mark.parametrize("name", ["a.npy", "z.npz", "a.parquet", "z.parquet"])
def test_a_link_to_nothing_in_a_folder_is_refused(tmp_path, door, name):
    np.save(tmp_path / "b.npy", np.eye(2))
    (tmp_path / name).symlink_to(tmp_path / "nothing")
    with pytest.raises(MissingFileError, match=rf"{name} is a link to a file that does not exist"):
        door(tmp_path)


def test_a_parquet_file_that_is_not_there_or_not_allowed(tmp_path, monkeypatch):
    with pytest.raises(MissingFileError, match=r"none\.parquet does not exist"):
        Bags.from_parquet(tmp_path / "none.parquet")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", refuse)
    with pytest.raises(FileAccessError, match="cannot be opened: Permission denied"):
        Bags.from_parquet(written(tmp_path / "bags.parquet", {"bag": [0, 0, 1], **FEATURES}))


# -------------------------------------------------------------------------------- columns of the wrong kind

NESTED = {
    "lists": pa.array([[1.0, None]] * 3),
    "structs": pa.array([{"a": 1}] * 3),
    "maps": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("role", ["bag", "label"])
def test_ids_and_labels_are_one_value_a_row(tmp_path, door, role, kind):
    columns = {"bag": [0, 0, 1], "label": [1, 1, 0]} | {role: NESTED[kind]} | FEATURES
    with pytest.raises(BagValidationError, match=f"The {role} column '{role}' must hold one number or text a row, got"):
        door(written(tmp_path / "bags.parquet", columns))


def test_bytes_are_read_as_the_texts_that_they_are(tmp_path, door):
    ids, labels = ["ä", "ä", "b"], ["ja", "ja", "nö"]
    columns = {"bag": [text.encode() for text in ids], "label": [text.encode() for text in labels], **FEATURES}
    bags, y = door(written(tmp_path / "bags.parquet", columns))
    assert bags.bag_ids.tolist() == ["ä", "b"]
    assert y.tolist() == ["ja", "nö"]


@pytest.mark.parametrize("role", ["bag", "label"])
def test_bytes_that_are_no_texts_are_refused(tmp_path, door, role):
    columns = {"bag": [0, 0, 1], "label": [1, 1, 0]} | {role: [b"\xff\x00", b"\xff\x00", b"a"]} | FEATURES
    with pytest.raises(BagValidationError, match="that are bytes must be UTF-8 texts"):
        door(written(tmp_path / "bags.parquet", columns))


@pytest.mark.parametrize("role", ["bag_index", "y"])
def test_bytes_of_arrays_that_are_no_texts_are_refused(tmp_path, role):
    arrays = {"X": np.eye(3), "bag_index": [0, 0, 1], "y": [1, 1, 0]} | {role: [b"\xff", b"\xff", b"a"]}
    np.savez(tmp_path / "bags.npz", **arrays)
    with pytest.raises(BagValidationError, match="that are bytes must be UTF-8 texts"):
        read(tmp_path / "bags.npz")


def test_a_column_that_is_there_twice_is_refused(tmp_path, door):
    table = pa.table([[0, 0, 1], ["a", "a", "b"], FEATURES["f"]], names=["bag", "bag", "f"])
    pq.write_table(table, tmp_path / "bags.parquet")
    with pytest.raises(BagValidationError, match="The column 'bag' is there twice"):
        door(tmp_path / "bags.parquet")


# -------------------------------------------------------------------------------- little that claims to be much


@pytest.mark.parametrize("role", ["bag", "label", "note"])
@pytest.mark.parametrize("kind", [pa.string(), pytest.param(pa.binary(), marks=pytest.mark.slow)])
@pytest.mark.parametrize("keeps_categories", [True, False])
def test_a_category_stored_once_for_many_rows_is_bounded(tmp_path, door, role, kind, keeps_categories):
    n_rows = 1_000_000
    one_text = pa.array(["x" * 1_000_000]).cast(kind)
    zeros = np.zeros(n_rows, dtype=np.int8)
    columns = {"bag": zeros, "f": zeros, role: pa.DictionaryArray.from_arrays(zeros, one_text)}
    path = written(tmp_path / "bags.parquet", columns, compression="zstd", store_schema=keeps_categories)
    for way in (door, as_folder):
        with pytest.raises(FormatError, match=rf"the column '{role}' claims {10**12} bytes, but only \d+ are stored"):
            way(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_texts_of_a_partitioned_folder_keep_their_types(tmp_path, kind):
    ids, notes = pa.array(["a", "b", "b"]).cast(kind), pa.array(["n"] * 3).cast(kind)
    columns = {"site": ["x", "y", "y"], "bag": ids, "note": notes}
    pq.write_to_dataset(pa.table(columns | FEATURES), tmp_path / "parts", partition_cols=["site"])
    bags = Bags.from_parquet(tmp_path / "parts")
    assert bags.bag_ids.tolist() == ["a", "b"]
    assert bags.instance_info.schema.field("note").type == pq.read_table(tmp_path / "parts").schema.field("note").type
    assert bags.instance_info.column("site").to_pylist() == ["x", "y", "y"]


def test_long_values_of_one_length_are_bounded(tmp_path, door):
    n_rows = 1000
    note = pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int8), pa.array([b"x" * 10**6], pa.binary(10**6)))
    columns = {"bag": np.zeros(n_rows), "f": np.zeros(n_rows), "note": note.cast(pa.binary(10**6))}
    path = written(tmp_path / "bags.parquet", columns, compression="zstd")
    with pytest.raises(FormatError, match=r"the table claims \d+ bytes, but only \d+ are stored"):
        door(path)


ARRAYS = {"X": np.eye(3), "bag_index": np.array([0, 0, 1]), "y": np.array([1, 0])}
SPARSE = {"X_data": np.ones(3), "X_indices": np.arange(3), "X_indptr": np.arange(4), "X_shape": np.array([3, 3])}


@pytest.mark.parametrize("name", ["bag_index", "y", "bag_names", "feature_names", *SPARSE])
def test_an_array_that_is_far_too_long_is_not_taken_apart(tmp_path, name):
    arrays = ARRAYS if name not in SPARSE else SPARSE | {"bag_index": ARRAYS["bag_index"]}
    np.savez_compressed(tmp_path / "bags.npz", **arrays | {name: np.zeros(4_000_000)})
    _, peak = traced(lambda: read(tmp_path / "bags.npz"))
    assert peak < 4 * 32_000_000


def traced(use):
    """Return the error of a refusal, and the most memory that it took."""
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises((BagValidationError, FormatError)) as refusal:
            use()
        return refusal.value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
