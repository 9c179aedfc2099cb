"""`Impute`: missing values, filled with medians of training instances or dropped with their instances."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline as sklearn_pipeline
from sklearn.preprocessing import StandardScaler
from tests.conftest import target_for

import gmil
from gmil import GMIL, Bags, BagValidationError, Impute, PerInstance, WeightedGMIL

NAN = np.nan


@pytest.fixture
def bags():
    """Return three bags; the second feature is never known."""
    instances = [[1.0, NAN, 10.0], [NAN, NAN, 20.0], [3.0, NAN, NAN], [5.0, NAN, 40.0], [7.0, NAN, 50.0]]
    info = {"row": list(range(5))}
    return Bags(np.array(instances), [0, 2, 4, 5], ["a", "b", "c"], ["u", "v", "w"], info)


@pytest.fixture
def known(bags):
    """Return the same bags without the feature that is never known."""
    return bags.with_instances(bags.instances[:, [0, 2]], ["u", "w"])


@pytest.fixture
def gappy(gaussian_bags):
    """Return bags of two classes with a gap in every fourth instance, but never in the first of a bag."""
    bags, y = gaussian_bags(n_bags=30)
    holes = bags.instances.copy()
    rows = np.setdiff1d(np.arange(0, bags.n_instances, 4), bags.offsets)
    holes[rows, rows % 3] = NAN
    return bags.with_instances(holes), y


def fill_slowly(training, new):
    """Return rows with the median of the training values of their column in every gap."""
    filled = [list(row) for row in new]
    for j in range(training.shape[1]):
        values = sorted(value for value in training[:, j] if value == value)
        middle = len(values) // 2
        median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
        for row in filled:
            row[j] = median if row[j] != row[j] else row[j]
    return np.array(filled)


# ------------------------------------------------------------------ medians


def test_gaps_take_the_median_of_the_training_instances(known):
    filled = Impute().fit_transform(known)
    assert_array_equal(filled.instances, [[1, 10], [4, 20], [3, 30], [5, 40], [7, 50]])
    assert filled.bag_ids.tolist() == ["a", "b", "c"]
    assert filled.feature_names == ("u", "w")
    assert filled.instance_info.column("row").to_pylist() == [0, 1, 2, 3, 4]


@settings(max_examples=50)
@given(st.lists(st.lists(st.sampled_from([NAN, -1.0, 0.0, 2.0, 5.5]), min_size=3, max_size=3), min_size=1, max_size=8))
def test_medians_are_those_of_a_slow_loop_in_every_layout(rows):
    training = np.array([[1.0, 2.0, 3.0], *rows])
    new = np.array([[NAN, NAN, NAN], *rows])
    expected = fill_slowly(training, new)
    for dtype in (np.float64, np.float32):
        for layout in (np.asarray, sp.csr_array):
            model = Impute().fit(Bags(layout(training.astype(dtype)), [0, len(training)]))
            found = model.transform(Bags(layout(new.astype(dtype)), [0, len(new)])).instances
            assert found.dtype == dtype
            assert_array_equal(found.toarray() if sp.issparse(found) else found, expected.astype(dtype))


def test_gaps_first_met_in_new_bags_take_the_training_medians():
    model = Impute().fit([[[1.0, 2.0], [3.0, 6.0]]])
    assert_array_equal(model.transform([[[NAN, NAN], [9.0, NAN]]]).instances, [[2, 4], [9, 4]])


def test_bags_without_gaps_come_back_as_they_are(gaussian_bags):
    bags, _ = gaussian_bags()
    for strategy in ("median", "drop"):
        assert_array_equal(Impute(strategy).fit_transform(bags).instances, bags.instances)


def test_tables_come_back_as_tables():
    found = Impute().fit_transform(np.array([[1.0, NAN], [3.0, 4.0]]))
    assert isinstance(found, np.ndarray)
    assert_array_equal(found, [[1, 4], [3, 4]])


# ------------------------------------------------------------------ features without values


def test_a_feature_that_is_empty_in_training_is_left_out_with_a_warning(bags, known):
    with pytest.warns(UserWarning, match=r"Left out, without a value in training: column 1 \(v\)\."):
        model = Impute().fit(bags)
    assert_array_equal(model.transform(bags).instances, Impute().fit_transform(known).instances)
    later = bags.with_instances(np.ones((5, 3)), ["u", "v", "w"])
    assert model.transform(later).feature_names == ("u", "w")
    assert list(model.get_feature_names_out()) == ["u", "w"]


@pytest.mark.filterwarnings("ignore:Left out")
def test_a_feature_that_is_left_out_drops_no_instance(bags):
    assert Impute("drop").fit_transform(bags).sizes.tolist() == [1, 1, 1]


def test_nothing_but_gaps_is_refused():
    with pytest.raises(BagValidationError, match="All 2 features are empty"):
        Impute().fit([[[NAN, NAN]]])


# ------------------------------------------------------------------ indicators


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.filterwarnings("ignore:Left out")
def test_indicators_tell_of_features_with_gaps_in_training(bags, layout):
    training = Bags(layout(np.hstack([bags.instances, np.ones((5, 1))])), bags.offsets, None, ["u", "v", "w", "x"])
    model = Impute(indicator=True).fit(training)
    found = model.transform(training)
    assert found.feature_names == ("u", "w", "x", "missingindicator_u", "missingindicator_w")
    rows = found.instances.toarray() if sp.issparse(found.instances) else found.instances
    assert_array_equal(rows[:, 3:], [[0, 0], [1, 0], [0, 1], [0, 0], [0, 0]])
    later = model.transform(Bags(layout(np.full((1, 4), NAN)), [0, 1])).instances
    assert_array_equal(later.toarray() if sp.issparse(later) else later, [[4, 30, 1, 1, 1]])


def test_indicators_have_nothing_to_tell_where_instances_are_dropped():
    with pytest.raises(BagValidationError, match="indicator must be False with strategy='drop'"):
        Impute("drop", indicator=True).fit([[[1.0]]])


# ------------------------------------------------------------------ dropping


def test_instances_with_a_gap_are_dropped(known):
    model = Impute("drop").fit(known)
    found = model.transform(known)
    assert_array_equal(found.instances, [[1, 10], [5, 40], [7, 50]])
    assert found.bag_ids.tolist() == ["a", "b", "c"]
    assert found.instance_info.column("row").to_pylist() == [0, 3, 4]
    assert_array_equal(model.kept_instances(known), [True, False, False, True, True])
    assert_array_equal(Impute().fit(known).kept_instances(known), [True] * 5)


def test_a_bag_that_loses_all_its_instances_is_named(known):
    model = Impute("drop").fit(known)
    empty = known.with_instances(np.array([[1.0, NAN], [NAN, 2.0], [3.0, 4.0], [5.0, NAN], [NAN, 7.0]]), ["u", "w"])
    with pytest.raises(BagValidationError, match=r"no others: bag 0 \(a\), bag 2 \(c\)\. Fill the gaps with gmil"):
        model.transform(empty)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_no_gap(value):
    with pytest.raises(BagValidationError, match=r"infinity: in bag 0, instance 1, column 0 \(1 such value in all\)"):
        Impute().fit([[[NAN], [value]]])
    with pytest.raises(BagValidationError, match="infinity: in bag 1"):
        Impute().fit(np.array([[1.0], [value]]))


def test_other_features_and_no_fit_are_refused(known):
    with pytest.raises(NotFittedError):
        Impute().transform(known)
    with pytest.raises(BagValidationError, match="X has 1 features, but Impute is expecting 2"):
        Impute().fit(known).transform([[[1.0]]])
    with pytest.raises(ValueError, match="'strategy' parameter of Impute must be a str among"):
        Impute("mean").fit(known)


# ------------------------------------------------------------------ in pipelines


@pytest.mark.parametrize(
    "last", [GMIL(random_state=0), WeightedGMIL(20, random_state=0), gmil.SingleInstance()], ids=str
)
def test_dropped_instances_have_no_score(gappy, last):
    bags, y = gappy
    model = gmil.make_pipeline(Impute("drop"), PerInstance(StandardScaler()), last).fit(bags, y)
    scores = model.score_instances(bags)
    assert_array_equal(np.isnan(scores), np.isnan(bags.instances).any(axis=1))
    inside = model[:-1].transform(bags)
    assert_array_equal(scores[~np.isnan(scores)], model[-1].score_instances(inside))


def test_dropped_instances_have_no_score_for_any_class_and_in_inner_pipelines(gappy):
    bags, _ = gappy
    y = np.arange(30) % 3
    inner = gmil.make_pipeline("passthrough", Impute("drop"))
    model = sklearn_pipeline(PerInstance(StandardScaler()), inner, GMIL(random_state=0)).fit(bags, y)
    scores = gmil.Pipeline(model.steps).score_instances(bags)
    assert scores.shape == (bags.n_instances, 3)
    assert_array_equal(np.isnan(scores).all(axis=1), np.isnan(bags.instances).any(axis=1))


def test_explanations_number_instances_as_they_were_given(gappy):
    bags, y = gappy
    model = gmil.make_pipeline(Impute("drop"), GMIL(random_state=0)).fit(bags, y)
    for number in range(5):
        bag = bags[number]
        complete = np.flatnonzero(~np.isnan(bag).any(axis=1))
        alone = model[-1].explain(bag[complete])
        found = model.explain(bag)
        assert found.positive_instance == complete[alone.positive_instance]
        assert found.negative_instance == complete[alone.negative_instance]
        assert found.margin == alone.margin


@pytest.mark.parametrize("step", [Impute(), Impute("drop"), Impute(indicator=True)], ids=str)
def test_pipelines_with_it_are_saved_and_loaded(gappy, step, tmp_path):
    bags, y = gappy
    model = gmil.make_pipeline(step, PerInstance(), WeightedGMIL(20, random_state=0)).fit(bags, y)
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))
    assert_array_equal(loaded.score_instances(bags), model.score_instances(bags))


def test_without_gaps_a_pipeline_decides_as_its_classifier(gaussian_bags):
    bags, y = gaussian_bags()
    alone = GMIL(random_state=0).fit(bags, y).decision_function(bags)
    for strategy in ("median", "drop"):
        model = gmil.make_pipeline(Impute(strategy), GMIL(random_state=0)).fit(bags, y)
        assert_array_equal(model.decision_function(bags), alone)


def test_medians_are_learnt_from_training_folds_alone(gappy):
    bags, y = gappy
    seen = []

    class Watching(GMIL):
        def fit(self, X, y):
            seen.append(X.instances.copy())
            return super().fit(X, y)

    folds = [(np.arange(10, 30), np.arange(10)), (np.arange(10), np.arange(10, 30))]
    gmil.cross_validate(gmil.make_pipeline(Impute(), Watching(random_state=0)), bags, y, cv=folds)
    for training, found in zip((bags[10:], bags[:10]), seen, strict=True):
        assert_array_equal(found, fill_slowly(training.instances, training.instances))


@pytest.mark.parametrize(("attribute", "value"), [("medians_", np.inf), ("indicated_", None)])
def test_damaged_files_are_refused(gappy, attribute, value, tmp_path, monkeypatch):
    model = Impute().fit(gappy[0])
    damaged = np.full(3, value) if value is not None else np.zeros(2, dtype=bool)
    setattr(model, attribute, damaged)
    with monkeypatch.context() as forged:  # what gmil itself would not write
        forged.setattr("gmil.io.model_files.values.check_model", lambda _: None)
        forged.setattr("gmil.io.model_files.probe", lambda _: "")
        model.save(tmp_path / "model.gmil")
    with pytest.raises(gmil.ModelFileError, match=attribute):
        gmil.load(tmp_path / "model.gmil")


def test_every_classifier_names_it_where_values_are_missing(gappy):
    bags, y = gappy
    with warnings.catch_warnings(action="ignore"):
        for name, cls in gmil.all_estimators():
            if not hasattr(cls, "predict"):
                continue
            with pytest.raises(BagValidationError, match=r"NaN: in bag 0, .*gmil\.Impute"):
                cls().fit(bags, target_for(cls, y))
            with pytest.raises(BagValidationError, match=r"NaN: in bag 1, .*gmil\.Impute"):
                cls().fit(np.array([[1.0], [NAN]]), target_for(cls, [0, 1]))
            assert name
