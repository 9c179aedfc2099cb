"""Values of bags: what the regressor learns, left-out errors, intervals, instances, bad values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

import gmil
from gmil import Bags, WeightedGMILRegressor
from gmil.targets.attention import AttentionModel
from gmil.targets.attention_fitting import fit_attention
from gmil.targets.losses import Squared

REGRESSORS = [
    WeightedGMILRegressor(random_state=0, scales=("standard",)),
    gmil.BagRegressor(),
    gmil.SingleInstanceRegressor(),
    gmil.SingleInstanceRegressor(aggregate="median"),
    gmil.PrimeInstanceRegressor(random_state=0),
    gmil.ClusterRegressor(random_state=0),
]
every_regressor = pytest.mark.parametrize("regressor", REGRESSORS, ids=lambda model: str(model)[:40])


def quick(**others):
    return WeightedGMILRegressor(random_state=0, scales=("standard",), **others)


@pytest.fixture(scope="module")
def made():
    return gmil.make_bags(150, target="regression", n_features=8, witness_rate=0.1, bag_size=(8, 12), random_state=3)


@pytest.fixture(scope="module")
def fitted(made):
    return quick().fit(made.bags[:110], made.y[:110])


# ------------------------------------------------------------------ the regressor


def test_models_of_instances_find_what_a_tenth_of_the_instances_tells(made, fitted):
    new, y = made.bags[110:], made.y[110:]
    others = [quick(witness_model=False), gmil.BagRegressor(), gmil.SingleInstanceRegressor()]
    best = max(model.fit(made.bags[:110], made.y[:110]).score(new, y) for model in others)
    assert fitted.score(new, y) > best + 0.05
    assert fitted.instance_models_["base"][0] < 0.8


def test_left_out_predictions_are_those_of_fits_without_the_bag(made):
    bags, y = made.bags[:40], made.y[:40]
    model = quick(witness_model=False, views=("moments",)).fit(bags, y)
    assert_allclose(model.left_out_errors_, y - model.left_out_predictions_)
    resubstituted = np.mean((y - model.predict(bags)) ** 2)
    assert np.mean(model.left_out_errors_**2) > resubstituted


def test_values_may_be_in_any_unit(made, fitted):
    model = quick().fit(made.bags[:110], 1e6 * made.y[:110] - 5e7)
    assert_allclose((model.predict(made.bags) + 5e7) / 1e6, fitted.predict(made.bags), atol=1e-2)
    assert_allclose(model.score_instances(made.bags) / 1e6, fitted.score_instances(made.bags), atol=1e-2)


def test_several_targets_are_predicted_as_each_alone(made, fitted):
    y = np.column_stack([made.y, -2 * made.y + 1])
    model = quick().fit(made.bags[:110], y[:110])
    found = model.predict(made.bags)
    assert found.shape == (150, 2)
    assert_allclose(found[:, 0], fitted.predict(made.bags), atol=1e-2)
    assert model.predict_interval(made.bags).shape == (150, 2, 2)
    assert model.score_instances(made.bags).shape == (made.bags.n_instances, 2)
    assert str(model.explain(made.bags[0], target=1)).startswith("value ")
    with pytest.raises(gmil.BagValidationError, match="from 0 to 1, got 2"):
        model.explain(made.bags[0], target=2)


def test_groups_are_left_out_together(made):
    bags, y = made.bags[:40], made.y[:40]
    twice = Bags.from_list([*bags, *bags])
    groups = np.tile(np.arange(40), 2)
    leaking = quick(witness_model=False).fit(twice, np.tile(y, 2))
    honest = quick(witness_model=False).fit(twice, np.tile(y, 2), groups=groups)
    assert np.mean(leaking.left_out_errors_**2) < 0.1 * np.mean(honest.left_out_errors_**2)


def test_bags_in_blocks_are_learnt_from_as_bags_in_memory(made, fitted, tmp_path):
    gmil.write(tmp_path / "bags.parquet", made.bags[:110], made.y[:110])
    lazy, y = gmil.scan(tmp_path / "bags.parquet")
    assert_allclose(y, made.y[:110])
    model = quick().fit(lazy, y)
    assert_allclose(model.predict(lazy), model.predict(lazy.load()), atol=1e-5)
    assert np.corrcoef(model.predict(made.bags[110:]), fitted.predict(made.bags[110:]))[0, 1] > 0.9
    sampled = quick(sample_size=400).fit(lazy, y)
    assert sampled.score(made.bags[110:], made.y[110:]) > 0.3
    assert_allclose(sampled.score_instances(lazy), sampled.score_instances(lazy.load()), atol=1e-5)


def test_more_bags_than_are_compared(made):
    model = quick(max_bags=60, n_points=30).fit(made.bags[:110], made.y[:110])
    assert np.isnan(model.left_out_predictions_).sum() == 50
    assert model.score(made.bags[110:], made.y[110:]) > 0.3
    assert np.isfinite(model.predict_interval(made.bags)).all()


def test_the_mean_rank_is_a_view_in_memory_in_blocks_and_of_instances(made, tmp_path):
    # Values that the ranks of one feature tell, whatever its units.
    middle = np.add.reduceat(np.tanh(made.bags.instances[:, 0]), made.bags.offsets[:-1]) / made.bags.sizes
    options = {"scales": ("standard", "rank"), "witness_model": False, "random_state": 0}
    model = WeightedGMILRegressor(**options).fit(made.bags[:110], middle[:110])
    taken = {(entry["scale"], entry["kind"]) for entry in model.view_weights_ if entry["weights"][0] > 0}
    assert ("rank", "mean") in taken
    bag = made.bags[120]
    without = model.predict([np.delete(bag, i, axis=0) for i in range(len(bag))])
    assert_allclose(model.score_instances([bag]), model.predict([bag]) - without, atol=1e-6)
    gmil.write(tmp_path / "bags.parquet", made.bags, made.y)
    assert_allclose(model.predict(gmil.scan(tmp_path / "bags.parquet")[0]), model.predict(made.bags), atol=1e-5)
    others = WeightedGMILRegressor(**options, views=("range",)).fit(made.bags[:110], middle[:110]).view_weights_
    assert {entry["kind"] for entry in others} == {"range"}


def bags_of_copies(values_of, n_features, n_bags=260):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n_bags, n_features))
    owners = np.repeat(np.arange(n_bags), rng.integers(2, 5, n_bags))
    return Bags.from_ids(rows[owners] + 0.2 * rng.normal(size=(len(owners), n_features)), owners), values_of(rows)


def test_few_of_many_features_tell():
    # A product of two of 20 features: beside the other 18 all bags look alike, unless features count as they tell.
    bags, y = bags_of_copies(lambda rows: rows[:, 0] * rows[:, 1], 20)
    model = quick(witness_model=False).fit(bags[:160], y[:160])
    assert model.score(bags[160:], y[160:]) > 0.7
    left_out = 1 - np.mean(model.left_out_errors_**2) / y[:160].var()
    assert abs(left_out - model.score(bags[160:], y[160:])) < 0.15  # relevance was found without the bag
    relevant = [view for view in model.views_ if view["kind"] == "mean" and np.ptp(np.log(view["divisor"])) > 1]
    assert relevant
    assert all(set(np.argsort(view["divisor"])[:2]) == {0, 1} for view in relevant)


def test_groups_are_left_out_where_relevance_is_found(made):
    # Noise as value, each bag there twice: who sees the other half of a pair knows the value.
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(60, 6)), rng.normal(size=60)
    bags = Bags.from_list([row + 0.01 * rng.normal(size=(2, 6)) for row in np.repeat(rows, 2, axis=0)])
    model = quick(witness_model=False).fit(bags, np.repeat(y, 2), groups=np.repeat(np.arange(60), 2))
    assert np.corrcoef(model.left_out_predictions_, np.repeat(y, 2))[0, 1] < 0.4


def test_values_go_on_beyond_the_training_bags():
    bags, y = bags_of_copies(lambda rows: rows @ [3.0, 1.0], 2)
    order = np.argsort(y)
    model = quick().fit(bags[order[:-20]], y[order[:-20]])
    assert model.predict(bags[order[-20:]]).max() > y[order[-21]] + 0.5


def test_sparse_bags(made):
    sparse = Bags(sp.csr_array(made.bags.instances), made.bags.offsets)
    model = WeightedGMILRegressor(random_state=0).fit(sparse[:110], made.y[:110])
    assert model.score(sparse[110:], made.y[110:]) > 0.2
    assert_allclose(model.predict(made.bags), model.predict(sparse), atol=1e-6)


def test_scikit_learn_scores_it(made):
    assert cross_val_score(quick(), made.bags, made.y, cv=3, scoring="r2").mean() > 0.4


def test_model_files(made, fitted, tmp_path):
    fitted.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    for method in ("predict", "score_instances", "predict_interval"):
        assert_array_equal(getattr(loaded, method)(made.bags), getattr(fitted, method)(made.bags))


# ------------------------------------------------------------------ instances


def test_effects_are_differences_of_predictions(made, fitted):
    bag = made.bags[120]
    whole = fitted.predict([bag])[0]
    without = fitted.predict([np.delete(bag, i, axis=0) for i in range(len(bag))])
    assert_allclose(fitted.score_instances([bag]), whole - without, atol=1e-6)
    assert_allclose(fitted.score_instances([bag], kind="alone"), fitted.predict([row[None] for row in bag]))
    with pytest.raises(gmil.BagValidationError, match="'effect', 'alone'"):
        fitted.score_instances([bag], kind="share")


def test_explanations_name_witnesses_of_high_and_low_values(made, fitted):
    new = range(110, 150)
    explained = {i: fitted.explain(made.bags[i]) for i in new}
    hits = []
    for i in new:
        is_witness = made.bags.split(made.instance_y)[i] == 1
        first = explained[i].raised_by if explained[i].value > explained[i].typical else explained[i].lowered_by
        if abs(made.y[i]) > 1 and first:
            hits.append(is_witness[first[0].instance])
    assert np.mean(hits) > 0.8
    shown = str(explained[110])
    assert "typical" in shown
    assert "raised by" in shown or "lowered by" in shown


def test_attention_by_hand():
    # Instances with a large first feature count alone; their second is the value.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 2))
    rows[::6] = np.column_stack([np.full(200, 4.0), rng.normal(size=200)])
    offsets = np.arange(0, 1201, 6)
    fit = fit_attention(rows, offsets, Squared(rows[::6, 1], np.ones(200), 0.05))
    assert fit.coefficients[0, 0] > 0.5
    assert 0.5 < fit.coefficients[1, 1] < 2
    assert fit.curvature == 0
    gates, values = (rows @ fit.coefficients).reshape(200, 6, 2).transpose(2, 0, 1)
    weights = np.exp(gates) / np.exp(gates).sum(axis=1, keepdims=True)
    found = (weights * values).sum(axis=1) + fit.intercept
    assert_allclose(fit.values(rows, offsets), found)
    assert np.corrcoef(found, rows[::6, 1])[0, 1] > 0.97


def test_gates_bend_where_those_that_tell_are_spread_along_the_values():
    # Of six instances the one with the largest second feature, up or down, tells: no linear gate can find it.
    rng = np.random.default_rng(0)
    rows = rng.normal(scale=0.3, size=(1800, 2))
    rows[::6, 1] = rng.normal(size=300)
    offsets, loss = np.arange(0, 1801, 6), Squared(rows[::6, 1], np.ones(300), 0.05)
    straight = fit_attention(rows, offsets, loss)
    bent = fit_attention(rows, offsets, loss, straight)
    assert bent.curvature > 0.5
    errors = [np.mean((fit.values(rows, offsets) - rows[::6, 1]) ** 2) for fit in (straight, bent)]
    assert errors[1] < errors[0] / 2


def test_bent_gates_are_kept_where_bags_that_were_left_out_say_so(made, fitted):
    linear = fitted.instance_models_["scorers"][0]
    assert linear["kernel"] == "linear"
    assert linear["curvatures"].shape == (1,)
    bent = gmil.make_bags(200, target="regression", n_features=3, witness_rate=0.1, bag_size=(8, 12), random_state=8)
    assert quick().fit(bent.bags, bent.y).instance_models_["scorers"][0]["curvatures"][0] > 0.1
    # The largest value of a linear function: one gate fits, and bending it would not.
    rng = np.random.default_rng(1)
    values = rng.normal(size=(120, 8, 6))
    model = quick().fit(values, values[:, :, 0].max(axis=1))
    assert model.instance_models_["scorers"][0]["curvatures"][0] == 0


def test_models_of_earlier_versions_have_straight_gates(made, fitted, tmp_path):
    plain = fitted.instance_models_
    older = {**plain, "scorers": [{k: v for k, v in one.items() if k != "curvatures"} for one in plain["scorers"]]}
    straight = {**plain, "scorers": [{**one, "curvatures": np.zeros(1)} for one in plain["scorers"]]}
    models = [AttentionModel.from_plain(found) for found in (older, straight)]
    columns = np.random.default_rng(0).normal(size=(5, made.bags.n_features))
    assert_array_equal(*(model.scorers[0].scores_of(columns) for model in models))


# ------------------------------------------------------------------ intervals


def test_intervals_are_as_wide_as_errors_of_bags_that_were_left_out():
    made = gmil.make_bags(40, target="regression", n_features=4, random_state=5)
    model = quick().fit(made.bags, np.column_stack([made.y, -2 * made.y]))
    model.left_out_errors_ = np.array([[3.0, 30.0], [-1.0, 10.0], [2.0, -20.0], [-4.0, 40.0], [np.nan, np.nan]])
    for coverage, widths in ((0.8, [4, 40]), (0.4, [2, 20]), (0.9, [np.inf, np.inf])):
        low, high = np.moveaxis(model.predict_interval(made.bags[:3], coverage=coverage), -1, 0)
        np.testing.assert_allclose(high - low, [[2 * width for width in widths]] * 3)
    with pytest.raises(gmil.BagValidationError, match="above 0 and below 1"):
        model.predict_interval(made.bags[:3], coverage=1.0)


def test_intervals_hold_new_values_as_often_as_promised():
    made = gmil.make_bags(600, target="regression", n_features=4, random_state=5)
    model = quick().fit(made.bags[:200], made.y[:200])
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(made.bags[200:], coverage=coverage).T
        held = np.mean((low <= made.y[200:]) & (made.y[200:] <= high))
        assert abs(held - coverage) < 0.07


# ------------------------------------------------------------------ all regressors


@every_regressor
def test_values_that_all_instances_tell_are_predicted(regressor):
    made = gmil.make_bags(120, target="regression", n_features=4, witness_rate=1.0, random_state=1)
    assert regressor.fit(made.bags[:80], made.y[:80]).score(made.bags[80:], made.y[80:]) > 0.6


@every_regressor
def test_instances_have_scores(regressor, made, tmp_path):
    model = regressor.fit(made.bags[:60], made.y[:60])
    scores = model.score_instances(made.bags[:10])
    assert scores.shape == (made.bags[:10].n_instances,)
    assert np.isfinite(scores).all()
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").predict(made.bags), model.predict(made.bags))


@every_regressor
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan, 2.0, 3.0], "NaN: the target of bag 1 is missing"),
        ([1.0, 2.0, np.inf, 3.0], "infinity: the target of bag 2 is infinite"),
        ([2.5] * 4, "^y is 2.5 for every bag, so there is nothing to learn"),
        (["a", "b", "c", "d"], "predicts numbers, but y holds texts such as 'a'"),
        ([1.0, 2.0], "y has 2 labels, but X has 4 bags"),
        (np.zeros((4, 2, 2)), "^y must hold a number for every bag"),
        ([1e200, 2e200, 3e200, 4e200], "squares are too large or too small for numbers, up to 4e"),
        ([1e-200, 2e-200, 3e-200, 4e-200], "squares are too large or too small for numbers, up to 4e-200"),
        (None, "requires y to be passed"),
    ],
)
def test_bad_values_are_refused_in_a_sentence(regressor, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        regressor.fit([np.ones((2, 3)) * i for i in range(4)], y)
    assert str(caught.value).count("\n") == 0


def test_values_may_come_as_a_series(made):
    series = pd.Series(made.y[:60], dtype=object)
    assert_array_equal(
        gmil.BagRegressor().fit(made.bags[:60], series).predict(made.bags),
        gmil.BagRegressor().fit(made.bags[:60], made.y[:60]).predict(made.bags),
    )


def test_the_prime_instance_is_found():
    rng = np.random.default_rng(1)
    values = rng.normal(size=60)
    bags = []
    for value in values:
        bag = rng.normal([5, 0], size=(3, 2))
        bag[rng.integers(3)] = [-5, value]
        bags.append(bag)
    model = gmil.PrimeInstanceRegressor(0.01, scale=None, n_init=10, random_state=0).fit(bags, values)
    scaled = np.concatenate(bags) @ model.coef_ + model.intercept_
    errors = np.abs(scaled.reshape(60, 3) - values[:, None]).min(axis=1)
    assert errors.mean() < 0.2


def test_the_best_cluster_tells_the_value():
    rng = np.random.default_rng(2)
    values = rng.normal(size=80)
    bags = [np.vstack([rng.normal([20, 0], size=(5, 2)), [[-20, value]]]) for value in values]
    model = gmil.ClusterRegressor(2, scale=None, random_state=0).fit(bags[:60], values[:60])
    assert model.cluster_centers_[model.chosen_[0], 0] < 0
    assert model.score(bags[60:], values[60:]) > 0.99


@pytest.mark.parametrize("target", ["regression", "survival"])
def test_pytorch_finds_the_same(target):
    pytest.importorskip("torch")
    made = gmil.make_bags(60, target=target, n_features=3, random_state=0)
    cls = WeightedGMILRegressor if target == "regression" else gmil.WeightedGMILSurvival
    one, other = (
        cls(random_state=0, scales=("standard",), backend=backend).fit(made.bags[:40], made.y[:40])
        for backend in ("auto", "torch:cpu")
    )
    assert_allclose(other.predict(made.bags), one.predict(made.bags), atol=0.05)
