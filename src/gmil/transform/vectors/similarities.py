"""Similarities between bags and training instances, the embedding of MILES."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gmil.base import register
from gmil.engine.sparse_rows import rows_beside
from gmil.io.model_files.schema import Kind, Number, Rows
from gmil.parameters import AT_LEAST_ONE, parameter, parameters
from gmil.scale import LazyBags
from gmil.transform.vectors.base import BagVectorizer
from gmil.transform.widths import median_gamma, rows_for_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers

_BLOCK_ENTRIES = 1 << 22
"""How many distances between instances are held at once: 32 MiB in double precision."""

_MEDIAN_FACTOR = 3.0


@register()
@parameters
class InstanceSimilarities(BagVectorizer):
    """Turn a bag into its similarities to training instances: the bag embedding of MILES (Chen, Bi & Wang).

    A column is exp(-gamma d^2) for the distance d between the bag and one training instance, the prototype; it is that
    of the nearest instance of the bag.

    Parameters
    ----------
    gamma : float or "median", default="median"
        One over the squared width of the similarity. "median" is three over the median squared distance between two
        training instances.
    max_prototypes : int or None, default=10_000
        With more training instances than this, similarities are to a sample of them, drawn without replacement.
        None: always to all.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="minmax"
        Scaling of the features, fitted on the training instances.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
        results do not depend on it.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of distances and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of samples.

    Attributes
    ----------
    prototypes_ : array or sparse array of shape (n_prototypes, n_features)
        The training instances that bags are compared with, scaled.
    gamma_ : float
        The width in use.
    space_ : Space
        The fitted scaling.
    n_features_in_ : int

    See Also
    --------
    MILES : These similarities and a sparse linear classifier of them, as one estimator.

    Notes
    -----
    The vectors of M bags have M times ``n_prototypes`` entries, and cost O(N n_prototypes d) for N instances of d
    features.

    References
    ----------
    Chen, Y., Bi, J. and Wang, J. Z., "MILES: Multiple-Instance Learning via Embedded Instance Selection", IEEE
    Transactions on Pattern Analysis and Machine Intelligence 28(12), 2006.

    Examples
    --------
    >>> from gmil import InstanceSimilarities
    >>> similarities = InstanceSimilarities(gamma=1.0, scale=None).fit([[[0.0], [2.0]], [[5.0]]])
    >>> similarities.transform([[[0.0], [3.0]]]).round(3)
    array([[1.   , 0.368, 0.018]])
    """

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "prototypes_": Rows("v", "d"),
        "gamma_": Number(at_least=0),
    }

    _joins = (np.minimum,)

    gamma: float | str = parameter(default="median", kw_only=False)
    max_prototypes: int | None = parameter(default=10_000, rules=[AT_LEAST_ONE, None])
    scale: str | None = "minmax"
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    def _learn(self, bags: Bags | LazyBags, backend: Backend, generator: np.random.Generator) -> Instances:
        return self._fit_prototypes(bags, backend, generator)[0]

    def _fit_prototypes(
        self, bags: Bags | LazyBags, backend: Backend, generator: np.random.Generator
    ) -> tuple[Instances, Integers | None]:
        """Set the prototypes and the width; return instances in the space, and which of them are prototypes."""
        self.space_ = self._fit_scaling(bags, backend)
        rows = None
        if isinstance(bags, LazyBags):
            self.prototypes_ = self.space_.apply(self._read_sample(bags, "max_prototypes", generator))
            instances = self.space_.apply(bags.take(rows_for_width(bags.n_instances, generator)))
        else:
            instances, rows = self.space_.apply(bags.instances), self._sample(bags, "max_prototypes", generator)
            self.prototypes_ = instances if rows is None else instances[rows]
        if isinstance(self.gamma, str):
            self.gamma_ = _MEDIAN_FACTOR * median_gamma(instances, backend, generator)
        else:
            self.gamma_ = float(self.gamma)
        return instances, rows

    def _tables(self, X: Instances, offsets: Integers, backend: Backend) -> Sequence[Floats]:
        return [nearest_squares(X, offsets, self.prototypes_, backend)]

    def _finish(self, tables: Sequence[Floats]) -> Floats:
        return np.exp(-self.gamma_ * tables[0])

    def _names(self, features: list[str]) -> list[str]:  # noqa: ARG002
        return [f"prototype{i}" for i in range(self.prototypes_.shape[0])]


def nearest_squares(X: Instances, offsets: Integers, prototypes: Instances, backend: Backend) -> Floats:
    """Return squared distances between bags and prototypes, (n_bags, n_prototypes), in bounded memory."""
    n_prototypes = prototypes.shape[0]
    squares = np.empty((len(offsets) - 1, n_prototypes), dtype=X.dtype)
    both_sparse = sp.issparse(X) and sp.issparse(prototypes)
    width = max(1, _BLOCK_ENTRIES // (X.shape[0] if both_sparse else max(X.shape)))
    for start in range(0, n_prototypes, width):
        block = slice(start, start + width)
        to_block = backend.sq_distances(X, rows_beside(X, prototypes, block))
        squares[:, block] = backend.bag_min(to_block, offsets)
    return squares
