"""Which columns commands read: those that a model knows, patterns, columns left out, groups beside a folder."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import gmil
from gmil.io.model_files import Origin, load_with_origin
from gmil.io.model_files import save as save_model
from gmil.io.model_files.origin import marks_of


@pytest.fixture
def frame():
    """Thirty molecules, a row an instance, with columns called as a chemist calls them."""
    bunch = gmil.make_bags(30, n_features=4, random_state=1)
    table = pd.DataFrame(bunch.bags.instances, columns=["desc_a", "desc_b", "desc_c", "mass"])
    table.insert(0, "activity", np.repeat(np.array(["no", "yes"])[bunch.y], bunch.bags.sizes))
    table.insert(0, "lab", bunch.bags.segment_ids % 6)
    table.insert(0, "molecule", [f"m{i}" for i in bunch.bags.segment_ids])
    return table


@pytest.fixture
def fitted(run, frame, tmp_path):
    """A model of these molecules, fitted by the command with named columns."""
    frame.to_csv(tmp_path / "train.csv", index=False)
    named = ["--bag", "molecule", "--label", "activity", "--group", "lab", "--positive", "yes"]
    result = run("fit", tmp_path / "train.csv", *named, "-o", tmp_path / "m.gmil", "--method", "gmil")
    assert result.exit_code == 0, result.stderr
    return tmp_path / "m.gmil"


def decisions(result):
    assert result.exit_code == 0, result.stderr
    return [float(row["decision"]) for row in csv.DictReader(io.StringIO(result.stdout))]


# ------------------------------------------------------------------ what models know


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predict_selects_columns_by_name(run, frame, fitted, tmp_path, suffix):
    expected = decisions(run("predict", fitted, tmp_path / "train.csv"))
    others = frame[["mass", "desc_c", "molecule", "desc_a", "desc_b"]].assign(batch=7, remark="new")
    path = tmp_path / f"new.{suffix}"
    others.to_csv(path, index=False) if suffix == "csv" else others.to_parquet(path)
    result = run("predict", fitted, path)
    assert decisions(result) == expected
    assert "The model does not know 'batch': left out." in result.stderr
    assert result.stderr.count("left out") == 1


def test_a_column_that_is_not_needed_may_hold_anything(run, frame, fitted, tmp_path):
    expected = decisions(run("predict", fitted, tmp_path / "train.csv"))
    texts = ["oops"] + ["1.5"] * (len(frame) - 1)
    frame.drop(columns=["activity", "lab"]).assign(notes=texts).to_csv(tmp_path / "new.csv", index=False)
    assert decisions(run("predict", fitted, tmp_path / "new.csv")) == expected


def test_columns_that_are_missing_are_named(run, frame, fitted, tmp_path):
    frame.drop(columns=["desc_b", "mass"]).to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", fitted, tmp_path / "new.csv")
    assert result.exit_code == 2
    assert "The model needs 4 columns, and 2 of them are not there: 'desc_b', 'mass'; the columns are" in result.stderr


def test_columns_are_remembered_where_the_data_has_them(run, frame, fitted, tmp_path):
    assert load_with_origin(fitted)[1].columns == {"bag": "molecule", "label": "activity", "group": "lab"}
    scored = run("score", fitted, tmp_path / "train.csv", "--json")
    assert scored.exit_code == 0, scored.stderr
    frame.drop(columns=["lab", "activity"]).to_csv(tmp_path / "new.csv", index=False)
    assert len(decisions(run("predict", fitted, tmp_path / "new.csv"))) == 30
    result = run("score", fitted, tmp_path / "new.csv")
    assert (result.exit_code, "new.csv has no labels" in result.stderr) == (2, True)
    renamed = frame.rename(columns={"molecule": "name"})
    renamed.to_csv(tmp_path / "renamed.csv", index=False)
    assert "No bag column was found" in run("predict", fitted, tmp_path / "renamed.csv").stderr
    assert len(decisions(run("predict", fitted, tmp_path / "renamed.csv", "--bag", "name"))) == 30


def test_features_with_the_names_of_labels_are_found_again(run, frame, tmp_path):
    frame.rename(columns={"mass": "target"}).to_csv(tmp_path / "train.csv", index=False)
    named = ["--bag", "molecule", "--label", "activity", "--features", "desc_a,target", "--method", "gmil"]
    run("fit", tmp_path / "train.csv", *named, "-o", tmp_path / "m.gmil")
    assert len(decisions(run("predict", tmp_path / "m.gmil", tmp_path / "train.csv"))) == 30


def test_names_inside_a_list_column_and_of_arrays_are_put_in_order(run, tmp_path):
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    named = gmil.Bags(bags.instances, bags.offsets, None, list("abc"))
    gmil.GMIL(random_state=0).fit(named, y).save(tmp_path / "m.gmil")
    turned = gmil.Bags(np.column_stack([bags.instances[:, [2, 0]], bags.instances]), bags.offsets, None, list("caxyb"))
    turned = turned.with_instances(turned.instances[:, [0, 1, 3, 2]], list("cabx"))
    for suffix in ("parquet", "npz"):
        gmil.write(tmp_path / f"named.{suffix}", named, y, dtype="float64")
        gmil.write(tmp_path / f"turned.{suffix}", turned, y, dtype="float64")
        expected = decisions(run("predict", tmp_path / "m.gmil", tmp_path / f"named.{suffix}"))
        result = run("predict", tmp_path / "m.gmil", tmp_path / f"turned.{suffix}")
        assert decisions(result) == expected
        assert "The model does not know 'x': left out." in result.stderr
        gmil.write(tmp_path / f"less.{suffix}", named.with_instances(named.instances[:, :2], list("ab")), y)
        less = run("predict", tmp_path / "m.gmil", tmp_path / f"less.{suffix}")
        assert "The model needs 3 features, and 1 of them are not there: 'c'" in less.stderr


def test_the_list_column_is_remembered(run, tmp_path):
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    table = pd.DataFrame({"bag": bags.segment_ids, "label": np.repeat(y, bags.sizes), "clip": list(bags.instances)})
    table.to_parquet(tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "--features", "clip", "-o", tmp_path / "m.gmil", "--method", "gmil")
    assert load_with_origin(tmp_path / "m.gmil")[1].features == "clip"
    assert len(decisions(run("predict", tmp_path / "m.gmil", tmp_path / "t.parquet"))) == 20


def test_what_a_file_tells_of_its_data_is_checked(gaussian_bags, tmp_path, monkeypatch):
    bags, y = gaussian_bags()
    model = gmil.GMIL(random_state=0).fit(bags, y)
    save_model(model, tmp_path / "plain.gmil")
    assert load_with_origin(tmp_path / "plain.gmil")[1] == Origin()
    for wrong, message in ((Origin(bag=7), "bag must be a string"), (Origin(marks=(1,)), "marks 0 must be a string")):
        save_model(model, tmp_path / "bad.gmil", wrong)
        with pytest.raises(gmil.ModelFileError, match=f"the origin of the model {message}"):
            gmil.load(tmp_path / "bad.gmil")
    monkeypatch.setattr(Origin, "to_json", lambda _: {"bag": "a", "code": "b"})
    save_model(model, tmp_path / "more.gmil", Origin(bag="a"))
    with pytest.raises(gmil.ModelFileError, match="the origin of the model must be a dict of"):
        gmil.load(tmp_path / "more.gmil")


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_training_bags_are_known_again(gaussian_bags, layout):
    bags, _ = gaussian_bags()
    bags = gmil.Bags(layout(bags.instances), bags.offsets)
    origin = Origin(marks=tuple(marks_of(bags[:10])))
    assert [origin.count_seen(bags[some]) for some in ([0, 9], [10, 11], [3, 20])] == [2, 0, 1]
    assert Origin().count_seen(bags) == 0


def test_figures_on_training_bags_are_called_so(run, frame, fitted, tmp_path):
    assert "30 bags, 30 of them training bags of the model" in run("score", fitted, tmp_path / "train.csv").stdout
    assert json.loads(run("score", fitted, tmp_path / "train.csv", "--json").stdout)["training_bags"] == 30
    run("report", fitted, tmp_path / "train.csv", "-o", tmp_path / "page.html")
    assert "All 30 bags were used to train this model: every figure" in (tmp_path / "page.html").read_text()
    frame.assign(mass=frame["mass"] + (frame["molecule"] == "m3")).to_csv(tmp_path / "other.csv", index=False)
    assert "30 bags, 29 of them" in run("score", fitted, tmp_path / "other.csv").stdout


# ------------------------------------------------------------------ patterns


def names_read(**columns):
    table = {"bag": ["a", "b"], "label": [0, 1], "desc_a": [1.0, 2.0], "desc_b": [3.0, 4.0], "mass": [5, 6]}
    bags, _ = gmil.read({**table, "desc_text": ["x", "y"]}, **columns)
    return bags.feature_names


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"features": "desc_*"}, ("desc_a", "desc_b")),
        ({"features": ["mass", "desc_?"]}, ("mass", "desc_a", "desc_b")),
        ({"features": ["*", "mass"]}, ("desc_a", "desc_b", "mass")),
        ({"features": "*", "drop": "desc_b"}, ("desc_a", "mass")),
        ({"drop": ["desc_*"]}, ("mass",)),
        ({"drop": "mass", "info": ["desc_a"]}, ("desc_b",)),
    ],
)
def test_patterns_stand_for_columns_of_numbers(columns, expected):
    assert names_read(**columns) == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"features": "fp_*"}, r"The features column 'fp_\*' is not there"),
        ({"drop": "fp_*"}, r"The drop column 'fp_\*' is not there"),
        ({"drop": "*"}, "No features column was found"),
    ],
)
def test_patterns_that_stand_for_nothing_are_refused(columns, message):
    with pytest.raises(gmil.BagValidationError, match=message):
        names_read(**columns)


def test_a_name_that_looks_like_a_pattern_is_a_name():
    table = {"bag": ["a", "b"], "c[0]": [1.0, 2.0], "c0": [3.0, 4.0]}
    assert gmil.read(table, features="c[0]")[0].feature_names == ("c[0]",)
    assert gmil.read(table, drop="c[0]")[0].feature_names == ("c0",)


def test_the_command_takes_patterns_and_leaves_columns_out(run, frame, tmp_path):
    frame.assign(notes=["x"] + ["1"] * (len(frame) - 1)).to_csv(tmp_path / "t.csv", index=False)
    named = ["--bag", "molecule", "--label", "activity"]
    refused = run("data", "info", tmp_path / "t.csv", *named)
    assert "the column 'notes' holds 'x' where a number should be" in refused.stderr
    assert "Correct the cell, or leave the column out with --exclude." in refused.stderr
    left = json.loads(run("data", "info", tmp_path / "t.csv", *named, "--exclude", "notes,lab", "--json").stdout)
    assert left["feature names"] == ["desc_a", "desc_b", "desc_c", "mass"]
    taken = json.loads(run("data", "info", tmp_path / "t.csv", *named, "--features", "desc_*", "--json").stdout)
    assert taken["feature names"] == ["desc_a", "desc_b", "desc_c"]
    unknown = run("cv", tmp_path / "t.csv", *named, "--exclude", "remarks")
    assert "Name another with --exclude." in unknown.stderr


# ------------------------------------------------------------------ decimal commas


@pytest.mark.parametrize(("suffix", "sign"), [("csv", ";"), ("tsv", "\t"), ("csv", ",")])
def test_decimal_commas_are_read_where_that_is_said(run, frame, tmp_path, suffix, sign):
    frame = frame.copy()  # older versions of pandas share read-only arrays
    frame.loc[3, "mass"] = np.nan
    path = tmp_path / f"t.{suffix}"
    frame.to_csv(path, sep=sign, decimal=",", index=False)
    named = {"bag": "molecule", "label": "activity", "drop": "lab"}
    with pytest.raises(gmil.FormatError, match=r"with a decimal comma\. Read the file with decimal=','\."):
        gmil.read(path, **named)
    bags, y = gmil.read(path, **named, decimal=",")
    expected, labels = gmil.read(frame, **named)
    np.testing.assert_array_equal(bags.instances, expected.instances)
    assert y.tolist() == labels.tolist()
    assert "Read the file with --decimal ,." in run("data", "info", path, "--bag", "molecule").stderr
    assert run("data", "info", path, "--bag", "molecule", "--decimal", ",").exit_code == 0
    with pytest.raises(gmil.BagValidationError, match=r"decimal must be '\.' or ',', got ';'"):
        gmil.read(path, decimal=";")


# ------------------------------------------------------------------ groups in labels.csv


def test_groups_are_found_in_the_labels_of_a_folder(run, tmp_path):
    bags, y = gmil.make_bags(24, n_features=3, random_state=0, return_X_y=True)
    folder = tmp_path / "slides"
    folder.mkdir()
    for i, bag in enumerate(bags):
        np.save(folder / f"s{i}.npy", bag)
    patients = [f"p{i // 3}" for i in range(24)]
    lines = pd.DataFrame({"bag": [f"s{i}" for i in range(24)], "label": y, "patient": patients})
    lines.to_csv(folder / "labels.csv", index=False)
    [found] = json.loads(run("cv", folder, "--group", "patient", "--folds", 3, "--method", "gmil", "--json").stdout)
    assert found["groups"] == 8
    read, _ = gmil.read(folder, info=["patient"])
    order = [int(name[1:]) for name in read.bag_ids]
    groups = np.array(patients)[order]
    assert read.instance_info.column("patient").to_pylist() == np.repeat(groups, read.sizes).tolist()
    lines.drop(columns="patient").to_csv(folder / "labels.csv", index=False)
    assert "Name another with --group." in run("cv", folder, "--group", "patient").stderr
    (folder / "labels.csv").unlink()
    assert "labels.csv, which does not exist" in run("cv", folder, "--group", "patient").stderr


def test_folders_of_tables_keep_names_and_leave_columns_out(run, frame, tmp_path):
    folder = tmp_path / "clips"
    folder.mkdir()
    for name, rows in frame.groupby("molecule"):
        rows.drop(columns=["molecule", "activity", "lab"]).to_parquet(folder / f"{name}.parquet")
    lines = frame.groupby("molecule").first()["activity"].rename("label")
    lines.rename_axis("bag").reset_index().to_csv(folder / "labels.csv", index=False)
    assert gmil.read(folder)[0].feature_names == ("desc_a", "desc_b", "desc_c", "mass")
    run("fit", folder, "--exclude", "mass", "--method", "gmil", "-o", tmp_path / "m.gmil")
    assert list(gmil.load(tmp_path / "m.gmil").feature_names_in_) == ["desc_a", "desc_b", "desc_c"]
    result = run("predict", tmp_path / "m.gmil", folder)
    assert len(decisions(result)) == 30
    assert "The model does not know 'mass': left out." in result.stderr
    np.save(tmp_path / "clips.npy", np.ones((2, 2)))
    (tmp_path / "plain").mkdir()
    (tmp_path / "clips.npy").rename(tmp_path / "plain/a.npy")
    refused = run("data", "info", tmp_path / "plain", "--exclude", "mass")
    assert "a.npy is a matrix without names of columns" in refused.stderr
    assert refused.stderr.endswith("Do without --exclude.\n")
