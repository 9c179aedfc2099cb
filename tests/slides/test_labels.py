"""Slides are joined to tables by exact names; whatever does not fit is told, from both ends."""

from __future__ import annotations

import sys
import zipfile

import numpy as np
import pytest
from tests.slides.made import patches, table, trident

import gmil
from gmil.errors import SlideWarning
from gmil.slides.names import near_miss, resolved, without_suffix


@pytest.fixture
def folder(tmp_path):
    """Slides 0012, 0013 and one of TCGA, whose name has dots."""
    for number, name in enumerate(["0012", "0013", "TCGA-AA-0001-01Z-00-DX1.6a1b-2c3d"]):
        trident(tmp_path / "features_uni_v1" / f"{name}.h5", patches(3 + number, seed=number))
    return tmp_path / "features_uni_v1"


TCGA = "TCGA-AA-0001-01Z-00-DX1.6a1b-2c3d"


def rows(path, *lines, names=("case_id", "slide_id", "label")):
    return table(path, names, *lines)


def test_ids_keep_zeros_and_dots_and_lose_known_suffixes_alone(folder, tmp_path):
    labels = rows(tmp_path / "l.csv", ["P2", f"{TCGA}.svs", "a"], ["P1", "0013.ome.tif", "b"], ["P1", "0012", "a"])
    found = gmil.read(folder, labels=labels, bag="slide_id", group="case_id")
    assert found.bags.bag_ids.tolist() == ["0012", "0013", TCGA]
    assert found.y.tolist() == ["a", "b", "a"]
    assert found.groups.tolist() == ["P1", "P1", "P2"]


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("a.ome.tiff", "a"),
        ("a.b.svs", "a.b"),
        ("a_patches.h5", "a"),
        ("a.b", "a.b"),
        ("0012", "0012"),
        (".svs", ".svs"),
        ("x.1.MRXS", "x.1"),
    ],
)
def test_suffixes(name, bare):
    assert without_suffix(name) == bare


def test_a_path_in_a_table_is_its_last_name():
    assert resolved("/data/of/others/a.pt", {"a"}) == "a"
    assert resolved("C:\\data\\a.pt", {"a"}) == "a"
    assert resolved("b/a", {"b/a", "a"}) == "b/a"
    assert resolved("c", {"a"}) is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("12", "differ in zeros"),
        ("12.0", "differ in zeros"),
        ("tcga-aa-0001-01z-00-dx1.6a1b-2c3d", "differ in upper and lower case"),
        ("TCGA-AA-0001-01Z-00-DX1", "begins with 'TCGA-AA-0001-01Z-00-DX1'"),
        ("TCGA-AA-0001-01Z-00-DX2.6a1b-2c3d", "is near"),
    ],
)
def test_near_misses_are_explained(text, hint, folder, tmp_path):
    assert hint in near_miss(text, {"0012", "0013", TCGA})
    labels = rows(tmp_path / "l.csv", ["P1", text, "a"])
    with pytest.raises(gmil.BagValidationError, match=r"No entry of the column 'slide_id'") as error:
        gmil.read(folder, labels=labels, bag="slide_id")
    assert hint in str(error.value)


def test_both_ends_of_a_mismatch_are_counted_and_named(folder, tmp_path):
    labels = rows(tmp_path / "l.csv", ["P1", "0012", "a"], ["P1", "13", "b"], ["P3", TCGA, "b"])
    with pytest.warns(SlideWarning) as told:
        bags, y = gmil.read(folder, labels=labels, bag="slide_id")
    text = str(told[0].message)
    assert "1 of 3 slides have no row" in text
    assert "0013" in text
    assert "1 of 3 rows of" in text
    assert "'13' and '0013' differ in zeros" in text
    assert bags.bag_ids.tolist() == ["0012", TCGA]
    assert y.tolist() == ["a", "b"]


def test_a_slide_without_a_label_is_left_out(folder, tmp_path):
    labels = rows(tmp_path / "l.csv", ["P1", "0012", "1"], ["P1", "0013", "NA"], ["P3", TCGA, "0"])
    with pytest.warns(SlideWarning, match="1 slide has no label: 0013"):
        assert gmil.read(folder, labels=labels)[1].tolist() == [1, 0]


def test_two_rows_for_a_slide_are_refused(folder, tmp_path):
    labels = rows(tmp_path / "l.csv", ["P1", "0012", "a"], ["P1", "0012.svs", "b"])
    with pytest.raises(gmil.BagValidationError, match="several rows for slide 0012"):
        gmil.read(folder, labels=labels)


def test_slides_of_a_patient_are_one_bag_on_request(folder, tmp_path):
    labels = rows(tmp_path / "l.csv", ["P2", TCGA, "1"], ["P1", "0012", "0"], ["P2", "0013", "1"])
    bags, y = gmil.read(folder, labels=labels, bag="case_id")
    assert bags.bag_ids.tolist() == ["P1", "P2"]
    assert bags.sizes.tolist() == [3, 4 + 5]
    assert y.tolist() == [0, 1]
    assert bags.instance_info.column("slide").to_pylist() == ["0012"] * 3 + ["0013"] * 4 + [TCGA] * 5
    lazy, _ = gmil.scan(folder, labels=labels, bag="case_id")
    np.testing.assert_array_equal(lazy[1], bags[1])
    assert lazy[[1]].instance_info.column("slide").to_pylist() == ["0013"] * 4 + [TCGA] * 5


def test_a_label_that_varies_within_a_patient_is_refused(folder, tmp_path):
    labels = rows(tmp_path / "l.csv", ["P1", "0012", "0"], ["P1", "0013", "1"], ["P2", TCGA, "1"])
    with pytest.raises(gmil.BagValidationError, match="The label 'label' of 'P1' varies between its slides"):
        gmil.read(folder, labels=labels, bag="case_id")


def test_a_missing_group_or_column_is_named(folder, tmp_path):
    labels = rows(tmp_path / "l.csv", ["", "0012", "0"], ["P1", "0013", "1"], ["P2", TCGA, "1"])
    with pytest.raises(gmil.BagValidationError, match=r"The group 'case_id' of 0012 is missing"):
        gmil.read(folder, labels=labels, group="case_id")
    with pytest.raises(gmil.BagValidationError, match=r"The group column 'site' is not in .* Name another with group="):
        gmil.read(folder, labels=labels, group="site")
    with pytest.raises(gmil.BagValidationError, match=r"label column 'msi' is not there"):
        gmil.read(folder, labels=labels, label="msi")


def test_labels_in_the_folder_are_found(folder):
    rows(folder / "labels.csv", ["P1", "0012", "0"], ["P1", "0013", "1"], ["P2", TCGA, "1"])
    assert gmil.read(folder)[1].tolist() == [0, 1, 1]
    assert gmil.read(folder, labels="labels.csv")[1].tolist() == [0, 1, 1]


def test_a_folder_without_labels_has_none(folder):
    bags, y = gmil.scan(folder)
    assert y is None
    assert len(bags) == 3
    with pytest.raises(gmil.BagValidationError, match=r"group needs a table of slides"):
        gmil.scan(folder, group="case_id")


@pytest.mark.parametrize("name", ["group", "layout", "mpp", "patch_size", "splits"])
def test_what_slides_alone_have_is_refused_of_other_data(name, tmp_path):
    frame = {"bag": [1, 2], "label": [0, 1], "x": [0.0, 1.0]}
    value = {"mpp": 0.5, "patch_size": 256}.get(name, "trident")
    with pytest.raises(gmil.BagValidationError, match=f"^{name} is for folders of slides"):
        gmil.read(frame, **{name: value})
    bags, y = gmil.make_bags(4, random_state=0, return_X_y=True)
    gmil.write(tmp_path / "b.parquet", bags, y)
    with pytest.raises(gmil.BagValidationError, match=f"^{name} is for folders of slides"):
        gmil.scan(tmp_path / "b.parquet", **{name: value})


def test_a_folder_of_numpy_files_is_read_as_before(tmp_path):
    np.save(tmp_path / "a.npy", patches(3))
    trident(tmp_path / "features_x" / "b.h5", patches(3))
    bags, y = gmil.read(tmp_path)
    assert bags.bag_ids.tolist() == ["a"]
    assert y is None
    labels = table(tmp_path / "other.csv", ["bag", "label"], ["a", 7])
    assert gmil.read(tmp_path, labels=labels)[1].tolist() == [7]


def test_tables_that_cannot_be_read_are_told(folder, tmp_path):
    with pytest.raises(gmil.GmilError, match=r"the table of slides, does not exist"):
        gmil.read(folder, labels=tmp_path / "none.csv")
    (tmp_path / "clini.ods").write_bytes(b"PK")
    with pytest.raises(gmil.FormatError, match=r"a spreadsheet that is not read\. Save it as \.xlsx or CSV"):
        gmil.read(folder, labels=tmp_path / "clini.ods")
    (tmp_path / "l.csv").write_text("slide_id,label\n0012,1,2\n")
    with pytest.raises(gmil.FormatError, match="row 1: 3 cells, but 2 columns"):
        gmil.read(folder, labels=tmp_path / "l.csv")


def sheet(path, *rows):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("notes").append(["not read"])
    book.save(path)
    return path


def test_a_table_of_patients_may_be_a_spreadsheet(folder, tmp_path):
    clini = sheet(tmp_path / "clini.xlsx", ["PATIENT", "isMSIH", "age"], [7, "yes", 61.5], [8, "no", None], [None] * 3)
    slides = rows(tmp_path / "slide.csv", ["7", "0012"], ["8", "0013"], ["7", TCGA], names=("PATIENT", "FILENAME"))
    found = gmil.read(folder, labels=[clini, slides], label="isMSIH", group="PATIENT")
    assert found.y.tolist() == ["yes", "no", "yes"]
    assert found.groups.tolist() == ["7", "8", "7"]  # a number without ".0"


def test_spreadsheets_that_cannot_be_read_are_told(folder, tmp_path, monkeypatch):
    named = sheet(tmp_path / "more.xlsx", ["slide_id", "label"], ["0012", "a", "?"])
    with pytest.raises(gmil.FormatError, match="row 1: 3 cells, but 2 columns"):
        gmil.read(folder, labels=named)
    (tmp_path / "broken.xlsx").write_bytes(b"PK")
    with pytest.raises(gmil.FormatError, match=r"broken\.xlsx cannot be read as a spreadsheet"):
        gmil.read(folder, labels=tmp_path / "broken.xlsx")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"0" * 4096)
    claimed = (tmp_path / "bomb.xlsx").read_bytes().replace((4096).to_bytes(4, "little"), b"\xff\xff\xff\x7f")
    (tmp_path / "bomb.xlsx").write_bytes(claimed)
    with pytest.raises(gmil.FormatError, match=r"bomb\.xlsx is damaged: what it holds claims"):
        gmil.read(folder, labels=tmp_path / "bomb.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        gmil.GmilError, match=r"needs openpyxl\. Install it with pip install 'gmil\[slides\]'\. Or save it as CSV"
    ):
        gmil.read(folder, labels=named)
