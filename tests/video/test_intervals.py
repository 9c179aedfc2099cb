"""The interval of the area under the curve over folds."""

from __future__ import annotations

import numpy as np
import pytest

from gmil.model_selection.metrics import auc
from gmil.model_selection.scoring import fold_area


def test_the_area_is_the_mean_over_folds_that_have_both_classes():
    positive = np.array([True, False, True, False, True, True])
    decisions = np.array([1.0, 0.0, 0.0, 1.0, 3.0, 2.0])
    folds = np.array([0, 0, 1, 1, 2, 2])
    found = fold_area(positive, decisions, folds)
    assert found.value == 0.5  # 1 and 0; the third fold has no area
    assert found.low <= 0.5 <= found.high


def test_the_interval_draws_whole_groups():
    rng = np.random.default_rng(0)
    positive = np.repeat(rng.random(20) < 0.5, 6)
    decisions = positive + np.repeat(rng.normal(0, 1, 20), 6)  # videos of one group err together
    folds, groups = np.zeros(120, dtype=int), np.repeat(np.arange(20), 6)
    alone, together = fold_area(positive, decisions, folds), fold_area(positive, decisions, folds, groups)
    assert alone.value == together.value == pytest.approx(auc(positive, decisions))
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
