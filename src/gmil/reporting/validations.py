"""Cross-validations as pages: every bag as the model predicted it that never saw it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.errors import BagValidationError
from gmil.model_selection.folds import last_step
from gmil.paper.runs.environment import versions
from gmil.reporting.assessment import HeldOut, assess
from gmil.reporting.assessment.figures import figures_of_result
from gmil.reporting.assessment.folds import fit_again
from gmil.reporting.assessment.importance import feature_importance
from gmil.reporting.explorer import explore
from gmil.reporting.formatting import parameters_text, percent
from gmil.reporting.predictions import about_one_class, outputs_of_result
from gmil.reporting.projection import map_instances, space_of
from gmil.reporting.summary import ModelSummary, Summary
from gmil.scale import LazyBags
from gmil.transform.impute import Impute
from gmil.validation import check_bags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gmil.bags import Bags
    from gmil.model_selection.result import CVResult
    from gmil.reporting.assessment.content import Assessment
    from gmil.reporting.assessment.folds import FoldModels
    from gmil.reporting.predictions import Predictions


class Validation(NamedTuple):
    """A cross-validation to show, and what it was made with."""

    result: CVResult
    bags: Any  # Bags, LazyBags, what estimators take, or None
    name: str  # of the data
    estimator: Any = None
    y: Any = None  # labels as they were given; by default those of the result
    label: Any = None
    importance: int | None = None
    progress: Callable[[str, int, int], None] | None = None

    def predictions(self) -> Predictions:
        """Return the predictions of the first repeat, about the class that is shown."""
        return about_one_class(outputs_of_result(self.result), self.result.y, self.label)

    def told(self, what: str) -> Callable[[int, int], None] | None:
        """Return what is called with the number of steps done and of all, None where nobody wants to know."""
        return None if self.progress is None else partial(self.progress, f"{self.name}: {what}")


def summarize_validations(validations: Sequence[Validation], title: str | None = None) -> Summary:
    """Return the summary of cross-validations of one method, one data set after the other."""
    assessments, models, sentences = [], [], []
    for validation in validations:
        found, shown = show_validation(validation)
        several = len(validations) > 1
        if shown is not None:
            models.append(replace(shown, title=f"{shown.title}: {validation.name}") if several else shown)
        place = None if shown is None else len(models)
        heading = f"{found.title}: {validation.name}" if several else found.title
        assessments.append(replace(found, title=heading, explorer=place))
        sentences.append(_verdict(validation, found))
    first = validations[0]
    names = ", ".join(validation.name for validation in validations)
    return Summary(
        title=title or f"{_method(first)}{names}, cross-validated",
        verdict=" ".join(sentences),
        protocol=_protocol(first.result),
        assessments=assessments,
        models=models,
        environment=versions(),
    )


def show_validation(asked: Validation) -> tuple[Assessment, ModelSummary | None]:
    """Return the assessment of a cross-validation, and its bags to explore where they are in memory."""
    found, models = assess_validation(asked)
    if isinstance(asked.bags, LazyBags):
        return found, None
    return found, _explored(asked, models, found.bags)


def assess_validation(asked: Validation, interval: list[float] | None = None) -> tuple[Assessment, FoldModels | None]:
    """Return the assessment of a cross-validation, and its models where they were fitted again.

    ``interval`` is that of the accuracy, where it is known already.
    """
    result, bags = asked.result, _check(asked)
    models, reason = _fold_models(asked, bags)
    is_wanted = reason and asked.importance != 0
    importance, without = None, f"Which features matter was not measured: {reason}." if is_wanted else ""
    if models is not None:
        told = asked.told("which features matter, steps")
        importance, without = feature_importance(models.tested, bags, asked.importance, told)
    found = assess(
        HeldOut.of_result(result, None if models is None else models.probabilities),
        figures_of_result(result, interval),
        title="Held-out predictions",
        text=_text(result, models),
        bags=bags,
        importance=importance,
        without_importance=without,
    )
    return found, models


def _check(asked: Validation) -> Any:
    """Return the bags, which must be those of the result; None where nobody has them."""
    result = asked.result
    if len(result.params) > 1:
        msg = f"The result has {len(result.params)} settings, but a page shows one. Cross-validate the one to show."
        raise BagValidationError(msg)
    if asked.bags is None:
        return None
    bags = asked.bags if isinstance(asked.bags, LazyBags) else check_bags(asked.bags, allow_nan=True)
    if len(bags) != len(result.y):
        msg = f"The result is of {len(result.y)} bags, but there are {len(bags)}. Give the bags of the result."
        raise BagValidationError(msg)
    return bags


def _fold_models(asked: Validation, bags: Any) -> tuple[FoldModels | None, str]:
    if bags is None or isinstance(bags, LazyBags):
        return None, "the bags are not in memory"
    if asked.estimator is None:
        return None, "that needs the estimator, gmil.report(result, bags, estimator=...)"
    y = asked.result.y if asked.y is None else np.asarray(asked.y)
    told, at_any_cost = asked.told("models of the folds"), bool(asked.importance)
    return fit_again(
        asked.estimator, bags, y, asked.result, asked.predictions().label, at_any_cost=at_any_cost, progress=told
    )


def _explored(asked: Validation, models: FoldModels | None, wanted: Iterable[int]) -> ModelSummary:
    bags, predictions = _check(asked), asked.predictions()
    numbers: Any = bags.instances
    has_gaps = np.isnan(numbers.data if sp.issparse(numbers) else numbers).any()
    inside = Impute().fit_transform(bags) if has_gaps else bags
    space = space_of(None, inside, predictions.column)
    plane, instance_map = map_instances(inside, predictions.positive, space)

    def scored(_some: Bags, rows: Any) -> Any:
        if models is None or models.scores is None:
            return None, "" if models is None else models.meaning
        return models.scores[rows], f"{models.meaning} Every bag is scored by a model that never saw it."

    return ModelSummary(
        title="Bags",
        model="" if asked.estimator is None else parameters_text(last_step(asked.estimator)[1]),
        text="Predictions are held-out: by a model that never saw the bag.",
        positive=predictions.label,
        map=instance_map,
        explorer=explore(bags, predictions, inside, space, plane, scored, wanted=wanted),
    )


def _text(result: CVResult, models: FoldModels | None) -> str:
    sentence = "Every bag was predicted by a model that was fitted without it"
    sentence += "." if result.groups is None else ", and without all bags of its group."
    if len(result.folds) > 1:
        sentence += f" Single bags are shown as in the first of {len(result.folds)} repeats."
    if models is not None and models.n_other:
        sentence += (
            f" Fitted again for scores and features, the models predict {models.n_other} of {len(result.y)} bags "
            "differently: the estimator is not quite the one that was cross-validated."
        )
    return sentence


def _method(asked: Validation) -> str:
    return "" if asked.estimator is None else f"{type(last_step(asked.estimator)[1]).__name__} on "


def _verdict(asked: Validation, found: Assessment) -> str:
    figures = {figure.key: figure for figure in found.figures}
    accuracy = figures["accuracy_mean"]
    low, high = (percent(limit) for limit in accuracy.interval or (None, None))
    auc = figures["auc_mean"].value
    area = "" if auc is None else f", AUC {auc:.3f}"
    if "kappa" in figures:
        area += f", quadratic kappa {figures['kappa'].value:.3f}"
    return (
        f"{_method(asked)}{asked.name}: held-out accuracy {percent(accuracy.value)} % ({low} to {high}){area}; "
        f"majority class {percent(figures['majority_accuracy'].value)} %."
    )


def _protocol(result: CVResult) -> str:
    repeats = f"{len(result.folds)} repeat{'s' * (len(result.folds) != 1)}"
    seed = "" if result.random_state is None else f", seed {result.random_state}"
    groups = "" if result.groups is None else f"; {len(np.unique(result.groups))} groups, left out as a whole"
    return f"{result.n_folds}-fold cross-validation, {repeats}{seed}{groups}."
