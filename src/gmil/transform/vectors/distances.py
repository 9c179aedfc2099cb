"""Distances between bags and the centres of a codebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.base import register
from gmil.engine import distances
from gmil.parameters import parameters
from gmil.scale import LazyBags
from gmil.transform.space import resident_tensor
from gmil.transform.vectors.base import CentersVectorizer, blocks_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers


@register()
@parameters
class CodebookDistances(CentersVectorizer):
    """Turn a bag into its distances to the centres of k-means, each that of the nearest instance.

    All training instances are clustered, without labels. A column tells how near a bag comes to one kind of instance,
    which is what the standard assumption of multiple instance learning needs to know.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of centres, and of columns.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances.
    n_init : int, default=1
        Restarts of k-means; the clustering with the least inertia is kept.
    max_iter : int, default=300
        Iterations of Lloyd's algorithm at most.
    sample_size : int or None, default=10_000
        With more training instances than this, the clusters are learnt on a sample without replacement. None:
        always on all.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
        results do not depend on it.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of k-means and distances. With "torch", instances that lie on the device stay there.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample and of k-means++.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        Centres of scaled features.
    space_ : Space
        The fitted scaling.
    n_features_in_ : int
    n_iter_ : int
        Iterations of Lloyd's algorithm.

    See Also
    --------
    GMIL : Chooses among such centres by the labels of bags.
    InstanceSimilarities : Compares bags with training instances in place of centres.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gmil import CodebookDistances, make_bags, make_pipeline
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = make_pipeline(CodebookDistances(20, random_state=0), LogisticRegression()).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.9
    True
    >>> list(model[0].get_feature_names_out()[:3])
    ['centre0', 'centre1', 'centre2']
    """

    _joins = (np.minimum,)

    scale: str | None = "standard"

    def _vectors_of(self, bags: Bags | LazyBags, backend: Backend) -> Floats:
        X = resident_tensor(bags, backend, [self.space_]) if isinstance(bags, LazyBags) else None
        return super()._vectors_of(bags, backend) if X is None else self._on_device(X, bags)

    def _on_device(self, X: Any, bags: Any) -> Floats:
        """Return the vectors of bags whose instances lie on the device of the backend."""
        from gmil.engine.torch.passes import Stack, measure

        places = bags.bags_of_source()
        wanted = np.isin(np.arange(len(bags.source_offsets) - 1), places)
        stack = Stack(self.space_.on_device_of(X).apply, [self.cluster_centers_])
        _, sq_minima, _ = measure(X, bags.source_offsets, wanted, [stack])
        return np.sqrt(sq_minima[places])

    def _tables(self, X: Instances, offsets: Integers, backend: Backend) -> Sequence[Floats]:
        centers = self.cluster_centers_
        blocks = blocks_of_rows(X, offsets, X.shape[1] + len(centers))
        return [np.concatenate([backend.bag_min(distances(block, centers, backend), cut) for block, cut in blocks])]

    def _finish(self, tables: Sequence[Floats]) -> Floats:
        return tables[0]

    def _names(self, features: list[str]) -> list[str]:  # noqa: ARG002
        return [f"centre{k}" for k in range(len(self.cluster_centers_))]
