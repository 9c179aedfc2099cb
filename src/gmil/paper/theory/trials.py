"""Inequalities of the paper on random numbers: how often they fail, with their condition and with a weaker one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.engine.arrays import Floats

_ROUNDING = 1e-9
"""Relative differences up to this are rounding, not a violation."""
_SIZES = range(2, 11)
_BAG = 4
"""Instances of every bag in the trials of the lemma."""


class Trial(NamedTuple):
    """One inequality under one condition, tried on random numbers."""

    claim: str
    condition: str
    n_trials: int
    n_failures: int


def sums_below_products(positive: Floats, negative: Floats) -> Any:
    """Tell where the ratio of sums is at most the ratio of products, over the last axis: Theorem 1."""
    sums = np.log(positive.sum(axis=-1)) - np.log(negative.sum(axis=-1))
    products = np.log(positive).sum(axis=-1) - np.log(negative).sum(axis=-1)
    return sums <= products + _ROUNDING


def every_pair(rng: np.random.Generator, n_trials: int, n: int) -> tuple[Floats, Floats]:
    """Draw numbers in (0, 1] with every positive one at least every negative one: the printed condition."""
    border = rng.random((n_trials, 1))
    return 1 - (1 - border) * rng.random((n_trials, n)), border * (1 - rng.random((n_trials, n)))


def some_pairing(rng: np.random.Generator, n_trials: int, n: int) -> tuple[Floats, Floats]:
    """Draw numbers that can be paired so that the positive one of every pair is at least the negative one."""
    positive = 1 - rng.random((n_trials, n))
    return positive, rng.permuted(positive * (1 - rng.random((n_trials, n))), axis=1)


def sums_alone(rng: np.random.Generator, n_trials: int, n: int) -> tuple[Floats, Floats]:
    """Draw numbers of which only the sum of the positive ones is at least that of the negative ones."""
    first, second = (1 - rng.random((n_trials, n)) for _ in range(2))
    swap = (first.sum(axis=1) < second.sum(axis=1))[:, None]
    return np.where(swap, second, first), np.where(swap, first, second)


def more_positive(rng: np.random.Generator, n_trials: int, n: int) -> tuple[Floats, Floats]:
    """Draw as `every_pair`, with one negative number fewer."""
    positive, negative = every_pair(rng, n_trials, n)
    return positive, negative[:, 1:]


def bag_sums(rng: np.random.Generator, n_trials: int, n: int) -> tuple[Floats, Floats]:
    """Draw n bags of either kind, (n_trials, n, bag size), under the condition of the last lemma."""
    first, second = (1 - rng.random((n_trials, n, _BAG)) for _ in range(2))
    swap = (first.sum(axis=-1) < second.sum(axis=-1))[..., None]
    return np.where(swap, second, first), np.where(swap, first, second)


def run_trials(n_trials: int = 90_000, random_state: int = 0) -> list[Trial]:
    """Try every inequality ``n_trials`` times, evenly over n = 2 ... 10."""
    rng = np.random.default_rng(random_state)
    theorem = "ratio of sums <= ratio of products"
    conditions: dict[str, Callable[..., tuple[Floats, Floats]]] = {
        "every v+ >= every v- (as printed)": every_pair,
        "a pairing with v+ >= v- (weaker)": some_pairing,
        "sum of v+ >= sum of v- only": sums_alone,
        "every v+ >= every v-, one v- fewer": more_positive,
    }
    trials = [_try(theorem, name, draw, sums_below_products, n_trials, rng) for name, draw in conditions.items()]
    lemma = "sums of bags, as in the lemma"
    trials.append(_try(f"{theorem}, over instances", lemma, bag_sums, _flat_instances, n_trials, rng))
    trials.append(_try("density ratio <= Diverse Density", lemma, bag_sums, ratio_below_density, n_trials, rng))
    trials.append(_try("n DD^(1/n) / -log DD <= density ratio", "none", _any_bags, density_bounds_ratio, n_trials, rng))
    return trials


def _try(
    claim: str,
    condition: str,
    draw: Callable[..., tuple[Floats, Floats]],
    holds: Callable[[Floats, Floats], Any],
    n_trials: int,
    rng: np.random.Generator,
) -> Trial:
    each = n_trials // len(_SIZES)
    failures = sum(int((~holds(*draw(rng, each, n))).sum()) for n in _SIZES)
    return Trial(claim, condition, each * len(_SIZES), failures)


def _flat_instances(positive: Floats, negative: Floats) -> Any:
    return sums_below_products(positive.reshape(len(positive), -1), negative.reshape(len(negative), -1))


def _any_bags(rng: np.random.Generator, n_trials: int, n: int) -> tuple[Floats, Floats]:
    """Draw n positive bags and another number of negative ones, of any probabilities, most of them small."""
    n_negative = int(rng.integers(1, 20))
    return rng.random((n_trials, n, _BAG)) ** 3, rng.random((n_trials, n_negative, _BAG)) ** 6


def _log_density(positive: Floats, negative: Floats) -> Floats:
    present = np.log(-np.expm1(np.log1p(-positive).sum(axis=-1))).sum(axis=-1)
    return np.asarray(present + np.log1p(-negative).sum(axis=(1, 2)))


def _log_ratio(positive: Floats, negative: Floats) -> Floats:
    return np.asarray(np.log(positive.sum(axis=(1, 2))) - np.log(negative.sum(axis=(1, 2))))


def ratio_below_density(positive: Floats, negative: Floats) -> Any:
    """Tell where the density ratio is at most Diverse Density: the last lemma as printed."""
    inside = np.minimum(positive, 1 - 1e-12), np.minimum(negative, 1 - 1e-12)
    return _log_ratio(*inside) <= _log_density(*inside) + _ROUNDING


def density_bounds_ratio(positive: Floats, negative: Floats) -> Any:
    """Tell where Diverse Density guarantees the density ratio that it should, see `Evidence.least_density_ratio`."""
    n, density = positive.shape[1], _log_density(positive, negative)
    return np.log(n) + density / n - np.log(-density) <= _log_ratio(positive, negative) + _ROUNDING
