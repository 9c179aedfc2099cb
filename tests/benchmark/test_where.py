"""Scores of instances on the leaderboard: means over families of sets, and the sentences about them."""

from __future__ import annotations

from gmil.benchmark.where import notes_on_where, where_table

FIGURES = {"instance_auc": 0.8, "instance_average_precision": 0.4, "instance_auc_within": 0.6}


def a_leaderboard(**changes):
    sets = ["birds_a", "birds_b", "newsgroups_a", "ucf-crime", "slides", "musk1"]
    cells = [{"method": "one", "set": name, "setting": "default", **FIGURES} for name in sets[:5]]
    cells[0] |= changes
    methods = [{"name": "one", "label": "One", "control": False}, {"name": "two", "label": "Two", "control": False}]
    return {"methods": methods, "sets": [{"name": name} for name in sets], "cells": cells}


def test_figures_are_means_over_the_sets_of_a_family():
    (row,) = where_table(a_leaderboard(instance_auc=0.9, instance_auc_within=None))
    assert row["method"] == "one"
    assert row["families"]["Birds"] == {
        **FIGURES,
        "instance_auc": 0.85,
    }  # a set without a mixed bag has no figure within
    assert row["families"]["slides"] == FIGURES


def test_a_family_of_which_a_set_is_missing_is_left_out():
    (row,) = where_table(a_leaderboard(instance_auc=None))
    assert list(row["families"]) == ["Newsgroups", "UCF-Crime", "slides"]


def test_methods_with_all_families_come_first():
    found = a_leaderboard()
    found["cells"] += [{"method": "two", "set": "slides", "setting": "default", **FIGURES, "instance_auc": 1.0}]
    assert [row["method"] for row in where_table(found)] == ["one", "two"]


def test_sentences_are_about_the_methods_that_were_asked_for():
    table = where_table(a_leaderboard())
    (told,) = notes_on_where({"one": "The one", "other": "Another"}, table)
    assert told.startswith("The one, for where: AUC of instances over all bags, and within bags")
    assert "Birds 0.80 and 0.60, Newsgroups 0.80 and 0.60" in told


def test_a_family_without_a_figure_within_bags_is_left_out():
    board = a_leaderboard()
    for cell in board["cells"]:
        cell["instance_auc_within"] = None
    assert where_table(board) == []
