"""The backend that runs kernels in PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from gmil.engine import reference
from gmil.engine.reference import BagMinima, Clusters, GramClusters, or_reference
from gmil.engine.torch import clustering, kernels
from gmil.engine.torch.tensors import choose_device, to_device, to_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.engine.arrays import Booleans, Floats, Instances, Integers


@dataclass(frozen=True, slots=True)
class TorchBackend:
    """The kernels of ``gmil.engine.reference`` in PyTorch: arrays go to the device and results come back.

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
        return to_host(kernels.sq_distances(*self._pair(X, centers)))

    @or_reference
    def l1_distances(self, X: Floats, Y: Floats) -> Floats:
        """See `gmil.engine.reference.l1_distances`."""
        return to_host(torch.cdist(*self._pair(X, Y), p=1))

    @or_reference
    def column_ranks(self, X: Floats, knots: Floats) -> Floats:
        """See `gmil.engine.reference.column_ranks`."""
        values, known = (to_device(part, self.device, torch.float64) for part in (X.T, knots))
        below = torch.searchsorted(known, values) + torch.searchsorted(known, values, right=True)
        return np.ascontiguousarray(to_host(below.mT / (2 * knots.shape[1])), dtype=X.dtype)

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

    @or_reference
    def bag_min(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_min`."""
        return self._reduce(kernels.segment_min, values, offsets)

    @or_reference
    def bag_max(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_max`."""
        return self._reduce(kernels.segment_max, values, offsets)

    @or_reference
    def bag_mean(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_mean`."""
        return self._reduce(kernels.segment_mean, values, offsets)

    @or_reference
    def bag_deviation(self, values: Floats, offsets: Integers) -> Floats:
        """See `gmil.engine.reference.bag_deviation`."""
        return self._reduce(kernels.segment_deviation, values, offsets)

    @or_reference
    def bag_two_min(self, values: Floats, offsets: Integers) -> BagMinima:
        """See `gmil.engine.reference.bag_two_min`."""
        found = kernels.segment_two_min(*self._columns(values, offsets))
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

    def _columns(self, values: Floats, offsets: Integers) -> tuple[torch.Tensor, torch.Tensor]:
        columns = to_device(values.reshape(len(values), -1), self.device)
        return columns, to_device(offsets, self.device, torch.int64)

    def _reduce(self, kernel: Callable[..., torch.Tensor], values: Floats, offsets: Integers) -> Floats:
        found = kernel(*self._columns(values, offsets))
        return to_host(found).astype(values.dtype, copy=False).reshape(-1, *values.shape[1:])

    def _histograms(self, labels: Integers, groups: Integers, n_groups: int, n_bins: int) -> Integers:
        places = to_device(groups * n_bins + labels, self.device, torch.int64)
        return to_host(kernels.count(places[None], n_groups * n_bins)).reshape(n_groups, n_bins)
