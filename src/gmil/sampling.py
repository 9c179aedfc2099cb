"""Random generators, and samples of instances."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Integers
    from gmil.scale import LazyBags


def make_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that a ``random_state`` stands for; an integer is its seed."""
    if isinstance(random_state, numbers.Integral):
        return np.random.default_rng(int(random_state))
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def sample_rows(
    bags: Bags | LazyBags,
    labels: Integers,
    sample_size: int | None,
    sampling: str,
    generator: np.random.Generator,
) -> Integers | None:
    """Return the instances to cluster, in order; None means all of them.

    ``sampling`` is "uniform", or gives every bag ("bags") or every class ("classes") the same chance.
    """
    n_instances = bags.n_instances
    if sample_size is None or n_instances <= sample_size:
        return None
    chances = None
    if sampling != "uniform":
        group = bags.segment_ids if sampling == "bags" else labels[bags.segment_ids]
        chances = 1 / np.bincount(group)[group]
        chances /= chances.sum()
    return np.sort(generator.choice(n_instances, sample_size, replace=False, p=chances))
