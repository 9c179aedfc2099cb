"""What has to be known of bags that are read in blocks: one row a bag, for many clusterings in one pass."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gmil.engine import closeness, column_sizes, is_torch, resolve, sq_differences
from gmil.engine.reference import row_sq_norms
from gmil.transform.scaling import ColumnSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.scale import LazyBags
    from gmil.transform.space import FeatureSpace

_CENTERS_AT_ONCE = 640
_INSTANCES_AT_ONCE = 3072
"""With so many, the distances of a block stay in the cache, and products are as fast as they get."""


class Clustering(NamedTuple):
    """Centres, and the space in which they lie."""

    space: FeatureSpace
    centers: Floats  # (n_clusters, n_features)


class BagTables(NamedTuple):
    """One clustering, as seen from the bags."""

    histograms: Integers  # (n_bags, n_clusters): instances in every bin
    sq_minima: Floats  # (n_bags, n_clusters): squared distance of the nearest instance
    sq_sums: Floats  # (n_bags, n_clusters): squared distances of the instances in a bin to its centre, summed

    def spread(self, bins: Integers) -> float:
        """Return the root mean square distance of the instances in some bins to their centres."""
        n_members = self.histograms[:, bins].sum()
        return float(np.sqrt(self.sq_sums[:, bins].sum() / n_members)) if n_members else 0.0


def measure_bags(bags: LazyBags, clusterings: Sequence[Clustering], backend: Backend) -> list[BagTables]:
    """Read all bags once and measure them against every clustering.

    Clusterings in one space are stacked into one product; every thread works on blocks of its own. Instances that lie
    on the device of the backend stay there.
    """
    groups = _grouped(clusterings)
    X = resident_tensor(bags, backend, [group.space for group in groups])
    if X is not None:
        tables = _measure_on_device(X, bags, groups)
    else:
        function = functools.partial(measure_block, groups=groups, backend=resolve(backend.name, 1))
        rows = min(_INSTANCES_AT_ONCE, bags.block_rows())
        tables = bags.reduce(function, (np.add, np.minimum, np.add), n_threads=backend.n_threads, rows=rows)
    order = [number for group in groups for number in group.numbers]
    cuts = np.cumsum([len(clusterings[number].centers) for number in order])[:-1]
    parts = zip(*(np.split(table, cuts, axis=1) for table in tables), strict=True)
    found = dict(zip(order, parts, strict=True))
    return [BagTables(*found[number]) for number in range(len(clusterings))]


def resident_tensor(bags: LazyBags, backend: Backend, spaces: Sequence[FeatureSpace]) -> Any | None:
    """Return the instances where they lie on the device of the backend, and the spaces only scale them; else None."""
    if not is_torch(backend.name) or any(space.is_more_than_scaling() for space in spaces):
        return None
    return bags.tensor_on(cast("Any", backend).device)


def row_scaling(space: FeatureSpace, X: Any) -> Any:
    """Return the scaling of a space for rows of a tensor."""
    from gmil.engine.torch.kernels import RowScaling
    from gmil.engine.torch.tensors import to_device

    shift, divisor = (
        None if part is None else to_device(part, X.device, X.dtype) for part in (space.shift, space.divisor)
    )
    return RowScaling(shift, divisor, space.unit_length)


def _measure_on_device(X: Any, bags: LazyBags, groups: Sequence[_Group]) -> list[Any]:
    from gmil.engine.torch.passes import Stack, measure

    stacks = [Stack(row_scaling(group.space, X), centers) for group in groups for centers in group.stacks()]
    places = bags.bags_of_source()
    wanted = np.zeros(len(bags.source_offsets) - 1, dtype=bool)
    wanted[places] = True
    return [table[places] for table in measure(X, bags.source_offsets, wanted, stacks)]


class _Group(NamedTuple):
    """Clusterings in one space."""

    space: FeatureSpace
    numbers: list[int]
    centers: list[Floats]

    def stacks(self) -> Iterator[list[Floats]]:
        """Yield runs of codebooks with a bounded number of centres; a larger one comes alone."""
        held: list[Floats] = []
        for centers in self.centers:
            if held and sum(map(len, held)) + len(centers) > _CENTERS_AT_ONCE:
                yield held
                held = []
            held.append(centers)
        yield held


def _grouped(clusterings: Sequence[Clustering]) -> list[_Group]:
    groups: list[_Group] = []
    for number, (space, centers) in enumerate(clusterings):
        group = next((group for group in groups if group.space.is_same(space)), None)
        if group is None:
            group = _Group(space, [], [])
            groups.append(group)
        group.numbers.append(number)
        group.centers.append(centers)
    return groups


def measure_block(block: Bags, groups: Sequence[_Group], backend: Backend) -> tuple[Integers, Floats, Floats]:
    """Return histograms, squared minima and squared sums of bags over the centres of all groups, side by side."""
    parts: list[tuple[Any, ...]] = []
    for group in groups:
        instances = group.space.apply(block.instances)
        for stack in group.stacks():
            squares = backend.sq_distances(instances, np.concatenate(stack))
            cuts = np.cumsum([len(centers) for centers in stack])[:-1]
            counts = [_count(part, block, backend) for part in np.split(squares, cuts, axis=1)]
            minima = backend.bag_min(squares, block.offsets)
            _measure_close_bags_again(minima, squares, instances, np.concatenate(stack), block.offsets)
            parts.append((np.hstack([c for c, _ in counts]), minima, np.hstack([s for _, s in counts])))
    histograms, minima, sums = (np.hstack(columns) for columns in zip(*parts, strict=True))
    return histograms, minima, sums


def _count(squares: Floats, block: Bags, backend: Backend) -> tuple[Integers, Floats]:
    """Return how many instances of every bag are nearest to every centre, and the sum of their squared distances."""
    n_clusters = squares.shape[1]
    nearest = squares.argmin(axis=1).astype(np.int32)
    counts = backend.bag_histograms(nearest, block.offsets, n_clusters).astype(np.int32)
    places = block.segment_ids * n_clusters + nearest
    least = squares[np.arange(len(nearest)), nearest]
    sums: Any = np.bincount(places, weights=least, minlength=counts.size)
    return counts, sums.reshape(counts.shape)


def _measure_close_bags_again(
    minima: Floats, squares: Floats, instances: Instances, centers: Floats, offsets: Integers
) -> None:
    """Replace rounding by the truth where an instance lies on a centre, as `gmil.engine.distances` does."""
    norms = np.einsum("ij,ij->i", centers, centers)
    limit, sizes = closeness(minima.dtype), column_sizes(centers)
    # An instance that near to a centre is about as long as the centre.
    bags, columns = np.nonzero(minima <= limit * (4 * norms + 2 * norms.max(initial=0)))
    for bag, column in zip(bags.tolist(), columns.tolist(), strict=True):
        rows = slice(int(offsets[bag]), int(offsets[bag + 1]))
        found = squares[rows, column].copy()
        size = row_sq_norms(instances[rows]) + norms[column] + norms.max(initial=0)
        close = np.flatnonzero(found <= limit * size)
        if len(close):
            found[close] = sq_differences(instances[rows][close], centers[column][None], sizes)
            minima[bag, column] = found.min()


# -------------------------------------------------------------------------------- scaling


def summarize_columns(bags: LazyBags, training: Sequence[Booleans], backend: Backend) -> list[ColumnSummary]:
    """Read all bags once; return mean, variance and range of every feature over each set of training bags."""
    shift = bags.take([0])[0].astype(np.float64)
    function = functools.partial(_column_sums, shift=shift, backend=resolve(backend.name, 1))
    joins = (np.add, np.add, np.minimum, np.maximum)
    sums, squares, low, high = bags.reduce(function, joins, n_threads=backend.n_threads)
    summaries = []
    for inside in training:
        n_instances = int(bags.sizes[inside].sum())
        mean = sums[inside].sum(axis=0) / n_instances
        variance = np.maximum(squares[inside].sum(axis=0) / n_instances - mean**2, 0)
        extremes = low[inside].min(axis=0), high[inside].max(axis=0)
        summaries.append(ColumnSummary(mean + shift, variance, *extremes, bags.dtype))
    return summaries


def _column_sums(block: Bags, shift: Floats, backend: Backend) -> tuple[Any, ...]:
    """Return sums, sums of squares, minima and maxima of bags; sums around a point of the data lose no digits."""
    moved = block.instances - shift
    sizes = block.sizes[:, None]
    return (
        backend.bag_mean(moved, block.offsets) * sizes,
        backend.bag_mean(np.square(moved), block.offsets) * sizes,
        backend.bag_min(block.instances, block.offsets),
        backend.bag_max(block.instances, block.offsets),
    )
