"""Split files of tools become folds; a patient on both ends of a split is told."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from tests.slides.made import patches, table, trident

import gmil
from gmil.errors import SlideWarning

NAMES = ["01", "02", "03", "04", "05", "06"]


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(NAMES):
        trident(tmp_path / "features_uni_v1" / f"{name}.h5", patches(4, seed=number) + number % 2)
    table(
        tmp_path / "features_uni_v1" / "labels.csv",
        ["case_id", "slide_id", "label", "fold"],
        *([f"P{i // 2}", name, i % 2, i % 3] for i, name in enumerate(NAMES)),
    )
    return tmp_path / "features_uni_v1"


def folds_of(found):
    return [(train.tolist(), test.tolist()) for train, test in found.folds]


def test_clam_splits_keep_zeros_and_unequal_columns(folder, tmp_path):
    for number, test in enumerate(["05", "06"]):
        rows = [[0, "01", "03", test], [1, "02", "", ""]]
        table(tmp_path / f"splits_{number}.csv", ["", "train", "val", "test"], *rows)
        marks = [["01", True, False, False], ["02", True, False, False], ["05", False, False, True]]
        table(tmp_path / f"splits_{number}_bool.csv", ["", "train", "val", "test"], *marks)
        table(tmp_path / f"splits_{number}_descriptor.csv", ["", "train", "val", "test"], ["a", 1, 2, 3])
    found = gmil.read(folder, splits=tmp_path)
    assert folds_of(found) == [([0, 1], [4]), ([0, 1], [5])]
    assert [val.tolist() for val in found.validation] == [[2], [2]]
    assert folds_of(gmil.read(folder, splits=tmp_path / "splits_1.csv")) == [([0, 1], [5])]
    assert folds_of(gmil.read(folder, splits=tmp_path / "splits_0_bool.csv")) == [([0, 1], [4])]


def test_stamp_splits_are_of_patients(folder, tmp_path):
    splits = [
        {"train_patients": ["P0", "P1"], "test_patients": ["P2"]},
        {"train_patients": ["P2"], "test_patients": ["P0"]},
    ]
    (tmp_path / "splits.json").write_text(json.dumps({"splits": splits}))
    found = gmil.scan(folder, group="case_id", splits=tmp_path / "splits.json")
    assert folds_of(found) == [([0, 1, 2, 3], [4, 5]), ([4, 5], [0, 1])]


def test_a_column_of_folds_tests_each_in_turn(folder):
    found = gmil.scan(folder, splits="fold")
    assert folds_of(found) == [([1, 2, 4, 5], [0, 3]), ([0, 2, 3, 5], [1, 4]), ([0, 1, 3, 4], [2, 5])]
    result = gmil.cross_validate(gmil.WeightedGMIL(random_state=0), found.bags, found.y, cv=found.folds)
    assert result.folds.tolist() == [[0, 1, 2, 0, 1, 2]]
    bags = found.bags.load()
    assert len(cross_val_score(gmil.BagStatistics(), bags, found.y, cv=found.folds)) == 3


def test_a_patient_who_is_trained_on_and_tested_is_told(folder, tmp_path):
    rows = [["01", "02"], ["03", ""], ["04", ""]]
    path = table(tmp_path / "splits_0.csv", ["train", "test"], *rows)
    with pytest.warns(SlideWarning, match="In split 0, 1 group is trained on and tested: P0"):
        gmil.read(folder, group="case_id", splits=path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gmil.read(folder, splits=path)  # nobody knows whose slides they are


def test_a_slide_in_two_parts_of_a_split_is_refused(folder, tmp_path):
    path = table(tmp_path / "splits_0.csv", ["train", "test"], ["01", "01"], ["02", ""])
    with pytest.raises(gmil.BagValidationError, match="1 bag both trained on and tested, such as bag 0"):
        gmil.read(folder, splits=path)


def test_names_of_other_slides_are_told(folder, tmp_path):
    path = table(tmp_path / "splits_0.csv", ["train", "test"], ["01", "02"], ["x9", ""])
    with pytest.warns(SlideWarning, match="1 entry of .* without a bag: x9"):
        assert folds_of(gmil.read(folder, splits=path)) == [([0], [1])]
    path = table(tmp_path / "splits_1.csv", ["train", "test"], ["1.0", "2.0"])  # as pandas writes 01 and 02
    with (
        pytest.warns(SlideWarning, match=r"1\.0, 2\.0"),
        pytest.raises(gmil.BagValidationError, match="leaves no bags to test"),
    ):
        gmil.read(folder, splits=path)


def test_what_is_no_split_is_told(folder, tmp_path):
    with pytest.raises(gmil.GmilError, match="is neither a file nor a folder, nor a column of"):
        gmil.read(folder, splits="nothing")
    with pytest.raises(gmil.FormatError, match="is no file of splits"):
        gmil.read(folder, splits=folder / "labels.csv")
    with pytest.raises(gmil.GmilError, match=r"holds no splits_0\.csv"):
        gmil.read(folder, splits=folder)
    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(gmil.FormatError, match="cannot be read as JSON"):
        gmil.read(folder, group="case_id", splits=tmp_path / "s.json")


def test_given_folds_that_split_a_group_are_told_by_cross_validate():
    bags, y = gmil.make_bags(8, random_state=0, return_X_y=True)
    halves = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
    with pytest.warns(UserWarning, match="1 group is trained on and tested: 3"):
        gmil.cross_validate(gmil.BagStatistics(), bags, y, cv=halves, groups=[0, 0, 1, 3, 3, 4, 5, 5])
    gmil.cross_validate(gmil.BagStatistics(), bags, y, cv=halves, groups=[0, 0, 1, 1, 3, 4, 5, 5])
