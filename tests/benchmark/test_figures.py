"""Figures and statistics against examples that were computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from gmil.benchmark.figures import brier, cross_validation, figures
from gmil.benchmark.leaderboard import scores_of
from gmil.benchmark.ranking import Scores, against, ranks, verdicts_on_set
from gmil.benchmark.traits import traits_of, witness_rate

Y = np.array([0, 0, 1, 1, 0, 1, 0, 1], dtype=np.int8)
FOLDS = np.array([0, 0, 0, 0, 1, 1, 1, 1], dtype=np.int8)


def a_row(**changes):
    row = {
        "status": "ok",
        "reason": None,
        "n_folds": 2,
        "seed": 0,
        "repeat": 0,
        "folds": FOLDS,
        "predictions": np.array([0, 1, 1, 1, 0, 1, 0, 0], dtype=np.int8),
        "decisions": np.array([-1, 0.5, 1, 2, -2, 3, -1, -0.5], dtype=np.float32),
        "instance_scores": None,
        "cpu_seconds": 4.0,
        "gpu_seconds": None,
        "peak_bytes": 10.0,
    }
    return {**row, **changes}


SHARED = {"y": Y, "groups": None, "sizes": np.full(8, 2), "instance_y": None, "n_features": 3, "sparse": False}


def test_figures_by_hand():
    found = figures([a_row()], SHARED)
    assert found["accuracy"] == pytest.approx((3 / 4 + 3 / 4) / 2)
    assert found["balanced_accuracy"] == pytest.approx(0.75)
    assert found["auc"] == 1.0  # in each fold all positive bags are above all negative ones
    assert found["repeats"] == 1
    assert (found["cpu_seconds"], found["gpu_seconds"], found["peak_bytes"]) == (4.0, None, 10.0)


def test_seconds_are_the_median_and_memory_the_most():
    rows = [a_row(repeat=r, cpu_seconds=s, peak_bytes=b) for r, (s, b) in enumerate([(1, 5), (9, 2), (2, 7)])]
    found = figures(rows, SHARED)
    assert (found["cpu_seconds"], found["peak_bytes"], found["repeats"]) == (2.0, 7, 3)


def test_an_empty_cell_has_its_reason_and_no_figure():
    found = figures([a_row(status="failed", reason="more than 30 CPU minutes a k-fold", cpu_seconds=None)], SHARED)
    assert found["reason"] == "more than 30 CPU minutes a k-fold"
    assert found["auc"] is found["accuracy"] is found["cpu_seconds"] is None


def test_instances_are_measured_where_they_have_labels():
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, -1, 1], dtype=np.int8)
    scores = np.linspace(0, 1, 16).astype(np.float32)
    found = figures([a_row(instance_scores=scores)], {**SHARED, "instance_y": labels})
    known = labels >= 0
    assert found["instance_auc"] == pytest.approx(roc_auc_score(labels[known], scores[known]))
    assert found["instance_auc_within"] == 1.0  # in every bag with both kinds, scores rise with the labels
    assert figures([a_row()], {**SHARED, "instance_y": labels})["instance_auc"] is None


def test_brier_scores_know_nothing_of_their_own_fold():
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 2).astype(np.int8)
    logits = 3 * (y - 0.5) + rng.normal(size=200)
    row = a_row(
        folds=(np.arange(200) // 2 % 2).astype(np.int8),
        predictions=(logits > 0).astype(np.int8),
        decisions=(0.1 * logits).astype(np.float32),
    )
    shared = {**SHARED, "y": y, "sizes": np.ones(200)}
    value = brier(cross_validation([row], shared))
    best = brier_score_loss(y, 1 / (1 + np.exp(-3 * logits)))  # log-odds of two normal distributions
    assert best - 0.01 < value < best + 0.02
    # Decisions on the other fold alone calibrate: those that are worth nothing there are worth nothing here.
    mirrored = dict(row, decisions=np.where(row["folds"] == 0, 1, -1).astype(np.float32) * row["decisions"])
    assert brier(cross_validation([mirrored], shared)) > 0.24


SCORES = Scores(
    "auc",
    ("ours", "second", "slow", "new"),
    ("a", "b", "c"),
    np.array([[0.9, 0.8, np.nan, 0.7], [0.9, 0.95, 0.7, 0.6], [0.9, 0.895, 0.85, np.nan]]),
    np.array([[False, False, True, False], [False] * 4, [False] * 4]),
)


def test_empty_cells_rank_last_and_methods_with_untried_ones_have_no_rank():
    ready = SCORES.ready()
    assert ready.sets == ("a", "b", "c")
    assert ready.methods == (
        "ours",
        "second",
        "slow",
    )  # "new" was not tried on c
    found = ranks(ready, "ours")
    assert [row["method"] for row in found["rows"]] == ["ours", "second", "slow"]
    assert [row["rank"] for row in found["rows"]] == pytest.approx([4 / 3, 5 / 3, 3], abs=1e-6)
    assert found["n_sets"] == 3


def test_a_method_may_take_a_fifth_of_the_sets_from_others():
    values = np.full((5, 3), 0.5)
    values[0, 1] = values[0, 2] = values[1, 2] = np.nan
    scores = Scores("auc", ("one", "two", "three"), tuple("abcde"), values, np.zeros((5, 3), dtype=bool))
    ready = scores.ready()
    assert (ready.methods, ready.sets) == (("one", "two"), ("b", "c", "d", "e"))
    assert scores.of(["three"], ["a", "b"]).ready().methods == ()


def test_complete_rows_have_no_empty_cell():
    assert SCORES.complete().methods == ("ours", "second")


def test_ranks_need_two_methods_and_two_sets():
    assert ranks(SCORES.of(["ours"], ["a", "b"]), "ours") is None
    assert ranks(SCORES.of(["ours", "second"], ["a"]), "ours") is None


def test_wins_ties_and_losses_have_a_zone():
    rows = {row["method"]: row for row in against(SCORES, "ours")}
    assert [rows["second"][name] for name in ("wins", "ties", "losses")] == [1, 1, 1]
    assert [rows["slow"][name] for name in ("wins", "ties", "losses")] == [3, 0, 0]  # one of them is empty
    assert [rows["new"][name] for name in ("wins", "ties", "losses")] == [2, 0, 0]
    assert rows["second"]["difference"] == pytest.approx((0.1 - 0.05 + 0.005) / 3)
    (back,) = [row for row in against(SCORES, "slow") if row["method"] == "ours"]
    assert [back[name] for name in ("wins", "ties", "losses")] == [0, 0, 3]  # its own empty cell counts against it


def test_a_small_brier_score_is_good():
    scores = Scores("brier", ("one", "two"), ("a", "b"), np.array([[0.1, 0.2], [0.1, 0.3]]), np.zeros((2, 2), bool))
    assert ranks(scores, "one")["rows"][0]["method"] == "one"
    assert against(scores, "one")[0]["wins"] == 2


def test_witnesses_are_counted_among_known_instances_of_positive_bags():
    labels = np.array([1, 0, 0, 0, -1, -1, 1, -1])
    assert witness_rate([1, 0, 1, 1], [2, 2, 2, 2], labels) == pytest.approx((1 / 2 + 1) / 2)
    assert witness_rate([0, 1], [1, 1], None) is None


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"sparse": True}, "text"),
        ({"instance_y": np.array([1] + [0] * 159), "sizes": np.full(8, 20)}, "few_witnesses"),
        ({"sizes": np.full(8, 31)}, "large_bags"),
        ({"n_features": 8}, "wide"),
        ({}, "narrow"),
    ],
)
def test_kinds_of_bags(change, kind):
    assert traits_of({**SHARED, "y": np.array([1] + [0] * 7), **change})["kind"] == kind


def test_who_joins_the_ranks_does_not_depend_on_who_could_not():
    """The second and the fourth were tried on the same sets: the third, which leaves too few, stops neither."""
    values = np.full((10, 4), 0.5)
    values[8:, 1] = values[:2, 2] = values[8:, 3] = np.nan
    scores = Scores("auc", ("a", "b", "c", "d"), tuple("0123456789"), values, np.zeros((10, 4), dtype=bool))
    assert (scores.ready().methods, len(scores.ready().sets)) == (("a", "b", "d"), 8)


def test_nobody_is_best_where_all_is_empty():
    nothing = Scores("auc", ("one", "two"), ("a", "b"), np.full((2, 2), np.nan), np.ones((2, 2), dtype=bool))
    assert ranks(nothing, "one") is None


def test_a_figure_that_a_method_does_not_have_is_not_an_empty_cell():
    cells = [
        {"method": m, "set": s, "auc": auc, "accuracy": accuracy, "reason": reason}
        for m, auc, accuracy, reason in [
            ("worst", 0.5, 0.5, None),
            ("ours", 0.9, 0.9, None),
            ("labels", None, 0.8, None),
            ("slow", None, None, "more than 30 CPU minutes a k-fold"),
        ]
        for s in ("a", "b", "c")
    ]
    by_auc, by_accuracy = (scores_of(cells, measure, ["a", "b", "c"]) for measure in ("auc", "accuracy"))
    assert [row["method"] for row in ranks(by_auc.ready(), "ours")["rows"]] == ["ours", "worst", "slow"]
    assert [row["method"] for row in ranks(by_accuracy.ready(), "ours")["rows"]] == ["ours", "labels", "worst", "slow"]
    assert [row["method"] for row in against(by_auc, "ours")] == ["worst", "slow"]


def test_a_method_is_compared_by_the_repeats_that_it_has():
    rng = np.random.default_rng(0)
    folds = {"ours": rng.uniform(0.7, 0.9, (5, 10)), "other": rng.uniform(0.6, 0.8, (5, 10))}
    alone = verdicts_on_set(folds, "ours", 100)["other"]
    with_slow = verdicts_on_set({**folds, "slow": folds["other"][:1]}, "ours", 100)
    assert (with_slow["other"]["n_repeats"], with_slow["slow"]["n_repeats"]) == (5, 1)
    assert with_slow["other"]["interval"] == alone["interval"]
