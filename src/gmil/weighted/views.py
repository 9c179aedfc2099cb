"""Views: vectors of bags by a scaling and a kind, such as minimum and maximum of every feature."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from gmil.bags.parts import blocks_of_bags
from gmil.engine import one_blas_thread, resolve
from gmil.engine.resident import as_array, is_tensor, namespace, take_rows
from gmil.transform.space import Space, fit_scaling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

KINDS = ("range", "moments", "nearest")
SPARSE_KINDS = ("mean", "vlad")
SCALES = ("standard", "minmax", "l2", "standard+l2", "minmax+l2", "rank")
SPARSE_SCALES = (None, "l2", "standard")
_TELL_NO_VALUES: dict[str | None, tuple[str, ...]] = {
    "minmax": ("nearest",),
    "l2": ("range",),
    "standard+l2": ("nearest",),
    "minmax+l2": ("nearest",),
}
_LARGEST = 1e15
_ENTRIES_AT_ONCE = 2_000_000
_SCALED_AT_ONCE = 1 << 16


class CentersInSpace(NamedTuple):
    """Centres, and the space in which they lie, by the name of its scaling."""

    name: str | None
    space: Space
    centers: Floats

    def apply(self, X: Instances, backend: Backend | None = None) -> Instances:
        """Take instances into the space, see `in_single_precision`."""
        return in_single_precision(self.space, X, backend)


class InSpaces:
    """Bags in the spaces of a model; an instance is taken into a space once, however many views there are.

    Many instances, of one large bag, are not kept: they are taken anew.
    """

    def __init__(self, spaces: Sequence[CentersInSpace], bags: Bags, backend: Backend) -> None:
        self.spaces, self.bags, self.backend = spaces, bags, backend
        self._kept: dict[int, Instances] = {}

    def __getitem__(self, number: int) -> Instances:
        if number in self._kept:
            return self._kept[number]
        scaled = self.spaces[number].apply(self.bags.instances, self.backend)
        if scaled.shape[0] <= 4 * rows_at_once(scaled.shape[1]):
            self._kept[number] = scaled
        return scaled

    def some(self, rows: Integers) -> InSpaces:
        """Return some of the bags in the same spaces."""
        return InSpaces(self.spaces, self.bags[rows], self.backend)

    def features(self, number: int, kind: str) -> Floats:
        """Return one vector per bag, see `bag_features`."""
        return bag_features(self[number], self.bags.offsets, kind, self.spaces[number].centers, self.backend)


def in_single_precision(space: Space, X: Instances, backend: Backend | None = None) -> Instances:
    """Take instances into a space; dense ones come in single precision, which is enough for what follows.

    A tensor stays on its device.
    """
    if is_tensor(X):
        taken = space.on_device_of(X).apply(X, backend)
        return bounded(taken) if taken is X else taken.clamp_(-_LARGEST, _LARGEST).float()
    if sp.issparse(X) or not _is_scaled(space):
        taken = space.apply(X, backend)
        return taken if sp.issparse(taken) else bounded(taken)
    # Block by block: what is in between stays near the processor, and no copy of all is made in double precision.
    found, at_once = np.empty(X.shape, dtype=np.float32), max(1, _SCALED_AT_ONCE // max(X.shape[1], 1))
    for start in range(0, len(X), at_once):
        rows = slice(start, start + at_once)
        taken = space.apply(X[rows], backend)
        found[rows] = taken if space.unit_length else bounded(taken)
    return found


def _is_scaled(space: Space) -> bool:
    """Tell whether numbers are shifted, divided or brought to length one, and nothing else."""
    return space.is_a_scaling() and (space.shift is not None or space.divisor is not None or space.unit_length)


def bounded(X: Floats) -> Floats:
    """Return numbers in single precision, none so large that its square overflows."""
    if is_tensor(X):
        return cast("Any", X).clamp(-_LARGEST, _LARGEST).float()
    if X.size and max(X.max(), -X.min()) > _LARGEST:
        X = np.clip(X, -_LARGEST, _LARGEST)
    return X.astype(np.float32, copy=False)


def fit_spaces(
    X: Instances, scales: tuple[str | None, ...], center_rows: Integers, backend: Backend
) -> list[CentersInSpace]:
    """Fit every scaling on training instances; the same instances are the centres in each."""
    spaces: list[CentersInSpace] = []
    for name in scales:
        column_part, plus, _ = (name or "").partition("+")
        same_units = next((own.space for own in spaces if plus and own.name == column_part), None)
        space = fit_scaling(X, name) if same_units is None else same_units._replace(unit_length=True)
        centers: Any = as_array(in_single_precision(space, take_rows(X, center_rows), backend))
        spaces.append(CentersInSpace(name, space, centers.toarray() if sp.issparse(centers) else centers))
    return spaces


def kinds_of(
    scale: str | None,
    asked: tuple[str, ...],
    *,
    sparse: bool,
    scales: Sequence[str | None] = (),
    of_values: bool = False,
    measured: bool = False,
) -> tuple[str, ...]:
    """Return the views worth taking under a scaling, one of ``scales``, of those that were asked for.

    Columns of a view are standardised, so range and moments are the same after "minmax" as after "standard" and
    are taken there only where it is the one scaling.
    Minimum, maximum and deviation of sparse features tell little: there the mean is taken, and VLAD, which has a
    scaling of its own, of the features as they are.
    Values, unlike classes, often follow the middle of a bag alone: the mean rank is a view, too. Of measured values so
    is the mean; in exchange, some are left out that told of no values what others had not.
    """
    if sparse:
        worth = ("mean", "nearest", "vlad") if scale is None else ("mean", "nearest")
        return tuple(kind for kind in worth if kind in asked or kind in SPARSE_KINDS)
    own = tuple(kind for kind in (("nearest",) if scale == "minmax" and len(scales) > 1 else KINDS) if kind in asked)
    if not of_values:
        return own
    if measured and "standard" in scales:
        own = tuple(kind for kind in own if kind not in _TELL_NO_VALUES.get(scale, ()))
    has_mean = scale == "rank" or (measured and scale == "standard")
    return (*own, "mean") if has_mean and "moments" in own else own


def bag_features(scaled: Instances, offsets: Integers, kind: str, centers: Floats, backend: Backend) -> Floats:
    """Return one vector per bag; of a tensor, tensors.

    "range": minimum and maximum of every feature; "moments": mean and deviation; "mean": the mean;
    "nearest": the distance between the bag and every centre; "vlad": see `unit_roots`.
    """
    if kind == "range":
        return namespace(scaled).hstack([backend.bag_min(scaled, offsets), backend.bag_max(scaled, offsets)])
    if kind == "nearest":
        squares = backend.sq_distances(scaled, centers)
        return namespace(scaled).sqrt(backend.bag_min(squares, offsets))
    means = bag_means(scaled, offsets, backend)
    if kind == "mean":
        return means
    if kind == "vlad":
        return unit_roots(means)
    return namespace(scaled).hstack([means, backend.bag_deviation(scaled, offsets)])


def bag_means(scaled: Instances, offsets: Integers, backend: Backend) -> Any:
    """Return the mean of every feature over every bag; sparse stays sparse."""
    if not sp.issparse(scaled):
        return backend.bag_mean(scaled, offsets)
    sizes = np.diff(offsets)
    n_bags = len(sizes)
    member = sp.csr_array(
        (np.repeat(1 / sizes, sizes), np.arange(offsets[-1]), offsets), shape=(n_bags, int(offsets[-1]))
    )
    return sp.csr_array(member @ scaled)


def unit_roots(means: Any) -> Any:
    """Return the signed square roots of rows at length one: VLAD with the origin as its only centre.

    Sparse stays sparse. A word that comes often in a few instances weighs less beside words that come here and there.
    """
    return sp.csr_array(normalize(means.sign() * abs(means).sqrt()))


def rows_at_once(n_columns: int) -> int:
    """Return how many instances are measured together: with all that is made of them they stay near the processor."""
    return max(1000, _ENTRIES_AT_ONCE // max(n_columns, 100))


def blocks_of(bags: Bags) -> Iterator[Bags]:
    """Yield runs of bags of a bounded number of instances; a larger bag is a run of its own."""
    blocks = blocks_of_bags(bags.offsets, rows_at_once(bags.n_features))
    return (bags[block] for block in blocks) if len(blocks) > 1 else iter([bags])


def by_blocks(
    function: Callable[[InSpaces], Floats], spaces: list[CentersInSpace], bags: Bags, backend: Backend
) -> Floats:
    """Return what a function finds in runs of bags, one below the other; runs are shared between threads."""
    blocks = list(blocks_of(bags))
    with one_blas_thread():  # products are small: threads of BLAS would spin between them
        if len(blocks) == 1:
            return function(InSpaces(spaces, bags, backend))
        one_thread = resolve(backend.name, 1)
        with ThreadPoolExecutor(backend.n_threads) as pool:
            return np.concatenate(list(pool.map(lambda block: function(InSpaces(spaces, block, one_thread)), blocks)))
