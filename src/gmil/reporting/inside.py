"""A look inside a fitted model: codebooks, views, a map of the instances, and bags to explore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.greedy import codebook
from gmil.reporting.explorer import explore
from gmil.reporting.judging import judge, unwrap
from gmil.reporting.places import map_instances, space_of
from gmil.reporting.summary import Bin, ModelLook, ViewWeight
from gmil.validation import check_bags
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from gmil.reporting.judging import Judged

_LONGEST_PARAMETERS = 400


def look_inside(
    model: Any, bags: Any, y: Any = None, *, label: Any = None, title: str = "", seen: bool | None = None
) -> tuple[ModelLook, Judged]:
    """Return what is to be seen inside a model, and what it says about the bags.

    Parameters
    ----------
    model : fitted classifier
    bags : Bags, or what estimators take
    y : array of shape (n_bags,), optional
    label : label, optional
        The class to look at.
    title : str
    seen : bool, optional
        Whether the model was fitted on these bags; None where that is not known.
    """
    bags = check_bags(bags)
    judged = judge(model, bags, y, label)
    inner, inside = unwrap(model, bags)
    space = space_of(inner, inside, judged.column)
    plane, instance_map = map_instances(inside, judged.positive, space)
    look = ModelLook(
        title=title or f"Inside {type(inner).__name__}",
        model=_description(inner),
        text=_text(seen, labels_known=y is not None),
        positive=judged.label,
        bins=bins_of(inner, judged.column),
        views=views_of(inner, judged.column),
        map=instance_map,
        explorer=explore(model, bags, judged, inside, space, plane),
    )
    return look, judged


def bins_of(model: Any, column: int) -> list[Bin]:
    """Return the clusters of a model with codebooks, the best score by Eq. 6 first; none for other models."""
    if not hasattr(model, "positive_counts_"):
        return []
    several = np.ndim(model.positive_counts_) == 2
    positive, negative, scores, in_positive, in_negative = (
        values[column] if several else values
        for values in (
            model.positive_counts_,
            model.negative_counts_,
            model.bin_scores_,
            model.positive_bins_,
            model.negative_bins_,
        )
    )
    shares = codebook.normalised(np.stack([positive, negative]))
    return [
        Bin(
            number=k,
            positive_count=float(positive[k]),
            negative_count=float(negative[k]),
            positive_share=float(shares[0, k]),
            negative_share=float(shares[1, k]),
            score=float(scores[k]),
            in_positive=k in in_positive,
            in_negative=k in in_negative,
        )
        for k in np.argsort(-scores, kind="stable").tolist()
    ]


def views_of(model: Any, column: int) -> list[ViewWeight]:
    """Return the views of a `WeightedGMIL` that have a say, the largest first; none for other models."""
    if not isinstance(model, WeightedGMIL):
        return []
    found = []
    for view in model.view_weights_:
        weights = np.atleast_1d(view["weights"])
        weight = float(weights[min(column, len(weights) - 1)])
        if weight > 0:
            found.append(ViewWeight(f"{view['kind']}, {view['scale'] or 'raw'}, {view['kernel']}", weight))
    return sorted(found, key=lambda view: -view.weight)


def _description(model: Any) -> str:
    text = " ".join(str(model).split())
    return text if len(text) <= _LONGEST_PARAMETERS else f"{text[: _LONGEST_PARAMETERS - 3]}..."


def _text(seen: bool | None, *, labels_known: bool) -> str:
    if seen:
        return "The model was fitted on the bags that are shown: what it says about them is not a test."
    known = "" if labels_known else " No labels were given: colours follow the predictions."
    return f"Where the model was fitted on the bags that are shown, what it says about them is not a test.{known}"
