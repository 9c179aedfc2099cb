"""The space in which instances are clustered: scaled features, optionally projected on principal components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from gmil.errors import BagValidationError
from gmil.scaling import Scaling, apply_scaling, fit_scaling

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances


class FeatureSpace(NamedTuple):
    """Scaling, then projection; both fitted on training instances."""

    shift: Floats | None
    divisor: Floats | None
    unit_length: bool
    pca_mean: Floats | None
    pca_components: Floats | None  # (n_components, n_features)

    def apply(self, X: Instances) -> Instances:
        """Take instances into this space."""
        scaled = apply_scaling(X, Scaling(self.shift, self.divisor, self.unit_length))
        if self.pca_components is None or self.pca_mean is None:
            return scaled
        # Projecting the mean apart keeps sparse instances sparse.
        projected: Any = scaled @ self.pca_components.T
        return np.asarray(projected - self.pca_mean @ self.pca_components.T, dtype=X.dtype)


def fit_space(
    X: Instances, scale: str | None, n_components: float | None, generator: np.random.Generator
) -> tuple[FeatureSpace, Instances]:
    """Learn the space from training instances; return it and the instances in it."""
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
    seed = int(generator.integers(2**31 - 1))
    solver = "full" if isinstance(n_components, float) else "auto"
    pca = PCA(n_components, svd_solver=solver, random_state=seed).fit(scaled)
    space = FeatureSpace(*scaling, np.asarray(pca.mean_).ravel(), pca.components_)
    return space, space.apply(X)
