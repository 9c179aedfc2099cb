"""Sets of a benchmark in files of its users: found beside the specification, and read as commands read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.docs_pages import blocks_of, page_named, run_command
from tests.toml_text import as_toml

import gmil
from gmil.benchmark import leaderboard, load_benchmark, run, verify
from gmil.benchmark.cells import load_sets
from gmil.cli.main import main
from gmil.datasets import make_bags, make_slides
from gmil.errors import BagValidationError, MissingFileError, SpecificationError
from gmil.paper import run as run_experiment


@pytest.fixture
def table():
    """Return 24 bags as a table, two of every patient, with labels of instances."""
    made = make_bags(24, n_features=3, random_state=1)
    bags = made.bags
    columns = pd.DataFrame(bags.instances, columns=["a", "b", "c"])
    columns["bag"] = [f"bag {i}" for i in bags.segment_ids]
    columns["label"] = np.where(made.y == 1, "ill", "well")[bags.segment_ids]
    columns["patient"] = bags.segment_ids // 2
    columns["is_cause"] = made.instance_y
    return columns


@pytest.fixture
def specification(tmp_path, table):
    """Return what writes a specification beside a table, in a folder that is not the present one."""
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    table.to_csv(folder / "data" / "own.csv", index=False)

    def write(**further):
        own = {"path": "data/own.csv", "positive": "ill", "group": "patient", "instances": "is_cause", **further}
        document = {
            "datasets": ["own"],
            "reference": "gmil",
            "files": {"own": {key: value for key, value in own.items() if value is not None}},
            "protocol": {"folds": 3, "repeats": 1},
            "method": [
                {"name": "gmil", "columns": ["default"]},
                {"name": "single-instance", "columns": ["default"]},
            ],
        }
        (folder / "own.toml").write_text(as_toml(document), encoding="utf-8")
        return folder / "own.toml"

    return write


def write_specification(path, own):
    """Write a benchmark of one method on one set, of which these are the keys."""
    methods = [{"name": "gmil", "columns": ["default"]}]
    document = {"datasets": ["own"], "reference": "gmil", "files": {"own": own}, "method": methods}
    path.write_text(as_toml(document), encoding="utf-8")


def test_a_file_is_a_set(specification, table):
    own = load_sets(load_benchmark(specification()))[0]["own"]
    first = table.drop_duplicates("bag")
    np.testing.assert_array_equal(own.bags.instances, table[["a", "b", "c"]])
    np.testing.assert_array_equal(own.y, first["label"] == "ill")
    np.testing.assert_array_equal(own.groups, first["patient"])
    np.testing.assert_array_equal(own.instance_y, table["is_cause"])


def test_the_other_label_may_be_positive(specification):
    ill, well = (load_sets(load_benchmark(specification(positive=p)))[0]["own"].y for p in ("ill", "well"))
    np.testing.assert_array_equal(ill, 1 - well)


def test_two_numbers_need_no_positive_label(specification, table):
    path = specification(positive=None)
    table["label"] = np.where(table["label"] == "ill", 3, -1)
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    own = load_sets(load_benchmark(path))[0]["own"]
    np.testing.assert_array_equal(own.y, table.drop_duplicates("bag")["label"] == 3)


def test_columns_are_named_as_in_commands(specification):
    how = {"features": ["b", "c"], "exclude": "a", "bag": "bag", "label": "label"}
    assert load_sets(load_benchmark(specification(**how)))[0]["own"].bags.feature_names == ("b", "c")


def test_commands_measure_and_verify_own_files(specification, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # paths begin at the folder of the specification
    path = specification()
    ran = CliRunner().invoke(main, ["benchmark", "run", str(path)])
    assert ran.exit_code == 0, ran.output
    shown = CliRunner().invoke(main, ["benchmark", "show", str(path)])
    assert "single instance" in shown.output or "single-instance" in shown.output
    folder = path.parent / "own"
    benchmark = load_benchmark(path)
    (cell,) = [c for c in leaderboard(benchmark, folder)["cells"] if c["method"] == "single-instance"]
    assert cell["instance_auc"] is not None  # labels of instances were read
    assert verify(benchmark, folder)[0] == []
    table["a"] += 1
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    wrong, _ = verify(load_benchmark(path), folder)
    assert wrong == ["own: the data on record is other data than that which is here"]
    (path.parent / "data" / "own.csv").unlink()
    assert verify(load_benchmark(path), folder)[0] == []  # its labels on record must do


def test_groups_stay_in_one_fold(specification, tmp_path):
    benchmark = load_benchmark(specification())
    run(benchmark, output=tmp_path / "board", repeats=1)
    own = load_sets(benchmark)[0]["own"]
    again = gmil.cross_validate(gmil.GMIL(n_jobs=1), own.bags, own.y, cv=3, groups=own.groups, random_state=0)
    (cell,) = [c for c in leaderboard(benchmark, tmp_path / "board")["cells"] if c["method"] == "gmil"]
    assert cell["accuracy"] == pytest.approx(np.mean(again.fold_accuracies()))


def test_a_folder_of_slides_is_a_set(tmp_path):
    pytest.importorskip("h5py")
    made = make_slides(tmp_path / "slides", layout="torchmil", n_slides=12, n_patches=8, n_features=4, random_state=0)
    own = {"path": "slides", "labels": str(made.labels), "bag": made.bag, "label": made.label, "group": made.group}
    own["instances"] = str(made.patch_labels)
    write_specification(tmp_path / "own.toml", own)
    read = load_sets(load_benchmark(tmp_path / "own.toml"))[0]["own"]
    assert len(read.bags) == 12
    assert set(read.y.tolist()) == {0, 1}
    assert read.groups is not None
    assert len(read.instance_y) == read.bags.n_instances


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"path": None}, SpecificationError, r"\[files\.own\]: the key 'path' is missing"),
        ({"pth": "x"}, SpecificationError, r"\[files\.own\] has no key 'pth'; .*Did you mean 'path'\?"),
        ({"bag": 3}, SpecificationError, r"\[files\.own\]: bag must be a text, got 3"),
        ({"features": [3]}, SpecificationError, r"\[files\.own\]: features must be a text or a list of texts, got"),
        ({"path": "x.csv"}, MissingFileError, r"\[files\.own\]: there is no .*x\.csv\. Correct the path"),
        ({"bag": "nosuch"}, SpecificationError, r"\[files\.own\] cannot be read: .*nosuch"),
        (
            {"group": "nosuch"},
            SpecificationError,
            r"The group column 'nosuch' is not there; .* Name another with group\.",
        ),
        (
            {"instances": "nosuch"},
            SpecificationError,
            r"The instances column 'nosuch' is not there; .* Name another with instances\.",
        ),
        ({"exclude": "nosuch"}, SpecificationError, r"The exclude column 'nosuch' is not there; .* with exclude\."),
        (
            {"group": None, "instances": "patient"},
            SpecificationError,
            r"\[files\.own\] cannot be read: instance_y must be 1",
        ),
        ({"positive": "none of them"}, SpecificationError, "positive must be one of the labels, ill, well, got"),
        (
            {"positive": None, "instances": None},
            SpecificationError,
            r"labels are 'ill', 'well'\. Name the positive .*\[files\.own\]",
        ),
        ({"positive": None}, SpecificationError, r"labels of instances need .* are 'ill', 'well'\. Name the positive"),
        ({"path": ""}, SpecificationError, "path must be a text, got ''"),
        ({"path": "~nobody of that name/x.csv"}, MissingFileError, "there is no .*nobody of that name"),
        ({"labels": "x.csv"}, SpecificationError, "labels is for a folder, but .*own.csv is a file"),
        ({"features": ["a", "is_cause"]}, SpecificationError, "'is_cause' is named as instances and as features"),
        ({"group": "label", "label": "label"}, SpecificationError, "'label' is named as label and as group"),
        ({"layout": "torchmil"}, SpecificationError, r"\[files\.own\] cannot be read: layout .*folders of slides"),
        ({"exclude": "label", "label": None}, SpecificationError, "has no labels. Name their column with label"),
    ],
)
def test_mistakes_are_named(specification, how, error, message):
    with pytest.raises(error, match=message):
        load_sets(load_benchmark(specification(**how)))


def test_a_table_of_labels_that_is_not_here_is_a_missing_file(specification, tmp_path):
    (tmp_path / "bags").mkdir()
    np.save(tmp_path / "bags" / "one.npy", np.zeros((3, 2)))
    write_specification(tmp_path / "own.toml", {"path": "bags", "labels": "private.csv"})
    with pytest.raises(MissingFileError, match=r"\[files\.own\] cannot be read: .*private\.csv"):
        load_sets(load_benchmark(tmp_path / "own.toml"))


@pytest.mark.parametrize("key", ["features", "decimal"])
def test_slides_have_no_columns_to_choose(tmp_path, key):
    pytest.importorskip("h5py")
    made = make_slides(tmp_path / "slides", layout="torchmil", n_slides=4, n_patches=8, n_features=4, random_state=0)
    own = {"path": "slides", "labels": str(made.labels), "bag": made.bag, "label": made.label, key: ","}
    write_specification(tmp_path / "own.toml", own)
    with pytest.raises(SpecificationError, match=rf"{key} is for tables, but .* is a folder of slides"):
        load_sets(load_benchmark(tmp_path / "own.toml"))


def test_instances_of_one_class_of_three_keep_their_labels(specification, table):
    path = specification()
    table.loc[table["bag"] == "bag 0", "label"] = "unwell"
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    own = load_sets(load_benchmark(path))[0]["own"]
    np.testing.assert_array_equal(own.y, table.drop_duplicates("bag")["label"] == "ill")
    np.testing.assert_array_equal(own.instance_y, table["is_cause"])


@pytest.mark.parametrize(("positive", "found"), [(1, True), ("1", True), (1.0, True), (True, True), ("1.0", False)])
def test_a_positive_number_goes_by_its_value(specification, table, positive, found):
    path = specification(positive=positive)
    table["label"] = (table["label"] == "ill").astype(int)
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    if found:
        np.testing.assert_array_equal(
            load_sets(load_benchmark(path))[0]["own"].y, table.drop_duplicates("bag")["label"]
        )
    else:
        with pytest.raises(SpecificationError, match="positive must be one of the labels, 0, 1, got"):
            load_sets(load_benchmark(path))


def test_bags_of_one_label_are_refused(specification, table):
    path = specification()
    table["label"] = "ill"
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    with pytest.raises(SpecificationError, match=r"all 24 bags of .* have the label 'ill', but"):
        load_sets(load_benchmark(path))


def test_missing_values_are_refused_before_anything_is_measured(specification, table, tmp_path):
    path = specification()
    table.loc[table.index[-1], "b"] = np.nan
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    with pytest.raises(SpecificationError, match=r"NaN: in bag 23 .* Fill them with missing = \"median\" above"):
        run(load_benchmark(path), output=tmp_path / "board")
    path.write_text('missing = "median"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert np.isnan(load_sets(load_benchmark(path))[0]["own"].bags.instances).sum() == 1


def test_a_run_says_what_it_has_read(specification, table):
    path = specification()
    table.rename(columns={"c": "class"}).to_csv(path.parent / "data" / "own.csv", index=False)
    ran = CliRunner().invoke(main, ["benchmark", "run", str(path)])
    instances = len(table)
    assert f"own has 24 bags, {instances} instances, 2 features (a, b), 12 groups, labels of instances" in ran.output
    assert "[files.own]: " in ran.output  # a column that is called like a label is left out
    assert "Warning" not in ran.output


def test_without_files_and_labels_what_was_written_is_shown(specification, tmp_path):
    path = specification()
    assert CliRunner().invoke(main, ["benchmark", "run", str(path)]).exit_code == 0
    before = CliRunner().invoke(main, ["benchmark", "show", str(path)])
    (path.parent / "data" / "own.csv").unlink()
    (path.parent / "own" / "sets.parquet").unlink()
    after = CliRunner().invoke(main, ["benchmark", "show", str(path)])
    assert after.exit_code == 0
    assert after.output == before.output
    refused = CliRunner().invoke(main, ["benchmark", "verify", str(path)])
    assert refused.exit_code != 0
    assert "Figures need the labels of own, which are not here. Put files of yours where" in refused.output


def test_other_labels_of_instances_are_told(specification, table):
    path = specification()
    assert CliRunner().invoke(main, ["benchmark", "run", str(path)]).exit_code == 0
    table["is_cause"] = 1 - table["is_cause"]
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    wrong, _ = verify(load_benchmark(path), path.parent / "own")
    assert wrong == ["own: the labels of instances on record are not those of the data"]


def test_labels_of_instances_of_slides_begin_at_the_specification(tmp_path, monkeypatch):
    pytest.importorskip("h5py")
    (tmp_path / "project").mkdir()
    made = make_slides(
        tmp_path / "project" / "slides", layout="torchmil", n_slides=12, n_patches=8, n_features=4, random_state=0
    )
    own = {"path": "slides", "labels": str(made.labels), "bag": made.bag, "label": made.label}
    write_specification(tmp_path / "project" / "own.toml", {**own, "instances": "patches.csv"})
    (tmp_path / "patches.csv").write_bytes(Path(made.patch_labels).read_bytes())
    monkeypatch.chdir(tmp_path)  # what lies here is not meant
    with pytest.raises(MissingFileError, match=r"project.patches\.csv"):
        load_sets(load_benchmark("project/own.toml"))


def test_a_folder_with_labels_elsewhere_has_groups(tmp_path):
    (tmp_path / "bags").mkdir()
    for i in range(6):
        np.save(tmp_path / "bags" / f"{i}.npy", np.random.default_rng(i).normal(size=(3, 2)))
    lines = ["bag,label,patient", *(f"{i},{i % 2},{i // 2}" for i in range(6))]
    (tmp_path / "own.csv").write_text("\n".join(lines), encoding="utf-8")
    own = {"path": "bags", "labels": "own.csv", "group": "patient"}
    write_specification(tmp_path / "own.toml", own)
    assert load_sets(load_benchmark(tmp_path / "own.toml"))[0]["own"].groups.tolist() == list("001122")


def test_experiments_of_the_paper_read_files_too(specification, tmp_path):
    path = specification()
    text = path.read_text(encoding="utf-8").replace('reference = "gmil"\n', "").replace('"default"', '"paper"')
    path.write_text(text, encoding="utf-8")
    rows = run_experiment(path, output=tmp_path / "out").table
    assert {(row["dataset"], row["method"]) for row in rows.to_pylist()} == {
        ("own", "gmil"),
        ("own", "single-instance"),
    }


def test_names_are_told_apart(document):
    from gmil.benchmark import parse_benchmark

    for name, message in (("musk1", "has the name of a set that gmil knows"), ("easy", "Leave out one of them")):
        document["files"] = {name: {"path": "x.csv"}}
        document["datasets"] = ["easy", "hard", "more", "musk1"]
        with pytest.raises(SpecificationError, match=message):
            parse_benchmark(document, "toy")
    document["files"] = {"stray": {"path": "x.csv"}}
    with pytest.raises(SpecificationError, match=r"\[files\] names the data set 'stray', which is not in datasets"):
        parse_benchmark(document, "toy")
    document["files"] = {"easy": 3}
    with pytest.raises(SpecificationError, match=r"files\.easy must be a table of parameters, got 3"):
        parse_benchmark(document, "toy")


def test_a_group_of_a_bag_must_be_one(specification, table):
    path = specification()
    table.loc[0, "patient"] = 99
    table.to_csv(path.parent / "data" / "own.csv", index=False)
    with pytest.raises(SpecificationError, match="must be one for all instances of a bag") as refused:
        load_sets(load_benchmark(path))
    assert isinstance(refused.value.__cause__, BagValidationError)


def test_the_specification_of_the_guide_is_measured_as_it_is(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [b for b in blocks_of(page_named("guide/benchmark")) if b.language in ("toml", "bash")]
    specification, commands, own = blocks
    assert "--methods mymethods:MeanVector" in own.code
    (tmp_path / "mine.toml").write_text(specification.code, encoding="utf-8")
    table.rename(columns={"is_cause": "is_witness"}).to_csv("north.csv", index=False)
    gmil.write("south.parquet", *make_bags(24, n_features=3, random_state=2, return_X_y=True))
    few = "--repeats", "1", "--methods", "bag-statistics,majority", "--sets", "north,south"
    shown = [run_command(words, *(few if " run " in f" {words} " else ())) for words in commands.commands]
    assert [words.split()[1] for words in commands.commands] == ["run", "show", "page", "verify"]
    assert "bag-statistics" in shown[1]
    assert (tmp_path / "mine.html").stat().st_size > 10_000
    assert "figures are those that the records give" in shown[-1]
    assert load_sets(load_benchmark("mine.toml").restricted(None, ["north"]))[0]["north"].instance_y is not None
