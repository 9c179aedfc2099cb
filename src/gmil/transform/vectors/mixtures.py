"""Mixtures of Gaussians with diagonal covariance that start from a clustering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats
    from gmil.engine.kmeans import KMeansResult


class Mixture(NamedTuple):
    """Gaussians with diagonal covariance, and how many iterations found them."""

    weights: Floats  # (n_components,)
    means: Floats  # (n_components, n_features)
    variances: Floats  # (n_components, n_features)
    n_iter: int


def fit_from_clusters(X: Floats, clusters: KMeansResult, floor: float, **options: Any) -> Mixture:
    """Fit one Gaussian for every cluster, none narrower than the variance ``floor``; a start is its centre and size.

    ``options`` are further ones of scikit-learn's ``GaussianMixture``. Without ``precisions_init`` it clusters once
    more for the first variances, and needs a ``random_state``.
    """
    from sklearn.mixture import GaussianMixture  # slow to import, and seldom needed

    n_components = len(clusters.centers)
    # A cluster may be empty where instances are equal, but no weight may be zero.
    counts = np.maximum(np.bincount(clusters.labels, minlength=n_components), 1)
    model = GaussianMixture(
        n_components,
        covariance_type="diag",
        reg_covar=floor,
        weights_init=counts / counts.sum(),
        means_init=clusters.centers,
        **options,
    ).fit(X)
    return Mixture(model.weights_, model.means_, model.covariances_, int(model.n_iter_))
