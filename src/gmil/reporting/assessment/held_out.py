"""Predictions beside labels, with one column for every class, whatever they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.model_selection.folds import is_indicator
from gmil.model_selection.scoring import shown_order
from gmil.reporting.assessment.content import MOST_REPEATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.model_selection.result import CVResult
    from gmil.model_selection.scoring import Outputs


class HeldOut(NamedTuple):
    """Labels and predictions of bags; of one model, all bags are one fold."""

    classes: list[str]
    positive: int | None  # which of two classes is the positive one
    several: bool  # whether a bag may have several labels
    truth: Booleans  # (n_bags, n_classes)
    predicted: Booleans  # (n_repeats, n_bags, n_classes)
    decisions: Floats  # (n_repeats, n_bags, n_classes), NaN where there are none
    folds: Integers  # (n_repeats, n_bags)
    probabilities: Floats | None = None  # (n_bags, n_classes), by the models of the first repeat

    @classmethod
    def of_result(cls, result: CVResult, probabilities: Floats | None = None) -> HeldOut:
        """Return what a cross-validation predicted, under its first setting."""
        classes = np.arange(result.y.shape[1]) if is_indicator(result.y) else np.unique(result.y)
        return cls._made(
            classes,
            result.positive_label,
            result.y,
            result.predictions[0],
            _by_class(result.decisions[0], ndim=3),
            result.folds,
            probabilities,
            result.grades,
        )

    @classmethod
    def of_outputs(cls, outputs: Outputs, y: NDArray[Any]) -> HeldOut:
        """Return what one model predicted; labels that it does not know are classes without decisions."""
        several = is_indicator(y)
        classes = outputs.classes if several else np.unique(np.concatenate([outputs.classes, np.unique(y)]))
        known = np.flatnonzero(np.isin(classes, outputs.classes))

        def spread(values: Floats | None) -> Floats:
            full = np.full((len(y), len(classes)), np.nan)
            if values is not None:
                full[:, known] = _by_class(values, ndim=2)
            return full

        probabilities = None if outputs.probabilities is None else spread(outputs.probabilities)
        decisions, folds = spread(outputs.decisions)[None], np.zeros((1, len(y)), dtype=np.int64)
        labels, grades = outputs.labels[None], outputs.grades
        return cls._made(classes, outputs.positive, y, labels, decisions, folds, probabilities, grades)

    @classmethod
    def _made(
        cls,
        classes: NDArray[Any],
        positive: Any,
        y: NDArray[Any],
        labels: NDArray[Any],
        decisions: Floats,
        folds: Integers,
        probabilities: Floats | None,
        grades: list[Any] | None,
    ) -> HeldOut:
        several = is_indicator(y)
        order = shown_order(classes, grades)
        classes, decisions = classes[order], decisions[..., order]
        two = len(classes) == 2 and not several
        place = np.flatnonzero(classes == positive).tolist() if two else []
        return cls(
            [str(label) for label in classes.tolist()],
            place[0] if place else None,
            several,
            y > 0 if several else y[:, None] == classes,
            labels > 0 if several else labels[..., None] == classes,
            decisions,
            folds,
            None if probabilities is None else probabilities[:, order],
        )

    @property
    def wrong(self) -> Booleans:
        """Whether a prediction differs from the label, (n_repeats, n_bags)."""
        return np.asarray((self.predicted != self.truth).any(axis=-1))

    @property
    def shown_classes(self) -> list[int]:
        """The classes that have curves: the positive of two, else all."""
        return list(range(len(self.classes))) if self.positive is None else [self.positive]

    def tests(self, column: int) -> Iterator[tuple[Booleans, Floats]]:
        """Yield members and decisions of a class in every test fold that has bags of it and of others.

        Of very many repeats the first ones do.
        """
        for row, decided in zip(self.folds[:MOST_REPEATS], self.decisions[:MOST_REPEATS, :, column], strict=True):
            for fold in np.unique(row):
                members, decisions = self.truth[row == fold, column], decided[row == fold]
                if 0 < members.sum() < len(members) and not np.isnan(decisions).any():
                    yield members, decisions


def _by_class(decisions: Floats, ndim: int) -> Floats:
    """Return decisions with an axis of classes, the last of ``ndim``; those about the second of two get both."""
    return decisions if decisions.ndim == ndim else np.stack([-decisions, decisions], axis=-1)
