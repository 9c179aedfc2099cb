"""Folders of slides as `read` and `scan` return them: bags and labels, or a Bunch with patients and folds."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BagValidationError, SlideWarning, count_of, listed
from gmil.io.formats.rows import labels_from_text
from gmil.slides.cohort import Request, scan_cohort
from gmil.slides.layouts import is_slide_folder
from gmil.slides.splits import Known, read_folds
from gmil.target_checks import outcomes_of, seen_events

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from gmil.bags import Bags
    from gmil.slides.cohort import Cohort
    from gmil.slides.splits import Fold

__all__ = ["Request", "is_read_as_slides", "is_slide_folder", "read_cohort", "read_slides"]


def is_read_as_slides(path: Path, request: Request) -> bool:
    """Tell whether a path is a folder of slides; what only such a folder has is refused of others."""
    if path.is_dir() and (request.layout is not None or is_slide_folder(path)):
        return True
    refuse_slide_arguments(request, path)
    return False


def refuse_slide_arguments(request: Request, source: Any) -> None:
    """Refuse what only folders of slides have."""
    given = next((name for name in ("group", "layout", "mpp", "patch_size", "splits") if getattr(request, name)), None)
    if given is not None:
        name = source if hasattr(source, "suffix") else "a table"
        msg = f"is for folders of slides (.h5, .pt), and {name} is none."
        raise BagValidationError(msg, parameter=given)


def read_slides(folder: Path, request: Request, *, in_memory: bool) -> Any:
    """Return bags and labels of a folder; with patients or splits a Bunch."""
    found = read_cohort(folder, request, in_memory=in_memory)
    return (found.bags, found.y) if request.group is None and request.splits is None else found


def read_cohort(folder: Path, request: Request, *, in_memory: bool) -> Bunch:
    """Return the bags of a folder, their labels, groups and folds, None where there are none, and its layout."""
    from sklearn.utils import Bunch

    found = scan_cohort(folder, request)
    y: Any = None if found.labels is None else labels_from_text(np.array(found.labels, dtype=object))
    if y is not None and found.joined.events is not None:
        y = outcomes_of(seen_events(found.joined.events, parameter="event"), y)
    bags: Any = _loaded(found.bags) if in_memory else found.bags
    groups = None if found.groups is None else np.array(found.groups)
    folds = None if request.splits is None else _folds(request.splits, found, folder)
    return Bunch(
        bags=bags,
        y=y,
        groups=groups,
        folds=None if folds is None else [(fold.train, fold.test) for fold in folds],
        validation=None if folds is None else [fold.val for fold in folds],
        layout=found.layout,
    )


def _folds(splits: Any, found: Cohort, folder: Path) -> list[Fold]:
    joined = found.joined
    known = Known(joined.names, joined.slides, joined.groups)
    is_in_folder = isinstance(splits, (str, os.PathLike)) and not Path(splits).exists() and (folder / splits).exists()
    return read_folds(folder / splits if is_in_folder else splits, known, found.table)


def _loaded(lazy: Any) -> Bags:
    """Read slides into memory, half precision as single precision; tell which have values that are not finite."""
    bags: Bags = lazy.load()
    wrong = np.array([not np.isfinite(row).all() for row in bags.instances]) if _has_holes(bags) else np.zeros(1, bool)
    if wrong.any():
        names = np.unique(np.asarray(bags.bag_ids)[bags.segment_ids[wrong]]).tolist()
        patches = count_of(wrong.sum(), "patch has", "patches have")
        msg = f"{patches} NaN or infinity, in {count_of(len(names), 'slide')}: {listed(names)}."
        warnings.warn(SlideWarning(msg), stacklevel=5)
    return bags


def _has_holes(bags: Bags) -> bool:
    return not np.isfinite(bags.instances.sum(dtype=np.float64))
