"""A linear classifier of bags encoded as gradients of a mixture of Gaussians (miFV)."""

from __future__ import annotations

from typing import Any

from gmil.base import register
from gmil.methods.embeddings.embedded import EmbeddedClassifier, OfTransformer
from gmil.model_selection.shared_steps import share_steps
from gmil.parameters import parameter, parameters
from gmil.transform.vectors import FisherVector


@register(method="mi-fv")
@parameters
class FisherVectorClassifier(EmbeddedClassifier):
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
    max_iter : int, default=300
        Iterations of expectation maximisation at most.
    sample_size : int or None, default=10_000
        With more training instances than this, the mixture is learnt on a sample without replacement. None: always
        on all.
    tune : bool, default=False
        Choose C by 5-fold cross-validation inside the training bags: times 1/10, 1 or 10. Where a class has a single
        bag, nothing is chosen.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of k-means, from which the mixture starts, and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample, of k-means++ and of the linear classifier.

    Attributes
    ----------
    transformer_ : FisherVector
        What makes the vectors.
    weights_ : array of shape (n_gaussians,)
    means_, variances_ : arrays of shape (n_gaussians, n_columns)
        Of scaled features, projected where there is a PCA.
    coef_ : array of shape (n_gaussians * 2 * n_columns, 1) or (n_gaussians * 2 * n_columns, n_classes)
        For every Gaussian the weights of the gradients with respect to its means, then to its deviations.
    intercept_ : array of shape (1,) or (n_classes,)
    C_ : float
        The price in use.
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

    n_gaussians: int = parameter(default=1, kw_only=False)
    n_components: float | str | None = "auto"
    C: float = 1.0
    tune: bool = False
    scale: str | None = "standard"
    max_iter: int = 300
    sample_size: int | None = 10_000
    random_state: Any = None

    _folds_together = share_steps
    _transformer = FisherVector
    weights_ = OfTransformer()
    means_ = OfTransformer()
    variances_ = OfTransformer()
    n_iter_ = OfTransformer()
