"""`gmil.report`: a fitted model and bags, or a cross-validation, as a page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from gmil.errors import BagValidationError, count_of
from gmil.greedy import codebook
from gmil.io import model_files
from gmil.model_selection.folds import last_step
from gmil.model_selection.result import CVResult
from gmil.model_selection.scoring import outputs_of
from gmil.paper.runs.environment import versions
from gmil.pipeline import kept_instances
from gmil.reporting.assessment import HeldOut, assess
from gmil.reporting.assessment.content import Assessment
from gmil.reporting.assessment.figures import figures_of_outputs
from gmil.reporting.assessment.importance import Unseen, feature_importance
from gmil.reporting.explorer import explore, instance_scores
from gmil.reporting.formatting import parameters_text
from gmil.reporting.predictions import about_one_class, predict_bags, refuse_no_classifier, unwrap
from gmil.reporting.projection import map_instances, space_of
from gmil.reporting.result import Report
from gmil.reporting.summary import Bin, ModelSummary, Summary, ViewWeight
from gmil.reporting.validations import Validation, summarize_validations
from gmil.transform.impute import with_some_instances
from gmil.validation import check_bags
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Integers
    from gmil.model_selection.scoring import Outputs
    from gmil.reporting.assessment.content import Figure
    from gmil.reporting.predictions import Predictions


def report(
    model: Any,
    bags: Any,
    y: Any = None,
    *,
    label: Any = None,
    title: str | None = None,
    seen: Any = None,
    groups: Any = None,
    estimator: Any = None,
    importance: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Show what a fitted model predicts for bags, how well, and why; or what a cross-validation predicted.

    Where labels are known, the page begins with figures, ROC and precision-recall curves, the confusion matrix, the
    bags that the model is most wrong and least sure about, and which features matter. Bags that the model was fitted on
    are told apart: figures for them are too good.

    The report then has the two histograms and codebooks of `gmil.GMIL`, the views of `gmil.WeightedGMIL`, a map of the
    instances with the centres, and an explorer: for every bag its instances ranked by score, with their
    ``instance_info`` and the nearest centre; along a time axis where a column of ``instance_info`` is a time. Other
    classifiers of bags are shown as far as they have scores for instances.

    Parameters
    ----------
    model : fitted classifier of bags, or CVResult
        Pipelines and searches are unwrapped. Of a `gmil.CVResult` the page shows held-out predictions only: every bag
        is predicted, and its instances scored, by a model that never saw it.
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
        With a `gmil.CVResult`, those that were cross-validated; they may be `gmil.LazyBags`.
    y : array of shape (n_bags,), optional
        Labels, where they are known; a `gmil.CVResult` has them.
    label : label, optional
        The class to show; by default the positive one of two, else the commonest.
    title : str, optional
    seen : bool or array of shape (n_bags,), optional
        Which bags the model was fitted on. Models that ``gmil fit`` saved remember it.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) belong together: intervals are by bootstrap over groups.
    estimator : estimator, optional
        With a `gmil.CVResult`, what was cross-validated. The models of the first repeat are fitted again where that
        takes at most half a minute: scores of instances and which features matter come from them.
    importance : int, optional
        How often features are exchanged between bags to tell which matter, 0 for never; by default ten times, or
        fewer where that would take more than twenty seconds.
    progress : callable, optional
        Called with what is being done, the number of its steps done and of all its steps.

    Returns
    -------
    Report
        Shows itself in a notebook; ``save("report.html")``, ``to_html()``, ``to_markdown()``, ``to_json()``.

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> model = gmil.GMIL.from_paper("musk1", random_state=0).fit(bags[10:], y[10:])
    >>> page = gmil.report(model, bags, y, seen=[False] * 10 + [True] * 82, importance=0)
    >>> page.summary.warning
    '82 of 92 bags were used to train this model: figures for them are too good.'

    >>> result = gmil.cross_validate(gmil.GMIL.from_paper("musk1"), bags, y, cv=5)
    >>> gmil.report(result, bags).summary.assessments[0].figures[0].value == result.accuracy()
    True
    """
    if isinstance(model, CVResult):
        asked = Validation(model, bags, count_of(len(model.y), "bag"), estimator, y, label, importance, progress)
        return Report(summarize_validations([asked], title))
    refuse_no_classifier(model)
    bags = check_bags(bags, allow_nan=True)  # the model refuses what it cannot fill
    outputs = outputs_of(model, bags)
    found = about_one_class(outputs, y, label)
    trained = _check_seen(seen, model, bags)
    assessed: list[Assessment] = []
    if y is not None:
        assessed = assess_model(model, bags, np.asarray(y), outputs, trained, groups, importance, progress)
    wanted = {number for part in assessed for number in part.bags}
    text = _text(trained, labels_known=y is not None)
    summary = Summary(
        title=title or f"{type(model).__name__} on {count_of(len(bags), 'bag')}",
        warning=_warning(trained),
        verdict=verdict(type(last_step(getattr(model, "best_estimator_", model))[1]).__name__, found, trained),
        assessments=assessed,
        models=[summarize_model(model, bags, y, predictions=found, text=text, wanted=wanted)],
        environment=versions(),
    )
    return Report(summary)


def verdict(name: str, found: Predictions, seen: Booleans | None = None) -> str:
    """Return in one sentence what a model predicts for bags; how well, of bags that it was not fitted on, if any."""
    n = len(found.predicted)
    sentence = f"{name} predicts {found.label!r} for {found.predicted.count(found.label)} of {n} bags"
    if found.right is None or found.given is None:
        return f"{sentence}; no labels were given to compare with."
    counted, which = np.ones(n, dtype=bool), ""
    if seen is not None and seen.any():
        counted, which = (seen, " on its own training bags") if seen.all() else (~seen, " on bags not used in training")
    labels = np.array(found.given)[counted]
    n_right, majority = int(found.right[counted].sum()), np.unique(labels, return_counts=True)[1].max()
    return (
        f"{sentence}; accuracy{which} {100 * n_right / len(labels):.1f} % ({n_right} of {len(labels)}), "
        f"majority-class baseline {100 * majority / len(labels):.1f} %."
    )


def assess_model(
    model: Any,
    bags: Bags,
    y: Any,
    outputs: Outputs,
    seen: Booleans | None,
    groups: Any = None,
    importance: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Assessment]:
    """Return assessments of the predictions for bags: of those not used in training, and figures of the others."""
    every = np.arange(len(bags))
    unseen, trained = (every, every[:0]) if seen is None else (every[~seen], every[seen])

    def figures_of(some: Integers) -> list[Figure]:
        return figures_of_outputs(outputs.of(some), y[some], None if groups is None else np.asarray(groups)[some])

    def assessed(some: Integers, title: str, text: str, **optional: Any) -> Assessment:
        held = HeldOut.of_outputs(outputs.of(some), y[some])
        return assess(held, figures_of(some), title=title, text=text, bags=bags, numbers=some, explorer=1, **optional)

    fitted_on = "The model was fitted on these bags: these figures are too good."
    if len(unseen) == 0:
        reason = "Which features matter is not measured on training bags. Cross-validate: gmil cv DATA -o page.html."
        return [assessed(trained, "Predictions of training bags", fitted_on, without_importance=reason)]
    told = None if progress is None else partial(progress, "Which features matter, steps")
    found, reason = feature_importance([Unseen(model, bags[unseen], y[unseen])], bags, importance, told)
    text = "If the model was fitted on these bags, these figures are too good."
    if seen is not None:
        text = "The model was not fitted on these bags."
    title = "Predictions of bags not used in training" if len(trained) else "Predictions against labels"
    made = [assessed(unseen, title, text, importance=found, without_importance=reason)]
    if len(trained):
        made.append(Assessment("Training bags", fitted_on, len(trained), 1, 1, figures_of(trained)))
    return made


def _check_seen(seen: Any, model: Any, bags: Bags) -> Booleans | None:
    """Return which bags the model was fitted on; None where nobody knows."""
    if seen is None:
        return model_files.origin_of(model).seen(bags) if isinstance(model, BaseEstimator) else None
    mask = np.asarray(seen)
    if mask.dtype != bool or mask.shape not in ((), (len(bags),)):
        msg = f"must be true or false, or one of them for each of the {len(bags)} bags; got {seen!r}."
        raise BagValidationError(msg, parameter="seen")
    return np.broadcast_to(mask, len(bags))


def _warning(seen: Booleans | None) -> str:
    if seen is None or not seen.any():
        return ""
    if seen.all():
        return f"All {len(seen)} bags were used to train this model: every figure on this page is too good."
    return f"{seen.sum()} of {len(seen)} bags were used to train this model: figures for them are too good."


def summarize_model(
    model: Any,
    bags: Any,
    y: Any = None,
    *,
    title: str = "",
    text: str = "",
    predictions: Predictions | None = None,
    wanted: Iterable[int] = (),
) -> ModelSummary:
    """Return what is inside a model, and the bags to explore.

    Parameters
    ----------
    model : fitted classifier
    bags : Bags, or what estimators take
    y : array of shape (n_bags,), optional
    title, text : str
    predictions : Predictions, optional
        What is shown as predicted; by default what the model predicts. Scores of instances are always of the model.
    wanted : iterable of int
        Bags that the explorer has in any case.
    """
    bags = check_bags(bags, allow_nan=True)  # the model refuses what it cannot fill
    kept = kept_instances(model, bags)
    numbers = (np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes))[kept]
    bags = with_some_instances(bags, kept)
    found = predict_bags(model, bags, y, None) if predictions is None else predictions
    inner, inside = unwrap(model, bags)
    space = space_of(inner, inside, found.column)
    plane, instance_map = map_instances(inside, found.positive, space)

    def scored(some: Bags, _rows: Integers) -> Any:
        return instance_scores(model, some, found.column)

    return ModelSummary(
        title=title or f"Inside {type(inner).__name__}",
        model=parameters_text(inner),
        text=text,
        positive=found.label,
        bins=bins_of(inner, found.column),
        views=views_of(inner, found.column),
        map=instance_map,
        explorer=explore(bags, found, inside, space, plane, scored, numbers=numbers, wanted=wanted),
    )


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


def _text(seen: Booleans | None, *, labels_known: bool) -> str:
    known = "" if labels_known else " No labels were given: colours follow the predictions."
    if seen is None:
        return f"If the model was fitted on the bags shown here, its predictions for them are no test.{known}"
    if seen.all():
        return f"The model was fitted on the bags shown here: its predictions for them are no test.{known}"
    return f"{_warning(seen) or 'The model was not fitted on any of these bags.'}{known}"
