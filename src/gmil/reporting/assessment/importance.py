"""Which features matter: by how much a measure falls where bags exchange the values of features with other bags.

It is scikit-learn's permutation importance with the bag as the unit, because labels belong to bags: every bag takes the
values of a group of features from the instances of another bag, drawn at random, and keeps its other features. So
what a bag has of these features is still what some bag has, and only tells nothing about its label any more. Features
that correlate are exchanged together: alone, one would be replaced by the others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import complete, fcluster
from scipy.spatial.distance import squareform
from scipy.stats import rankdata, t

from gmil.engine.reference import dense_rows
from gmil.model_selection.metrics import auc
from gmil.model_selection.scoring import outputs_of
from gmil.pipeline import kept_instances
from gmil.reporting.assessment.content import FeatureGroup, Importance
from gmil.reporting.assessment.held_out import HeldOut
from gmil.transform.impute import with_some_instances

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Instances, Integers

REPEATS, FEWEST_REPEATS = 10, 3
SECONDS = 20.0
"""So long it may take where nobody asked for it."""
MANY_GROUPS, FEW_GROUPS, MOST_FEATURES = 60, 20, 3000
"""At most so many groups there are; at most the smaller number where more would take too long."""
_CORRELATED = 0.7
_SAMPLE = 2000


class Unseen(NamedTuple):
    """A fitted model, and bags that it never saw with their labels."""

    model: Any
    bags: Bags
    y: NDArray[Any]

    def without_dropped(self) -> Unseen:
        """Return the same without instances that the model drops: no exchange may take the last one of a bag."""
        return self._replace(bags=with_some_instances(self.bags, kept_instances(self.model, self.bags)))


def feature_importance(
    tested: Sequence[Unseen],
    bags: Bags,
    repeats: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Importance | None, str]:
    """Return by how much AUC (or, without one, accuracy) falls without groups of features, or why nobody knows.

    Parameters
    ----------
    tested : sequence of Unseen
        One model, or that of every fold; bags exchange values with bags of the same fold.
    bags : Bags
        All of them: correlations are those of their instances.
    repeats : int, optional
        How often values are exchanged; by default ten times, or as often as twenty seconds allow.
    progress : callable, optional
        Called with the number of steps done and of all steps.
    """
    if repeats == 0:
        return None, ""
    if all(len(part.bags) < 2 for part in tested):
        return None, "Which features matter was not measured: one bag has none to exchange with."
    if bags.n_features > MOST_FEATURES:
        return None, f"Which features matter was not measured: there are more than {MOST_FEATURES} of them."
    tested = [part.without_dropped() for part in tested]
    start = time.perf_counter()
    measure, base = _base(tested)
    seconds = time.perf_counter() - start
    groups = group_features(bags.instances, MANY_GROUPS)
    if repeats is None:
        if _affordable(seconds, groups.n_groups) < FEWEST_REPEATS:
            groups = group_features(bags.instances, FEW_GROUPS)
        repeats = _affordable(seconds, groups.n_groups)
        if repeats < FEWEST_REPEATS:
            needed = FEWEST_REPEATS * groups.n_groups * seconds
            return None, (
                f"Which features matter was not measured: it would take about {needed:.0f} s. "
                f"Ask for it with importance={REPEATS} (--importance {REPEATS})."
            )
    falls = _falls(tested, measure, base, groups, repeats, progress)
    return Importance(measure, base, repeats, groups.correlation, _sorted(falls, groups.numbers, bags)), ""


def _affordable(seconds: float, n_groups: int) -> int:
    """Return how often values can be exchanged in the time there is, where one measure takes ``seconds``."""
    return int(min(REPEATS, SECONDS // max(seconds * n_groups, 1e-9)))


def _falls(
    tested: Sequence[Unseen],
    measure: str,
    base: float,
    groups: Groups,
    repeats: int,
    progress: Callable[[int, int], None] | None,
) -> Floats:
    """Return by how much the measure falls without every group in every repeat, (n_groups, repeats)."""
    falls = np.empty((groups.n_groups, repeats))
    for repeat in range(repeats):
        generator = np.random.default_rng(repeat)
        rows = [exchanged_rows(part.bags, generator) for part in tested]
        for group in range(groups.n_groups):
            mask = groups.numbers == group
            falls[group, repeat] = base - _mean(measure, tested, [(own, mask) for own in rows])
            if progress is not None:
                progress(repeat * groups.n_groups + group + 1, falls.size)
    return falls


def _sorted(falls: Floats, numbers: Integers, bags: Bags) -> list[FeatureGroup]:
    names = bags.feature_names or [f"feature {i}" for i in range(bags.n_features)]
    means, half = falls.mean(axis=1), _half_interval(falls)
    return [
        FeatureGroup(
            [names[i] for i in np.flatnonzero(numbers == group)],
            float(means[group]),
            float(means[group] - half[group]),
            float(means[group] + half[group]),
        )
        for group in np.argsort(-means, kind="stable").tolist()
    ]


def _half_interval(falls: Floats) -> Floats:
    """Return half the 95 % interval of the mean over repeats (Student's t), (n_groups,); 0 for one repeat."""
    n = falls.shape[1]
    return t.ppf(0.975, n - 1) * falls.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(falls))


class Groups(NamedTuple):
    """Features that correlate."""

    numbers: Integers  # (n_features,), the group of every feature, from 0
    correlation: float | None  # the least rank correlation, its size, within a group; None where none has two features

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return int(self.numbers.max()) + 1


def group_features(instances: Instances, most: int = MANY_GROUPS) -> Groups:
    """Return features in groups by complete linkage.

    All features of a group correlate by at least 0.7, or by less where there would be more than ``most`` groups.
    """
    n_features = instances.shape[1]
    if n_features == 1:
        return Groups(np.zeros(1, dtype=np.int64), None)
    sizes = _rank_correlations(instances)
    tree = complete(squareform(1 - sizes, checks=False))
    numbers = fcluster(tree, 1 - _CORRELATED, criterion="distance")
    if numbers.max() > most:
        numbers = fcluster(tree, most, criterion="maxclust")
    together = (numbers[:, None] == numbers) & ~np.eye(n_features, dtype=bool)
    return Groups(numbers.astype(np.int64) - 1, float(sizes[together].min()) if together.any() else None)


def _rank_correlations(instances: Instances) -> Floats:
    """Return the sizes of Spearman's correlations of a sample of instances; constant features have none."""
    rows = np.sort(np.random.default_rng(0).permutation(instances.shape[0])[:_SAMPLE])
    ranks = rankdata(np.nan_to_num(dense_rows(instances, rows)), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = np.nan_to_num(np.abs(np.corrcoef(ranks, rowvar=False)))
    np.fill_diagonal(sizes, 1.0)
    return np.clip(sizes, 0, 1)


def exchanged_rows(bags: Bags, generator: np.random.Generator) -> Integers:
    """Return from which row every instance takes values: of one other bag for all instances of a bag.

    A larger bag takes some rows twice, a smaller one leaves some out.
    """
    donors = generator.permutation(len(bags)).tolist()
    sizes, starts = bags.sizes.tolist(), bags.offsets[:-1].tolist()
    return np.concatenate(
        [
            starts[donor] + np.resize(generator.permutation(sizes[donor]), size)
            for donor, size in zip(donors, sizes, strict=True)
        ]
    )


def with_exchanged(bags: Bags, rows: Integers, features: NDArray[np.bool_]) -> Bags:
    """Return bags whose instances take some features from other rows."""
    instances: Any = bags.instances
    if sp.issparse(instances):
        mixed = instances.multiply(~features) + instances[rows].multiply(features)
        return bags.with_instances(sp.csr_array(mixed), bags.feature_names)
    return bags.with_instances(np.where(features, instances[rows], instances), bags.feature_names)


def _base(tested: Sequence[Unseen]) -> tuple[str, float]:
    """Return the measure that can be taken, and its value with all features."""
    area = _mean("AUC", tested, None)
    return ("accuracy", _mean("accuracy", tested, None)) if np.isnan(area) else ("AUC", area)


def _mean(
    measure: str, tested: Sequence[Unseen], exchanged: Sequence[tuple[Integers, NDArray[np.bool_]]] | None
) -> float:
    """Return the mean of a measure over those models that have it."""
    values = []
    for i, part in enumerate(tested):
        bags = part.bags if exchanged is None else with_exchanged(part.bags, *exchanged[i])
        outputs = outputs_of(part.model, bags, probabilities=False)
        values.append(_measured(measure, HeldOut.of_outputs(outputs, part.y)))
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _measured(measure: str, held: HeldOut) -> float:
    if measure == "accuracy":
        return float((held.predicted[0] == held.truth).mean() if held.several else 1 - held.wrong[0].mean())
    areas = [auc(*test) for column in held.shown_classes for test in held.tests(column)]
    return float(np.mean(areas)) if areas else float("nan")
