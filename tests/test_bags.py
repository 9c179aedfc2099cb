"""`Bags`: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gmil import GMIL, Bags, BagValidationError, FormatError, PerInstance

MATRIX = np.arange(12.0).reshape(6, 2)
FRAME_LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def assert_same_bags(actual, expected):
    assert_array_equal(actual.offsets, expected.offsets)
    assert_array_equal(dense(actual.instances), dense(expected.instances))
    assert actual.dtype == expected.dtype
    assert actual.feature_names == expected.feature_names
    assert actual.bag_ids.tolist() == expected.bag_ids.tolist()
    assert actual.instance_info.to_pydict() == expected.instance_info.to_pydict()


def dense(instances):
    return instances.toarray() if sp.issparse(instances) else instances


# ------------------------------------------------------------------ construction


def test_from_list_stacks_bags():
    bags = Bags.from_list([MATRIX[:1], MATRIX[1:]])
    assert_array_equal(bags.instances, MATRIX)
    assert_array_equal(bags.offsets, [0, 1, 6])
    assert bags.offsets.dtype == np.int64


@pytest.mark.parametrize(
    "given_as",
    [list, tuple, iter, lambda bags: [bag.tolist() for bag in bags], lambda bags: [pd.DataFrame(bag) for bag in bags]],
    ids=["list", "tuple", "iterator", "nested lists", "frames"],
)
def test_from_list_takes_any_iterable_of_matrices(given_as):
    bags = Bags.from_list(given_as([MATRIX[:2], MATRIX[2:]]))
    assert_array_equal(bags.instances, MATRIX)
    assert_array_equal(bags.sizes, [2, 4])


def test_from_list_passes_the_optional_parts_on():
    bags = Bags.from_list([MATRIX], bag_ids=[7], feature_names=["a", "b"], instance_info={"t": range(6)})
    assert_array_equal(bags.bag_ids, [7])
    assert bags.feature_names == ("a", "b")
    assert bags.instance_info.column_names == ["t"]


def test_from_list_without_bags_is_refused():
    with pytest.raises(BagValidationError, match="no bags"):
        Bags.from_list([])


@pytest.mark.parametrize(
    ("given_dtype", "kept"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.float16, np.float32),
        (np.longdouble, np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (np.uint32, np.float64),
        (bool, np.float64),
    ],
)
def test_numbers_become_float32_or_float64(given_dtype, kept):
    bags = Bags(np.array([[0, 1], [1, 0]], dtype=given_dtype), [0, 2])
    assert bags.dtype == np.dtype(kept)
    assert bags.dtype.isnative
    assert_array_equal(bags.instances, [[0, 1], [1, 0]])


@pytest.mark.parametrize(("given_dtype", "kept"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("u1", "f8"), ("?", "f8")])
def test_sparse_numbers_become_float32_or_float64(given_dtype, kept):
    bags = Bags(sp.csr_array(np.array([[0, 1], [1, 0]], dtype=given_dtype)), [0, 2])
    assert bags.dtype == np.dtype(kept)
    assert_array_equal(bags.instances.toarray(), [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[1, 2]], dtype=object),
        np.array([["1", "2"]]),
        np.array([["1", "2"]], dtype=object),
        np.array([[b"1"]]),
        np.array([["2020-01-01"]], dtype="datetime64[D]"),
        np.array([[3]], dtype="timedelta64[s]"),
    ],
    ids=lambda matrix: str(matrix.dtype),
)
def test_what_is_no_number_is_refused(matrix):
    with pytest.raises(BagValidationError, match="must hold numbers, got"):
        Bags(matrix, [0, 1])
    with pytest.raises(BagValidationError, match="must hold numbers, got"):
        Bags.from_list([matrix])


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array])
def test_complex_numbers_are_refused(as_given):
    with pytest.raises(BagValidationError, match="Complex data not supported"):
        Bags(as_given(np.array([[1j, 0]])), [0, 1])


@pytest.mark.parametrize("matrix", [np.asfortranarray(MATRIX), np.hstack([MATRIX, MATRIX])[:, ::2], MATRIX[::-1]])
def test_instances_are_contiguous(matrix):
    bags = Bags(matrix, [0, 2, 6])
    assert bags.instances.flags.c_contiguous
    assert_array_equal(bags.instances, matrix)


def test_parts_are_read_only_and_the_arrays_of_the_caller_stay_writable():
    instances, offsets, ids = MATRIX.copy(), np.array([0, 2, 6]), np.array([5, 6])
    bags = Bags(instances, offsets, ids)
    for part in (bags.instances, bags.offsets, bags.bag_ids, bags[0], bags[:1].instances, bags[[1]].instances):
        assert not part.flags.writeable
    for own in (instances, offsets, ids):
        own[0] = 1
    assert np.shares_memory(bags.instances, instances)


def test_sparse_parts_are_read_only_and_the_array_of_the_caller_stays_writable():
    own = sp.csr_array(MATRIX)
    bags = Bags(own, [0, 2, 6])
    with pytest.raises(ValueError, match="read-only"):
        bags.instances.data[0] = 9
    own.data[0] = 9
    assert np.shares_memory(bags.instances.data, own.data)


def test_attributes_cannot_be_set():
    bags = Bags(MATRIX, [0, 6])
    with pytest.raises(AttributeError):
        bags.offsets = [0, 6]


@pytest.mark.parametrize(
    ("bags", "named"),
    [
        ([MATRIX[:0], MATRIX], "Bag 0 "),
        ([MATRIX, []], "Bag 1 "),
        ([MATRIX, MATRIX[:0], MATRIX, MATRIX[:0]], "Bag 1, 3 "),
        ([MATRIX[:0]] * 8, "Bag 0, 1, 2, 3, 4 and 3 more "),
        ([sp.csr_array(MATRIX), sp.csr_array((0, 2))], "Bag 1 "),
    ],
)
def test_empty_bags_are_refused_by_number(bags, named):
    with pytest.raises(BagValidationError, match=named + ".*0 instances"):
        Bags.from_list(bags)


def test_bags_of_different_features_are_refused():
    with pytest.raises(BagValidationError, match="Bag 2 has 3 features, but bag 0 has 2"):
        Bags.from_list([MATRIX, MATRIX, np.ones((1, 3))])


def test_instances_of_different_lengths_are_refused():
    with pytest.raises(BagValidationError, match="Bag 1 has instances of different lengths"):
        Bags.from_list([[[1.0, 2.0]], [[1.0], [2.0, 3.0]]])


@pytest.mark.parametrize(
    ("bag", "shape"),
    [(MATRIX[0], r"\(2,\)"), (MATRIX[None], r"\(1, 6, 2\)"), (3.0, r"\(\)"), (sp.coo_array(MATRIX[0]), r"\(2,\)")],
)
def test_a_bag_that_is_no_matrix_is_refused(bag, shape):
    with pytest.raises(BagValidationError, match=f"Bag 1 must be 2-D .* got shape {shape}"):
        Bags.from_list([MATRIX, bag])
    with pytest.raises(BagValidationError, match=f"instances must be 2-D .* got shape {shape}"):
        Bags(bag, [0, 1])


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 2], "end with the number of instances, 6; got 0 and 2"),
        ([1, 6], "begin with 0 .* got 1 and 6"),
        ([0, 4, 2, 6], "must never fall, but entry 2 does"),
        ([0.0, 6.0], "integers, got float64"),
        ([], "n_bags . 1 integers"),
        ([[0, 6]], r"got int64 of shape \(1, 2\)"),
        ([0, 2, 2, 6], "Bag 1 of X has 0 instances"),
        (6, "1-D array"),
    ],
)
def test_bad_offsets_are_refused(offsets, message):
    with pytest.raises(BagValidationError, match=message):
        Bags(MATRIX, offsets)


def test_unsigned_offsets_are_kept_as_int64():
    assert Bags(MATRIX, np.array([0, 6], dtype=np.uint32)).offsets.dtype == np.int64


@pytest.mark.parametrize(
    ("optional", "message"),
    [
        ({"bag_ids": [1]}, r"one entry per bag, 2; got shape \(1,\)"),
        ({"bag_ids": [[1, 2]]}, r"one entry per bag, 2; got shape \(1, 2\)"),
        ({"feature_names": ["a"]}, "one name per feature, 2; got 1"),
        ({"instance_info": {"t": [1, 2]}}, "one row per instance, 6; got 2"),
        ({"instance_info": 3}, "pandas, polars or pyarrow table or a dict of columns, got int"),
    ],
)
def test_optional_parts_of_another_length_are_refused(optional, message):
    with pytest.raises(BagValidationError, match=message):
        Bags(MATRIX, [0, 2, 6], **optional)


@pytest.mark.parametrize("library", FRAME_LIBRARIES)
def test_instance_info_may_be_any_table(library):
    bags = Bags(MATRIX, [0, 2, 6], instance_info=FRAME_LIBRARIES[library]({"t": list("abcdef")}))
    assert bags[[1]].instance_info.to_pydict() == {"t": ["c", "d", "e", "f"]}


# ------------------------------------------------------------------ from_ids


def test_from_ids_groups_rows_stably_in_order_of_first_appearance():
    ids = ["z", "a", "z", "m", "a", "z"]
    bags = Bags.from_ids(MATRIX, ids, feature_names=["a", "b"], instance_info={"row": range(6)})
    assert_array_equal(bags.bag_ids, ["z", "a", "m"])
    assert_array_equal(bags.instances, MATRIX[[0, 2, 5, 1, 4, 3]])
    assert bags.instance_info.to_pydict() == {"row": [0, 2, 5, 1, 4, 3]}
    assert_array_equal(bags.sizes, [3, 2, 1])
    assert bags.feature_names == ("a", "b")


def test_from_ids_does_not_copy_rows_that_are_grouped_already():
    assert np.shares_memory(Bags.from_ids(MATRIX, [9, 9, 3, 3, 3, 5]).instances, MATRIX)


def test_from_ids_regroups_sparse_rows():
    bags = Bags.from_ids(sp.coo_array(MATRIX), [1, 0, 1, 0, 1, 0])
    assert_array_equal(bags[1].toarray(), MATRIX[[1, 3, 5]])


@pytest.mark.parametrize(
    "ids",
    [
        [1.0, np.nan, 1, 1, 1, 1],
        np.array(["a", None, "a", "a", "a", "a"], dtype=object),
        np.array(["a", np.nan, "a", "a", "a", "a"], dtype=object),
        pd.Series(["a", None, "a", "a", "a", "a"], dtype="string"),
        pd.Series([1, None, 1, 1, 1, 1], dtype="Int64"),
        np.array(["2020", "NaT", "2020", "2020", "2020", "2020"], dtype="datetime64[Y]"),
    ],
    ids=["float", "None", "object NaN", "NA string", "NA integer", "NaT"],
)
def test_missing_ids_are_refused(ids):
    with pytest.raises(BagValidationError, match="Row 1 has no bag id"):
        Bags.from_ids(MATRIX, ids)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], "ids has 2 entries, but X has 6 rows"),
        (np.zeros((6, 1)), r"1-D array, got shape \(6, 1\)"),
        (3, r"1-D array, got shape \(\)"),
        (np.array([1, "a", 1, 1, 1, 1], dtype=object), "one kind"),
    ],
)
def test_bad_ids_are_refused(ids, message):
    with pytest.raises(BagValidationError, match=message):
        Bags.from_ids(MATRIX, ids)


@pytest.mark.parametrize("n_rows", [3, 9])
def test_from_ids_refuses_info_of_another_length(n_rows):
    with pytest.raises(BagValidationError, match=f"one row per instance, 6; got {n_rows}"):
        Bags.from_ids(MATRIX, [1, 2, 1, 2, 1, 2], instance_info={"row": range(n_rows)})


# ------------------------------------------------------------------ frames


@pytest.fixture(params=FRAME_LIBRARIES)
def frame_of(request):
    return FRAME_LIBRARIES[request.param]


COLUMNS = {
    "bag": ["x", "y", "x", "y", "z", "x"],
    "a": [0.0, 1, 2, 3, 4, 5],
    "b": [10, 11, 12, 13, 14, 15],
    "time": [5, 4, 3, 2, 1, 0],
    "comment": list("uvwxyz"),
    "label": [1, 0, 1, 0, 0, 1],
}


def test_from_frame_takes_number_columns_as_features(frame_of):
    bags = Bags.from_frame(frame_of(COLUMNS), bag="bag", info=["time"], drop=["label"])
    assert bags.feature_names == ("a", "b")
    assert list(bags.bag_ids) == ["x", "y", "z"]
    assert_array_equal(bags.instances, [[0, 10], [2, 12], [5, 15], [1, 11], [3, 13], [4, 14]])
    assert bags.instance_info.to_pydict() == {"time": [5, 3, 0, 4, 2, 1], "comment": list("uwzvxy")}


def test_from_frame_takes_the_features_it_is_told(frame_of):
    assert Bags.from_frame(frame_of(COLUMNS), bag="bag", features=["b", "time"]).feature_names == ("b", "time")
    one = Bags.from_frame(frame_of(COLUMNS), bag="bag", features="b")
    assert one.feature_names == ("b",)
    assert one.shape == (3, 1)


@pytest.mark.parametrize("features", [None, "features"])
def test_from_frame_reads_a_list_column(frame_of, features):
    columns = {"bag": COLUMNS["bag"], "features": MATRIX.tolist(), "other": COLUMNS["a"]}
    bags = Bags.from_frame(frame_of(columns), bag="bag", features=features)
    assert_array_equal(bags.instances, MATRIX[[0, 2, 5, 1, 3, 4]])
    assert bags.feature_names is None


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.large_list(pa.float32()),
        pa.list_(pa.float32(), 2),
    ],
    ids=str,
)
def test_from_frame_reads_every_kind_of_list_and_its_slices(kind):
    table = pa.table({"bag": COLUMNS["bag"], "features": pa.array(MATRIX.tolist(), type=kind)})
    bags = Bags.from_frame(table.slice(2, 3), bag="bag")
    assert bags.dtype == np.float32
    assert_array_equal(bags.instances, MATRIX[2:5])


def test_from_frame_reads_chunks():
    table = pa.concat_tables([pa.table({"bag": [i], "features": [MATRIX[i].tolist()]}) for i in range(3)])
    assert_array_equal(Bags.from_frame(table, bag="bag").instances, MATRIX[:3])


@pytest.mark.parametrize(
    ("features", "message"),
    [([[1.0], [2.0, 3.0]], "Row 1 .* has 2 numbers, but row 0 has 1"), ([[1.0], None], "Row 1 .* has None numbers")],
)
def test_from_frame_refuses_lists_of_different_lengths(features, message):
    with pytest.raises(BagValidationError, match=message):
        Bags.from_frame(pa.table({"bag": [1, 2], "features": features}), bag="bag")


def test_missing_features_become_nan(frame_of):
    columns = {"bag": [1, 1, 2], "a": [1.0, None, 3.0], "b": [1, None, 3]}
    frame = pd.DataFrame(columns, dtype="Float64") if frame_of is pd.DataFrame else frame_of(columns)
    bags = Bags.from_frame(frame, bag="bag")
    assert_array_equal(bags.instances, [[1, 1], [np.nan, np.nan], [3, 3]])


def test_from_frame_refuses_missing_ids(frame_of):
    for ids in (["a", None, "b"], [1, None, 2]):
        with pytest.raises(BagValidationError, match="Row 1 has no bag id"):
            Bags.from_frame(frame_of({"bag": ids, "a": [1.0, 2, 3]}), bag="bag")


@pytest.mark.parametrize(
    ("roles", "role"),
    [({"bag": "Bag"}, "bag"), ({"bag": "bag", "info": ["Bag"]}, "info"), ({"bag": "bag", "drop": ["Bag"]}, "drop")],
)
def test_an_unknown_column_is_refused_and_the_columns_are_listed(frame_of, roles, role):
    with pytest.raises(BagValidationError, match=rf"The {role} column 'Bag' is not there.*'bag', 'a', 'b'"):
        Bags.from_frame(frame_of(COLUMNS), **roles)


def test_one_column_name_may_come_without_a_list():
    bags = Bags.from_frame(COLUMNS, bag="bag", info="time", drop=["label", "comment"])
    assert bags.feature_names == ("a", "b")
    assert bags.instance_info.column_names == ["time"]


def test_a_features_column_of_text_is_refused(frame_of):
    with pytest.raises(BagValidationError, match="'comment' must hold numbers"):
        Bags.from_frame(frame_of(COLUMNS), bag="bag", features=["a", "comment"])


def test_a_frame_without_features_is_refused(frame_of):
    with pytest.raises(BagValidationError, match="No features column"):
        Bags.from_frame(frame_of({"bag": [1, 2], "text": ["a", "b"]}), bag="bag")


def test_a_column_that_is_there_twice_is_refused():
    table = pa.table([[1, 2], [1.0, 2.0], [3.0, 4.0]], names=["bag", "a", "a"])
    with pytest.raises(BagValidationError, match="'a' is there twice"):
        Bags.from_frame(table, bag="bag")


@pytest.mark.parametrize(
    "index", [[5, 3, 1, 4, 0, 2], pd.Index([0.5, 1, 2, 3, 4, 5], name="weight"), pd.RangeIndex(6, 12)]
)
def test_the_index_of_a_pandas_frame_is_no_feature(index):
    bags = Bags.from_frame(pd.DataFrame(COLUMNS, index=index), bag="bag", info="time", drop=["label", "comment"])
    assert bags.feature_names == ("a", "b")
    assert bags.instance_info.column_names == ["time"]


@pytest.mark.parametrize(
    "ids",
    [pd.Categorical(list("baab")), pl.Series(list("baab"), dtype=pl.Categorical), pa.array(list("baab"))],
    ids=["pandas", "polars", "pyarrow"],
)
def test_ids_may_be_categories(ids):
    if isinstance(ids, pa.Array):
        frame = pa.table({"bag": ids.dictionary_encode(), "a": [1.0, 2, 3, 4]})
    else:
        frame = (pd if isinstance(ids, pd.Categorical) else pl).DataFrame({"bag": ids, "a": [1.0, 2, 3, 4]})
    bags = Bags.from_frame(frame, bag="bag")
    assert list(bags.bag_ids) == ["b", "a"]
    assert_array_equal(bags.instances.ravel(), [1, 4, 2, 3])


@pytest.mark.parametrize("strange", [["x", 1.0, 2.0], [1j, 2j, 3j]])
def test_a_column_that_is_no_column_is_named(strange):
    frame = pd.DataFrame({"bag": [0, 0, 1], "f": [1.0, 2.0, 3.0], "odd": pd.Series(strange, dtype=None)})
    with pytest.raises(BagValidationError, match="neither numbers nor texts alone: Conversion failed for column odd"):
        Bags.from_frame(frame, bag="bag")


def test_two_columns_of_one_name_are_refused_in_a_frame():
    frame = pd.DataFrame([[0, 1.0, 2.0]], columns=["bag", "f", "f"])
    with pytest.raises(BagValidationError, match="The column 'f' is there twice"):
        Bags.from_frame(frame, bag="bag")


def test_decimals_are_numbers():
    frame = pa.table({"bag": [0, 0, 1], "f": [Decimal("1.5"), None, Decimal("-2.25")]})
    bags = Bags.from_frame(frame, bag="bag")
    assert bags.feature_names == ("f",)
    np.testing.assert_array_equal(bags.instances[:, 0], [1.5, np.nan, -2.25])


def test_something_that_is_no_table_is_refused():
    with pytest.raises(BagValidationError, match=r"pandas, polars or pyarrow table .* got int"):
        Bags.from_frame(3, bag="bag")


@pytest.mark.parametrize("library", FRAME_LIBRARIES)
def test_to_frame_and_back(rich_bags, library):
    frame = rich_bags.to_frame(bag="which", library=library)
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns if library != "pyarrow" else frame.column_names) == ["which", "row", "width", "height"]
    assert_same_bags(Bags.from_frame(frame, bag="which", info="row"), rich_bags)


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_to_frame_makes_up_ids_and_names(as_given):
    frame = Bags(as_given(MATRIX), [0, 2, 6]).to_frame()
    assert list(frame.columns) == ["bag", "f0", "f1"]
    assert frame["bag"].tolist() == [0, 0, 1, 1, 1, 1]
    assert_array_equal(frame[["f0", "f1"]], MATRIX)


def test_to_frame_refuses_an_unknown_library():
    with pytest.raises(ValueError, match="'pandas', 'polars' or 'pyarrow', got 'dask'"):
        Bags(MATRIX, [0, 6]).to_frame(library="dask")


@pytest.mark.parametrize(
    ("optional", "message"),
    [
        ({"feature_names": ["bag", "b"]}, "The feature 'bag' has the name of another column"),
        ({"feature_names": ["b", "b"]}, "The feature 'b' has the name of another column"),
        ({"instance_info": {"bag": range(6)}}, "instance_info column 'bag' has the name of another"),
        ({"instance_info": {"f1": range(6)}}, "instance_info column 'f1' has the name of another"),
    ],
)
def test_to_frame_refuses_two_columns_of_one_name(optional, message):
    with pytest.raises(BagValidationError, match=message):
        Bags(MATRIX, [0, 6], **optional).to_frame()


# ------------------------------------------------------------------ Parquet


@pytest.fixture
def parquet_file(tmp_path):
    path = tmp_path / "bags.parquet"
    columns = {"bag": COLUMNS["bag"], "label": COLUMNS["label"], "time": COLUMNS["time"]}
    features = pa.array(MATRIX.tolist(), type=pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({**columns, "features": features}), path)
    return path


def test_from_parquet_reads_a_list_column(parquet_file):
    bags = Bags.from_parquet(parquet_file, info="time")
    assert bags.dtype == np.float32
    assert_array_equal(bags.instances, MATRIX[[0, 2, 5, 1, 3, 4]])
    assert bags.instance_info.to_pydict() == {"time": [5, 3, 0, 4, 2, 1]}


def test_from_parquet_reads_wide_columns_and_leaves_the_label_out(tmp_path):
    pq.write_table(pa.table(COLUMNS), tmp_path / "wide.parquet")
    with pytest.warns(UserWarning, match="'label' .* left out"):
        assert Bags.from_parquet(tmp_path / "wide.parquet").feature_names == ("a", "b", "time")
    named = Bags.from_parquet(str(tmp_path / "wide.parquet"), bag="label", features=["b"])
    assert_array_equal(named.bag_ids, [1, 0])


def test_from_parquet_drops_what_it_is_told(tmp_path):
    pq.write_table(pa.table(COLUMNS), tmp_path / "wide.parquet")
    assert Bags.from_parquet(tmp_path / "wide.parquet", drop=["a", "label"]).feature_names == ("b", "time")


def test_a_file_that_is_cut_off_is_refused(parquet_file):
    data = parquet_file.read_bytes()
    for length in (0, 3, 4, 50, len(data) // 2, len(data) - 9, len(data) - 1):
        parquet_file.write_bytes(data[:length])
        with pytest.raises(FormatError, match=r"bags\.parquet cannot be read as Parquet: ."):
            Bags.from_parquet(parquet_file)


def test_a_file_of_another_kind_is_refused(parquet_file):
    parquet_file.write_text("bag,a\n1,2\n" * 20)
    with pytest.raises(FormatError, match="cannot be read as Parquet"):
        Bags.from_parquet(parquet_file)


def test_a_file_with_a_damaged_footer_is_refused(parquet_file):
    data = bytearray(parquet_file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[footer : footer + 16] = b"\xff" * 16
    parquet_file.write_bytes(data)
    with pytest.raises(FormatError, match="cannot be read as Parquet"):
        Bags.from_parquet(parquet_file)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.parquet"):
        Bags.from_parquet(tmp_path / "none.parquet")


# ------------------------------------------------------------------ indexing

CHOICES = {
    "slice": (slice(1, 3), [1, 2]),
    "open slice": (slice(None, 2), [0, 1]),
    "negative slice": (slice(-2, None), [2, 3]),
    "slice with step": (slice(None, None, 2), [0, 2]),
    "reversed": (slice(None, None, -1), [3, 2, 1, 0]),
    "slice beyond the end": (slice(2, 99), [2, 3]),
    "list": ([2, 0, 2], [2, 0, 2]),
    "negative in a list": ([-1, -4], [3, 0]),
    "array": (np.array([3, 1]), [3, 1]),
    "unsigned array": (np.array([3, 1], dtype=np.uint8), [3, 1]),
    "mask": (np.array([True, False, False, True]), [0, 3]),
    "list mask": ([False, True, True, False], [1, 2]),
    "pandas mask": (pd.Series([False, True, True, False]), [1, 2]),
    "nothing": ([], []),
    "mask of nothing": (np.zeros(4, dtype=bool), []),
    "empty slice": (slice(3, 1), []),
    "slice behind the end": (slice(9, None), []),
    "range": (range(1, 3), [1, 2]),
}


@pytest.mark.parametrize(("key", "positions"), CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("with_ellipsis", [False, True])
def test_everything_follows_the_indexing(rich_bags, key, positions, with_ellipsis):
    chosen = rich_bags[key, ...] if with_ellipsis else rich_bags[key]
    assert isinstance(chosen, Bags)
    assert chosen.shape == (len(positions), 2)
    assert [bag.tolist() for bag in chosen] == [rich_bags[i].tolist() for i in positions]
    assert chosen.bag_ids.tolist() == [rich_bags.bag_ids[i] for i in positions]
    assert chosen.feature_names == ("width", "height")
    # Row r of the instances is [2r, 2r + 1], so that the info tells whether it moved along.
    assert_array_equal(2 * chosen.instance_info["row"].to_numpy(), chosen.instances[:, 0])


@pytest.mark.parametrize(("key", "positions"), CHOICES.values(), ids=CHOICES)
def test_sparse_bags_are_indexed_alike(rich_bags, key, positions):
    chosen = rich_bags.with_instances(sp.csr_array(rich_bags.instances))[key]
    assert isinstance(chosen.instances, sp.csr_array)
    assert_array_equal(chosen.instances.toarray(), rich_bags[key].instances)
    assert_array_equal(chosen.offsets, rich_bags[key].offsets)


@pytest.mark.parametrize("integer", [int, np.int64, np.uint8, np.array])
def test_an_integer_gives_one_bag_as_a_view(rich_bags, integer):
    bag = rich_bags[integer(2)]
    assert_array_equal(bag, rich_bags.instances[4:8])
    assert np.shares_memory(bag, rich_bags.instances)
    assert_array_equal(rich_bags[integer(2), ...], bag)


def test_a_negative_integer_counts_from_the_end(rich_bags):
    assert_array_equal(rich_bags[-1], rich_bags.instances[8:])
    assert_array_equal(rich_bags[-4], rich_bags.instances[:3])


def test_slices_are_views(rich_bags):
    assert np.shares_memory(rich_bags[1:3].instances, rich_bags.instances)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (4, "Bag 4 is out of range: there are 4 bags"),
        (-5, "Bag -5 is out of range"),
        ([0, 4], "index 4 is out of bounds"),
        ([-5], "index -5 is out of bounds"),
        (True, r"mask of bags must have 4 entries, got shape \(\)"),
        (np.True_, r"mask of bags must have 4 entries, got shape \(\)"),
        ([True, False], r"mask of bags must have 4 entries, got shape \(2,\)"),
        (np.ones((4, 1), dtype=bool), r"mask of bags must have 4 entries, got shape \(4, 1\)"),
        (np.array([[0, 1]]), r"integers, slices or masks, got int64 of shape \(1, 2\)"),
        (np.empty((0, 2), dtype=int), r"got int64 of shape \(0, 2\)"),
        ([0.0, 1.0], "got float64"),
        (["a", "b"], "got <U1"),
        ((0, 1), r"indexed by bag alone, got the index \(0, 1\)"),
        ((slice(None), slice(None), ...), "indexed by bag alone"),
    ],
)
def test_bad_indices_are_refused(rich_bags, key, message):
    with pytest.raises(IndexError, match=message):
        rich_bags[key]


@pytest.mark.parametrize("key", [1.0, "a", None])
def test_scalars_that_are_no_integers_are_refused(rich_bags, key):
    with pytest.raises(TypeError, match="integer"):
        rich_bags[key]


def test_iteration_yields_the_bags_in_order(rich_bags):
    bags = list(rich_bags)
    assert len(bags) == len(rich_bags) == 4
    assert_array_equal(np.vstack(bags), rich_bags.instances)
    assert [len(bag) for bag in bags] == rich_bags.sizes.tolist()


def test_to_list_returns_views(rich_bags):
    assert all(np.shares_memory(bag, rich_bags.instances) for bag in rich_bags.to_list())


# ------------------------------------------------------------------ shape and manners


def test_sizes_and_shape(rich_bags):
    assert rich_bags.shape == (4, 2)
    assert rich_bags.n_instances == 10
    assert rich_bags.n_features == 2
    assert_array_equal(rich_bags.sizes, [3, 1, 4, 2])
    assert_array_equal(rich_bags.segment_ids, [0, 0, 0, 1, 2, 2, 2, 2, 3, 3])


def test_zero_bags_have_a_shape_and_no_rows(rich_bags):
    nothing = rich_bags[:0]
    assert nothing.shape == (0, 2)
    assert nothing.sizes.shape == nothing.segment_ids.shape == (0,)
    assert nothing.to_list() == []
    assert nothing.to_frame().shape == (0, 4)
    assert repr(nothing[[]]) == "Bags(n_bags=0, n_instances=0, n_features=2, float64)"


def test_repr_names_sizes_and_type():
    bags = Bags(MATRIX.astype(np.float32), [0, 1, 6])
    assert repr(bags) == "Bags(n_bags=2, n_instances=6, n_features=2, float32)"
    assert repr(bags.with_instances(sp.csr_array(MATRIX))).endswith("n_features=2, sparse float64)")


def test_with_instances_keeps_all_but_the_features(rich_bags):
    changed = rich_bags.with_instances(np.ones((10, 3), dtype=np.float32), ["x", "y", "z"])
    assert changed.shape == (4, 3)
    assert changed.feature_names == ("x", "y", "z")
    assert changed.bag_ids.tolist() == rich_bags.bag_ids.tolist()
    assert changed.instance_info == rich_bags.instance_info
    with pytest.raises(BagValidationError, match="number of instances, 9"):
        rich_bags.with_instances(np.ones((9, 3)))


@pytest.mark.parametrize("convert", [np.asarray, np.array, StandardScaler().fit], ids=["asarray", "array", "scaler"])
def test_bags_are_no_array_and_say_what_to_use(rich_bags, convert):
    with pytest.raises(TypeError, match=r"bags\.instances.*bags\.to_list\(\).*gmil\.PerInstance"):
        convert(rich_bags)


# ------------------------------------------------------------------ sparse instances


@pytest.mark.parametrize("given_as", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_array])
def test_sparse_instances_become_a_csr_array(given_as):
    bags = Bags(given_as(MATRIX), [0, 2, 6])
    assert isinstance(bags.instances, sp.csr_array)
    assert_array_equal(bags.instances.toarray(), MATRIX)
    assert_array_equal(bags[1].toarray(), MATRIX[2:])


def test_sparse_and_dense_bags_may_be_mixed():
    bags = Bags.from_list([MATRIX[:2], sp.csc_array(MATRIX[2:])])
    assert_array_equal(bags.instances.toarray(), MATRIX)


def test_unsorted_and_repeated_entries_are_put_in_order_in_a_copy():
    own = sp.csr_array((np.array([1.0, 2, 3]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    bags = Bags(own, [0, 1])
    assert_array_equal(bags.instances.indices, [0, 1])
    assert_array_equal(bags.instances.data, [2, 4])
    assert_array_equal(own.indices, [1, 0, 1])
    assert_array_equal(own.data, [1, 2, 3])


# ------------------------------------------------------------------ copies


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "make_copy",
    [
        copy.copy,
        copy.deepcopy,
        lambda bags: pickle.loads(pickle.dumps(bags)),
        lambda bags: pickle.loads(pickle.dumps(bags, 2)),
    ],
    ids=["copy", "deepcopy", "pickle", "pickle 2"],
)
def test_copies_are_equal_and_read_only(rich_bags, make_copy, sparse):
    if sparse:
        rich_bags = rich_bags.with_instances(sp.csr_array(rich_bags.instances), rich_bags.feature_names)
    copied = make_copy(rich_bags)
    assert_same_bags(copied, rich_bags)
    assert not (copied.instances.data if sparse else copied.instances).flags.writeable
    assert not copied.offsets.flags.writeable


def test_worker_processes_get_bags_as_memory_maps(gaussian_bags):
    def lie_in_a_memory_map(bags):
        owner = bags.instances
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return isinstance(owner, np.memmap)

    bags, y = gaussian_bags()
    model = GMIL(random_state=0).fit(bags, y)
    with joblib.Parallel(n_jobs=2, max_nbytes=100) as parallel:
        assert all(parallel(joblib.delayed(lie_in_a_memory_map)(each) for each in (bags, bags[3:])))
        halves = parallel(joblib.delayed(model.decision_function)(half) for half in (bags[:12], bags[12:]))
        refitted = parallel([joblib.delayed(GMIL(random_state=0).fit)(bags, y)])[0]
    assert_array_equal(np.concatenate(halves), model.decision_function(bags))
    assert_array_equal(refitted.cluster_centers_, model.cluster_centers_)


# ------------------------------------------------------------------ scikit-learn's tools


class TypeRecorder(ClassifierMixin, BaseEstimator):
    """Refuses everything but `Bags` of the features of the fixture."""

    def __init__(self, depth=1):
        self.depth = depth

    def fit(self, X, y):
        assert isinstance(X, Bags)
        assert len(X) == len(y)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        assert isinstance(X, Bags)
        return np.full(len(X), self.classes_[0])


def test_train_test_split_keeps_bags(gaussian_bags):
    bags, y = gaussian_bags()
    train, test, y_train, y_test = train_test_split(bags, y, test_size=6, random_state=0, stratify=y)
    assert isinstance(train, Bags)
    assert isinstance(test, Bags)
    assert (len(train), len(test)) == (len(y_train), len(y_test)) == (18, 6)
    assert train.n_instances + test.n_instances == bags.n_instances


def test_cross_validation_and_grid_search_keep_bags(gaussian_bags):
    bags, y = gaussian_bags()
    assert cross_val_score(TypeRecorder(), bags, y, cv=3, error_score="raise").tolist() == [0.5] * 3
    search = GridSearchCV(TypeRecorder(), {"depth": [1, 2]}, cv=2, error_score="raise").fit(bags, y)
    assert search.predict(bags[:5]).shape == (5,)


def test_pipelines_keep_bags(gaussian_bags):
    bags, y = gaussian_bags()
    pipeline = make_pipeline(PerInstance(), TypeRecorder())
    assert cross_val_score(pipeline, bags, y, cv=3, error_score="raise").tolist() == [0.5] * 3


# ------------------------------------------------------------------ properties

NUMBERS = st.floats(-1e6, 1e6, width=32)


@st.composite
def lists_of_bags(draw):
    n_features = draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    return [draw(hnp.arrays(dtype, (size, n_features), elements=NUMBERS)) for size in sizes]


@given(lists_of_bags())
def test_from_list_and_to_list_are_inverse(bags):
    back = Bags.from_list(bags).to_list()
    assert len(back) == len(bags)
    for before, after in zip(bags, back, strict=True):
        assert before.dtype == after.dtype
        assert_array_equal(before, after)


@given(lists_of_bags(), st.data())
def test_taking_bags_is_a_list_comprehension(bags, data):
    positions = data.draw(st.lists(st.integers(-len(bags), len(bags) - 1), max_size=8))
    taken = Bags.from_list(bags, bag_ids=range(len(bags)))[positions]
    expected = [bags[i] for i in positions]
    assert [bag.tolist() for bag in taken] == [bag.tolist() for bag in expected]
    assert taken.bag_ids.tolist() == [i % len(bags) for i in positions]


@given(lists_of_bags(), st.slices(6))
def test_slicing_bags_is_slicing_a_list(bags, key):
    assert [bag.tolist() for bag in Bags.from_list(bags)[key]] == [bag.tolist() for bag in bags[key]]


@given(st.lists(st.one_of(st.integers(-3, 3)), min_size=1, max_size=12), st.sampled_from([int, str, float]))
@settings(max_examples=50)
def test_from_ids_is_grouping_by_a_dict(numbers, kind):
    ids = [kind(number) for number in numbers]
    rows = np.arange(len(ids), dtype=np.float64)[:, None]
    groups = {}
    for row, bag_id in zip(rows.tolist(), ids, strict=True):
        groups.setdefault(bag_id, []).append(row)
    bags = Bags.from_ids(rows, ids, instance_info={"row": rows.ravel()})
    assert bags.bag_ids.tolist() == list(groups)
    assert [bag.tolist() for bag in bags] == list(groups.values())
    assert_array_equal(bags.instance_info["row"].to_numpy(), bags.instances.ravel())


# ------------------------------------------------------------------ joining, splitting, showing


def test_concat_is_the_reverse_of_indexing(gaussian_bags):
    bags, _ = gaussian_bags()
    named = Bags(
        bags.instances,
        bags.offsets,
        [f"bag {i}" for i in range(len(bags))],
        ["a", "b", "c"],
        {"time": np.arange(bags.n_instances)},
    )
    joined = Bags.concat([named[:3], named[3:4], named[4:]])
    assert_array_equal(joined.instances, named.instances)
    assert_array_equal(joined.offsets, named.offsets)
    assert_array_equal(joined.bag_ids, named.bag_ids)
    assert joined.feature_names == named.feature_names
    assert joined.instance_info.equals(named.instance_info)


def test_concat_of_sparse_and_dense_bags_is_sparse():
    dense = Bags.from_list([np.eye(2)])
    joined = Bags.concat([dense, Bags(sp.csr_array(np.eye(2)), [0, 2])])
    assert sp.issparse(joined.instances)
    assert_array_equal(joined.instances.toarray(), np.vstack([np.eye(2), np.eye(2)]))


def test_concat_leaves_out_what_not_every_part_has():
    one = Bags.from_list([[[1.0]]], bag_ids=["a"], feature_names=["x"], instance_info={"t": [0]})
    joined = Bags.concat([one, Bags.from_list([[[2.0]]])])
    assert joined.bag_ids is None
    assert joined.instance_info is None
    assert joined.feature_names == ("x",)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "no bags to join"),
        ([Bags.from_list([[[1.0]]]), Bags.from_list([[[1.0, 2.0]]])], "Part 1 has 2 features, but part 0 has 1"),
        (
            [Bags.from_list([[[1.0]]], feature_names=["x"]), Bags.from_list([[[1.0]]], feature_names=["y"])],
            "Feature 0 of part 1 is 'y', but that of part 0 is 'x'",
        ),
        (
            [
                Bags.from_list([[[1.0]]], instance_info={"t": [0]}),
                Bags.from_list([[[1.0]]], instance_info={"t": ["noon"]}),
            ],
            "instance_info do not fit together",
        ),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        Bags.concat(parts)


def test_split_gives_every_bag_its_scores(gaussian_bags):
    bags, _ = gaussian_bags()
    for values in (np.arange(bags.n_instances), bags.instances):
        parts = bags.split(values)
        assert [len(part) for part in parts] == bags.sizes.tolist()
        assert_array_equal(np.concatenate(parts), values)


@pytest.mark.parametrize("values", [1.0, [1.0], np.ones((2, 3))])
def test_split_refuses_another_number_of_instances(values):
    with pytest.raises(ValueError, match="one entry for each of the 3 instances"):
        Bags.from_list([[[0.0]], [[1.0], [2.0]]]).split(values)


def test_html_shows_sizes_names_and_the_first_instances():
    bags = Bags.from_list(
        [np.arange(16.0).reshape(2, 8), np.ones((9, 8))],
        bag_ids=["<b>", "two"],
        feature_names=[f"f{i}" for i in range(8)],
    )
    page = bags._repr_html_()
    for text in ("n_bags=2", "2 to 9, median 5.5", "&lt;b&gt;", "f5", "... 2 more", "... 6 more instances"):
        assert text in page
    assert "<b>two" not in page
    assert "f6" not in page


def test_html_of_sparse_and_of_no_bags():
    sparse = Bags(sp.csr_array(np.eye(2)), [0, 1, 2])
    assert "<td>1</td>" in sparse._repr_html_()
    assert "no bags" in sparse[:0]._repr_html_()
