"""A linear classifier of bags encoded as differences from a codebook (miVLAD)."""

from __future__ import annotations

from typing import Any

from gmil.base import register
from gmil.methods.embeddings.embedded import EmbeddedClassifier, OfTransformer
from gmil.model_selection.shared_steps import share_steps
from gmil.parameters import parameter, parameters
from gmil.transform.vectors import VLAD


@register(method="mi-vlad")
@parameters
class VLADClassifier(EmbeddedClassifier):
    """miVLAD: a linear SVM on VLAD, a bag embedding by residuals to a codebook (Wei, Wu & Zhou).

    All training instances are clustered. A bag becomes the sum, for every cluster, of the differences between its
    instances of that cluster and the centre; the signed square roots of that are brought to length one.

    Parameters
    ----------
    n_clusters : int, default=2
        The number of centres.
    occupancy : bool, default=True
        Add the share of instances in every cluster to the vector. Without it, which is the method as published, bags
        whose instances lie close to different centres look alike.
    C : float, default=1.0
        The price of a training error.
    n_init : int, default=1
        Restarts of k-means; the clustering with the least inertia is kept.
    max_iter : int, default=300
        Iterations of Lloyd's algorithm at most.
    sample_size : int or None, default=10_000
        With more training instances than this, the clusters are learnt on a sample without replacement. None:
        always on all.
    tune : bool, default=False
        Choose C by 5-fold cross-validation inside the training bags: times 1/10, 1 or 10. Where a class has a single
        bag, nothing is chosen.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of k-means and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample, of k-means++ and of the linear classifier.

    Attributes
    ----------
    transformer_ : VLAD
        What makes the vectors.
    cluster_centers_ : array of shape (n_clusters, n_features)
        Centres of scaled features.
    coef_ : array of shape (n_columns, 1) or (n_columns, n_classes)
        The weights of the differences, cluster by cluster, and then of the shares where there are any.
    intercept_ : array of shape (1,) or (n_classes,)
    C_ : float
        The price in use.
    n_iter_ : int
        Iterations of Lloyd's algorithm.

    Notes
    -----
    Everything is linear in the number of instances. The vectors are dense, also where the instances are sparse.

    References
    ----------
    Wei, X.-S., Wu, J. and Zhou, Z.-H., "Scalable Algorithms for Multi-Instance Learning", IEEE Transactions on
    Neural Networks and Learning Systems 28(4), 2017.

    Examples
    --------
    >>> from gmil import VLADClassifier, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = VLADClassifier(5, random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    n_clusters: int = parameter(default=2, kw_only=False)
    occupancy: bool = True
    C: float = 1.0
    tune: bool = False
    n_init: int = 1
    max_iter: int = 300
    sample_size: int | None = 10_000
    random_state: Any = None

    _folds_together = share_steps
    _transformer = VLAD
    cluster_centers_ = OfTransformer()
    n_iter_ = OfTransformer()
    occupancy_ = OfTransformer()
