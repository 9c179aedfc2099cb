"""Hostile and damaged files are refused in one sentence; nothing outside a file is opened, no code of it is run."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.slides.made import clam, lattice, patches, save_tensor, stamp, trident

import gmil
from gmil.errors import SlideWarning


def refused(folder, match, **how):
    with pytest.raises(gmil.GmilError, match=match) as error:
        gmil.read(folder, **how)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def folder(tmp_path):
    """A folder of CLAM with one good slide, and a file with a secret beside it."""
    clam(tmp_path / "f" / "h5_files" / "good.h5", patches(4))
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["features"] = patches(4)
    (tmp_path / "secret.bin").write_bytes(patches(4).tobytes())
    return tmp_path / "f"


def bad(folder, write):
    with h5py.File(folder / "h5_files" / "bad.h5", "w") as file:
        file["coords"] = lattice(4)
        write(file)


def test_external_links_are_refused(folder):
    def write(file):
        file["features"] = h5py.ExternalLink("../../secret.h5", "features")

    bad(folder, write)
    refused(folder, r"bad\.h5 is refused: 'features' is a link to another place")


def test_soft_links_are_refused(folder):
    def write(file):
        file["other"] = patches(4)
        file["features"] = h5py.SoftLink("/other")

    bad(folder, write)
    refused(folder, "is a link to another place")


def test_external_storage_is_refused(folder, tmp_path):
    def write(file):
        place = [(str(tmp_path / "secret.bin"), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("features", shape=(4, 6), dtype="f4", external=place)

    bad(folder, write)
    refused(folder, "'features' keeps its numbers in other files")


def test_virtual_arrays_are_refused(folder, tmp_path):
    def write(file):
        layout = h5py.VirtualLayout(shape=(4, 6), dtype="f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "features", shape=(4, 6))
        file.create_virtual_dataset("features", layout)

    bad(folder, write)
    refused(folder, "'features' is a virtual array, made of other files")


def test_filters_of_plugins_are_refused_before_anything_is_loaded(folder):
    def write(file):
        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        created.set_chunk((4, 6))
        created.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())  # Zstandard, a plugin
        space = h5py.h5s.create_simple((4, 6))
        h5py.h5d.create(file.id, b"features", h5py.h5t.NATIVE_FLOAT, space, created)

    bad(folder, write)
    refused(folder, "'features' is compressed by filter 32015, which needs a plugin")


def test_filters_of_the_library_are_read(folder):
    X = patches(4)
    bad(folder, lambda file: file.create_dataset("features", data=X, compression="gzip", shuffle=True, fletcher32=True))
    np.testing.assert_array_equal(gmil.read(folder)[0][0], X)


def test_a_shape_that_lies_takes_no_memory(folder):
    bad(folder, lambda file: file.create_dataset("features", shape=(10**9, 10**4), dtype="f4"))
    with pytest.warns(SlideWarning, match=r"1 file cannot be used: bad\.h5 \(damaged\)"):
        assert len(gmil.read(folder)[0]) == 1


def test_a_compressed_bomb_is_refused(folder):
    bad(folder, lambda file: file.create_dataset("features", shape=(10**8, 10**3), dtype="f4", compression="gzip"))
    refused(folder, r"is damaged: 'features' claims 400000000000 bytes, but only 0 are stored")


@pytest.mark.parametrize("values", [["a", "b"], [b"a", b"b"]])
def test_texts_are_no_features(folder, values):
    bad(folder, lambda file: file.create_dataset("features", data=values))
    refused(folder, "'features' must hold numbers")


def test_a_group_is_no_array(folder):
    bad(folder, lambda file: file.create_group("features"))
    refused(folder, "'features' is no array")


def test_huge_and_odd_attributes_are_left_alone(tmp_path):
    path = stamp(tmp_path / "a.h5", patches(3))
    kept = dict(h5py.File(path).attrs)
    with h5py.File(path, "w", libver="latest") as file:
        file["feats"], file["coords"] = patches(3), lattice(3)
        file.attrs.update(kept)
        file.attrs["huge"] = np.zeros(1 << 20)
        file.attrs["reference"] = file.ref
    bags, _ = gmil.read(tmp_path)
    assert b"gmil.slides.encoder" in bags.instance_info.schema.metadata


def test_stored_paths_are_shown_and_never_opened(tmp_path, monkeypatch):
    trident(tmp_path / "features_x" / "a.h5", patches(3), savetodir=str(tmp_path / "trap"))
    opened = []
    monkeypatch.setattr(
        h5py, "File", lambda path, *a, real=h5py.File, **k: opened.append(Path(path)) or real(path, *a, **k)
    )
    bags, _ = gmil.read(tmp_path / "features_x")
    assert {path.name for path in opened} == {"a.h5"}
    assert str(tmp_path / "trap").encode() in bags.instance_info.schema.metadata[b"gmil.slides.savetodir"]


# -------------------------------------------------------------------------------- damaged and unfinished


def test_damaged_locked_and_temporary_files_are_listed_by_name(tmp_path):
    folder = tmp_path / "features_x"
    for name in ("good", "cut", "locked", "tmp123"):
        trident(folder / f"{name}.h5", patches(300))
    whole = (folder / "cut.h5").read_bytes()
    (folder / "cut.h5").write_bytes(whole[: len(whole) // 2])
    (folder / "locked.h5.lock").touch()
    (folder / "text.h5").write_text("no HDF5")
    (folder / "empty.h5").touch()
    with pytest.warns(SlideWarning) as told:
        bags, _ = gmil.scan(folder)
    text = str(told[0].message)
    assert "5 files cannot be used" in text
    for name in ("cut.h5 (damaged)", "locked.h5 (unfinished)", "text.h5 (damaged)", "tmp123.h5 (unfinished)"):
        assert name in text
    assert bags.bag_ids.tolist() == ["good"]


def test_a_folder_of_damaged_files_alone_is_refused(tmp_path):
    trident(tmp_path / "features_x" / "a.h5", patches(3)).write_bytes(b"\x89HDF\r\n\x1a\n")
    refused(tmp_path / "features_x", "has no slide with patches.*1 file cannot be used: a.h5", layout="trident")


def test_a_file_that_is_cut_after_the_scan_is_told(tmp_path):
    path = stamp(tmp_path / "a.h5", patches(3000))
    bags, _ = gmil.scan(tmp_path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(gmil.FormatError, match=r"a\.h5 cannot be opened as HDF5"):
        bags.load()
    path.unlink()
    with pytest.raises(gmil.GmilError, match=r"a\.h5"):
        bags.load()


def test_arrays_of_numpy_that_are_cut_or_pickled_are_not_read(tmp_path):
    for folder in ("features", "coords"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "features" / "a.npy", patches(300))
    np.save(tmp_path / "features" / "cut.npy", patches(300))
    whole = (tmp_path / "features" / "cut.npy").read_bytes()
    (tmp_path / "features" / "cut.npy").write_bytes(whole[:1000])
    with pytest.warns(SlideWarning, match=r"cut\.npy \(damaged\)"):
        assert len(gmil.read(tmp_path)[0]) == 1
    np.save(tmp_path / "features" / "cut.npy", np.array([{}], dtype=object))
    refused(tmp_path, r"cut\.npy cannot be read as NPY")


# -------------------------------------------------------------------------------- .pt


class Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def tensors(tmp_path):
    (tmp_path / "t" / "pt_files").mkdir(parents=True)
    return tmp_path / "t" / "pt_files"


def test_a_pickle_that_runs_code_is_refused_and_not_run(tensors, tmp_path):
    torch = pytest.importorskip("torch")
    torch.save(Bomb(tmp_path / "ran"), tensors / "a.pt")
    refused(tensors.parent, r"a\.pt is refused: it holds Python objects.*torch\.save")
    (tensors / "a.pt").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))  # without the archive of PyTorch
    with pytest.raises(gmil.GmilError, match=r"a\.pt"):
        gmil.read(tensors.parent)
    assert not (tmp_path / "ran").exists()


def test_the_loader_is_always_the_safe_one(tensors, monkeypatch):
    torch = pytest.importorskip("torch")
    save_tensor(tensors / "a.pt", patches(3))
    asked = []
    real = torch.load
    monkeypatch.setattr(torch, "load", lambda *a, **k: asked.append(k) or real(*a, **k))
    gmil.read(tensors.parent)
    assert asked
    assert all(how["weights_only"] is True and how["map_location"] == "cpu" for how in asked)


def test_an_old_pytorch_is_refused(tensors, monkeypatch):
    torch = pytest.importorskip("torch")
    save_tensor(tensors / "a.pt", patches(3))
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    refused(tensors.parent, r"need PyTorch 2\.6, got 2\.5\.1")


def test_a_pytorch_with_a_known_hole_is_told(tensors, monkeypatch):
    torch = pytest.importorskip("torch")
    save_tensor(tensors / "a.pt", patches(3))
    monkeypatch.setattr(torch, "__version__", "2.9.1")
    with pytest.warns(SlideWarning, match=r"corrupt memory in PyTorch 2\.9\.1: .* upgrade it to 2\.10"):
        gmil.read(tensors.parent)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrays_of_numpy_in_a_pt_file_are_read(tensors, dtype):
    torch = pytest.importorskip("torch")
    X = patches(3, dtype=dtype)
    torch.save(X, tensors / "a.pt")
    np.testing.assert_array_equal(gmil.read(tensors.parent)[0][0], X)


def test_an_array_of_objects_in_a_pt_file_is_refused(tensors):
    torch = pytest.importorskip("torch")
    torch.save(np.array([{}, 1], dtype=object), tensors / "a.pt")
    refused(tensors.parent, r"a\.pt is refused")


def test_bfloat16_is_widened(tensors):
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(patches(3)).bfloat16()
    torch.save(X, tensors / "a.pt")
    bags, _ = gmil.read(tensors.parent)
    assert bags.dtype == np.float32
    np.testing.assert_array_equal(bags[0], X.float().numpy())


def test_a_tensor_that_claims_more_than_it_stores_is_refused(tensors):
    torch = pytest.importorskip("torch")
    torch.save(torch.zeros(1).expand(10**6, 10**6), tensors / "a.pt")
    refused(tensors.parent, "claims more numbers than are stored")


@pytest.mark.parametrize("made", [[1, 2], {"a": 1, "b": 2}, {"weight": None}])
def test_what_is_no_tensor_is_refused(tensors, made):
    torch = pytest.importorskip("torch")
    torch.save(made, tensors / "a.pt")
    refused(tensors.parent, r"a\.pt must hold (a|one) tensor")


def test_an_archive_that_unpacks_to_too_much_is_refused(tensors):
    pytest.importorskip("torch")
    with zipfile.ZipFile(tensors / "a.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", pickle.dumps(0))
        archive.writestr("a/data/0", bytes(1 << 24))
    whole = bytearray((tensors / "a.pt").read_bytes())
    entry = whole.rindex(b"PK\x01\x02")  # the directory claims 2 GiB for the second member
    whole[entry + 24 : entry + 28] = (1 << 31).to_bytes(4, "little")
    (tensors / "a.pt").write_bytes(whole)
    refused(tensors.parent, "what it holds claims")


def test_a_cut_pt_file_is_listed(tensors):
    save_tensor(tensors / "good.pt", patches(3))
    save_tensor(tensors / "cut.pt", patches(3000))
    (tensors / "cut.pt").write_bytes((tensors / "cut.pt").read_bytes()[:4000])
    with pytest.warns(SlideWarning, match=r"cut\.pt \(damaged\)"):
        assert gmil.read(tensors.parent)[0].bag_ids.tolist() == ["good"]


def test_without_h5py_or_pytorch_the_fix_is_told(tmp_path, monkeypatch):
    import sys

    clam(tmp_path / "h5_files" / "a.h5", patches(3))
    save_tensor(tmp_path / "t" / "pt_files" / "a.pt", patches(3))
    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    refused(tmp_path, r"pip install 'gmil\[slides\]'")
    refused(tmp_path / "t", r"\.pt files need PyTorch")
