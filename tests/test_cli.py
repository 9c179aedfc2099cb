"""The ``gmil`` command: what it prints where, exit codes, and that bad input writes nothing."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import gmil
from gmil.cli import console


def write_bags_file(folder):
    """Write a Parquet file of forty generated bags with info columns; return its path and what is in it."""
    bunch = gmil.make_bags(40, n_features=4, random_state=1)
    info = {"time": np.arange(bunch.bags.n_instances) / 25}
    bags = gmil.Bags(bunch.bags.instances, bunch.bags.offsets, [f"v{i}" for i in range(40)], None, info)
    path = folder / "bags.parquet"
    gmil.write(path, bags, bunch.y)
    return path, bags, bunch.y


@pytest.fixture
def bags_file(tmp_path):
    return write_bags_file(tmp_path)


def test_cv_prints_a_table_with_the_published_value_and_the_majority_beside_it(run):
    result = run("cv", "musk1", "--paper", "--folds", 5)
    assert result.exit_code == 0
    title, header, row = result.stdout.splitlines()
    assert title == "1 x 5-fold, seed 0; accuracies in per cent"
    assert header.split("  ")[0] == "data set"
    assert row.split()[:2] == ["musk1", "gmil"]
    assert {"51.1", "85.0"} <= set(row.split())


def test_cv_json_has_every_field_and_agrees_with_python(run):
    result = run(
        *("cv", "musk1", "--method", "gmil", "--json", "--folds", 4, "--repeats", 2, "--seed", 3),
        *("--set", "n_clusters=7", "--set", "scale=l2"),
    )
    [found] = json.loads(result.stdout)
    bags, y = gmil.load_musk1(return_X_y=True)
    expected = gmil.cross_validate(gmil.GMIL(7, scale="l2"), bags, y, cv=4, repeats=2, random_state=3)
    assert found["accuracy_mean"] == expected.accuracy()
    assert found["accuracy_std"] == expected.accuracy_std()
    assert found["accuracy_interval"] == list(expected.accuracy_interval())
    assert found["auc_mean"] == expected.auc()
    assert found["balanced_accuracy_mean"] == expected.balanced_accuracy()
    assert found["majority_accuracy"] == 47 / 92
    assert (found["dataset"], found["method"], found["folds"], found["repeats"], found["seed"]) == (
        "musk1",
        "gmil",
        4,
        2,
        3,
    )
    assert (found["params"]["n_clusters"], found["params"]["scale"]) == (7, "l2")
    assert 0 < found["fit_seconds"] + found["predict_seconds"] <= found["seconds"]


@pytest.fixture
def grouped_file(tmp_path, bags_file):
    """The same bags with the patient of each, five bags a patient."""
    _, bags, y = bags_file
    groups = np.repeat(np.arange(40) // 5, bags.sizes)
    path = tmp_path / "grouped.parquet"
    gmil.write(path, gmil.Bags(bags.instances, bags.offsets, None, None, {"patient": groups}), y)
    return path, bags, y, np.arange(40) // 5


def test_cv_leaves_out_whole_groups(run, grouped_file):
    path, bags, y, groups = grouped_file
    result = run("cv", path, "--group", "patient", "--folds", 4, "--json", "--method", "gmil-cv", "--set", "cv=3")
    [found] = json.loads(result.stdout)
    expected = gmil.cross_validate(gmil.GMILCV(cv=3), bags, y, cv=4, groups=groups)
    assert found["groups"] == 8
    assert found["accuracy_mean"] == expected.accuracy()
    assert "4-fold of whole groups" in run("cv", path, "--group", "patient", "--folds", 4, "--method", "stk").stdout


def test_fit_tells_the_method_what_belongs_together(run, grouped_file, tmp_path):
    path, _, y, groups = grouped_file
    bags, _ = gmil.read(path, info=("patient",))
    result = run("fit", path, "-o", tmp_path / "model.gmil", "--group", "patient", "--seed", 3)
    assert result.exit_code == 0
    expected = gmil.WeightedGMIL(random_state=3).fit(bags, y, groups=groups)
    model = gmil.load(tmp_path / "model.gmil")
    np.testing.assert_array_equal(model.decision_function(bags), expected.decision_function(bags))


def test_groups_are_not_read_in_blocks(run, grouped_file):
    result = run("cv", grouped_file[0], "--group", "patient", "--stream")
    assert result.exit_code == 2
    assert "--group patient needs the data in memory" in result.stderr


def test_cv_takes_files_and_several_data_sets(run, bags_file):
    path, _, _ = bags_file
    rows = json.loads(run("cv", path, "musk1", "--method", "gmil", "--folds", 3, "--json").stdout)
    assert [row["dataset"] for row in rows] == ["bags.parquet", "musk1"]


def test_fit_then_predict_bags(run, bags_file, tmp_path):
    path, bags, _y = bags_file
    model_path = tmp_path / "model.gmil"
    fitted = run("fit", path, "-o", model_path, "--seed", 4)
    assert fitted.exit_code == 0
    assert fitted.stdout == ""
    assert "weighted-gmil fitted on 40 bags" in fitted.stderr
    result = run("predict", model_path, path)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    model = gmil.load(model_path)
    single = gmil.read(path)[0]
    np.testing.assert_array_equal([int(r["prediction"]) for r in rows], model.predict(single))
    np.testing.assert_allclose([float(r["decision"]) for r in rows], model.decision_function(single))
    np.testing.assert_allclose([float(r["probability_1"]) for r in rows], model.predict_proba(single)[:, 1])
    assert [r["bag"] for r in rows] == list(bags.bag_ids)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predict_instances_carries_the_info_along(run, bags_file, tmp_path, suffix):
    path, bags, _ = bags_file
    run("fit", path, "-o", tmp_path / "m.gmil")
    out = tmp_path / f"scores{suffix}"
    result = run("predict", tmp_path / "m.gmil", path, "--instances", "-o", out)
    assert result.stdout == ""
    assert f"{bags.n_instances} instances predicted." in result.stderr
    rows = list(csv.DictReader(io.StringIO(out.read_text()))) if suffix == ".csv" else pq.read_table(out).to_pylist()
    assert list(rows[0]) == ["bag", "instance", "time", "score"]
    scores = gmil.load(tmp_path / "m.gmil").score_instances(gmil.read(path)[0])
    np.testing.assert_allclose([float(r["score"]) for r in rows], scores)
    np.testing.assert_allclose([float(r["time"]) for r in rows], np.arange(bags.n_instances) / 25)


def test_more_than_two_classes_have_a_column_each(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 6)
    bags = gmil.Bags.from_list([rng.normal(size=(3, 2)) + 5 * "abc".index(c) for c in y])
    gmil.write(tmp_path / "three.csv", bags, y)
    run("fit", tmp_path / "three.csv", "-o", tmp_path / "m.gmil")
    header = run("predict", tmp_path / "m.gmil", tmp_path / "three.csv").stdout.splitlines()[0].replace('"', "")
    assert header == "bag,prediction,decision_a,decision_b,decision_c,probability_a,probability_b,probability_c"


def test_the_positive_label_is_named_as_it_is_written(run, bags_file, tmp_path):
    path, _, _ = bags_file
    assert run("fit", path, "-o", tmp_path / "m.gmil", "--positive", "0").exit_code == 0
    assert gmil.load(tmp_path / "m.gmil").pos_label == 0
    header, *rows = run("predict", tmp_path / "m.gmil", path).stdout.splitlines()
    assert header.replace('"', "") == "bag,prediction,decision,probability_0"
    for prediction, decision, probability in (map(float, row.split(",")[-3:]) for row in rows):
        assert (prediction == 0) == (decision > 0) == (probability > 0.5)
    wrong = run("fit", path, "-o", tmp_path / "x.gmil", "--positive", "yes")
    assert wrong.exit_code == 2
    assert "--positive yes is not a label of the data; its labels are 0, 1." in wrong.stderr


def test_predict_needs_no_labels_where_cv_says_which_bag_has_none(run, bags_file, tmp_path):
    path, _, _ = bags_file
    run("fit", path, "-o", tmp_path / "m.gmil")
    want = run("predict", tmp_path / "m.gmil", path).stdout
    table = pq.read_table(path).to_pandas()
    labels = table["label"].astype(float)
    for missing in (table["bag"] == "v3", table["bag"] != ""):
        table["label"] = labels.mask(missing)
        table.to_parquet(tmp_path / "part.parquet")
        assert run("predict", tmp_path / "m.gmil", tmp_path / "part.parquet").stdout == want
    assert "part.parquet: The label of bag 'v0' is missing" in run("cv", tmp_path / "part.parquet").stderr
    varying = table.assign(label=np.arange(len(table)))
    varying.to_parquet(tmp_path / "part.parquet")
    assert run("predict", tmp_path / "m.gmil", tmp_path / "part.parquet").stdout == want
    assert "The label of bag 'v0' varies: 0 and 1 (row 1)" in run("cv", tmp_path / "part.parquet").stderr


def test_columns_that_are_not_wanted_may_hold_anything(run, tmp_path):
    rows = [f"{i},{i % 2},{i / 7},{i % 5},{'oops' if i == 4 else i}" for i in range(12)]
    path = tmp_path / "b.csv"
    path.write_text("\n".join(["bag,label,f,g,junk", *rows]))
    sentence = (
        "'junk' holds 'oops' where a number should be (1 of 12 cells do). Correct the cell, or leave the column out"
    )
    assert sentence in run("cv", path, "--folds", 3).stderr
    assert run("cv", path, "--folds", 3, "--features", "f, g").exit_code == 0


def test_which_text_is_positive_is_said_once_in_the_words_of_the_command(run, tmp_path, recwarn):
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    gmil.write(tmp_path / "b.csv", bags, np.where(y == 1, "dog", "cat"))
    sentence = "The labels are texts; 'dog' is taken as the positive class. Choose with --positive."
    for command in (["cv", tmp_path / "b.csv", "--folds", 3], ["fit", tmp_path / "b.csv", "-o", tmp_path / "m.gmil"]):
        assert run(*command).stderr.count(sentence) == 1
        assert "as the positive" not in run(*command, "--positive", "cat").stderr
        assert "as the positive" not in run(*command, "--set", "pos_label=cat").stderr
    assert not [w for w in recwarn if "as the positive" in str(w.message)]


def test_data_list_info_and_convert(run, tmp_path):
    listed = run("data", "list")
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:3]] == ["musk1", "musk2"]
    assert {entry["name"] for entry in json.loads(run("data", "list", "--json").stdout)} >= {"musk1", "fox", "trec9"}
    target = tmp_path / "musk1.arff"
    assert run("data", "convert", "musk1", target).exit_code == 0
    for source in ("musk1", target):
        found = json.loads(run("data", "info", source, "--json").stdout)
        assert (found["bags"], found["instances"], found["features"]) == (92, 476, 166)
        assert (found["smallest bag"], found["median bag"], found["largest bag"]) == (2, 4.0, 40)
    shown = run("data", "info", "musk1")
    assert shown.exit_code == 0
    assert found["feature names"][0] in shown.stdout
    assert "and 156 more" in shown.stdout


def test_doctor(run):
    found = json.loads(run("doctor", "--json").stdout)
    assert found["backend"] in found["backends"]
    assert found["native"]["compiled"] == ("native" in found["backends"])
    assert found["cores"] >= 1
    assert found["versions"]["numpy"] == np.__version__
    printed = run("doctor").stdout
    assert "backend" in printed
    assert "dask" in printed
    assert not set("{}[]") & set(printed)  # for people


# ------------------------------------------------------------------ bad input


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write a model, bags, and files that something is wrong with; return their paths by name."""
    folder = tmp_path_factory.mktemp("bad")
    path, bags, y = write_bags_file(folder)
    gmil.WeightedGMIL(random_state=0).fit(bags, y).save(folder / "model.gmil")
    for suffix in ("parquet", "npz", "arff", "mat", "gmil"):
        (folder / f"junk.{suffix}").write_bytes(b"no such thing \x00\x01" * 20)
    plain = gmil.Bags(bags.instances, bags.offsets, bags.bag_ids)
    gmil.write(folder / "unlabelled.csv", plain)
    (folder / "mixed.csv").write_text("bag,label,f,site,town\na,0,1,1,A\na,0,2,2,A\nb,1,3,3,\nb,1,4,3,\n")
    (folder / "gap.csv").write_text("bag,label,f\na,0,1\nb,0,\nc,1,3\nd,1,4\n")
    (folder / "large.csv").write_text("bag,f\na,1e300\n")
    gmil.write(folder / "three.csv", plain[:6], list("abcabc"))
    tables = {name: folder / f"{name}.csv" for name in ("mixed", "gap", "large", "three", "unlabelled")}
    others = {name: folder / name for name in ("junk", "out")}
    return {"folder": folder, "bags": path, "model": folder / "model.gmil", **tables, **others}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["cv", "nosuch"], "There is no file 'nosuch', and no data set of that name; the data sets are musk1, "),
        (["cv", "musk1", "--method", "magic"], "There is no method 'magic'; the methods are"),
        (
            ["cv", "musk1", "--method", "gmil", "--set", "clusters=3"],
            "gmil has no parameter 'clusters'; its parameters are ",
        ),
        (["cv", "musk1", "--set", "n_clusters"], "--set takes NAME=VALUE, got 'n_clusters'."),
        (["cv", "musk1", "--method", "gmil", "--set", "n_clusters=0"], "'n_clusters' parameter of GMIL must be"),
        (
            ["cv", "musk1", "--method", "gmil", "--set", "n_clusters=5000"],
            "n_clusters=5000 is above",
        ),
        (
            ["cv", "musk1", "--method", "gmil", "--set", "n_positive=90"],
            "n_positive=90 is above",
        ),
        (["cv", "musk1", "--paper", "--method", "gmil-cv"], "--paper gives the settings of gmil, but the method is"),
        (["cv", "musk1", "--folds", "1"], "--folds must be at least 2, got 1."),
        (["cv", "musk1", "--folds", "60"], "--folds 60 is too many folds: class 0 has 45 bags."),
        (["cv", "musk1", "--repeats", "0"], "--repeats must be a whole number and at least 1, got 0."),
        (["cv", "musk1", "--jobs", "0"], "--jobs must be a number of processes, or -1 for every core, got 0."),
        (["cv", "musk1", "--seed", "-1"], "--seed must be a whole number from 0 to 4294967295, got -1."),
        (["check", "musk1", "--seed", "-1"], "--seed must be a whole number from 0 to 4294967295, got -1."),
        (["check", "musk1", "--permutations", "2"], "--permutations must be at least 19"),
        (
            ["cv", "{mixed}", "--group", "site"],
            "The group 'site' must be one for all instances of a bag, but bag 0 (a) has 1 and 2. Correct it",
        ),
        (["cv", "{three}", "--method", "dd", "--folds", "2"], "y has 3 classes. Take a --method that knows several."),
        (["cv", "{gap}", "--folds", "2"], "must be a finite number. Fill them with --missing median"),
        (["data", "convert", "{large}", "{out}.parquet"], "too large for float32. Write it with --dtype float64."),
        (["cv", "{mixed}", "--group", "town"], "The group 'town' of bag 1 (b) is missing (1 bag without one)."),
        (["cv", "{bags}", "--bag", "video"], "'features'. Name another with --bag."),
        (["cv", "{bags}", "--label", "event"], "'features'. Name another with --label."),
        (["cv", "{bags}", "--features", "a,b"], "'features'. Name another with --features."),
        (["cv", "{bags}", "--group", "site"], "'features'. Name another with --group."),
        (
            ["compare", "{three}", "--positive", "a", "-o", "{out}"],
            "--positive a names the positive class of two, but the data has 3: a, b, c. Leave it out",
        ),
        (["cv", "{bags}", "--paper"], "The paper has no experiment 'bags.parquet'"),
        (["cv", "{folder}"], "folder"),
        (["cv", "{junk}.parquet"], "Parquet"),
        (["cv", "{junk}.npz"], "junk.npz"),
        (["cv", "{junk}.arff"], "junk.arff"),
        (["cv", "{junk}.mat"], "junk.mat"),
        (["predict", "{junk}.gmil", "musk1"], "not a gmil model"),
        (["predict", "nosuch.gmil", "musk1"], "nosuch.gmil does not exist"),
        (["predict", "{model}", "musk1"], "X has 166 features, but WeightedGMIL is expecting 4 features as input."),
        (["predict", "{model}", "{bags}", "-o", "{out}.xls"], "The output must be a .csv or .parquet file"),
        (["predict", "{model}", "{bags}", "-o", "{out}/deep/x.csv"], "cannot be written"),
        (["fit", "nosuch", "-o", "{out}/deep/m.gmil"], "cannot be written"),
        (["predict", "nosuch", "nosuch", "-o", "{out}/deep/m.csv"], "cannot be written"),
        (
            ["fit", "{unlabelled}", "-o", "{out}.gmil"],
            "unlabelled.csv has no labels. Name the label column with --label.",
        ),
        (["data", "convert", "musk1", "{out}.xyz"], "'.xyz'"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(run, files, arguments, sentence):
    before = sorted(files["folder"].iterdir())
    result = run(*[a.format(**files) for a in arguments])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr
    assert sorted(files["folder"].iterdir()) == before


def test_a_data_set_that_is_not_here_is_a_failure_that_says_what_to_put_where(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GMIL_DATA_HOME", str(tmp_path))
    result = run("cv", "trec9")
    assert result.exit_code == 1
    assert "trec9_tst1.npz" in result.stderr
    assert str(tmp_path) in result.stderr


def test_what_is_read_is_not_written_over(run, bags_file, tmp_path):
    path, _, _ = bags_file
    model = tmp_path / "m.csv"
    run("fit", path, "-o", model)
    before = path.read_bytes(), model.read_bytes()
    for arguments in (
        ["fit", path, "-o", path],
        ["predict", model, path, "-o", path],
        ["predict", model, path, "-o", model],
        ["data", "convert", path, tmp_path / "." / path.name],
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "cannot be written: it is what is read. Name another file." in result.stderr
    assert (path.read_bytes(), model.read_bytes()) == before


def test_a_long_fit_and_a_long_check_say_what_they_do(run, bags_file, tmp_path, monkeypatch):

    path, _, _ = bags_file
    arguments = ["fit", path, "-o", tmp_path / "m.gmil"]
    assert len(run(*arguments).stderr.splitlines()) == 1
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.0)
    assert "Fitting weighted-gmil on 40 bags, " in run(*arguments).stderr
    assert "Checking 40 bags, " in run("check", path).stderr


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "gmil", "methods"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


def test_several_labels_are_predicted_in_a_column_each(run, tmp_path):
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    model = gmil.WeightedGMIL(10, random_state=0).fit(bags, np.column_stack([y, 1 - y, y]))
    model.save(tmp_path / "m.gmil")
    gmil.write(tmp_path / "d.csv", bags)
    rows = list(csv.DictReader(io.StringIO(run("predict", tmp_path / "m.gmil", tmp_path / "d.csv").stdout)))
    predicted = [[int(row[f"prediction_{i}"]) for i in range(3)] for row in rows]
    np.testing.assert_array_equal(predicted, model.predict(bags))


def test_a_folder_without_labels_says_where_they_belong(run, tmp_path):
    for i in range(4):
        np.save(tmp_path / f"{i}.npy", np.ones((2, 3)) * i)
    assert "Put them into labels.csv in that folder" in run("cv", tmp_path).stderr


def test_streaming_of_what_cannot_be_streamed_names_the_option(run, tmp_path):
    gmil.write(tmp_path / "b.csv", gmil.Bags(np.eye(2), [0, 1, 2]), [0, 1])
    assert "Convert it, or leave out --stream." in run("cv", tmp_path / "b.csv", "--stream").stderr
