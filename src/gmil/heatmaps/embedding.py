"""Maps inside the pages of others: the slides of bags that a report shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmil.errors import GmilError
from gmil.heatmaps.making import make_map
from gmil.heatmaps.page import PageSlide, page_slide, within
from gmil.heatmaps.places import has_places, places_of, slides_of
from gmil.heatmaps.writing import SlideMaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats
    from gmil.heatmaps.quantities import Quantity
    from gmil.heatmaps.scoring import Outcome

MOST_BYTES = 8_000_000
"""Of all maps of a report."""


def slides_of_report(
    bags: Bags,
    scores: Floats,
    quantity: Quantity,
    names: Sequence[str],
    given: Sequence[str | None],
    outcomes: Sequence[Outcome],
) -> list[PageSlide]:
    """Return the slides of bags for `gmil.heatmaps.page.viewer`; none where patches have no coordinates.

    Parameters
    ----------
    bags : Bags
        Those that the report shows.
    scores : array of shape (n_instances,)
    quantity : Quantity
    names, given : sequence of str
        What bags are called, and their labels or None.
    outcomes : sequence of Outcome
        What is predicted for them.
    """
    if bags.instance_info is None or not has_places(bags.instance_info):
        return []
    found = []
    for slide in slides_of(bags, names):
        try:
            places = places_of(bags.instance_info.take(slide.rows), slide.name)
        except GmilError:  # x and y of such bags are no places
            continue
        drawn = make_map(slide.name, places, scores[slide.rows], quantity=quantity)
        shown = SlideMaps(slide.name, names[slide.bag], given[slide.bag], [drawn], [outcomes[slide.bag]])
        found.append(page_slide(shown))
    ordered = sorted(found, key=lambda slide: -slide.certainty)
    return within(ordered, MOST_BYTES)
