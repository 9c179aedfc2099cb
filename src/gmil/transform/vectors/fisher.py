"""Fisher vectors: gradients of the likelihood of a bag under a mixture of Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from gmil.base import register
from gmil.engine import kmeans
from gmil.io.model_files.schema import Array, Count, Kind
from gmil.parameters import AT_LEAST_ONE, INSIDE_UNIT, parameter, parameters
from gmil.transform.space import dense, fit_scaling, fitted_space, with_components
from gmil.transform.vectors.base import (
    CodebookVectorizer,
    dense_blocks,
    join_means,
    with_sizes,
)
from gmil.transform.vectors.mixtures import Mixture, fit_from_clusters
from gmil.transform.vectors.vlad import normalize_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.transform.space import Space

_SHARE_OF_VARIANCE = 0.95
_SPARSE_DIRECTIONS = 100
_DENSE_ENTRIES = 1 << 24
"""Up to this many entries sparse instances are made dense for the principal components: 128 MiB."""

_LEAST_VARIANCE = 1e-6
"""Relative to the mean variance of the features: what a component may not fall below."""


@register()
@parameters
class FisherVector(CodebookVectorizer):
    """Turn a bag into a Fisher vector: gradients of a mixture of Gaussians (miFV of Wei, Wu & Zhou).

    A mixture of Gaussians is fitted to all training instances, on their principal components. A bag becomes the
    gradient of the likelihood of its instances with respect to means and deviations; the signed square roots of that
    are brought to length one.

    Parameters
    ----------
    n_gaussians : int, default=1
        The number of Gaussians. One compares the mean and the spread of a bag with those of all instances.
    n_components : int, float, "auto" or None, default="auto"
        Principal components kept after scaling: a number, or the share of the variance to keep. "auto" keeps 95 % of
        the variance (of large sparse data 100 components). None: no PCA, and sparse instances become dense.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances.
    max_iter : int, default=300
        Iterations of expectation maximisation at most.
    sample_size : int or None, default=10_000
        With more training instances than this, the mixture is learnt on a sample without replacement. None: always
        on all.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
        results do not depend on it.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of k-means, from which the mixture starts, and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample and of k-means++.

    Attributes
    ----------
    weights_ : array of shape (n_gaussians,)
    means_, variances_ : arrays of shape (n_gaussians, n_columns)
        Of scaled features, projected where there is a PCA.
    space_ : Space
        The fitted scaling and projection.
    n_features_in_ : int
    n_iter_ : int
        Iterations of expectation maximisation.

    See Also
    --------
    FisherVectorClassifier : These vectors and a linear support vector machine, as one estimator.

    Notes
    -----
    Everything but the principal components is linear in the number of instances and of columns. Where bags are read
    in blocks, the principal components are those of the sample.

    References
    ----------
    Wei, X.-S., Wu, J. and Zhou, Z.-H., "Scalable Algorithms for Multi-Instance Learning", IEEE Transactions on
    Neural Networks and Learning Systems 28(4), 2017.

    Examples
    --------
    >>> from gmil import FisherVector, make_bags
    >>> bags, _ = make_bags(100, n_features=4, random_state=0, return_X_y=True)
    >>> fisher = FisherVector(n_components=2, random_state=0).set_output(transform="pandas")
    >>> list(fisher.fit_transform(bags).columns)
    ['mean0(pc0)', 'mean0(pc1)', 'sd0(pc0)', 'sd0(pc1)']
    """

    _size = "n_gaussians"
    _space_parameters = ("scale", "n_components")

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "weights_": Array("K", at_least=0),
        "means_": Array("K", "e"),
        "variances_": Array("K", "e", above=0),
        "space_": fitted_space(n_components="e"),
        "n_iter_": Count(),
    }

    _joins = (join_means,)

    n_gaussians: int = parameter(default=1, rules=[AT_LEAST_ONE], kw_only=False)
    n_components: float | str | None = parameter(default="auto", rules=[AT_LEAST_ONE, INSIDE_UNIT, {"auto"}, None])
    scale: str | None = "standard"
    max_iter: int = 300
    sample_size: int | None = 10_000
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    def _fit_space(self, X: Instances, scaling: Space | None, generator: np.random.Generator) -> tuple[Space, Floats]:
        if sp.issparse(X) and X.shape[0] * X.shape[1] <= _DENSE_ENTRIES:
            X = X.toarray()
        n_components = _automatic_components(X) if isinstance(self.n_components, str) else self.n_components
        space = fit_scaling(X, self.scale) if scaling is None else scaling
        space = space if n_components is None else with_components(space, X, n_components, generator)
        return space, dense(space.apply(X))

    def _fit_codebook(self, sample: Instances, backend: Backend, generator: np.random.Generator) -> None:
        mixture = fit_mixture(sample, self.n_gaussians, self.max_iter, backend, generator)
        self.weights_, self.means_, self.variances_, self.n_iter_ = mixture

    def _tables(self, X: Instances, offsets: Integers, backend: Backend) -> Sequence[Floats]:
        mixture = Mixture(self.weights_, self.means_, self.variances_, self.n_iter_)
        return [with_sizes(fisher_vectors(X, offsets, mixture, backend), offsets)]

    def _finish(self, tables: Sequence[Floats]) -> Floats:
        return normalize_vectors(tables[0][:, :-1])

    def _names(self, features: list[str]) -> list[str]:
        n_gaussians, n_columns = self.means_.shape
        axes = features if self.space_.pca_components is None else [f"pc{i}" for i in range(n_columns)]
        return [f"{what}{k}({axis})" for k in range(n_gaussians) for what in ("mean", "sd") for axis in axes]


def _automatic_components(X: Instances) -> float | None:
    if not sp.issparse(X):
        # A share of no variance at all is no number.
        return _SHARE_OF_VARIANCE if (X[0] != X).any() else None
    # The solver for sparse data cannot give all components.
    return min(_SPARSE_DIRECTIONS, min(X.shape) - 1) or None


def fisher_vectors(X: Instances, offsets: Integers, mixture: Mixture, backend: Backend) -> Floats:
    """Return the gradients of the log-likelihood of every bag, (n_bags, n_components * 2 * n_features).

    For every component: with respect to its means, then to its deviations, each in units of its Fisher information
    and divided by the size of the bag.
    """
    parts = []
    for block, cut in dense_blocks(X, offsets):
        shares = responsibilities(block, mixture)
        gradients = []
        for k, weight in enumerate(mixture.weights):
            z = _standardized(block, mixture, k)
            share = shares[:, k, None]
            gradients += [share * z / np.sqrt(weight), share * (z**2 - 1) / np.sqrt(2 * weight)]
        parts.append(np.concatenate([backend.bag_mean(part, cut) for part in gradients], axis=1))
    return np.concatenate(parts)


def responsibilities(X: Floats, mixture: Mixture) -> Floats:
    """Return the probability of every component given an instance, (n_instances, n_components)."""
    logs = [
        np.log(weight) - (_standardized(X, mixture, k) ** 2).sum(axis=1) / 2 - np.log(mixture.variances[k]).sum() / 2
        for k, weight in enumerate(mixture.weights)
    ]
    return np.asarray(softmax(np.stack(logs, axis=1), axis=1))


def _standardized(X: Floats, mixture: Mixture, k: int) -> Floats:
    return np.asarray((X - mixture.means[k]) / np.sqrt(mixture.variances[k]))


def fit_mixture(
    X: Floats, n_components: int, max_iter: int, backend: Backend, generator: np.random.Generator
) -> Mixture:
    """Fit a mixture of Gaussians that starts from the centres, sizes and variances of clusters."""
    X = X.astype(np.float64, copy=False)
    floor = max(_LEAST_VARIANCE * float(X.var(axis=0).mean()), float(np.finfo(np.float64).tiny) ** 0.5)
    clusters = kmeans(X, n_components, backend=backend, generator=generator)
    members = [clusters.labels == k for k in range(n_components)]
    variances = np.stack([X[rows].var(axis=0) if rows.any() else X.var(axis=0) for rows in members]) + floor
    return fit_from_clusters(X, clusters, floor, max_iter=max_iter, precisions_init=1 / variances)
