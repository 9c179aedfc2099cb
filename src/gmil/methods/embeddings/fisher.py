"""A linear classifier of bags encoded as gradients of a mixture of Gaussians (miFV)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import scipy.sparse as sp

from gmil.base import register
from gmil.compat import StrOptions
from gmil.engine import resolve
from gmil.io.model_files.schema import Array, Count, Kind
from gmil.methods.embeddings.mixtures import Mixture
from gmil.methods.embeddings.vectors import fisher_vectors, fit_mixture, normalize_vectors
from gmil.methods.embeddings.vlad import EncodedClassifier
from gmil.methods.shared.constraints import AT_LEAST_ONE, INSIDE_UNIT
from gmil.methods.shared.sparse_parts import dense
from gmil.transform.space import fit_space, fitted_space

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.shared.tunable import Training

_SHARE_OF_VARIANCE = 0.95
_SPARSE_DIRECTIONS = 100
_DENSE_ENTRIES = 1 << 24
"""Up to this many entries sparse instances are made dense for the principal components: 128 MiB."""


@register(method="mi-fv")
class FisherVectorClassifier(EncodedClassifier):
    """miFV: a linear SVM on Fisher vectors, a bag embedding by a Gaussian mixture (Wei, Wu & Zhou).

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
    C : float, default=1.0
        The price of a training error.
    tune : bool, default=False
        Choose C by 5-fold cross-validation inside the training bags: times 1/10, 1 or 10. Where a class has a single
        bag, nothing is chosen.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="standard"
        Scaling of the features, fitted on the training instances.
    max_iter : int, default=300
        Iterations of expectation maximisation at most.
    sample_size : int or None, default=10_000
        With more training instances than this, the mixture is learnt on a sample without replacement. None: always
        on all.
    pos_label : label or None, default=None
        The positive class of two; None is ``classes_[1]``. Decisions are about ``classes_[1]`` in any case; a tie is
        not positive.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
        results do not depend on it.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of k-means, from which the mixture starts, and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample, of k-means++ and of the linear classifier.

    Attributes
    ----------
    weights_ : array of shape (n_gaussians,)
    means_, variances_ : arrays of shape (n_gaussians, n_columns)
        Of scaled features, projected where there is a PCA.
    coef_ : array of shape (n_gaussians * 2 * n_columns, 1) or (n_gaussians * 2 * n_columns, n_classes)
        For every Gaussian the weights of the gradients with respect to its means, then to its deviations.
    intercept_ : array of shape (1,) or (n_classes,)
    C_ : float
        The price in use.
    classes_ : array of shape (n_classes,)
    pos_label_ : label or None
        The positive class of two; None where there are more.
    n_features_in_ : int
    n_iter_ : int
        Iterations of expectation maximisation.

    Notes
    -----
    Everything but the principal components is linear in the number of instances and of columns.

    References
    ----------
    Wei, X.-S., Wu, J. and Zhou, Z.-H., "Scalable Algorithms for Multi-Instance Learning", IEEE Transactions on
    Neural Networks and Learning Systems 28(4), 2017.

    Examples
    --------
    >>> from gmil import FisherVectorClassifier, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = FisherVectorClassifier(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    _size = "n_gaussians"

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "weights_": Array("K", at_least=0),
        "means_": Array("K", "e"),
        "variances_": Array("K", "e", above=0),
        "space_": fitted_space(n_components="e"),
        "n_iter_": Count(),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EncodedClassifier._parameter_constraints,
        "n_gaussians": [AT_LEAST_ONE],
        "n_components": [
            AT_LEAST_ONE,
            INSIDE_UNIT,
            StrOptions({"auto"}),
            None,
        ],
    }

    def __init__(
        self,
        n_gaussians: int = 1,
        *,
        n_components: float | str | None = "auto",
        C: float = 1.0,
        tune: bool = False,
        scale: str | None = "standard",
        max_iter: int = 300,
        sample_size: int | None = 10_000,
        pos_label: Any = None,
        n_jobs: int | None = None,
        backend: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_gaussians = n_gaussians
        self.n_components = n_components
        self.C = C
        self.tune = tune
        self.scale = scale
        self.max_iter = max_iter
        self.sample_size = sample_size
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.backend = backend
        self.random_state = random_state

    def _fit_codebook(self, sample: Instances, training: Training) -> None:
        mixture = fit_mixture(sample, self.n_gaussians, self.max_iter, training.backend, training.generator)
        self.weights_, self.means_, self.variances_, self.n_iter_ = mixture

    def _fit_space(self, training: Training) -> Instances:
        X, n_components = training.bags.instances, self.n_components
        if sp.issparse(X) and X.shape[0] * X.shape[1] <= _DENSE_ENTRIES:
            X = X.toarray()
        if isinstance(n_components, str):
            n_components = _automatic_components(X)
        self.space_, instances = fit_space(X, self.scale, n_components, training.generator)
        return dense(instances)

    def _apply_space(self, X: Instances) -> Instances:
        return dense(self._scaled(X))

    def _encode(self, instances: Instances, offsets: Integers) -> Floats:
        mixture = Mixture(self.weights_, self.means_, self.variances_, self.n_iter_)
        return normalize_vectors(fisher_vectors(instances, offsets, mixture, resolve(self.backend, self.n_jobs)))


def _automatic_components(X: Instances) -> float | None:
    if not sp.issparse(X):
        # A share of no variance at all is no number.
        return _SHARE_OF_VARIANCE if (X[0] != X).any() else None
    # The solver for sparse data cannot give all components.
    return min(_SPARSE_DIRECTIONS, min(X.shape) - 1) or None
