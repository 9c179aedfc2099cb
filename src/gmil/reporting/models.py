"""`gmil.report`: a fitted model and bags as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.greedy import codebook
from gmil.model_selection.folds import last_step
from gmil.paper.runs.environment import versions
from gmil.pipeline import kept_instances
from gmil.reporting.explorer import explore
from gmil.reporting.predictions import predict_bags, unwrap
from gmil.reporting.projection import map_instances, space_of
from gmil.reporting.result import Report
from gmil.reporting.summary import Bin, ModelSummary, Summary, ViewWeight
from gmil.transform.impute import with_some_instances
from gmil.validation import check_bags
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from gmil.reporting.predictions import Predictions

_LONGEST_PARAMETERS = 400


def report(model: Any, bags: Any, y: Any = None, *, label: Any = None, title: str | None = None) -> Report:
    """Show what a fitted model predicts for bags, and why.

    The report has the two histograms and codebooks of `gmil.GMIL`, the views of `gmil.WeightedGMIL`, a map of the
    instances with the centres, and an explorer: for every bag its instances ranked by score, with their
    ``instance_info`` and the nearest centre; along a time axis where a column of ``instance_info`` is a time. Other
    classifiers of bags are shown as far as they have scores for instances.

    Parameters
    ----------
    model : fitted classifier of bags
        Pipelines and searches are unwrapped.
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
    y : array of shape (n_bags,), optional
        Labels, where they are known.
    label : label, optional
        The class to show; by default the positive one of two, else the commonest.
    title : str, optional

    Returns
    -------
    Report
        Shows itself in a notebook; ``save("report.html")``, ``to_html()``, ``to_markdown()``, ``to_json()``.

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> model = gmil.GMIL.from_paper("musk1", random_state=0).fit(bags[10:], y[10:])
    >>> gmil.report(model, bags[:10], y[:10]).summary.models[0].bins[0].in_positive
    True
    """
    shown, predictions = summarize_model(model, bags, y, label=label)
    summary = Summary(
        title=title or f"{type(model).__name__} on {len(predictions.predicted)} bags",
        verdict=verdict(type(last_step(getattr(model, "best_estimator_", model))[1]).__name__, predictions),
        models=[shown],
        environment=versions(),
    )
    return Report(summary)


def verdict(name: str, found: Predictions) -> str:
    """Return in one sentence what a model predicts for bags."""
    n = len(found.predicted)
    sentence = f"{name} predicts {found.label!r} for {found.predicted.count(found.label)} of {n} bags"
    if found.n_right is None or found.given is None:
        return f"{sentence}; no labels were given to compare with."
    majority = max(found.given.count(words) for words in set(found.given)) / n
    return (
        f"{sentence}; accuracy {100 * found.n_right / n:.1f} % ({found.n_right} of {n}), majority-class baseline "
        f"{100 * majority:.1f} %."
    )


def summarize_model(
    model: Any, bags: Any, y: Any = None, *, label: Any = None, title: str = "", seen: bool | None = None
) -> tuple[ModelSummary, Predictions]:
    """Return what is inside a model, and its predictions for the bags.

    Parameters
    ----------
    model : fitted classifier
    bags : Bags, or what estimators take
    y : array of shape (n_bags,), optional
    label : label, optional
        The class to show.
    title : str
    seen : bool, optional
        Whether the model was fitted on these bags; None where that is not known.
    """
    bags = check_bags(bags, allow_nan=True)  # the model refuses what it cannot fill
    kept = kept_instances(model, bags)
    numbers = (np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes))[kept]
    bags = with_some_instances(bags, kept)
    predictions = predict_bags(model, bags, y, label)
    inner, inside = unwrap(model, bags)
    space = space_of(inner, inside, predictions.column)
    plane, instance_map = map_instances(inside, predictions.positive, space)
    text = " ".join(str(inner).split())
    shown = ModelSummary(
        title=title or f"Inside {type(inner).__name__}",
        model=text if len(text) <= _LONGEST_PARAMETERS else f"{text[: _LONGEST_PARAMETERS - 3]}...",
        text=_text(seen, labels_known=y is not None),
        positive=predictions.label,
        bins=bins_of(inner, predictions.column),
        views=views_of(inner, predictions.column),
        map=instance_map,
        explorer=explore(model, bags, predictions, inside, space, plane, numbers),
    )
    return shown, predictions


def bins_of(model: Any, column: int) -> list[Bin]:
    """Return the clusters of a model with codebooks, the best score by Eq. 6 first; none for other models."""
    if not hasattr(model, "positive_counts_"):
        return []
    names = ("positive_counts_", "negative_counts_", "bin_scores_", "positive_bins_", "negative_bins_")
    several = np.ndim(model.positive_counts_) == 2
    found = [getattr(model, name)[column] if several else getattr(model, name) for name in names]
    counts, scores, (in_positive, in_negative) = np.stack(found[:2]), found[2], found[3:]
    shares = codebook.normalised(counts)
    return [
        Bin(
            number=k,
            positive_count=float(counts[0, k]),
            negative_count=float(counts[1, k]),
            positive_share=float(shares[0, k]),
            negative_share=float(shares[1, k]),
            score=float(scores[k]),
            in_positive=k in in_positive,
            in_negative=k in in_negative,
        )
        for k in np.argsort(-scores, kind="stable").tolist()
    ]


def views_of(model: Any, column: int) -> list[ViewWeight]:
    """Return the views of a `WeightedGMIL` with a weight, the largest first; none for other models."""
    if not isinstance(model, WeightedGMIL):
        return []
    found = []
    for view in model.view_weights_:
        weights = np.atleast_1d(view["weights"])
        name = f"{view['kind']}, {view['scale'] or 'raw'}, {view['kernel']}"
        found.append(ViewWeight(name, float(weights[min(column, len(weights) - 1)])))
    return sorted((view for view in found if view.weight > 0), key=lambda view: -view.weight)


def _text(seen: bool | None, *, labels_known: bool) -> str:
    if seen:
        return "The model was fitted on the bags shown here: its predictions for them are no test."
    known = "" if labels_known else " No labels were given: colours follow the predictions."
    return f"If the model was fitted on the bags shown here, its predictions for them are no test.{known}"
