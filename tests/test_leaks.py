"""Planted leaks are found, each with what hangs on it; clean bags have no warning."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold

import gmil
from gmil import Bags
from gmil.checks.instance_labels import instance_label_finding
from gmil.checks.leaks import Case, decimals, identifiers, is_label, leak_findings
from gmil.checks.near_duplicates import joined_by, near_duplicates
from gmil.checks.protocol import protocol_findings


@pytest.fixture(scope="module")
def clean():
    return gmil.make_bags(60, n_features=8, bag_size=(3, 6), random_state=1, return_X_y=True)


def with_column(bags, column):
    """Return bags with one more feature, given for every instance."""
    return Bags(np.column_stack([bags.instances, column]), bags.offsets)


def found_in(bags, y, groups=None, folds=None):
    return {finding.name: finding for finding in findings_of(Case(bags, np.asarray(y), groups, 0), folds)}


def findings_of(case, folds=None):
    return [*leak_findings(case), instance_label_finding(case), *protocol_findings(case, folds)]


def of_instances(bags, values):
    return np.repeat(values, bags.sizes)


def test_clean_bags_have_no_leak(clean):
    assert {finding.level for finding in found_in(*clean).values()} == {"ok"}


def test_the_label_as_a_feature(clean):
    bags, y = clean
    found = found_in(with_column(bags, of_instances(bags, 3.0 * y)), y)["label among the features"]
    assert (found.level, found.value) == ("warning", 1)
    assert found.text.startswith("column 8: one value for every class")
    assert found.with_it > found.without_it
    assert "--exclude" in found.fix
    assert_array_equal(np.flatnonzero(is_label(with_column(bags, of_instances(bags, y)), y)), [8])


def witness_flags(bags, positive):
    """Return 1 for the first instance of every positive bag, 0 for all others."""
    flags = np.zeros(bags.n_instances)
    flags[bags.offsets[:-1][positive]] = 1
    return flags


@pytest.mark.parametrize("written", [lambda flags: flags, lambda flags: 2 - 3 * flags], ids=["maximum", "minimum"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_labels_of_instances_as_a_feature(clean, written, form):
    bags, y = clean
    made = with_column(bags, written(witness_flags(bags, y == 1)))
    found = found_in(Bags(form(made.instances), bags.offsets), y)["labels of instances among the features"]
    assert (found.level, found.value) == ("warning", 1)
    assert found.text.startswith(f"column 8 ({written(1):g}): whether a bag holds this value tells its class")
    assert "leave it out (--exclude), or call it y_instance" in found.fix
    assert "--instances COLUMN" in found.fix
    assert found.with_it > found.without_it


def test_labels_of_instances_of_one_class_of_three(clean):
    bags, _ = clean
    y = np.arange(60) % 3
    for flagged in (y == 2, y > 0):
        made = with_column(bags, witness_flags(bags, flagged))
        assert found_in(made, y)["labels of instances among the features"].level == "warning"


def test_labels_of_instances_with_a_slip_or_a_gap(clean):
    bags, y = gmil.make_bags(120, n_features=8, bag_size=(3, 6), random_state=1, return_X_y=True)
    flags = witness_flags(bags, y == 1)
    flags[-1] = np.nan
    assert found_in(with_column(bags, flags), y)["labels of instances among the features"].level == "warning"
    flags[np.flatnonzero(flags == 1)[0]] = 0
    assert found_in(with_column(bags, flags), y)["labels of instances among the features"].level == "note"


def test_flags_that_tell_the_class_now_and_then_are_no_labels_of_instances(clean):
    """Nor are flags in few bags, and numbers that rise with the label."""
    bags, y = clean
    rng = np.random.default_rng(0)
    honest = witness_flags(bags, (y == 1) ^ (rng.random(60) < 0.1))
    larger = witness_flags(bags, y == 1) * rng.uniform(1, 2, bags.n_instances)
    columns = np.column_stack([bags.instances, honest, larger])
    assert found_in(Bags(columns, bags.offsets), y)["labels of instances among the features"].level == "ok"
    few = np.concatenate([np.flatnonzero(y == label)[:9] for label in (0, 1)])
    made = with_column(bags, witness_flags(bags, y == 1))[few]
    assert found_in(made, y[few])["labels of instances among the features"].text.startswith("Not tested")


def test_labels_of_instances_put_the_verdict_in_doubt(clean):
    bags, y = clean
    verdict = gmil.check_data(with_column(bags, witness_flags(bags, y == 1)), y).verdict
    assert verdict.endswith("but doubtful: labels of instances among the features")


@pytest.mark.parametrize("per_instance", [False, True])
def test_a_noisy_copy_of_the_label(clean, per_instance):
    """An AUC of about 0.95 alone, where the other features know much less."""
    bags, y = gmil.make_bags(80, n_features=8, separation=2, random_state=1, return_X_y=True)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=bags.n_instances if per_instance else len(bags))
    copy = of_instances(bags, 2.3 * y) + (noise if per_instance else of_instances(bags, noise))
    found = found_in(with_column(bags, copy), y)["one feature alone"]
    assert found.level == "warning"
    assert found.value > 0.9
    assert "column 8" in found.text
    assert found.with_it > found.without_it + 0.05


def test_row_numbers_bag_numbers_and_identifiers(clean):
    bags, y = clean
    rows = np.arange(bags.n_instances)
    owner = bags.segment_ids
    shuffled = np.random.default_rng(0).permutation(len(bags)) * 7.0
    columns = [rows, -rows / 10, owner, shuffled[owner], np.random.default_rng(1).permutation(bags.n_instances)]
    made = Bags(np.column_stack([bags.instances, *columns]), bags.offsets)
    assert_array_equal(np.flatnonzero(identifiers(made)), [8, 9, 10, 11, 12])
    found = found_in(with_column(bags, rows), y)["identifiers among the features"]
    assert (found.level, found.value) == ("warning", 1)
    assert found.without_it is not None


def test_a_sorted_file_and_folds_of_one_class(clean):
    bags, y = clean
    order = np.argsort(y, kind="stable")
    found = found_in(bags[order], y[order], folds=KFold(5))
    assert found["order of the bags"].level == "note"
    assert "Of 10 folds without shuffling, 10 would hold one class only" in found["order of the bags"].text
    assert found["classes in the folds"].level == "warning"
    assert found["classes in the folds"].value == 4
    mixed = found_in(bags[order], y[order], folds=KFold(5, shuffle=True, random_state=0))
    assert mixed["classes in the folds"].level == "ok"


def test_copies_with_a_little_noise(clean):
    bags, y = clean
    rng = np.random.default_rng(0)
    copies = Bags(bags[:8].instances + 1e-4 * rng.normal(size=bags[:8].instances.shape), bags[:8].offsets)
    both = Bags.concat([Bags(bags.instances, bags.offsets), copies])
    labels = np.concatenate([y, y[:8]])
    assert_array_equal(near_duplicates(both), [[i, 60 + i] for i in range(8)])
    found = found_in(both, labels, folds=np.arange(68) // 60)
    assert found["near-duplicate bags"].level == "warning"
    assert found["near-duplicate bags"].value == 16
    assert found["near-duplicate bags"].without_it is not None
    assert found["copies over folds"].value == 8
    assert joined_by(near_duplicates(both), 68)[60] == joined_by(near_duplicates(both), 68)[0]
    together = found_in(both, labels, groups=np.concatenate([np.arange(60), np.arange(8)]))
    assert together["near-duplicate bags"].level == "ok"


def test_patients_over_folds():
    """Bags of a patient resemble each other and share a label: folds that split patients know the answer."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 4)
    own = rng.normal(scale=3, size=(20, 6))
    bags = Bags.from_list([own[g] + 0.1 * rng.normal(size=(4, 6)) for g in groups])
    y = rng.permutation(np.arange(20) % 2)[groups]
    found = found_in(bags, y, groups, folds=np.arange(80) % 4)
    assert found["groups over folds"].level == "note"
    assert found["groups over folds"].with_it > found["groups over folds"].without_it + 0.1
    assert found["groups in the folds"].level == "warning"
    assert found["groups in the folds"].value == 20
    assert found["groups in the folds"].with_it > found["groups in the folds"].without_it + 0.1


def test_values_that_are_written_in_another_way(clean):
    bags, y = clean
    rounded = np.where(of_instances(bags, y)[:, None] == 1, bags.instances.round(2), bags.instances)
    found = found_in(Bags(rounded, bags.offsets), y)["how values are written"]
    assert found.level == "warning"
    assert "number of decimals" in found.text
    missing = bags.instances.copy()
    missing[of_instances(bags, y) == 1, 0] = np.nan
    assert "missing values" in found_in(Bags(missing, bags.offsets), y)["how values are written"].text
    assert decimals(np.array([1.0, -0.5, 0.123, np.pi])).tolist() == [0, 1, 3, 7]


def test_scaling_on_everything(clean):
    bags, y = clean
    X = bags.instances
    assert found_in(bags, y)["scaling on everything"].level == "ok"
    standard = Bags((X - X.mean(axis=0)) / X.std(axis=0), bags.offsets)
    ranged = Bags((X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)), bags.offsets)
    with_constants = Bags(np.hstack([standard.instances, np.full((len(X), X.shape[1]), 0.1)]), bags.offsets)
    for scaled in (standard, ranged, with_constants):
        assert found_in(scaled, y)["scaling on everything"].level == "note"


def with_gap(bags):
    """Return bags where the second value of the last feature is missing."""
    X = bags.instances.copy()
    X[1, -1] = np.nan
    return Bags(X, bags.offsets)


def test_one_missing_value_hides_no_leak(clean):
    bags, y = clean
    numbered, labelled = with_column(bags, np.arange(bags.n_instances)), with_column(bags, of_instances(bags, y))
    standard = Bags((bags.instances - bags.instances.mean(axis=0)) / bags.instances.std(axis=0), bags.offsets)
    X = standard.instances.copy()
    X[0], X[1] = np.nan, 0  # a gap that changes no mean
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    ranged = (X - np.nanmin(X, axis=0)) / (np.nanmax(X, axis=0) - np.nanmin(X, axis=0))
    assert_array_equal(np.flatnonzero(identifiers(with_gap(numbered))), [8])
    assert_array_equal(np.flatnonzero(is_label(with_gap(labelled), y)), [8])
    for scaled in (X, ranged, with_gap(standard).instances):
        assert found_in(Bags(scaled, bags.offsets), y)["scaling on everything"].level == "note"
    assert found_in(with_gap(bags), y)["scaling on everything"].text == "Features do not look scaled on all bags."


def test_a_flag_with_a_gap_is_no_scaled_feature(clean):
    bags, y = clean
    flags = np.random.default_rng(0).integers(0, 2, size=(bags.n_instances, 4)).astype(float)
    assert found_in(with_gap(Bags(flags, bags.offsets)), y)["scaling on everything"].level == "ok"


def test_a_feature_of_mostly_missing_values_is_no_number(clean):
    bags, _ = clean
    column = np.full(bags.n_instances, np.nan)
    column[[3, 50, 90]] = [1, 2, 3]
    assert not identifiers(with_column(bags, column)).any()


def test_folds_must_fit_the_bags(clean):
    bags, y = clean
    with pytest.raises(gmil.BagValidationError, match="folds must name the test fold of each of the 60 bags"):
        gmil.check_data(bags, y, folds=np.arange(59))


KNOWN_COPIES = {"mutagenesis_atoms", "mutagenesis_easy"}
"""Sets of molecules, some of which are there several times: their cards say so, and `dup_group` has the copies."""
MORE = sorted((Path(os.environ.get("GMIL_DATA_HOME", "")) / "more").glob("*.npz"))


@pytest.mark.slow
@pytest.mark.skipif(not MORE, reason="The further data sets are not here.")
@pytest.mark.parametrize("path", MORE, ids=lambda path: path.stem)
def test_no_warning_on_sets_that_are_clean(path):
    bags, y = gmil.read(path)
    case = Case(bags, np.asarray(y, dtype=int), None, 0, can_measure=False)
    warned = {each.name for each in findings_of(case) if each.level == "warning"}
    assert warned == ({"near-duplicate bags"} if path.stem in KNOWN_COPIES else set())
