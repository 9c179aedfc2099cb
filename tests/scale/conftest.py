"""Bags on disk, in every form that can be read in blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gmil
from gmil.bags import tables

KINDS = ("parquet", "wide", "files", "npy", "npz", "parquet-bags", "array")


def make_bags_and_labels(n_bags=40, n_features=5, seed=0, n_classes=2, sizes=(3, 30), separation=6.0):
    bags, y = gmil.make_bags(
        n_bags,
        n_features=n_features,
        bag_size=sizes,
        n_classes=n_classes,
        separation=separation,
        random_state=seed,
        return_X_y=True,
    )
    ids = [f"bag{i:04d}" for i in range(n_bags)]
    return gmil.Bags(bags.instances.astype(np.float32), bags.offsets, ids), y


def store(folder, kind, bags, y, row_group_size=37):
    """Write bags to a folder in one of `KINDS` and return them as lazy bags, with their labels."""
    if kind == "array":
        np.save(folder / "X.npy", bags.instances)
        X = np.load(folder / "X.npy", mmap_mode="r")
        return gmil.LazyBags.from_array(X, bags.offsets, bag_ids=bags.bag_ids), y
    if kind in ("parquet", "wide", "files"):
        columns = {"bag": np.repeat(bags.bag_ids, bags.sizes), "label": np.repeat(y, bags.sizes)}
        make = tables.to_table if kind == "wide" else tables.to_list_table
        table = make(columns, bags.instances, None, *([None] if kind == "wide" else []))
        if kind != "files":
            pq.write_table(table, folder / "bags.parquet", row_group_size=row_group_size)
            return gmil.scan(folder / "bags.parquet")
        middle = len(table) // 2  # in the middle of a bag
        pq.write_table(table[:middle], folder / "a.parquet", row_group_size=row_group_size)
        pq.write_table(table[middle:], folder / "b.parquet", row_group_size=row_group_size)
        return gmil.scan(folder)
    for name, bag in zip(bags.bag_ids, bags, strict=True):
        if kind == "npy":
            np.save(folder / f"{name}.npy", bag)
        elif kind == "npz":
            np.savez(folder / f"{name}.npz", X=bag, times=np.arange(len(bag)))
        else:
            pq.write_table(pa.table({f"f{i}": bag[:, i] for i in range(bag.shape[1])}), folder / f"{name}.parquet")
    lines = [f"{name},{label}" for name, label in zip(bags.bag_ids, y, strict=True)]
    (folder / "labels.csv").write_text("\n".join(["bag,label", *reversed(lines)]) + "\n")
    return gmil.scan(folder)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    """Let every row group be a part: otherwise small files have one."""
    monkeypatch.setattr("gmil.scale.parquet._BYTES_OF_A_PART", 1)


@pytest.fixture(name="store", scope="session")
def store_fixture():
    """Return the writer of bags."""
    return store


@pytest.fixture(name="make_labelled", scope="session")
def make_labelled_fixture():
    """Return the maker of bags and labels."""
    return make_bags_and_labels


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def labelled():
    return make_bags_and_labels()


@pytest.fixture
def stored(tmp_path, labelled):
    """Return bags in memory, the same on disk, and labels."""
    bags, y = labelled
    lazy, again = store(tmp_path, "parquet", bags, y)
    assert np.array_equal(again, y)
    return bags, lazy, y
