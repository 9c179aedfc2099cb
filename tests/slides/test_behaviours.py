"""The ten things that a reader of folders of slides must do, one test for each."""

from __future__ import annotations

import json
import pickle

import h5py
import numpy as np
import pytest
from tests.slides.made import clam, column, lattice, patches, provenance, save_tensor, slideflow, stamp, table, trident

import gmil
from gmil.errors import SlideWarning


def test_1_the_layout_is_recognised_and_told_and_ambiguity_is_an_error(tmp_path, caplog):
    trident(tmp_path / "features_uni_v1" / "a.h5", patches(3))
    labels = table(tmp_path / "l.csv", ["slide_id", "label", "case_id"], ["a", 1, "P"])
    with caplog.at_level("INFO", logger="gmil.slides"):
        assert gmil.read(tmp_path / "features_uni_v1", labels=labels, group="case_id").layout == "TRIDENT"
    assert "is read as TRIDENT: 1 slide" in caplog.text
    assert gmil.read(tmp_path / "features_uni_v1", labels=labels, group="case_id", layout="CLAM").layout == "CLAM"
    # A folder with both kinds of files can be two things; a bare folder can be anything.
    clam(tmp_path / "two" / "h5_files" / "a.h5", patches(3))
    trident(tmp_path / "two" / "features_uni_v1" / "a.h5", patches(3))
    with pytest.raises(gmil.FormatError, match=r"can be read as TRIDENT and as CLAM\. Name one of 'trident' or 'clam'"):
        gmil.read(tmp_path / "two")
    clam(tmp_path / "bare" / "a.h5", patches(3))
    with pytest.raises(gmil.FormatError, match=r"is of no layout that is known.*those of trident.*with layout="):
        gmil.read(tmp_path / "bare")
    assert gmil.read(tmp_path / "bare", layout="nnmil")[0].n_instances == 3
    with pytest.raises(gmil.BagValidationError, match="layout must be one of trident, clam"):
        gmil.read(tmp_path / "bare", layout="qupath")


def test_2_shapes_are_normalised(tmp_path):
    folder = tmp_path / "h5_files"
    clam(folder / "flat.h5", patches(3))
    clam(folder / "deep.h5", patches(4)[None], lattice(4))
    clam(folder / "holes.h5", np.where(np.arange(5)[:, None] == 2, np.nan, patches(5)))
    with h5py.File(folder / "none.h5", "w") as file:
        file["features"], file["coords"] = np.empty((0, 6)), np.empty((0, 2))
    with pytest.warns(SlideWarning) as told:
        bags, _ = gmil.read(tmp_path)
    assert bags.bag_ids.tolist() == ["deep", "flat", "holes"]
    assert bags.sizes.tolist() == [4, 3, 5]
    texts = [str(warning.message) for warning in told]
    assert any("1 slide has no patches: none" in text for text in texts)
    assert any("1 patch has NaN or infinity, in 1 slide: holes" in text for text in texts)
    with h5py.File(folder / "vector.h5", "w") as file:
        file["features"] = patches(1)[0]
    with pytest.raises(gmil.FormatError, match=r"vector\.h5 .*an embedding of the whole slide"):
        gmil.read(tmp_path)
    with h5py.File(folder / "vector.h5", "w") as file:
        file["features"] = np.zeros((2, 3, 6))
    with pytest.raises(gmil.FormatError, match=r"must hold patches x features, got shape \(2, 3, 6\)"):
        gmil.read(tmp_path)


@pytest.mark.parametrize(
    ("stored", "used"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int32", "float64")]
)
def test_3_types_stay_on_disk_and_are_widened_at_use(tmp_path, stored, used):
    X = (4 * patches(5)).astype(stored)
    trident(tmp_path / "features_x" / "a.h5", X)
    lazy, _ = gmil.scan(tmp_path / "features_x")
    assert lazy.source.slides[0].dtype == stored
    assert lazy.dtype == used
    assert next(lazy.source.read(0, 2)).dtype == used
    bags = lazy.load()
    assert bags.dtype == used
    np.testing.assert_array_equal(bags.instances, X.astype(used))


def test_4_coordinates_have_one_frame(tmp_path):
    corners = lattice(6)  # level-0 pixels, 0.25 um each
    trident(tmp_path / "trident" / "features_x" / "a.h5", patches(6), corners)
    clam(tmp_path / "clam" / "h5_files" / "a.h5", patches(6), corners)
    stamp(tmp_path / "stamp" / "a.h5", patches(6), corners * 0.25, tile_size_um=128.0, unit="um")
    slideflow(tmp_path / "slideflow", "a", patches(6), corners + 256)
    (tmp_path / "slideflow" / "bags_config.json").write_text(json.dumps({"tile_um": 128}))
    for layout, how in (
        ("trident", {}),
        ("clam", {"patch_size": 512}),
        ("stamp", {"mpp": 0.25}),
        ("slideflow", {"mpp": 0.25}),
    ):
        info = gmil.read(tmp_path / layout, **how)[0].instance_info
        assert info.column("x").to_pylist() == corners[:, 0].tolist(), layout
        assert info.column("y").to_pylist() == corners[:, 1].tolist(), layout
        assert info.column("patch_size").to_pylist() == [512.0] * 6, layout
        assert info.column("unit").to_pylist() == ["px"] * 6, layout
    for name in ("mpp", "patch_size"):
        with pytest.raises(gmil.BagValidationError, match=f"{name} must be a number above 0"):
            gmil.read(tmp_path / "stamp", **{name: 0})


def test_5_rows_of_features_and_coordinates_agree(tmp_path):
    trident(tmp_path / "features_x" / "a.h5", patches(6), lattice(5))
    with pytest.raises(gmil.FormatError, match=r"has 6 patches, but .* has coordinates of 5"):
        gmil.scan(tmp_path / "features_x")
    trident(tmp_path / "features_x" / "a.h5", patches(6), np.zeros(12, int))
    assert column(gmil.read(tmp_path / "features_x")[0], "x") == [0.0] * 6


def test_5_labels_of_patches_are_joined_by_place_and_never_by_row(tmp_path):
    from gmil.slides.patch_labels import read_patch_labels

    trident(tmp_path / "features_x" / "a.h5", patches(6))
    bags = gmil.read(tmp_path / "features_x")[0]
    rows = [["a.svs", x, y, i % 2] for i, (x, y) in enumerate(lattice(6))]
    backwards = table(tmp_path / "p.csv", ["slide", "x", "y", "tumour"], ["other", 0, 0, 1], *rows[::-1])
    assert read_patch_labels(bags, backwards).tolist() == [0, 1, 0, 1, 0, 1]
    twice = table(tmp_path / "q.csv", ["slide", "x", "y", "tumour"], *rows, rows[2])
    with pytest.raises(gmil.BagValidationError, match="Two patches of slide 'a' lie at 1024, 0"):
        read_patch_labels(bags, twice)
    fewer = table(tmp_path / "r.csv", ["slide", "x", "y", "tumour"], *rows[1:])
    with pytest.raises(gmil.BagValidationError, match="no label for 1 of 6 patches: a at 0, 0"):
        read_patch_labels(bags, fewer)
    trident(tmp_path / "features_x" / "a.h5", patches(6), np.zeros((6, 2), int))
    with pytest.raises(gmil.BagValidationError, match="lie at 0, 0 in the slides"):
        read_patch_labels(gmil.read(tmp_path / "features_x")[0], backwards)


def test_6_ids_are_strings_and_duplicates_are_errors(tmp_path):
    for name in ("007", "7", "a.b.c"):
        trident(tmp_path / "features_x" / f"{name}.h5", patches(3))
    labels = table(tmp_path / "l.csv", ["slide_id", "label"], ["7", "x"], ["007", "y"], ["a.b.c.svs", "z"])
    bags, y = gmil.read(tmp_path / "features_x", labels=labels)
    assert dict(zip(bags.bag_ids.tolist(), y.tolist(), strict=True)) == {"007": "y", "7": "x", "a.b.c": "z"}
    stamp(tmp_path / "s" / "x" / "a.h5", patches(3))
    stamp(tmp_path / "s" / "y" / "a.h5", patches(3))
    twice = table(tmp_path / "s.csv", ["FILENAME", "label"], ["x/a.h5", 1], ["x/a", 1], ["y/a.h5", 0])
    with pytest.raises(gmil.BagValidationError, match="several rows for slide x/a"):
        gmil.read(tmp_path / "s", labels=twice)


def test_7_patients_come_first(tmp_path):
    for number in range(12):
        trident(tmp_path / "f" / f"s{number:02d}.h5", patches(6, seed=number) + 2 * (number // 2 % 2))
    labels = table(
        tmp_path / "l.csv",
        ["case_id", "slide_id", "msi"],
        *([f"P{i // 2}", f"s{i:02d}", i // 2 % 2] for i in range(12)),
    )
    how = {"labels": labels, "label": "msi"}
    found = gmil.scan(tmp_path / "f", bag="slide_id", group="case_id", **how)
    result = gmil.cross_validate(gmil.WeightedGMIL(random_state=0), found.bags, found.y, cv=3, groups=found.groups)
    for patient in np.unique(found.groups):
        assert len(set(result.folds[0][found.groups == patient])) == 1
    bags, y = gmil.read(tmp_path / "f", bag="case_id", **how)
    assert bags.sizes.tolist() == [12] * 6
    assert y.tolist() == [0, 1] * 3
    splits = table(tmp_path / "splits_0.csv", ["train", "test"], ["s00", "s01"], ["s02", "s04"])
    with pytest.warns(SlideWarning, match="1 group is trained on and tested: P0"):
        gmil.scan(tmp_path / "f", bag="slide_id", group="case_id", splits=splits, **how)


def test_8_nothing_but_headers_is_read_and_no_file_stays_open(tmp_path, monkeypatch):
    for number in range(3):
        trident(tmp_path / "features_x" / f"s{number}.h5", patches(50, seed=number, dtype=np.float16))
    read = []
    real = h5py.Dataset.__getitem__
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, *a: read.append(self.name) or real(self, *a))
    lazy, _ = gmil.scan(tmp_path / "features_x")
    assert read == []
    again = pickle.loads(pickle.dumps(lazy))
    assert b"h5py" not in pickle.dumps(lazy)
    np.testing.assert_array_equal(again[1], patches(50, seed=1, dtype=np.float16).astype(np.float32))
    assert read == ["/features"]  # one call for a slide, of one slide
    sums = lazy.reduce(
        lambda bags: [np.add.reduceat(bags.instances, bags.offsets[:-1])], [np.add], n_threads=3, rows=7
    )[0]
    np.testing.assert_allclose(
        sums, [patches(50, i, dtype=np.float16).astype(np.float32).sum(axis=0) for i in range(3)], rtol=1e-4
    )
    assert read == ["/features"] * 4
    for path in (tmp_path / "features_x").iterdir():
        with h5py.File(path, "r+"):  # which a reader would prevent
            pass


def test_9_reading_is_safe_and_ends_with_a_list(tmp_path):
    folder = tmp_path / "features_x"
    for name in ("good", "cut", "busy"):
        trident(folder / f"{name}.h5", patches(200))
    (folder / "cut.h5").write_bytes((folder / "cut.h5").read_bytes()[:3000])
    (folder / "busy.h5.lock").touch()
    with pytest.warns(SlideWarning, match=r"2 files cannot be used: busy\.h5 \(unfinished\), cut\.h5 \(damaged\)"):
        assert gmil.scan(folder)[0].bag_ids.tolist() == ["good"]


def test_10_provenance_travels_and_mixtures_are_refused(tmp_path):
    trident(tmp_path / "features_x" / "a.h5", patches(3), encoder="uni_v1")
    trident(tmp_path / "features_x" / "b.h5", patches(3), encoder="uni_v1")
    lazy, _ = gmil.scan(tmp_path / "features_x")
    for bags in (lazy.load(), lazy[[1]].load(), lazy.load()[[1]], lazy.load()[1:]):
        assert provenance(bags)["encoder"] == "uni_v1"
        assert provenance(bags)["target_magnification"] == 20
    trident(tmp_path / "features_x" / "b.h5", patches(3), encoder="uni_v2")
    with pytest.raises(gmil.BagValidationError, match=r"encoder 'uni_v2', but .* by 'uni_v1'"):
        gmil.scan(tmp_path / "features_x")
    trident(tmp_path / "features_x" / "b.h5", patches(3, d=7), encoder="uni_v1")
    with pytest.raises(gmil.BagValidationError, match=r"has 7 features, but .* has 6"):
        gmil.scan(tmp_path / "features_x")
    save_tensor(tmp_path / "pt_files" / "a.pt", patches(2))
    with pytest.raises(gmil.FormatError, match="can be read as"):
        gmil.scan(tmp_path)


def test_few_rows_of_a_slide_are_read_as_many_are(tmp_path):
    trident(tmp_path / "features_x" / "a.h5", patches(100, dtype=np.float16))
    stamp(tmp_path / "s" / "a.h5", patches(100))
    for folder in (tmp_path / "features_x", tmp_path / "s"):
        lazy, _ = gmil.scan(folder)
        whole = lazy.load().instances
        for rows in ([3], [0, 99], [99, 7, 7], np.arange(50)):
            np.testing.assert_array_equal(lazy.take(rows), whole[rows])


def test_scores_are_smoothed_within_slides_of_a_patient(tmp_path):
    for name in ("a", "b"):
        trident(tmp_path / "features_x" / f"{name}.h5", patches(4))
    labels = table(tmp_path / "l.csv", ["case_id", "slide_id", "label"], ["P", "a", 1], ["P", "b", 1])
    bags, _ = gmil.read(tmp_path / "features_x", labels=labels, bag="case_id")
    smooth = gmil.smooth_scores([1.0] * 4 + [0.0] * 4, bags, bandwidth=512)
    np.testing.assert_allclose(smooth, [1.0] * 4 + [0.0] * 4)
