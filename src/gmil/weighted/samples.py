"""Samples of thinned bags on which `WeightedGMIL` chooses scalings, centres and views.

All folds of a repeat draw from one pool: every bag has its instances in a random order, and so have all instances of
the pool. A fold takes as many of the first instances of its training bags as it needs, and as centres those of them
that come first in the pool. Each fold has drawn as if it were alone, none has an instance of a test bag, and most of
what one has the others have too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.bags.parts import moved_rows
from gmil.weighted.fitting import sample_of_bags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine.arrays import Integers
    from gmil.scale import LazyBags
    from gmil.weighted.streaming import Plan


_TIMES_THE_MEDIAN = 20
"""A bag that is larger than so many others counts as so many: it would leave nothing of them in the sample."""


class Sample(NamedTuple):
    """What a fit chooses on."""

    chosen: Integers | None  # (n_chosen,): which training bags; None where the sample is all of them as they are
    rows: Integers  # (n_rows,): which instances of all bags, ascending
    offsets: Integers  # (n_chosen + 1,)
    order: Integers | None = None  # (n_rows,): places among rows in a random order; None where none was drawn


def draw_samples(plans: Sequence[Plan], bags: LazyBags) -> list[Sample]:
    """Draw the sample of every plan; plans of one pool draw the same instances as far as they can."""
    thinnings = [_thinning(plan, bags) for plan in plans]
    pools: dict[int, _Pool] = {}
    for number in dict.fromkeys(plan.pool for plan in plans):
        own = [(plan, kept) for plan, kept in zip(plans, thinnings, strict=True) if plan.pool == number]
        thinned = [kept for _, kept in own if kept is not None]
        if len(thinned) > 1:
            pools[number] = _Pool.draw(bags.offsets, np.max(thinned, axis=0), own[0][0].generator.spawn(1)[0])
    return [_sample(plan, kept, bags, pools.get(plan.pool)) for plan, kept in zip(plans, thinnings, strict=True)]


def _thinning(plan: Plan, bags: LazyBags) -> Integers | None:
    """Return how many instances of every bag to take, (n_bags,); None where the training bags are small enough."""
    inside = np.flatnonzero(plan.training)
    sizes = bags.sizes
    if sizes[inside].sum() <= plan.most:
        return None
    chosen = sample_of_bags(plan.learning.positive, plan.model.max_bags, plan.generator)
    inside = inside if chosen is None else inside[chosen]
    own = sizes[inside]
    counted = np.minimum(own, _TIMES_THE_MEDIAN * np.median(own))
    kept = np.zeros(len(bags), dtype=np.int64)
    kept[inside] = np.clip((counted * (plan.most / counted.sum())).astype(np.int64), 1, own)
    return kept


def _sample(plan: Plan, kept: Integers | None, bags: LazyBags, pool: _Pool | None) -> Sample:
    inside = np.flatnonzero(plan.training)
    if kept is None:
        own = bags[plan.training]
        rows = moved_rows(np.arange(own.n_instances), own.offsets, bags.offsets[inside])
        return Sample(None, rows, own.offsets)
    taken = np.flatnonzero(kept)
    chosen = np.searchsorted(inside, taken)
    offsets = np.concatenate([[0], np.cumsum(kept[taken])])
    if pool is not None:
        return Sample(chosen, *pool.take(kept, offsets))
    drawn = [
        start + np.sort(plan.generator.choice(size, n, replace=False, shuffle=False))
        for start, size, n in zip(bags.offsets[taken], bags.sizes[taken], kept[taken], strict=True)
    ]
    return Sample(chosen, np.concatenate(drawn), offsets)


class _Pool(NamedTuple):
    """Instances of all bags in a random order within each bag, and in a random order of all."""

    rows: Integers  # (n_rows,)
    bag: Integers  # (n_rows,): of every row
    rank: Integers  # (n_rows,): its place in the order of its bag
    key: Integers  # (n_rows,): its place in the order of all

    @classmethod
    def draw(cls, offsets: Integers, most: Integers, generator: np.random.Generator) -> _Pool:
        """Draw so many instances of every bag."""
        bags = np.flatnonzero(most)
        rows = [
            start + generator.choice(size, n, replace=False)
            for start, size, n in zip(offsets[bags], np.diff(offsets)[bags], most[bags], strict=True)
        ]
        ranks = [np.arange(n) for n in most[bags]]
        drawn = np.concatenate(rows)
        return cls(drawn, np.repeat(bags, most[bags]), np.concatenate(ranks), generator.permutation(len(drawn)))

    def take(self, kept: Integers, offsets: Integers) -> tuple[Integers, Integers, Integers]:
        """Return the rows of one plan, their offsets, and their places in the order of all."""
        inside = np.flatnonzero(self.rank < kept[self.bag])
        inside = inside[np.argsort(self.rows[inside])]
        return self.rows[inside], offsets, np.argsort(self.key[inside])
