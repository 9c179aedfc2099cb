"""Ordered grades: probabilities that respect the order, the order of texts, cumulative logits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import cohen_kappa_score, roc_auc_score

import gmil
from gmil import WeightedGMILOrdinal
from gmil.model_selection.scoring import outputs_of, score_outputs
from gmil.model_selection.target_metrics import quadratic_kappa
from gmil.reporting.assessment.assess import count_confusions
from gmil.reporting.assessment.held_out import HeldOut
from gmil.targets.cumulative import fit_cumulative, grade_probabilities


@pytest.fixture(scope="module")
def made():
    return gmil.make_bags(180, target="ordinal", n_features=5, n_classes=4, random_state=2)


@pytest.fixture(scope="module")
def fitted(made):
    return WeightedGMILOrdinal(random_state=0, scales=("standard",)).fit(made.bags[:130], made.y[:130])


def test_grades_are_predicted(made, fitted):
    assert quadratic_kappa(made.y[130:], fitted.predict(made.bags[130:])) > 0.6
    assert_array_equal(fitted.classes_, np.arange(4))


def test_probabilities_have_one_peak_and_move_up_with_the_score(made, fitted):
    probabilities = fitted.predict_proba(made.bags)
    assert_allclose(probabilities.sum(axis=1), 1)
    for row in probabilities:
        steps = np.sign(np.diff(row))
        assert (np.diff(steps[steps != 0]) <= 0).all()  # up, then down
    order = np.argsort(fitted._odds(made.bags))
    above = 1 - np.cumsum(probabilities, axis=1)[:, :-1]
    assert (np.diff(above[order], axis=0) >= -1e-12).all()


def test_the_predicted_grade_is_the_median(made, fitted):
    median = (np.cumsum(fitted.predict_proba(made.bags), axis=1) < 0.5).sum(axis=1)
    assert np.mean(median == fitted.predict(made.bags)) == 1


def test_texts_have_the_order_that_is_given(made, fitted):
    names = np.array(["none", "mild", "severe", "worst"])
    grades = ["none", "mild", "severe", "fatal", "worst"]
    model = WeightedGMILOrdinal(grades=grades, random_state=0, scales=("standard",))
    model.fit(made.bags[:130], names[made.y[:130]])
    assert_array_equal(model.classes_, sorted(names))
    assert_array_equal(model.predict(made.bags), names[fitted.predict(made.bags)])
    columns = [list(model.classes_).index(name) for name in names]
    assert_allclose(model.predict_proba(made.bags)[:, columns], fitted.predict_proba(made.bags), atol=1e-9)
    for grades in (["none", "mild"], [*names, "none"]):
        with pytest.raises(gmil.BagValidationError, match="every grade of y once"):
            model.set_params(grades=grades).fit(made.bags[:130], names[made.y[:130]])


@pytest.mark.filterwarnings("error")
def test_the_higher_of_two_grades_is_the_positive_one(made, recwarn):
    y = np.where(made.y > 1, "high", "low")
    how = {"random_state": 0, "scales": ("standard",), "witness_model": False}
    model = WeightedGMILOrdinal(grades=["low", "high"], **how).fit(made.bags[:130], y[:130])
    assert not recwarn.list  # the order is given: nothing is guessed
    assert model.pos_label_ == "high"
    numbers = WeightedGMILOrdinal(**how).fit(made.bags[:130], made.y[:130] > 1)
    assert_allclose(model.score_instances(made.bags), numbers.score_instances(made.bags))
    assert_array_equal(model.predict(made.bags) == "high", numbers.predict(made.bags))
    assert gmil.cross_validate(model, made.bags, y, cv=2).positive_label == "high"
    assert WeightedGMILOrdinal(grades=["low", "high"], pos_label="low", **how).fit(made.bags, y).pos_label_ == "low"


def test_tables_show_grades_in_their_order(made):
    y = np.array(["none", "mild", "severe", "worst"])[made.y]
    grades = ["none", "mild", "severe", "fatal", "worst"]
    model = WeightedGMILOrdinal(grades=grades, random_state=0, scales=("standard",), witness_model=False)
    model.fit(made.bags[:130], y[:130])
    shown = [grade for grade in grades if grade != "fatal"]
    outputs = outputs_of(model, made.bags)
    scores = score_outputs(outputs, y)
    assert scores.classes == shown
    result = gmil.cross_validate(model, made.bags, y, cv=2)
    for held in (HeldOut.of_outputs(outputs, y), HeldOut.of_result(result)):
        assert held.classes == shown
        assert_array_equal(np.array(shown)[held.truth.argmax(axis=1)], y)
        assert_array_equal(held.predicted.argmax(axis=-1), held.decisions.argmax(axis=-1))
    assert count_confusions(HeldOut.of_outputs(outputs, y)).counts == scores.confusion.tolist()
    drift = gmil.check_drift(model, made.bags[130:], reference=made.bags[:130], reference_y=y[:130])
    text = drift["shares of classes"].text
    assert [text.index(f'"{grade}"') for grade in shown] == sorted(text.index(f'"{grade}"') for grade in shown)


def test_texts_that_only_the_alphabet_orders_are_said(made):
    model = WeightedGMILOrdinal(random_state=0, scales=("standard",), witness_model=False)
    with pytest.warns(
        UserWarning, match="ordered by the alphabet: 'high', 'low', 'middle'. Give their order with grad"
    ):
        model.fit(made.bags[:60], np.array(["low", "low", "middle", "high"])[made.y[:60]])
    with pytest.warns(UserWarning, match="'grade 1', 'grade 10', 'grade 2'"):
        model.fit(made.bags[:60], np.array(["grade 1", "grade 1", "grade 2", "grade 10"])[made.y[:60]])
    model.fit(made.bags[:60], np.array(["G1", "G2", "G2", "G3"])[made.y[:60]])


def test_bags_of_a_middle_grade_have_the_largest_decisions_about_it(made, fitted):
    decisions = fitted.decision_function(made.bags[130:])
    aucs = [roc_auc_score(made.y[130:] == grade, decisions[:, grade]) for grade in range(4)]
    assert min(aucs) > 0.6  # one half where the decision about a grade in the middle is the same for all bags
    assert_array_equal(decisions.argmax(axis=1), fitted.predict(made.bags[130:]))


def test_instances_that_raise_the_grade(made, fitted):
    scores = fitted.score_instances(made.bags)
    assert scores.shape == (made.bags.n_instances, 4)
    bag = made.bags[7]
    without = fitted.decision_function([np.delete(bag, i, axis=0) for i in range(len(bag))])
    expected = fitted.decision_function([bag]) - without
    assert_allclose(fitted.score_instances([bag]), expected, atol=3e-6)


def test_model_files(made, fitted, tmp_path):
    fitted.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    for method in ("predict", "predict_proba", "score_instances"):
        assert_array_equal(getattr(loaded, method)(made.bags), getattr(fitted, method)(made.bags))


def test_cumulative_logits_find_slope_and_thresholds():
    rng = np.random.default_rng(0)
    scores = rng.normal(1, 2, 4000)
    latent = 1.5 * scores + rng.logistic(size=4000)
    grades = np.searchsorted([-1.0, 2.0, 4.0], latent)
    slope, thresholds = fit_cumulative(scores, grades, 4)
    assert slope == pytest.approx(1.5, abs=0.1)
    assert_allclose(thresholds, [-1, 2, 4], atol=0.25)
    shares = grade_probabilities(slope * scores, thresholds).mean(axis=0)
    assert_allclose(shares, np.bincount(grades) / 4000, atol=0.01)


def test_grades_that_scores_order_perfectly_stay_finite():
    scores = np.arange(30.0)
    slope, thresholds = fit_cumulative(scores, np.repeat([0, 1, 2], 10), 3)
    assert np.isfinite(slope)
    found = grade_probabilities(slope * scores, thresholds).argmax(axis=1)
    assert np.mean(found == np.repeat([0, 1, 2], 10)) > 0.9
    assert grade_probabilities(slope * scores, thresholds).max() < 0.999


def test_probabilities_far_out_are_not_lost():
    found = grade_probabilities(np.array([-800.0, 800.0]), np.array([-1.0, 1.0]))
    assert np.isfinite(np.log(found)).all()
    assert_allclose(found.sum(axis=1), 1)


def test_kappa_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    for _ in range(10):
        one, other = rng.integers(0, 5, (2, 40))
        expected = cohen_kappa_score(one, other, weights="quadratic", labels=np.arange(5))
        assert quadratic_kappa(one, other) == pytest.approx(expected)
    assert np.isnan(quadratic_kappa(np.ones(4), np.ones(4)))
