"""The backend that runs kernels in PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gmil.engine import reference
from gmil.engine.rbf import block_rbf_sums
from gmil.engine.reference import BagMinima, Clusters, GramClusters, or_reference
from gmil.engine.torch import clustering, kernels
from gmil.engine.torch.tensors import choose_device, to_device, to_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.engine.margins import Margins
    from gmil.engine.rbf import Points


@dataclass(frozen=True, slots=True)
class TorchBackend:
    """The kernels of ``gmil.engine.reference`` in PyTorch: arrays go to the device and results come back.

    Where instances, or values, are a tensor, results are tensors that stay on the device.
    Sparse instances, and numbers that are not of single or double precision, are left to the reference.

    Parameters
    ----------
    name : {"torch", "torch:cpu", "torch:cuda"}
        The name by which it was chosen. "torch" is a GPU where there is one.
    """

    name: str = "torch"

    @property
    def n_threads(self) -> int:
        """How many kernels to run side by side: one, which has the whole device."""
        return 1

    @property
    def device(self) -> torch.device:
        """Where the kernels run."""
        return choose_device(self.name)

    @or_reference
    def sq_distances(self, X: Instances, centers: Floats) -> Floats:
        """See `gmil.engine.reference.sq_distances`."""
        return _like(X, kernels.sq_distances(*self._pair(X, centers)))

    def sparse_sq_distances(self, rows: Any, matrix: Floats, terms: Floats, per_row: Floats) -> Floats:
        """See `gmil.engine.reference.sparse_sq_distances`, which does it."""
        return reference.sparse_sq_distances(rows, matrix, terms, per_row)

    @or_reference
    def l1_distances(self, X: Floats, Y: Floats) -> Floats:
        """See `gmil.engine.reference.l1_distances`."""
        return _like(X, torch.cdist(*self._pair(X, Y), p=1))

    @or_reference
    def column_ranks(self, X: Floats, knots: Floats) -> Floats:
        """See `gmil.engine.reference.column_ranks`."""
        known = to_device(knots, self.device, torch.float64)
        return _like(X, kernels.column_ranks(to_device(X, self.device), known))

    def rbf_sums(self, left: Points, right: Points, gammas: Sequence[float]) -> Floats:
        """See `gmil.engine.reference.rbf_sums`; distances are computed on the device."""
        return block_rbf_sums(left, right, gammas, self.sq_distances)

    @or_reference
    def assign(self, X: Instances, centers: Floats) -> tuple[Integers, Floats]:
        """See `gmil.engine.reference.assign`."""
        labels, nearest = kernels.assign(*self._pair(X, centers))
        return to_host(labels.to(torch.int32)), to_host(nearest)

    @or_reference
    def assign_sums(self, X: Instances, centers: Floats) -> tuple[Integers, Floats, Floats, Integers]:
        """See `gmil.engine.reference.assign_sums`."""
        labels, nearest = self.assign(X, centers)
        return labels, nearest, *reference.cluster_sums(X, labels, len(centers))

    @or_reference
    def seed(self, X: Instances, n_clusters: int, uniforms: Floats) -> Integers:  # noqa: ARG002
        """See `gmil.engine.reference.seed`."""
        draws = to_device(uniforms, self.device, torch.float64)
        return to_host(clustering.seed(to_device(X, self.device)[None], draws[None])[0])

    @or_reference
    def lloyd(self, X: Instances, centers: Floats, max_iter: int) -> Clusters:
        """See `gmil.engine.reference.lloyd`."""
        rows, starts = self._pair(X, centers)
        return clustering.cluster(rows[None], starts[None], max_iter)[0]

    @or_reference
    def gram_matrix(self, X: Instances) -> Floats:
        """See `gmil.engine.reference.gram_matrix`."""
        rows = to_device(X, self.device, torch.float64)
        rows = rows - rows.mean(dim=0)
        return to_host(rows @ rows.mT)

    def gram_seed(self, gram: Floats, members: Booleans, uniforms: Floats) -> Integers:
        """See `gmil.engine.reference.gram_seed`."""
        draws = to_device(uniforms, self.device, torch.float64)
        return to_host(clustering.greedy_rows(self._products(gram, members), draws))

    def gram_lloyd(self, gram: Floats, members: Booleans, starts: Integers, max_iter: int) -> GramClusters:
        """See `gmil.engine.reference.gram_lloyd`."""
        space = self._products(gram, members)
        rows = to_device(starts, self.device)[..., None]
        centers = torch.zeros((*starts.shape, len(gram)), dtype=torch.float64, device=self.device)
        found = clustering.lloyd(space, centers.scatter_(2, rows, 1), max_iter)
        squares = space.sq_distances(found.centers).mT.contiguous()
        inertia = (found.nearest * space.members).sum(dim=1)
        return GramClusters(*(to_host(t) for t in (found.labels.to(torch.int32), squares, inertia, found.n_iter)))

    def solve_svm(self, kernel: Floats, positive: Booleans, costs: Floats, start: Margins | None = None) -> Margins:
        """See `gmil.engine.reference.solve_svm`, which does it."""
        return reference.solve_svm(kernel, positive, costs, start)

    @or_reference
    def bag_min(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_min`."""
        return self._reduce(kernels.Segments.min, values, offsets)

    @or_reference
    def bag_max(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_max`."""
        return self._reduce(kernels.Segments.max, values, offsets)

    @or_reference
    def bag_mean(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_mean`."""
        return self._reduce(kernels.Segments.mean, values, offsets)

    @or_reference
    def bag_deviation(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_deviation`."""
        return self._reduce(kernels.Segments.deviation, values, offsets)

    @or_reference
    def bag_moments(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_moments`."""
        columns = to_device(values, self.device)
        return _like(values, kernels.segments(offsets, self.device).moments(columns))

    @or_reference
    def bag_two_min(self, values: Floats, offsets: Integers) -> BagMinima:
        """See `gmil.engine.reference.bag_two_min`."""
        columns = to_device(values.reshape(len(values), -1), self.device)
        found = kernels.segment_two_min(columns, to_device(offsets, self.device, torch.int64))
        return BagMinima(*(to_host(part).reshape(-1, *values.shape[1:]) for part in found))

    def bag_histograms(self, labels: Integers, offsets: Integers, n_bins: int) -> Integers:
        """See `gmil.engine.reference.bag_histograms`."""
        bag_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return self._histograms(labels, bag_of, len(offsets) - 1, n_bins)

    def class_histograms(
        self, labels: Integers, offsets: Integers, classes: Integers, n_classes: int, n_bins: int
    ) -> Integers:
        """See `gmil.engine.reference.class_histograms`."""
        return self._histograms(labels, np.repeat(classes, np.diff(offsets)), n_classes, n_bins)

    def _pair(self, X: Floats, centers: Floats) -> tuple[torch.Tensor, torch.Tensor]:
        rows = to_device(X, self.device)
        return rows, to_device(centers, self.device, rows.dtype)

    def _products(self, gram: Floats, members: Booleans) -> clustering.Products:
        return clustering.Products(to_device(gram, self.device, torch.float64), to_device(members, self.device))

    def _reduce(self, kernel: Callable[..., torch.Tensor], values: Floats, offsets: Integers) -> Floats:
        columns = to_device(values.reshape(len(values), -1), self.device)
        found = kernel(kernels.segments(offsets, self.device), columns).to(columns.dtype)
        return _like(values, found.reshape(-1, *values.shape[1:]))

    def _histograms(self, labels: Integers, groups: Integers, n_groups: int, n_bins: int) -> Integers:
        places = to_device(groups * n_bins + labels, self.device, torch.int64)
        return to_host(kernels.count(places[None], n_groups * n_bins)).reshape(n_groups, n_bins)


def _like(given: Any, found: torch.Tensor) -> Any:
    """Return what was found on the device where it was asked about a tensor, else on the host."""
    return found if isinstance(given, torch.Tensor) else to_host(found)
