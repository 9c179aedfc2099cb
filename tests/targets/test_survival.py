"""Times to an event: risks, curves, instances, files, bad outcomes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

import gmil
from gmil import WeightedGMILSurvival
from gmil.target_checks import Outcomes, check_outcomes, seen_events
from gmil.targets.cox import fit_cox
from gmil.targets.hazards import cumulative_hazard, hazard_at, martingale_residuals, risk_slope
from gmil.targets.losses import Cox


@pytest.fixture(scope="module")
def made():
    return gmil.make_bags(340, target="survival", n_features=8, witness_rate=0.1, bag_size=(8, 12), random_state=1)


@pytest.fixture(scope="module")
def fitted(made):
    return WeightedGMILSurvival(random_state=0, scales=("standard",)).fit(made.bags[:140], made.y[:140])


def test_risks_of_few_instances_are_found(made, fitted):
    means = gmil.BagCox(random_state=0).fit(made.bags[:140], made.y[:140])
    found, reference = (model.score(made.bags[140:], made.y[140:]) for model in (fitted, means))
    assert found > reference + 0.03
    assert found == pytest.approx(gmil.concordance(made.y[140:], fitted.predict(made.bags[140:])))
    assert found > gmil.concordance(made.y[140:], made.risk[140:]) - 0.05


def test_curves_fall_from_one_and_order_as_risks(made, fitted):
    times = np.array([0.0, 0.2, 0.5, 1.0, 50.0])
    curves = fitted.predict_survival_function(made.bags[:30], times)
    assert curves.shape == (30, 5)
    assert_array_equal(curves[:, 0], 1)
    assert (np.diff(curves, axis=1) <= 0).all()
    order = np.argsort(fitted.predict(made.bags[:30]))
    assert (np.diff(curves[order, 2]) <= 0).all()
    assert fitted.predict_survival_function(made.bags[:2]).shape == (2, len(fitted.unique_times_))
    hazard = fitted.predict_cumulative_hazard_function(made.bags[:30], times)
    assert_allclose(np.exp(-hazard), curves)


def test_curves_are_as_high_as_the_share_that_survives(made, fitted):
    new, y = made.bags[140:], made.y[140:]
    for time in (0.3, 0.8):
        predicted = fitted.predict_survival_function(new, [time]).mean()
        assert predicted == pytest.approx(float(gmil.kaplan_meier(y).at(time)), abs=0.15)


def test_curves_beat_those_of_nobody_in_particular(made, fitted):
    training, y = made.y[:140], made.y[140:]
    times = np.quantile(y["time"][y["event"]], np.linspace(0.1, 0.8, 20))
    own = fitted.predict_survival_function(made.bags[140:], times)
    marginal = np.tile(gmil.kaplan_meier(training).at(times), (200, 1))
    assert gmil.integrated_brier_score(training, y, own, times) < gmil.integrated_brier_score(
        training, y, marginal, times
    )


def test_instances_that_raise_the_risk_are_the_riskiest(made, fitted):
    scores = made.bags.split(fitted.score_instances(made.bags))
    risks = made.bags.split(made.instance_risk)
    agree = [own.argmax() == risk.argmax() for own, risk in zip(scores, risks, strict=True)]
    assert np.mean(agree) > 0.7
    explained = fitted.explain(made.bags[3])
    assert explained.value == pytest.approx(fitted.predict(made.bags[[3]])[0])
    bag = made.bags[5]
    without = fitted.predict([np.delete(bag, i, axis=0) for i in range(len(bag))])
    assert_allclose(fitted.score_instances([bag]), fitted.predict([bag])[0] - without, atol=1e-6)


@pytest.mark.parametrize("model", [WeightedGMILSurvival(random_state=0, scales=("l2",)), gmil.BagCox(random_state=0)])
def test_model_files(model, made, tmp_path):
    model.fit(made.bags[:60], made.y[:60])
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    assert_array_equal(loaded.predict(made.bags), model.predict(made.bags))
    assert_array_equal(loaded.predict_survival_function(made.bags), model.predict_survival_function(made.bags))


@pytest.mark.parametrize("model", [WeightedGMILSurvival(scales=("l2",)), gmil.BagCox()])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, 1.0], [0, np.nan], [1, 2.0]], "NaN: the target of bag 1 is missing"),
        ([[1, 1.0], [0, 1.0], [1, -2.0]], "must not be negative, but that of bag 2 is -2"),
        ([[0, 1.0], [0, 2.0], [0, 2.0]], "No event was seen in any bag"),
        ([1.0, 2.0, 3.0], "needs an event and a time for every bag"),
        ([[1, 1.0]], "y has 1 label, but X has 3 bags"),
        (None, "requires y to be passed"),
    ],
)
def test_bad_outcomes_are_refused_in_a_sentence(model, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        model.fit([np.ones((2, 3)) * i for i in range(3)], y)
    assert "\n" not in str(caught.value)


def test_groups_reach_the_inner_folds(made):
    groups = np.arange(60) // 2
    for model in (WeightedGMILSurvival(random_state=0, scales=("standard",)), gmil.BagCox(random_state=0)):
        assert model.fit(made.bags[:60], made.y[:60], groups=groups).score(made.bags[:60], made.y[:60]) > 0.5
        with pytest.raises(gmil.BagValidationError, match="groups"):
            model.fit(made.bags[:60], made.y[:60], groups=groups[:10])


# ------------------------------------------------------------------ numerics


def test_the_partial_likelihood_by_hand():
    # Events at 1 and 3, censored at 2: the first of three at risk, the last alone.
    loss = Cox(np.array([[1, 1.0], [0, 2.0], [1, 3.0]]), np.ones(3))
    scores = np.array([0.5, -1.0, 2.0])
    assert loss(scores)[0] == pytest.approx(np.log(np.exp(scores).sum()) - 0.5)


@pytest.mark.parametrize("ties", [False, True])
def test_the_gradient_is_that_of_the_partial_likelihood(ties):
    rng = np.random.default_rng(0)
    time = rng.integers(1, 6, 20).astype(float) if ties else rng.exponential(size=20)
    loss = Cox(np.column_stack([rng.random(20) < 0.7, time]), rng.uniform(0.5, 2, 20))
    scores = rng.normal(size=20)
    assert_allclose(loss(scores)[1], approx_fprime(scores, lambda s: loss(s)[0], 1e-7), atol=1e-5)


def test_a_risk_twice_as_large_halves_the_time():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 1))
    outcomes = Outcomes(np.ones(2000, dtype=bool), rng.exponential(size=2000) * np.exp(-0.7 * x[:, 0]))
    assert fit_cox(x, outcomes, 1e-6)[0] == pytest.approx(0.7, abs=0.06)
    assert risk_slope(outcomes, x[:, 0]) == pytest.approx(0.7, abs=0.06)
    assert risk_slope(outcomes, -x[:, 0]) == pytest.approx(0, abs=1e-3)
    assert risk_slope(outcomes, np.zeros(2000)) == 0
    times, hazard = cumulative_hazard(outcomes, 0.7 * x[:, 0])
    assert hazard_at(times, hazard, 1.0) == pytest.approx(1, abs=0.1)  # the baseline hazard is one
    assert hazard_at(times, hazard, 0.0) == 0


def test_residuals_are_events_less_expected_ones():
    residuals = martingale_residuals(check_outcomes([[1, 1.0], [0, 2.0], [1, 3.0]]))
    assert_allclose(residuals, [1 - 1 / 3, -1 / 3, 1 - 1 / 3 - 1])
    assert residuals.sum() == pytest.approx(0)


def test_lifelines_finds_the_same_coefficients():
    lifelines = pytest.importorskip("lifelines")
    pd = pytest.importorskip("pandas")
    made = gmil.make_bags(120, target="survival", n_features=3, random_state=2)
    vectors = np.stack([bag.mean(axis=0) for bag in made.bags])
    frame = pd.DataFrame(vectors).assign(event=made.y["event"], time=made.y["time"])
    expected = lifelines.CoxPHFitter(penalizer=0).fit(frame, "time", "event").params_.to_numpy()
    assert_allclose(fit_cox(vectors, check_outcomes(made.y), 1e-9), expected, atol=1e-3)


@pytest.mark.parametrize("seen", [["true", "false"], ["yes", "no"], ["1", "0"], [1.0, 0.0], [True, False]])
def test_events_may_be_written_in_several_ways(seen):
    assert_array_equal(seen_events(np.array(seen, dtype=object)), [True, False])


@pytest.mark.parametrize("wrong", ["dead", 2, None, pd.NA, np.nan])
def test_what_is_no_event_is_refused_in_a_sentence(wrong):
    frame = pd.DataFrame({"event": np.array([1, wrong], dtype=object), "time": [1.0, 2.0]})
    with pytest.raises(gmil.BagValidationError, match=r"^Events must be 0 and 1, or true and false, got "):
        check_outcomes(frame)
