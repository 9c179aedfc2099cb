"""The models of a cross-validation once more: what they tell beyond decisions about the bags that they never saw."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gmil.model_selection.folds import estimator_seed, fit_with_groups, last_step, with_seed
from gmil.model_selection.scoring import outputs_of
from gmil.reporting.assessment.importance import Unseen
from gmil.reporting.explorer import instance_scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats
    from gmil.model_selection.result import CVResult
    from gmil.model_selection.scoring import Outputs

SECONDS = 30.0
"""So long it may take to fit all folds again where nobody asked for it."""


class FoldModels(NamedTuple):
    """The models of the first repeat, and what each tells of its own test bags."""

    tested: list[Unseen]
    probabilities: Floats | None  # (n_bags, n_classes)
    scores: Floats | None  # (n_instances,), of the class that is shown
    meaning: str  # of the scores
    n_other: int  # bags whose prediction is not that of the result


def fit_again(
    estimator: Any,
    bags: Bags,
    y: Any,
    result: CVResult,
    label: str,
    *,
    at_any_cost: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[FoldModels | None, str]:
    """Fit the folds of the first repeat again, or tell why not: it would take too long.

    Parameters
    ----------
    estimator : estimator
        The one that was cross-validated.
    bags : Bags
    y : array of shape (n_bags,)
        As it was given; ``result`` may have texts.
    result : CVResult
    label : str
        The class whose scores of instances are wanted.
    at_any_cost : bool
        However long it takes.
    progress : callable, optional
        Called with the number of folds done and of all folds.
    """
    folds, tested, start = result.folds[0], [], time.perf_counter()
    estimator = _with_positive_class(estimator, y, result.positive_label)
    found: list[tuple[Any, Any, Any, str]] = []
    for fold in range(result.n_folds):
        test = folds == fold
        model = with_seed(estimator, estimator_seed(int(result.random_state or 0), 0, fold), result.params[0])
        groups = None if result.groups is None else result.groups[~test]
        fit_with_groups(model, bags[~test], y[~test], groups)
        part = Unseen(model, bags[test], y[test])
        outputs = outputs_of(model, part.bags)
        found.append((test, outputs, *_scores(part, outputs, label)))
        tested.append(part)
        seconds = (time.perf_counter() - start) / (fold + 1) * result.n_folds
        if seconds > SECONDS and not at_any_cost:
            return None, f"its {result.n_folds} models would have to be fitted again, in about {seconds:.0f} s"
        if progress is not None:
            progress(fold + 1, result.n_folds)
    return _joined(tested, found, bags, result), ""


def _with_positive_class(estimator: Any, y: Any, positive: Any) -> Any:
    """Return an estimator that knows which class is positive, as the result does: of texts, it would ask."""
    name = f"{last_step(estimator)[0]}pos_label"
    if positive is None or estimator.get_params().get(name, False) is not None:
        return estimator
    label = next(label for label in np.unique(y).tolist() if str(label) == str(positive))
    return clone(estimator).set_params(**{name: label})


def _scores(part: Unseen, outputs: Outputs, label: str) -> tuple[Floats | None, str]:
    """Return scores of instances for a class; none where the training bags had none of it."""
    names = [str(name) for name in outputs.classes.tolist()]
    if label not in names:
        return None, ""
    return instance_scores(part.model, part.bags, names.index(label))


def _joined(tested: list[Unseen], found: list[tuple[Any, Any, Any, str]], bags: Bags, result: CVResult) -> FoldModels:
    """Put what the models tell of their test bags into the order of all bags."""
    n_classes = 2 if result.decisions.ndim == 3 else result.decisions.shape[-1]
    probabilities, scores = np.full((len(bags), n_classes), np.nan), np.full(bags.n_instances, np.nan)
    n_other = 0
    for test, outputs, own_scores, _ in found:
        if outputs.probabilities is not None and outputs.probabilities.shape[1] == n_classes:
            probabilities[test] = outputs.probabilities
        if own_scores is not None:
            scores[np.repeat(test, bags.sizes)] = own_scores
        labels = result.predictions[0, 0, test].astype(str)
        n_other += int((outputs.labels.astype(str) != labels).reshape(len(labels), -1).any(axis=1).sum())
    meaning = next((text for *_, text in found if text), "")
    return FoldModels(
        tested,
        None if np.isnan(probabilities).any() else probabilities,
        None if np.isnan(scores).all() else scores,
        meaning,
        n_other,
    )
