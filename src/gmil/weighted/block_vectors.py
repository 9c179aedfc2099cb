"""Vectors of bags that are read in blocks, for many fits in one pass."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.engine import moments, resolve
from gmil.transform.space import Space
from gmil.weighted.views import CentersInSpace, bounded, in_single_precision
from gmil.weighted.witness_fitting import pooled_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Integers
    from gmil.scale import LazyBags

_UNSCALED = Space()
_JOINS = {"range": (np.minimum, np.maximum), "moments": (moments.join_moments,), "nearest": (np.minimum,)}


class Wanted(NamedTuple):
    """The views of one fit: scalings with centres, and pairs of a scaling's number and a kind of vector."""

    spaces: list[CentersInSpace]
    kinds: list[tuple[int, str]]
    scorers: Sequence[Any] = ()  # of instances; see `pooled_tables`


class _Work(NamedTuple):
    """What is computed under one scaling: kinds of tables, and centres of all fits that share the scaling."""

    space: Space
    kinds: list[str]
    centers: list[Floats]
    owners: list[tuple[int, int]]  # of every codebook: the number of the fit and of its scaling

    def add(self, kind: str, centers: Floats, owner: tuple[int, int]) -> None:
        """Ask for one kind of table."""
        if kind not in self.kinds:
            self.kinds.append(kind)
        if kind == "nearest" and owner not in self.owners:
            self.centers.append(centers)
            self.owners.append(owner)


def vectors_of(bags: LazyBags, wanted: Sequence[Wanted], backend: Backend) -> list[dict[tuple[int, str], Floats]]:
    """Read all bags once; return for every fit the vectors of all bags, by scaling and kind.

    What scorers find is there by their number and "largest" or "total".
    """
    works, source_of = _share_work(wanted)
    scorers = [(scorer, own.spaces[scorer.space]) for own in wanted for scorer in own.scorers]
    if not (works or scorers):
        return [{} for _ in wanted]
    joins: list[Any] = [join for work in works for kind in work.kinds for join in _JOINS[kind]]
    joins += [np.maximum, np.add] * len(scorers)
    function = functools.partial(_block_tables, works=works, scorers=scorers, backend=resolve(backend.name, 1))
    found = iter(bags.reduce(function, joins, n_threads=backend.n_threads))
    tables = [{kind: [next(found) for _ in _JOINS[kind]] for kind in work.kinds} for work in works]
    vectors: list[dict[tuple[int, str], Floats]] = [{} for _ in wanted]
    for (fit, space, kind), number in source_of.items():
        scaled = wanted[fit].spaces[space]
        vectors[fit][space, kind] = _vectors(works[number], tables[number], kind, (fit, space), scaled, bags.dtype)
    for own, fitted in zip(wanted, vectors, strict=True):
        for number in range(len(own.scorers)):
            fitted[number, "largest"], fitted[number, "total"] = next(found), next(found)
    return vectors


def _share_work(wanted: Sequence[Wanted]) -> tuple[list[_Work], dict[tuple[int, int, str], int]]:
    """Return what has to be computed, and where every view of every fit finds its tables.

    Range and moments under a scaling by columns follow from those of the features as they are, which all fits share.
    """
    works: list[_Work] = []
    source_of: dict[tuple[int, int, str], int] = {}
    for fit, one in enumerate(wanted):
        for space, kind in one.kinds:
            own = one.spaces[space]
            measured = _UNSCALED if _follows(own.space, kind) else own.space
            number = next((i for i, work in enumerate(works) if work.space.is_same(measured)), len(works))
            if number == len(works):
                works.append(_Work(measured, [], [], []))
            works[number].add(kind, own.centers, (fit, space))
            source_of[fit, space, kind] = number
    return works, source_of


def _follows(space: Space, kind: str) -> bool:
    """Tell whether a table follows from that of unscaled features: a minimum does where order is kept."""
    if space.knots is not None:
        return kind == "range"
    return kind != "nearest" and not space.unit_length


def _block_tables(
    block: Bags, works: Sequence[_Work], scorers: Sequence[tuple[Any, CentersInSpace]], backend: Backend
) -> list[Any]:
    """Return the tables of all works and of all scorers for some bags, one after the other."""
    tables: list[Any] = []
    for work in works:
        is_bare = work.space.is_same(_UNSCALED)  # then features may be far from zero: no digit may be lost
        scaled = block.instances if is_bare else in_single_precision(work.space, block.instances)
        for kind in work.kinds:
            tables += _tables(scaled, block.offsets, kind, work.centers, backend)
    for scorer, space in scorers:
        tables += pooled_tables(scorer, space, block, backend)
    return tables


def _tables(scaled: Floats, offsets: Integers, kind: str, centers: list[Floats], backend: Backend) -> list[Any]:
    if kind == "range":
        return [backend.bag_min(scaled, offsets), backend.bag_max(scaled, offsets)]
    if kind == "nearest":
        near = scaled.astype(np.float32, copy=False)
        return [np.hstack([backend.bag_min(backend.sq_distances(near, some), offsets) for some in centers])]
    return [moments.moment_table(scaled, offsets, backend)]


def _vectors(
    work: _Work,
    tables: dict[str, list[Any]],
    kind: str,
    owner: tuple[int, int],
    space: CentersInSpace,
    dtype: np.dtype[Any],
) -> Floats:
    """Return the vectors of bags in one view, as `gmil.weighted.views.bag_features` makes them."""
    if kind == "nearest":
        place = work.owners.index(owner)
        start = sum(len(centers) for centers in work.centers[:place])
        return np.sqrt(tables[kind][0][:, start : start + len(space.centers)])
    follows = _follows(space.space, kind)
    if kind == "range":
        return np.hstack([space.apply(table) if follows else table for table in tables[kind]])
    sizes, means, squares = np.moveaxis(tables[kind][0], 1, 0)
    deviations = np.sqrt(squares / sizes)
    if follows:
        means = space.apply(means)
        divisor = space.space.divisor
        deviations = deviations if divisor is None else deviations / divisor
    return np.hstack([means, bounded(deviations)]).astype(dtype)
