"""The bags that a model is most wrong about, and those that it is least sure about, in the first repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.reporting.assessment.content import BagLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Floats, Integers
    from gmil.reporting.assessment.held_out import HeldOut

MOST_LINES = 10


class Difficult(NamedTuple):
    """Both short tables, and the columns of their scores."""

    columns: list[str]
    wrong: list[BagLine]
    unsure: list[BagLine]


def difficult_bags(held: HeldOut, names: Sequence[str], numbers: Integers) -> Difficult:
    """Return the bags to look at first.

    Most wrong are wrong predictions whose probability is the furthest above that of the label; least sure are bags,
    right or wrong, whose two best classes have the nearest probabilities. Where a bag may have several labels, that
    label counts about which the model is most wrong, or least sure. Without probabilities, decisions count.

    Parameters
    ----------
    held : HeldOut
    names : sequence of str
        Of the bags.
    numbers : array of shape (n_bags,)
        Of the bags, in the data.
    """
    right_by, sure_by = _margins(held)
    wrong, unsure = np.flatnonzero(held.wrong[0]), np.argsort(sure_by, kind="stable")
    wrong = wrong[np.argsort(right_by[wrong], kind="stable")]
    columns, scores = _scores(held)

    def line(bag: int) -> BagLine:
        return BagLine(
            number=int(numbers[bag]),
            name=names[bag],
            label=_text(held, held.truth[bag]),
            predicted=_text(held, held.predicted[0, bag]),
            scores=scores[bag].tolist(),
            n_wrong=int(held.wrong[:, bag].sum()),
        )

    unsure = unsure[np.isfinite(sure_by[unsure])]
    return Difficult(columns, *([line(bag) for bag in bags[:MOST_LINES].tolist()] for bags in (wrong, unsure)))


def _margins(held: HeldOut) -> tuple[Floats, Floats]:
    """Return by how much every bag is right, below zero where it is wrong, and how sure the model is, (n_bags,).

    Without decisions, bags are the more wrong the more often they are, and nobody knows how sure the model is.
    """
    if np.isnan(held.decisions[0]).all() or len(held.classes) < 2:
        return -held.wrong.sum(axis=0, dtype=np.float64), np.full(len(held.truth), np.inf)
    values = held.decisions[0] if held.probabilities is None else held.probabilities
    if held.several:
        values = values if held.probabilities is None else values - 0.5
        signed = np.where(held.truth, values, -values)
        return signed.min(axis=1), np.abs(signed).min(axis=1)
    values = np.nan_to_num(values, nan=-np.inf)  # a class that the model does not know
    ranked = np.sort(values, axis=1)
    others = np.where(held.truth, -np.inf, values).max(axis=1)
    own = np.where(held.truth, values, -np.inf).max(axis=1)
    return own - others, ranked[:, -1] - ranked[:, -2]


def _scores(held: HeldOut) -> tuple[list[str], Floats]:
    """Return what is shown of every bag, (n_bags, n_columns), and what that is: probabilities, or else decisions."""
    what, values = "probability of", held.probabilities
    if values is None:
        what, values = "decision for", held.decisions[0]
    if np.isnan(values).all():
        return [], np.empty((len(values), 0))
    if held.several:
        against = 1 - values if held.probabilities is not None else -values
        return [f"lowest {what} a right answer"], np.where(held.truth, values, against).min(axis=1)[:, None]
    if held.positive is not None:
        return [f"{what} {held.classes[held.positive]!r}"], values[:, [held.positive]]
    of_prediction, of_label = (
        np.take_along_axis(values, members.argmax(axis=1)[:, None], axis=1)
        for members in (held.predicted[0], held.truth)
    )
    return [f"{what} the prediction", f"{what} the label"], np.hstack([of_prediction, of_label])


def _text(held: HeldOut, members: Any) -> str:
    return ", ".join(held.classes[column] for column in np.flatnonzero(members)) or "none"
