"""Files of slides, written with h5py and PyTorch exactly as the tools write them."""

from __future__ import annotations

import csv

import h5py
import numpy as np
import pytest

D = 6


def patches(n, seed=0, d=D, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def lattice(n, side=512, columns=4):
    """Corners of n patches, row by row."""
    return np.column_stack([np.arange(n) % columns, np.arange(n) // columns]) * side


def table(path, names, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


TRIDENT_ATTRIBUTES = {
    "patch_size": 256,
    "patch_size_level0": 512.0,  # --mag is parsed as float
    "level0_magnification": 40,
    "target_magnification": 20.0,
    "overlap": 0,
    "name": "x",
    "savetodir": "/elsewhere/of/another/machine",
}


def trident(path, X, corners=None, encoder="uni_v1", **attributes):
    """Resizable, one row a chunk, no compression; attributes on coords, and those of features."""
    path.parent.mkdir(parents=True, exist_ok=True)
    corners = lattice(len(X)) if corners is None else corners
    with h5py.File(path, "w") as file:
        if len(X):
            features = file.create_dataset("features", data=X, maxshape=(None, *X.shape[1:]), chunks=(1, *X.shape[1:]))
        else:
            features = file.create_dataset("features", data=np.empty(0, np.float32), maxshape=(None,))
        coords = file.create_dataset(
            "coords", data=np.asarray(corners, dtype=np.int64).reshape(-1, 2), maxshape=(None, 2), chunks=(1, 2)
        )
        coords.attrs.update({**TRIDENT_ATTRIBUTES, **attributes})
        features.attrs.update({"name": "x", "savetodir": "None"})
        if encoder is not None:
            features.attrs["encoder"] = encoder
    return path


def clam(path, X, corners=None):
    """Float32 and int32, 32 rows a chunk, no attributes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    corners = lattice(len(X)) if corners is None else corners
    with h5py.File(path, "w") as file:
        for name, array in (("features", X.astype(np.float32)), ("coords", np.asarray(corners, dtype=np.int32))):
            shape = array.shape[1:]
            file.create_dataset(name, data=array, maxshape=(None, *shape), chunks=(min(32, len(array)), *shape))
    return path


def clam_patches(path, corners, size=256, level=1, downsample=(4.0, 4.0), **further):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        coords = file.create_dataset("coords", data=corners, maxshape=(None, 2), chunks=(1, 2))
        about = {"patch_size": size, "patch_level": level, "downsample": downsample, "level_dim": (9000, 9000)}
        coords.attrs.update({**about, "name": path.stem, "save_path": "/elsewhere", **further})
    return path


def stamp(path, X, corners=None, **attributes):
    """Contiguous, half precision, micrometres; attributes on the root."""
    path.parent.mkdir(parents=True, exist_ok=True)
    corners = lattice(len(X), 256) if corners is None else corners
    given = attributes or {
        "stamp_version": "2.4.0",
        "extractor": "uni2",
        "unit": "um",
        "tile_size_um": 256.0,
        "tile_size_px": 224,
        "code_hash": "1a2b3c4d",
        "feat_type": "tile",
    }
    with h5py.File(path, "w") as file:
        file["feats"] = X.astype(np.float16)
        file["coords"] = np.asarray(corners, dtype=np.float32)
        file.attrs.update(given)
    return path


def save_tensor(path, X):
    torch = pytest.importorskip("torch")
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(X if isinstance(X, torch.Tensor) else torch.from_numpy(X), path)
    return path


def slideflow(folder, name, X, centres=None, index=".index.npz"):
    save_tensor(folder / f"{name}.pt", X.astype(np.float32))
    if centres is not None and index == ".index.npz":
        np.savez(folder / f"{name}.index.npz", centres)
    elif centres is not None:
        np.save(folder / f"{name}.index.npy", centres)


def column(bags, name):
    return bags.instance_info.column(name).to_pylist()


def provenance(bags):
    import json

    return {
        key.decode().removeprefix("gmil.slides."): json.loads(value)
        for key, value in bags.instance_info.schema.metadata.items()
    }
