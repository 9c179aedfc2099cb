"""`gmil.heatmap`: from bags and scores to the map of one slide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import BagValidationError, listed
from gmil.heatmaps.heatmap import HeatMap
from gmil.heatmaps.places import has_places, places_of, slides_of
from gmil.heatmaps.quantities import Quantity
from gmil.heatmaps.values import checked_limits, colour_limits, smoothed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats
    from gmil.heatmaps.places import Places, Slide

VALUES = ("score", "percentile")


def heatmap(
    bags: Bags,
    scores: ArrayLike,
    *,
    slide: Any = None,
    value: str = "score",
    limits: tuple[float, float] | None = None,
    colors: str = "viridis",
    patch_size: float | None = None,
    bandwidth: float | None = None,
    meaning: str = "",
    label: str = "",
) -> HeatMap:
    """Return the scores of the patches of one slide as a map.

    Patches need not lie on one lattice: pieces of tissue may have their own. Where patches overlap, the map has their
    mean; where there is none, it is transparent.

    Parameters
    ----------
    bags : Bags
        With ``instance_info``: ``x`` and ``y``, the top left corner of a patch, and, where they are known,
        ``patch_size``, ``unit`` ("px" or "um") and ``slide``, for bags of several slides.
    scores : array of shape (n_instances,)
        As ``score_instances`` returns them, one class of several.
    slide : object, optional
        Which one: the id of a bag, or a name of the column ``slide``. Needed where there are several.
    value : {"score", "percentile"}, default="score"
        What the colours show: the score, or its rank within the slide.
    limits : (float, float), optional
        The values at the two ends of the colours, the same for all slides that are to be compared. By default the 1st
        and 99th percentile of the scores (of fewer than 100 patches the lowest and the highest); 0 and 100 for
        percentiles.
    colors : {"viridis", "inferno", "cividis", "diverging"}, default="viridis"
        The last is for scores on both sides of 0, which gets the colour in the middle.
    patch_size : float, optional
        The side of a patch in the unit of ``x``, where ``instance_info`` does not have it. By default the usual
        distance between neighbours, and the map says so.
    bandwidth : float, optional
        Scores become Gaussian means over neighbours, as of `gmil.smooth_scores`. By default they stay as they are.
    meaning, label : str
        What a score means, and the class that it is about, for the legend.

    Returns
    -------
    HeatMap
        ``image``, ``save_png()``, ``to_geojson()`` and ``to_csv()``.

    Examples
    --------
    >>> import gmil
    >>> places = {"x": [0, 256, 512], "y": [0, 0, 256], "patch_size": [256, 256, 256]}
    >>> bags = gmil.Bags.from_list([[[1.0], [2.0], [3.0]]], bag_ids=["s1"], instance_info=places)
    >>> found = gmil.heatmap(bags, [0.1, 0.2, 0.9], limits=(0, 1))
    >>> found
    HeatMap('s1', 3 patches, score from 0 to 1)
    >>> found.percentiles.round().tolist()
    [33.0, 67.0, 100.0]
    >>> found.to_geojson(top=1)["features"][0]["geometry"]["coordinates"]
    [[[512, 256], [768, 256], [768, 512], [512, 512], [512, 256]]]
    """
    given = np.asarray(scores, dtype=np.float64)
    if given.shape != (bags.n_instances,):
        msg = f"must have one number for each of the {bags.n_instances} instances, got shape {given.shape}."
        raise BagValidationError(msg, parameter="scores")
    info = bags.instance_info
    if info is None or not has_places(info):
        there = [] if info is None else info.column_names
        msg = f"A map needs instance_info with 'x' and 'y', but its columns are {there}."
        raise BagValidationError(msg, parameter="bags", fix="Keep the columns when the bags are made, with info=[...].")
    found = _chosen(list(slides_of(bags)), slide)
    places = places_of(info.take(found.rows), found.name, patch_size)
    return make_map(
        found.name,
        places,
        given[found.rows],
        value=value,
        limits=limits,
        colors=colors,
        bandwidth=bandwidth,
        quantity=Quantity(meaning, str(label)),
    )


def make_map(
    name: str,
    places: Places,
    scores: Floats,
    *,
    value: str = "score",
    limits: tuple[float, float] | None = None,
    colors: str = "viridis",
    bandwidth: float | None = None,
    quantity: Quantity = Quantity(),  # noqa: B008  it cannot change
) -> HeatMap:
    """Return the map of patches, with limits of its own where none are given."""
    if value not in VALUES:
        msg = f"must be one of {', '.join(VALUES)}, got {value!r}."
        raise BagValidationError(msg, parameter="value")
    smooth = scores if bandwidth is None else smoothed(scores, places, bandwidth)
    if bandwidth is not None:
        said = f"{quantity.meaning}, averaged" if quantity.meaning else "averaged"
        quantity = quantity._replace(meaning=f"{said} over neighbours")
    ends = (0.0, 100.0) if value == "percentile" else colour_limits(smooth, colors)
    return HeatMap(name, places, smooth, value, ends if limits is None else checked_limits(limits), colors, quantity)


def _chosen(slides: list[Slide], wanted: Any) -> Slide:
    names = [slide.name for slide in slides]
    if wanted is None and len(slides) > 1:
        msg = f"There are {len(slides)} slides: {listed(names)}."
        raise BagValidationError(msg, parameter="slide", fix="Choose one with {slide}")
    if wanted is None:
        return slides[0]
    if str(wanted) not in names:
        msg = f"There is no slide {wanted!r}; the slides are {listed(names)}."
        raise BagValidationError(msg, parameter="slide", fix="Choose another with {slide}")
    return slides[names.index(str(wanted))]
