"""The effect of an instance: how much the decision about its bag falls when it is taken out, without another fit."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.bags.bags import bags_drawn
from gmil.bags.parts import blocks_of_bags, rows_of_bags
from gmil.scale import LazyBags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers

    Join = Callable[[Floats, Floats], Floats]

_BLOCK_ENTRIES = 1 << 22
"""How many features of instances are copied at once, where bags are not larger: 32 MiB in double precision."""


def score_by_effect(self: Any, X: Any) -> Floats:
    """Return how much every instance makes its bag positive: the decision less that without the instance.

    Nothing is fitted again. The only instance of a bag is compared with a bag without instances: the intercept of
    models that are linear in what they know of a bag, zero for others.

    Parameters
    ----------
    X : Bags, list of 2-D arrays, 3-D array, or 2-D array
        Bags of the same features as the training bags; `LazyBags` where the method reads them.

    Returns
    -------
    array of shape (n_instances,) or (n_instances, n_classes)
        Aligned with the instances of all bags, one bag after the other.
    """
    bags = self._new_bags(X)
    return bags.by_blocks(self._effects, per_instance=True) if isinstance(bags, LazyBags) else self._effects(bags)


def effects(model: Any, bags: Bags) -> Floats:
    """Return the effect of every instance on the decision of a classifier, (n_instances,) or (n_instances, n_classes).

    The classifier has ``_decide``, ``_decide_without`` and ``_decision_of_nothing``.
    """
    whole = model._decide(bags)[bags.segment_ids]
    found: Floats = whole - model._decision_of_nothing()
    for rows, without in model._decide_without(bags):
        found[rows] = whole[rows] - without
    return found


def left_out(bags: Bags) -> Iterator[tuple[Integers, Bags]]:
    """Yield instances, and for each of them its bag without it, in bounded memory; bags of one instance have none."""
    sizes = bags.sizes
    instances = np.flatnonzero(np.repeat(sizes > 1, sizes))
    owners = bags.segment_ids[instances]
    offsets = np.concatenate([[0], np.cumsum(sizes[owners] - 1)])
    entries = bags.instances.nnz // bags.n_instances + 1 if sp.issparse(bags.instances) else bags.n_features
    for block in blocks_of_bags(offsets, max(1, _BLOCK_ENTRIES // entries)) if len(instances) else ():
        rows, _ = rows_of_bags(bags.offsets, owners[block])
        kept = rows[rows != np.repeat(instances[block], sizes[owners[block]])]
        cut = offsets[block.start : block.stop + 1] - offsets[block.start]
        yield instances[block], bags_drawn(bags.instances[kept], cut, None, bags.feature_names, None)


def spans_of_several(bags: Bags, more_than: int = 1) -> Iterator[slice]:
    """Yield the rows of every bag of more than so many instances."""
    for i in np.flatnonzero(bags.sizes > more_than):
        yield slice(int(bags.offsets[i]), int(bags.offsets[i + 1]))


def vectors_without(
    bags: Bags,
    tables: Callable[[Any, Integers], Sequence[Floats]],
    joins: Sequence[Join],
    finish: Callable[[Sequence[Floats]], Floats],
) -> Iterator[tuple[Any, Floats]]:
    """Yield instances, and for each of them the vector of its bag without it, in bounded memory and linear time.

    Bags of one instance are left out.

    Parameters
    ----------
    bags : Bags
    tables : callable
        Takes instances and offsets, and returns tables of one row for every bag.
    joins : sequence of callable
        What makes one row of the rows of two pieces of a bag, for every table.
    finish : callable
        Makes vectors of tables.
    """

    def joined(singles: Sequence[Floats], offsets: Integers) -> list[Floats]:
        return [joined_without(*part) for part in zip(singles, [offsets] * len(joins), joins, strict=True)]

    n_columns = sum(table.shape[1] for table in tables(bags.instances[:1], np.arange(2)))
    most = max(1, _BLOCK_ENTRIES // n_columns)
    for rows, offsets in _whole_bags(bags, most):
        yield rows, finish(joined(tables(bags.instances[rows], np.arange(len(rows) + 1)), offsets))
    for bag in spans_of_several(bags, most):
        cuts = np.array([*range(bag.start, bag.stop, most), bag.stop])
        around = joined(tables(bags.instances[bag], cuts - bag.start), np.array([0, len(cuts) - 1]))
        for piece, (start, stop) in enumerate(itertools.pairwise(cuts.tolist())):
            singles = tables(bags.instances[start:stop], np.arange(stop - start + 1))
            both = [np.vstack([others[piece], table]) for others, table in zip(around, singles, strict=True)]
            yield slice(start, stop), finish([table[1:] for table in joined(both, np.array([0, stop - start + 1]))])


def _whole_bags(bags: Bags, most: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield rows of bags of two to ``most`` instances, and the offsets of these bags, about ``most`` rows at once."""
    rows, offsets = rows_of_bags(bags.offsets, np.flatnonzero((bags.sizes > 1) & (bags.sizes <= most)))
    for block in blocks_of_bags(offsets, most) if len(rows) else ():
        cut = offsets[block.start : block.stop + 1]
        yield rows[cut[0] : cut[-1]], cut - cut[0]


def joined_without(rows: Floats, offsets: Integers, join: Join) -> Floats:
    """Return for every row all others of its bag joined, (n_rows, n_columns); every bag has two rows at least.

    What comes before is joined with what comes after: unlike a sum less one of its terms, this loses no digits.
    """
    here, sizes = np.arange(len(rows)), np.diff(offsets)
    behind, ahead = here - np.repeat(offsets[:-1], sizes), np.repeat(offsets[1:], sizes) - 1 - here
    columns = np.ascontiguousarray(rows.T, dtype=np.float64)
    before = _accumulated(columns, behind, join)
    after = _accumulated(columns[:, ::-1], ahead[::-1], lambda one, other: join(other, one))[:, ::-1]
    found = np.empty_like(columns)
    first, last, middle = (np.flatnonzero(some) for some in (behind == 0, ahead == 0, (behind > 0) & (ahead > 0)))
    found[:, first], found[:, last] = after[:, first + 1], before[:, last - 1]
    found[:, middle] = join(before[:, middle - 1], after[:, middle + 1])
    return found.T


def _accumulated(columns: Floats, behind: Integers, join: Join) -> Floats:
    """Return every column joined with those before it in its bag, of which there are ``behind``, by doubling."""
    found, step = columns.copy(), 1
    while step <= behind.max():
        later = np.flatnonzero(behind >= step)
        found[:, later] = join(found[:, later - step], found[:, later])
        step *= 2
    return found
