"""Planted faults are found, clean bags pass, noise is called noise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

import gmil
from gmil import Bags, BagValidationError, check_data
from gmil.checks import repeats, signal, values


def clean(n_bags=60, **options):
    return gmil.make_bags(n_bags, random_state=1, return_X_y=True, **options)


@pytest.fixture(scope="module")
def of_clean():
    """Return what is found in clean bags."""
    return check_data(*clean())


def noise(seed, n_bags=60, **options):
    """Return bags that know nothing of their labels."""
    bags, y = gmil.make_bags(n_bags, separation=0, random_state=seed, return_X_y=True, **options)
    return bags, y


def planted(bags, into, what):
    """Return bags with the first instance of bag ``into`` replaced."""
    rows = bags.instances.copy()
    rows[bags.offsets[into]] = what
    return Bags(rows, bags.offsets)


def warned(found):
    return {finding.name for finding in found.findings if finding.level == "warning"}


# ------------------------------------------------------------------ verdicts


def test_clean_bags_pass(of_clean):
    found = of_clean
    assert found.verdict == "better than chance and than bag size"
    assert {finding.level for finding in found.findings} == {"ok"}
    assert found["bags per class"].value == 30
    assert found["bags per class"].text == '30 of "0", 30 of "1".'
    assert found["majority class"].value == 0.5
    assert found["majority class"].text == 'Majority-class baseline, always "0": 50.0% accuracy.'
    assert found["shuffled labels"].value == pytest.approx(1 / 21)


def test_noise_is_no_better_than_chance():
    verdicts = [check_data(*noise(seed, n_bags=40)).verdict for seed in range(3)]
    assert verdicts.count("no better than chance") >= 2  # one in 21 is expected to be taken in


def test_labels_that_follow_the_size_are_no_better_than_bag_size():
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 20, size=80)
    bags = Bags.from_list([rng.normal(size=(size, 4)) for size in sizes])
    found = check_data(bags, sizes > 11)
    assert found.verdict == "no better than bag size"
    assert found["bag size"].value == pytest.approx(1, abs=0.02)
    assert found["instances against bag size"].value <= 0


def test_the_size_may_tell_by_rising_and_falling():
    """No instance is worth anything, and no order of sizes: bags of middle size are positive."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 30, size=80)
    bags = Bags.from_list([rng.normal(size=(size, 4)) for size in sizes])
    found = check_data(bags, (sizes > 10) & (sizes < 20))
    assert found["bag size"].level == "warning"
    assert found["bag size"].value > 0.9
    assert found.verdict in ("no better than bag size", "no better than chance")


def test_instances_that_are_noise_are_no_better_than_noise():
    rng = np.random.default_rng(3)
    sizes = np.where(np.arange(60) % 2, 40, 4)
    bags = Bags.from_list([rng.normal(size=(size, 10)) for size in sizes])
    found = check_data(bags, np.arange(60) % 2)
    assert found["shuffled labels"].level == "ok"  # there is something to learn: the size
    assert found["instances against noise"].level == "warning"
    assert abs(found["instances against noise"].value) < 0.05
    assert found.verdict == "no better than bag size"


def test_p_values_name_their_test_and_are_no_chances_of_a_hypothesis(of_clean):
    texts = [finding.text for finding in of_clean.findings if "p = " in finding.text]
    assert len(texts) == 4
    assert all(" of no " not in text and " of being " not in text for text in texts)
    assert [("(permutation test: p = " in text, "(one-sided DeLong test: p = " in text) for text in texts] == [
        (True, False),
        (True, False),
        (False, True),
        (False, True),
    ]


def test_warnings_are_named_in_words(of_clean):
    assert of_clean.warnings() == "no warning"
    bags, _ = clean()
    few = check_data(bags, np.arange(60) < 4)
    assert few["bag size"].text == f"Not tested: {few.verdict.removeprefix('not assessable: ')}."
    assert few.warnings() == "2 warnings (bags per class, shuffled labels)"


def test_the_size_of_elephant_bags_is_a_warning():
    try:
        bags, y = gmil.fetch_elephant(return_X_y=True, download_if_missing=False)
    except gmil.DatasetError:
        pytest.skip("the Elephant set is not here")
    found = check_data(bags, y)
    assert found["bag size"].level == "warning"
    assert 0.63 < found["bag size"].value < 0.66
    assert found.verdict == "better than chance and than bag size"


@pytest.mark.parametrize("n_classes", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_several_classes(n_classes):
    bags, y = clean(20 * n_classes, n_classes=n_classes, positive_share=0.75)
    assert check_data(bags, np.array(list("abcd"))[y]).verdict == "better than chance and than bag size"
    mixed = np.random.default_rng(0).permutation(y)
    assert check_data(bags, mixed).verdict == "no better than chance"


def test_an_unbalanced_problem_is_noted():
    bags, y = clean(100, positive_share=0.15)
    found = check_data(bags, y)
    assert found["bags per class"].level == "note"
    assert found["majority class"].value == 0.85


# ------------------------------------------------------------------ repeats


def repeats_in(bags, y, groups=None):
    """Return what the check finds of repeats, by name, without the measurements that come after."""
    return {finding.name: finding for finding in repeats.repeat_findings(bags, y, groups)}


def test_identical_bags_are_found_and_put_the_verdict_in_doubt():
    bags, y = clean()
    order = np.concatenate([np.arange(60), [0, 0, 1]])
    found = check_data(bags[order], y[order])
    assert found["identical bags"].value == 5
    assert "identical bags" in warned(found)
    assert found.verdict.startswith("better than chance and than bag size, but doubtful: identical bags")


def test_the_order_of_instances_does_not_hide_an_identical_bag():
    bags, y = clean()
    turned = Bags.from_list([*bags, bags[0][::-1]])
    found = repeats_in(turned, np.append(y, 1 - y[0]))
    assert found["identical bags"].value == 2
    assert "2 of them under another label" in found["identical bags"].text


def test_identical_bags_inside_a_group_leak_nothing():
    bags, y = clean()
    order = np.append(np.arange(60), 0)
    found = repeats_in(bags[order], y[order], order)
    assert found["identical bags"].level == "note"
    assert found["instances in several groups"].level == "ok"


def test_one_shared_instance_is_a_note_many_are_a_warning():
    bags, y = clean()
    one = repeats_in(planted(bags, 7, bags[3][0]), y)["instances in several bags"]
    assert (one.level, one.value) == ("note", 2 / 60)
    assert "2 instances are also in another bag, in 2 of 60 bags" in one.text
    many = bags
    for bag in range(10):
        many = planted(many, bag, bags[30][0])
    found = check_data(many, y)
    assert found["instances in several bags"].value == 11 / 60
    assert "instances in several bags" in warned(found)


def test_instances_shared_under_different_labels_are_counted():
    bags, y = clean()
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    across = repeats_in(planted(bags, positive[0], bags[negative[0]][0]), y)["instances in several bags"]
    within = repeats_in(planted(bags, positive[0], bags[positive[1]][0]), y)["instances in several bags"]
    assert "; 2 of them are in bags of different labels" in across.text
    assert "; 0 of them are in bags of different labels" in within.text


def test_an_instance_in_two_groups_is_a_warning():
    bags, y = clean()
    groups = np.arange(60) // 2
    assert repeats_in(bags, y, groups)["instances in several groups"].level == "ok"
    inside = repeats_in(planted(bags, 1, bags[0][0]), y, groups)
    assert inside["instances in several groups"].level == "ok"
    outside = check_data(planted(bags, 2, bags[0][0]), y, groups=groups)
    assert outside["instances in several groups"].value == 2
    assert "instances in several groups" in warned(outside)


@given(st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5]), min_size=3, max_size=3), min_size=1, max_size=12))
def test_rows_are_numbered_alike_where_they_are_equal(rows):
    X = np.array(rows)
    equal = (X[:, None] == X[None]).all(axis=-1)
    for matrix in (X, sp.csr_array(X)):
        numbers = repeats.row_numbers(matrix)
        assert_array_equal(numbers[:, None] == numbers[None], equal)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_missing_values_are_counted_by_column_and_all_questions_are_answered(layout):
    bags, y = clean()
    rows = bags.instances.copy()
    rows[::10, 3] = rows[::25, 1] = rows[:, 7] = np.nan
    names = [f"f{i}" for i in range(bags.n_features)]
    found = check_data(Bags(layout(rows), bags.offsets, feature_names=names), y)
    counts = np.isnan(rows).sum(axis=0)
    assert found["missing values"].value == counts.sum()
    assert f"in 3 of 10 columns: f7 {counts[7]}, f3 {counts[3]}, f1 {counts[1]}." in found["missing values"].text
    assert warned(found) == {"missing values"}
    assert found["constant features"].value == 0
    assert found.verdict == "better than chance and than bag size"


def test_infinite_values_cannot_be_filled():
    bags, y = clean()
    found = check_data(planted(bags, 4, np.inf), y)
    assert found["infinite values"].value == bags.n_features
    assert found.verdict == f"not assessable: {bags.n_features} values are infinite"
    assert warned(found) == {"infinite values", "shuffled labels"}


def test_constant_features_and_placeholders():
    bags, y = clean()
    rows = bags.instances.copy()
    rows[:, 0] = 3
    rows[::50, 1] = -999
    found = check_data(Bags(rows, bags.offsets, feature_names=[f"f{i}" for i in range(10)]), y)
    assert (found["constant features"].level, found["constant features"].value) == ("note", 1)
    assert found["constant features"].text == "1 of 10 features is constant and carries no information: f0."
    assert found["placeholder values"].value == 1
    assert "-999 in f1" in found["placeholder values"].text


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([0.0, 0.0, 100.0, 101.0, 102.0], None),  # zero is common
        ([-5.0, -5.0, -5.0, 1.0, 1.5], None),  # most rows
        ([9.0, 1.0, 1.5, 2.0, 2.5], None),  # an outlier, but one
        ([9.0, 9.0, 1.0, 1.0, 1.0], None),  # two values
        ([9.0, 9.0, 1.0, 1.5, 2.0], 9.0),
        ([9.0, 9.0, 1.0, 3.0, 5.5], None),  # not far enough
    ],
)
def test_what_a_placeholder_is(column, expected):
    assert values.placeholder(np.array(column)) == expected


def test_sparse_bags_give_the_same_findings():
    bags, y = clean()
    rows = np.where(np.abs(bags.instances) < 0.4, 0, bags.instances)
    rows[:, 2] = 0
    dense, sparse = (check_data(Bags(X, bags.offsets), y) for X in (rows, sp.csr_array(rows)))
    for name in ("constant features", "missing values", "identical bags", "instances in several bags", "bag size"):
        assert sparse[name] == dense[name]
    assert sparse.verdict == dense.verdict == "better than chance and than bag size"


# ------------------------------------------------------------------ too little, or wrong


def test_too_few_bags_of_a_class_cannot_be_told():
    bags, _ = clean()
    y = np.arange(60) < 4
    found = check_data(bags, y)
    assert found.verdict == "not assessable: the smallest class is in 4 bags, and 5 folds need 5"
    assert {"bags per class", "shuffled labels"} <= warned(found)


def test_one_instance_bags_are_no_multiple_instance_problem():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    X[:, 0] += 4 * y
    found = check_data(X, y)
    assert found["bag size"].level == "note"
    assert found.verdict == "better than chance and than bag size"


def test_bad_arguments():
    bags, y = clean()
    with pytest.raises(BagValidationError, match=r"n_permutations must be at least 19 .* got 5"):
        check_data(bags, y, n_permutations=5)
    for seed in (None, -1, 0.5):
        with pytest.raises(BagValidationError, match="random_state must be a whole number from 0 to"):
            check_data(bags, y, random_state=seed)
    with pytest.raises(BagValidationError, match=r"each of the 60 bags, got shape \(59,\)"):
        check_data(bags, y, groups=y[1:])
    with pytest.raises(BagValidationError, match="one class only"):
        check_data(bags, np.zeros(60))


# ------------------------------------------------------------------ the statistics


def test_shuffled_labels_of_groups_travel_together():
    groups = np.repeat(np.arange(10), 3)
    labels = np.repeat(np.arange(10) % 2, 3)
    for seed in range(5):
        shuffled = signal.shuffle_labels(labels, groups, np.random.default_rng(seed))
        assert_array_equal(np.sort(shuffled), np.sort(labels))
        assert (shuffled.reshape(10, 3) == shuffled.reshape(10, 3)[:, :1]).all()
    assert any((signal.shuffle_labels(labels, groups, np.random.default_rng(s)) != labels).any() for s in range(3))


@pytest.mark.parametrize("n_seeds", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_signature_of_the_group_is_no_signal(n_seeds):
    """Every group has its own place and one label: known groups would give the label away, new ones do not."""
    verdicts = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(16), 5)
        places = rng.normal(0, 5, size=(16, 4))
        bags = Bags.from_list([places[g] + rng.normal(size=(5, 4)) for g in groups])
        y = rng.permutation(np.arange(16) % 2)[groups]
        assert check_data(bags, y).verdict == "better than chance and than bag size"  # without groups it is fooled
        verdicts.append(check_data(bags, y, groups=groups).verdict)
    assert verdicts.count("no better than chance") >= 0.8 * n_seeds


@given(
    st.integers(0, 10**6),
    st.integers(6, 30),
)
def test_the_area_is_that_of_scikit_learn_and_influences_add_up_to_nothing(seed, n):
    rng = np.random.default_rng(seed)
    decisions = rng.integers(0, 5, size=n).astype(float)
    positive = rng.permutation(np.arange(n) % 2 == 0)
    scored = signal.fold_auc(positive[:, None], decisions[:, None], np.zeros(n, dtype=int))
    assert scored.auc == pytest.approx(roc_auc_score(positive, decisions))
    assert_allclose(scored.influence[positive].sum(), 0, atol=1e-12)
    assert_allclose(scored.influence[~positive].sum(), 0, atol=1e-12)


def test_the_error_of_the_area_is_that_over_samples():
    rng = np.random.default_rng(0)
    positive, folds = np.arange(100) % 2 == 0, np.zeros(100, dtype=int)
    drawn = [signal.fold_auc(positive[:, None], (rng.normal(size=100) + positive)[:, None], folds) for _ in range(400)]
    errors = [np.sqrt((scored.influence**2).sum()) for scored in drawn]
    assert np.mean(errors) == pytest.approx(np.std([scored.auc for scored in drawn]), rel=0.1)


def test_the_same_seed_gives_the_same_check():
    bags, y = noise(3)
    assert check_data(bags, y, random_state=4) == check_data(bags, y, random_state=4)
    assert check_data(bags, y, random_state=4) != check_data(bags, y, random_state=5)


@pytest.mark.slow
def test_noise_is_taken_for_signal_once_in_21_times():
    verdicts = [check_data(*noise(seed, n_bags=40, bag_size=5)).verdict for seed in range(200)]
    fooled = 200 - verdicts.count("no better than chance")
    assert fooled <= 18  # 9.5 are expected; more than 18 happen once in 300 times
