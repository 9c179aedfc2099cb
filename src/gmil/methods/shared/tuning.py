"""Tuning: settings are compared by accuracy on inner folds of the training bags, which keep groups together."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from gmil.model_selection.folds import inner_folds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.base import Training
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

Setting = TypeVar("Setting")
Round = Callable[[Setting], Iterable[Setting]]
"""Takes the best setting so far, and returns settings to compare with it."""

WIDTHS = (1.0, 0.3, 3.0)
"""Times the gamma that a method would take untuned, which comes first: of equally accurate settings the first wins."""

COSTS = (10.0, 1.0, 100.0)
"""Values of C."""

KERNELS = ("rbf", "linear")

N_FOLDS = 5

CLEAR = 1.0
"""A gain of more standard errors than this is clear."""

_ROUNDING = 1e-12
"""One bag more is a gain of exactly one standard error, which is not clear."""

MOST_INSTANCES = 2000
"""Of more instances, so many stand for all while settings are compared, which costs the square of their number."""


@dataclass(frozen=True)
class KernelSetting:
    """A width and a cost."""

    gamma: float
    C: float


@dataclass(frozen=True)
class MachineSetting(KernelSetting):
    """A width, a cost, a kernel, and whether all negative instances cost together what all positive bags cost."""

    kernel: str = "rbf"
    balance: bool = True


@dataclass(frozen=True)
class OnlyIfClear(Generic[Setting]):
    """A round in which the best setting so far stays, unless another is better by more than one standard error.

    The first setting of the first round stands for the best so far. On a hundred bags the difference of two settings is
    uncertain by several points, and the best of many by chance is often a worse one.
    """

    settings_after: Round[Setting]

    def __call__(self, best: Setting) -> Iterable[Setting]:
        """Return settings to compare with the best so far."""
        return self.settings_after(best)


Weighted = TypeVar("Weighted", bound=MachineSetting)


def given_first(given: str, values: Iterable[str]) -> list[str]:
    """Return a given value and then the others, so that it wins where accuracies are equal."""
    return [given, *(value for value in values if value != given)]


def weighted_settings(start: Weighted) -> list[Weighted]:
    """Return both kernels, each with both weightings of slack; those of ``start`` come first.

    >>> [(setting.kernel, setting.balance) for setting in weighted_settings(MachineSetting(1.0, 10.0))]
    [('rbf', True), ('rbf', False), ('linear', True), ('linear', False)]
    """
    return [
        replace(start, kernel=kernel, balance=balance)
        for kernel in given_first(start.kernel, KERNELS)
        for balance in (start.balance, not start.balance)
    ]


def weighting_rounds(start: Weighted) -> list[Round[Weighted]]:
    """Return rounds that change ``balance`` or the kernel; both only where one of them is clearly better alone.

    >>> one, both = weighting_rounds(MachineSetting(1.0, 10.0))
    >>> [(setting.kernel, setting.balance) for setting in one(None)]
    [('rbf', True), ('rbf', False), ('linear', True)]
    >>> [(setting.kernel, setting.balance) for setting in both(MachineSetting(1.0, 10.0, "linear"))]
    [('linear', False)]
    >>> both(MachineSetting(1.0, 10.0))
    []
    """
    other_balance = replace(start, balance=not start.balance)
    others = [kernel for kernel in KERNELS if kernel != start.kernel]
    one = [start, other_balance, *(replace(start, kernel=kernel) for kernel in others)]
    both = [replace(other_balance, kernel=kernel) for kernel in others]
    return [OnlyIfClear(lambda _: one), OnlyIfClear(lambda best: [] if best == start else both)]


def priced_settings(start: Weighted, widths: Iterable[float] = WIDTHS) -> list[Weighted]:
    """Return every width, as a multiple of that of ``start``, with every cost; a linear kernel has no width."""
    priced = kernel_settings(start.gamma, start.kernel, widths)
    return [replace(start, gamma=setting.gamma, C=setting.C) for setting in priced]


def kernel_settings(
    gamma: float, kernel: str = "rbf", widths: Iterable[float] = WIDTHS, costs: Iterable[float] = COSTS
) -> list[KernelSetting]:
    """Return every width with every cost, the width varying slowest; a linear kernel has no width.

    >>> kernel_settings(2.0, costs=[1.0])[:2]
    [KernelSetting(gamma=2.0, C=1.0), KernelSetting(gamma=0.6, C=1.0)]
    """
    gammas = [gamma * width for width in widths] if kernel == "rbf" else [gamma]
    return [KernelSetting(*pair) for pair in itertools.product(gammas, costs)]


def thinned_bags(offsets: Integers, most: int, generator: np.random.Generator) -> Integers | None:
    """Return ``most`` instances or fewer, ascending; bags above a common size keep that many, drawn, others all.

    Every bag keeps one at least. None: there are not more than ``most``.

    >>> thinned_bags(np.array([0, 1, 3, 90]), 5, np.random.default_rng(0))[:3]
    array([0, 1, 2])
    """
    sizes = np.diff(offsets)
    if sizes.sum() <= most:
        return None
    ordered = np.sort(sizes)
    # With every bag cut to the size of the i-th smallest, this many remain.
    remaining = np.cumsum(ordered) + ordered * np.arange(len(sizes) - 1, -1, -1)
    whole = int(np.searchsorted(remaining, most, side="right"))
    largest = max(1, (most - int(ordered[:whole].sum())) // (len(sizes) - whole))
    kept = [
        np.sort(generator.choice(size, largest, replace=False)) if size > largest else np.arange(size) for size in sizes
    ]
    return np.concatenate([start + rows for start, rows in zip(offsets[:-1], kept, strict=True)])


class Sample(NamedTuple):
    """The instances that settings are compared on: all, or some of every bag that stand for all of it."""

    rows: Integers | None  # None: all
    offsets: Integers  # (n_bags + 1,)
    counts: Floats  # (n_rows,), how many instances of its bag each one stands for

    def of(self, instances: Instances) -> Instances:
        """Return the rows of the sample."""
        return instances if self.rows is None else instances[self.rows]


def all_of_bags(offsets: Integers) -> Sample:
    """Return the sample of all instances."""
    return Sample(None, offsets, np.ones(int(offsets[-1])))


def sample_bags(offsets: Integers, most: int, generator: np.random.Generator) -> Sample:
    """Return the instances that `thinned_bags` draws.

    A method that prices single negative instances must count them as often as they stand for others: with all at one
    price, a bag of a thousand negative instances would weigh like one of twenty, and so would its errors.

    >>> sample_bags(np.array([0, 1, 7]), 4, np.random.default_rng(0)).counts
    array([1., 2., 2., 2.])
    """
    rows = thinned_bags(offsets, most, generator)
    if rows is None:
        return all_of_bags(offsets)
    cuts = np.searchsorted(rows, offsets)
    kept = np.diff(cuts)
    return Sample(rows, cuts, np.repeat(np.diff(offsets) / kept, kept))


class Tuning(NamedTuple):
    """Settings, and the inner folds that they are compared on."""

    labels: Integers  # (n_bags,), of two classes the positive one is 1
    weights: Floats  # (n_bags,)
    folds: list[Booleans]  # which bags each fold tests; none where nothing is to be chosen
    generator: np.random.Generator
    groups: Integers | None = None  # (n_bags,); None: every bag by itself

    @classmethod
    def of(cls, training: Training, tune: bool, repeats: int = 1) -> Tuning:
        """Draw inner folds, so often as ``repeats`` says; none without ``tune``, or where there are too few bags.

        Settings are compared with more certainty on several draws, of a hundred bags above all.
        """
        labels, generator = training.labels, training.generator
        folds = [
            test
            for _ in range(repeats if tune else 0)
            for test in inner_folds(labels, N_FOLDS, generator, training.groups)
        ]
        return cls(labels, training.weights, folds, generator, training.groups)

    def sample(self, offsets: Integers, most: int | None = None) -> Sample:
        """Return the instances to compare settings on: all, or about ``most`` that stand for all."""
        if not self.folds:
            return all_of_bags(offsets)
        return sample_bags(offsets, MOST_INSTANCES if most is None else most, self.generator)

    def choose(
        self, settings: Iterable[Setting], untuned: Setting, decide: Callable[[Setting, Booleans], Floats]
    ) -> Setting:
        """Return the setting with the best accuracy on the inner folds; without folds the untuned one.

        ``decide(setting, test)`` trains on the bags outside ``test`` and returns the decisions of those inside.
        """
        return self.choose_in_rounds([lambda _: settings], untuned, decide)

    def choose_in_rounds(
        self,
        rounds: Sequence[Round[Setting]],
        untuned: Setting,
        decide: Callable[[Setting, Booleans], Floats],
        *,
        classes_alike: bool = False,
    ) -> Setting:
        """Return the best setting where each round takes the best so far and returns settings to compare with it.

        A few values of each parameter in turn are fewer settings than all combinations. That takes less time, and on a
        hundred bags the best of many settings is the luckiest one; what may change only for a clear gain is a round
        `OnlyIfClear`. Of equals the first wins, and none is tried twice. ``classes_alike`` asks for the mean of the
        accuracies of the classes.
        """
        if not self.folds:
            return untuned
        weights = self._class_weights() if classes_alike else self.weights
        best, rights = untuned, None
        for settings_after in rounds:
            held = rights
            for setting in settings_after(best):
                if rights is not None and setting == best:
                    continue
                found = self._rights(setting, decide)
                if rights is None or held is None:
                    best, rights, held = setting, found, found
                elif self._gain(found, rights, weights)[0] > 0:
                    gain, error = self._gain(found, held, weights)
                    if gain > CLEAR * error + _ROUNDING or not isinstance(settings_after, OnlyIfClear):
                        best, rights = setting, found
        return best

    def _class_weights(self) -> Floats:
        """Return weights under which both classes count alike."""
        positive = self.labels == 1
        share = np.average(positive, weights=self.weights)
        return np.asarray(self.weights / np.where(positive, share, 1 - share))

    def _rights(self, setting: Setting, decide: Callable[[Setting, Booleans], Floats]) -> Floats:
        """Return how often every bag is classified right, (n_bags,)."""
        rights = np.zeros(len(self.labels))
        with warnings.catch_warnings():
            # A setting that does not converge is compared like any other; only the chosen one is worth a warning.
            warnings.simplefilter("ignore")
            for test in self.folds:
                rights[test] += _labels_of(decide(setting, test)) == self.labels[test]
        return rights

    def _gain(self, rights: Floats, others: Floats, weights: Floats) -> tuple[float, float]:
        """Return by how much one accuracy is above another, and the standard error of that.

        The error is that of a ratio of sums over groups, of which bags of the same fate are no further evidence; how
        folds are drawn is no part of it.
        """
        of_group = np.arange(len(weights)) if self.groups is None else self.groups
        gains = np.bincount(of_group, weights * (rights - others))
        tests = np.bincount(of_group, weights * np.sum(self.folds, axis=0))
        gain, n_groups = gains.sum() / tests.sum(), np.count_nonzero(tests)
        spread = ((gains - gain * tests) ** 2).sum() * n_groups / max(n_groups - 1, 1)
        return float(gain), float(np.sqrt(spread) / tests.sum())


def _labels_of(decisions: Floats) -> Integers:
    return (decisions > 0).astype(np.int64) if decisions.ndim == 1 else decisions.argmax(axis=1)
