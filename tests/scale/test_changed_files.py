"""Parquet files that are carried along whole, that are damaged, or that are replaced after they were scanned."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gmil
from gmil import Bags
from gmil.errors import FormatError, GmilError


def write_table(path, bags):
    """Write a file whose length and footer do not depend on where bags begin."""
    columns = {"bag": bags, "label": [0] * len(bags), "f": np.arange(len(bags), dtype=float)}
    pq.write_table(pa.table(columns), path, use_dictionary=False, compression="none")


def test_a_file_replaced_by_one_with_other_bags_is_noticed(tmp_path):
    path, other = tmp_path / "bags.parquet", tmp_path / "other.parquet"
    write_table(path, ["a", "a", "b", "b"])
    write_table(other, ["a", "b", "b", "b"])
    assert path.stat().st_size == other.stat().st_size
    lazy, _ = gmil.scan(path)
    stamp = path.stat()
    shutil.copy(other, path)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as coarse clocks have it
    for door in (lazy.load, lambda: lazy[0], lambda: list(lazy.blocks()), lambda: lazy.take([3])):
        with pytest.raises(FormatError, match=r"bags\.parquet is not the file that was scanned.*Scan it again"):
            door()
    assert gmil.scan(path)[0].sizes.tolist() == [1, 3]


def test_a_file_replaced_by_itself_is_read(tmp_path):
    path = tmp_path / "bags.parquet"
    write_table(path, ["a", "a", "b", "b"])
    lazy, _ = gmil.scan(path)
    kept = path.read_bytes()
    path.unlink()
    path.write_bytes(kept)
    os.utime(path, (0, 0))
    assert lazy.load().sizes.tolist() == [2, 2]


def test_load_keeps_the_information_about_instances(tmp_path):
    path = tmp_path / "bags.parquet"
    info = {"time": [0.5, 1.5, 2.5, 3.5], "note": list("wxyz")}
    bags = Bags.from_list([np.eye(2), np.ones((2, 2))], bag_ids=["p", "q"], instance_info=info)
    gmil.write(path, bags, [0, 1])
    lazy, _ = gmil.scan(path)
    assert lazy.load().instance_info.to_pydict() == info
    assert lazy[[1, 0, 1]].load().instance_info.to_pydict()["note"] == list("yzwxyz")
    assert gmil.read(path)[0].instance_info.equals(lazy.instance_info)


def test_the_information_of_wide_files_and_of_several_is_kept(tmp_path):
    for i, bag in enumerate("pq"):
        columns = {"bag": [bag] * 2, "f": [1.0, 2.0], "time": [i, i + 1], "note": [f"{bag}0", f"{bag}1"]}
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    lazy, _ = gmil.scan(tmp_path, info=["time"])
    assert lazy.feature_names == ("f",)
    assert lazy[::-1].load().instance_info.to_pydict() == {"time": [1, 2, 0, 1], "note": ["q0", "q1", "p0", "p1"]}
    assert gmil.read(tmp_path, info=["time"])[0].instance_info.num_rows == 4


def damaged_pages(path):
    """Yield a file with one bit of every byte of its pages flipped in turn; footers have no checksum."""
    good = path.read_bytes()
    footer = int.from_bytes(good[-8:-4], "little") + 8
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(0).column(i) for i in range(metadata.num_columns)]
    for chunk in chunks:
        end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
        assert end <= len(good) - footer
        for at in range(end - 8, end):  # the last bytes of a chunk are values
            bad = bytearray(good)
            bad[at] ^= 0x04
            yield bytes(bad)


@pytest.mark.parametrize("door", [gmil.read, lambda path: gmil.scan(path)[0].load(), Bags.from_parquet])
def test_a_flipped_bit_in_a_page_is_noticed(tmp_path, door):
    path = tmp_path / "bags.parquet"
    bags = Bags.from_list(np.random.default_rng(0).normal(size=(4, 5, 3)), bag_ids=list("pqrs"))
    gmil.write(path, bags, [0, 1, 0, 1])
    for bad in damaged_pages(path):
        path.write_bytes(bad)
        with pytest.raises(FormatError, match=r"bags\.parquet cannot be read as Parquet"):
            door(path)


def test_files_without_checksums_are_read(tmp_path):
    pq.write_table(pa.table({"bag": [1, 2], "f": [0.5, 1.5]}), tmp_path / "plain.parquet", write_page_checksum=False)
    assert gmil.read(tmp_path / "plain.parquet")[0].instances.tolist() == [[0.5], [1.5]]


@pytest.mark.parametrize("door", [gmil.read, gmil.scan, Bags.from_parquet, lambda path: gmil.read(path.parent)])
def test_a_damaged_name_of_a_column_is_a_clear_error(tmp_path, door):
    path = tmp_path / "bags.parquet"
    pq.write_table(pa.table({"bag": [1, 2], "weight": [0.5, 1.5]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"weight", b"w\xff\xfeght"))
    with pytest.raises(FormatError, match=r"bags\.parquet cannot be read as Parquet"):
        door(path)


@pytest.mark.parametrize("door", [gmil.read, lambda path: gmil.scan(path)[0].load(), Bags.from_parquet])
@pytest.mark.parametrize("column", ["bag", "label", "note"])
def test_a_damaged_text_is_a_clear_error(tmp_path, door, column):
    path = tmp_path / "bags.parquet"
    columns = {"bag": ["one", "two"], "label": ["yes", "not"], "note": ["abc", "def"], "f": [0.5, 1.5]}
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(columns[column][1].encode(), b"\xff\xfe\xff"))
    with pytest.raises(GmilError, match=r"bags\.parquet cannot be read as Parquet"):
        door(path)
