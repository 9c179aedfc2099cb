"""Bags made to order whose values, grades or times are carried by a few known witnesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from gmil.bags import Bags
from gmil.target_checks import outcomes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

_SPREAD = 2.0
"""How far witnesses move when the value of their bag rises by one deviation."""

_DESCR = """Bags made by gmil.datasets.make_bags, target="{target}"

Background instances lie around the origin. Every bag has witnesses around the centre of a concept, which move along a
direction as the value of the bag rises: {direction}. All instances have the same spread."""


class Wish(NamedTuple):
    """What kind of values, and how sure they are."""

    target: str
    n_grades: int
    separation: float
    noise: float
    target_noise: float
    censoring: float


def valued_bags(sizes: Integers, witness_rate: float, n_features: int, wish: Wish, rng: np.random.RandomState) -> Bunch:
    """Return bags of these sizes with values, grades or times that their witnesses carry."""
    level = rng.standard_normal(len(sizes))
    concept, across = _axes(n_features, rng)
    direction = concept if wish.target == "survival" else across
    is_witness = _witnesses(sizes, witness_rate, rng)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    centers = wish.separation * concept + _SPREAD * level[owners, None] * direction
    instances = np.where(is_witness[:, None], centers, 0.0)
    instances = instances + wish.noise * rng.standard_normal((len(owners), n_features))
    bags = Bags(instances, np.concatenate([[0], np.cumsum(sizes)]))
    how = "that of the concept" if wish.target == "survival" else "one at a right angle to the concept"
    found = {"bags": bags, "instance_y": is_witness.astype(np.int64), "concept": concept, "direction": direction}
    found |= {"DESCR": _DESCR.format(target=wish.target, direction=how), "name": "make_bags"}
    if wish.target == "survival":
        return Bunch(**found, **_times(bags, direction, wish, rng))
    values = level + wish.target_noise * rng.standard_normal(len(level))
    y: Any = values if wish.target == "regression" else _grades(values, wish.n_grades)
    return Bunch(**found, y=y, clean_y=level)


def _axes(n_features: int, rng: np.random.RandomState) -> tuple[Floats, Floats]:
    """Return two directions of length one at a right angle; of a single feature there is one only."""
    found, _ = np.linalg.qr(rng.standard_normal((n_features, min(2, n_features))))
    return found[:, 0], found[:, -1]


def _witnesses(sizes: Integers, rate: float, rng: np.random.RandomState) -> Booleans:
    parts = [rng.permutation(np.arange(size) < max(1, round(rate * int(size)))) for size in sizes]
    return np.concatenate(parts)


def _grades(values: Floats, n_grades: int) -> NDArray[np.int64]:
    """Return grades 0, 1, ..., each of the same number of bags but for one."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return ranks * n_grades // len(values)


def _times(bags: Bags, direction: Floats, wish: Wish, rng: np.random.RandomState) -> dict[str, Any]:
    """Return times whose hazard grows with the instance of the largest risk; some are censored before."""
    instance_risk = bags.instances @ direction
    largest = np.maximum.reduceat(instance_risk, bags.offsets[:-1])
    deviation = largest.std() or 1.0
    risk = (largest - largest.mean()) / deviation
    event_time = rng.exponential(size=len(risk)) * np.exp(-risk)
    event, time = _censored(event_time, wish.censoring, rng)
    return {
        "y": outcomes_of(event, time),
        "risk": risk,
        "instance_risk": instance_risk,
        "event_time": event_time,
    }


def _censored(event_time: Floats, share: float, rng: np.random.RandomState) -> tuple[Booleans, Floats]:
    """Return whether events were seen, and times; follow-up ends at random, such that about a share is censored."""
    if share == 0:
        return np.ones(len(event_time), dtype=bool), event_time
    follow_up = rng.exponential(size=len(event_time))
    # The share of follow-ups that end first falls as they are made longer.
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        too_many = np.mean(np.exp(middle) * follow_up < event_time) > share
        low, high = (middle, high) if too_many else (low, middle)
    ends = np.exp(high) * follow_up
    return event_time <= ends, np.minimum(event_time, ends)
