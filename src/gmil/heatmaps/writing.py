"""Maps of many slides: scored one after the other, each written when it is done, and a page of all of them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError, DiskError, FileAccessError, GmilError
from gmil.heatmaps.file_names import file_name
from gmil.heatmaps.making import VALUES, make_map
from gmil.heatmaps.page import PageSlide, page_slide, write_page
from gmil.heatmaps.places import has_places, places_of, slides_of
from gmil.heatmaps.scoring import Outcome, class_named, refuse_no_scores, score_bag
from gmil.heatmaps.thumbnails import SlideFolder, SlideImage, read_slide
from gmil.heatmaps.values import colour_limits

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from gmil.bags import Bags
    from gmil.heatmaps.heatmap import HeatMap
    from gmil.scale import LazyBags

SCALES = ("slide", "cohort")


@dataclass(frozen=True)
class MapSettings:
    """How maps are made; `write_maps` explains the fields."""

    label: str | None = None
    value: str = "score"
    scale: str = "slide"
    smooth: bool = False
    colors: str = "viridis"
    patch_size: float | None = None
    mpp: float | None = None
    top: int | None = None
    threshold: float | None = None
    compressed: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (("scale", SCALES), ("value", VALUES)):
            if getattr(self, name) not in allowed:
                msg = f"must be one of {', '.join(allowed)}, got {getattr(self, name)!r}."
                raise BagValidationError(msg, parameter=name)


class SlideMaps(NamedTuple):
    """The maps of one slide, one of every model, with what is predicted for its bag."""

    name: str
    bag: str
    given: str | None
    maps: list[HeatMap]
    outcomes: list[Outcome]


@dataclass
class WrittenMaps:
    """What `write_maps` wrote.

    Parameters
    ----------
    folder : Path
    slides : list of str
        The names of the slides, in their order.
    failures : dict of str
        Why a slide has no map, by name.
    notes : list of str
        What is there but less than it could be.
    """

    folder: Path
    slides: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def listing_failures(self, name: str) -> Iterator[None]:
        """Write down why work on a slide failed, and go on; a full disk ends everything."""
        try:
            yield
        except DiskError:
            raise
        except (GmilError, OSError, ValueError, MemoryError) as error:
            self.failures[name] = str(error) or type(error).__name__


def write_maps(
    models: Any,
    bags: Bags | LazyBags,
    folder: str | os.PathLike[str],
    *,
    y: Any = None,
    slides: str | os.PathLike[str] | None = None,
    title: str = "Maps of slides",
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> WrittenMaps:
    """Write a PNG, a GeoJSON and a CSV file of every slide, and ``index.html``, a page of all of them.

    Slides are read, scored and written one after the other. A slide that fails is listed, and the rest goes on.

    Parameters
    ----------
    models : fitted classifier, or dict of them
        By name; the files of several are in folders of these names, and the page shows them side by side.
    bags : Bags or LazyBags
        With ``x`` and ``y`` in ``instance_info``, see `gmil.heatmap`.
    folder : path
        Where the files go; it is made where it is not there.
    y : array of shape (n_bags,), optional
        Labels, for the page.
    slides : path, optional
        A folder with slide files, whose pictures are shown below the maps.
    title : str
        Of the page.
    progress : callable, optional
        Called with the number of bags done and of all.
    **settings
        ``label`` (the class, by default the positive of two, else the predicted one), ``value`` ("score" or
        "percentile"), ``scale`` ("slide", or "cohort" for the same colours in all slides), ``smooth`` (average over
        neighbours), ``colors``, ``patch_size``, ``mpp`` (micrometres of a pixel), ``top`` and ``threshold`` (of the
        patches in GeoJSON), ``compressed`` (``.geojson.gz``).

    Returns
    -------
    WrittenMaps
        ``slides``, ``failures`` and ``notes``.
    """
    named: dict[str, Any] = dict(models) if isinstance(models, dict) else {"": models}
    work = _Work(named, bags, _made_folder(Path(folder)), MapSettings(**settings), y, progress)
    work.slide_files = None if slides is None else SlideFolder(slides)
    for model in named.values():
        refuse_no_scores(model)
    work.refuse_no_places()
    found: Any = work.scored()
    if work.settings.scale == "cohort":
        found = _on_one_scale(list(found))
    pages = [page for maps in found if (page := work.written(maps)) is not None]
    if work.found.slides:
        write_page(work.folder / "index.html", pages, list(named), title, work.settings)
    return work.found


def _made_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder} cannot be the folder of maps: {error.strerror}. Name another."
        raise FileAccessError(msg) from error
    return folder


def _on_one_scale(found: list[SlideMaps]) -> list[SlideMaps]:
    """Return maps whose colours have the same ends in all slides, for every model its own."""
    if not found or found[0].maps[0].value != "score":
        return found  # percentiles have the same ends everywhere
    columns = zip(*(slide.maps for slide in found), strict=True)
    ends = [colour_limits(np.concatenate([m.scores for m in maps]), maps[0].colors) for maps in columns]
    return [
        slide._replace(maps=[replace(m, limits=both) for m, both in zip(slide.maps, ends, strict=True)])
        for slide in found
    ]


@dataclass
class _Work:
    """The way of slides from bags to files."""

    models: Mapping[str, Any]
    bags: Any
    folder: Path
    settings: MapSettings
    y: Any
    progress: Callable[[int, int], None] | None
    slide_files: SlideFolder | None = None

    def __post_init__(self) -> None:
        self.found = WrittenMaps(self.folder)
        self._taken: set[str] = set()
        taken: set[str] = set()
        several = len(self.models) > 1
        self._folders = [self.folder / file_name(name, taken) if several else self.folder for name in self.models]
        self._labels = [class_named(model, self.settings.label) for model in self.models.values()]

    def refuse_no_places(self) -> None:
        """Refuse bags without coordinates before anything is scored."""
        info = self.bags[[0]].instance_info
        if not has_places(info):
            there = "there is none" if info is None else f"its columns are {info.column_names}"
            msg = f"A map needs instance_info with 'x' and 'y', but {there}."
            raise BagValidationError(msg, parameter="bags", fix="Keep the columns when the bags are made.")

    def scored(self) -> Iterator[SlideMaps]:
        """Yield the maps of every slide, bag by bag; only one bag is in memory."""
        ids = self.bags.bag_ids
        for position in range(len(self.bags)):
            name = str(position if ids is None else ids[position])
            with self.found.listing_failures(name):
                yield from self._maps_of_bag(position, name)
            if self.progress is not None:
                self.progress(position + 1, len(self.bags))

    def _maps_of_bag(self, position: int, name: str) -> Iterator[SlideMaps]:
        bag = self.bags[[position]]
        bag = bag.load() if hasattr(bag, "load") else bag
        pairs = zip(self.models.values(), self._labels, strict=True)
        scored = [score_bag(model, bag, label) for model, label in pairs]
        given = None if self.y is None else str(np.asarray(self.y)[position])
        for slide in slides_of(bag, [name]):
            with self.found.listing_failures(slide.name):
                places = places_of(bag.instance_info.take(slide.rows), slide.name, self.settings.patch_size)
                width = places.side[0] if np.isnan(places.spacing) else places.spacing
                how: dict[str, Any] = {"value": self.settings.value, "colors": self.settings.colors}
                how["bandwidth"] = float(width) if self.settings.smooth else None
                maps = [make_map(slide.name, places, s.scores[slide.rows], quantity=s.quantity, **how) for s in scored]
                yield SlideMaps(slide.name, name, given, maps, [s.outcome for s in scored])

    def written(self, slide: SlideMaps) -> PageSlide | None:
        """Write the files of a slide; return what the page shows of it, None where that failed."""
        shown = None
        with self.found.listing_failures(slide.name):
            image = self._image(slide.name)
            stem = file_name(slide.name, self._taken)
            for folder, found in zip(self._folders, slide.maps, strict=True):
                folder.mkdir(exist_ok=True)
                self._write(found, folder / stem, image)
            shown = page_slide(slide, image, [self._files(folder, stem) for folder in self._folders])
            self.found.slides.append(slide.name)
        return shown

    def _image(self, name: str) -> SlideImage | None:
        """Return the picture of a slide; a file that cannot be read is a note, and the map is drawn on white."""
        if self.slide_files is None:
            return None
        try:
            path = self.slide_files.find(name)
            if path is not None:
                return read_slide(path)
            self.found.notes.append(f"{name}: no slide file of that name; drawn on white.")
        except GmilError as error:
            self.found.notes.append(f"{name}: {error} Drawn on white.")
        return None

    def _write(self, found: HeatMap, path: Path, image: SlideImage | None) -> None:
        mpp = self.settings.mpp or (None if image is None else image.mpp)
        if image is not None:
            image = image._replace(mpp=mpp)
        knows_pixels = found.places.unit == "px" or mpp is not None
        found.save_png(_with(path, ".png"), slide=image if knows_pixels else None)
        found.to_csv(_with(path, ".csv"))
        if not knows_pixels:
            self.found.notes.append(f"{found.name}: no GeoJSON, as its micrometres need the size of a pixel (mpp).")
            return
        origin = (0.0, 0.0) if image is None else image.origin
        target, how = _with(path, self._geojson), self.settings
        found.to_geojson(target, mpp=mpp, origin=origin, top=how.top, threshold=how.threshold)

    @property
    def _geojson(self) -> str:
        return ".geojson.gz" if self.settings.compressed else ".geojson"

    def _files(self, folder: Path, stem: str) -> list[str]:
        """Return the files of a map as the page refers to them."""
        paths = (_with(folder / stem, suffix) for suffix in (".png", self._geojson, ".csv"))
        return [path.relative_to(self.folder).as_posix() for path in paths if path.exists()]


def _with(path: Path, suffix: str) -> Path:
    """Return a path with a suffix more: dots in names of slides are part of them."""
    return path.with_name(path.name + suffix)
