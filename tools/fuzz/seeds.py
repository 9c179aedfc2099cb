"""The files before they are mutated: models of every class, data in every format.

They are written once into a folder. The same code writes the same bytes: dates, and the numbers that skops gives to
objects, are made equal.
"""

from __future__ import annotations

import re
import shutil
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
from tests.model_files import make
from tools.fuzz.mutations.models import sign
from tools.fuzz.mutations.safetensors_files import Tensor, pack, parse
from tools.fuzz.mutations.zips import Member, unzip, zipped
from tools.fuzz.targets import MODEL_FILES

import gmil

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FRESH = "this"
SMALL_MAT = "small.mat"
_MATLAB_TEXT = 116


@dataclass(frozen=True)
class Seed:
    """A file, or a folder, that gmil reads.

    Attributes
    ----------
    target : str
        The row of the table that it belongs to.
    name : str
    path : Path
    use : str
        ``model``, ``read`` or ``scan``.
    problem : str
        The bags that a model predicts.
    guarded : bool
        Whether this gmil wrote it, with a checksum.
    """

    target: str
    name: str
    path: Path
    use: str
    problem: str = ""
    guarded: bool = False


def write_seeds(folder: Path) -> None:
    """Write every seed below a folder, unless they are there."""
    if folder.is_dir():
        return
    half = folder.with_name(folder.name + "-half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make.main(half / "models" / FRESH)
        _write_data(half / "data")
    for path in half.glob(f"models/{FRESH}/*.gmil"):
        path.write_bytes(settled(path.read_bytes()))
    for path in half.rglob("*.mat"):
        path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(_MATLAB_TEXT) + path.read_bytes()[_MATLAB_TEXT:])
    half.rename(folder)


def model_seeds(folder: Path) -> list[Seed]:
    """Return the model files, of released versions and of this gmil."""
    folders = [*sorted(path for path in MODEL_FILES.iterdir() if path.is_dir()), folder / "models" / FRESH]
    return [seed for place in folders for seed in _models_of(place)]


def _models_of(place: Path) -> Iterator[Seed]:
    if not (place / "expected.npz").is_file():
        return
    with np.load(place / "expected.npz") as expected:
        problems = dict(key.split("|") for key in expected)
    for path in sorted(place.glob("*.gmil")):
        target = path.stem.partition("-")[0]
        yield Seed(target, f"{place.name}/{path.stem}", path, "model", problems[path.stem], place.name == FRESH)


def data_seeds(folder: Path) -> list[Seed]:
    """Return the data files and folders; Parquet and folders a second time to be scanned."""
    paths = sorted(path for path in (folder / "data").iterdir() if path.name != SMALL_MAT)
    read = [Seed(_target(path), path.name, path, "read") for path in paths]
    lazy = [Seed(f"{_target(path)}, scanned", path.name, path, "scan") for path in paths if _can_be_scanned(path)]
    return [*read, *lazy]


def _target(path: Path) -> str:
    return "folder" if path.is_dir() else path.suffix


def _can_be_scanned(path: Path) -> bool:
    return path.is_dir() or path.suffix == ".parquet"


# -------------------------------------------------------------------------------- data


def _write_data(folder: Path) -> None:
    folder.mkdir()
    problems = make.problems()
    plain, y = problems["two"]
    sparse, _ = problems["sparse"]
    names = np.array([f"bag {i}" for i in range(len(plain))])
    named = gmil.Bags(plain.instances, plain.offsets, names, ("width", "height", "depth"))
    for suffix in ("csv", "tsv", "data", "arff", "npz", "mat", "parquet"):
        gmil.write(folder / f"plain.{suffix}", plain, y)
        gmil.write(folder / f"named.{suffix}", named, np.where(y, "yes", "no"))
    for suffix in ("npz", "mat", "arff"):
        gmil.write(folder / f"sparse.{suffix}", sparse, y)
    gmil.write(folder / "double.parquet", named, y, dtype="float64")
    _write_other_tables(folder, plain, y)
    _write_matlab(folder, plain, y)
    _write_folders(folder, plain, y)


def _write_other_tables(folder: Path, bags: gmil.Bags, y: Any) -> None:
    rows = {"bag": np.repeat(np.arange(len(bags)), bags.sizes), "label": np.repeat(y, bags.sizes)}
    lists = pa.table({**rows, "features": pa.array(bags.instances.tolist())})
    pq.write_table(lists, folder / "lists.parquet", compression="none", write_page_checksum=True)
    np.savez(folder / "stored.npz", X=bags.instances, bag_index=rows["bag"], y=y)


def _write_matlab(folder: Path, bags: gmil.Bags, y: Any) -> None:
    rows = {"features": bags.instances, "bag_ids": np.repeat(np.arange(1, len(bags) + 1), bags.sizes)}
    labelled: dict[str, Any] = {**rows, "labels": np.repeat(y, bags.sizes)}
    cells = np.empty((len(bags), 2), dtype=object)
    for i, label in enumerate(y):
        cells[i] = bags[i], float(label)
    names = np.array([f"bag {i}" for i in labelled["bag_ids"]], dtype=object)
    scipy.io.savemat(folder / "stored.mat", {**labelled, "bag_names": names})
    scipy.io.savemat(folder / "cells.mat", {"bags": cells})
    scipy.io.savemat(folder / "packed-cells.mat", {"bags": cells}, do_compression=True)
    few = {name: values[:25] for name, values in labelled.items()}
    scipy.io.savemat(folder / SMALL_MAT, few)


def _write_folders(folder: Path, bags: gmil.Bags, y: Any) -> None:
    for kind in ("npy", "npz", "parquet"):
        place = folder / f"bags-{kind}"
        place.mkdir()
        lines = [f"b{i},{label}\n" for i, label in enumerate(y)]
        (place / "labels.csv").write_text("bag,label\n" + "".join(lines))
        for i, bag in enumerate(bags):
            _write_bag(place / f"b{i}.{kind}", bag)
    place = folder / "table-parquet"
    place.mkdir()
    gmil.write(place / "0.parquet", bags[:9], y[:9])
    later = gmil.Bags(bags[9:].instances, bags[9:].offsets, np.arange(9, len(bags)))
    gmil.write(place / "1.parquet", later, y[9:])


def _write_bag(path: Path, bag: Any) -> None:
    if path.suffix == ".npy":
        np.save(path, bag)
    elif path.suffix == ".npz":
        np.savez(path, X=bag)
    else:
        columns = {f"f{i}": column for i, column in enumerate(np.asarray(bag).T)}
        pq.write_table(pa.table(columns), path, write_page_checksum=True)


# -------------------------------------------------------------------------------- the same bytes again


def settled(data: bytes) -> bytes:
    """Return a model file whose skops archives have no dates and no addresses of objects."""
    tensors, metadata = parse(data)
    for name, tensor in tensors.items():
        if tensor.data.startswith(b"PK"):
            archive = zipped(_renumbered(unzip(tensor.data)))
            tensors[name] = Tensor("U8", [len(archive)], archive)
    sign(tensors, metadata)
    return pack(tensors, dict(sorted(metadata.items())))  # safetensors writes them in any order


def _renumbered(members: list[Member]) -> list[Member]:
    schema = next(member for member in members if member.name == "schema.json")
    text = schema.data.decode()
    addresses = dict.fromkeys(re.findall(r'"__id__": (\d+)', text))
    numbers = {address: str(100_000 + i) for i, address in enumerate(addresses)}
    pattern = re.compile("|".join(sorted(numbers, key=len, reverse=True)))
    schema.data = pattern.sub(lambda found: numbers[found[0]], text).encode()
    for member in members:
        member.name = pattern.sub(lambda found: numbers[found[0]], member.name)
    return members
