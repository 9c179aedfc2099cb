"""The space in which instances are clustered: features scaled, projected, whitened, embedded, each of them optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.errors import BagValidationError
from gmil.transform.scaling import ColumnSummary, Scaling, apply_scaling, fit_scaling

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances
    from gmil.transform.embedding import Embedding

METRICS = ("euclidean", "mahalanobis")


class FeatureSpace(NamedTuple):
    """Scaling, then projection, whitening and embedding; all fitted on training instances."""

    shift: Floats | None
    divisor: Floats | None
    unit_length: bool
    pca_mean: Floats | None
    pca_components: Floats | None  # (n_components, n_features)
    whitening: Floats | None = None  # (n_components, n_components), symmetric
    embedding: Embedding | None = None

    def is_same(self, other: FeatureSpace) -> bool:
        """Tell whether another space is this one, without looking at what was fitted."""
        nothing_fitted = all(part is None for space in (self, other) for part in space if not isinstance(part, bool))
        return self is other or (nothing_fitted and self.unit_length == other.unit_length)

    def is_more_than_scaling(self) -> bool:
        """Tell whether instances are projected, whitened or embedded."""
        return any(part is not None for part in (self.pca_components, self.whitening, self.embedding))

    def apply(self, X: Instances) -> Instances:
        """Take instances into this space."""
        taken = apply_scaling(X, Scaling(self.shift, self.divisor, self.unit_length))
        if self.pca_components is not None and self.pca_mean is not None:
            # Projecting the mean apart keeps sparse instances sparse.
            projected: Any = taken @ self.pca_components.T
            taken = np.asarray(projected - self.pca_mean @ self.pca_components.T, dtype=X.dtype)
        if self.whitening is not None:
            taken = np.asarray(_dense(taken) @ self.whitening, dtype=X.dtype)
        return taken if self.embedding is None else self.embedding.apply(taken)


def fitted_scaling(summary: ColumnSummary | None, scale: str | None) -> FeatureSpace:
    """Return the space of a scaling; one that looks at instances needs their summary."""
    scaling = fit_scaling(summary, scale) if summary is not None else fit_scaling(np.empty((0, 0)), scale)
    return FeatureSpace(*scaling, None, None)


def fit_space(
    X: Instances,
    scale: str | None,
    n_components: float | None,
    generator: np.random.Generator,
    metric: str = "euclidean",
) -> tuple[FeatureSpace, Instances]:
    """Learn the space from training instances; return it and the instances in it."""
    space, instances = _fit_linear_space(X, scale, n_components, generator)
    if metric == "euclidean":
        return space, instances
    if sp.issparse(instances):
        msg = (
            "metric='mahalanobis' needs dense instances, sparse ones are not supported: whitening would fill every "
            "zero. Pass dense bags, or a whole number as n_components."
        )
        raise BagValidationError(msg)
    whitening = whitening_map(instances)
    return space._replace(whitening=whitening), np.asarray(instances @ whitening, dtype=X.dtype)


def _fit_linear_space(
    X: Instances, scale: str | None, n_components: float | None, generator: np.random.Generator
) -> tuple[FeatureSpace, Instances]:
    scaling = fit_scaling(X, scale)
    scaled = apply_scaling(X, scaling)
    if n_components is None:
        return FeatureSpace(*scaling, None, None), scaled
    most = min(X.shape)
    if n_components > most:
        msg = (
            f"n_components={n_components} is above what the data allow: {X.shape[0]} training instances of "
            f"{X.shape[1]} features have at most {most} components."
        )
        raise BagValidationError(msg)
    if sp.issparse(scaled) and isinstance(n_components, float):
        msg = f"n_components={n_components}, a share of the variance, needs dense instances. Pass a whole number."
        raise BagValidationError(msg)
    from sklearn.decomposition import PCA  # a quarter of the time of importing gmil, and seldom needed

    seed = int(generator.integers(2**31 - 1))
    solver = "full" if isinstance(n_components, float) else "auto"
    pca = PCA(n_components, svd_solver=solver, random_state=seed).fit(scaled)
    space = FeatureSpace(*scaling, np.asarray(pca.mean_).ravel(), pca.components_)
    return space, space.apply(X)


def whitening_map(X: Floats) -> Floats:
    """Return the symmetric map S^-1/2, after which Euclidean distances are Mahalanobis distances.

    S is the covariance of the instances, shrunk towards a multiple of the identity as Ledoit and Wolf do: with few
    instances it stays invertible, with none that differ it is left out.
    """
    from sklearn.covariance import LedoitWolf  # slow to import, and seldom needed

    covariance = LedoitWolf().fit(np.asarray(X, dtype=np.float64)).covariance_
    variances, axes = np.linalg.eigh(covariance)
    if variances[-1] <= 0:
        return np.eye(X.shape[1])
    variances = np.maximum(variances, variances[-1] * len(variances) * np.finfo(np.float64).eps)
    whitening: Floats = (axes / np.sqrt(variances)) @ axes.T
    return whitening


def _dense(X: Instances) -> Floats:
    return X.toarray() if sp.issparse(X) else X
