"""The same bags, through every format and back."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gmil import Bags
from gmil.datasets import load_musk1, make_bags, read, write
from gmil.errors import BagValidationError, ColumnWarning

EXACT = (".npz", ".mat", ".csv", ".tsv", ".arff", ".data")
ALL = (*EXACT, ".parquet")
texts = st.text("aäß雪 '\",%\\{}?@b;", min_size=1, max_size=6).filter(lambda t: t == t.strip())
plain = st.text("abcXYZ-", min_size=1, max_size=6)
numbers = st.floats(width=64, allow_nan=False, allow_infinity=True)
quick = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def bags_and_labels(draw, names=texts, elements=numbers):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    n_features = draw(st.integers(1, 4))
    X = draw(hnp.arrays(np.float64, (sum(sizes), n_features), elements=elements))
    ids = draw(st.lists(names, min_size=len(sizes), max_size=len(sizes), unique=True))
    y = draw(
        st.one_of(
            st.lists(st.integers(-5, 5), min_size=len(sizes), max_size=len(sizes)),
            st.lists(names, min_size=len(sizes), max_size=len(sizes)),
        )
    )
    feature_names = tuple(f"feature {i}" for i in range(n_features))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(X, offsets, np.array(ids), feature_names), np.array(y)


def through(suffix: str, bags: Bags, y, **options) -> tuple[Bags, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"bags{suffix}"
        write(path, bags, y, **options)
        assert [p.name for p in Path(folder).iterdir()] == [path.name]
        return read(path)


def assert_same(found: tuple[Bags, np.ndarray], bags: Bags, y) -> None:
    assert found[0].dtype == bags.dtype
    np.testing.assert_array_equal(found[0].instances, bags.instances)
    np.testing.assert_array_equal(found[0].offsets, bags.offsets)
    np.testing.assert_array_equal(found[0].bag_ids, bags.bag_ids)
    np.testing.assert_array_equal(found[1], y)
    assert found[1].dtype.kind == y.dtype.kind
    assert found[0].feature_names == bags.feature_names


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".csv", ".tsv", ".arff"])
@quick
@given(case=bags_and_labels())
def test_exact_formats(suffix, case):
    assert_same(through(suffix, *case), *case)


@quick
@given(case=bags_and_labels())
def test_parquet_as_float64(case):
    assert_same(through(".parquet", *case, dtype="float64"), *case)


@quick
@given(case=bags_and_labels(elements=st.floats(width=32, allow_nan=False)))
def test_parquet_as_float32(case):
    bags, y = case
    single = bags.with_instances(bags.instances.astype(np.float32), bags.feature_names)
    assert_same(through(".parquet", bags, y), single, y)


@quick
@given(case=bags_and_labels(names=plain))
def test_c45(case):
    bags, y = case
    found, labels = through(".data", bags, y)
    np.testing.assert_array_equal(found.instances, bags.instances)
    np.testing.assert_array_equal(found.bag_ids, bags.bag_ids)
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@quick
@given(case=bags_and_labels())
def test_frames(library, case):
    bags, y = case
    frame = bags.to_frame(library=library)
    labels = np.repeat(y, bags.sizes)
    if library == "pyarrow":
        frame = frame.append_column("label", pa.array(labels.tolist()))
    elif library == "pandas":
        frame["label"] = labels
    else:
        import polars as pl

        frame = frame.with_columns(pl.Series("label", labels.tolist()))
    assert_same(read(frame), bags, y)


@quick
@given(case=bags_and_labels())
def test_list_is_bags(case):
    bags, y = case
    found, labels = through(".npz", bags.to_list(), y)
    np.testing.assert_array_equal(found.instances, bags.instances)
    np.testing.assert_array_equal(found.offsets, bags.offsets)
    np.testing.assert_array_equal(labels, y)
    assert found.bag_ids is None


# ---------------------------------------------------------------- cases worth a name


@pytest.mark.parametrize("suffix", ALL)
def test_musk1_through_every_format(suffix):
    bags, y = load_musk1(return_X_y=True)
    found, labels = through(suffix, bags, y)
    np.testing.assert_array_equal(found.instances, bags.instances)
    np.testing.assert_array_equal(found.offsets, bags.offsets)
    np.testing.assert_array_equal(found.bag_ids, bags.bag_ids)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, y)
    assert found.feature_names == bags.feature_names


@pytest.mark.parametrize("suffix", [s for s in ALL if s != ".data"])
def test_without_labels(suffix, small):
    found, labels = through(suffix, small[0], None)
    assert labels is None
    np.testing.assert_array_equal(found.bag_ids, small[0].bag_ids)


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".csv", ".arff", ".parquet"])
def test_missing_values_survive(suffix):
    X = np.array([[np.nan, 1.0], [np.nan, np.nan], [np.nan, 2.0]])
    bags = Bags(X, [0, 1, 3], bag_ids=np.array(["a", "b"]), feature_names=("p", "q"))
    found, _ = through(suffix, bags, np.array([0, 1]), dtype="float64")
    np.testing.assert_array_equal(found.instances, X)


def _numbers_named(suffix):
    """Expect to be told that a format cannot tell numbers of info from features."""
    if suffix not in (".csv", ".arff"):
        return contextlib.nullcontext()
    return pytest.warns(ColumnWarning, match=rf"in instance_info is a number, which \{suffix} .*drop=\.\.\.")


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".csv", ".arff", ".parquet"])
def test_labels_of_instances_never_become_features(suffix, tmp_path):
    """Written by one format and read by another, they would teach what they are to measure."""
    made = make_bags(8, n_features=3, random_state=0)
    bags = made.bags
    bags = Bags(bags.instances, bags.offsets, bags.bag_ids, ("a", "b", "c"), {"y_instance": made.instance_y})
    path = tmp_path / f"bags{suffix}"
    write(path, bags, made.y)
    is_wide = suffix in (".csv", ".arff")
    with pytest.warns(ColumnWarning, match="'y_instance' is left out") if is_wide else contextlib.nullcontext():
        found, y = read(path)
    assert found.n_features == 3
    np.testing.assert_array_equal(y, made.y)
    np.testing.assert_array_equal(found.instance_info.column("y_instance").to_numpy(), made.instance_y)


def test_whole_numbers_that_change_are_told_of(tmp_path):
    bags = Bags(np.array([[1700000001.0, 0.1], [3.0, 4.0]]), [0, 1, 2])
    with pytest.warns(ColumnWarning, match=r"1700000001 becomes 1700000000 in float32\. Keep .* dtype=\.\.\."):
        write(tmp_path / "bags.parquet", bags)
    write(tmp_path / "bags.parquet", bags, dtype="float64")
    assert read(tmp_path / "bags.parquet")[0].instances[0, 0] == 1700000001
    write(tmp_path / "small.parquet", bags[1:])  # without a word


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".arff"])
@pytest.mark.parametrize("with_info", [False, True])
def test_sparse_stays_sparse(suffix, with_info):
    values = np.random.default_rng(0).uniform(-9, 1, size=(7, 30))
    matrix = sp.csr_array(np.maximum(values, 0))
    info = {"moment": np.arange(7) * 0.5, "kind": np.array(list("abcabca"))} if with_info else None
    bags = Bags(matrix, [0, 3, 4, 7], np.array(["x", "y", "z"]), instance_info=info)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"bags{suffix}"
        with _numbers_named(suffix if with_info else ""):
            write(path, bags, ["p", "q", "p"])
        found, y = read(path, info=["moment"] if with_info else ())
    assert sp.issparse(found.instances)
    np.testing.assert_array_equal(found.instances.toarray(), matrix.toarray())
    np.testing.assert_array_equal(found.bag_ids, ["x", "y", "z"])
    np.testing.assert_array_equal(y, ["p", "q", "p"])
    if with_info:
        assert found.instance_info.column("moment").to_pylist() == info["moment"].tolist()
        assert found.instance_info.column("kind").to_pylist() == info["kind"].tolist()


def test_trec9_through_npz_and_mat(shared_data, tmp_path):
    from gmil.datasets import fetch_trec9

    bags, y = fetch_trec9(return_X_y=True)
    for suffix in (".npz", ".mat"):
        found, labels = through(suffix, bags, y)
        assert (found.instances != bags.instances).nnz == 0
        np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".csv", ".arff", ".parquet"])
def test_info_is_carried(suffix, tmp_path):
    info = {"time": np.array([0.5, 1.5, 2.5]), "name": np.array(["a", "it's, ", '"c"'])}
    bags = Bags(np.eye(3), [0, 2, 3], np.array(["p", "q"]), instance_info=info)
    path = tmp_path / f"bags{suffix}"
    with _numbers_named(suffix):
        write(path, bags, [0, 1])
    found, _ = read(path, info=["time"])
    assert found.n_features == 3
    assert sorted(found.instance_info.column_names) == ["name", "time"]
    assert found.instance_info.column("time").to_pylist() == [0.5, 1.5, 2.5]
    assert found.instance_info.column("name").to_pylist() == ["a", "it's, ", '"c"']


def test_parquet_keeps_dates_and_all_other_columns(tmp_path):
    info = pa.table({"day": pa.array([1, 2, 3], pa.timestamp("ms")), "n": [1, 2, 3]})
    bags = Bags(np.eye(3), [0, 2, 3], instance_info=info)
    write(tmp_path / "bags.parquet", bags)
    found, y = read(tmp_path / "bags.parquet")
    assert y is None
    assert found.instance_info.equals(info)


def test_parquet_has_the_documented_layout(tmp_path, small):
    write(tmp_path / "bags.parquet", make_bags(3, random_state=0).bags, [1, 0, 1])
    schema = pq.read_schema(tmp_path / "bags.parquet")
    assert schema.names == ["bag", "label", "features"]
    kind = schema.field("features").type
    assert pa.types.is_fixed_size_list(kind)
    assert (kind.list_size, kind.value_type) == (10, pa.float32())


@pytest.mark.parametrize("suffix", ALL)
def test_float_labels_stay_floats(suffix, small):
    bags = Bags(np.eye(3), [0, 2, 3], np.array(["p", "q"]))
    _, labels = through(suffix, bags, [0.5, 2.0])
    assert labels.dtype == np.float64
    assert labels.tolist() == [0.5, 2.0]


@pytest.mark.parametrize("suffix", ALL)
def test_whole_and_true_labels_become_integers(suffix):
    bags = Bags(np.eye(3), [0, 2, 3], np.array(["p", "q"]))
    for y in ([1.0, -1.0], [True, False]):
        _, labels = through(suffix, bags, y)
        assert labels.dtype == np.int64
        assert labels.tolist() == [int(v) for v in y]


@pytest.mark.parametrize("suffix", ALL)
def test_bags_of_one_name_are_refused(suffix):
    bags = Bags(np.eye(3), [0, 2, 3], np.array(["twin", "other"]))[[0, 0]]
    with pytest.raises(BagValidationError, match="2 bags are called 'twin'"):
        through(suffix, bags, [0, 1])


def test_float32_bags_keep_their_values():
    X = np.array([[0.1, 1e-30], [3.3, -0.7]], dtype=np.float32)
    bags = Bags(X, [0, 1, 2])
    for suffix in ALL:
        found, _ = through(suffix, bags, [0, 1])
        np.testing.assert_array_equal(found.instances, X)
    for suffix in (".npz", ".mat", ".parquet"):
        assert through(suffix, bags, [0, 1])[0].dtype == np.float32
