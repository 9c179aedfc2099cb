"""MI-ClusterRegress: one linear model for every cluster of instances (Wagstaff, Lane and Roper 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.linear_model import RidgeCV

from gmil.base import register
from gmil.engine import kmeans, resolve
from gmil.io.model_files.schema import Array, Kind
from gmil.parameters import ABOVE_ZERO, AT_LEAST_ONE, parameter, parameters
from gmil.sampling import make_generator
from gmil.targets.references import PENALTIES, ScaledRegressor
from gmil.transform.space import dense, fit_scaling

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats


@register(method="cluster-regressor")
@parameters
class ClusterRegressor(ScaledRegressor):
    """MI-ClusterRegress: a codebook of instances, and one linear model for every cluster, of which the best is kept.

    In each cluster a bag is the mean of its instances, weighted by how much they belong to it. On these a ridge
    regression is fitted; the cluster whose model predicts left-out bags best tells the values of new bags.

    Parameters
    ----------
    n_clusters : int, default=5
        The size of the codebook.
    sharpness : float, default=1.0
        How sure instances belong to their nearest centre: one over the mean squared distance to it is multiplied by
        this.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances.
    n_jobs : int or None, default=None
        Threads of the compiled kernels.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of distances and clusters.
    random_state : int, RandomState instance or None, default=None
        Seed of the clusters.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    width_ : array of shape (1,)
        The squared distance over which the membership of an instance falls.
    chosen_ : array of shape (1,)
        The number of the cluster that tells the value.
    coef_ : array of shape (n_features, n_targets)
    intercept_ : array of shape (n_targets,)
    n_features_in_ : int

    References
    ----------
    K. L. Wagstaff, T. Lane and A. Roper (2008), Multiple-instance regression with structured data, ICDM workshops.

    Examples
    --------
    >>> from gmil import ClusterRegressor, make_bags
    >>> bags, y = make_bags(160, target="regression", random_state=0, return_X_y=True)
    >>> ClusterRegressor(random_state=0).fit(bags[:120], y[:120]).score(bags[120:], y[120:]) > 0.3
    True
    """

    n_clusters: int = parameter(default=5, rules=[AT_LEAST_ONE], kw_only=False)
    sharpness: float = parameter(default=1.0, rules=[ABOVE_ZERO])
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "cluster_centers_": Array("K", "d"),
        "width_": Array(1, above=0),
        "chosen_": Array(1, dtype="i", at_least=0, below="K"),
        "coef_": Array("d", "P"),
        "intercept_": Array("P"),
    }

    def _learn(self, bags: Bags, values: Floats) -> None:
        self.space_ = fit_scaling(bags.instances, self.scale)
        scaled, backend = dense(self.space_.apply(bags.instances)), resolve(self.backend, self.n_jobs)
        n_clusters = min(self.n_clusters, len(np.unique(scaled, axis=0)))
        found = kmeans(scaled, n_clusters, backend=backend, generator=make_generator(self.random_state), n_init=3)
        self.cluster_centers_ = np.asarray(found.centers, dtype=np.float64)
        nearest = backend.sq_distances(scaled, self.cluster_centers_).min(axis=1).mean()
        self.width_ = np.array([float(nearest) / self.sharpness or 1.0])
        memberships = self._memberships(scaled)
        models = [RidgeCV(PENALTIES).fit(_in_cluster(scaled, bags, own), values) for own in memberships.T]
        best = int(np.argmax([np.mean(model.best_score_) for model in models]))
        self.chosen_ = np.array([best])
        self.coef_ = models[best].coef_.reshape(values.shape[1], -1).T.copy()
        self.intercept_ = np.ravel(models[best].intercept_)

    def _memberships(self, scaled: Floats) -> Floats:
        """Return how much instances belong to every cluster, (n_instances, n_clusters)."""
        squares = resolve(self.backend, self.n_jobs).sq_distances(scaled, self.cluster_centers_)
        closeness = np.exp((squares.min(axis=1, keepdims=True) - squares) / self.width_[0])
        return np.asarray(closeness / closeness.sum(axis=1, keepdims=True), dtype=np.float64)

    def _values(self, bags: Bags) -> Floats:
        scaled = dense(self.space_.apply(bags.instances))
        memberships = self._memberships(scaled)[:, self.chosen_[0]]
        return _in_cluster(scaled, bags, memberships) @ self.coef_ + self.intercept_


def _in_cluster(scaled: Floats, bags: Bags, memberships: Floats) -> Floats:
    """Return the mean of the instances of every bag, weighted by their memberships."""
    weights = np.maximum(memberships, np.finfo(np.float32).tiny)[:, None]
    return np.asarray(
        np.add.reduceat(weights * scaled, bags.offsets[:-1]) / np.add.reduceat(weights, bags.offsets[:-1])
    )
