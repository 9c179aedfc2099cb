"""Vectors of bags that are read in blocks, for many fits in one pass.

Under one scaling a block is scaled once and measured once against a codebook: the distances serve views of bags and
scorers of instances alike.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from gmil.engine import moments, one_blas_thread, resolve
from gmil.engine.resident import as_array, blocks_for, device_of, in_own_stream, resident
from gmil.scale.resident import reduce_on_device
from gmil.transform.space import Space
from gmil.weighted.mostly_zero import Factors, InColumns, Measured, SideBySide, SparseRows
from gmil.weighted.views import CentersInSpace, bounded, in_single_precision
from gmil.weighted.witness import landmark_step, similarities
from gmil.weighted.witness_fitting import largest_and_total

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Integers
    from gmil.scale import LazyBags

Owner: TypeAlias = tuple[int, int]
"""The number of a fit, and of one of its scalings or scorers."""

_UNSCALED, _UNIT_LENGTH = Space(), Space(unit_length=True)
_JOINS: dict[str, Any] = {
    "low": np.minimum,
    "high": np.maximum,
    "moments": moments.join_moments,
    "nearest": np.minimum,
    "largest": np.maximum,
    "total": np.add,
}
"""The tables of bags, and what makes one row of the rows of two pieces of a bag."""


class Wanted(NamedTuple):
    """The views of one fit: scalings with centres, and pairs of a scaling's number and a kind of vector."""

    spaces: list[CentersInSpace]
    kinds: list[tuple[int, str]]
    scorers: Sequence[Any] = ()  # of instances; see `largest_and_total`


class _Scoring(NamedTuple):
    """A scorer of instances under the scaling of one fit."""

    key: Owner
    scorer: Any
    space: Owner
    step: int = 1  # one centre in so many is a landmark


@dataclass
class _Codebook:
    """Centres under one scaling, of one fit or of several."""

    members: dict[Owner, Floats] = field(default_factory=dict)
    is_view: bool = False  # whether bags are embedded by their distances to these centres
    scorings: list[_Scoring] = field(default_factory=list)

    @functools.cached_property
    def joined(self) -> tuple[Floats, dict[Owner, Any]]:
        """All centres, those of several fits once, and the columns of every fit among them."""
        stacked = list(self.members.values())
        if len(stacked) == 1:
            return stacked[0], dict.fromkeys(self.members, slice(None))
        centers, places = np.unique(np.concatenate(stacked), axis=0, return_inverse=True)
        cuts = np.cumsum([len(own) for own in stacked])[:-1]
        return centers, dict(zip(self.members, np.split(places.ravel(), cuts), strict=True))

    def tables(self, squares: Any, offsets: Integers, backend: Backend) -> Iterator[Any]:
        """Yield the tables that `names` names, from squared distances to all centres."""
        if self.is_view:
            yield backend.bag_min(squares, offsets)
        for scoring in self.scorings:
            own = squares[:, self.joined[1][scoring.space]][:, :: scoring.step]
            yield from largest_and_total(scoring.scorer.scores_of(similarities(own, scoring.scorer.gamma)), offsets)

    def names(self, place: Any) -> Iterator[tuple[str, Any]]:
        """Yield the name of every table, and what it is about: this codebook, or a scorer."""
        if self.is_view:
            yield "nearest", place
        yield from _names_of_scores(self.scorings)


class _Block:
    """Instances, in the space in which they were asked for last; and as sparse rows, where most numbers are zero."""

    def __init__(self, X: Any, offsets: Integers) -> None:
        self._X, self.offsets, self.sparse = X, offsets, SparseRows.of(X, offsets)
        self._last: tuple[Space, Any] = _UNSCALED, X

    def under(self, space: Space, backend: Backend) -> Any:
        """Return instances in a space; not scaled they may be far from zero, and no digit is lost."""
        if space.is_same(_UNSCALED):
            return self._X
        if self._last[0] is not space:
            self._last = _UNSCALED, self._X  # what was taken before is let go first
            self._last = space, in_single_precision(space, self._X, backend)
        return self._last[1]

    def single(self, space: Space, backend: Backend) -> Any:
        """Return the same in single precision, none so large that its square overflows."""
        taken = self.under(space, backend)
        return bounded(taken) if taken is self._X else taken


@dataclass
class _Work:
    """What is computed under one scaling."""

    space: Space
    n_features: int
    kinds: list[str] = field(default_factory=list)  # "range", "moments"
    codebooks: list[_Codebook] = field(default_factory=list)
    scorings: list[_Scoring] = field(default_factory=list)  # those by features, not by distances

    def codebook(self, owner: Owner, centers: Floats) -> int:
        """Return the number of the codebook that holds the centres of a fit.

        Fits share one where the scaling is not fitted and instances are of length one: there distances round alike
        whatever other centres are beside them, and folds have most centres in common.
        """
        is_shared = self.space.is_same(_UNIT_LENGTH)
        number = next((i for i, book in enumerate(self.codebooks) if is_shared or owner in book.members), None)
        if number is None:
            self.codebooks.append(_Codebook())
        number = len(self.codebooks) - 1 if number is None else number
        self.codebooks[number].members[owner] = centers
        return number

    def tables(self, block: _Block, measured: Measured | None, backend: Backend) -> Iterator[Any]:
        """Yield the tables that `names` names."""
        offsets, at = block.offsets, (self.space, backend)
        if "range" in self.kinds:
            yield backend.bag_min(block.under(*at), offsets)
            yield backend.bag_max(block.under(*at), offsets)
        if "moments" in self.kinds:
            known = None if measured is None else measured.moments
            yield backend.bag_moments(block.under(*at), offsets) if known is None else known
        for number, codebook in enumerate(self.codebooks):
            squares = self._sparse_distances(block, measured, number, backend)
            if squares is None:
                squares = backend.sq_distances(block.single(*at), codebook.joined[0])
            yield from codebook.tables(squares, offsets, backend)
        for number, scoring in enumerate(self.scorings):
            scores = self._sparse_scores(block, number)
            yield from largest_and_total(
                scoring.scorer.scores_of(block.single(*at)) if scores is None else scores, offsets
            )

    def _sparse_distances(
        self, block: _Block, measured: Measured | None, codebook: int, backend: Backend
    ) -> Floats | None:
        own = self.in_columns
        if block.sparse is None or own is None or measured is None:
            return None
        return own.sq_distances(block.sparse, self._factors[codebook], measured.lengths, backend)

    def _sparse_scores(self, block: _Block, scoring: int) -> Floats | None:
        own = self.in_columns
        if block.sparse is None or own is None or own.unit_length:
            return None
        return np.asarray(self._moved_scorers[scoring].scores_of(block.sparse.rows))

    @functools.cached_property
    def in_columns(self) -> InColumns | None:
        """The scaling for sparse rows, where it is one by columns."""
        return InColumns.of(self.space, self.n_features)

    @functools.cached_property
    def _factors(self) -> list[Factors]:
        assert self.in_columns is not None
        return [self.in_columns.factors(codebook.joined[0]) for codebook in self.codebooks]

    @functools.cached_property
    def _moved_scorers(self) -> list[Any]:
        assert self.in_columns is not None
        return [self.in_columns.scorer(scoring.scorer) for scoring in self.scorings]

    def names(self, number: int) -> Iterator[tuple[str, Any]]:
        """Yield the name of every table, and what it is about: this scaling, a codebook, or a scorer."""
        if "range" in self.kinds:
            yield from (("low", number), ("high", number))
        if "moments" in self.kinds:
            yield "moments", number
        for place, codebook in enumerate(self.codebooks):
            yield from codebook.names((number, place))
        yield from _names_of_scores(self.scorings)

    @property
    def n_products(self) -> int:
        """How many tables need the lengths of instances."""
        return len(self.codebooks) + (self.space.unit_length and "moments" in self.kinds)

    @property
    def n_centers(self) -> int:
        """The size of the largest codebook."""
        return max((len(codebook.joined[0]) for codebook in self.codebooks), default=0)


def _names_of_scores(scorings: Sequence[_Scoring]) -> Iterator[tuple[str, Owner]]:
    for scoring in scorings:
        yield from (("largest", scoring.key), ("total", scoring.key))


def vectors_of(bags: LazyBags, wanted: Sequence[Wanted], backend: Backend) -> list[dict[tuple[int, str], Floats]]:
    """Read all bags once; return for every fit the vectors of all bags, by scaling and kind.

    What scorers find is there by their number and "largest" or "total".
    """
    works, source_of = _share_work(wanted)
    names = [name for number, work in enumerate(works) for name in work.names(number)]
    if not names:
        return [{} for _ in wanted]
    tables = dict(zip(names, _reduce(bags, works, [_JOINS[name] for name, _ in names], backend), strict=True))
    vectors: list[dict[tuple[int, str], Floats]] = [{} for _ in wanted]
    for (fit, space, kind), source in source_of.items():
        scaling = wanted[fit].spaces[space].space
        if kind == "nearest":
            columns = works[source[0]].codebooks[source[1]].joined[1][fit, space]
            vectors[fit][space, kind] = np.sqrt(tables["nearest", source][:, columns])
        elif kind == "range":
            vectors[fit][space, kind] = _range(tables["low", source], tables["high", source], scaling)
        else:
            both = _moments(tables["moments", source], scaling, bags.dtype)
            vectors[fit][space, kind] = both[:, : bags.n_features] if kind == "mean" else both
    for (name, about), table in tables.items():
        if name in ("largest", "total"):
            vectors[about[0]][about[1], name] = table
    return vectors


def _reduce(bags: LazyBags, works: list[_Work], joins: list[Any], backend: Backend) -> list[Any]:
    """Make the tables of all works in one pass; where instances lie on the device of the backend, they stay there."""
    columns = [work.in_columns if work.n_products else None for work in works]
    # Other moments are those of the block as it is.
    places = [i for i, own in enumerate(columns) if own and own.unit_length and "moments" in works[i].kinds]
    beside = SideBySide(columns, places)
    function = functools.partial(_block_tables, works=works, beside=beside, backend=resolve(backend.name, 1))
    X = bags.tensor_on(device_of(backend))
    if X is None:
        n_threads, size = blocks_for(backend)
        with one_blas_thread():  # blocks are shared between threads: those of BLAS would spin between products
            return bags.reduce(function, joins, n_threads=n_threads, rows=size * bags.block_rows())
    # A block, scaled, once more in double precision for its moments, its distances, and what follows from them.
    row_entries = 4 * bags.n_features + 3 * max(work.n_centers for work in works)
    return reduce_on_device(bags, function, joins, X, row_entries)


def _block_tables(block: Any, works: Sequence[_Work], beside: SideBySide, backend: Backend) -> list[Any]:
    """Return the tables of all works for some bags, one after the other."""
    with in_own_stream(block.instances, backend):
        X = resident(block.instances, backend)
        own = _Block(X, block.offsets)
        measured = [None] * len(works) if own.sparse is None else beside.measure(own.sparse)
        pairs = zip(works, measured, strict=True)
        found = [table for work, known in pairs for table in work.tables(own, known, backend)]
        return [as_array(table) for table in found]


def _share_work(wanted: Sequence[Wanted]) -> tuple[list[_Work], dict[tuple[int, int, str], Any]]:
    """Return what has to be computed, and which scaling or codebook every view of every fit finds its tables by.

    Range and moments under a scaling by columns follow from those of the features as they are, which all fits share.
    """
    works: list[_Work] = []
    source_of: dict[tuple[int, int, str], Any] = {}
    for fit, one in enumerate(wanted):
        for space, kind in one.kinds:
            own = one.spaces[space]
            number = _work_under(_UNSCALED if _follows(own.space, kind) else own.space, works, own.centers.shape[1])
            source_of[fit, space, kind] = number
            if kind == "nearest":
                place = works[number].codebook((fit, space), own.centers)
                works[number].codebooks[place].is_view = True
                source_of[fit, space, kind] = number, place
            elif (table := "moments" if kind == "mean" else kind) not in works[number].kinds:
                works[number].kinds.append(table)
        for number, scorer in enumerate(one.scorers):
            _add_scorer(works, (fit, number), scorer, one.spaces[scorer.space])
    return works, source_of


def _work_under(space: Space, works: list[_Work], n_features: int) -> int:
    """Return the number of what is computed under a scaling."""
    number = next((i for i, work in enumerate(works) if work.space.is_same(space)), len(works))
    if number == len(works):
        works.append(_Work(space, n_features))
    return number


def _add_scorer(works: list[_Work], key: Owner, scorer: Any, space: CentersInSpace) -> None:
    work, owner = works[_work_under(space.space, works, space.centers.shape[1])], (key[0], scorer.space)
    if scorer.kernel == "linear":
        work.scorings.append(_Scoring(key, scorer, owner))
        return
    place = work.codebook(owner, space.centers)
    work.codebooks[place].scorings.append(_Scoring(key, scorer, owner, landmark_step(space)))


def _follows(space: Space, kind: str) -> bool:
    """Tell whether a table follows from that of unscaled features: a minimum does where order is kept."""
    if space.knots is not None:
        return kind == "range"
    return kind != "nearest" and not space.unit_length


def _range(low: Floats, high: Floats, space: Space) -> Floats:
    """Return the vectors of bags in a view, as `gmil.weighted.views.bag_features` makes them."""
    follows = _follows(space, "range")
    return np.hstack([in_single_precision(space, table) if follows else table for table in (low, high)])


def _moments(table: Floats, space: Space, dtype: np.dtype[Any]) -> Floats:
    """Return the vectors of bags in a view, as `gmil.weighted.views.bag_features` makes them."""
    sizes, means, squares = np.moveaxis(table, 1, 0)
    deviations = np.sqrt(squares / sizes)
    if _follows(space, "moments"):
        means = in_single_precision(space, means)
        deviations = deviations if space.divisor is None else deviations / space.divisor
    return np.hstack([means, bounded(deviations)]).astype(dtype)
