"""MI-CRF: all bags in one graph, whose states are their instances and "none"; chosen instances should look alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gmil.base import grouped_fit, register
from gmil.compat import HasMethods
from gmil.engine import resolve
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Choice, Count, Fitted, Items, Kind, Number, Rows
from gmil.methods.crf.joint import joint_gains
from gmil.methods.crf.states import (
    KINDS,
    Candidates,
    Dissimilarity,
    best_candidates,
    in_later_bags,
    make_states,
    pairwise_distances,
    spread_of,
)
from gmil.methods.crf.training import Solution, train_crf
from gmil.methods.ensemble.members import own_positive_class, with_positive_class
from gmil.methods.ensemble.out_of_fold import out_of_fold_scores
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.methods.shared.sparse_parts import from_parts, to_parts
from gmil.methods.shared.tuning import Tuning
from gmil.methods.svm.estimators import WitnessSVM
from gmil.model_selection.folds import fit_with_groups, with_seed
from gmil.parameters import AT_LEAST_ONE, NO_FEWER_THAN_ZERO, parameter, parameters
from gmil.transform.widths import median_distance

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine.arrays import Floats, Instances


@register(method="mi-crf")
@parameters
class MICRF(ScaledClassifier):
    """MI-CRF: a conditional random field over all bags, which choose their witnesses jointly (Deselaers & Ferrari).

    Other methods score the instances. Choosing instance x costs ``threshold - a f(x)``, and choosing x and x' in two
    bags costs weighted dissimilarities between them; "none" costs nothing. A bag is positive where choosing an instance
    lowers the energy. The weights are learned with a large margin between the labelling of the training bags and all
    others, in turns with the instances that positive bags choose, their witnesses. This is a reconstruction: the
    original leaves no code; the notes state what is ours.

    Parameters
    ----------
    estimator : classifier of bags, list of them, or None, default=None
        What scores the instances, with ``score_instances``; it is cloned. Of several each has its own weight. None is
        ``WitnessSVM()``, with settings that ``tune`` chooses.
    C : float, default=1000.0
        Half of it is what the squared mean slack of a bag costs, next to half the squared norm of the weights.
    dissimilarity : {"both", "euclidean", "gaussian", None}, default="both"
        Between chosen instances: the distance over the median distance of training instances; one minus the Gaussian of
        that; both, each with its own weight; or no pairs at all, which leaves a scorer with a new threshold.
    transductive : bool, default=False
        Bags to predict choose jointly: what one of them chooses counts for the others. Then a prediction depends on the
        bags that are passed with it. False: each bag faces the witnesses of the training bags alone.
    max_states : int, default=20
        Instances of a bag that may be chosen in joint inference: in training those with the largest scores, in joint
        prediction those that lower the energy most.
    n_restarts : int, default=2
        Random labellings from which joint inference starts too.
    max_iter : int, default=20
        How often weights are learned at most.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="minmax"
        Scaling of the features for the dissimilarities, fitted on the training instances; the scorer has its own.
    tune : bool, default=False
        Choose kernel, width, price and balance of the default scorer, as `WitnessSVM` does, once on all training bags.
    pos_label : label or None, default=None
        The positive class of two; None is ``classes_[1]``. It is what training and ``score_instances`` are about;
        decisions are about ``classes_[1]`` in any case. A scorer that has no own ``pos_label`` gets it.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, of the restarts and of the scorer.

    Attributes
    ----------
    scorers_ : list of classifiers
        What scores instances, fitted on all training bags.
    score_weights_ : array of shape (n_scorers,)
        How much a unit of each score lowers the energy.
    dissimilarity_weights_ : array of shape (n_kinds,)
    threshold_ : float
        What choosing an instance costs.
    width_ : float
        The median distance, which is the unit of dissimilarities.
    witness_instances_ : array of shape (n_positive_bags, n_features)
        The instances that positive training bags chose, scaled; sparse ones as a dict of arrays.
    witnesses_ : array of shape (n_bags,)
        Their positions among the training instances, -1 for negative bags.
    objectives_ : array of shape (n_iter,)
        Half the squared norm of the weights plus C / 2 times the squared slack, whenever weights were learned; it
        falls, but for what approximate inference had missed before.
    stop_reason_ : {"converged", "cycle", "iterations"}
        Why training ended: witnesses stayed, older ones came back, or ``max_iter`` was reached.
    n_iter_ : int
        How often weights were learned.

    Notes
    -----
    The decision for the positive class is how much the best instance of a bag lowers the energy. With ``transductive``
    the bags choose jointly first, and each is then decided with the others as they chose.

    On the training bags the scores come from five folds, so that they are no better than those of new bags; groups are
    left out as a whole. Bags that no fold can test keep the scores of the final scorer. What ``tune`` chooses holds in
    all folds: to choose it once more in each would take five times as long.

    Known of the original: the graph, its states, unary energies from the scores of other methods, pairs that cost a
    weighted sum of dissimilarities, constraint generation with a large margin, joint prediction. Ours: which
    dissimilarities, dividing them by the number of positive bags that a bag may expect, out-of-fold scores, one squared
    slack, and inference by steepest single changes from several starts in place of tree-reweighted messages.

    The graph holds 8 S^2 bytes for every kind of dissimilarity, where S counts all states; above 4000 instances in all
    every bag has fewer than ``max_states``.

    References
    ----------
    Deselaers, T. and Ferrari, V., "A Conditional Random Field for Multiple-Instance Learning", ICML 2010.

    Examples
    --------
    >>> from gmil import MICRF, make_bags
    >>> bags, y = make_bags(60, separation=8, random_state=0, return_X_y=True)
    >>> model = MICRF(random_state=0).fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:])
    1.0
    >>> bool(model.score_instances(bags[:1]).max() == model.decision_function(bags[:1])[0])
    True
    """

    estimator: Any = parameter(default=None, rules=[HasMethods(["fit", "score_instances"]), list, None], kw_only=False)
    C: float = 1000.0
    dissimilarity: str | None = parameter(default="both", rules=[{kind for kind in KINDS if kind is not None}, None])
    transductive: bool = parameter(default=False, rules=["boolean"])
    max_states: int = parameter(default=20, rules=[AT_LEAST_ONE])
    n_restarts: int = parameter(default=2, rules=[NO_FEWER_THAN_ZERO])
    max_iter: int = 20
    tune: bool = False
    n_jobs: int | None = None
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "scorers_": Items(Fitted("score_instances", n_features="d"), "m", least=1),
        "score_weights_": Array("m"),
        "dissimilarity_weights_": Array("k"),
        "threshold_": Number(),
        "width_": Number(above=0),
        "positive_share_": Number(above=0, at_most=1),
        "n_training_bags_": Count(2),
        "witness_instances_": Rows("w", "d"),
        "witnesses_": Array("B", dtype="i", at_least=-1),
        "objectives_": Array("I", infinite=True),
        "stop_reason_": Choice(),
        "n_iter_": Count(),
    }

    _kept_parameters = ("dissimilarity", "max_states", "transductive")

    _two_classes = True
    _takes_estimators = True
    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        bags, y, groups, generator = training.bags, training.y, training.groups, training.generator
        folds = Tuning.of(training, tune=True).folds
        seed = int(generator.integers(2**31 - 1))
        bases = self._bases()
        if self.tune:
            tuned = with_seed(bases[0].set_params(tune=True), seed)
            bases = [fit_with_groups(tuned, bags, y, groups).as_chosen()]
        found = [out_of_fold_scores(base, bags, y, groups, folds, seed) for base in bases]
        self.scorers_ = [scorer for scorer, _ in found]
        scores = np.array([scores for _, scores in found])
        self._fit_graph(self._fit_scaled(bags), scores, training)

    def _fit_graph(self, instances: Instances, scores: Floats, training: Training) -> None:
        """Learn weights and witnesses, where scores have the unit of their spread."""
        offsets, positive = training.bags.offsets, training.positive
        spreads = spread_of(scores)
        scores = scores / spreads[:, None]
        candidates = best_candidates(scores.sum(axis=0), offsets, self.max_states)
        apart = pairwise_distances(instances[candidates.rows], training.backend)
        self.width_ = median_distance(apart[in_later_bags(candidates.offsets)])
        self.positive_share_, self.n_training_bags_ = float(positive.mean()), len(positive)
        states = make_states(
            scores[:, candidates.rows],
            apart,
            candidates.offsets,
            self._dissimilarity(),
            self._per_pair(len(positive)),
        )
        solution = train_crf(states, positive, self.C, self.max_iter, self.n_restarts, training.generator)
        self._keep(solution, candidates, spreads)
        self.witness_instances_ = to_parts(instances[self.witnesses_[positive]])

    def _keep(self, solution: Solution, candidates: Candidates, spreads: Floats) -> None:
        self.score_weights_ = solution.weights[: len(spreads)] / spreads
        self.dissimilarity_weights_ = solution.weights[len(spreads) : -1]
        self.threshold_ = float(solution.weights[-1])
        self.witnesses_ = candidates.chosen(solution.labels)
        self.objectives_, self.stop_reason_ = solution.objectives, solution.stop_reason
        self.n_iter_ = len(solution.objectives)

    def _decide(self, X: Any) -> Floats:
        """Return how much the best instance of every bag lowers the energy, (n_bags,)."""
        bags, instances = self._new_scaled(X)
        return resolve("auto", self.n_jobs).bag_max(self._gains(bags, instances), bags.offsets)

    def score_instances(self, X: Any) -> Floats:
        """Return how much choosing each instance lowers the energy, (n_instances,): above zero is positive.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self._gains(*self._new_scaled(X))

    def _gains(self, bags: Bags, instances: Instances) -> Floats:
        backend = resolve("auto", self.n_jobs)
        n_together = self.n_training_bags_ + (len(bags) if self.transductive_ else 1)
        per_pair, dissimilarity = self._per_pair(n_together), self._dissimilarity()
        weights = self.dissimilarity_weights_ * per_pair
        scores = self.score_weights_ @ [scorer.score_instances(bags) for scorer in self.scorers_]
        gains = scores - self.threshold_
        gains -= dissimilarity.total(instances, from_parts(self.witness_instances_), weights, backend)
        if not self.transductive_:
            return gains
        candidates = best_candidates(gains, bags.offsets, self.max_states_)
        return joint_gains(gains, instances, bags.offsets, candidates, dissimilarity, weights, backend)

    def _dissimilarity(self) -> Dissimilarity:
        return Dissimilarity(KINDS[self.dissimilarity_], self.width_)

    def _per_pair(self, n_bags: int) -> float:
        """Return one over the number of positive bags that a bag expects among the others of a graph."""
        return 1 / (self.positive_share_ * (n_bags - 1))

    def _bases(self) -> list[Any]:
        """Return what scores instances, told which class is positive."""
        if self.tune and self.estimator is not None:
            msg = (
                "tune=True chooses the settings of the default scorer, but an estimator was given. "
                "Leave tune False, and let the estimator choose its own."
            )
            raise BagValidationError(msg)
        bases = [WitnessSVM(n_jobs=self.n_jobs)] if self.estimator is None else self.estimator
        bases = bases if isinstance(bases, list) else [bases]
        unfit = [base for base in bases if not (hasattr(base, "fit") and hasattr(base, "score_instances"))]
        if unfit or not bases:
            got = f"{type(unfit[0]).__name__} lacks one" if unfit else "the list is empty"
            msg = f"Every scorer in estimator must have fit and score_instances, but {got}."
            raise BagValidationError(msg)
        for base in bases:
            if own_positive_class(base) not in (None, self.pos_label_):
                msg = (
                    f"{type(base).__name__} in estimator has pos_label={own_positive_class(base)!r}, but the positive "
                    f"class is {self.pos_label_!r}. Pass pos_label to MICRF, and none to its scorers."
                )
                raise BagValidationError(msg)
        return [with_positive_class(base, self.pos_label_) for base in bases]
