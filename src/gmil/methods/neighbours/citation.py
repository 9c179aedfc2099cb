"""Citation kNN: the nearest bags vote on a bag, and so do the bags that it is nearest to."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from sklearn.base import clone

from gmil.base import register
from gmil.compat import Interval, checks_parameters
from gmil.engine import resolve
from gmil.io.model_files.schema import Array, Kind, Offsets, Rows
from gmil.methods.neighbours.distances import DISTANCES, Grouped, distances_between, distances_within, grouped
from gmil.methods.neighbours.votes import citing_radii, radii_without, voters
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.methods.shared.sparse_parts import from_parts, to_parts
from gmil.model_selection.folds import is_indicator
from gmil.parameters import AT_LEAST_ONE, parameter, parameters
from gmil.transform.space import fit_scaling
from gmil.validation import check_bags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.fold_work import FoldWork, Receiver, Worker


@register(method="citation-knn")
@parameters
class CitationKNN(ScaledClassifier):
    """Citation kNN: nearest neighbours between bags, where references and citers vote (Wang & Zucker 2000).

    The references of a bag are the training bags nearest to it. Its citers are the training bags that would count
    it among their own nearest: bags to which it is nearer than their ``n_citers``-th nearest training bag. Each
    votes for its label, a bag that is both votes twice, and a tie is negative.

    Parameters
    ----------
    n_references : int, default=2
        R, the number of nearest training bags that vote. Bags that are as near as the last of them vote too.
    n_citers : int, default=4
        C, how far the neighbourhoods of the training bags reach.
    distance : {"min", "max", "ranked"}, default="min"
        The Hausdorff distance between bags: between the two nearest instances; the largest distance between an
        instance of one bag and the nearest one of the other; or the ``rank``-th smallest of these in place of the
        largest.
    rank : int or float, default=0.5
        Used with ``distance="ranked"``: a number from 1 (which is "min") on, or a share of the instances of a bag,
        rounded up; 1.0 is "max". A number above the size of a bag is that size.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the kernels, as in `gmil.GMIL`.

    Attributes
    ----------
    radii_ : array of shape (n_bags,)
        The distance of every training bag to its ``n_citers``-th nearest other: what is nearer, it cites.
    instances_ : array of shape (n_instances, n_features)
        The training instances, scaled, in double precision; sparse ones as a dict of arrays.
    offsets_ : array of shape (n_bags + 1,)
        Where the training bags begin.
    labels_ : array of shape (n_bags,)
        The class of every training bag, as its position in ``classes_``.

    Notes
    -----
    The decision for a class of two is the votes for it less those for the other; of more classes, the votes for each.

    Training costs half of the distances between all pairs of instances, O(N^2 d), and a new bag the distances to
    all training instances; only some megabytes of them are held at a time. Sparse instances stay sparse.

    Published figures are those of leave-one-out, with features scaled to [0, 1] on all bags together:
    :meth:`leave_one_out` does that.

    References
    ----------
    Wang, J. and Zucker, J.-D., "Solving the multiple-instance problem: a lazy learning approach", ICML 2000.

    Examples
    --------
    >>> from gmil import CitationKNN, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = CitationKNN(distance="max").fit(bags[:80], y[:80])
    >>> model.decision_function(bags[80:]).shape
    (20,)
    """

    n_references: int = parameter(default=2, rules=[AT_LEAST_ONE], kw_only=False)
    n_citers: int = parameter(default=4, rules=[AT_LEAST_ONE], kw_only=False)
    distance: str = parameter(default="min", rules=[DISTANCES])
    rank: float = parameter(default=0.5, rules=[AT_LEAST_ONE, Interval(Real, 0, 1, closed="right")])
    n_jobs: int | None = None
    backend: str = "auto"

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "instances_": Rows("N", "d"),
        "offsets_": Offsets("B+1", "N"),
        "labels_": Array("B", dtype="i", at_least=0, below="C"),
        "radii_": Array("B", infinite=True),
    }

    _kept_parameters = ("n_references", "distance", "rank")

    def _learn(self, training: Training) -> None:
        self.radii_ = citing_radii(self._fit_distances(training.bags, training.y), self.n_citers)

    def _decide(self, X: Any) -> Floats:
        bags, instances = self._new_scaled(X)
        return self._count_votes(grouped(instances, bags.offsets))

    def score_instances(self, X: Any) -> Floats:
        """Return the decision about every instance as a bag by itself.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Votes as in ``decision_function``, aligned with the instances of all bags, one bag after the other.
        """
        bags, instances = self._new_scaled(X)
        return self._count_votes(grouped(instances, np.arange(bags.n_instances + 1)))

    @checks_parameters
    def leave_one_out(self, X: Any, y: Any) -> NDArray[Any]:
        """Return the label of every bag as all other bags predict it, (n_bags,).

        As in the published experiments, the scaling of the features is fitted on all bags, the one that is left
        out included; it sees no labels. The estimator itself stays as it is.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The bags; a 2-D array is read as bags of one instance each.
        y : array of shape (n_bags,)
            One label per bag.
        """
        model = cast("CitationKNN", clone(self))
        bags, labels = model._check_training(X, y)
        within = model._fit_distances(bags, model.classes_[labels])
        radii = radii_without(within, self.n_citers)
        np.fill_diagonal(within, np.inf)  # no bag is its own neighbour
        votes = voters(within, radii, self.n_references)
        np.fill_diagonal(votes, 0)
        return model._labels_of(model._oriented(model._count(votes, model.labels_)))

    # ---------------------------------------------------------------- folds and settings that share their distances

    def _folds_together(self, work: FoldWork) -> Worker | None:
        return None if is_indicator(work.y) else self._decide_folds

    def _decide_folds(self, work: FoldWork, receive: Receiver) -> None:
        """Hand over decisions about the bags that do not train; models that measure distances alike share them."""
        classes, labels = np.unique(work.y, return_inverse=True)
        threads = {} if work.n_jobs is None else {"n_jobs": work.n_jobs}
        models = [clone(self).set_params(**setting, **threads) for setting in work.settings]
        n_problems = 1 if len(classes) == 2 else len(classes)
        alike: dict[Any, list[int]] = {}
        for i, model in enumerate(models):
            model._validate_params()
            model._set_classes(classes)
            alike.setdefault((model.scale, model.distance, model.rank), []).append(i)
        bags, training = check_bags(work.bags), np.array([fold.training for fold in work.folds])
        for numbers in alike.values():
            distances = models[numbers[0]]._distances_in_folds(bags, training)
            for j, (inside, within) in enumerate(zip(training, distances, strict=True)):
                for i in numbers:
                    found = np.full((1, n_problems, len(bags)), np.nan)
                    found[0][:, ~inside] = models[i]._decide_fold(within, labels, inside).T
                    receive(i, [j], found)
        work.report(work.n_fits)

    def _distances_in_folds(self, bags: Bags, training: Booleans) -> Iterator[Floats]:
        """Yield the distances between all bags as every fold sees them: the scaling is that of its training bags."""
        backend = resolve(self.backend, self.n_jobs)
        learnt = self.scale not in (None, "l2")
        within: Floats | None = None
        for inside in training:
            if within is None or learnt:
                instances = fit_scaling(bags[inside].instances, self.scale).apply(bags.instances)
                within = distances_within(grouped(instances, bags.offsets), self.distance, self.rank, backend)
            yield within

    def _decide_fold(self, within: Floats, labels: Integers, inside: Booleans) -> Floats:
        radii = citing_radii(within[np.ix_(inside, inside)], self.n_citers)
        votes = voters(within[np.ix_(~inside, inside)], radii, self.n_references)
        return self._count(votes, labels[inside])

    # ---------------------------------------------------------------- inside

    def _fit_distances(self, bags: Bags, y: NDArray[Any]) -> Floats:
        """Keep the training bags; return the distances between them."""
        self.labels_ = np.searchsorted(self.classes_, y)
        training = grouped(self._fit_scaled(bags), bags.offsets)
        self.instances_, self.offsets_ = to_parts(training.instances), training.offsets
        return distances_within(training, self.distance, self.rank, resolve(self.backend, self.n_jobs))

    def _count_votes(self, queries: Grouped) -> Floats:
        training = Grouped(from_parts(self.instances_), self.offsets_)
        backend = resolve(self.backend, self.n_jobs)
        to_training = distances_between(queries, training, self.distance_, self.rank_, backend)
        return self._count(voters(to_training, self.radii_, self.n_references_), self.labels_)

    def _count(self, votes: Floats, labels: Integers) -> Floats:
        """Return votes by class, (n_queries, n_classes), or those for less those against the positive of two."""
        return self._decisions_of(votes @ (labels[:, None] == np.arange(len(self.classes_))))
