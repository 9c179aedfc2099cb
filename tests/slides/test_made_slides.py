"""Generated cohorts: known regions, patients, every layout the same slides, and no dependence on their number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest
from scipy.ndimage import label as regions
from tests.slides.made import column

import gmil
from gmil.datasets.slide_files import LAYOUTS

SMALL = {"n_slides": 7, "n_patches": (30, 60), "n_features": 16, "tumour_share": 0.1}


def read(made, **how):
    return gmil.read(made.folder, labels=made.labels, bag=made.bag, label=made.label, group=made.group, **how)


def truth(made):
    return pacsv.read_csv(made.patch_labels).to_pydict()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_holds_the_same_slides(tmp_path, layout):
    if layout in ("mil_baseline", "clam", "slideflow"):  # tensors of PyTorch
        pytest.importorskip("torch")
    reference = read(gmil.make_slides(tmp_path / "reference", **SMALL))
    made = gmil.make_slides(tmp_path / "made", layout=layout, **SMALL)
    known = {"stamp": {"mpp": 0.25}, "slideflow": {"mpp": 0.25}, "nnmil": {"patch_size": 512}}
    found = read(made, **known.get(layout, {"patch_size": 512}))
    assert found.layout.lower() == layout
    assert found.y.tolist() == reference.y.tolist()
    assert found.groups.tolist() == reference.groups.tolist()
    np.testing.assert_array_equal(found.bags.instances, reference.bags.instances)
    if layout == "mil_baseline":
        assert found.bags.instance_info is None
        return
    for name in ("x", "y", "patch_size", "unit"):
        assert column(found.bags, name) == column(reference.bags, name)


def test_tumours_are_one_region_of_the_share_that_is_asked_for(tmp_path):
    made = gmil.make_slides(tmp_path / "s", **SMALL)
    found, marks = read(made), truth(made)
    assert column(found.bags, "x") == marks["x"]
    assert marks["slide"] == np.repeat(found.bags.bag_ids, found.bags.sizes).tolist()
    for corners, tumour, y in zip(
        found.bags.split(np.column_stack([marks["x"], marks["y"]])),
        found.bags.split(marks["tumour"]),
        found.y,
        strict=True,
    ):
        assert len(np.unique(corners, axis=0)) == len(corners)
        assert tumour.sum() == (max(1, round(0.1 * len(tumour))) if y else 0)
        grid = np.zeros(corners.max(axis=0) // 512 + 1, dtype=int)
        grid[tuple(corners[tumour == 1].T // 512)] = 1
        assert regions(grid)[1] == y


def test_a_slide_does_not_depend_on_how_many_there_are(tmp_path):
    few = read(gmil.make_slides(tmp_path / "few", **SMALL)).bags
    again = read(gmil.make_slides(tmp_path / "again", **SMALL)).bags
    other = read(gmil.make_slides(tmp_path / "other", random_state=1, **SMALL)).bags
    np.testing.assert_array_equal(few.instances, again.instances)
    assert few.instances.shape != other.instances.shape or (few.instances != other.instances).any()


def test_patients_have_one_label_and_several_slides(tmp_path):
    found = read(gmil.make_slides(tmp_path / "s", n_slides=30, n_patches=20, n_features=4))
    patients, counts = np.unique(found.groups, return_counts=True)
    assert set(counts) == {1, 2, 3}
    assert all(len(set(found.y[found.groups == patient])) == 1 for patient in patients)
    assert len(found.bags) == 30


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layout", "qupath"),
        ("n_slides", 0),
        ("n_patches", (5, 3)),
        ("n_features", 0),
        ("tumour_share", 0),
        ("positive_share", 2),
        ("most_slides_per_patient", 0),
        ("separation", -1),
        ("dtype", "int8"),
    ],
)
def test_bad_parameters_are_named(tmp_path, name, value):
    with pytest.raises(gmil.BagValidationError, match=f"^{name} must"):
        gmil.make_slides(tmp_path / "s", **{**SMALL, name: value})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_refused(tmp_path):
    with pytest.raises(gmil.GmilError, match="exists already"):
        gmil.make_slides(tmp_path)
    assert Path(gmil.make_slides(tmp_path / "s", **SMALL).folder).is_dir()
