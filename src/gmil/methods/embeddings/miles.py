"""MILES: a bag as its similarities to all training instances, and a linear classifier that keeps few of them."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gmil.base import register
from gmil.engine import resolve
from gmil.engine.reference import dense_rows
from gmil.io.model_files.schema import Count, Kind
from gmil.methods.embeddings.embedded import EmbeddedClassifier, OfTransformer
from gmil.methods.embeddings.l1_machine import L1Machine
from gmil.model_selection.shared_steps import share_steps
from gmil.parameters import parameter, parameters
from gmil.transform.vectors import InstanceSimilarities
from gmil.transform.vectors.similarities import nearest_squares

if TYPE_CHECKING:
    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers

_TIE = 1e-9
"""How far apart, relative to themselves, two squared distances may be and still count as equal."""

_GAMMA_FACTORS = (1 / 3, 1.0, 3.0)


@register(method="miles")
@parameters
class MILES(EmbeddedClassifier):
    """MILES: bag embedding by similarity to training instances, and a 1-norm SVM (Chen, Bi & Wang).

    A bag becomes a vector: to every training instance the similarity exp(-gamma d^2) of the nearest instance of the
    bag. A linear support vector machine with a penalty on the sum of absolute weights keeps few of them.

    Parameters
    ----------
    gamma : float or "median", default="median"
        One over the squared width of the similarity. "median" is three over the median squared distance between two
        training instances.
    C : float, default=1.0
        The price of a training error; a low one keeps fewer instances.
    max_prototypes : int or None, default=10_000
        With more training instances than this, similarities are to a sample of them, drawn without replacement.
        None: always to all.
    max_iter : int, default=100_000
        Newton steps of the linear classifier at most.
    tune : bool, default=False
        Choose gamma and C by 5-fold cross-validation inside the training bags: gamma times 1/3, 1 or 3, C times
        1/10, 1 or 10. Where a class has a single bag, nothing is chosen.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of distances and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of samples and of inner folds.

    Attributes
    ----------
    transformer_ : InstanceSimilarities
        What makes the vectors, with the prototypes that were kept.
    prototypes_ : array of shape (n_prototypes, n_features)
        The training instances with a weight, scaled.
    coef_ : array of shape (n_prototypes, 1) or (n_prototypes, n_classes)
        Their weights.
    intercept_ : array of shape (1,) or (n_classes,)
    gamma_ : float
        The width in use.
    C_ : float
        The price in use.
    n_iter_ : int
        Newton steps of the linear classifier.

    Notes
    -----
    Training costs O(N^2 d) for N instances (O(N max_prototypes d) for many), a new bag only the prototypes that were
    kept. More than two classes are each set against the others. The errors are squared, not a linear program.

    References
    ----------
    Chen, Y., Bi, J. and Wang, J. Z., "MILES: Multiple-Instance Learning via Embedded Instance Selection", IEEE
    Transactions on Pattern Analysis and Machine Intelligence 28(12), 2006.

    Examples
    --------
    >>> from gmil import MILES, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = MILES(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.9
    True
    """

    gamma: float | str = parameter(default="median", kw_only=False)
    C: float = parameter(default=1.0, kw_only=False)
    tune: bool = False
    max_prototypes: int | None = 10_000
    max_iter: int = 100_000
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "n_iter_": Count(),
    }

    _folds_together = share_steps
    _transformer = InstanceSimilarities
    prototypes_ = OfTransformer()
    gamma_ = OfTransformer()

    def _learn(self, training: Training) -> None:
        bags, backend = training.bags, training.backend
        fitted = self._new_transformer()

        def fit() -> tuple[InstanceSimilarities, Integers | None, Floats]:
            instances, rows = fitted._fit_prototypes(bags, backend, training.generator)
            return fitted, rows, nearest_squares(instances, bags.offsets, fitted.prototypes_, backend)

        found, rows, squares = self._steps.once(("squares", fitted._key()), fit, training.generator)
        self.transformer_ = similarities = copy(found)  # of which prototypes will be dropped
        bag_of = bags.segment_ids if rows is None else bags.segment_ids[rows]

        def embed(width: float, known: Booleans) -> Floats:
            return np.exp(-width * squares[:, known[bag_of]])

        similarities.gamma_, machine = self._fit_linear(training, embed, similarities.gamma_, _GAMMA_FACTORS)
        self.n_iter_ = machine.n_iter_
        self._keep_weighted(similarities)

    def score_instances(self, X: Any) -> Floats:
        """Return what every instance contributes: the terms of the prototypes that it is nearest to in its bag.

        The scores of a bag and the intercept add up to its decision. Equally near instances share a term.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Aligned with the instances of all bags, one bag after the other.
        """
        bags = self._check_new(X)
        instances = self.transformer_.space_.apply(bags.instances)
        backend = resolve(self.backend, self.n_jobs)
        squares = backend.sq_distances(instances, self.prototypes_)
        shares = nearest_shares(squares, bags.offsets, backend)
        scores = (shares * np.exp(-self.gamma_ * squares)) @ self.coef_
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def _machine(self, price: float, seed: int) -> L1Machine:  # noqa: ARG002  it draws nothing
        return L1Machine(price, self.max_iter)

    def _keep_weighted(self, similarities: InstanceSimilarities) -> None:
        """Keep the prototypes that have a weight; one without weight where none has, so that there is one."""
        kept = np.flatnonzero(self.coef_.any(axis=1))
        kept = kept if len(kept) else np.array([0])
        similarities.prototypes_, self.coef_ = dense_rows(similarities.prototypes_, kept), self.coef_[kept]


def nearest_shares(squares: Floats, offsets: Integers, backend: Backend) -> Floats:
    """Return shares, (n_instances, n_prototypes): one for the nearest instance of a bag, split among equals."""
    sizes = np.diff(offsets)
    smallest = np.repeat(backend.bag_min(squares, offsets), sizes, axis=0)
    nearest = (squares <= smallest * (1 + _TIE)).astype(np.float64)
    return nearest / np.repeat(backend.bag_mean(nearest, offsets) * sizes[:, None], sizes, axis=0)
