"""The effect of an instance: how much the decision about its bag falls when it is taken out, without another fit."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

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
    for block in blocks_of_bags(offsets, max(1, _BLOCK_ENTRIES // bags.n_features)) if len(instances) else ():
        rows, _ = rows_of_bags(bags.offsets, owners[block])
        kept = rows[rows != np.repeat(instances[block], sizes[owners[block]])]
        cut = offsets[block.start : block.stop + 1] - offsets[block.start]
        yield instances[block], bags_drawn(bags.instances[kept], cut, None, bags.feature_names, None)


def spans_of_several(bags: Bags) -> Iterator[slice]:
    """Yield the rows of every bag of more than one instance."""
    for i in np.flatnonzero(bags.sizes > 1):
        yield slice(int(bags.offsets[i]), int(bags.offsets[i + 1]))


def joined_without(rows: Floats, join: Join, outside: Floats | None = None) -> list[Any]:
    """Return for every row all others and ``outside`` joined; None where there are none.

    Joining what comes before with what comes after takes linear time and, unlike subtracting a row from the sum, loses
    no digits.
    """

    def both(one: Floats | None, other: Floats | None) -> Floats | None:
        return other if one is None else one if other is None else join(one, other)

    before: list[Floats | None] = [outside]
    after: list[Floats | None] = [None]
    for row in rows[:-1]:
        before.append(both(before[-1], row))
    for row in rows[:0:-1]:
        after.append(both(row, after[-1]))
    return [both(one, other) for one, other in zip(before, reversed(after), strict=True)]


def vectors_without(
    bags: Bags,
    tables: Callable[[Any, Integers], Sequence[Floats]],
    joins: Sequence[Join],
    finish: Callable[[Sequence[Floats]], Floats],
) -> Iterator[tuple[slice, Floats]]:
    """Yield instances, and for each of them the vector of its bag without it, in bounded memory.

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
    n_columns = sum(table.shape[1] for table in tables(bags.instances[:1], np.arange(2)))
    length = max(1, _BLOCK_ENTRIES // n_columns)
    for bag in spans_of_several(bags):
        cuts = np.array([*range(bag.start, bag.stop, length), bag.stop])
        pieces = _double(tables(bags.instances[bag], cuts - bag.start))
        around = [joined_without(*pair) for pair in zip(pieces, joins, strict=True)]
        for piece, rows in enumerate(itertools.starmap(slice, itertools.pairwise(cuts.tolist()))):
            singles = _double(tables(bags.instances[rows], np.arange(rows.stop - rows.start + 1)))
            parts = zip(singles, joins, (others[piece] for others in around), strict=True)
            yield rows, finish([np.array(joined_without(*part)) for part in parts])


def _double(tables: Sequence[Floats]) -> list[Floats]:
    return [table.astype(np.float64, copy=False) for table in tables]
