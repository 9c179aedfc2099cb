"""Statistics of the features over every bag."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.base import register
from gmil.engine import moments
from gmil.errors import BagValidationError, listed
from gmil.parameters import parameter, parameters
from gmil.scale import LazyBags
from gmil.transform.vectors.base import BagVectorizer, dense_blocks, join_means, with_sizes
from gmil.witnesses.effects import vectors_without

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.scale.passes import Join


@register()
@parameters
class BagSummaries(BagVectorizer):
    """Turn a bag into statistics of its features: minimum, mean, maximum, standard deviation.

    The simplest bag embedding. It knows nothing of single instances, and where it is level with methods that do, the
    data do not need them.

    Parameters
    ----------
    statistics : tuple of {"min", "mean", "max", "sd"}, default=("min", "mean", "max", "sd")
        What to take of every feature; "sd" divides by the number of instances, so one instance has deviation 0.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default=None
        Scaling of the features, fitted on the training instances.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the statistics.

    Attributes
    ----------
    space_ : Space
        The fitted scaling.
    n_features_in_ : int

    See Also
    --------
    BagStatistics : These statistics and a classifier of them, as one estimator.

    Notes
    -----
    The cost is O(N d) for N instances of d features. Vectors are dense, also where instances are sparse.

    Examples
    --------
    >>> from gmil import BagSummaries
    >>> summaries = BagSummaries(("min", "max")).fit([[[1.0, 5.0], [3.0, 4.0]], [[2.0, 2.0]]])
    >>> summaries.transform([[[1.0, 5.0], [3.0, 4.0]]])
    array([[1., 4., 3., 5.]])
    >>> list(summaries.get_feature_names_out())
    ['min(x0)', 'min(x1)', 'max(x0)', 'max(x1)']
    """

    _kept_parameters = ("statistics",)

    statistics: Sequence[str] = parameter(default=("min", "mean", "max", "sd"), rules=[tuple, list], kw_only=False)
    scale: str | None = None
    n_jobs: int | None = None
    backend: str = "auto"

    @property
    def _joins(self) -> tuple[Join, ...]:  # type: ignore[override]
        return tuple(TABLES[name][1] for name in _tables_for(self.statistics_))

    def _learn(self, bags: Bags | LazyBags, backend: Backend, generator: np.random.Generator) -> Instances:  # noqa: ARG002
        unknown = [name for name in self.statistics if name not in TABLES]
        if unknown or not self.statistics:
            got = f"{unknown[0]!r}" if unknown else "none"
            msg = f"statistics must be some of {listed(list(TABLES))}, got {got}."
            raise BagValidationError(msg)
        self.space_ = self._fit_scaling(bags, backend)
        instances: Instances = np.empty((0, 0)) if isinstance(bags, LazyBags) else self.space_.apply(bags.instances)
        return instances

    def _tables(self, X: Instances, offsets: Integers, backend: Backend) -> Sequence[Floats]:
        return summary_tables(X, offsets, self.statistics_, backend)

    def _finish(self, tables: Sequence[Floats]) -> Floats:
        return side_by_side(tables, self.statistics_, self.n_features_in_)

    def _names(self, features: list[str]) -> list[str]:
        return [f"{statistic}({feature})" for statistic in self.statistics_ for feature in features]


def summarize(X: Instances, offsets: Integers, names: Sequence[str], backend: Backend) -> Floats:
    """Return the named statistics of every feature over every bag, side by side, (n_bags, n_names * n_features)."""
    return side_by_side(summary_tables(X, offsets, names, backend), names, X.shape[1])


def summaries_without(bags: Bags, names: Sequence[str], backend: Backend) -> Iterator[tuple[Any, Floats]]:
    """Yield instances, and for each of them the named statistics of its bag without it."""
    tables = functools.partial(summary_tables, names=names, backend=backend)
    joins = [TABLES[name][1] for name in _tables_for(names)]
    return vectors_without(
        bags, tables, joins, functools.partial(side_by_side, names=names, n_features=bags.n_features)
    )


def summary_tables(X: Instances, offsets: Integers, names: Sequence[str], backend: Backend) -> list[Floats]:
    """Return the tables that the named statistics follow from, each with one row per bag."""
    wanted = _tables_for(names)
    blocks = [[TABLES[name][0](block, cut, backend) for name in wanted] for block, cut in dense_blocks(X, offsets)]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def side_by_side(tables: Sequence[Floats], names: Sequence[str], n_features: int) -> Floats:
    """Return statistics from `summary_tables`."""
    found = dict(zip(_tables_for(names), tables, strict=True))
    columns = {name: table[:, :n_features] for name, table in found.items()}
    if "sd" in found:
        columns["mean"] = found["sd"][:, n_features:-1]
    return np.ascontiguousarray(np.hstack([columns[name] for name in names]))


def _tables_for(names: Sequence[str]) -> list[str]:
    """Return the tables that statistics follow from; that of deviations holds means as well."""
    return [name for name in dict.fromkeys(names) if not (name == "mean" and "sd" in names)]


def _min_table(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    return backend.bag_min(X, offsets)


def _max_table(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    return backend.bag_max(X, offsets)


def _mean_table(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    return with_sizes(moments.bag_mean(X, offsets, backend), offsets)


def _sd_table(X: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return deviations, which divide by the size of the bag, means and sizes, side by side."""
    moves = moments.bag_deviation(X, offsets, backend), moments.bag_mean(X, offsets, backend)
    return with_sizes(np.hstack(moves), offsets)


def _join_sd(one: Floats, other: Floats) -> Floats:
    joined, n_features = join_means(one, other), len(one) // 2
    share = other[-1] / joined[-1]
    variances = (1 - share) * one[:n_features] ** 2 + share * other[:n_features] ** 2
    apart = other[n_features:-1] - one[n_features:-1]
    joined[:n_features] = np.sqrt(variances + share * (1 - share) * apart**2)
    return joined


TABLES: dict[str, tuple[Any, Join]] = {
    "min": (_min_table, np.minimum),
    "mean": (_mean_table, join_means),
    "max": (_max_table, np.maximum),
    "sd": (_sd_table, _join_sd),
}
"""Of every statistic its table, one row per bag, that begins with the statistic of all features, and how rows join."""
