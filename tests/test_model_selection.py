"""Cross-validation: folds, seeds, measures, and that nothing of a test fold reaches training."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline

import gmil
from gmil import GMIL, Bags, BagValidationError, PerInstance, cross_validate
from gmil.model_selection.folds import estimator_seed, fold_numbers, with_seed
from gmil.scale import LazyBags


@pytest.fixture(scope="module")
def data():
    return gmil.make_bags(60, n_features=3, random_state=2, return_X_y=True)


def by_hand(model, bags, y, cv, seed, repeat=0):
    """Return predictions of a plain loop over scikit-learn's folds, seeded as the documentation says."""
    predictions = np.empty_like(y)
    splitter = StratifiedKFold(cv, shuffle=True, random_state=seed + repeat)
    for fold, (train, test) in enumerate(splitter.split(np.zeros(len(y)), y)):
        fitted = model().set_params(random_state=estimator_seed(seed, repeat, fold)).fit(bags[train], y[train])
        predictions[test] = fitted.predict(bags[test])
    return predictions


def test_a_missing_value_is_named_by_its_place_among_all_bags():
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    holed = bags.instances.copy()
    holed[bags.offsets[15], 1] = np.nan
    for model in (GMIL(5), gmil.WeightedGMIL(), gmil.MILES()):
        with pytest.raises(BagValidationError, match="in bag 15, instance 0, column 1"):
            cross_validate(model, bags.with_instances(holed), y, cv=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"repeats": 0}, "repeats must be a whole number and at least 1, got 0"),
        ({"repeats": 1.5}, r"repeats must be a whole number and at least 1, got 1\.5"),
        ({"random_state": -1}, "random_state must be a whole number from 0 to 4294967295, got -1"),
        ({"random_state": 0.5}, r"random_state must be a whole number from 0 to 4294967295, got 0\.5"),
        ({"random_state": 2**32 - 1, "repeats": 2}, "from 0 to 4294967294, got 4294967295"),  # the second has the next
        ({"cv": iter([])}, "cv must hold splits, but this list_iterator is empty. A generator can be used once"),
        ({"groups": [0] * 10 + [1] * 10}, "cv=4 is too many folds: the bags are of 2 groups"),
        ({"groups": [0] * 20}, "cv=4 is too many folds: the bags are of 1 group,"),
    ],
)
def test_numbers_and_groups_that_make_no_folds(arguments, message):
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    with pytest.raises(BagValidationError, match=message):
        cross_validate(GMIL(5), bags, y, **{"cv": 4, **arguments})


@pytest.mark.parametrize(
    "y", [[np.nan, 1.0] * 10, [None, "a"] * 10, np.ma.masked_array([0, 1] * 10, mask=[1] + [0] * 19)]
)
def test_a_missing_label_is_named_before_folds_are_drawn(y):
    bags, _ = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    with pytest.raises(BagValidationError, match="the label of bag 0 is missing"):
        cross_validate(GMIL(5), bags, y, cv=4)


def test_without_a_seed_one_is_drawn_and_told(data):
    bags, y = data
    for model in (GMIL(5), GMIL(5, rule="vote")):  # all folds at once, and fold by fold
        one, two = (cross_validate(model, bags, y, cv=4, random_state=None) for _ in range(2))
        assert one.random_state != two.random_state
        assert cross_validate(model, bags, y, cv=4, random_state=one.random_state) == one
        assert cross_validate(model, bags, y, cv=4).random_state == 0


def test_a_generator_of_splits_serves_every_repeat(data):
    bags, y = data
    splits = list(StratifiedKFold(4).split(bags.sizes, y))
    found = cross_validate(GMIL(5), bags, y, cv=(split for split in splits), repeats=2)
    assert found == cross_validate(GMIL(5), bags, y, cv=splits, repeats=2)
    assert np.array_equal(*found.folds)
    assert found.accuracy() != cross_validate(GMIL(5), bags, y, cv=splits).accuracy()  # other seeds of the estimator


def test_many_classes_of_whole_numbers_are_no_matter_for_a_warning(recwarn):
    bags = Bags(np.eye(12), np.arange(13))
    with pytest.raises(BagValidationError, match="too many folds"):
        cross_validate(GMIL(5), bags, np.arange(12), cv=3)
    assert not recwarn.list


def test_string_labels_are_remarked_once_and_not_in_every_fold():
    bags, y = gmil.make_bags(20, n_features=3, random_state=0, return_X_y=True)
    names = np.where(y == 1, "dog", "cat")
    for model in (gmil.GMIL(5), gmil.WeightedGMIL(random_state=0), gmil.MILES()):
        with pytest.warns(UserWarning, match="'dog' is taken as the positive class") as caught:
            named = gmil.cross_validate(model, bags, names, cv=3, repeats=2)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        numbered = gmil.cross_validate(model, bags, y, cv=3, repeats=2)
        assert np.array_equal(named.predictions == "dog", numbered.predictions == 1)
        assert named.positive_label == "dog"


def test_it_is_a_plain_loop_over_stratified_folds(data):
    bags, y = data
    result = cross_validate(GMIL(5), bags, y, cv=6, repeats=2, random_state=9)
    for repeat in range(2):
        np.testing.assert_array_equal(result.predictions[0, repeat], by_hand(lambda: GMIL(5), bags, y, 6, 9, repeat))
    assert result.fit_seconds.shape == result.predict_seconds.shape == (1, 2, 6)


def test_seeds_differ_between_folds_and_repeats_and_are_the_same_again(data):
    seeds = {estimator_seed(9, r, f) for r in range(12) for f in range(10)}
    assert len(seeds) == 120
    assert all(0 <= seed < 2**31 for seed in seeds)
    bags, y = data
    one, other = (cross_validate(GMIL(5), bags, y, cv=5, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(one.decisions, other.decisions)


@pytest.mark.parametrize("model", [GMIL(5), gmil.EMDD(n_start_bags=2), gmil.VLADClassifier(), gmil.WeightedGMIL()])
def test_a_repeat_is_what_the_next_seed_gives(data, model):
    bags, y = data
    several = cross_validate(model, bags, y, cv=3, repeats=2, random_state=4)
    for repeat in range(2):
        alone = cross_validate(model, bags, y, cv=3, random_state=4 + repeat)
        np.testing.assert_allclose(several.decisions[:, repeat], alone.decisions[:, 0], atol=1e-12)


def test_jobs_do_not_change_the_result(data):
    bags, y = data
    one, two = (cross_validate(GMIL(5), bags, y, cv=4, n_jobs=n) for n in (None, 2))
    np.testing.assert_array_equal(one.decisions, two.decisions)


def test_nothing_of_a_test_fold_reaches_training(data):
    bags, y = data
    models = []

    class Recorder(GMIL):
        def predict(self, X):
            models.append((self.cluster_centers_, self.positive_bins_, self.space_.shift))
            return super().predict(X)

    test = fold_numbers(5, y, None, 0) == 0
    changed = np.array(bags.instances)
    changed[np.repeat(test, bags.sizes)] += 1e3
    for instances in (bags.instances, changed):
        cross_validate(Recorder(5, scale="standard"), bags.with_instances(instances), y, cv=5)
    for one, other in zip(models[0], models[5], strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(models[1][0], models[6][0])  # the others did see the change


def test_param_grid_runs_every_setting_on_the_same_folds(data):
    bags, y = data
    result = cross_validate(GMIL(5), bags, y, cv=5, param_grid={"n_clusters": [3, 6], "n_positive": [1, 2]})
    assert result.predictions.shape == (4, 1, 60)
    assert result.params[1] == {"n_clusters": 3, "n_positive": 2}
    alone = cross_validate(GMIL(3, 2), bags, y, cv=5)
    np.testing.assert_array_equal(result.predictions[1], alone.predictions[0])
    assert result.accuracy().shape == result.auc().shape == (4,)
    assert result.accuracy()[1] == alone.accuracy()
    assert result.accuracy_interval().shape == (4, 2)


def test_groups_stay_together(data):
    bags, y = data
    groups = np.arange(60) // 3
    result = cross_validate(GMIL(5), bags, y, cv=5, groups=groups)
    for group in range(20):
        assert len(set(result.folds[0, groups == group])) == 1


class Recording(GMIL):
    """Keeps the groups of every fit, in all clones."""

    seen: ClassVar[list] = []

    def fit(self, X, y, groups=None):
        self.seen.append(groups)
        return super().fit(X, y)


@pytest.mark.parametrize("wrapped", [lambda m: m, lambda m: make_pipeline(PerInstance(), m)], ids=["alone", "pipeline"])
def test_an_estimator_is_told_the_groups_of_its_training_bags(data, wrapped):
    bags, y = data
    groups = np.array([f"patient {i % 12}" for i in range(60)])
    Recording.seen.clear()
    result = cross_validate(wrapped(Recording(5)), bags, y, cv=4, groups=groups.tolist())
    assert len(Recording.seen) == 4
    for fold, told in enumerate(Recording.seen):
        assert told.tolist() == groups[result.folds[0] != fold].tolist()
    Recording.seen.clear()
    cross_validate(wrapped(Recording(5)), bags, y, cv=4)
    assert Recording.seen == [None] * 4


def test_a_single_training_group_is_not_passed_on(data):
    bags, y = data
    Recording.seen.clear()
    cross_validate(Recording(5), bags, y, cv=2, groups=np.arange(60) % 2)
    assert Recording.seen == [None, None]
    cross_validate(gmil.GMILCV(), bags, y, cv=2, groups=np.arange(60) % 2)
    cross_validate(gmil.WeightedGMIL(), bags, y, cv=2, groups=np.arange(60) % 2)


@pytest.mark.parametrize("lazy", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_choices_inside_leave_out_whole_groups(lazy):
    """Bags of a patient share a mark that says nothing about other patients: without groups the mark wins."""
    rng = np.random.default_rng(0)
    n_patients, per_patient = 20, 4
    groups = np.repeat(np.arange(n_patients), per_patient)
    y = rng.permutation(np.arange(n_patients) % 2)[groups]
    marks = rng.normal(size=(n_patients, 12))[groups] * 3
    instances = np.repeat(marks, 2, axis=0) + rng.normal(0, 0.01, (160, 12))
    bags = Bags(instances, np.arange(0, 161, 2))
    given = LazyBags.from_array(instances, bags.offsets) if lazy else bags
    result = cross_validate(gmil.WeightedGMIL(), given, y, cv=3, groups=groups)
    untold = np.empty(len(y))
    for fold in range(3):
        training, test = result.folds[0] != fold, result.folds[0] == fold
        model = gmil.WeightedGMIL(random_state=estimator_seed(0, 0, fold))
        told = model.fit(given[training], y[training], groups=groups[training]).decision_function(given[test])
        np.testing.assert_allclose(result.decisions[0, 0, test], told, atol=1e-9)
        untold[test] = clone(model).fit(given[training], y[training]).decision_function(given[test])
    # Chosen on bags of known patients, log-odds about new ones are surer than they may be.
    assert log_loss(y, expit(untold)) > log_loss(y, expit(result.decisions[0, 0]))


@pytest.mark.parametrize("groups", [[0, 1], np.zeros((60, 2))])
def test_groups_of_other_bags_are_refused(data, groups):
    bags, y = data
    for cv in (3, [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]):
        with pytest.raises(BagValidationError, match="groups must name the group of each of the 60 bags, got shape"):
            cross_validate(GMIL(5), bags, y, cv=cv, groups=groups)


def test_splitters(data):
    bags, y = data
    result = cross_validate(GMIL(5), bags, y, cv=KFold(4))
    assert result.folds[0].tolist() == [i // 15 for i in range(60)]
    with pytest.raises(BagValidationError, match="cv must test every bag exactly once, but bag"):
        cross_validate(GMIL(5), bags, y, cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(BagValidationError, match=r"bag 1 is tested never"):
        cross_validate(GMIL(5), bags, y, cv=[(np.arange(1, 60), [0])])


@pytest.fixture(scope="module")
def drawn_again():
    """Return four splits of 60 bags into training, nothing and test, as tools draw them again and again."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(60) for _ in range(4)]
    return [(order[:36], order[45:]) for order in orders]


def test_splits_that_test_bags_again_are_a_repeat_each(data, drawn_again):
    bags, y = data
    result = cross_validate(GMIL(5), bags, y, cv=iter(drawn_again))
    assert result.predictions.shape == (1, 4, 60)
    rates, areas = [], []
    for number, (train, test) in enumerate(drawn_again):
        np.testing.assert_array_equal(np.flatnonzero(result.tested[number]), np.sort(test))
        model = with_seed(GMIL(5), estimator_seed(0, number, 0)).fit(bags[np.sort(train)], y[np.sort(train)])
        rates.append(np.mean(model.predict(bags[test]) == y[test]))
        areas.append(roc_auc_score(y[test], model.decision_function(bags[test])))
    assert result.accuracy() == pytest.approx(np.mean(rates))
    assert result.accuracy_std() == pytest.approx(np.std(rates, ddof=1))
    assert result.auc() == pytest.approx(np.mean(areas))
    low, high = result.accuracy_interval()
    assert low <= result.accuracy() <= high
    assert result.kappa_interval()[0] <= result.kappa() <= result.kappa_interval()[1]
    assert "4 splits of 60 bags" in repr(result)


def test_repeated_splits_are_not_repeated_again_and_do_not_train_on_what_they_test(data, drawn_again):
    bags, y = data
    with pytest.raises(BagValidationError, match="repeats must be 1 where splits are given"):
        cross_validate(GMIL(5), bags, y, cv=drawn_again, repeats=2)
    with pytest.raises(BagValidationError, match="cv must not train on what it tests, but split 1 does"):
        cross_validate(GMIL(5), bags, y, cv=[*drawn_again[:1], (np.arange(60), drawn_again[0][1])])
    with pytest.warns(UserWarning, match="groups are trained on and tested"):
        cross_validate(GMIL(5), bags, y, cv=drawn_again, groups=np.arange(60) // 3)


def test_pipelines_and_other_inputs(data):
    bags, y = data
    pipeline = make_pipeline(PerInstance(), GMIL(5))
    as_list = cross_validate(pipeline, bags.to_list(), y, cv=4)
    np.testing.assert_array_equal(as_list.predictions, cross_validate(pipeline, bags, y, cv=4).predictions)
    assert as_list.positive_label == 1


def test_the_area_under_the_curve_knows_which_class_is_positive(data):
    bags, y = data
    plain = cross_validate(GMIL(5), bags, y, cv=4)
    turned = cross_validate(GMIL(5, pos_label=0), bags, 1 - y, cv=4)
    assert turned.positive_label == 0
    assert turned.auc() == pytest.approx(plain.auc())


@pytest.mark.parametrize("positive", ["cat", "dog"])
@pytest.mark.parametrize(
    ("model", "lazy"),
    [
        (GMIL(5), False),  # all folds in one batch
        (GMIL(5), True),
        (GMIL(5, rule="vote"), False),  # fold by fold
        (gmil.CitationKNN(), False),  # folds that share distances
        (gmil.WeightedGMIL(20, scales=("standard",)), False),
        (gmil.WeightedGMIL(20, scales=("standard",)), True),
        (make_pipeline(PerInstance(), GMIL(5)), False),
    ],
    ids=str,
)
def test_decisions_are_about_the_second_class_whichever_is_positive(data, model, lazy, positive):
    bags, y = data
    bags = gmil.LazyBags.from_array(bags.instances, bags.offsets) if lazy else bags
    name = "gmil__pos_label" if hasattr(model, "steps") else "pos_label"
    result = cross_validate(clone(model).set_params(**{name: positive}), bags, np.array(["cat", "dog"])[y], cv=3)
    assert result.positive_label == positive
    clear = result.decisions != 0
    np.testing.assert_array_equal(result.predictions[clear] == "dog", result.decisions[clear] > 0)
    assert set(result.predictions[~clear]) <= {"cat", "dog"} - {positive}  # a tie is negative
    assert result.one_vs_rest("dog").auc() == pytest.approx(result.auc())
    np.testing.assert_array_equal(result.one_vs_rest("cat").decisions, -result.decisions)


def test_more_classes(data):
    bags, y = data
    three = np.where(np.arange(60) < 20, 2, y)
    result = cross_validate(GMIL(6), bags, three, cv=4)
    assert result.decisions.shape == (1, 1, 60, 3)
    fold = result.folds[0] == 0
    expected = np.mean([roc_auc_score(three[fold] == c, result.decisions[0, 0, fold, c]) for c in range(3)])
    assert result.fold_aucs()[0, 0, 0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cv", "y", "message"),
    [
        (1, [0, 1] * 5, "cv must be at least 2, got 1"),
        (3, [1] * 10, "y holds one class only, 1"),
        (9, [0, 1] * 5, "cv=9 is too many folds: class 0 has 5 bags"),
        (3, [0] * 9 + [1], "class 1 has 1 bag."),
        (3, [0.5, 1.5] * 5, "y must name classes, by strings or whole numbers, got fractions such as 0.5"),
        (3, [0, 1] * 4, "y has 8 labels, but X has 10 bags"),
    ],
)
def test_bad_input(cv, y, message):
    bags = Bags.from_list([np.ones((2, 1)) * i for i in range(10)])
    with pytest.raises(BagValidationError, match=message):
        cross_validate(GMIL(2), bags, y, cv=cv)


def test_folds_with_one_class_have_no_area_and_are_counted():
    y = np.array([0, 1] * 5 + [0, 0])
    bags = Bags.from_list([np.full((2, 1), float(i % 7)) for i in range(12)])
    result = cross_validate(GMIL(3), bags, y, cv=KFold(6))
    assert result.auc_folds_dropped() == 1
    assert np.isnan(result.fold_aucs()).sum() == 1
    assert not np.isnan(result.auc())


def test_progress_counts_every_fit(data):
    bags, y = data
    seen = []
    cross_validate(FoldByFold(5), bags, y, cv=3, repeats=2, progress=lambda *count: seen.append(count))
    assert seen == [(i, 6) for i in range(1, 7)]
    seen.clear()
    grid = {"n_clusters": [3, 4, 5]}
    cross_validate(GMIL(), bags, y, cv=3, repeats=2, param_grid=grid, progress=lambda *count: seen.append(count))
    assert seen == [(6, 18), (12, 18), (18, 18)]


# ------------------------------------------------------------------ all folds at once


class FoldByFold(GMIL):
    """GMIL under another name: a subclass is never batched."""


def both_ways(parameters, bags, y, **arguments):
    together = cross_validate(GMIL(**parameters), bags, y, **arguments)
    apart = cross_validate(FoldByFold(**parameters), bags, y, **arguments)
    return together, apart


@pytest.mark.parametrize("backend", gmil.engine.available_backends())
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_clusters": 7, "n_negative": 0},
        {"n_clusters": 7, "n_negative": 0, "threshold": "variance", "scale": "l2"},
        {"n_clusters": 7, "n_negative": 0, "threshold": "best", "scale": "standard"},
        {"scale": "minmax+l2", "n_components": 2},
        {"counting": "bag-mass", "overlap": "exclude", "epsilon": "negatives", "negative_rank": "ratio"},
        {"distance": "center-mean", "centers": "medoid"},
        {"n_init": 3, "max_iter": 2},
        {"init": "plain-k-means++"},
        {"init": "plain-k-means++", "scale": "standard"},
        {"init": "plain-k-means++", "instance_weight": "bags"},
        {"n_clusters": 7, "n_negative": 0, "threshold": 0.082, "scale": "global"},
        {"n_clusters": 7, "n_negative": 0, "threshold": "variance", "scale": "global"},
        {"sample_size": 100, "sampling": "bags"},
        {"n_clusters": 40, "n_positive": 40, "n_negative": 3},
        {"pos_label": 0},
    ],
)
def test_all_folds_at_once_are_the_same_as_fold_by_fold(data, parameters, backend):
    bags, y = data
    together, apart = both_ways({**parameters, "backend": backend}, bags, y, cv=3, repeats=2, random_state=3)
    np.testing.assert_allclose(together.decisions, apart.decisions, atol=1e-9)
    np.testing.assert_array_equal(together.predictions, apart.predictions)
    assert together.positive_label == apart.positive_label


def test_all_folds_at_once_with_more_classes_and_a_grid(data):
    bags, y = data
    three = np.where(np.arange(60) < 20, 2, y)
    grid = {"n_clusters": [4, 9], "n_positive": [1, 3], "n_negative": [0, 2], "scale": [None, "minmax"]}
    together, apart = both_ways({}, bags, three, cv=4, param_grid=grid)
    np.testing.assert_allclose(together.decisions, apart.decisions, atol=1e-9)
    np.testing.assert_array_equal(together.predictions, apart.predictions)
    assert together.params == apart.params


def test_all_folds_at_once_on_sparse_and_single_precision_bags(data):
    import scipy.sparse as sp

    bags, y = data
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    together, apart = both_ways({}, sparse, y, cv=4)
    np.testing.assert_allclose(together.decisions, apart.decisions, atol=1e-9)
    single = bags.with_instances(bags.instances.astype(np.float32))
    together, apart = both_ways({"scale": "standard"}, single, y, cv=4)
    np.testing.assert_allclose(together.decisions, apart.decisions, atol=1e-4)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_all_folds_at_once_where_instances_repeat(seed):
    """Duplicates put instances on centres: ties that rounding must not break."""
    rng = np.random.default_rng(seed)
    y = np.arange(16) % 2
    places = rng.normal(size=(7, 2))
    bags = Bags.from_list([places[rng.integers(0, 7, size=rng.integers(1, 4))] for _ in y])
    together, apart = both_ways({"n_clusters": 5}, bags, y, cv=4, random_state=seed)
    np.testing.assert_allclose(together.decisions, apart.decisions, atol=1e-9)
    np.testing.assert_array_equal(together.predictions, apart.predictions)


def test_training_is_the_same_whatever_the_test_bags_hold(data):
    bags, y = data
    test = fold_numbers(5, y, None, 0) == 0
    changed = np.array(bags.instances)
    changed[np.repeat(test, bags.sizes)] += 50
    kept = np.array(bags.instances)
    for parameters in ({}, {"scale": "standard"}, {"scale": "l2"}):
        one = cross_validate(GMIL(6, **parameters), bags.with_instances(kept), y, cv=5)
        moved = bags.with_instances(changed)
        model = GMIL(6, **parameters, random_state=estimator_seed(0, 0, 0)).fit(bags[~test], y[~test])
        two = cross_validate(GMIL(6, **parameters), moved, y, cv=5)
        np.testing.assert_allclose(one.decisions[0, 0, test], model.decision_function(bags[test]), atol=1e-9)
        np.testing.assert_allclose(two.decisions[0, 0, test], model.decision_function(moved[test]), atol=1e-9)
