"""Prediction sets: p-values by hand and against crepes, coverage on generated bags, and what every door gives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gmil
from gmil import ConformalClassifier, WeightedGMIL
from gmil.conformal import Calibration, abstain_label, conformity, p_values, prediction_sets, residual_quantile
from gmil.conformal.p_values import fewest_bags
from gmil.engine import resolve
from gmil.weighted.fitting import Learning
from gmil.weighted.weighing import stacking_folds

FAST = {"scales": ("standard",), "witness_model": False, "random_state": 0, "n_jobs": 1}


def one_class(scores, **own):
    column = np.asarray(scores, dtype=float)[:, None]
    return Calibration(column, np.ones(column.shape, dtype=bool), **own)


# ------------------------------------------------------------------ p-values


def test_p_values_by_hand():
    found = p_values(np.array([[0.0], [2.0], [2.5], [9.0]]), one_class([1, 2, 2, 3]))
    assert found.ravel().tolist() == [1 / 5, 4 / 5, 4 / 5, 1]


def test_every_class_has_a_p_value_among_its_own_bags():
    scores = np.array([[1.0, 9.0], [2.0, 8.0], [9.0, 3.0]])
    members = np.array([[True, False], [True, False], [False, True]])
    found = p_values(np.array([[1.5, 1.5]]), Calibration(scores, members))
    assert found.tolist() == [[2 / 3, 1 / 2]]


def test_bags_without_a_score_do_not_count():
    assert p_values(np.array([[2.0]]), one_class([1, np.nan, 3])).item() == 2 / 3
    # A model that is sure, and wrong or right, counts.
    assert p_values(np.array([[2.0]]), one_class([-np.inf, -np.inf, np.inf])).item() == 3 / 4


def test_every_calibration_bag_is_compared_with_what_its_own_model_tells():
    calibration = one_class([1, 2, 3, 4], folds=np.array([0, 0, 1, 1]))
    new = np.array([[[1.5]], [[0.0]]])  # the first model is above one of its two bags, the second above none
    assert p_values(new, calibration).item() == 2 / 5


def test_a_group_counts_as_one_bag():
    calibration = one_class([1, 1, 1, 5], groups=np.array([7, 7, 7, 8]))
    assert p_values(np.array([[2.0]]), calibration).item() == pytest.approx(2 / 3)
    assert p_values(np.array([[2.0]]), one_class([1, 1, 1, 5])).item() == 4 / 5


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 4), st.booleans())
def test_p_values_are_those_of_crepes(seed, n_classes, with_ties):
    base = pytest.importorskip("crepes.base")
    rng = np.random.default_rng(seed)
    labels = np.arange(30) % n_classes
    scores, new = rng.normal(size=(30, n_classes)), rng.normal(size=(7, n_classes))
    if with_ties:
        scores, new = scores.round(), new.round()
    found = p_values(new, Calibration(scores, labels[:, None] == np.arange(n_classes)))
    own = -scores[np.arange(30), labels]
    for column in range(n_classes):
        expected = base.p_values_batch(own[labels == column], -new[:, column], smoothing=False)
        assert_allclose(found[:, column], expected)


def test_sets_are_those_of_mapie():
    """MAPIE's least ambiguous sets, for one class: the same quantile of the same scores."""
    pytest.importorskip("mapie")
    from mapie.classification import SplitConformalClassifier
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = LogisticRegression().fit(X[:100], y[:100])
    own = SplitConformalClassifier(model, confidence_level=0.9, conformity_score="lac", prefit=True)
    _, expected = own.conformalize(X[100:199], y[100:199]).predict_set(X[199:])
    left_out = model.predict_proba(X[100:199])[np.arange(99), y[100:199]]
    found = p_values(model.predict_proba(X[199:]).reshape(-1, 1), one_class(left_out))
    assert_array_equal(prediction_sets(found, 0.9).reshape(-1, 2), expected[..., 0])


def test_randomized_p_values_are_uniform():
    rng = np.random.default_rng(0)
    found = np.concatenate(
        [
            p_values(rng.integers(3, size=(1, 1)).astype(float), one_class(rng.integers(3, size=9)), rng).ravel()
            for _ in range(4000)
        ]
    )
    assert_allclose(np.quantile(found, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.03)


@pytest.mark.parametrize(("coverage", "n", "held"), [(0.9, 9, True), (0.9, 8, False), (0.95, 19, True), (0.8, 4, True)])
def test_a_class_can_be_ruled_out_from_so_many_bags_on(coverage, n, held):
    lowest = p_values(np.array([[-1.0]]), one_class(np.arange(n)))
    assert prediction_sets(lowest, coverage).any() != held
    assert (n >= fewest_bags(coverage)) == held


def test_margins_of_several_classes_and_of_several_labels():
    decisions = np.array([[1.0, 4.0, 2.0]])
    assert conformity(decisions).tolist() == [[-3.0, 2.0, -2.0]]
    assert conformity(decisions, several=True).tolist() == [[1.0, 4.0, 2.0, -1.0, -4.0, -2.0]]


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 90, "0.9", [0.5, 0.9]])
def test_no_other_coverage(coverage):
    with pytest.raises(gmil.BagValidationError, match="coverage must be a number above 0 and below 1"):
        prediction_sets(np.ones((1, 1)), coverage)


def test_residual_quantile_is_the_right_order_statistic():
    residuals = np.random.default_rng(0).permutation(np.arange(1.0, 20))
    assert residual_quantile(residuals, 0.9) == 18
    assert residual_quantile([*residuals, np.nan], 0.95) == 19
    assert residual_quantile(residuals, 0.96) == np.inf


# ------------------------------------------------------------------ estimators


@pytest.fixture(scope="module")
def made():
    found = gmil.make_bags(500, bag_size=(4, 8), separation=2.5, witness_rate=0.3, random_state=0)
    return found.bags, found.y


def covered(sets, y):
    return sets[np.arange(len(y)), y].mean()


@pytest.mark.parametrize(
    "model",
    [
        WeightedGMIL(**FAST),
        ConformalClassifier(gmil.BagStatistics(), random_state=0),
        ConformalClassifier(gmil.BagStatistics(), method="cv", random_state=0),
        ConformalClassifier(WeightedGMIL(**FAST), method="split", random_state=0),
    ],
    ids=["left out", "cv+", "cv", "split"],
)
def test_coverage_is_about_what_was_asked_for(model, made):
    bags, y = made
    model.fit(bags[:200], y[:200])
    for coverage in (0.7, 0.8):
        sets = model.predict_set(bags[200:], coverage)
        assert sets.shape == (300, 2)
        assert sets.dtype == bool
        assert coverage - 0.1 < covered(sets, y[200:]) < coverage + 0.13
        assert model.predict_set(bags[200:], coverage, randomized=True, random_state=0).sum() <= sets.sum()
    assert_array_equal(
        model.predict_set(bags[:9], randomized=True, random_state=3),
        model.predict_set(bags[:9], randomized=True, random_state=3),
    )


def bags_of_rare_words(n_bags, seed, n_words=80):
    """Return bags of three texts; positive bags have four rare words, the others one. Most words are in few bags."""
    rng, y = np.random.default_rng(seed), np.arange(n_bags) % 2
    texts = np.zeros((n_bags, 3, n_words))
    for bag, label in zip(texts, y, strict=True):
        bag[0, rng.integers(n_words, size=1 + 3 * label)] = 1
    return gmil.Bags.from_list(list(texts)), y


def test_words_that_no_training_bag_has_do_not_spoil_coverage():
    """A word of one training bag is far out in it; words of new bags, unknown, must be so, too (else 0.64)."""
    found = []
    for seed in range(6):
        bags, y = bags_of_rare_words(240, seed)
        model = WeightedGMIL(scales=["standard"], views=["range", "moments"], witness_model=False, random_state=0)
        sets = model.fit(bags[:40], y[:40]).predict_set(bags[40:], 0.8, randomized=True, random_state=0)
        found.append(covered(sets, y[40:]))
    assert 0.77 < np.mean(found) < 0.9


def test_cross_conformal_sets_come_from_the_models_that_left_bags_out(made):
    bags, y = made
    model = ConformalClassifier(gmil.BagStatistics(), cv=3, random_state=0).fit(bags[:60], y[:60])
    assert len(model.estimators_) == 3
    number = 7
    own = model.estimators_[model.left_out_models_[number]]
    assert model.left_out_decisions_[number] == pytest.approx(own.decision_function(bags[[number]])[0])
    scores = np.stack([conformity(each.decision_function(bags[60:80])) for each in model.estimators_])
    known = Calibration(conformity(model.left_out_decisions_), y[:60, None] == [0, 1], None, model.left_out_models_)
    assert_array_equal(model.predict_set(bags[60:80], 0.7), prediction_sets(p_values(scores, known), 0.7))


def test_groups_are_left_out_whole(made):
    bags, y = made
    groups = np.arange(60) // 2 // 3
    model = ConformalClassifier(gmil.BagStatistics(), cv=4, random_state=0).fit(bags[:60], y[:60], groups=groups)
    for group in np.unique(groups):
        assert len(np.unique(model.left_out_models_[groups == group])) == 1
    assert_array_equal(model.training_groups_, groups)


def test_bags_that_are_not_decided_have_a_label_of_their_own(made):
    bags, y = made
    words = np.array(["no", "yes"])[y]
    model = WeightedGMIL(**FAST, pos_label="no").fit(bags[:120], words[:120])
    sets = model.predict_set(bags[120:], 0.95)
    found = model.predict(bags[120:], abstain=True, coverage=0.95)
    one = sets.sum(axis=1) == 1
    assert 0 < one.mean() < 1
    assert_array_equal(found == "unsure", ~one)
    assert_array_equal(found[one], model.classes_[sets[one].argmax(axis=1)])
    assert np.mean(found[one] == words[120:][one]) > np.mean(model.predict(bags[120:]) == words[120:])


NO_CLASS = [([0, 1], -1), ([-1, 1], -2), ([False, True], -1), (["a", "unsure"], "unsure_"), ([2.0, 3.0], -1)]


@pytest.mark.parametrize(("classes", "expected"), NO_CLASS)
def test_the_label_of_undecided_bags_is_no_class(classes, expected):
    assert abstain_label(np.array(classes)) == expected


def test_methods_without_sets_do_not_abstain_in_silence(made):
    bags, y = made
    with pytest.raises(gmil.BagValidationError, match=r"Wrap it: ConformalClassifier\(BagStatistics\(\)\)"):
        gmil.BagStatistics().fit(bags[:40], y[:40]).predict(bags[:3], abstain=True)


def test_small_classes_say_so(made):
    bags, y = made
    some = np.concatenate([np.flatnonzero(y == 0)[:40], np.flatnonzero(y == 1)[:6]])
    model = WeightedGMIL(**FAST).fit(bags[some], y[some])
    with pytest.warns(UserWarning, match=r"rule out the class 1 \(6\): at a coverage of 0.9 a class needs 9"):
        sets = model.predict_set(bags[:50], 0.9)
    assert sets[:, 1].all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_set(bags[:50], 0.8)


def test_sets_of_several_classes(gaussian_bags):
    bags, y = gaussian_bags(n_bags=90, n_classes=3)
    model = WeightedGMIL(**FAST).fit(bags, np.array(["a", "b", "c"])[y])
    new, new_y = gaussian_bags(n_bags=90, n_classes=3, seed=5)
    sets = model.predict_set(new, 0.9)
    assert sets.shape == (90, 3)
    assert covered(sets, new_y) > 0.8
    assert set(model.predict(new, abstain=True)) <= {"a", "b", "c", "unsure"}


def test_sets_of_several_labels(gaussian_bags):
    bags, y = gaussian_bags(n_bags=80, n_classes=3)
    labels = np.column_stack([y > 0, y == 2]).astype(int)
    model = WeightedGMIL(**FAST).fit(bags, labels)
    new, new_y = gaussian_bags(n_bags=80, n_classes=3, seed=5)
    sets = model.predict_set(new, 0.9)
    assert sets.shape == (80, 2)
    assert sets[new_y == 2, 1].mean() > 0.75
    assert sets[new_y == 0, 1].mean() < 0.75
    found = model.predict(new, abstain=True)
    assert set(found.ravel()) <= {-1, 0, 1}
    assert (found[new_y == 0, 1] <= 0).mean() > 0.75


@pytest.fixture(scope="module")
def several(made):
    """Return bags of three labels, of which the last is rare, and groups."""
    bags, y = made
    second = np.array([bag[:, 1].max() > 1.2 for bag in bags])
    return bags, np.column_stack([y, second, np.arange(500) % 50 == 0]).astype(int), np.arange(500) // 10


@pytest.mark.parametrize("method", ["cv+", "cv", "split"])
def test_any_classifier_of_several_labels_has_sets_of_each(several, method, tmp_path):
    bags, labels, groups = several
    model = ConformalClassifier(WeightedGMIL(**FAST, views=["range"]), method=method, cv=3, random_state=0)
    model.fit(bags[:100], labels[:100], groups=groups[:100] if method == "cv" else None)
    assert model.left_out_decisions_.shape == (100, 3)
    assert_array_equal(model.predict(bags[100:]), model.estimator_.predict(bags[100:]))
    with pytest.warns(UserWarning, match="rule out the class 2"):
        sets = model._sets(bags[100:], 0.8)
    assert sets[:, 2].all()  # two bags have the label: too few to rule it out
    has = labels[100:, :2] == 1
    assert 0.7 < sets[:, :2][has].mean() < 0.95
    assert 0.7 < sets[:, 3:5][~has].mean() < 0.95
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").predict(bags[:20]), model.predict(bags[:20]))


def test_labels_one_by_one_are_needed_where_a_classifier_knows_one_alone(several):
    bags, labels, _ = several
    with pytest.raises(gmil.BagValidationError, match=r"estimator knows one label a bag.*BagStatistics"):
        ConformalClassifier(gmil.BagStatistics()).fit(bags, labels)
    small = WeightedGMIL(**FAST, views=["range"])
    refitted = ConformalClassifier(small, method="split", random_state=0).fit(bags[:60], labels[:60])
    assert refitted.fit(bags[:60], labels[:60, 0]).predict_set(bags[:9], 0.5).shape == (9, 2)
    assert not refitted.multilabel_


def test_rare_combinations_of_labels_do_not_keep_weights_from_being_found_elsewhere():
    positive = np.array([[True, False], [False, False]] * 10 + [[True, True]])
    folds = stacking_folds(Learning(positive, np.ones(21), None, ("linear",), 21, resolve("numpy")))
    assert len(folds) == 10
    assert_array_equal(np.sum(folds, axis=0), np.ones(21))


def test_bags_in_blocks_give_the_same_sets(made, tmp_path):
    bags, y = made
    gmil.write(tmp_path / "bags.parquet", bags[:100], y[:100])
    lazy, labels = gmil.scan(tmp_path / "bags.parquet")
    model = WeightedGMIL(**FAST).fit(bags[:60], y[:60])
    assert_array_equal(model.predict_set(lazy[60:]), model.predict_set(bags[60:100]))
    assert_array_equal(model.predict(lazy[60:], abstain=True), model.predict(bags[60:100], abstain=True))
    wrapped = ConformalClassifier(WeightedGMIL(**FAST), cv=2, random_state=0).fit(lazy[:60], labels[:60])
    assert wrapped.predict_set(lazy[60:], 0.8).shape == (40, 2)


def test_sets_are_saved_with_the_model(made, tmp_path):
    bags, y = made
    for model in (WeightedGMIL(**FAST), ConformalClassifier(gmil.BagStatistics(), cv=2, random_state=0)):
        model.fit(bags[:60], y[:60], groups=np.arange(60) // 10)
        model.save(tmp_path / "model.gmil")
        loaded = gmil.load(tmp_path / "model.gmil")
        assert_array_equal(loaded.predict_set(bags[60:], 0.8), model.predict_set(bags[60:], 0.8))


def test_pipelines_have_the_sets_of_their_last_step(made):
    bags, y = made
    pipeline = gmil.make_pipeline(gmil.Impute(), WeightedGMIL(**FAST)).fit(bags[:60], y[:60])
    assert_array_equal(pipeline.predict_set(bags[60:90]), pipeline[-1].predict_set(bags[60:90]))
    assert_array_equal(pipeline.predict(bags[60:90], abstain=True), pipeline[-1].predict(bags[60:90], abstain=True))


def test_models_of_older_files_say_that_they_have_no_labels(made):
    bags, y = made
    model = WeightedGMIL(**FAST).fit(bags[:60], y[:60])
    del model.training_labels_
    with pytest.raises(gmil.BagValidationError, match=r"older version, without labels\. Fit it again"):
        model.predict_set(bags[60:])


def test_familiar_bags_are_told_by_a_share_that_is_stated(made):
    bags, y = made
    model = WeightedGMIL(**FAST).fit(bags[:200], y[:200])
    found = model.familiarity(bags[200:])
    assert np.mean(found <= 0.1) < 0.16
    assert_array_equal(model.familiarity(bags[:3].with_instances(bags[:3].instances + 1e3)), np.full(3, found.min()))


def test_the_command_adds_sets_to_predictions(made, tmp_path, run):
    bags, y = made
    model = WeightedGMIL(**FAST).fit(bags[:60], y[:60])
    model.save(tmp_path / "model.gmil")
    gmil.write(tmp_path / "new.parquet", bags[60:80])
    result = run("predict", tmp_path / "model.gmil", tmp_path / "new.parquet", "--coverage", "0.8")
    assert result.exit_code == 0, result.stderr
    head, *rows = result.stdout.splitlines()
    assert head.endswith('"set_0","set_1"')
    expected = model.predict_set(bags[60:80], 0.8)
    assert [row.split(",")[-2:] for row in rows] == [[str(cell).lower() for cell in own] for own in expected]
