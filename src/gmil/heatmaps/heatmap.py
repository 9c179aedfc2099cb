"""`HeatMap`: scores of the patches of one slide, as a picture, as GeoJSON and as a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from gmil.errors import count_of
from gmil.heatmaps.geojson import feature_collection, write_geojson
from gmil.heatmaps.pictures import draw_patches, draw_picture
from gmil.heatmaps.png import png_bytes
from gmil.heatmaps.quantities import Quantity
from gmil.heatmaps.thumbnails import SlideImage, read_slide
from gmil.heatmaps.values import percentile_ranks
from gmil.safety.atomic import replacing

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers
    from gmil.heatmaps.places import Places


@dataclass(frozen=True, eq=False, repr=False)
class HeatMap:
    """Scores of the patches of one slide.

    `gmil.heatmap` makes it. Raw scores and percentile ranks within the slide are kept apart: every slide has patches
    of high percentile, and only scores tell whether they are high.

    Parameters
    ----------
    name : str
        Of the slide.
    places : Places
        Where the patches are.
    scores : array of shape (n_patches,)
        NaN where a patch has none.
    value : {"score", "percentile"}
        What the colours show.
    limits : (float, float)
        The values at the two ends of the colours.
    colors : str
    quantity : Quantity
        What a score means.
    """

    name: str
    places: Places
    scores: Floats
    value: str
    limits: tuple[float, float]
    colors: str = "viridis"
    quantity: Quantity = Quantity()  # noqa: RUF009  it cannot change

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        low, high = self.limits
        size = count_of(len(self), "patch", "patches")
        return f"HeatMap({self.name!r}, {size}, {self.value} from {low:.4g} to {high:.4g})"

    @cached_property
    def percentiles(self) -> Floats:
        """The rank of every score within the slide, from above 0 to 100; equal scores share their mean rank."""
        return percentile_ranks(self.scores)

    @property
    def values(self) -> Floats:
        """What the colours show of every patch."""
        return self.scores if self.value == "score" else self.percentiles

    @property
    def image(self) -> NDArray[np.uint8]:
        """The patches alone, (height, width, 4): red, green, blue, and 0 where there is no patch, else 255."""
        return draw_patches(self)

    @property
    def legend(self) -> str:
        """What is shown, in one sentence."""
        label = self.quantity.label
        about = f" for {'class ' * label.replace('.', '').isdigit()}{label}" if label else ""
        what = f"score{about}" if self.value == "score" else f"percentile rank of the score{about} within the slide"
        meaning = f": {self.quantity.meaning}" if self.quantity.meaning else ""
        sizes = "; patch size unknown, drawn one spacing wide" if self.places.is_estimated else ""
        return f"{what[0].upper()}{what[1:]}{meaning}{sizes}."

    def limit_texts(self) -> tuple[str, str]:
        """Return the two ends of the colours as words, which tell where values lie beyond."""
        low, high = self.limits
        finite = self.values[np.isfinite(self.values)]
        below, above = (finite < low).any(), (finite > high).any()
        return f"{'<= ' * bool(below)}{low:.3g}", f"{'>= ' * bool(above)}{high:.3g}"

    def measurements(self) -> dict[str, Floats]:
        """Return what is known of every patch by name: score, percentile, and probability where a score tells it."""
        found = {"score": self.scores, "percentile": self.percentiles}
        return {**found, "probability": expit(self.scores)} if self.quantity.is_log_odds else found

    def highest(self, top: int | None = None, threshold: float | None = None) -> Integers:
        """Return patches by value, the highest first; those without one are last.

        Parameters
        ----------
        top : int, optional
            At most so many.
        threshold : float, optional
            Those of at least this value.
        """
        order = np.argsort(-self.values, kind="stable")
        if threshold is not None:
            order = order[self.values[order] >= threshold]
        return order[:top]

    def at_pixels_of(self, slide: SlideImage) -> HeatMap:
        """Return the map in pixels of level 0 of a slide.

        Parameters
        ----------
        slide : SlideImage
        """
        return replace(self, places=self.places.in_pixels(slide.mpp))

    # ---------------------------------------------------------------- files

    def save_png(
        self,
        path: str | os.PathLike[str],
        *,
        slide: SlideImage | str | os.PathLike[str] | None = None,
        legend: bool = True,
    ) -> Path:
        """Write the picture: the patches on white, or on the slide, with a legend.

        Parameters
        ----------
        path : path
        slide : path, optional
            The slide file, which OpenSlide reads.
        legend : bool, default=True
            Whether a bar of colours, its ends and what is shown stand below.

        Returns
        -------
        pathlib.Path
        """
        below = slide if slide is None or isinstance(slide, SlideImage) else read_slide(slide)
        pixels = draw_picture(self, below, legend=legend)
        low, high = self.limit_texts()
        texts = {"Title": self.name, "Description": f"{self.legend} Colours from {low} to {high}.", "Software": "gmil"}
        with replacing(path) as temporary:
            temporary.write_bytes(png_bytes(pixels, texts))
        return Path(path)

    def to_geojson(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        mpp: float | None = None,
        origin: tuple[float, float] = (0.0, 0.0),
        top: int | None = None,
        threshold: float | None = None,
    ) -> dict[str, Any]:
        """Return the patches as GeoJSON that QuPath opens, the highest value first, and write it where a path is given.

        A patch is a tile: a closed ring in pixels of level 0, with score, percentile and colour.

        Parameters
        ----------
        path : path, optional
            Ends with .geojson, .json, .geojson.gz or .json.gz.
        mpp : float, optional
            Micrometres of a pixel of level 0, which coordinates in micrometres need.
        origin : (float, float)
            The corner of the scanned area, ``openslide.bounds-x`` and ``-y``: QuPath crops to it. It is subtracted.
        top : int, optional
            The highest so many patches only.
        threshold : float, optional
            Patches with at least this value only.

        Returns
        -------
        dict
            A FeatureCollection.
        """
        found = feature_collection(self, self.highest(top, threshold), mpp=mpp, origin=origin)
        if path is not None:
            with replacing(path) as temporary:
                write_geojson(found, temporary)
        return found

    def to_table(self) -> pa.Table:
        """Return a row per patch: slide, x, y, patch_size, unit and what is measured, in the order of the bag."""
        import pyarrow as pa

        fixed = {"slide": [self.name] * len(self), "x": _whole(self.places.x), "y": _whole(self.places.y)}
        sizes = {"patch_size": _whole(self.places.side), "unit": [self.places.unit] * len(self)}
        measured = {name: pa.array(column, from_pandas=True) for name, column in self.measurements().items()}
        return pa.table({**fixed, **sizes, **measured})

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return `to_table` as CSV, and write it where a path is given.

        Parameters
        ----------
        path : path, optional

        Returns
        -------
        str
        """
        import pyarrow as pa
        from pyarrow import csv

        buffer = pa.BufferOutputStream()
        csv.write_csv(self.to_table(), buffer)
        data = buffer.getvalue().to_pybytes()
        if path is not None:
            with replacing(path) as temporary:
                temporary.write_bytes(data)
        return str(data, "utf-8")

    def _repr_png_(self) -> bytes:
        return png_bytes(draw_picture(self))


def _whole(numbers: Floats) -> Any:
    """Return whole numbers as integers, for tables that others read."""
    return numbers.astype(np.int64) if (numbers == numbers.round()).all() else numbers
