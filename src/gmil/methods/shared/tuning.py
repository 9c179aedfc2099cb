"""What ``tune=True`` chooses from, and on which bags: training bags only, whole groups left out."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gmil.methods.shared.inner_folds import inner_folds
from gmil.model_selection.folds import refuse_wrong_groups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

WIDTHS = (1.0, 0.3, 3.0)
"""Times the gamma that a method would take untuned, which comes first: of equally accurate settings the first wins."""

COSTS = (10.0, 1.0, 100.0)
"""Values of C."""

KERNELS = ("rbf", "linear")

N_FOLDS = 5

MOST_INSTANCES = 2000
"""Of more instances, settings are compared on so many, which costs the square of their number."""


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


def check_groups(groups: Any, n_bags: int) -> Integers | None:
    """Return the number of the group of every bag; a number of groups that does not fit the bags is refused."""
    if groups is None:
        return None
    refuse_wrong_groups(groups, n_bags)
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def tuning_folds(
    positive: Booleans, groups: Integers | None, generator: np.random.Generator, repeats: int = 1
) -> list[Booleans]:
    """Return which bags each inner fold tests, so often as ``repeats`` says; no fold would train on one class.

    No fold at all means that there is nothing to choose by. On a hundred bags one round of folds is a noisy judge.
    """
    labels = positive.astype(np.int64)
    return [test for _ in range(repeats) for test in inner_folds(labels, N_FOLDS, generator, groups)]


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
