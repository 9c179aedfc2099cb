"""Fitting all views, weighing them, and the sum that decides."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.engine import is_torch, one_blas_thread, resolve
from gmil.engine.resident import as_array
from gmil.io.model_files.schema import (
    Array,
    Choice,
    Count,
    Either,
    Flag,
    Items,
    Kind,
    Number,
    OrMissing,
    OrNone,
    Record,
    Rows,
)
from gmil.transform.space import Space
from gmil.weighted.familiar import familiar_distances
from gmil.weighted.model import KERNELS, Candidate, View, fit_candidates, refit_on_points
from gmil.weighted.relevance import further_views
from gmil.weighted.views import (
    KINDS,
    SCALES,
    SPARSE_KINDS,
    CentersInSpace,
    bag_features,
    by_blocks,
    kinds_of,
)
from gmil.weighted.weighing import LeftOut, Weighed, stacking_folds, weigh
from gmil.weighted.witness import WITNESSES, WitnessModel
from gmil.weighted.witness_fitting import pool_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.weighted.views import InSpaces
    from gmil.weighted.witness_fitting import InstanceModels


_COLUMN_SPACE = Record(
    {
        "name": Choice(*SCALES, None),
        "centers": Array("k", "d"),
        "shift": OrNone(Array("d")),
        "divisor": OrNone(Array("d", above=0)),
        "unit_length": Flag(),
    },
    local=("k",),
)
_RANK_SPACE = Record({"name": Choice("rank"), "centers": Array("k", "d"), "knots": Array("d", "t")}, local=("k", "t"))
_VIEW = Record(
    {
        "space": Count(below="spaces"),
        "kind": Choice(*KINDS, *SPARSE_KINDS),
        "shift": OrNone(Array("c")),
        "divisor": OrNone(Array("c", above=0)),
        "kernel": Choice(*KERNELS, "linear"),
        "points": OrNone(Rows("m", "c")),
        "width": Number(above=0),
        "coefficients": Array("n", "P"),
        "low": OrMissing(Array("c")),
        "high": OrMissing(Array("c")),
    },
    local=("c", "m", "n"),
)
VIEW_WEIGHT = Record(
    {
        "scale": Choice(*SCALES, None),
        "kind": Choice(*KINDS, *SPARSE_KINDS),
        "kernel": Choice(*KERNELS, "linear"),
        "weights": Array("P"),
    }
)
"""What `Weighed.summary` returns for a view."""

FITTED_VIEWS: dict[str, Kind] = {
    "intercepts_": Array("P"),
    "spaces_": Items(Either(_RANK_SPACE, _COLUMN_SPACE), "spaces", least=1),
    "views_": Items(_VIEW),
    "witnesses_": WITNESSES,
}
"""What `Fitting.as_plain` and its intercepts are."""


class FittedViews(NamedTuple):
    """Everything that decides about a bag."""

    spaces: list[CentersInSpace]
    views: list[View]
    intercepts: Floats  # (n_problems,)
    witnesses: WitnessModel | None = None

    def decide_by(self, features_of: Callable[[View], Floats], n_bags: int, backend: Backend) -> Floats:
        """Return log-odds by the views from the vectors of bags in each, (n_bags, n_problems)."""
        decisions = np.tile(self.intercepts, (n_bags, 1))
        for view in self.views:
            decisions += view.votes(features_of(view), backend)
        return decisions

    def decide(self, bags: Bags, backend: Backend) -> Floats:
        """Return log-odds, (n_bags, n_problems)."""
        return by_blocks(self._decide_block, self.spaces, bags, backend)

    def _decide_block(self, taken: InSpaces) -> Floats:
        decisions = self.decide_by_views(taken)
        return decisions if self.witnesses is None else self.witnesses.stacked(decisions, self.witnesses.largest(taken))

    def decide_by_views(self, taken: InSpaces) -> Floats:
        """Return log-odds by the views alone, (n_bags, n_problems)."""
        decisions = np.tile(self.intercepts, (len(taken.bags), 1))
        for space, kind, views in self.by_kind():
            features = taken.features(space, kind)
            for view in views:
                decisions += view.votes(features, taken.backend)
        return decisions

    def by_kind(self) -> Iterator[tuple[int, str, list[View]]]:
        """Yield the number of every space that is used, a kind of vectors there, and its views."""
        for key in dict.fromkeys((view.space, view.kind) for view in sorted(self.views, key=lambda view: view.space)):
            yield *key, [view for view in self.views if (view.space, view.kind) == key]

    @classmethod
    def from_plain(
        cls,
        spaces: list[dict[str, Any]],
        views: list[dict[str, Any]],
        intercepts: Floats,
        witnesses: dict[str, Any] | None = None,
        model: Any = WitnessModel,
    ) -> FittedViews:
        """Rebuild from what `Fitting.as_plain` and ``as_plain`` of the model of instances returned."""
        return cls(
            [_space_of(entry) for entry in spaces],
            [View(**entry) for entry in views],
            intercepts,
            None if witnesses is None else model.from_plain(witnesses),
        )


class Fitting(NamedTuple):
    """The outcome of `fit_views`."""

    spaces: list[CentersInSpace]
    views: list[View]
    intercepts: Floats
    summary: list[dict[str, Any]]
    left_out: LeftOut  # of all bags; NaN where a bag was not in the sample
    familiar_distances: Floats  # of training bags, sorted
    witnesses: WitnessModel | None = None

    def with_witnesses(
        self, taken: InSpaces, learning: Learning, models: InstanceModels, generator: np.random.Generator
    ) -> Fitting:
        """Add models of instances, learnt from the training bags that the views were chosen on."""
        rows, n_bags = np.flatnonzero(self.left_out.known), len(taken.bags)
        some, own = (taken, learning) if len(rows) == n_bags else (taken.some(rows), learning.some(rows))
        drafts = models.draft(some, own, generator)
        if drafts is None:
            return self
        pooled = pool_in_memory(drafts, self.spaces, some.bags, learning.backend)
        known = drafts.fold_of < drafts.n_folds
        witnesses, left_out = models.weigh(drafts, pooled, own, self.left_out.some(rows), known)
        return self._replace(witnesses=witnesses, left_out=left_out.among(rows, n_bags))

    def among(self, rows: Integers, n_bags: int) -> Fitting:
        """Return the same for training bags that are these of many."""
        return self._replace(left_out=self.left_out.among(rows, n_bags))

    def as_plain(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return spaces and views as dicts of arrays, which can be saved."""
        views = [{**view._asdict(), "points": as_array(view.points)} for view in self.views]
        return [_plain_space(space) for space in self.spaces], views


def _plain_space(space: CentersInSpace) -> dict[str, Any]:
    parts = ("shift", "divisor", "unit_length") if space.space.knots is None else ("knots",)
    return {"name": space.name, "centers": space.centers, **{part: getattr(space.space, part) for part in parts}}


def _space_of(entry: dict[str, Any]) -> CentersInSpace:
    parts = {key: value for key, value in entry.items() if key not in ("name", "centers")}
    return CentersInSpace(entry["name"], Space(**parts), entry["centers"])


_OF_BAGS = ("positive", "weights", "groups", "values", "outcomes")


class Learning(NamedTuple):
    """What views are fitted to, and how: everything but the vectors of the bags."""

    positive: Booleans  # (n_bags, n_problems); of values, which are large: samples and folds are balanced by them
    weights: Floats  # (n_bags,)
    groups: Integers | None  # (n_bags,)
    kernels: tuple[str, ...]
    n_points: int
    backend: Backend
    values: Floats | None = None  # (n_bags, n_problems): what is to be predicted, where that is no class
    outcomes: Floats | None = None  # (n_bags, 2): whether and when something happened, where values stand for that
    measured: bool = False  # whether values are what was measured, and do not stand for grades or times

    @property
    def goals(self) -> Floats:
        """What views regress on, (n_bags, n_problems): values, or 1 and -1."""
        return np.where(self.positive, 1.0, -1.0) if self.values is None else self.values

    def some(self, rows: Integers | None) -> Learning:
        """Return the same for some of the bags; None means all."""
        if rows is None:
            return self
        parts: dict[str, Any] = {name: getattr(self, name) for name in _OF_BAGS}
        return self._replace(**{name: part[rows] for name, part in parts.items() if part is not None})

    def fits_on_device(self) -> bool:
        """Tell whether views are fitted where PyTorch runs: not where groups are left out, or votes are linear."""
        return is_torch(self.backend.name) and self.groups is None and self.kernels == KERNELS


def fit_views(
    taken: InSpaces, kinds: tuple[str, ...], learning: Learning, *, max_bags: int, generator: np.random.Generator
) -> Fitting:
    """Fit every view, weigh them by their decisions about bags that were left out, and calibrate the sum.

    With more than ``max_bags`` bags all this is done on a sample of them, and the views with weight are then
    fitted on all bags with ``n_points`` points of comparison.
    """
    bags, spaces = taken.bags, list(taken.spaces)
    rows = sample_of_bags(learning.positive, max_bags, generator)
    some = taken if rows is None else taken.some(rows)
    scaled: dict[int, Any] = {}

    def features_of(view: View) -> Floats:
        if view.space not in scaled:
            scaled.clear()
            scaled[view.space] = taken[view.space]
        return bag_features(scaled[view.space], bags.offsets, view.kind, spaces[view.space].centers, taken.backend)

    views = list(_views_of(some, kinds, learning))
    weighed = weigh_views(views, learning.some(rows))
    found = finish_views(weighed, features_of, rows, learning, generator)
    near = next((features for space, kind, features, _ in views if (space, kind) == (0, "nearest")), None)
    nearest = some.features(0, "nearest") if near is None else near
    left_out = weighed.left_out.among(rows, len(bags))
    return Fitting(spaces, *found, weighed.summary(spaces), left_out, familiar_distances(as_array(nearest)))


def weigh_views(views: Sequence[tuple[int, str, Floats, str]], learning: Learning) -> Weighed:
    """Fit views, each the number of its scaling, its kind, vectors of bags and a kernel; weigh and calibrate them."""
    folds = stacking_folds(learning)
    found = _fit_all(views, learning, folds)
    if learning.measured:
        found = [fit._replace(view=fit.view.beyond()) for fit in [*found, *further_views(found, learning, folds)]]
    return weigh(found, learning)


def _fit_all(
    views: Sequence[tuple[int, str, Floats, str]], learning: Learning, folds: Sequence[Booleans]
) -> list[Candidate]:
    targets = learning.goals
    if learning.fits_on_device() and not any(sp.issparse(features) for _, _, features, _ in views):
        from gmil.weighted.on_device import ridge

        return ridge.fit_candidates(views, targets, learning.weights, learning.backend, folds)

    def fit(alike: list[tuple[int, str, Floats, str]]) -> list[Candidate]:
        space, kind, features, _ = alike[0]
        kernels, known = [kernel for *_, kernel in alike], (targets, learning.weights, learning.groups)
        return fit_candidates(space, kind, as_array(features), kernels, *known, one_thread, folds)

    # One kind of vectors a thread: decompositions of a few hundred bags are too small to be shared between threads.
    one_thread = resolve(learning.backend.name, 1)
    by_vectors = [list(alike) for _, alike in groupby(views, key=itemgetter(0, 1))]
    with one_blas_thread(), ThreadPoolExecutor(learning.backend.n_threads) as pool:
        found = map(fit, by_vectors) if learning.backend.n_threads == 1 else pool.map(fit, by_vectors)
        return list(chain.from_iterable(found))


def finish_views(
    weighed: Weighed,
    features_of: Callable[[View], Floats],
    rows: Integers | None,
    learning: Learning,
    generator: np.random.Generator,
) -> tuple[list[View], Floats]:
    """Return the views with weight, and intercepts; where they were fitted on some rows, fit them on all bags.

    ``features_of`` returns the vectors of all bags in a view.
    """
    weights = learning.weights
    chosen = [i for i in range(len(weighed.candidates)) if weighed.shares[i].any()]
    if rows is None:
        fitted = [(weighed.candidates[i].view, weighed.candidates[i].intercepts) for i in chosen]
    else:
        points = rows[np.sort(generator.choice(len(rows), min(learning.n_points, len(rows)), replace=False))]
        ratio = float(weights.sum() / weights[rows].sum())
        refit = partial(
            refit_on_points,
            targets=learning.goals,
            weights=weights,
            rows=points,
            backend=learning.backend,
            ratio=ratio,
        )
        fitted = [refit(weighed.candidates[i], as_array(features_of(weighed.candidates[i].view))) for i in chosen]
    factors = [weighed.shares[i] * weighed.slopes for i in chosen]
    views = [view._replace(coefficients=view.coefficients * by) for (view, _), by in zip(fitted, factors, strict=True)]
    intercepts = weighed.shifts + sum(
        (by * constant for (_, constant), by in zip(fitted, factors, strict=True)), start=np.zeros(len(weighed.shifts))
    )
    return views, intercepts


def sample_of_bags(positive: Booleans, max_bags: int, generator: np.random.Generator) -> Integers | None:
    """Return a stratified sample of bags, in order, or None where all are few enough."""
    n_bags = len(positive)
    if n_bags <= max_bags:
        return None
    # Bags with the same labels are spread evenly over a random order, and taken at equal steps.
    order = generator.permutation(n_bags)
    by_label = np.unique(positive[order], axis=0, return_inverse=True)[1].ravel()
    order = order[np.argsort(by_label, kind="stable")]
    return np.sort(order[np.linspace(0, n_bags - 1, max_bags).round().astype(int)])


def _views_of(taken: InSpaces, kinds: tuple[str, ...], learning: Learning) -> Iterator[tuple[int, str, Floats, str]]:
    """Yield the number of the scaling, the kind, the vectors of bags and the kernel of every view."""
    scales = [space.name for space in taken.spaces]
    of_values, measured = learning.values is not None, learning.measured
    about = {"sparse": sp.issparse(taken.bags.instances), "of_values": of_values, "measured": measured}
    for i, space in enumerate(taken.spaces):
        worth = kinds_of(space.name, kinds, scales=scales, **about)
        wanted = ("nearest",) if learning.kernels == ("linear",) else worth
        if not wanted:
            continue
        scaled = taken[i]
        for kind in wanted:
            features = bag_features(scaled, taken.bags.offsets, kind, space.centers, taken.backend)
            for kernel in learning.kernels:
                yield i, kind, features, kernel
