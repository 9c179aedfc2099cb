"""Folds: the ones that scikit-learn makes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from gmil.model_selection.folds import fold_numbers, stratified_folds


def folds_by_scikit_learn(y: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    folds = np.full(len(y), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        for fold, (_, test) in enumerate(splitter.split(np.zeros(len(y)), y)):
            folds[test] = fold
    return folds


@given(st.lists(st.sampled_from([3, 1, 2]), min_size=12, max_size=60), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_stratified_folds_are_those_of_scikit_learn(labels, n_folds, seed):
    y = np.array(labels)
    if np.unique(y, return_counts=True)[1].max() < n_folds:
        return
    np.testing.assert_array_equal(stratified_folds(y, n_folds, seed), folds_by_scikit_learn(y, n_folds, seed))


@pytest.mark.parametrize("y", [np.array(["b", "a"] * 10), np.array([True, False, False] * 8)])
def test_any_labels_are_stratified(y):
    np.testing.assert_array_equal(fold_numbers(4, y, None, 7), folds_by_scikit_learn(y, 4, 7))


def test_folds_of_unequal_groups_all_have_bags():
    groups = np.array([3, 3, 4, 1, 1, 1, 2, 1, 0, 1, 2, 2])
    y = np.array([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0])
    first = StratifiedGroupKFold(5, shuffle=True, random_state=369)
    with pytest.warns(UserWarning, match="The least populated class"):
        assert min(len(test) for _, test in first.split(groups, y, groups)) == 0  # as they are drawn first
    folds = fold_numbers(5, y, groups, 369)
    assert sorted(set(folds.tolist())) == [0, 1, 2, 3, 4]
    assert all(len(set(folds[groups == group].tolist())) == 1 for group in range(5))
    np.testing.assert_array_equal(fold_numbers(5, y, groups, 369), folds)
