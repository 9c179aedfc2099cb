"""Finished cross-validations of values, grades and times that are kept in a folder."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gmil
from gmil.paper.target_comparison import compare_values
from gmil.paper.target_store import KeptResults

PROTOCOL = {"cv": 3, "repeats": 2, "random_state": 5}
METHODS = {
    "regression": gmil.BagRegressor(),
    "ordinal": gmil.WeightedGMILOrdinal(scales=("standard",), views=("moments",), witness_model=False),
    "survival": gmil.BagCox(),
}


def made_of(target):
    options = {"n_classes": 3} if target == "ordinal" else {}
    made = gmil.make_bags(36, target=target, n_features=3, bag_size=(2, 3), random_state=0, **options)
    # Texts kept as objects.
    y = np.array(["1 mild", "2 some", "3 worst"], dtype=object)[made.y] if target == "ordinal" else made.y
    return made.bags, y, np.arange(36) // 2


def assert_same(one, other):
    for field in dataclasses.fields(one):
        if not field.name.endswith("seconds"):
            expected, found = getattr(one, field.name), getattr(other, field.name)
            assert type(found) is type(expected), field.name
            assert_array_equal(found, expected, err_msg=field.name)


@pytest.mark.parametrize("target", METHODS)
def test_what_is_read_is_what_was_found(target, tmp_path, monkeypatch):
    bags, y, groups = made_of(target)
    plain = gmil.cross_validate(METHODS[target], bags, y, groups=groups, **PROTOCOL)
    assert_same(plain, KeptResults(tmp_path, bags, y, groups).cross_validate(METHODS[target], **PROTOCOL))
    monkeypatch.setattr("gmil.paper.target_store.cross_validate", None)
    kept = KeptResults(tmp_path, bags, y, groups)
    assert_same(plain, kept.cross_validate(METHODS[target], **PROTOCOL))
    assert len(kept.found) == 2


def test_more_repeats_go_on_from_fewer(tmp_path):
    bags, y, _ = made_of("regression")
    KeptResults(tmp_path, bags, y).cross_validate(gmil.BagRegressor(), **PROTOCOL)
    kept = KeptResults(tmp_path, bags, y)
    kept.cross_validate(gmil.BagRegressor(), **PROTOCOL | {"repeats": 3})
    assert len(kept.found) == 2
    assert len(list(tmp_path.glob("rows/*.npz"))) == 3


def test_anything_that_results_depend_on_is_done_again(tmp_path):
    bags, y, groups = made_of("regression")
    protocol = PROTOCOL | {"repeats": 1}
    KeptResults(tmp_path, bags, y).cross_validate(gmil.BagRegressor(), **protocol)
    changed = [
        ((bags, y, groups), gmil.BagRegressor(), protocol),
        ((bags, y + 1), gmil.BagRegressor(), protocol),
        ((bags, y), gmil.BagRegressor(statistics=("mean",)), protocol),
        ((bags, y), gmil.SingleInstanceRegressor(), protocol),
        ((bags, y), gmil.BagRegressor(), protocol | {"cv": 4}),
        ((bags, y), gmil.BagRegressor(), protocol | {"random_state": 6}),
    ]
    for data, estimator, how in changed:
        kept = KeptResults(tmp_path, *data)
        kept.cross_validate(estimator, **how)
        assert not kept.found
    same = KeptResults(tmp_path, bags, y)
    same.cross_validate(gmil.BagRegressor(), **protocol, n_processes=1)
    assert len(same.found) == 1


@pytest.mark.parametrize("damage", ["cut", "other", "pickled", "empty"])
def test_damaged_files_are_done_again(damage, tmp_path):
    bags, y, _ = made_of("regression")
    first = KeptResults(tmp_path, bags, y).cross_validate(gmil.BagRegressor(), **PROTOCOL)
    path = sorted(tmp_path.glob("rows/*.npz"))[0]
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        folds = np.zeros((1, 5), dtype=int) if damage == "other" else np.array([{}, []], dtype=object)
        np.savez(path, folds=folds, predictions=folds, target="regression")
    kept = KeptResults(tmp_path, bags, y)
    assert_same(first, kept.cross_validate(gmil.BagRegressor(), **PROTOCOL))
    assert kept.damaged == [path.name]


def test_comparisons_are_the_same_with_what_was_kept(tmp_path):
    bags, y, groups = made_of("survival")
    methods, how = {"bag-cox": METHODS["survival"]}, {**PROTOCOL, "groups": groups}
    plain = compare_values(methods, bags, y, "survival", **how)
    for _ in range(2):
        kept = KeptResults(tmp_path, bags, y, groups)
        assert compare_values(methods, bags, y, "survival", kept=kept, **how).rows == plain.rows
    assert len(kept.found) == 6
