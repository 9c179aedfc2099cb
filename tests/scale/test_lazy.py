"""Lazy bags are bags: same shape, same indexing, same values, whatever they lie in."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score

import gmil
from gmil.errors import BagValidationError, FormatError, MissingFileError


def same(one, other):
    return (
        np.array_equal(one.instances, other.instances)
        and np.array_equal(one.offsets, other.offsets)
        and np.array_equal(one.bag_ids, other.bag_ids)
        and one.dtype == other.dtype
    )


def test_everything_about_them_is_that_of_bags(store, tmp_path, kind, labelled):
    bags, y = labelled
    lazy, labels = store(tmp_path, kind, bags, y)
    assert np.array_equal(labels, y)
    assert (len(lazy), lazy.shape, lazy.n_instances) == (len(bags), bags.shape, bags.n_instances)
    assert (lazy.n_features, lazy.dtype) == (bags.n_features, bags.dtype)
    assert np.array_equal(lazy.sizes, bags.sizes)
    assert np.array_equal(lazy.segment_ids, bags.segment_ids)
    assert same(lazy.load(), bags)


@pytest.mark.parametrize("key", [slice(3, 20), slice(None, None, -3), [5, 5, 0, 39], np.arange(40) % 3 == 0, []])
def test_indexing_is_that_of_bags(store, tmp_path, kind, labelled, key):
    bags, y = labelled
    lazy, _ = store(tmp_path, kind, bags, y)
    if len(np.arange(40)[key if isinstance(key, slice) else np.array(key, dtype=int if len(key) < 40 else bool)]):
        assert same(lazy[key].load(), bags[key])
    assert np.array_equal(lazy[key].sizes, bags[key].sizes)
    assert np.array_equal(lazy[-1], bags[-1])
    assert np.array_equal(lazy[5:][::2][3], bags[5:][::2][3])


def test_bad_indices_are_refused_as_by_bags(stored):
    _, lazy, _ = stored
    with pytest.raises(IndexError, match="out of range"):
        lazy[40]
    with pytest.raises(IndexError, match="mask of bags"):
        lazy[np.ones(3, dtype=bool)]


def test_take_gives_rows_in_the_order_asked_for(store, tmp_path, kind, labelled):
    bags, y = labelled
    lazy, _ = store(tmp_path, kind, bags, y)
    key = [7, 3, 22, 3]
    rows = np.array([0, 5, 2, 2, bags[key].n_instances - 1])
    assert np.array_equal(lazy[key].take(rows), bags[key].instances[rows])


@pytest.mark.parametrize("rows", [[-1], [0, -1], [12], [3, 100]])
def test_take_refuses_rows_that_are_not_there(rows):
    lazy = gmil.LazyBags.from_array(np.arange(24.0).reshape(12, 2), [0, 3, 12])
    with pytest.raises(IndexError, match=f"Instance {rows[-1]} is out of range: there are 12 instances"):
        lazy.take(rows)


@pytest.mark.parametrize(
    "X", [np.ones(6), np.ones((6, 2, 2)), np.ones((6, 2), dtype=complex), np.ones((6, 2), dtype=object)]
)
def test_arrays_that_are_no_matrix_of_numbers_are_refused(X):
    with pytest.raises(BagValidationError, match="X must be a matrix of real numbers, got"):
        gmil.LazyBags.from_array(X, [0, 2, 6])


def test_blocks_are_whole_bags(store, tmp_path, kind, labelled):
    bags, y = labelled
    lazy, _ = store(tmp_path, kind, bags, y)
    for rows in (1, 20, 100, 10_000):
        blocks = list(lazy[3:].blocks(rows))
        assert np.array_equal(np.concatenate([block.instances for block in blocks]), bags[3:].instances)
        assert np.array_equal(np.concatenate([block.sizes for block in blocks]), bags[3:].sizes)
        assert np.array_equal(np.concatenate([block.bag_ids for block in blocks]), bags[3:].bag_ids)
        assert all(len(block) == 1 or block.n_instances <= 2 * rows + bags.sizes.max() for block in blocks)


def sums_and_extremes(bags):
    parts = [bag.astype(np.float64) for bag in bags]
    sums = np.array([part.sum(axis=0) for part in parts])
    return sums, np.array([p.min(axis=0) for p in parts]), np.array([p.max(axis=0) for p in parts]), bags.sizes


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 25), min_size=1, max_size=12),
    rows=st.integers(1, 30),
    n_threads=st.integers(1, 3),
    chosen=st.lists(st.integers(0, 11), max_size=6),
    data=st.data(),
)
def test_a_bag_cut_into_pieces_is_still_one_bag(sizes, rows, n_threads, chosen, data):
    n_rows = sum(sizes)
    X = np.random.default_rng(0).integers(-9, 9, size=(n_rows, 2)).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    lazy = gmil.LazyBags.from_array(X, offsets)
    cuts = sorted(data.draw(st.sets(st.integers(1, n_rows - 1), max_size=4))) if n_rows > 1 else []
    source = type(lazy.source)(X, np.array([0, *cuts, n_rows]))
    lazy = gmil.LazyBags(source, offsets)
    key = [i % len(sizes) for i in chosen] or slice(None)
    joins = (np.add, np.minimum, np.maximum, np.add)
    found = lazy[key].reduce(sums_and_extremes, joins, n_threads=n_threads, rows=rows)
    wanted = sums_and_extremes(gmil.Bags(X, offsets)[key])
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_who_watches_hears_of_every_pass_to_its_end(stored):
    bags, lazy, _ = stored
    heard = []
    lazy.watched(lambda done, total: heard.append((done, total))).load()
    assert heard[-1] == (bags.n_instances, bags.n_instances)
    assert heard == sorted(heard)
    assert len(heard) > 1


def test_lazy_bags_travel_without_their_values(store, make_labelled, tmp_path, kind):
    bags, y = make_labelled(sizes=(200, 300))
    lazy, _ = store(tmp_path, kind, bags, y)
    parcel = pickle.dumps(lazy)
    assert len(parcel) < bags.instances.nbytes / 10
    assert same(pickle.loads(parcel).load(), bags)


# ------------------------------------------------------------------ reading into memory


@pytest.mark.parametrize(
    "part",
    [np.s_[:], np.s_[2500:], np.s_[10:20], np.s_[:, 1:3], np.s_[::2]],
    ids=["all", "tail", "middle", "columns", "every second"],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_another_process_reads_the_same_rows_of_a_mapped_file(tmp_path, part, order):
    np.save(tmp_path / "X.npy", np.asarray(np.arange(12_000.0).reshape(3000, 4), order=order))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")[part]
    bags = gmil.LazyBags.from_array(X, [0, 5, len(X)])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(bags)).load().instances, X)


def test_another_process_sees_values_that_were_changed_in_memory_alone(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((6, 2)))
    X = np.load(tmp_path / "X.npy", mmap_mode="c")
    X[4] = 7
    bags = gmil.LazyBags.from_array(X, [0, 2, 6])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(bags)).load().instances, X)


@pytest.mark.parametrize("kind", ["files", "npy", "npz", "parquet-bags"])
def test_a_folder_is_read_like_a_file(store, tmp_path, kind, labelled):
    bags, y = labelled
    store(tmp_path, kind, bags, y)
    read, labels = gmil.read(tmp_path)
    assert same(read, bags)
    assert np.array_equal(labels, y)
    if kind != "files":
        assert same(gmil.Bags.from_folder(tmp_path), bags)


def test_labels_may_lie_elsewhere_and_be_texts(store, tmp_path, labelled):
    bags, y = labelled
    folder = tmp_path / "bags"
    folder.mkdir()
    store(folder, "npy", bags, y)
    (folder / "labels.csv").unlink()
    assert gmil.scan(folder)[1] is None
    names = np.where(y == 1, "yes", "no")
    table = "\n".join(f"{i},{n}" for i, n in zip(bags.bag_ids, names, strict=True))
    (tmp_path / "truth.csv").write_text(f"slide,verdict\n{table}\n")
    _, labels = gmil.scan(folder, labels=tmp_path / "truth.csv", bag="slide", label="verdict")
    assert np.array_equal(labels, names)


# ------------------------------------------------------------------ bad input


def test_a_bag_without_a_label_is_named(store, tmp_path, labelled):
    bags, y = labelled
    store(tmp_path, "npy", bags, y)
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    (tmp_path / "labels.csv").write_text("\n".join(line for line in lines if not line.startswith("bag0007")))
    with pytest.raises(BagValidationError, match="no label for bag bag0007"):
        gmil.scan(tmp_path)


def test_what_cannot_be_scanned_is_refused(store, tmp_path, labelled):
    bags, y = labelled
    with pytest.raises(MissingFileError, match="does not exist"):
        gmil.scan(tmp_path / "nothing.parquet")
    with pytest.raises(MissingFileError, match=r"holds no \.npy"):
        gmil.scan(tmp_path)
    gmil.write(tmp_path / "bags.csv", bags, y)
    with pytest.raises(FormatError, match="cannot be read in blocks"):
        gmil.scan(tmp_path / "bags.csv")


def test_bags_whose_rows_lie_apart_are_named(tmp_path):
    table = pa.table({"bag": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "bags.parquet")
    with pytest.raises(BagValidationError, match="rows of bag 'a' are not next to each other"):
        gmil.scan(tmp_path / "bags.parquet")


@pytest.mark.parametrize("row_group_size", [1, 10])
def test_labels_that_vary_in_a_bag_are_refused(tmp_path, row_group_size):
    table = pa.table({"bag": ["a", "a", "b"], "label": [0, 1, 1], "x": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "bags.parquet", row_group_size=row_group_size)
    with pytest.raises(BagValidationError, match="label of bag 'a' varies"):
        gmil.scan(tmp_path / "bags.parquet")


def test_a_missing_label_is_named(tmp_path):
    table = pa.table({"bag": ["a", "b", "c"], "label": [0, None, 1], "x": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "bags.parquet")
    with pytest.raises(BagValidationError, match="label of bag 'b' is missing"):
        gmil.scan(tmp_path / "bags.parquet")


def test_no_bags_at_all_are_bags_too(stored):
    bags, lazy, y = stored
    assert lazy[[]].load().shape == bags[[]].shape
    assert list(lazy[[]].blocks()) == []
    with pytest.raises(BagValidationError, match="X holds no bags"):
        gmil.GMIL().fit(lazy[[]], y[:0])


def test_scikit_learn_can_cut_them(stored):
    bags, lazy, y = stored
    model = gmil.GMIL(8, sample_size=200, random_state=0)
    expected = cross_val_score(model, bags, y, cv=3)
    assert np.array_equal(cross_val_score(model, lazy, y, cv=3), expected)


def test_files_of_different_width_are_named(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    np.save(tmp_path / "b.npy", np.ones((2, 4)))
    with pytest.raises(BagValidationError, match=r"b\.npy has 4 features, but .*a\.npy has 3"):
        gmil.scan(tmp_path)
    (tmp_path / "b.npy").unlink()
    np.save(tmp_path / "c.npy", np.ones(3))
    with pytest.raises(FormatError, match=r"c\.npy must hold one bag"):
        gmil.scan(tmp_path)


def test_a_file_of_objects_is_never_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match=r"a\.npy cannot be read as NPY"):
        gmil.scan(tmp_path)


@pytest.mark.parametrize("harm", ["missing", "cut", "other"])
@pytest.mark.parametrize("form", ["files", "npy", "parquet-bags"])
def test_a_part_that_is_gone_or_damaged_is_named(store, tmp_path, labelled, form, harm):
    bags, y = labelled
    lazy, _ = store(tmp_path, form, bags, y)
    victim = sorted(path for path in tmp_path.iterdir() if path.suffix != ".csv")[-1]
    if harm == "missing":
        victim.unlink()
    elif harm == "cut":
        victim.write_bytes(victim.read_bytes()[:-40])
    else:
        other = sorted(path for path in tmp_path.iterdir() if path.suffix != ".csv")[0]
        victim.write_bytes(other.read_bytes())
    with pytest.raises((FormatError, MissingFileError), match=victim.name):
        lazy.reduce(sums_and_extremes, (np.add, np.minimum, np.maximum, np.add))


@pytest.mark.parametrize("rows", [None, 3])
def test_a_part_that_has_grown_is_named(tmp_path, rows):
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.ones((4, 2)))
    lazy, _ = gmil.scan(tmp_path)
    np.save(tmp_path / "1.npy", np.ones((6, 2)))
    with pytest.raises(FormatError, match=r"1\.npy has at least 6 instances where 4 were found before"):
        list(lazy.blocks(rows))


def test_nan_is_named_by_bag_among_chosen_ones():
    X = np.arange(12.0).reshape(6, 2)
    X[5, 0] = np.nan
    lazy = gmil.LazyBags.from_array(X, [0, 1, 4, 6])
    with pytest.raises(BagValidationError, match="contains NaN: in bag 2, instance 1"):
        list(lazy[[0, 2]].blocks())


def test_nan_is_named_by_bag(store, tmp_path, labelled):
    bags, y = labelled
    X = bags.instances.copy()
    X[bags.offsets[7] + 1, 2] = np.nan
    lazy, _ = store(tmp_path, "parquet", gmil.Bags(X, bags.offsets, bags.bag_ids), y)
    with pytest.raises(BagValidationError, match=r"contains NaN: in bag 7 \(bag0007\)"):
        lazy.reduce(sums_and_extremes, (np.add, np.minimum, np.maximum, np.add))


def test_methods_that_need_memory_say_so(stored):
    _, lazy, y = stored
    with pytest.raises(BagValidationError, match=r"CitationKNN needs all bags in memory.*X\.load\(\)"):
        gmil.CitationKNN().fit(lazy, y)
