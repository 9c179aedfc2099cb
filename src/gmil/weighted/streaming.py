"""WeightedGMIL on bags that are read in blocks.

Scalings, centres and views are chosen on a sample of thinned bags; one pass then makes the vectors of whole bags in the
chosen views, for all fits at once; on these the views are fitted and weighed again.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gmil.bags import Bags
from gmil.engine import one_blas_thread, resolve
from gmil.engine.resident import device_of, is_tensor, resident, take_rows
from gmil.sampling import make_generator
from gmil.scale import LazyBags
from gmil.scale.resident import TensorBags
from gmil.weighted.block_vectors import Wanted, vectors_of
from gmil.weighted.centers import choose_centers
from gmil.weighted.familiar import familiar_distances
from gmil.weighted.fitting import (
    FittedViews,
    Fitting,
    Learning,
    finish_views,
    fit_views,
    sample_of_bags,
    weigh_views,
)
from gmil.weighted.samples import draw_samples
from gmil.weighted.views import SCALES, InSpaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.fold_work import Fold, FoldWork, Receiver
    from gmil.weighted.model import View
    from gmil.weighted.samples import Sample
    from gmil.weighted.views import CentersInSpace
    from gmil.weighted.witness_fitting import Drafts

SAMPLE_SIZE = 20_000
"""Instances on which choices are made, unless ``sample_size`` is given."""
MOST_IN_MEMORY = 200_000
"""Instances in memory on which choices are made, unless there are more or ``sample_size`` is given."""
MOST_BAGS = 30_000
"""Bags that a fit learns from: a few hundred points of comparison hold no more than these tell."""
_BAGS_TO_CHOOSE_ON = 500
_SHARE_OF_WEIGHT = 0.8
"""The share of all weight that the views must have which are fitted to whole bags."""


def most_instances(sample_size: int | str, bags: Bags | LazyBags, *, in_memory: bool) -> float:
    """Return how many instances a fit chooses on as they are; with more, it chooses on a sample of as many."""
    if not isinstance(sample_size, str):
        return int(sample_size)
    return np.inf if in_memory and bags.n_instances <= MOST_IN_MEMORY else SAMPLE_SIZE


def as_lazy(bags: Bags, backend: Backend) -> LazyBags:
    """Return bags in memory as bags that are read in blocks, on the device of a backend that has one."""
    return LazyBags.like(bags, resident(bags.instances, backend))


class Plan(NamedTuple):
    """One fit: a model with its parameters, the bags it learns from, and what it learns of them."""

    model: Any
    training: Booleans  # (n_bags,)
    learning: Learning  # of the training bags
    generator: np.random.Generator
    most: float  # choices are made on a sample where there are more instances
    pool: int = 0  # plans of one pool draw their samples together


class Choice(NamedTuple):
    """What was chosen on a sample: scalings with centres, and views with their weights."""

    spaces: list[CentersInSpace]
    fitting: Fitting
    views: list[View]  # those that are worth fitting to whole bags
    drafts: Drafts | None  # scorers of instances, to be weighed by whole bags
    is_final: bool  # the sample was all there is

    @property
    def scorers(self) -> Sequence[Any]:
        """Scorers of instances that a pass over whole bags is to pool."""
        if self.is_final:
            return self.fitting.witnesses.scorers if self.fitting.witnesses else ()
        return self.drafts.scorers if self.drafts else ()

    @property
    def wanted(self) -> Wanted:
        """What a pass over whole bags has to find."""
        return Wanted(self.spaces, [(view.space, view.kind) for view in self.views], self.scorers)


class Outcome(NamedTuple):
    """A fitted model, and its decisions about all bags, training and test."""

    fitting: Fitting
    decisions: Floats  # (n_bags, n_problems)


def fit_lazily(plan: Plan, bags: LazyBags) -> Fitting:
    """Fit one model; bags are read twice, or once where there are few enough instances."""
    backend = plan.learning.backend
    (choice,) = _choose([plan], bags, backend)
    if choice.is_final:
        return choice.fitting
    (vectors,) = vectors_of(bags, [choice.wanted], backend)
    return _fit_on_whole_bags(plan, choice, vectors, bags.sizes)


def fit_and_decide(plans: Sequence[Plan], bags: LazyBags) -> list[Outcome]:
    """Fit all plans, and decide about all bags; bags are read twice, however many plans there are."""
    backend = plans[0].learning.backend
    choices = _choose(plans, bags, backend)
    vectors = vectors_of(bags, [choice.wanted for choice in choices], backend)
    return [
        _finish(plan, choice, own, bags.sizes, backend)
        for plan, choice, own in zip(plans, choices, vectors, strict=True)
    ]


def decide_lazily(fitted: FittedViews, bags: LazyBags, backend: Backend) -> Floats:
    """Return log-odds of bags that are read in blocks, (n_bags, n_problems)."""
    model = fitted.witnesses
    scorers = model.scorers if model is not None and model.decides else ()
    wanted = Wanted(fitted.spaces, [(view.space, view.kind) for view in fitted.views], scorers)
    (vectors,) = vectors_of(bags, [wanted], backend)
    return _decisions(fitted, vectors, len(bags), backend)


def _decisions(fitted: FittedViews, vectors: Mapping[tuple[int, str], Floats], n_bags: int, backend: Backend) -> Floats:
    """Return log-odds from the vectors of bags in every view, and from what scorers of instances found."""
    there = {key: resident(vectors[key], backend) for key in {(view.space, view.kind) for view in fitted.views}}
    decisions = fitted.decide_by(lambda view: there[view.space, view.kind], n_bags, backend)
    model = fitted.witnesses
    if model is None:
        return decisions
    if not model.decides:
        return model.stacked(decisions, model.nothing(n_bags))
    return model.stacked(decisions, model.pooled_of(vectors))


# -------------------------------------------------------------------------------- choosing on a sample


def _choose(plans: Sequence[Plan], bags: LazyBags, backend: Backend) -> list[Choice]:
    """Read the samples of all plans in one go, and choose on each."""
    samples = draw_samples(plans, bags)
    wanted = np.unique(np.concatenate([sample.rows for sample in samples]))
    instances = _read(bags, wanted, backend)

    def choose(number: int) -> Choice:
        own = samples[number]
        rows = instances if len(own.rows) == len(wanted) else take_rows(instances, np.searchsorted(wanted, own.rows))
        sample: Any = TensorBags(rows, own.offsets) if is_tensor(rows) else Bags(rows, own.offsets)
        return _choose_on(plans[number], own, sample, one_thread)

    # Choosing on one sample is too little work for all threads.
    one_thread = backend if len(plans) == 1 else resolve(backend.name, 1)
    with one_blas_thread(), ThreadPoolExecutor(1 if len(plans) == 1 else backend.n_threads) as pool:
        return list(pool.map(choose, range(len(plans))))


def _read(bags: LazyBags, rows: Integers, backend: Backend) -> Any:
    """Read instances to where the backend works; from its own device nothing is read."""
    X = bags.tensor_on(device_of(backend))
    return resident(bags.take(rows), backend) if X is None else take_rows(X, bags.rows_of_source(rows))


def _choose_on(plan: Plan, drawn: Sample, sample: Bags, backend: Backend) -> Choice:
    model, chosen, is_final = plan.model, drawn.chosen, drawn.chosen is None
    learning = plan.learning.some(chosen)._replace(backend=backend)
    # In memory ranks are worth their time; whole bags on disk would have to be ranked number by number.
    automatic = SCALES if is_final else tuple(scale for scale in SCALES if scale != "rank")
    spaces = choose_centers(
        sample,
        model._check_scales(sparse=False, automatic=automatic),
        model.n_centers,
        model.centers,
        learning.positive,
        backend=backend,
        generator=plan.generator,
        order=drawn.order,
    )
    taken = InSpaces(spaces, sample, backend)
    views, own = tuple(model.views), {"max_bags": model.max_bags, "generator": plan.generator}
    if not is_final:
        # Weights are found again on whole bags: which views have any is known from fewer.
        few = sample_of_bags(learning.positive, _BAGS_TO_CHOOSE_ON, plan.generator)
        found = fit_views(taken if few is None else taken.some(few), views, learning.some(few), **own)
        models = model._instance_models()
        drafts = None if models is None else models.draft(taken, learning, plan.generator)
        return Choice(spaces, found, _worth_fitting(found), _of_all(drafts, chosen, plan), is_final)
    found = fit_views(taken, views, learning, **own)
    models = model._instance_models()
    found = found if models is None else found.with_witnesses(taken, learning, models, plan.generator)
    return Choice(spaces, found, found.views, None, is_final)


def _of_all(drafts: Drafts | None, chosen: Integers | None, plan: Plan) -> Drafts | None:
    """Return drafts with the fold of every training bag: scorers have not seen any bag outside the sample."""
    if drafts is None:
        return None
    fold_of = np.full(len(plan.learning.positive), drafts.n_folds)
    fold_of[slice(None) if chosen is None else chosen] = drafts.fold_of
    return drafts._replace(fold_of=fold_of, tables=None)


def _worth_fitting(found: Fitting) -> list[View]:
    """Return the views with weight, under the scalings and kinds that together have most of it.

    A scaling and a kind are what a pass over whole bags costs; a second kernel on them costs nothing.
    """
    weight_of: dict[tuple[int, str], float] = defaultdict(float)
    weights = [float(np.sum(entry["weights"])) for entry in found.summary if np.any(entry["weights"])]
    for view, weight in zip(found.views, weights, strict=True):
        weight_of[view.space, view.kind] += weight
    order = sorted(weight_of, key=lambda pair: -weight_of[pair])
    shares = np.cumsum([weight_of[pair] for pair in order]) / sum(weights)
    kept = set(order[: int(np.searchsorted(shares, _SHARE_OF_WEIGHT)) + 1])
    return [view for view in found.views if (view.space, view.kind) in kept]


# -------------------------------------------------------------------------------- fitting to whole bags


def _finish(
    plan: Plan, choice: Choice, vectors: Mapping[tuple[int, str], Floats], sizes: Integers, backend: Backend
) -> Outcome:
    found = choice.fitting if choice.is_final else _fit_on_whole_bags(plan, choice, vectors, sizes)
    fitted = FittedViews(found.spaces, found.views, found.intercepts, found.witnesses)
    return Outcome(found, _decisions(fitted, vectors, len(plan.training), backend))


def _fit_on_whole_bags(
    plan: Plan, choice: Choice, vectors: Mapping[tuple[int, str], Floats], sizes: Integers
) -> Fitting:
    inside = {key: table[plan.training] for key, table in vectors.items()}
    rows = sample_of_bags(plan.learning.positive, plan.model.max_bags, plan.generator)
    part: Any = slice(None) if rows is None else rows
    views = [(view.space, view.kind, inside[view.space, view.kind][part], view.kernel) for view in choice.views]
    weighed = weigh_views(views, plan.learning.some(rows))
    found = finish_views(weighed, lambda view: inside[view.space, view.kind], rows, plan.learning, plan.generator)
    left_out = weighed.left_out.among(rows, len(plan.learning.positive))
    fitting = Fitting(choice.spaces, *found, weighed.summary(choice.spaces), left_out, _familiar(choice, inside))
    return fitting if choice.drafts is None else _with_witnesses(fitting, choice.drafts, inside, sizes, plan)


def _with_witnesses(
    fitting: Fitting, drafts: Drafts, vectors: Mapping[tuple[int, str], Floats], sizes: Integers, plan: Plan
) -> Fitting:
    """Weigh scorers by whole bags that they did not learn from."""
    own = sizes[plan.training]
    pooled = [
        scorer.pooled(vectors[number, "largest"], vectors[number, "total"], own, drafts.fold_of)
        for number, scorer in enumerate(drafts.scorers)
    ]
    models = plan.model._instance_models()
    witnesses, left_out = models.weigh(drafts, pooled, plan.learning, fitting.left_out, fitting.left_out.known)
    return fitting._replace(witnesses=witnesses, left_out=left_out)


def _familiar(choice: Choice, vectors: Mapping[tuple[int, str], Floats]) -> Floats:
    """Return distances that are familiar, from whole bags where those were measured under the first scaling."""
    return familiar_distances(vectors[0, "nearest"]) if (0, "nearest") in vectors else choice.fitting.familiar_distances


# -------------------------------------------------------------------------------- cross-validation


def decide_folds(estimator: Any, work: FoldWork, receive: Receiver) -> None:
    """Work on all folds and settings, and hand over decisions.

    Bags of one of the groups are left out together wherever something is chosen.
    """
    bags = work.bags if isinstance(work.bags, LazyBags) else as_lazy(work.bags, resolve(estimator.backend))
    pools = _repeats(work.folds)
    plans = [
        _plan(estimator, setting, fold, work, bags)._replace(pool=pool)
        for setting in work.settings
        for fold, pool in zip(work.folds, pools, strict=True)
    ]
    outcomes = fit_and_decide(plans, bags)
    n_folds = len(work.folds)
    for number in range(len(work.settings)):
        own = outcomes[number * n_folds : (number + 1) * n_folds]
        receive(number, list(range(n_folds)), np.stack([outcome.decisions.T for outcome in own]))
    work.report(len(plans))


def _plan(estimator: Any, setting: Mapping[str, Any], fold: Fold, work: FoldWork, bags: LazyBags) -> Plan:
    """Return the fit of one fold; ``bags`` are those of the work, or the same where those are in memory."""
    model = clone(estimator).set_params(**setting)
    model.set_params(n_jobs=model.n_jobs if work.n_jobs is None else work.n_jobs)
    model._validate_params()
    groups = None if work.groups is None else work.groups[fold.training]
    if groups is not None and len(np.unique(groups)) < 2:
        groups = None  # a single group has nothing to be kept apart from
    own = bags[fold.training]
    learning = model._learning(own, work.y[fold.training], groups)
    most = most_instances(model.sample_size, own, in_memory=bags is not work.bags)
    generator, training = make_generator(fold.seed), fold.training
    rows = sample_of_bags(learning.positive, MOST_BAGS, generator)
    if rows is not None:
        training = np.zeros_like(training)
        training[np.flatnonzero(fold.training)[rows]] = True
    return Plan(model, training, learning.some(rows), generator, most)


def _repeats(folds: Sequence[Fold]) -> list[int]:
    """Return the number of the repeat of every fold: the next one begins with a bag that was tested before."""
    numbers: list[int] = []
    number, tested = 0, np.zeros_like(folds[0].training)
    for fold in folds:
        if (tested & ~fold.training).any():
            number, tested = number + 1, np.zeros_like(tested)
        tested = tested | ~fold.training
        numbers.append(number)
    return numbers
