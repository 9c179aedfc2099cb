"""Bags to explore: which of them, which of their instances, and what is shown of each."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags import parts as bag_parts
from gmil.errors import GmilError
from gmil.heatmaps.embedding import slides_of_report
from gmil.heatmaps.quantities import Quantity, meaning_of
from gmil.heatmaps.scoring import Outcome
from gmil.reporting.summary import BagView, Explorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.heatmaps.page import PageSlide
    from gmil.reporting.predictions import Predictions
    from gmil.reporting.projection import ModelCenters, Projection

MOST_BAGS = 200
BEST, WORST, BETWEEN = 50, 10, 40
"""Of a larger bag: so many of the highest scores, of the lowest, and evenly spaced ones of the rest."""
MOST_INSTANCES = BEST + WORST + BETWEEN
_TIMES = ("time", "t", "seconds", "second", "start", "frame", "timestamp", "ms")


def explore(
    bags: Bags,
    found: Predictions,
    inside: Bags,
    space: ModelCenters,
    plane: Projection,
    scored: Callable[[Bags, Integers], tuple[Floats | None, str]],
    *,
    numbers: Integers | None = None,
    wanted: Iterable[int] = (),
) -> Explorer:
    """Return the explorer of bags.

    Parameters
    ----------
    bags, inside : Bags
        As they were passed, and as the classifier inside pipelines gets them.
    found : Predictions
    space, plane : ModelCenters, Projection
    scored : callable
        Given the bags that are shown, and the rows of their instances among all, returns their scores, or None, and
        what these mean.
    numbers : array of shape (n_instances,), optional
        The number of every instance in its bag, where that had others that were dropped.
    wanted : iterable of int
        Bags that are shown in any case.
    """
    chosen = choose_bags(len(bags), found.decisions, wanted)
    some, inner, rows_of_all = bags[chosen], inside[chosen], bag_parts.rows_of_bags(bags.offsets, chosen)[0]
    given = np.arange(bags.n_instances) - np.repeat(bags.offsets[:-1], bags.sizes) if numbers is None else numbers
    numbers = given[rows_of_all]
    scores, text = scored(some, rows_of_all)
    info = [] if bags.instance_info is None else list(bags.instance_info.column_names)
    columns = ["rank", "instance"] + ["score"] * (scores is not None)
    columns += ["centre", "distance"] * (len(space.centers) > 0) + ["x", "y", *info]
    views = []
    for i, number in enumerate(chosen.tolist()):
        span = slice(int(some.offsets[i]), int(some.offsets[i + 1]))
        own_scores = None if scores is None else scores[span]
        rows = _rows(some, span, own_scores, inner.instances[span], space, plane, numbers[span])
        views.append(
            BagView(
                number=number,
                name=str(number if bags.bag_ids is None else bags.bag_ids[number]),
                label=None if found.given is None else found.given[number],
                predicted=found.predicted[number],
                decision=None if found.decisions is None else _short(found.decisions[number]),
                n_instances=int(bags.sizes[number]),
                rows=rows,
            )
        )
    rule = _rule(bags, bool(set(wanted)))
    maps = [] if scores is None else _maps(some, scores, text, views, found.label)
    return Explorer(columns, len(info), time_column(bags.instance_info), text, rule, len(bags), views, maps)


def _maps(bags: Bags, scores: Floats, text: str, views: list[BagView], label: str) -> list[PageSlide]:
    """Return the maps of the bags that are shown, where their instances have x and y."""
    quantity = Quantity(text.removeprefix("Score: ").removesuffix("."), label)
    outcomes = [Outcome(view.predicted, label, None, abs(view.decision or 0.0)) for view in views]
    names, given = [view.name for view in views], [view.label for view in views]
    return slides_of_report(bags, np.asarray(scores, dtype=np.float64), quantity, names, given, outcomes)


def choose_bags(n_bags: int, decisions: Floats | None, wanted: Iterable[int] = ()) -> Integers:
    """Return the bags to show, in order: all, or those wanted and evenly spaced ones of the ranking by decision."""
    if n_bags <= MOST_BAGS:
        return np.arange(n_bags)
    first = np.array(sorted(set(wanted)), dtype=np.int64)
    order = np.arange(n_bags) if decisions is None else np.argsort(-decisions, kind="stable")
    rest = order[~np.isin(order, first)]
    spaced = np.linspace(0, len(rest) - 1, MOST_BAGS - len(first)).round().astype(np.int64)
    return np.sort(np.concatenate([first, rest[spaced]]))


def choose_instances(ranking: Integers) -> Integers:
    """Return the instances of a bag to show, the best first, given all of them by rank.

    >>> len(choose_instances(np.arange(1000)))
    100
    """
    n = len(ranking)
    if n <= MOST_INSTANCES:
        return ranking
    between = np.linspace(BEST, n - WORST - 1, BETWEEN).round().astype(np.int64)
    return ranking[np.concatenate([np.arange(BEST), between, np.arange(n - WORST, n)])]


def instance_scores(model: Any, bags: Bags, column: int) -> tuple[Floats | None, str]:
    """Return scores of instances for one class, or None, and what they mean."""
    if not hasattr(model, "score_instances"):
        return None, f"{type(model).__name__} has no scores of instances; they are in their order in the bag."
    try:
        scores = np.asarray(model.score_instances(bags))
        meaning = meaning_of(model)
    except GmilError as error:
        return None, f"No scores of instances: {error}"
    return (scores[:, column] if scores.ndim == 2 else scores), f"Score: {meaning}."


def _rows(
    bags: Bags,
    span: slice,
    scores: Floats | None,
    inside: Instances,
    space: ModelCenters,
    plane: Projection,
    numbers: Integers,
) -> list[list[Any]]:
    n = span.stop - span.start
    ranking = np.arange(n) if scores is None else np.argsort(-scores, kind="stable")
    shown = choose_instances(ranking)
    ranks = np.empty(n, dtype=np.int64)
    ranks[ranking] = np.arange(1, n + 1)
    placed = space.apply(inside[shown])
    columns: list[list[Any]] = [ranks[shown].tolist(), numbers[shown].tolist()]
    if scores is not None:
        columns.append([_short(score) for score in scores[shown]])
    if len(space.centers):
        centers, distances = space.answers(placed)
        columns += [centers.tolist(), [_short(distance) for distance in distances]]
    columns += [[_short(v) for v in axis] for axis in plane.place(placed).T]
    if bags.instance_info is not None:
        info = bags.instance_info.slice(span.start, n).take(shown)
        columns += [[plain(value) for value in column.to_pylist()] for column in info.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def plain(value: Any) -> Any:
    """Return what JSON can say: numbers (short), texts, truth, nothing; all else as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _short(value)
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    return str(value)


def _short(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.5g}") if np.isfinite(number) else None


def time_column(info: Any) -> str | None:
    """Return the column of numbers whose name says that it is a time, the first of them, or None."""
    import pyarrow as pa

    if info is None:
        return None
    for field in info.schema:
        words = field.name.casefold().replace("-", "_").split("_")
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        if is_number and any(word in _TIMES for word in words):
            return str(field.name)
    return None


def _rule(bags: Bags, has_wanted: bool) -> str:
    parts = []
    if len(bags) > MOST_BAGS:
        parts.append(f"{MOST_BAGS} of {len(bags)} bags are here, evenly spaced in the ranking by decision.")
        parts += ["The bags of the tables above are among them."] * has_wanted
    if int(bags.sizes.max()) > MOST_INSTANCES:
        parts.append(
            f"Of a bag with more than {MOST_INSTANCES} instances there are the {BEST} highest scores, the {WORST} "
            f"lowest and {BETWEEN} evenly spaced between; ranks count all."
        )
    return " ".join(parts)
