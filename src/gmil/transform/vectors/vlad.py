"""Vectors of locally aggregated descriptors: how the instances of a bag differ from their nearest centres."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gmil.base import register
from gmil.parameters import parameter, parameters
from gmil.transform.vectors.base import CentersVectorizer, dense_blocks, join_means, with_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers


@register()
@parameters
class VLAD(CentersVectorizer):
    """Turn a bag into a vector of locally aggregated descriptors (VLAD; miVLAD of Wei, Wu & Zhou).

    All training instances are clustered. A bag becomes the sum, for every cluster, of the differences between its
    instances of that cluster and the centre; the signed square roots of that are brought to length one.

    Parameters
    ----------
    n_clusters : int, default=2
        The number of centres.
    occupancy : bool, default=True
        Add the share of instances in every cluster to the vector. Without it, which is the method as published, bags
        whose instances lie close to different centres look alike.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="minmax"
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
        The implementation of k-means and of reductions over bags.
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
    VLADClassifier : These vectors and a linear support vector machine, as one estimator.

    Notes
    -----
    Everything is linear in the number of instances. The vectors are dense, also where the instances are sparse.

    References
    ----------
    Wei, X.-S., Wu, J. and Zhou, Z.-H., "Scalable Algorithms for Multi-Instance Learning", IEEE Transactions on
    Neural Networks and Learning Systems 28(4), 2017.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from gmil import VLAD, make_bags
    >>> bags, y = make_bags(100, separation=8, n_features=2, random_state=0, return_X_y=True)
    >>> model = make_pipeline(VLAD(2, random_state=0), LogisticRegression()).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    >>> list(model[0].get_feature_names_out())
    ['centre0(x0)', 'centre0(x1)', 'centre1(x0)', 'centre1(x1)', 'share(centre0)', 'share(centre1)']
    """

    _joins = (join_means,)
    _kept_parameters = ("occupancy",)

    n_clusters: int = parameter(default=2, kw_only=False)
    occupancy: bool = parameter(default=True, rules=["boolean"])
    scale: str | None = "minmax"

    def _tables(self, X: Instances, offsets: Integers, backend: Backend) -> Sequence[Floats]:
        vectors = vlad_vectors(X, offsets, self.cluster_centers_, backend, occupancy=self.occupancy_)
        return [with_sizes(vectors, offsets)]

    def _finish(self, tables: Sequence[Floats]) -> Floats:
        return normalize_vectors(tables[0][:, :-1])

    def _names(self, features: list[str]) -> list[str]:
        centers = [f"centre{k}" for k in range(len(self.cluster_centers_))]
        shares = [f"share({center})" for center in centers] if self.occupancy_ else []
        return [f"{center}({feature})" for center in centers for feature in features] + shares


def vlad_vectors(
    X: Instances, offsets: Integers, centers: Floats, backend: Backend, *, occupancy: bool = False
) -> Floats:
    """Return differences between instances and their nearest centre, (n_bags, n_centers * n_features).

    They are summed over the instances nearest to each centre and divided by the size of the bag. With ``occupancy``
    the shares of instances nearest to each centre follow, n_centers more columns.
    """
    parts = []
    for block, cut in dense_blocks(X, offsets):
        nearest, _ = backend.assign(block, centers)
        own = nearest[:, None] == np.arange(len(centers))  # (n_instances, n_centers)
        columns = [backend.bag_mean((block - center) * own[:, [k]], cut) for k, center in enumerate(centers)]
        if occupancy:
            columns.append(backend.bag_mean(own.astype(block.dtype), cut))
        parts.append(np.concatenate(columns, axis=1))
    return np.concatenate(parts)


def normalize_vectors(vectors: Floats) -> Floats:
    """Return signed square roots at unit length; a zero vector stays zero."""
    roots = np.sign(vectors) * np.sqrt(np.abs(vectors))
    lengths = np.linalg.norm(roots, axis=1, keepdims=True)
    return np.asarray(roots / np.where(lengths > 0, lengths, 1))
