"""Predictions held against labels: figures, matrices, curves, difficult bags, pages of any number of classes."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.browser import NARROW, WIDE, overflow

import gmil
from gmil.model_selection.folds import estimator_seed, with_seed
from gmil.model_selection.result import CVResult
from gmil.model_selection.scoring import Outputs, score_model
from gmil.reporting.assessment import HeldOut
from gmil.reporting.assessment.assess import count_confusions, count_labels
from gmil.reporting.assessment.curves import class_curves, mean_precision_recall, mean_roc
from gmil.reporting.assessment.difficult import difficult_bags
from gmil.reporting.assessment.tables import tables_of

LONG = "a_very_long_name_without_a_single_place_to_break_it_" * 3


class Tables(HTMLParser):
    """The tables of a page by ``data-test``: rows of cells as texts."""

    def __init__(self, page):
        super().__init__()
        self.tables, self._rows, self._open = {}, None, False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self._rows = self.tables.setdefault(dict(attributes).get("data-test"), [])
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append("")
            self._open = True
        elif tag == "small":
            self._open = False

    def handle_endtag(self, tag):
        if tag == "table":
            self._rows = None
        elif tag in ("td", "th"):
            self._open = False

    def handle_data(self, data):
        if self._open:
            self._rows[-1][-1] += data.strip()


def result_of(y, predictions, decisions, folds=None, positive=None):
    """Return a result of one setting; a row of every array is a repeat."""
    predictions, decisions = np.array(predictions)[None], np.array(decisions, dtype=float)[None]
    folds = np.zeros(predictions.shape[1:3], dtype=int) if folds is None else np.array(folds)
    seconds = np.zeros((1, len(folds), int(folds.max()) + 1))
    return CVResult(np.array(y), predictions, decisions, folds, seconds, seconds, positive_label=positive)


# ------------------------------------------------------------------ counts


def test_a_confusion_matrix_counts_every_repeat():
    y = ["a", "a", "b", "c"]
    result = result_of(y, [["a", "b", "b", "a"], ["a", "a", "b", "c"]], np.zeros((2, 4, 3)))
    found = count_confusions(HeldOut.of_result(result))
    assert found.classes == ["a", "b", "c"]
    assert found.counts == [[3, 1, 0], [0, 2, 0], [1, 0, 1]]


def test_of_several_labels_each_is_counted_alone():
    y = np.array([[1, 0], [1, 1], [0, 0]])
    result = result_of(y, [[[1, 1], [0, 1], [0, 0]]], np.zeros((1, 3, 2)))
    first, second = count_labels(HeldOut.of_result(result))
    assert (first.true_positive, first.false_positive, first.false_negative, first.true_negative) == (1, 0, 1, 1)
    assert (second.true_positive, second.false_positive, second.false_negative, second.true_negative) == (1, 1, 0, 1)


# ------------------------------------------------------------------ curves


def test_the_curves_of_four_bags_are_those_that_a_pencil_draws():
    tests = [(np.array([True, False, True, False]), np.array([4.0, 3.0, 2.0, 1.0]))]
    points = {tuple(point) for point in mean_roc(tests).tolist()}
    assert points == {(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)}
    # The first positive is met with precision 1, the second as the third of the bags.
    assert mean_precision_recall(tests).tolist() == [[0, 1], [0.5, 1], [0.5, 2 / 3], [1, 2 / 3]]


def test_equal_decisions_are_a_slope_and_no_step():
    tests = [(np.array([True, False]), np.array([1.0, 1.0]))]
    assert mean_roc(tests).tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=9), min_size=1, max_size=5))
def test_areas_under_mean_curves_are_mean_areas(folds):
    tests = [(np.array([m for m, _ in fold]), np.array([float(d) for _, d in fold])) for fold in folds]
    tests = [(members, decisions) for members, decisions in tests if 0 < members.sum() < len(members)]
    if not tests:
        return
    x, height = mean_roc(tests).T
    assert trapezoid(height, x) == pytest.approx(np.mean([roc_auc_score(*test) for test in tests]))
    recall, precision = mean_precision_recall(tests).T
    area = np.sum(np.diff(recall) * precision[1:])
    assert area == pytest.approx(np.mean([average_precision_score(*test) for test in tests]))


def test_the_curve_of_two_classes_is_that_of_the_positive_one_and_has_the_area_of_the_result(gaussian_bags):
    bags, y = gaussian_bags(n_bags=30)
    words = np.array(["event", "other"])[y]
    result = gmil.cross_validate(gmil.GMIL(5, pos_label="event"), bags, words, cv=3, repeats=2)
    (curve,), reason = class_curves(HeldOut.of_result(result))
    assert (curve.label, curve.n_bags, reason) == ("event", 15, "")
    assert curve.auc == pytest.approx(result.auc())
    assert curve.average_precision == pytest.approx(result.average_precision())


def test_every_class_has_a_curve_against_all_others(gaussian_bags):
    bags, y = gaussian_bags(n_bags=45, n_classes=3)
    result = gmil.cross_validate(gmil.GMIL(6), bags, y, cv=3)
    curves, _ = class_curves(HeldOut.of_result(result))
    assert [curve.auc for curve in curves] == pytest.approx([result.one_vs_rest(c).auc() for c in range(3)])
    assert np.mean([curve.auc for curve in curves]) == pytest.approx(result.auc())


@pytest.mark.parametrize(
    ("y", "decisions", "words"),
    [
        ([1, 1, 1, 1], [[1.0, 2, 3, 4]], "all bags are of one class, '1'"),
        ([0, 1, 0, 1], [[np.nan] * 4], "labels without decisions"),
        ([0, 0, 1, 1], [[1.0, 2, 3, 4]], "There is no curve for '1': no test fold has bags with and without it."),
    ],
)
def test_where_there_is_no_curve_a_sentence_tells_why(y, decisions, words):
    held = HeldOut.of_result(result_of(y, [y], decisions, [[0, 0, 1, 1]], 1))
    if len(set(y)) == 1:  # as of a model of two classes
        outputs = Outputs(np.array([0, 1]), np.array(y), np.array(decisions[0]), None, 1)
        held = HeldOut.of_outputs(outputs, np.array(y))
    curves, reason = class_curves(held)
    assert curves == []
    assert words in reason


def test_of_very_many_repeats_the_first_ones_are_drawn():
    rng = np.random.default_rng(0)
    y = np.arange(10) % 2
    result = result_of(y, [y] * 40, rng.normal(size=(40, 10)), positive=1)
    (curve,), _ = class_curves(HeldOut.of_result(result))
    assert curve.auc == pytest.approx(result.fold_aucs()[0, :25].mean())


def test_curves_of_many_bags_have_few_points():
    rng = np.random.default_rng(0)
    y = np.arange(5000) % 2
    result = result_of(y, [y], [rng.normal(size=5000) + y], positive=1)
    (curve,), _ = class_curves(HeldOut.of_result(result))
    assert len(curve.roc) == len(curve.precision_recall) == 400
    assert (curve.roc[0], curve.roc[-1]) == ([0, 0], [1, 1])


# ------------------------------------------------------------------ difficult bags


def test_the_most_wrong_and_the_least_sure_of_two_classes():
    result = result_of([0, 0, 1, 1, 1], [[0, 1, 1, 0, 0]], [[-2.0, 0.5, 3, -4, -0.1]], positive=1)
    found = difficult_bags(HeldOut.of_result(result), list("abcde"), np.arange(5))
    assert found.columns == ["decision for '1'"]
    assert [line.name for line in found.wrong] == ["d", "b", "e"]
    assert [line.name for line in found.unsure] == ["e", "b", "a", "c", "d"]
    first = found.wrong[0]
    assert (first.label, first.predicted, first.scores, first.n_wrong) == ("1", "0", [-4.0], 1)


def test_of_several_classes_the_margin_between_prediction_and_label_counts():
    decisions = [[[5.0, 4, 0], [3, 0, 0], [0, 1, 2]]]
    held = HeldOut.of_result(result_of(["a", "b", "b", "c"], [["a", "a", "a", "c"]], [[[9, 0, 0], *decisions[0]]]))
    found = difficult_bags(held, ["w", "x", "y", "z"], np.array([3, 5, 7, 9]))
    assert found.columns == ["decision for the prediction", "decision for the label"]
    assert [(line.name, line.number, line.scores) for line in found.wrong] == [("y", 7, [3, 0]), ("x", 5, [5, 4])]
    assert [line.name for line in found.unsure] == ["x", "z", "y", "w"]


def test_probabilities_are_shown_where_there_are_some():
    result = result_of([0, 1], [[1, 1]], [[2.0, 3.0]], positive=1)
    held = HeldOut.of_result(result, np.array([[0.1, 0.9], [0.2, 0.8]]))
    found = difficult_bags(held, ["a", "b"], np.arange(2))
    assert found.columns == ["probability of '1'"]
    assert found.wrong[0].scores == [0.9]


def test_of_several_labels_the_worst_one_counts():
    y = np.array([[1, 0], [1, 1]])
    result = result_of(y, [[[0, 0], [1, 1]]], [[[-3.0, -1.0], [0.5, 2.0]]])
    found = difficult_bags(HeldOut.of_result(result), ["a", "b"], np.arange(2))
    assert found.columns == ["lowest decision for a right answer"]
    assert [(line.name, line.label, line.predicted, line.scores) for line in found.wrong] == [
        ("a", "0", "none", [-3.0])
    ]
    assert [line.name for line in found.unsure] == ["b", "a"]


def test_without_decisions_bags_are_the_more_wrong_the_more_often_they_are():
    result = result_of([0, 1, 1], [[0, 0, 0], [0, 1, 0]], np.full((2, 3), np.nan), positive=1)
    found = difficult_bags(HeldOut.of_result(result), list("abc"), np.arange(3))
    assert [(line.name, line.n_wrong, line.scores) for line in found.wrong] == [("c", 2, []), ("b", 1, [])]
    assert found.unsure == []


# ------------------------------------------------------------------ pages of a model


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_a_page_has_matrix_and_curves_for_any_number_of_classes(gaussian_bags, n_classes):
    bags, y = gaussian_bags(n_bags=6 * n_classes, n_classes=n_classes, n_features=12)
    model = gmil.GMIL(10, random_state=0).fit(bags, y)
    made = gmil.report(model, bags, y, importance=0)
    (found,) = made.summary.assessments
    expected = score_model(model, bags, y)
    assert found.confusion.counts == expected.confusion.tolist()
    assert len(found.curves) == (1 if n_classes == 2 else n_classes)
    values = {figure.key: figure.value for figure in found.figures}
    assert values == {
        "accuracy": expected.accuracy.value,
        "balanced_accuracy": expected.balanced_accuracy.value,
        "auc": expected.auc.value,
        "brier": expected.brier.value,
        "majority_accuracy": expected.majority,
    }
    page = made.to_html()
    rows = Tables(page).tables["confusion"][2:]
    assert [[int(cell) for cell in row[1:]] for row in rows] == found.confusion.counts
    assert page.count('data-test="roc"') == (2 if n_classes == 12 else 1)
    assert page.count("<polyline") >= 2 * len(found.curves)


def test_bags_of_one_class_have_a_sentence_and_no_curve(gaussian_bags):
    bags, y = gaussian_bags()
    model = gmil.GMIL(5, random_state=0).fit(bags, y)
    made = gmil.report(model, bags[y == 1], y[y == 1], importance=0)
    (found,) = made.summary.assessments
    assert found.curves == []
    assert "all bags are of one class, '1'" in made.to_html().replace("&#39;", "'")
    assert found.confusion.counts[0] == [0, 0]
    assert {figure.key: figure.value for figure in found.figures}["auc"] is None


def test_labels_that_the_model_does_not_know_are_wrong(gaussian_bags):
    bags, y = gaussian_bags()
    model = gmil.GMIL(5, random_state=0).fit(bags, y)
    other = np.where(np.arange(len(y)) < 3, 7, y)
    (found,) = gmil.report(model, bags, other, importance=0).summary.assessments
    assert found.confusion.classes == ["0", "1", "7"]
    assert sum(found.confusion.counts[2][:2]) == 3
    assert [figure.key for figure in found.figures] == ["accuracy"]


def test_several_labels_have_a_row_each(gaussian_bags):
    bags, y = gaussian_bags()
    labels = np.column_stack([y, 1 - y, y])
    model = gmil.WeightedGMIL(random_state=0).fit(bags, labels)
    made = gmil.report(model, bags, labels, importance=0)
    (found,) = made.summary.assessments
    assert found.confusion is None
    assert [line.label for line in found.labels] == ["0", "1", "2"]
    assert [line.true_positive for line in found.labels] == (model.predict(bags) * labels).sum(axis=0).tolist()
    assert len(found.curves) == 3
    assert "Right and wrong predictions of every label" in made.to_html()


def test_no_labels_no_assessment(videos):
    bags, _, model = videos
    made = gmil.report(model, bags)
    assert made.summary.assessments == []
    assert "Confusion matrix" not in made.to_html()


# ------------------------------------------------------------------ bags that the model was fitted on


def test_training_bags_are_told_apart_at_the_very_top(gaussian_bags):
    bags, y = gaussian_bags(n_bags=40)
    model = gmil.GMIL(5, random_state=0).fit(bags[:25], y[:25])
    made = gmil.report(model, bags, y, seen=np.arange(40) < 25, importance=0)
    sentence = "25 of 40 bags were used to train this model: figures for them are too good."
    assert made.summary.warning == sentence
    for text in (made.to_html(), made.to_markdown()):
        assert text.index(sentence) < text.index("GMIL predicts")
    unseen, trained = made.summary.assessments
    assert (unseen.n_bags, trained.n_bags) == (15, 25)
    assert unseen.figures[0].value == score_model(model, bags[25:], y[25:]).accuracy.value
    assert trained.figures[0].value == score_model(model, bags[:25], y[:25]).accuracy.value
    assert all(line.number >= 25 for line in (*unseen.wrong, *unseen.unsure))
    assert (trained.confusion, trained.curves) == (None, [])
    right = int((model.predict(bags[25:]) == y[25:]).sum())
    assert f"accuracy on bags not used in training {100 * right / 15:.1f} % ({right} of 15)" in made.summary.verdict


def test_a_page_of_training_bags_alone_says_so(gaussian_bags):
    bags, y = gaussian_bags()
    model = gmil.GMIL(5, random_state=0).fit(bags, y)
    made = gmil.report(model, bags, y, seen=True)
    assert made.summary.warning.startswith("All 24 bags were used to train this model")
    (found,) = made.summary.assessments
    assert found.title == "Predictions of training bags"
    assert found.importance is None
    assert "gmil cv DATA -o page.html" in found.without_importance
    assert gmil.report(model, bags, y, seen=False, importance=0).summary.warning == ""


@pytest.mark.parametrize("seen", [[True] * 3, np.ones(24), "yes"])
def test_seen_is_a_mask(gaussian_bags, seen):
    bags, y = gaussian_bags()
    model = gmil.GMIL(5, random_state=0).fit(bags, y)
    with pytest.raises(gmil.BagValidationError, match="seen must be true or false, or one of them for each of the 24"):
        gmil.report(model, bags, y, seen=seen)


def test_a_model_from_the_command_line_remembers_its_bags(run, gaussian_bags, tmp_path):
    bags, y = gaussian_bags(n_bags=30)
    gmil.write(tmp_path / "train.npz", bags[:20], y[:20])
    gmil.write(tmp_path / "all.npz", bags, y)
    assert run("fit", tmp_path / "train.npz", "-o", tmp_path / "m.gmil", "--method", "gmil").exit_code == 0
    result = run("report", tmp_path / "m.gmil", tmp_path / "all.npz", "-o", tmp_path / "page.json")
    assert result.exit_code == 0, result.stderr
    sentence = "20 of 30 bags were used to train this model"
    assert sentence in result.stderr
    assert json.loads((tmp_path / "page.json").read_text())["warning"].startswith(sentence)
    loaded = gmil.load(tmp_path / "m.gmil")
    assert gmil.report(loaded, bags, y, importance=0).summary.warning.startswith(sentence)
    # Fitted again, it does not know its bags any more.
    assert gmil.report(loaded.fit(bags, y), bags, y, importance=0).summary.warning == ""


# ------------------------------------------------------------------ pages of cross-validations


@pytest.mark.parametrize(
    ("method", "n_classes"),
    [
        ("weighted-gmil", 2),
        ("gmil", 2),
        ("gmil", 3),
        pytest.param("nsk", 2, marks=pytest.mark.slow),
        pytest.param("nsk", 3, marks=pytest.mark.slow),
        pytest.param("weighted-gmil", 3, marks=pytest.mark.slow),
    ],
)
def test_pages_show_the_figures_of_gmil_cv_to_the_digit(run, gaussian_bags, tmp_path, method, n_classes):
    bags, y = gaussian_bags(n_bags=12 * n_classes, n_classes=n_classes)
    bags = bags.with_instances(bags.instances / 2 + np.random.default_rng(0).normal(size=bags.instances.shape))
    gmil.write(tmp_path / "bags.npz", bags, y)
    arguments = ["cv", tmp_path / "bags.npz", "--method", method, "--folds", 3, "--repeats", 2, "--json"]
    result = run(*arguments, "-o", tmp_path / "page.html", "--importance", 0)
    assert result.exit_code == 0, result.stderr
    (row,) = json.loads(result.stdout)
    shown = {cells[0]: cells[1:] for cells in Tables((tmp_path / "page.html").read_text()).tables["figures"][1:]}
    low, high = (f"{100 * limit:.1f}" for limit in row["accuracy_interval"])
    assert shown["accuracy, %"] == [f"{100 * row['accuracy_mean']:.1f}", f"{low} to {high}"]
    assert shown["standard deviation over repeats, points"][0] == f"{100 * row['accuracy_std']:.1f}"
    assert shown["AUC of '1'" if n_classes == 2 else "AUC, mean over classes"][0] == f"{row['auc_mean']:.3f}"
    assert shown["balanced accuracy, %"][0] == f"{100 * row['balanced_accuracy_mean']:.1f}"
    assert shown["accuracy of the majority class, %"][0] == f"{100 * row['majority_accuracy']:.1f}"
    assert run(*arguments, "-o", tmp_path / "page.json", "--importance", 0).exit_code == 0
    (found,) = json.loads((tmp_path / "page.json").read_text())["assessments"]
    for figure in found["figures"]:
        assert figure["value"] == row[figure["key"]]
    assert found["figures"][0]["interval"] == row["accuracy_interval"]
    counts = np.array(found["confusion"]["counts"])
    assert counts.sum() == 2 * len(y)
    if n_classes == 2:
        assert found["curves"][0]["auc"] == pytest.approx(row["auc_mean"])
    else:
        assert np.mean([curve["auc"] for curve in found["curves"]]) == pytest.approx(row["auc_mean"])


def test_a_page_of_a_result_has_held_out_scores_and_probabilities(gaussian_bags):
    bags, y = gaussian_bags(n_bags=24)
    estimator = gmil.GMIL(5)
    result = gmil.cross_validate(estimator, bags, y, cv=3)
    made = gmil.report(result, bags, estimator=estimator)
    (found,), (shown,) = made.summary.assessments, made.summary.models
    assert found.score_columns == ["probability of '1'"]
    assert found.explorer == 1
    assert found.importance.measure == "AUC"
    assert found.importance.base == pytest.approx(result.auc())
    for fold in range(3):
        test = result.folds[0] == fold
        model = with_seed(estimator, estimator_seed(0, 0, fold)).fit(bags[~test], y[~test])
        for number in np.flatnonzero(test)[:2].tolist():
            bag = shown.explorer.bags[number]
            scores = np.sort(model.score_instances(bags[[number]]))[::-1]
            assert [row[2] for row in bag.rows] == pytest.approx(scores, rel=1e-3, abs=1e-5)
            assert bag.predicted == str(result.predictions[0, 0, number])


def test_labels_that_are_texts_are_asked_about_once(gaussian_bags):
    bags, y = gaussian_bags(n_bags=24)
    words = np.array(["yes", "no"])[y]
    with pytest.warns(UserWarning, match="'yes'"):
        result = gmil.cross_validate(gmil.GMIL(5), bags, words, cv=3)
    (found,) = gmil.report(result, bags, estimator=gmil.GMIL(5), importance=1).summary.assessments
    assert found.score_columns == ["probability of 'yes'"]
    assert "differently" not in found.text


def test_a_result_alone_has_a_page_without_models(gaussian_bags):
    bags, y = gaussian_bags()
    result = gmil.cross_validate(gmil.GMIL(5), bags, y, cv=3)
    made = gmil.report(result, bags, title="mine")
    assert made.summary.title == "mine"
    assert "estimator=" in made.summary.assessments[0].without_importance
    assert "score" not in made.summary.models[0].explorer.columns
    assert "<html" in made.to_html()


def test_another_estimator_than_the_one_of_the_result_is_noticed(gaussian_bags):
    bags, y = gaussian_bags(n_bags=30)
    bags = bags.with_instances(bags.instances / 3)
    result = gmil.cross_validate(gmil.GMIL(5), bags, y, cv=3)
    other = gmil.report(result, bags, estimator=gmil.GMIL(2)).summary.assessments[0]
    assert "the estimator is not quite the one that was cross-validated" in other.text
    same = gmil.report(result, bags, estimator=gmil.GMIL(5)).summary.assessments[0]
    assert "differently" not in same.text


def test_results_that_no_page_can_show_are_refused(gaussian_bags):
    bags, y = gaussian_bags()
    several = gmil.cross_validate(gmil.GMIL(), bags, y, cv=3, param_grid={"n_clusters": [3, 4]})
    with pytest.raises(gmil.BagValidationError, match="has 2 settings, but a page shows one"):
        gmil.report(several, bags)
    result = gmil.cross_validate(gmil.GMIL(5), bags, y, cv=3)
    with pytest.raises(gmil.BagValidationError, match="The result is of 24 bags, but there are 5"):
        gmil.report(result, bags[:5])


def test_several_data_sets_are_one_page(run, gaussian_bags, tmp_path):
    for name, seed in (("one", 1), ("two", 2)):
        gmil.write(tmp_path / f"{name}.npz", *gaussian_bags(seed=seed))
    files = [tmp_path / f"{name}.npz" for name in ("one", "two")]
    page = tmp_path / "page.json"
    result = run("cv", *files, "--method", "gmil", "--folds", 3, "-o", page)
    assert result.exit_code == 0, result.stderr
    found = json.loads(page.read_text())
    assert found["title"] == "GMIL on one.npz, two.npz, cross-validated"
    assert [part["explorer"] for part in found["assessments"]] == [1, 2]
    assert [part["title"] for part in found["models"]] == ["Bags: one.npz", "Bags: two.npz"]


def test_bags_on_disk_have_a_page_without_explorer(run, gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    gmil.write(tmp_path / "bags.parquet", bags, y)
    lazy, labels = gmil.scan(tmp_path / "bags.parquet")
    result = gmil.cross_validate(gmil.GMIL(5), lazy, labels, cv=3)
    made = gmil.report(result, lazy, estimator=gmil.GMIL(5))
    assert made.summary.models == []
    assert "not in memory" in made.summary.assessments[0].without_importance
    page = tmp_path / "page.html"
    assert run("cv", tmp_path / "bags.parquet", "--stream", "--method", "gmil", "--folds", 3, "-o", page).exit_code == 0
    assert "Confusion matrix" in page.read_text()


def test_missing_values_and_groups_have_a_page(run, gaussian_bags, tmp_path):
    bags, _y = gaussian_bags(n_bags=30)
    instances = bags.instances.copy()
    instances[::7, 1] = np.nan
    info = {"patient": np.repeat(np.arange(30) // 2, bags.sizes)}
    bags = gmil.Bags(instances, bags.offsets, instance_info=info)
    gmil.write(tmp_path / "gaps.parquet", bags, np.repeat([0, 1, 1, 0, 1], 6))
    shared = ["--method", "gmil", "--folds", 3, "--group", "patient"]
    for missing in ("median", "drop"):
        page = tmp_path / f"{missing}.md"
        result = run("cv", tmp_path / "gaps.parquet", *shared, "--missing", missing, "-o", page)
        assert result.exit_code == 0, result.stderr
        assert "without all bags of its group" in page.read_text()
        assert "left out as a whole" in page.read_text()


def test_sparse_bags_have_a_page(gaussian_bags):
    bags, y = gaussian_bags()
    sparse = gmil.Bags(sp.csr_array(bags.instances), bags.offsets)
    estimator = gmil.GMIL(5)
    result = gmil.cross_validate(estimator, sparse, y, cv=3)
    made = gmil.report(result, sparse, estimator=estimator, importance=1)
    assert made.summary.assessments[0].importance.groups
    assert "score" in made.summary.models[0].explorer.columns


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_fitted(run, gaussian_bags, tmp_path):
    gmil.write(tmp_path / "bags.npz", *gaussian_bags())
    result = run("cv", tmp_path / "bags.npz", "-o", tmp_path / "page.png")
    assert result.exit_code == 2
    assert "written as .html, .md or .json" in result.stderr
    assert result.stdout == ""


def test_markdown_and_json_have_the_same_content(gaussian_bags):
    bags, y = gaussian_bags(n_bags=36, n_classes=3)
    estimator = gmil.GMIL(6)
    made = gmil.report(gmil.cross_validate(estimator, bags, y, cv=3), bags, estimator=estimator)
    (found,) = made.summary.assessments
    text, page = made.to_markdown(), Tables(made.to_html()).tables
    (data,) = json.loads(made.to_json())["assessments"]
    for name, table in tables_of(found).items():
        assert f"### {table.title}" in text
        for row in table.rows:
            assert all(cell.text.replace("_", "\\_") in text for cell in row)
        if name != "curves":  # on the page these stand in the legend
            body = page[table.key][-len(table.rows) :]
            assert [[cell.text for cell in row] for row in table.rows] == body
    assert data["confusion"]["counts"] == found.confusion.counts
    assert data["importance"]["groups"][0]["fall"] == found.importance.groups[0].fall


# ------------------------------------------------------------------ in a browser


@pytest.fixture(scope="module")
def long_names(gaussian_bags, tmp_path_factory):
    bags, y = gaussian_bags(n_bags=48, n_classes=12, n_features=12)
    ids = [f"{LONG}{i}" for i in range(48)]
    names = [f"{LONG}{i}" for i in range(12)]
    bags = gmil.Bags(bags.instances, bags.offsets, ids, names)
    labels = np.array([f"{LONG}{label}" for label in y])
    estimator = gmil.GMIL(12)
    result = gmil.cross_validate(estimator, bags, labels, cv=4)
    made = gmil.report(result, bags, estimator=estimator, importance=1)
    return made.save(tmp_path_factory.mktemp("long") / "page.html")


@pytest.mark.parametrize("width", [NARROW - 10, WIDE])
def test_no_page_is_wider_than_its_window_whatever_the_names(visit, long_names, width):
    assert overflow(visit(long_names, width=width)) == [0, []]


def test_on_paper_nothing_is_cut_off_whatever_the_names(visit, tmp_path, gaussian_bags):
    bags, y = gaussian_bags()
    bags = gmil.Bags(bags.instances, bags.offsets, [f"{LONG}{i}" for i in range(24)], [f"{LONG}{i}" for i in range(3)])
    words = np.array([f"{LONG} not", f"{LONG} yes"])[y]
    model = gmil.GMIL(5, random_state=0, pos_label=words[1]).fit(bags, words)
    made = gmil.report(model, bags, words, importance=1)
    page = visit(made.save(tmp_path / "page.html"), width=794)
    page.emulate_media(media="print")
    inside = "e => e.getBoundingClientRect().right <= document.documentElement.clientWidth + 1"
    tables = page.locator("[data-test=assessment] table")
    assert tables.count() == 5
    assert all(tables.nth(i).evaluate(inside) for i in range(5))


def test_the_name_of_a_bag_leads_to_its_explanation(visit, long_names):
    page = visit(long_names)
    page.locator(".explorer input").fill("nothing of that name")
    link = page.locator("[data-test=least-sure] tbody tr").nth(2).locator("a")
    name = link.inner_text()
    link.click()
    assert page.inner_text(".explorer .title") == f"Bag {name}"
    assert page.locator("#model1").evaluate("e => e.matches(':target')")
