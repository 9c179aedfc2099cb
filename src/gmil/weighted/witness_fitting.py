"""Fitting the witness model of `WeightedGMIL`, and weighing it by bags that were left out."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from gmil.engine import one_blas_thread, resolve
from gmil.engine.eigen import eigh
from gmil.engine.resident import as_array, beside, is_tensor, namespace, take_rows
from gmil.model_selection.folds import inner_folds
from gmil.model_selection.metrics import auc
from gmil.stacking import logistic_weights
from gmil.weighted.noisy_or import fit_noisy_or
from gmil.weighted.views import blocks_of
from gmil.weighted.weighing import join_views, label_patterns
from gmil.weighted.witness import Scorer, WitnessModel, affine, columns_of, landmarks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.weighted.fitting import Learning
    from gmil.weighted.views import CentersInSpace, InSpaces
    from gmil.weighted.weighing import LeftOut

_MOST_INSTANCES = 20_000
"""Instances that the models learn from; larger bags are thinned alike."""
LARGE_BAGS = 100
"""Instances of a bag, on average, from which on models start several times: few witnesses are easily missed."""
_N_FOLDS = 3
_LENGTH = 3.0
"""Root mean square length of the rows that a model learns from: with the prior on coefficients, how smooth it is."""
_KERNEL_SPACES = 2
_BY_CHANCE = 0.1
"""The share that seems to lie within bags where nothing does: best instances differ from the mean by chance."""


class Draft(NamedTuple):
    """A scorer before it is known what it is worth: coefficients of every inner fold, those of all bags last."""

    space: int
    kernel: str
    gamma: float
    coefficients: Floats  # (n_columns, n_folds + 1, n_problems)
    intercepts: Floats  # (n_folds + 1, n_problems)

    @property
    def n_folds(self) -> int:
        """The number of inner folds."""
        return len(self.intercepts) - 1

    def scores(self, scaled: Instances, landmarks: Floats, backend: Backend) -> Floats:
        """Return log-odds by every fold, (n_instances, n_folds + 1, n_problems)."""
        return self.scores_of(columns_of(scaled, self.kernel, self.gamma, landmarks, backend))

    def scores_of(self, columns: Any) -> Floats:
        """Return the same from the columns of instances."""
        return affine(columns, self.coefficients, self.intercepts)

    def pooled(self, largest: Floats, total: Floats, sizes: Integers, fold_of: Integers) -> Pooled:
        """Take, of tables with a column a fold, the column that belongs to every bag."""
        rows = np.arange(len(sizes))
        return Pooled(largest[rows, fold_of], total[rows, fold_of] / sizes[:, None])


class Drafts(NamedTuple):
    """Scorers, and the fold of each that did not learn from a bag; for bags that no fold leaves out the last."""

    scorers: list[Any]  # `Draft`, or what stands in for it
    fold_of: Integers  # (n_bags,)
    tables: list[tuple[Floats, Floats]] | None  # what `largest_and_total` returns, where no bag was thinned

    @property
    def n_folds(self) -> int:
        """The number of inner folds."""
        return int(self.scorers[0].n_folds)


class Pooled(NamedTuple):
    """The largest and the mean log-odds of bags by one scorer that did not learn from them."""

    largest: Floats  # (n_bags, n_problems)
    mean: Floats  # (n_bags, n_problems)

    def units(self) -> tuple[Floats, Floats]:
        """Return center and spread of the largest log-odds."""
        spread = self.largest.std(axis=0)
        return self.largest.mean(axis=0), np.where(spread > 0, spread, 1.0)


class InstanceModels(Protocol):
    """Models of single instances: how they are drafted, and how they join the views of bags."""

    def draft(self, taken: InSpaces, learning: Learning, generator: np.random.Generator) -> Drafts | None:
        """Fit scorers to all bags and to all but each inner fold; None where no fold can be left out."""

    def weigh(
        self, drafts: Drafts, pooled: list[Any], learning: Learning, left_out: LeftOut, known: Booleans
    ) -> tuple[Any, LeftOut]:
        """Return what joins the views, and what both together predict of bags that were left out."""


class WitnessModels(InstanceModels):
    """Logistic regressions of instances under noisy-or, for classes."""

    def draft(self, taken: InSpaces, learning: Learning, generator: np.random.Generator) -> Drafts | None:
        """Fit scorers to all bags and to all but each inner fold; None where no fold can be left out."""
        large = taken.bags.offsets[-1] >= LARGE_BAGS * len(taken.bags)
        return draft_scorers(taken, learning, generator, functools.partial(_draft, several_starts=large))

    def weigh(
        self, drafts: Drafts, pooled: list[Any], learning: Learning, left_out: LeftOut, known: Booleans
    ) -> tuple[WitnessModel, LeftOut]:
        """Return the witness model, and log-odds of every bag, left out, with it."""
        return weigh_witnesses(drafts, pooled, learning, left_out, known)


def draft_scorers(
    taken: InSpaces, learning: Learning, generator: np.random.Generator, draft_one: Callable[..., tuple[Any, Any]]
) -> Drafts | None:
    """Fit scorers to all bags and to all but each inner fold; None where no fold can be left out.

    ``draft_one`` fits one of them, and returns it with the columns of instances, as `_draft` does.
    """
    tests = inner_folds(label_patterns(learning.positive, _N_FOLDS), _N_FOLDS, generator, learning.groups)
    if not tests:
        return None
    bags, spaces = taken.bags, taken.spaces
    rows, offsets = _thinned(bags.offsets, generator)
    inside = [*(~test for test in tests), np.ones(len(bags), dtype=bool)]
    kinds = list(_kinds(spaces))
    scaled = _in_few_spaces(taken, rows, {number for number, _ in kinds})
    # One scorer a thread, as for views; a GPU works on one after the other.
    n_threads = 1 if is_tensor(bags.instances) else learning.backend.n_threads
    one_thread = learning if n_threads == 1 else learning._replace(backend=resolve(learning.backend.name, 1))

    def draft(kind: tuple[int, str]) -> tuple[Any, Any]:
        number, kernel = kind
        found, columns = draft_one(scaled[number], offsets, number, kernel, spaces[number], inside, one_thread)
        return found, largest_and_total(found.scores_of(columns), offsets) if rows is None else None

    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:  # results do not depend on the number of threads
        found = list(map(draft, kinds) if n_threads == 1 else pool.map(draft, kinds))
    drafts, tables = [own for own, _ in found], [table for _, table in found]
    fold_of = np.full(len(bags), len(tests))
    for number, test in enumerate(tests):
        fold_of[test] = number
    return Drafts(drafts, fold_of, tables if rows is None else None)


def _in_few_spaces(taken: InSpaces, rows: Integers | None, numbers: Iterable[int]) -> dict[int, Instances]:
    """Return some of the instances, or all, in every space that is asked for."""
    if rows is None:
        return {number: taken[number] for number in numbers}
    instances = take_rows(taken.bags.instances, rows)
    return {number: taken.spaces[number].apply(instances, taken.backend) for number in numbers}


def pool_in_memory(drafts: Drafts, spaces: list[CentersInSpace], bags: Bags, backend: Backend) -> list[Pooled]:
    """Return what scorers that did not learn from a bag tell about it."""
    tables: Any = drafts.tables
    if tables is None:
        parts = [
            [_pooled_tables(scorer, spaces[scorer.space], block, backend) for scorer in drafts.scorers]
            for block in ([bags] if is_tensor(bags.instances) else blocks_of(bags))
        ]
        tables = [[_joined(pieces) for pieces in zip(*own, strict=True)] for own in zip(*parts, strict=True)]
    return [
        scorer.pooled(as_array(largest), as_array(total), bags.sizes, drafts.fold_of)
        for scorer, (largest, total) in zip(drafts.scorers, tables, strict=True)
    ]


def _pooled_tables(scorer: Any, space: CentersInSpace, bags: Bags, backend: Backend) -> tuple[Floats, Floats]:
    scores = scorer.scores(space.apply(bags.instances, backend), landmarks_of(space), backend)
    return largest_and_total(scores, bags.offsets)


def _joined(pieces: Sequence[Floats]) -> Floats:
    return np.concatenate([as_array(piece) for piece in pieces])


def largest_and_total(scores: Any, offsets: Integers) -> tuple[Floats, Floats]:
    """Return the largest and the sum of the log-odds of every bag, by a scorer or by every fold of a draft."""
    if is_tensor(scores):
        from gmil.engine.torch.kernels import segments

        bags, flat = segments(offsets, scores.device), scores.flatten(1)
        return tuple(found.unflatten(1, scores.shape[1:]) for found in (bags.max(flat), bags.sum(flat)))
    return np.maximum.reduceat(scores, offsets[:-1], axis=0), np.add.reduceat(scores, offsets[:-1], axis=0)


def weigh_witnesses(
    drafts: Drafts, pooled: list[Pooled], learning: Learning, left_out: LeftOut, known: Booleans
) -> tuple[WitnessModel, LeftOut]:
    """Weigh scorers by what they tell about bags that were left out.

    Parameters
    ----------
    drafts : Drafts
    pooled : list of Pooled
    learning : Learning
        Of the same bags.
    left_out : LeftOut
        Log-odds of every bag by the views without it.
    known : array of shape (n_bags,)
        The bags that count.

    Returns
    -------
    WitnessModel, and log-odds of every bag, left out, with the scorers
    """
    units = [table.units() for table in pooled]
    found = [
        _mix([(table.largest[known, problem], table.mean[known, problem]) for table in pooled], positive)
        for problem, positive in enumerate(learning.positive[known].T)
    ]
    mixtures, within = np.stack([mixture for mixture, _ in found], axis=1), np.array([share for _, share in found])

    def weights_of(columns: Floats, problem: int, rows: Booleans) -> Floats:
        return _stack(columns[rows], learning.positive[rows, problem], learning.weights[rows])

    values = [(table.largest - center) / spread for table, (center, spread) in zip(pooled, units, strict=True)]
    joined = join_views(left_out, values, learning, known, weights_of)
    scorers = [
        Scorer(draft.space, draft.kernel, draft.gamma, draft.coefficients[:, -1], draft.intercepts[-1], *unit, *worth)
        for draft, unit, *worth in zip(drafts.scorers, units, mixtures, joined.stacking, strict=True)
    ]
    return WitnessModel(scorers, joined.base, joined.shifts, within), joined.left_out


# -------------------------------------------------------------------------------- fitting


def _draft(
    scaled: Instances,
    offsets: Integers,
    number: int,
    kernel: str,
    space: CentersInSpace,
    inside: list[Booleans],
    learning: Learning,
    *,
    several_starts: bool,
) -> tuple[Draft, Any]:
    """Fit one scorer to the bags inside, for each of several choices; return it with the columns of instances."""
    designed = design(scaled, kernel, space, learning.backend)
    given = designed.features, offsets, inside, learning.positive, learning.weights
    fits = fit_noisy_or(*given, several_starts=several_starts)
    coefficients = np.stack([designed.in_columns(own) for own, _ in fits], axis=1)
    intercepts = np.stack([constant for _, constant in fits])
    return Draft(number, kernel, designed.gamma, coefficients, intercepts), designed.columns


class Design(NamedTuple):
    """What a model of instances learns from, and the way back to what instances are asked by."""

    kernel: str
    gamma: float
    columns: Any  # (n_instances, n_columns), see `columns_of`
    basis: Any  # a matrix, or a factor
    features: Any  # (n_instances, n_features): columns times basis

    def in_columns(self, coefficients: Floats) -> Floats:
        """Return coefficients of columns from those of features."""
        return np.asarray(self.basis * coefficients if self.kernel == "linear" else self.basis @ coefficients)


def design(scaled: Instances, kernel: str, space: CentersInSpace, backend: Backend) -> Design:
    """Return rows of instances whose length makes one prior on coefficients right for all kernels."""
    landmarks = landmarks_of(space)
    gamma = _gamma(landmarks, backend)
    columns = columns_of(scaled, kernel, gamma, landmarks, backend)
    basis = _basis(columns, landmarks, kernel, gamma, backend)
    # In single precision: twice as fast, and far more exact than what is known of a bag.
    single = beside(np.float32(basis), columns)
    features = columns * single if kernel == "linear" else columns @ single
    return Design(kernel, gamma, columns, basis, features)


def _kinds(spaces: Sequence[CentersInSpace]) -> Iterator[tuple[int, str]]:
    """Yield the spaces and kernels of the scorers: linear in the first, Gaussian there and where ranks are taken."""
    yield 0, "linear"
    ranked = [number for number, space in enumerate(spaces) if space.name == "rank"]
    others = [number for number in range(1, len(spaces)) if number not in ranked]
    for number in [0, *ranked, *others][:_KERNEL_SPACES]:
        yield number, "gaussian"


def _thinned(offsets: Integers, generator: np.random.Generator) -> tuple[Integers | None, Integers]:
    """Return rows of a bounded number of instances, so many of every large bag, and their offsets; None means all."""
    sizes = np.diff(offsets)
    if offsets[-1] <= _MOST_INSTANCES:
        return None, offsets
    most = max(10, _MOST_INSTANCES // len(sizes))
    rows = [
        start + np.sort(generator.choice(size, min(size, most), replace=False, shuffle=False))
        for start, size in zip(offsets[:-1], sizes, strict=True)
    ]
    return np.concatenate(rows), np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])


def _gamma(landmarks: Floats, backend: Backend) -> float:
    squares = backend.sq_distances(landmarks, landmarks)[np.triu_indices(len(landmarks), k=1)]
    width = float(np.median(squares)) if squares.size else 0.0
    return 1 / width if width > 0 else 1.0


def _basis(columns: Any, landmarks: Floats, kernel: str, gamma: float, backend: Backend) -> Any:
    """Return what takes columns to features: a matrix that whitens similarities (Nystroem), or a factor."""
    if kernel == "linear":
        mean_square = _sum_of_squares(columns) / max(columns.shape[0], 1)
        return _LENGTH / np.sqrt(mean_square) if mean_square > 0 else 1.0
    values, vectors = eigh(columns_of(landmarks, kernel, gamma, landmarks, backend).astype(np.float64))
    kept = values > 1e-3 * values[-1]
    return np.asarray(_LENGTH * vectors[:, kept] / np.sqrt(values[kept]))


def _sum_of_squares(columns: Any) -> float:
    if is_tensor(columns):
        return float(columns.square().sum(dtype=namespace(columns).float64))
    squares = columns.multiply(columns) if sp.issparse(columns) else np.square(columns, dtype=np.float64)
    return float(squares.sum())


# -------------------------------------------------------------------------------- weighing


def _mix(pooled: list[tuple[Floats, Floats]], positive: Booleans) -> tuple[Floats, float]:
    """Return the weight of every scorer, and how much of what they know lies within bags, from 0 to 1.

    A bag is told by its mean, or by how far its best instance is above it. A scorer whose best instances stand out in
    positive bags tells instances apart; one that knows the mean alone tells bags apart.
    """
    apart = np.array([_skill(largest - mean, positive) for largest, mean in pooled])
    level = np.array([_skill(mean, positive) for _, mean in pooled])
    mixture = apart**2 + 0.05
    mixture /= mixture.sum()
    within = float(mixture @ np.minimum((apart / np.maximum(level, 1e-3)) ** 4, 1))
    return mixture, max(0.0, within - _BY_CHANCE) / (1 - _BY_CHANCE)


def _skill(values: Floats, positive: Booleans) -> float:
    """Return the Gini coefficient of values, none below 0."""
    area = auc(positive, values)
    return max(2 * area - 1, 0.0) if np.isfinite(area) else 0.0


def _stack(columns: Floats, positive: Booleans, weights: Floats) -> Floats:
    """Return a weight for every column, none negative, and the intercept, of a logistic regression.

    The first column are the views. The others join them only where the log-likelihood rises by more than one for
    each, which is Akaike's criterion; else the views stay as they are.
    """
    prior = np.eye(columns.shape[1])[0]
    as_they_are = np.append(prior, 0.0)
    if positive.all() or not positive.any():
        return as_they_are
    counts = weights / weights.mean()
    together, loss = logistic_weights(columns, positive, counts, prior)
    _, alone = logistic_weights(columns[:, :1], positive, counts, prior[:1])
    return together if alone - loss > columns.shape[1] - 1 else as_they_are
