"""Linear classifiers of encoded bags, and the first of them: differences from a codebook (miVLAD)."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import Interval, StrOptions

from gmil.base import register
from gmil.classifiers.settings import make_generator, sample_rows
from gmil.engine import kmeans, resolve
from gmil.errors import BagValidationError
from gmil.rivals.encoding_vectors import normalize_vectors, vlad_vectors
from gmil.rivals.multiclass import MulticlassClassifier
from gmil.scaling import SCALINGS

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Instances, Integers

_SVM_ITERATIONS = 100_000

SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "C": [Interval(Real, 0, None, closed="neither")],
    "scale": [StrOptions(set(SCALINGS)), None],
    "sample_size": [Interval(Integral, 1, None, closed="left"), None],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "pos_label": [Real, str, "boolean", None],
    "n_jobs": [Integral, None],
    "backend": [StrOptions({"auto", "numpy", "native"})],
    "random_state": ["random_state"],
}


class EncodedClassifier(MulticlassClassifier):
    """A linear support vector machine on one vector per bag."""

    C: float
    sample_size: int | None
    n_jobs: int | None
    backend: str
    coef_: Floats
    intercept_: Floats

    def decision_function(self, X: Any) -> Floats:
        """Return how positive every bag is, (n_bags,), or how much of every class, (n_bags, n_classes).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        bags = self._check_new(X)
        decisions = self._encode(self._apply_space(bags.instances), bags.offsets) @ self.coef_ + self.intercept_
        return decisions if len(self.classes_) > 2 else decisions[:, 0]

    @abstractmethod
    def _apply_space(self, X: Instances) -> Instances:
        """Return instances in the space where they are compared with the codebook or the mixture."""

    @abstractmethod
    def _encode(self, instances: Instances, offsets: Integers) -> Floats:
        """Return the normalised vectors of bags, (n_bags, n_columns)."""

    def _fit_linear(self, vectors: Floats, labels: Integers, generator: np.random.Generator) -> None:
        seed = int(generator.integers(2**31 - 1))
        machine = LinearSVC(C=self.C, max_iter=_SVM_ITERATIONS, random_state=seed).fit(vectors, labels)
        self.coef_, self.intercept_ = machine.coef_.T.copy(), np.asarray(machine.intercept_)

    def _sample(
        self, instances: Instances, bags: Bags, labels: Integers, asked: int, name: str, generator: np.random.Generator
    ) -> Instances:
        """Return the instances that clusters or components are learnt from; too few for what is asked are refused."""
        rows = sample_rows(bags, labels, self.sample_size, "uniform", generator)
        sample = instances if rows is None else instances[rows]
        if asked > sample.shape[0]:
            msg = (
                f"{name}={asked} is above the number of instances to learn them from, {sample.shape[0]}. Ask for fewer."
            )
            raise BagValidationError(msg)
        return sample


@register(method="mi-vlad")
class VLADClassifier(EncodedClassifier):
    """Linear support vector machine on vectors of locally aggregated descriptors (miVLAD of Wei, Wu & Zhou).

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
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="minmax"
        Scaling of the features, fitted on the training instances.
    n_init : int, default=1
        Restarts of k-means; the clustering with the least inertia is kept.
    max_iter : int, default=300
        Iterations of Lloyd's algorithm at most.
    sample_size : int or None, default=10_000
        With more training instances than this, the clusters are learnt on a sample without replacement. None:
        always on all.
    pos_label : label or None, default=None
        The positive class of two; None is ``classes_[1]``.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
        results do not depend on it.
    backend : {"auto", "numpy", "native"}, default="auto"
        The implementation of k-means and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample, of k-means++ and of the linear classifier.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        Centres of scaled features.
    coef_ : array of shape (n_columns, 1) or (n_columns, n_classes)
        The weights of the differences, cluster by cluster, and then of the shares where there are any.
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "occupancy": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        **SHARED_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        occupancy: bool = True,
        C: float = 1.0,
        scale: str | None = "minmax",
        n_init: int = 1,
        max_iter: int = 300,
        sample_size: int | None = 10_000,
        pos_label: Any = None,
        n_jobs: int | None = None,
        backend: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.occupancy = occupancy
        self.C = C
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.sample_size = sample_size
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.backend = backend
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the centres and the classifier from bags and their labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : array of shape (n_bags,)
            One label per bag.
        """
        bags, labels = self._check_classes(X, y)
        generator = make_generator(self.random_state)
        instances = self._fit_scaled(bags)
        found = kmeans(
            self._sample(instances, bags, labels, self.n_clusters, "n_clusters", generator),
            self.n_clusters,
            backend=resolve(self.backend, self.n_jobs),
            generator=generator,
            n_init=self.n_init,
            max_iter=self.max_iter,
        )
        self.cluster_centers_, self.n_iter_ = found.centers, found.n_iter
        self._fit_linear(self._encode(instances, bags.offsets), labels, generator)
        return self

    def _apply_space(self, X: Instances) -> Instances:
        return self._scaled(X)

    def _encode(self, instances: Instances, offsets: Integers) -> Floats:
        backend = resolve(self.backend, self.n_jobs)
        centers = self.cluster_centers_
        return normalize_vectors(vlad_vectors(instances, offsets, centers, backend, occupancy=self.occupancy))
