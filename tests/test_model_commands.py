"""``gmil score``, ``gmil explain``, ``gmil report MODEL DATA``, ``gmil methods NAME``, and names of methods."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, confusion_matrix, roc_auc_score

import gmil
from gmil.base import methods
from gmil.cli.methods import method_named
from gmil.model_selection.scoring import score_model


@pytest.fixture
def files(tmp_path):
    """A model of words, saved, with bags that it was not fitted on in a file."""
    bags, y = gmil.make_bags(60, n_features=3, random_state=1, return_X_y=True)
    bags = gmil.Bags(bags.instances, bags.offsets, [f"v{i}" for i in range(60)])
    words = np.array(["active", "quiet"])[y]
    model = gmil.GMIL(random_state=0, pos_label="active").fit(bags[:30], words[:30])
    model.save(tmp_path / "m.gmil")
    gmil.write(tmp_path / "new.npz", bags[30:], words[30:])
    return tmp_path / "m.gmil", tmp_path / "new.npz", model, bags[30:], words[30:]


# ------------------------------------------------------------------ score


def test_measures_are_those_of_scikit_learn(files):
    _, _, model, bags, y = files
    found = score_model(model, bags, y)
    predictions, probabilities = model.predict(bags), model.predict_proba(bags)
    assert found.accuracy.value == np.mean(predictions == y)
    assert found.balanced_accuracy.value == balanced_accuracy_score(y, predictions)
    assert_allclose(found.auc.value, roc_auc_score(y == "quiet", model.decision_function(bags)))
    assert_allclose(found.brier.value, brier_score_loss(y == "quiet", probabilities[:, 1]))
    assert found.confusion.tolist() == confusion_matrix(y, predictions).tolist()
    assert (found.classes, found.positive) == (["active", "quiet"], "active")
    for measured in (found.accuracy, found.balanced_accuracy, found.auc, found.brier):
        assert measured.low < measured.value < measured.high
        assert measured.low >= 0
        assert measured.high <= 1


def test_several_classes_are_each_set_against_the_others(gaussian_bags):
    bags, y = gaussian_bags(n_bags=45, n_classes=3)
    model = gmil.GMIL(random_state=0).fit(bags[:30], y[:30])
    found = score_model(model, bags[30:], y[30:])
    decisions = model.decision_function(bags[30:])
    areas = [roc_auc_score(y[30:] == c, decisions[:, c]) for c in range(3)]
    assert_allclose(found.auc.value, np.mean(areas))
    squares = (model.predict_proba(bags[30:]) - np.eye(3)[y[30:]]) ** 2
    assert_allclose(found.brier.value, squares.sum(axis=1).mean())
    assert found.confusion.shape == (3, 3)
    assert found.positive is None


def test_no_interval_collapses_and_groups_widen_it(gaussian_bags):
    bags, y = gaussian_bags(n_bags=40, all_witnesses=True)
    model = gmil.BagStatistics().fit(bags, y)
    found = score_model(model, bags, y)
    assert found.auc.value == found.balanced_accuracy.value == 1
    assert found.auc.low < 0.9
    assert found.balanced_accuracy.low < 0.9
    wrong = y.copy()
    wrong[:8] = 1 - wrong[:8]
    plain = score_model(model, bags, wrong)
    grouped = score_model(model, bags, wrong, groups=np.arange(40) // 8)
    for name in ("accuracy", "balanced_accuracy", "auc"):
        one, other = getattr(plain, name), getattr(grouped, name)
        assert one.value == other.value
        assert other.high - other.low > one.high - one.low


def test_what_cannot_be_measured_is_left_open(gaussian_bags):
    bags, y = gaussian_bags(n_bags=30)
    model = gmil.VLADClassifier(random_state=0).fit(bags, y)
    assert np.isnan(score_model(model, bags, y).brier.value)
    one_class = score_model(model, bags[y == 1], y[y == 1])
    assert np.isnan(one_class.auc.value)
    assert np.isnan(one_class.balanced_accuracy.value)
    assert 0 < one_class.accuracy.value <= 1
    with pytest.raises(gmil.BagValidationError, match="has the labels 7, which the model does not know; its classes"):
        score_model(model, bags, np.where(y == 1, 7, y))


def test_models_of_several_labels_are_refused(gaussian_bags):
    bags, y = gaussian_bags(n_bags=30)
    model = gmil.WeightedGMIL(20, random_state=0).fit(bags, np.column_stack([y, 1 - y]))
    with pytest.raises(gmil.BagValidationError, match="one label, but this model gives several"):
        score_model(model, bags, y)


def test_score_prints_measures_and_the_confusion_matrix(run, files):
    model_file, data, model, bags, y = files
    shown = run("score", model_file, data).stdout
    expected = score_model(model, bags, y)
    assert f"{100 * expected.accuracy.value:.1f}" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("AUC ('active' against the other class)"))
    assert line.split()[6:] == [f"{expected.auc.value:.3f}", f"{expected.auc.low:.3f}", "-", f"{expected.auc.high:.3f}"]
    assert "Confusion matrix, in bags" in shown
    assert "predicted 'active'  predicted 'quiet'" in shown
    found = json.loads(run("score", model_file, data, "--json").stdout)
    assert found["auc"] == {"value": expected.auc.value, "interval": [expected.auc.low, expected.auc.high]}
    assert found["confusion"] == expected.confusion.tolist()
    assert (found["bags"], found["positive"]) == (30, "active")


# ------------------------------------------------------------------ explain


@pytest.mark.parametrize("estimator", [gmil.GMIL(random_state=0), gmil.WeightedGMIL(20, random_state=0)], ids=str)
def test_explain_ranks_the_instances_of_one_bag(run, files, estimator, tmp_path):
    _, data, _, bags, y = files
    model = estimator.set_params(pos_label="active").fit(bags, y)
    model.save(tmp_path / "other.gmil")
    found = json.loads(run("explain", tmp_path / "other.gmil", data, "--bag", "v33", "--json", "--top", 3).stdout)
    scores = model.score_instances(bags[[3]])
    assert [row["instance"] for row in found["instances"]] == np.argsort(-scores, kind="stable")[:3].tolist()
    assert found["prediction"] == model.predict(bags[[3]])[0]
    assert (found["explanation"] is None) == (not hasattr(model, "explain"))
    shown = run("explain", tmp_path / "other.gmil", data, "--bag", "v33").stdout
    assert shown.startswith(f"bag v33, prediction {found['prediction']}, decision ")


def test_explain_names_bags_where_there_is_no_such(run, files):
    model_file, data, *_ = files
    result = run("explain", model_file, data, "--bag", "v3")
    assert result.exit_code == 2
    assert "There is no bag 'v3'; the bags are v30, v31, " in result.stderr
    assert result.stderr.rstrip().endswith("Name another with --bag.")


def test_explain_names_witnesses_and_takes_several_classes(run, gaussian_bags, tmp_path):
    bags, y = gaussian_bags(n_bags=30, n_classes=3)
    gmil.write(tmp_path / "b.npz", bags, y)
    gmil.VLADClassifier(random_state=0).fit(bags, y).save(tmp_path / "v.gmil")
    assert "witness" in run("explain", tmp_path / "v.gmil", tmp_path / "b.npz", "--bag", 4).stdout
    model = gmil.GMIL(random_state=0).fit(bags, y)
    model.save(tmp_path / "g.gmil")
    found = json.loads(run("explain", tmp_path / "g.gmil", tmp_path / "b.npz", "--bag", 4, "--json").stdout)
    column = int(model.decision_function(bags[[4]]).argmax())
    assert found["instances"][0][f"score_{column}"] == model.score_instances(bags[[4]])[:, column].max()


# ------------------------------------------------------------------ report


def test_report_writes_the_page_of_a_model_and_data(run, files, tmp_path):
    model_file, data, *_ = files
    result = run("report", model_file, data)
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "m.html").read_text()
    assert "m.gmil on new.npz" in page
    assert result.stdout.startswith("GMIL predicts 'active' for ")
    assert run("report", model_file, data, "-o", tmp_path / "page.md").exit_code == 0
    assert (tmp_path / "page.md").read_text().startswith("# m.gmil on new.npz")
    refused = run("report", model_file, data, "-o", data)
    assert refused.exit_code == 2
    assert data.exists()


def test_a_page_names_the_class_that_it_is_about_and_shows_another_on_request(tmp_path, run):
    rng = np.random.default_rng(0)
    y = np.repeat(["low", "mid", "top"], [10, 14, 10])
    parts = [rng.normal(size=(5, 2)) + 2 * (label == "top") - 2 * (label == "low") for label in y]
    bags = gmil.Bags.from_list(parts)
    model = gmil.WeightedGMIL(random_state=0).fit(bags, y)
    model.save(tmp_path / "m.gmil")
    gmil.write(tmp_path / "d.parquet", bags, y)
    decisions = model.decision_function(bags)
    for asked, label in ([], "mid"), (["--class", "top"], "top"):
        result = run("report", tmp_path / "m.gmil", tmp_path / "d.parquet", "-o", tmp_path / "p.json", *asked)
        assert result.exit_code == 0, result.output
        found = json.loads((tmp_path / "p.json").read_text())["models"][0]
        assert found["positive"] == label
        column = model.classes_.tolist().index(label)
        shown = found["explorer"]["bags"]
        assert [bag["decision"] for bag in shown] == pytest.approx(decisions[:, column], rel=1e-3, abs=1e-3)
    assert run("report", tmp_path / "m.gmil", tmp_path / "d.parquet", "-o", tmp_path / "p.html").exit_code == 0
    assert 'about the class "mid"' in (tmp_path / "p.html").read_text()
    refused = run("report", tmp_path / "m.gmil", tmp_path / "d.parquet", "--class", "none")
    assert refused.exit_code == 2
    assert "not a class" in refused.output
    refused = run("report", tmp_path, "--class", "top")
    assert "--class is for a model and data" in refused.output


def test_report_needs_no_labels(run, files, tmp_path):
    model_file, _, _, bags, _ = files
    gmil.write(tmp_path / "bare.npz", bags)
    result = run("report", model_file, tmp_path / "bare.npz", "-o", tmp_path / "bare.html")
    assert "no labels were given to compare with" in result.stdout


# ------------------------------------------------------------------ methods


def test_methods_tells_parameters_defaults_and_references(run):
    shown = run("methods", "WeightedGMIL").stdout
    assert shown.startswith("weighted-gmil: ")
    for name, value in gmil.WeightedGMIL().get_params().items():
        assert any(line.startswith(name) and repr(value) in line for line in shown.splitlines()), name
    assert "References" in run("methods", "citation-knn").stdout
    assert len(run("methods").stdout.splitlines()) == len(methods())
    assert "There is no method 'magic'" in run("methods", "magic").stderr


def test_every_method_has_a_text_for_every_parameter(run):
    for name, make in methods().items():
        lines = run("methods", name).stdout.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("parameter "))
        rows = lines[start + 1 : start + 1 + len(make().get_params(deep=False))]
        assert all(len(row.split("  ")) >= 3 and row.endswith(".") for row in rows), (name, rows)


@pytest.mark.parametrize(
    ("written", "method"),
    [
        ("weighted-gmil", "weighted-gmil"),
        ("WeightedGMIL", "weighted-gmil"),
        ("weightedgmil", "weighted-gmil"),
        ("GMIL", "gmil"),
        ("gmilcv", "gmil-cv"),
        ("miGraph", "mi-graph"),
        ("MIGraph", "mi-graph-explicit"),
        ("bag statistics", "bag-statistics"),
        ("BagStatistics", "bag-statistics"),
        ("Citation kNN", "citation-knn"),
        ("NSK", "nsk"),
    ],
)
def test_methods_are_known_by_what_tables_print(written, method):
    assert method_named(written) == method


def test_a_name_that_could_be_two_methods_is_refused():
    with pytest.raises(gmil.BagValidationError, match="could be mi-svm-instance or mi-svm-witness"):
        method_named("mI-sVm")


def test_commands_take_the_names_that_tables_print(run, tmp_path):
    data = tmp_path / "bags.csv"
    gmil.write(data, *gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True))
    [found] = json.loads(run("cv", data, "--method", "GMIL", "--folds", 2, "--json").stdout)
    assert found["method"] == "gmil"
    done = run("compare", data, "--methods", "GMIL,NSK", "--quick", "--folds", 2, "-o", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    rows = json.loads((tmp_path / "run/compare.json").read_text())["rows"]
    assert {"gmil", "nsk"} <= {row["method"] for row in rows}
