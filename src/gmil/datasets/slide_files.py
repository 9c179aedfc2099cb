"""Writers of cohorts, one per layout: files, attributes and tables as the tools write them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Bunch

from gmil.safety.atomic import new_folder
from gmil.slides.hdf5 import import_h5py
from gmil.slides.torch_files import import_torch

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from gmil.datasets.slides import MadeSlide

_MAGNIFICATION, _TARGET, _MPP = 40, 20, 0.25
_SIDE = 512
"""The side of a patch at level 0: 256 pixels at 20x of a slide that was scanned at 40x."""
_ENCODER = "made"
TRUTH = "patch_labels.csv"


def write_cohort(folder: str | os.PathLike[str], layout: str, slides: Iterable[MadeSlide]) -> Bunch:
    """Write slides one by one, the truth about patches, and the tables of the layout; the folder appears at the end."""
    write, finish = LAYOUTS[layout]
    target = Path(folder)
    rows: list[tuple[str, str, int, str]] = []
    with new_folder(target) as top:
        with (top / TRUTH).open("w", newline="", encoding="utf-8") as file:
            truth = csv.writer(file, lineterminator="\n")
            truth.writerow(["slide", "x", "y", "tumour"])
            for slide in slides:
                write(top, slide)
                columns = (
                    slide.corners[:, 0].tolist(),
                    slide.corners[:, 1].tolist(),
                    slide.tumour.astype(int).tolist(),
                )
                truth.writerows((slide.name, x, y, mark) for x, y, mark in zip(*columns, strict=True))
                rows.append((slide.patient, slide.name, slide.label, slide.site))
        found = finish(top, rows, target)
    tables = found.pop("tables")
    labels = [str(target / name) for name in tables]
    return Bunch(
        folder=str(target),
        labels=labels[0] if len(labels) == 1 else labels or None,
        patch_labels=str(target / TRUTH),
        layout=layout,
        **found,
    )


def _write_table(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def _labels(top: Path, rows: list[tuple[str, str, int, str]], _target: Path) -> dict[str, Any]:
    _write_table(top / "labels.csv", ["case_id", "slide_id", "label", "site"], rows)
    return {"tables": ["labels.csv"], "bag": "slide_id", "label": "label", "group": "case_id"}


def _hdf5(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    return import_h5py().File(path, "w")


def _save_tensor(path: Path, features: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch = import_torch()
    torch.save(torch.from_numpy(np.ascontiguousarray(features)), path)


def _save_array(path: Path, array: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


# -------------------------------------------------------------------------------- layouts


def _trident(top: Path, slide: MadeSlide) -> None:
    job = top / f"{_TARGET}x_256px_0px_overlap"
    attributes = {
        "patch_size": 256,
        "patch_size_level0": _SIDE,
        "level0_magnification": _MAGNIFICATION,
        "target_magnification": _TARGET,
        "overlap": 0,
        "name": slide.name,
        "savetodir": job.name,
        "level0_width": int(slide.corners[:, 0].max()) + _SIDE,
        "level0_height": int(slide.corners[:, 1].max()) + _SIDE,
    }
    with _hdf5(job / "patches" / f"{slide.name}_patches.h5") as file:
        _chunked(file, "coords", slide.corners.astype(np.int64)).attrs.update(attributes)
    with _hdf5(job / f"features_{_ENCODER}" / f"{slide.name}.h5") as file:
        about = {"name": slide.name, "savetodir": job.name, "encoder": _ENCODER}
        _chunked(file, "features", slide.features).attrs.update(about)
        _chunked(file, "coords", slide.corners.astype(np.int64)).attrs.update(attributes)


def _chunked(file: Any, name: str, array: Any, rows: int = 1) -> Any:
    shape = array.shape
    return file.create_dataset(
        name, data=array, maxshape=(None, *shape[1:]), chunks=(min(rows, len(array)), *shape[1:])
    )


def _clam(top: Path, slide: MadeSlide) -> None:
    with _hdf5(top / "patches" / f"{slide.name}.h5") as file:
        _chunked(file, "coords", slide.corners.astype(np.int32)).attrs.update(
            {
                "patch_size": _SIDE,
                "patch_level": 0,
                "downsample": (1.0, 1.0),
                "name": slide.name,
                "save_path": "patches",
            }
        )
    with _hdf5(top / "h5_files" / f"{slide.name}.h5") as file:
        _chunked(file, "features", slide.features.astype(np.float32), 32)
        _chunked(file, "coords", slide.corners.astype(np.int32), 32)
    _save_tensor(top / "pt_files" / f"{slide.name}.pt", slide.features.astype(np.float32))


def _stamp(top: Path, slide: MadeSlide) -> None:
    with _hdf5(top / f"{_ENCODER}-0a1b2c3d" / "cohort" / f"{slide.name}.h5") as file:
        file["feats"] = slide.features.astype(np.float16)
        file["coords"] = (slide.corners * _MPP).astype(np.float32)
        file.attrs.update(
            {
                "stamp_version": "2.4.0",
                "extractor": _ENCODER,
                "unit": "um",
                "tile_size_um": _SIDE * _MPP,
                "tile_size_px": 224,
                "code_hash": "0a1b2c3d",
                "feat_type": "tile",
            }
        )


def _stamp_tables(top: Path, rows: list[tuple[str, str, int, str]], _target: Path) -> dict[str, Any]:
    patients = {patient: (patient, label, site) for patient, _, label, site in rows}
    _write_table(top / "clini.csv", ["PATIENT", "label", "site"], patients.values())
    _write_table(top / "slide.csv", ["PATIENT", "FILENAME"], ((p, f"cohort/{slide}.h5") for p, slide, *_ in rows))
    return {"tables": ["clini.csv", "slide.csv"], "bag": "FILENAME", "label": "label", "group": "PATIENT"}


def _slideflow(top: Path, slide: MadeSlide) -> None:
    _save_tensor(top / f"{slide.name}.pt", slide.features.astype(np.float32))
    np.savez(top / f"{slide.name}.index.npz", slide.corners + _SIDE // 2)


def _slideflow_tables(top: Path, rows: list[tuple[str, str, int, str]], _target: Path) -> dict[str, Any]:
    config = {
        "extractor": {"class": _ENCODER, "kwargs": {}},
        "normalizer": None,
        "tile_px": 256,
        "tile_um": _SIDE * _MPP,
    }
    (top / "bags_config.json").write_text(json.dumps(config), encoding="utf-8")
    _write_table(top / "annotations.csv", ["patient", "slide", "label", "site"], rows)
    return {"tables": ["annotations.csv"], "bag": "slide", "label": "label", "group": "patient"}


def _nnmil(top: Path, slide: MadeSlide) -> None:
    with _hdf5(top / "features" / f"{slide.name}.h5") as file:
        file["features"] = slide.features
        file["coords"] = slide.corners


def _split_of(patients: Iterable[str]) -> dict[str, str]:
    """Return the split of every patient: each fifth is tested, each fifth validates."""
    return {
        patient: ("train", "train", "train", "val", "test")[number % 5]
        for number, patient in enumerate(dict.fromkeys(patients))
    }


def _nnmil_tables(top: Path, rows: list[tuple[str, str, int, str]], _target: Path) -> dict[str, Any]:
    split = _split_of(row[0] for row in rows)
    about = {"dataset_id": "Task001_made", "task_type": "classification", "labels": {"0": "normal", "1": "tumour"}}
    (top / "dataset.json").write_text(json.dumps(about), encoding="utf-8")
    table = ((slide, patient, split[patient], label, site) for patient, slide, label, site in rows)
    _write_table(top / "dataset.csv", ["slide_id", "patient_id", "split", "label", "site"], table)
    return {"tables": ["dataset.csv"], "bag": "slide_id", "label": "label", "group": "patient_id"}


def _torchmil(top: Path, slide: MadeSlide) -> None:
    _save_array(top / "features" / f"features_{_ENCODER}" / f"{slide.name}.npy", slide.features)
    _save_array(top / "labels" / f"{slide.name}.npy", np.array([slide.label]))
    _save_array(top / "patch_labels" / f"{slide.name}.npy", slide.tumour.astype(np.int64))
    _save_array(top / "coords" / f"{slide.name}.npy", slide.corners)


def _torchmil_tables(top: Path, rows: list[tuple[str, str, int, str]], target: Path) -> dict[str, Any]:
    split = _split_of(row[0] for row in rows)
    _write_table(top / "splits.csv", ["bag_name", "split"], ((slide, split[patient]) for patient, slide, *_ in rows))
    return _labels(top, rows, target)


def _mil_baseline(top: Path, slide: MadeSlide) -> None:
    _save_tensor(top / "feats" / f"{slide.name}.pt", slide.features.astype(np.float32))


def _mil_baseline_tables(top: Path, rows: list[tuple[str, str, int, str]], target: Path) -> dict[str, Any]:
    table = ((str(target / "feats" / f"{slide}.pt"), label, patient, site) for patient, slide, label, site in rows)
    _write_table(top / "dataset.csv", ["slide_path", "label", "case_id", "site"], table)
    return {"tables": ["dataset.csv"], "bag": "slide_path", "label": "label", "group": "case_id"}


LAYOUTS: dict[str, tuple[Callable[[Path, MadeSlide], None], Callable[..., dict[str, Any]]]] = {
    "trident": (_trident, _labels),
    "clam": (_clam, _labels),
    "stamp": (_stamp, _stamp_tables),
    "slideflow": (_slideflow, _slideflow_tables),
    "nnmil": (_nnmil, _nnmil_tables),
    "torchmil": (_torchmil, _torchmil_tables),
    "mil_baseline": (_mil_baseline, _mil_baseline_tables),
}
"""How a slide is written, and what is written at the end, by the name of the layout."""
