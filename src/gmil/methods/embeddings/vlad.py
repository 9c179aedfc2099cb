"""Linear classifiers of encoded bags, and the first of them: differences from a codebook (miVLAD)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from gmil.base import register
from gmil.engine import kmeans, resolve
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Count, Kind
from gmil.methods.embeddings.embedded import EmbeddedClassifier
from gmil.methods.embeddings.vectors import normalize_vectors, vlad_vectors
from gmil.methods.shared.constraints import AT_LEAST_ONE
from gmil.sampling import sample_rows

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.shared.tunable import Training


class EncodedClassifier(EmbeddedClassifier):
    """A linear support vector machine on how the instances of a bag differ from a codebook or from a mixture.

    That is learnt from all training instances without their labels, once: the inner folds of ``tune`` share it.
    """

    sample_size: int | None
    _size: ClassVar[str]
    """The name of the parameter that says how large the codebook or the mixture is."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EmbeddedClassifier._parameter_constraints,
        "sample_size": [AT_LEAST_ONE, None],
        "max_iter": [AT_LEAST_ONE],
    }

    def _learn(self, training: Training) -> None:
        instances = self._fit_space(training)
        self._fit_codebook(self._sample(instances, training), training)
        vectors = self._encode(instances, training.bags.offsets)
        self._fit_linear(training, lambda _width, _known: vectors)

    def _vectors(self, bags: Bags) -> Floats:
        return self._encode(self._apply_space(bags.instances), bags.offsets)

    @abstractmethod
    def _fit_space(self, training: Training) -> Instances:
        """Learn the space where instances are compared with the codebook, and return the training instances there."""

    @abstractmethod
    def _apply_space(self, X: Instances) -> Instances:
        """Return instances in that space."""

    @abstractmethod
    def _fit_codebook(self, sample: Instances, training: Training) -> None:
        """Learn the codebook or the mixture from instances."""

    @abstractmethod
    def _encode(self, instances: Instances, offsets: Integers) -> Floats:
        """Return the normalised vectors of bags, (n_bags, n_columns)."""

    def _sample(self, instances: Instances, training: Training) -> Instances:
        """Return the instances that the codebook is learnt from; too few for what is asked are refused."""
        rows = sample_rows(training.bags, training.labels, self.sample_size, "uniform", training.generator)
        sample = instances if rows is None else instances[rows]
        asked = getattr(self, self._size)
        if asked > sample.shape[0]:
            msg = (
                f"{self._size}={asked} is above the number of instances to learn them from, {sample.shape[0]}. "
                "Ask for fewer."
            )
            raise BagValidationError(msg)
        return sample


@register(method="mi-vlad")
class VLADClassifier(EncodedClassifier):
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
    tune : bool, default=False
        Choose C by 5-fold cross-validation inside the training bags: times 1/10, 1 or 10. Where a class has a single
        bag, nothing is chosen.
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
        The positive class of two; None is ``classes_[1]``. Decisions are about ``classes_[1]`` in any case; a tie is
        not positive.
    n_jobs : int or None, default=None
        Threads of the compiled kernels. None is every core of this process, or what ``OMP_NUM_THREADS`` allows;
        results do not depend on it.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
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
    C_ : float
        The price in use.
    classes_ : array of shape (n_classes,)
    pos_label_ : label or None
        The positive class of two; None where there are more.
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

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "cluster_centers_": Array("K", "d"),
        "n_iter_": Count(),
    }

    _size = "n_clusters"
    _kept_parameters = ("occupancy",)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EncodedClassifier._parameter_constraints,
        "n_clusters": [AT_LEAST_ONE],
        "occupancy": ["boolean"],
        "n_init": [AT_LEAST_ONE],
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        occupancy: bool = True,
        C: float = 1.0,
        tune: bool = False,
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
        self.tune = tune
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.sample_size = sample_size
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.backend = backend
        self.random_state = random_state

    def _fit_space(self, training: Training) -> Instances:
        return self._fit_scaled(training.bags)

    def _apply_space(self, X: Instances) -> Instances:
        return self._scaled(X)

    def _fit_codebook(self, sample: Instances, training: Training) -> None:
        found = kmeans(
            sample,
            self.n_clusters,
            backend=training.backend,
            generator=training.generator,
            n_init=self.n_init,
            max_iter=self.max_iter,
        )
        self.cluster_centers_, self.n_iter_ = found.centers, found.n_iter

    def _encode(self, instances: Instances, offsets: Integers) -> Floats:
        backend = resolve(self.backend, self.n_jobs)
        centers = self.cluster_centers_
        return normalize_vectors(vlad_vectors(instances, offsets, centers, backend, occupancy=self.occupancy_))
