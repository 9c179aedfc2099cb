"""From a folder of slides to bags on disk: layout, headers, labels, patients, splits."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError, FormatError, SlideWarning, count_of, listed
from gmil.scale import LazyBags
from gmil.slides import labels as slide_labels
from gmil.slides.hdf5 import DamagedFileError
from gmil.slides.layouts import Asked, chosen_layout
from gmil.slides.layouts.base import is_unfinished
from gmil.slides.source import SlideSource
from gmil.slides.tables import read_tables

if TYPE_CHECKING:
    import os

    from gmil.slides.labels import Joined
    from gmil.slides.layouts.base import Layout
    from gmil.slides.slide import Slide
    from gmil.slides.tables import Table

_log = logging.getLogger("gmil.slides")


class Request(NamedTuple):
    """What a user says about a folder of slides."""

    labels: Any = None
    """A path, or two: of a table of patients and of one of slides; () for no table, not even that of the folder."""
    bag: str | None = None
    label: str | None = None
    group: str | None = None
    layout: str | None = None
    mpp: float | None = None
    patch_size: float | None = None
    splits: Any = None
    event: str | None = None

    @property
    def tables(self) -> list[Any]:
        """The paths of the tables that were named."""
        given = self.labels
        return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]


class Cohort(NamedTuple):
    """Bags of slides on disk; labels and groups are texts, as the table has them."""

    bags: LazyBags
    labels: list[str] | None
    groups: list[str] | None
    layout: str
    joined: Joined
    table: Table | None


def scan_cohort(folder: Path, request: Request) -> Cohort:
    """Open the slides of a folder: headers and labels are read, embeddings are not."""
    _check_sizes(request)
    table = _table(folder, request)
    columns = () if table is None else tuple(table.names)
    layout = chosen_layout(folder, request.layout, Asked(columns, request.mpp, request.patch_size))
    if table is None and request.labels is None:
        own = layout.labels_table()
        table = None if own is None else read_tables([own])
    found = _headers(layout)
    joined = _joined(layout, found, table, request)
    slides = [found[name] for names in joined.slides for name in names]
    source = SlideSource.of(slides, layout.title, by_patient=joined.by_patient)
    cuts = np.cumsum([0, *(len(names) for names in joined.slides)])
    bags = LazyBags(source, source.edges[cuts], np.array(joined.names))
    sizes = count_of(len(slides), "slide"), count_of(len(bags), "bag")
    _log.info("%s is read as %s: %s, %s.", folder, layout.title, *sizes)
    return Cohort(bags, joined.labels, joined.groups, layout.title, joined, table)


def _check_sizes(request: Request) -> None:
    for name in ("mpp", "patch_size"):
        value = getattr(request, name)
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < float("inf")):
            msg = f"must be a number above 0, got {value!r}."
            raise BagValidationError(msg, parameter=name)


def _table(folder: Path, request: Request) -> Table | None:
    return read_tables([_placed(folder, path) for path in request.tables]) if request.tables else None


def _placed(folder: Path, path: str | os.PathLike[str]) -> Path:
    """Return a path as it stands, or in the folder where it is there alone."""
    path = Path(path)
    return path if path.exists() or not (folder / path).exists() else folder / path


def _headers(layout: Layout) -> dict[str, Slide]:
    """Return slides with patches; warn about those that are empty, unfinished or damaged."""
    found: dict[str, Slide] = {}
    empty: list[str] = []
    unusable: list[str] = []
    for name, path in layout.files.items():
        if is_unfinished(path):
            unusable.append(f"{path.name} (unfinished)")
            continue
        try:
            slide = layout.slide(name)
        except DamagedFileError:
            unusable.append(f"{path.name} (damaged)")
            continue
        if slide.n_patches:
            found[name] = slide
        else:
            empty.append(name)
    parts = [f"{count_of(len(unusable), 'file')} cannot be used: {listed(unusable, most=20)}"] if unusable else []
    parts += [f"{count_of(len(empty), 'slide has', 'slides have')} no patches: {listed(empty)}"] if empty else []
    if not found:
        msg = f"{layout.folder} ({layout.title}) has no slide with patches. {'; '.join(parts)}."
        raise FormatError(msg)
    if parts:
        warnings.warn(SlideWarning(f"Left out: {'; '.join(parts)}."), stacklevel=5)
    return found


def _joined(layout: Layout, found: dict[str, Slide], table: Table | None, request: Request) -> Joined:
    if table is not None:
        asked = slide_labels.Asked(request.bag, request.label, request.group, request.event)
        return slide_labels.joined(table, list(found), asked)
    wanted = next((name for name in ("label", "group", "splits", "event") if getattr(request, name) is not None), None)
    if wanted is not None:
        msg = f"needs a table of slides, and {layout.folder} has none."
        raise BagValidationError(msg, parameter=wanted, fix="")
    every = slide_labels.unjoined(list(found))
    own = [layout.own_label(name) for name in found]
    return every if None in own else every._replace(labels=[str(text) for text in own])
