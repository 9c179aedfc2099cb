"""What every classifier with two codebooks does once it is fitted: decide, score, explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from gmil.base import BagClassifier
from gmil.engine import distances, resolve
from gmil.greedy import voting
from gmil.greedy.bag_tables import measure_bags
from gmil.greedy.clustering import Clustering
from gmil.greedy.explanation import explain_problem
from gmil.io.model_files.schema import Array, Either, Kind, Number, OrNone
from gmil.scale import LazyBags
from gmil.transform.space import SpaceMixin
from gmil.witnesses.explanation import common_parts, explained_column, one_bag

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.witnesses import Explanation


class CodebookClassifier(SpaceMixin, BagClassifier):
    """A classifier whose fitted attributes are those of `gmil.GMIL`."""

    scale: str | None
    backend: str
    n_jobs: int | None
    pos_label: Any
    distance_: str
    rule_: str
    cluster_centers_: Floats
    positive_bins_: Integers
    negative_bins_: Integers
    threshold_: Any
    slope_: float

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "cluster_centers_": Array("K", "e"),
        "positive_bins_": Array("p", dtype="i", at_least=0, below="K", by_class=True),
        "negative_bins_": Array("q", dtype="i", at_least=0, below="K", by_class=True),
        "threshold_": OrNone(Either(Number(), Array("C"))),
        "slope_": Number(),
    }

    def _decide(self, X: Any) -> Floats:
        """Return dist(B, C-) - dist(B, C+), or tau - dist(B, C+): above zero for positive bags."""
        if isinstance(X, LazyBags):
            return self._measure_lazily(self._check_lazy_new(X), voting.Voter.bag_decisions)
        bags = self._check_new(X)
        backend = resolve(self.backend, self.n_jobs)
        return self._voter().bag_decisions(self._new_distances(bags, backend), bags.offsets, backend)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class for every bag, (n_bags, n_classes).

        It is a sigmoid (a softmax for more than two classes) of the decision times a slope that was fitted to
        the training bags; there is no intercept, so that one half means a decision of zero.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self._probabilities_of(self.decision_function(X))

    def _probabilities_of(self, decisions: Floats) -> Floats:
        logits = decisions * self.slope_
        if logits.ndim == 2:
            return np.asarray(softmax(logits, axis=1))
        return np.column_stack([expit(-logits), expit(logits)])

    def score_instances(self, X: Any) -> Floats:
        """Return how positive every instance is: d(x, C-) - d(x, C+), or tau - d(x, C+).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Aligned with the instances of all bags, one bag after the other.
        """
        check_is_fitted(self)
        voter, backend = self._voter(), resolve(self.backend, self.n_jobs)

        def score(bags: Bags) -> Floats:
            return voter.instance_decisions(self._new_distances(bags, backend))

        if isinstance(X, LazyBags):
            return self._check_lazy_new(X).by_blocks(score, per_instance=True)
        return score(self._check_new(X))

    def explain(self, bag: Any, *, label: Any = None, share: float = 0.9) -> Explanation:
        """Return which instances and which centres decided about one bag.

        Parameters
        ----------
        bag : 2-D array, or Bags with one bag
        label : label, optional
            With more than two classes, the class to explain; by default the predicted one.
        share : float, default=0.9
            The part of the evidence that the witnesses named have at least, as in ``witnesses``.
        """
        bags = one_bag(self, bag)
        backend = resolve(self.backend, self.n_jobs)
        to_used, voter = self._new_distances(bags, backend), self._voter()
        decisions = voter.bag_decisions(to_used, bags.offsets, backend)
        problem = explained_column(self, label, decisions)
        common = common_parts(self, bags, label, share, decisions)
        return explain_problem(voter, problem, to_used, bags, common)

    def _positive_bags(self, labels: Integers) -> Booleans:
        """Return which bags are positive, (n_bags, 1), or for every class, (n_bags, n_classes)."""
        n_classes = len(self.classes_)
        if n_classes > 2:
            return np.asarray(labels[:, None] == np.arange(n_classes))
        return self._is_positive(labels)[:, None]

    def _voter(self) -> voting.Voter:
        thresholds = None if getattr(self, "threshold_", None) is None else np.atleast_1d(self.threshold_)
        return voting.Voter(
            np.atleast_2d(self.positive_bins_),
            np.atleast_2d(self.negative_bins_),
            thresholds,
            self.distance_,
            self.rule_,
        )

    def _new_distances(self, bags: Bags, backend: Backend) -> Floats:
        return self._distances(self.space_.apply(bags.instances), backend)

    def _distances(self, instances: Instances, backend: Backend) -> Floats:
        """Return distances between instances and the bins in use, (n_instances, n_used)."""
        return distances(instances, self.cluster_centers_[self._voter().used_bins], backend)

    def _measure_lazily(
        self,
        bags: LazyBags,
        measure: Callable[[voting.Voter, Floats, Integers, Backend], Floats],
        sq_minima: Floats | None = None,
    ) -> Floats:
        """Return what a method of the voter finds for every bag.

        Where the nearest instance decides, one row a bag is all that has to be known: its least squared distances to
        the bins in use, ``sq_minima``, which are measured where they are not given. Otherwise whole bags are read.
        """
        voter, backend = self._voter(), resolve(self.backend, self.n_jobs)
        if self.rule_ == "nearest" and self.distance_ in voting.FROM_NEAREST:
            if sq_minima is None:
                used = Clustering(self.space_, self.cluster_centers_[voter.used_bins])
                sq_minima = measure_bags(bags, [used], backend)[0].sq_minima
            return measure(voter, np.sqrt(sq_minima), np.arange(len(bags) + 1), backend)
        return bags.by_blocks(lambda some: measure(voter, self._new_distances(some, backend), some.offsets, backend))
