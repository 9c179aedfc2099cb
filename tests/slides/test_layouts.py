"""Every layout is read as its tool writes it, with its traps; the layout is recognised and told."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from tests.slides.made import (
    clam,
    clam_patches,
    column,
    lattice,
    patches,
    provenance,
    save_tensor,
    slideflow,
    stamp,
    table,
    trident,
)

import gmil
from gmil.errors import SlideWarning


def only(folder, **how):
    """Read a folder without a table."""
    return gmil.read(folder, **how)[0]


# -------------------------------------------------------------------------------- TRIDENT


def test_trident_is_read_from_its_features_its_patch_folder_and_its_job(tmp_path):
    X = {name: patches(5 + i, seed=i) for i, name in enumerate(["a", "b"])}
    job = tmp_path / "job"
    for name, rows in X.items():
        trident(job / "20x_256px_0px_overlap" / "features_uni_v1" / f"{name}.h5", rows)
        clam_patches(job / "20x_256px_0px_overlap" / "patches" / f"{name}_patches.h5", lattice(len(rows)))
    for folder in (job, job / "20x_256px_0px_overlap", job / "20x_256px_0px_overlap" / "features_uni_v1"):
        bags = only(folder)
        assert bags.bag_ids.tolist() == ["a", "b"]
        np.testing.assert_array_equal(bags.instances, np.vstack(list(X.values())))
        assert column(bags, "x")[:5] == [0, 512, 1024, 1536, 0]
        assert column(bags, "y")[:5] == [0, 0, 0, 0, 512]
        assert set(column(bags, "patch_size")) == {512.0}
        assert set(column(bags, "unit")) == {"px"}
        assert provenance(bags)["layout"] == "TRIDENT"
        assert provenance(bags)["encoder"] == "uni_v1"
        assert provenance(bags)["level0_magnification"] == 40


def test_slides_of_20x_and_of_40x_keep_their_own_patch_sizes(tmp_path):
    folder = tmp_path / "features_uni_v1"
    trident(folder / "at40.h5", patches(4))
    trident(folder / "at20.h5", patches(4), lattice(4, 256), patch_size_level0=256, level0_magnification=20)
    bags = only(folder)
    assert column(bags, "patch_size") == [256.0] * 4 + [512.0] * 4
    assert provenance(bags)["level0_magnification"] == {"at20": 20, "at40": 40}
    assert json.loads(bags[[1]].instance_info.schema.metadata[b"gmil.slides.encoder"]) == "uni_v1"


def test_several_encoders_of_a_trident_job_are_ambiguous(tmp_path):
    for encoder in ("uni_v1", "conch_v15"):
        trident(tmp_path / "20x_256px_0px_overlap" / f"features_{encoder}" / "a.h5", patches(3))
    with pytest.raises(gmil.FormatError, match=r"several folders of features: .*conch_v15.*uni_v1"):
        gmil.read(tmp_path)


def test_old_trident_files_name_no_encoder(tmp_path):
    trident(tmp_path / "features_conch_v15" / "a.h5", patches(3), encoder=None)
    assert provenance(only(tmp_path / "features_conch_v15"))["encoder"] == "conch_v15"


def test_trident_from_coordinates_of_clam_takes_the_size_of_clam(tmp_path):
    path = trident(tmp_path / "features_uni_v1" / "a.h5", patches(3))
    with h5py.File(path, "a") as file:
        attributes = file["coords"].attrs
        for name in list(attributes):
            del attributes[name]
        attributes.update({"patch_size": 256, "patch_level": 1, "downsample": (4.0, 4.0)})
    assert column(only(path.parent), "patch_size") == [1024.0] * 3


def test_a_patch_size_with_a_fraction_is_refused(tmp_path):
    trident(tmp_path / "features_x" / "a.h5", patches(3), patch_size_level0=512.5)
    with pytest.raises(gmil.FormatError, match="patch_size_level0 must be a whole number"):
        gmil.read(tmp_path / "features_x")


def test_slide_embeddings_are_refused(tmp_path):
    path = trident(tmp_path / "slide_features_titan" / "a.h5", patches(1))
    with h5py.File(path, "a") as file:
        about = dict(file["features"].attrs)
        del file["features"]
        file.create_dataset("features", data=patches(1)[0]).attrs.update(about)
    with pytest.raises(gmil.FormatError, match="one vector of 6 numbers, an embedding of the whole slide"):
        gmil.read(path.parent)


def test_coordinates_are_not_taken_for_features(tmp_path):
    clam_patches(tmp_path / "patches" / "a_patches.h5", lattice(3))
    with pytest.raises(gmil.FormatError, match="holds coordinates of patches, but no features"):
        gmil.read(tmp_path / "patches")


def test_an_empty_slide_is_told_and_left_out(tmp_path):
    trident(tmp_path / "features_x" / "a.h5", patches(3))
    trident(tmp_path / "features_x" / "none.h5", np.empty((0, 6)))
    with pytest.warns(SlideWarning, match="1 slide has no patches: none"):
        assert only(tmp_path / "features_x").bag_ids.tolist() == ["a"]


# -------------------------------------------------------------------------------- CLAM


def test_clam_looks_for_the_patch_size_beside(tmp_path):
    X = patches(40)
    clam(tmp_path / "h5_files" / "slide_1.h5", X)
    save_tensor(tmp_path / "pt_files" / "slide_1.pt", X)
    clam_patches(tmp_path / "patches" / "slide_1.h5", lattice(40))
    for folder in (tmp_path, tmp_path / "h5_files"):
        bags = only(folder)
        np.testing.assert_array_equal(bags.instances, X)
        assert set(column(bags, "patch_size")) == {1024.0}  # 256 at level 1, which is 4 times smaller
        assert provenance(bags)["layout"] == "CLAM"


def test_clam_without_patches_has_no_patch_size_unless_it_is_given(tmp_path):
    clam(tmp_path / "FEATURES" / "h5_files" / "slide_1.h5", patches(3))
    assert column(only(tmp_path / "FEATURES"), "patch_size") == [None] * 3
    assert column(only(tmp_path / "FEATURES", patch_size=512), "patch_size") == [512.0] * 3


def test_clam_takes_tensors_where_there_is_nothing_else(tmp_path):
    X = patches(4)
    save_tensor(tmp_path / "pt_files" / "s.1.pt", X)
    bags = only(tmp_path)
    assert bags.bag_ids.tolist() == ["s.1"]
    np.testing.assert_array_equal(bags.instances, X)
    assert bags.instance_info is None


def test_several_contours_are_no_single_lattice(tmp_path):
    corners = np.vstack([lattice(4, 256), lattice(4, 256) + np.array([10_003, 777])])
    clam(tmp_path / "h5_files" / "a.h5", patches(8), corners)
    bags = only(tmp_path)
    assert column(bags, "x") == corners[:, 0].tolist()
    assert column(bags, "y") == corners[:, 1].tolist()


def test_a_folder_of_panther_is_read_as_clam(tmp_path):
    clam(tmp_path / "feats_h5" / "a.h5", patches(3)[None])
    with pytest.raises(gmil.FormatError, match="has 3 patches, but"):  # coords of 1 row
        gmil.read(tmp_path)
    clam(tmp_path / "feats_h5" / "a.h5", patches(3)[None], lattice(3))
    assert only(tmp_path).n_instances == 3


# -------------------------------------------------------------------------------- STAMP


def test_stamp_keeps_micrometres_until_it_is_told_the_pixel_size(tmp_path):
    X = patches(5)
    stamp(tmp_path / "uni2-1a2b3c4d" / "cohortA" / "slide.h5", X)
    bags = only(tmp_path)
    assert bags.bag_ids.tolist() == ["cohortA/slide"]
    np.testing.assert_array_equal(bags.instances, X.astype(np.float16).astype(np.float32))
    assert (column(bags, "unit")[0], column(bags, "patch_size")[0], column(bags, "x")[1]) == ("um", 256.0, 256.0)
    assert provenance(bags)["encoder"] == "uni2"
    assert provenance(bags)["tool_version"] == "2.4.0"
    bags = only(tmp_path, mpp=0.5)
    assert (column(bags, "unit")[0], column(bags, "patch_size")[0], column(bags, "x")[1]) == ("px", 512.0, 512.0)
    assert provenance(bags)["mpp"] == 0.5


@pytest.mark.parametrize(
    ("attributes", "side", "second"),
    [
        ({"tile_size_um": 128.0, "unit": "um", "stamp_version": "2.3.0"}, 128.0, 256.0),
        ({"tile_size": 256.0, "unit": "um"}, 256.0, 256.0),
    ],
)
def test_generations_of_stamp(tmp_path, attributes, side, second):
    stamp(tmp_path / "a.h5", patches(5), **attributes)
    bags = only(tmp_path)
    assert (column(bags, "patch_size")[0], column(bags, "x")[1]) == (side, second)


def test_the_historic_stride_of_stamp_is_224_pixels_of_256_um(tmp_path):
    stamp(tmp_path / "a.h5", patches(5), lattice(5, 224), some="thing")
    bags = only(tmp_path)
    assert (column(bags, "unit")[0], column(bags, "patch_size")[0], column(bags, "x")[1]) == ("um", 256.0, 256.0)


def test_stamp_without_any_size_is_refused(tmp_path):
    stamp(tmp_path / "a.h5", patches(5), lattice(5, 100), some="thing")
    with pytest.raises(gmil.FormatError, match="coordinates have no unit"):
        gmil.read(tmp_path)


def test_slide_encodings_of_stamp_are_refused(tmp_path):
    stamp(tmp_path / "a.h5", patches(1), np.zeros((1, 2)), encoder="titan", version="2.4.0", feat_type="slide")
    with pytest.raises(gmil.FormatError, match="an embedding of a whole slide, not of patches"):
        gmil.read(tmp_path)


def test_two_extractors_of_stamp_are_ambiguous(tmp_path):
    for tag in ("uni2-1a2b3c4d", "conch-1a2b3c4d"):
        stamp(tmp_path / tag / "a.h5", patches(2))
    with pytest.raises(gmil.FormatError, match="several folders of features"):
        gmil.read(tmp_path)


def test_tables_of_stamp_are_joined_whatever_their_order(tmp_path):
    for number, name in enumerate(["a", "b", "c"]):
        stamp(tmp_path / "f" / "x" / f"{name}.h5", patches(2 + number))
    clini = table(tmp_path / "clini.csv", ["PATIENT", "isMSIH"], ["P1", "MSIH"], ["P2", "nonMSIH"])
    # The slides of P1 are not on adjacent rows; one lacks its suffix.
    slides = table(tmp_path / "slide.csv", ["PATIENT", "FILENAME"], ["P1", "x/a.h5"], ["P2", "x/b.h5"], ["P1", "x/c"])
    found = gmil.read(tmp_path / "f", labels=[clini, slides], label="isMSIH", group="PATIENT")
    assert found.y.tolist() == ["MSIH", "nonMSIH", "MSIH"]
    assert found.groups.tolist() == ["P1", "P2", "P1"]
    bags, y = gmil.read(tmp_path / "f", labels=[clini, slides], bag="PATIENT", label="isMSIH")
    assert bags.bag_ids.tolist() == ["P1", "P2"]
    assert bags.sizes.tolist() == [6, 3]
    assert y.tolist() == ["MSIH", "nonMSIH"]
    assert column(bags, "slide") == ["x/a"] * 2 + ["x/c"] * 4 + ["x/b"] * 3


def test_a_patient_with_two_rows_is_refused(tmp_path):
    stamp(tmp_path / "f" / "a.h5", patches(2))
    clini = table(tmp_path / "clini.csv", ["PATIENT", "y"], ["P1", "1"], ["P1", "0"])
    slides = table(tmp_path / "slide.csv", ["PATIENT", "FILENAME"], ["P1", "a.h5"])
    with pytest.raises(gmil.BagValidationError, match="several rows for PATIENT P1"):
        gmil.read(tmp_path / "f", labels=[clini, slides], label="y")


# -------------------------------------------------------------------------------- slideflow


def test_centres_of_slideflow_become_corners(tmp_path):
    X, corners = patches(5), lattice(5)
    slideflow(tmp_path, "slideA", X, corners + 256)
    slideflow(tmp_path, "slideB", X, corners + 256, index=".index.npy")
    slideflow(tmp_path, "roi", X)
    config = {"extractor": {"class": "ctranspath", "kwargs": {}}, "tile_px": 256, "tile_um": 128}
    (tmp_path / "bags_config.json").write_text(json.dumps(config))
    bags = only(tmp_path, mpp=0.25)
    assert bags.bag_ids.tolist() == ["roi", "slideA", "slideB"]
    assert column(bags, "x")[:5] == [None] * 5
    assert column(bags, "x")[5:] == corners[:, 0].tolist() * 2
    assert column(bags, "patch_size")[5:] == [512.0] * 10
    assert provenance(bags) == {"layout": "slideflow", "encoder": "ctranspath", "tile_px": 256, "tile_um": 128}


def test_without_a_size_slideflow_keeps_centres_and_says_so(tmp_path):
    slideflow(tmp_path, "a", patches(5), lattice(5) + 256)
    (tmp_path / "bags_config.json").write_text(json.dumps({"tile_um": "40x"}))
    for how in ({}, {"mpp": 0.25}):
        bags = only(tmp_path, **how)
        assert column(bags, "x")[0] == 256
        assert column(bags, "patch_size") == [None] * 5
        assert provenance(bags)["anchor"] == "centre"
    assert column(only(tmp_path, patch_size=512), "x")[0] == 0


# -------------------------------------------------------------------------------- nnMIL, torchmil, MIL_BASELINE


def nnmil(folder, names):
    for number, name in enumerate(names):
        path = folder / "features" / f"{name}.h5"
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            file["features"], file["coords"] = patches(3 + number).astype(np.float64), lattice(3 + number)
    (folder / "dataset.json").write_text(json.dumps({"feature_dir": "/elsewhere", "task_type": "classification"}))
    rows = [[f"{name}.svs", f"P{i // 2}", "train" if i < 2 else "test", i % 2] for i, name in enumerate(names)]
    table(folder / "dataset.csv", ["slide_id", "patient_id", "split", "label"], *rows)
    return folder


def test_nnmil_brings_its_own_table(tmp_path):
    folder = nnmil(tmp_path / "Task001_X", ["s1", "s2", "s3", "s4"])
    for place in (folder, folder / "features"):
        found = gmil.read(place, group="patient_id", splits="split")
        assert found.layout == "nnMIL"
        assert found.bags.dtype == np.float64
        assert found.y.tolist() == [0, 1, 0, 1]
        assert found.groups.tolist() == ["P0", "P0", "P1", "P1"]
        assert [(train.tolist(), test.tolist()) for train, test in found.folds] == [([0, 1], [2, 3])]


def test_one_name_in_two_folders_of_tcga_is_refused(tmp_path):
    folder = nnmil(tmp_path / "t", ["s1"])
    (folder / "features" / "TCGA-XX").mkdir()
    (folder / "features" / "TCGA-XX" / "s1.h5").write_bytes((folder / "features" / "s1.h5").read_bytes())
    with pytest.raises(gmil.BagValidationError, match="The slide 's1' is there twice"):
        gmil.read(folder)


def test_nnmil_with_a_leading_axis_is_all_its_patches(tmp_path):
    folder = nnmil(tmp_path / "t", ["s1", "s2"])
    with h5py.File(folder / "features" / "s1.h5", "w") as file:
        file["features"], file["coords"] = patches(7)[None], lattice(7)
    assert only(folder).sizes.tolist() == [7, 4]


def torchmil(root, names, suffix=".npy"):
    for number, name in enumerate(names):
        arrays = {
            "features/features_UNI": patches(3 + number),
            "coords": lattice(3 + number),
            "labels": np.array([number % 2]),
            "patch_labels": np.zeros(3 + number, int),
        }
        for folder, array in arrays.items():
            (root / folder).mkdir(parents=True, exist_ok=True)
            np.save(root / folder / f"{name}{suffix}", array)
    return root


def test_torchmil_has_labels_in_files(tmp_path):
    torchmil(tmp_path / "patches_512", ["w1", "w2", "w3"])
    for folder in (tmp_path, tmp_path / "patches_512"):
        bags, y = gmil.read(folder, patch_size=512)
        assert bags.bag_ids.tolist() == ["w1", "w2", "w3"]
        assert y.tolist() == [0, 1, 0]
        assert column(bags, "patch_size")[0] == 512.0
        assert provenance(bags) == {"layout": "torchmil", "encoder": "UNI"}
    np.save(tmp_path / "patches_512" / "patch_labels" / "w1.npy", np.zeros(9))
    with pytest.raises(gmil.FormatError, match=r"has 3 patches, but .* has labels of shape"):
        gmil.read(tmp_path)


def test_torchmil_splits_by_name(tmp_path):
    torchmil(tmp_path, ["w1", "w2", "w3"])
    labels = table(tmp_path / "labels.csv", ["bag_name", "label"], ["w1", 0], ["w2", 1], ["w3", 0])
    splits = table(tmp_path / "splits.csv", ["bag_name", "split"], ["w1", "train"], ["w2", "train"], ["w3", "test"])
    found = gmil.read(tmp_path, labels=labels, splits=splits)
    assert [(train.tolist(), test.tolist()) for train, test in found.folds] == [([0, 1], [2])]


def test_mil_baseline_uses_the_names_of_paths_and_never_the_paths(tmp_path):
    X = {"a": patches(3), "b": patches(4, 1), "c": patches(5, 2)}
    folder = tmp_path / "feats"
    save_tensor(folder / "a.pt", X["a"][None])
    torch = pytest.importorskip("torch")
    torch.save({"feats": torch.from_numpy(X["b"])}, folder / "b.pt")
    with h5py.File(folder / "c.h5", "w") as file:
        file["features"], file["coords"] = X["c"], lattice(5)
    rows = [
        [f"/not/here/{name}{end}", label] for name, end, label in (("a", ".pt", 1), ("b", ".pt", 0), ("c", ".h5", 1))
    ]
    labels = table(tmp_path / "example_Dataset.csv", ["slide_path", "label"], *rows)
    bags, y = gmil.read(folder, labels=labels)
    assert y.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(bags.instances, np.vstack(list(X.values())))
    assert column(bags, "x") == [None] * 7 + lattice(5)[:, 0].tolist()


WIDE = ["train_slide_path", "train_label", "val_slide_path", "val_label", "test_slide_path", "test_label"]


def test_the_wide_table_of_mil_baseline_is_labels_and_split(tmp_path):
    for name in "abcd":
        save_tensor(tmp_path / "f" / f"{name}.pt", patches(3))
    labels = table(
        tmp_path / "Total_1fold.csv",
        WIDE,
        ["/x/a.pt", 1, "/x/b.pt", 0, "/x/c.pt", 1],
        ["/x/d.pt", 0, "", "", "nan", ""],
    )
    found = gmil.read(tmp_path / "f", labels=labels, splits=labels)
    assert found.y.tolist() == [1, 0, 1, 0]
    assert [(train.tolist(), test.tolist()) for train, test in found.folds] == [([0, 3], [2])]
    assert [val.tolist() for val in found.validation] == [[1]]


def test_a_missing_label_of_mil_baseline_does_not_shift_the_others(tmp_path):
    save_tensor(tmp_path / "f" / "a.pt", patches(3))
    labels = table(tmp_path / "w.csv", WIDE, ["/x/a.pt", "", "", "", "", ""], ["/x/b.pt", 1, "", "", "", ""])
    with pytest.raises(gmil.FormatError, match=r"row 1: train_slide_path is '/x/a.pt', but train_label is ''"):
        gmil.read(tmp_path / "f", labels=labels)
