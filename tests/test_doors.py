"""Every door from a table to bags: the same table gives the same bags, features, information and labels."""

import datetime as dt
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gmil
from gmil import Bags
from gmil.cli.inputs import Reader
from gmil.errors import BagValidationError

NAMES = ["f", "g", "x", "y", "Class", "target", "label", "Label", "note", "Unnamed: 0", "bag_id", "molecule_name"]
VALUES = {
    "float": st.floats(-1e6, 1e6, width=64),
    "whole": st.integers(-1000, 1000),
    "flag": st.booleans(),
    "text": st.sampled_from(["red", "green", "blue"]),
    "date": st.dates(dt.date(2000, 1, 1), dt.date(2030, 1, 1)),
}


@st.composite
def labelled_tables(draw):
    """Tables with contiguous bags, any of the suspicious names, and labels that belong to bags."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_rows = sum(sizes)
    ids = draw(st.sampled_from(["text", "whole"]))
    per_bag = [f"b{i}" if ids == "text" else 10 - i for i in range(len(sizes))]
    columns = {"bag": np.repeat(per_bag, sizes).tolist(), "h": [0.5 * i for i in range(n_rows)]}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=6)):
        kind = draw(st.sampled_from(list(VALUES)))
        if name.casefold() in ("class", "target", "label", "y"):
            kind = draw(st.sampled_from(["whole", "flag"]))
            values = np.repeat(draw(st.lists(VALUES[kind], min_size=len(sizes), max_size=len(sizes))), sizes).tolist()
        else:
            values = draw(st.lists(VALUES[kind], min_size=n_rows, max_size=n_rows))
        columns[name] = values
    order = draw(st.permutations(list(columns)))
    named = draw(st.sampled_from([{}, {"label": "target"}, {"features": ["h", "f"]}, {"info": ["f"]}]))
    if not {"target", "f"} <= set(columns):
        named = {}
    return {name: columns[name] for name in order}, named


def doors(columns, folder, named):
    """Return what every door makes of a table: bags and labels, or None in place of labels where it returns none."""
    table = pa.table(columns)
    pq.write_table(table, folder / "table.parquet")
    pacsv.write_csv(table, folder / "table.csv")
    frames = {"pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns, strict=False), "pyarrow": table}
    path = folder / "table.parquet"
    features = named.get("features")
    command = {"bag": None, "label": named.get("label"), "features": ",".join(features) if features else None}
    yield "read dict", lambda: gmil.read(columns, **named)
    for library, frame in frames.items():
        yield f"from_frame {library}", lambda frame=frame: (Bags.from_frame(frame, **named), None)
        yield f"read {library}", lambda frame=frame: gmil.read(frame, **named)
    yield "from_parquet", lambda: (Bags.from_parquet(path, **named), None)
    yield "read parquet", lambda: gmil.read(path, **named)
    yield "read csv", lambda: gmil.read(folder / "table.csv", **named)
    yield "scan", lambda: _loaded(*gmil.scan(path, **named))
    if "info" not in named:
        for stream in (False, True):
            yield (
                f"command, stream={stream}",
                lambda stream=stream: _of(Reader(**command, stream=stream).read(str(path))),
            )


def _loaded(lazy, y):
    return lazy.load(), y


def _of(data):
    return (data.bags if isinstance(data.bags, Bags) else data.bags.load()), data.y


def outcome(door):
    """Return bags as plain values, or what an error says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bags, y = door()
        except BagValidationError as error:
            return str(error).split("table.parquet: ")[-1].split("table.csv: ")[-1], None
    info = {} if bags.instance_info is None else bags.instance_info.to_pydict()
    parts = (bags.bag_ids.tolist(), bags.offsets.tolist(), bags.instances.tolist(), bags.feature_names, str(bags.dtype))
    return (*parts, info), y


@settings(max_examples=60)
@given(labelled_tables())
def test_one_table_gives_the_same_bags_through_every_door(table):
    columns, named = table
    with tempfile.TemporaryDirectory() as folder:
        first, labels = None, None
        for name, door in doors(columns, Path(folder), named):
            found, y = outcome(door)
            if first is None:
                first, labels = found, y
            assert found == first, name
            if y is not None:
                np.testing.assert_array_equal(y, labels, err_msg=name)


@pytest.mark.parametrize("name", ["label", "Y", "class", "Target", "bag_label", "y_instance", "instance_label"])
def test_a_number_column_called_as_labels_are_is_no_feature_and_this_is_said(name):
    frame = pd.DataFrame({"video": ["a", "a", "b"], name: [1, 1, 0], "f": [1.0, 2.0, 3.0]})
    with pytest.warns(UserWarning, match=rf"'{name}' is left out\. .* label=\.\.\. .* features=\[\.\.\.\]"):
        assert Bags.from_frame(frame, bag="video").feature_names == ("f",)
    assert Bags.from_frame(frame, bag="video", label=name).feature_names == ("f",)
    assert Bags.from_frame(frame, bag="video", drop=name).feature_names == ("f",)
    assert Bags.from_frame(frame, bag="video", features=["f", name]).feature_names == ("f", name)


def test_a_second_label_is_no_feature_and_this_is_said(tmp_path):
    columns = {"bag": [1, 1, 2], "label": [1, 1, 0], "target": [3, 3, 4], "f": [1.0, 2.0, 3.0]}
    path = tmp_path / "two.parquet"
    pq.write_table(pa.table(columns), path)
    for door in (lambda: gmil.read(columns), lambda: gmil.read(path), lambda: gmil.scan(path)):
        with pytest.warns(UserWarning, match="'target' is left out"):
            bags, y = door()
        assert bags.feature_names == ("f",)
        assert y.tolist() == [1, 0]
    for door in (lambda: Bags.from_frame(columns), lambda: Bags.from_parquet(path)):
        with pytest.warns(UserWarning, match="'label', 'target' is left out"):
            assert door().feature_names == ("f",)


def test_the_command_says_what_is_left_out_in_one_sentence(tmp_path, capsys):
    columns = {"bag": [1, 1, 2], "label": [1, 1, 0], "target": [3, 3, 4], "f": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(columns), tmp_path / "two.parquet")
    Reader().read(str(tmp_path / "two.parquet"))
    said = capsys.readouterr().err
    assert said.startswith("A column of labels is no feature: 'target' is left out.")
    assert said.endswith("name it with --label. If it is a feature, name it in --features.\n")


def test_a_y_beside_an_x_is_a_coordinate():
    assert Bags.from_frame({"bag": [1, 2], "x": [1.0, 2.0], "y": [3.0, 4.0]}).feature_names == ("x", "y")


@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_flags_are_features_of_0_and_1(frame_of):
    columns = {"bag": ["a", "a", "b"], "flag": [True, False, True], "f": [0.5, 1.0, 2.0]}
    frame = frame_of(columns)
    for bags in (Bags.from_frame(frame), gmil.read(frame)[0], Bags.from_frame(frame, features=["flag", "f"])):
        assert bags.feature_names == ("flag", "f")
        assert bags.instances.tolist() == [[1, 0.5], [0, 1], [1, 2]]
        assert bags.instance_info is None


def test_dummies_of_pandas_are_features(tmp_path):
    frame = pd.get_dummies(pd.DataFrame({"bag": [1, 1, 2], "colour": ["red", "blue", "red"]}), columns=["colour"])
    bags = Bags.from_frame(frame)
    assert bags.feature_names == ("colour_blue", "colour_red")
    assert bags.instances.tolist() == [[0, 1], [1, 0], [0, 1]]
    frame.to_csv(tmp_path / "dummies.csv", index=False)
    np.testing.assert_array_equal(gmil.read(tmp_path / "dummies.csv")[0].instances, bags.instances)


def test_a_flag_that_is_missing_is_nan(tmp_path):
    table = pa.table({"bag": [1, 1, 2], "flag": [True, None, False], "f": pa.array([1, 2, 3], pa.float32())})
    pq.write_table(table, tmp_path / "gap.parquet")
    for bags in (Bags.from_frame(table), gmil.scan(tmp_path / "gap.parquet")[0].load()):
        assert bags.dtype == np.float32
        np.testing.assert_array_equal(bags.instances, [[1, 1], [np.nan, 2], [0, 3]])


def test_columns_of_one_bag_files_are_found_by_name(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "p.parquet")
    pq.write_table(pa.table({"b": [4.0], "a": [3.0]}), tmp_path / "q.parquet")
    assert Bags.from_folder(tmp_path).instances.tolist() == [[1, 2], [3, 4]]
    assert gmil.read(tmp_path)[0].instances.tolist() == [[1, 2], [3, 4]]
