"""Tables and text files as others write them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gmil.datasets import read, scan
from gmil.errors import BagValidationError

WIDE = {
    "bag": ["a", "b", "a", "b"],
    "label": [1, 0, 1, 0],
    "width": [0.5, 1.0, 2.0, 3.0],
    "height": [1, 2, 3, 4],
    "remark": ["p", "q", "r", "s"],
}


def check_wide(found) -> None:
    bags, y = found
    assert bags.bag_ids.tolist() == ["a", "b"]
    assert bags.feature_names == ("width", "height")
    assert bags[0].tolist() == [[0.5, 1.0], [2.0, 3.0]]
    assert y.tolist() == [1, 0]
    assert y.dtype == np.int64
    assert bags.instance_info.column("remark").to_pylist() == ["p", "r", "q", "s"]


def test_tables_of_every_library_are_regrouped(tmp_path):
    for make in (dict, pd.DataFrame, pl.DataFrame, pa.table):
        check_wide(read(make(WIDE)))
    pq.write_table(pa.table(WIDE), tmp_path / "wide.parquet")
    check_wide(read(tmp_path / "wide.parquet"))
    check_wide(read(str(tmp_path / "wide.parquet")))
    pd.DataFrame(WIDE).to_csv(tmp_path / "wide.csv", index=False)
    check_wide(read(tmp_path / "wide.csv"))
    pd.DataFrame(WIDE).to_csv(tmp_path / "WIDE.TSV", index=False, sep="\t")
    check_wide(read(tmp_path / "WIDE.TSV"))


def test_pandas_categories_and_odd_indices():
    frame = pd.DataFrame(WIDE, index=[7, 7, 8, 9])
    frame["label"] = pd.Categorical(["yes", "no", "yes", "no"])
    frame["bag"] = frame["bag"].astype("category")
    bags, y = read(frame)
    assert y.tolist() == ["yes", "no"]
    assert bags.bag_ids.tolist() == ["a", "b"]


def test_the_index_that_pandas_writes_along_is_no_feature(tmp_path):
    frame = pd.DataFrame(WIDE, index=[7, 8, 9, 10])
    frame.to_csv(tmp_path / "index.csv")
    check_wide(read(tmp_path / "index.csv"))
    check_wide(read(pd.read_csv(tmp_path / "index.csv")))
    frame.sort_values("bag").to_parquet(tmp_path / "index.parquet")
    check_wide(read(tmp_path / "index.parquet"))
    lazy, _ = scan(tmp_path / "index.parquet")
    assert lazy.feature_names == ("width", "height")
    assert lazy[0].tolist() == [[0.5, 1.0], [2.0, 3.0]]
    assert read(tmp_path / "index.csv", features=["", "width"])[0].feature_names == ("", "width")


@pytest.mark.parametrize("bag", ["bag_id", "Bag", "BAG_NAME"])
@pytest.mark.parametrize("label", ["y", "class", "Target", "LABEL"])
def test_usual_names_are_known(bag, label):
    bags, y = read({bag: [1, 1, 2], label: [0, 0, 1], "f": [1.0, 2.0, 3.0]})
    assert bags.feature_names == ("f",)
    assert bags.bag_ids.tolist() == [1, 2]
    assert y.tolist() == [0, 1]


def test_y_beside_x_is_a_coordinate():
    bags, y = read({"bag": [1, 2], "x": [0.0, 1.0], "y": [2.0, 3.0]})
    assert y is None
    assert bags.feature_names == ("x", "y")


def test_named_columns_go_before_usual_names():
    frame = {"bag": [1, 1], "slide": [5, 6], "label": [9, 8], "grade": [0, 1], "f": [1.0, 2.0]}
    bags, y = read(frame, bag="slide", label="grade", features=["f"], info=["label"])
    assert bags.bag_ids.tolist() == [5, 6]
    assert y.tolist() == [0, 1]
    assert bags.feature_names == ("f",)
    assert bags.instance_info.column_names == ["bag", "label"]


def test_a_label_column_can_be_mere_info():
    bags, y = read({"bag": [1, 1], "label": [0, 1], "f": [1.0, 2.0]}, info=["label"])
    assert y is None
    assert bags.n_features == 1


def test_list_columns_of_any_length_type(tmp_path):
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 2)):
        lists = pa.array([[1.0, 2.0], [3.0, 4.0]], kind)
        bags, _ = read(pa.table({"bag": ["a", "b"], "embedding": lists}), features="embedding")
        assert bags.instances.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert bags.instance_info is None


def test_one_feature_by_name():
    bags, _ = read({"bag": [1, 2], "f": [1.0, 2.0], "g": [3.0, 4.0]}, features="g")
    assert bags.feature_names == ("g",)


# ---------------------------------------------------------------- CSV


def test_csv_ids_and_labels_keep_their_writing(tmp_path):
    path = tmp_path / "bags.csv"
    path.write_text("bag_id,class,f\n007,+1,1\n007,+1,2\n7,-1,3\n")
    bags, y = read(path)
    assert bags.bag_ids.tolist() == ["007", "7"]
    assert y.tolist() == [1, -1]


def test_csv_bag_called_na_is_a_bag(tmp_path):
    path = tmp_path / "bags.csv"
    path.write_text("bag,label,f\nNA,nan,1\nUS,x,2\n")
    bags, y = read(path)
    assert bags.bag_ids.tolist() == ["NA", "US"]
    assert y.tolist() == ["nan", "x"]


def test_csv_gaps_byte_order_mark_and_semicolons(tmp_path):
    path = tmp_path / "bags.csv"
    path.write_text("\ufeffbag;f;g\na;1;\na;;\n", encoding="utf-8")
    bags, y = read(path)
    np.testing.assert_array_equal(bags.instances, [[1.0, np.nan], [np.nan, np.nan]])
    assert y is None


def test_csv_numbers_may_turn_from_whole_to_broken_late(tmp_path):
    path = tmp_path / "bags.csv"
    path.write_text("bag,f\n" + "a,1\n" * 5000 + "b,0.5\n")
    bags, _ = read(path)
    assert bags[1].tolist() == [[0.5]]


# ---------------------------------------------------------------- NPZ


def test_npz_in_the_shared_layout(shared_data):
    bags, y = read(shared_data / "ucfcrime_x3d_830_pca64.npz")
    assert bags.bag_ids[0] == "Abuse001_x264"
    assert bags.dtype == np.float32
    assert bags.instance_info.column_names == ["y_instance"]
    assert y.sum() == 400
    bags, _ = read(shared_data / "musk1.npz")
    assert bags.instance_info.column("instance_names")[0].as_py() == "188_1+1"


def test_npz_bags_out_of_order_keep_their_labels(tmp_path):
    path = tmp_path / "bags.npz"
    np.savez(path, X=np.eye(3), bag_index=[1, 0, 1], y=[5, 6], bag_names=["zero", "one"])
    bags, y = read(path)
    assert bags.bag_ids.tolist() == ["one", "zero"]
    assert y.tolist() == [6, 5]


def test_npz_other_names_and_labels_per_instance(tmp_path):
    path = tmp_path / "bags.npz"
    np.savez(path, instances=np.eye(3), ids=["p", "p", "q"], truth=["u", "u", "v"])
    bags, y = read(path, label="truth")
    assert bags.bag_ids.tolist() == ["p", "q"]
    assert y.tolist() == ["u", "v"]


# ---------------------------------------------------------------- UCI


def test_c45_as_uci_has_it(tmp_path):
    path = tmp_path / "clean1.data"
    path.write_text("MUSK-188,188_1+1,42,-198,1.\nMUSK-188,188_1+2,42,-191,1.\nNON-MUSK-3,3_1+1,5,6,0.\n")
    bags, y = read(path)
    assert bags.bag_ids.tolist() == ["MUSK-188", "NON-MUSK-3"]
    assert bags.feature_names == ("f1", "f2")
    assert bags.instance_info.column("conformation_name").to_pylist()[1] == "188_1+2"
    assert y.tolist() == [1, 0]
    assert bags[0].tolist() == [[42.0, -198.0], [42.0, -191.0]]


# ---------------------------------------------------------------- labels


@pytest.mark.parametrize("labels", [[1, 0, 0], ["p", "q", "q"]])
def test_label_that_varies_names_the_bag_and_both_values(labels):
    with pytest.raises(BagValidationError) as caught:
        read({"bag": ["a", "a", "b"], "label": labels, "f": [1.0, 2.0, 3.0]})
    message = str(caught.value)
    assert "label of bag 'a' varies" in message
    assert repr(labels[0]) in message
    assert repr(labels[1]) in message
    assert "row 1" in message


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_label_that_is_missing_names_the_row(gap):
    frame = pd.DataFrame({"bag": ["a", "b"], "label": [1.0, gap], "f": [1.0, 2.0]})
    with pytest.raises(BagValidationError, match=r"label of bag .* is missing \(row 1;"):
        read(frame)
