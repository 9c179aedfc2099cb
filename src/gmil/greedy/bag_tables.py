"""What has to be known of bags that are read in blocks: one row a bag, for many clusterings in one pass."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.engine import closeness, column_sizes, resolve, sq_differences
from gmil.engine.reference import row_sq_norms
from gmil.transform.space import resident_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.greedy.clustering import Clustering
    from gmil.scale import LazyBags
    from gmil.transform.space import Space

_CENTERS_AT_ONCE = 640
_INSTANCES_AT_ONCE = 3072
"""With so many, the distances of a block stay in the cache, and products are as fast as they get."""


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


def _measure_on_device(X: Any, bags: LazyBags, groups: Sequence[_Group]) -> list[Any]:
    from gmil.engine.torch.passes import Stack, measure

    stacks = [Stack(group.space.on_device_of(X).apply, centers) for group in groups for centers in group.stacks()]
    places = bags.bags_of_source()
    wanted = np.zeros(len(bags.source_offsets) - 1, dtype=bool)
    wanted[places] = True
    return [table[places] for table in measure(X, bags.source_offsets, wanted, stacks)]


class _Group(NamedTuple):
    """Clusterings in one space."""

    space: Space
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
    for number, (space, centers, _) in enumerate(clusterings):
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
