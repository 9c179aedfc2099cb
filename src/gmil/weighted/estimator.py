"""WeightedGMIL: the class orchestrates; numerics live beside it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, softmax
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from gmil.base import BagClassifier, register
from gmil.compat import checks_parameters
from gmil.conformal.predicting import TRAINING_LABELS, PredictsSets
from gmil.engine import is_torch, resolve
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Either, Flag, Items, Kind, Number, OrMissing
from gmil.parameters import parameter, parameters
from gmil.scale import LazyBags
from gmil.transform.profile import PROFILE, plain_profile
from gmil.validation import check_groups, check_label_count, indicator_of
from gmil.weighted.familiar import familiarity
from gmil.weighted.fitting import FITTED_VIEWS, VIEW_WEIGHT, FittedViews, Learning
from gmil.weighted.instances import check_kind
from gmil.weighted.model import KERNELS
from gmil.weighted.stacked import StackedViews
from gmil.weighted.streaming import decide_folds, most_instances
from gmil.weighted.witness_fitting import WitnessModels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.fold_work import FoldWork, Worker
    from gmil.weighted.fitting import Fitting
    from gmil.weighted.witness_fitting import InstanceModels


@register(method="weighted-gmil")
@parameters
class WeightedGMIL(PredictsSets, StackedViews, BagClassifier):
    """Stacked kernel ridge regression on several embeddings of a bag: the method to start with.

    A bag is described under several scalings by its range (minimum and maximum of every feature), its moments
    (mean and deviation) and its distances to a codebook of centres. Each description with a Laplacian or a Gaussian
    kernel is a view; on each a kernel ridge regression is fitted, its penalty chosen by leaving out every bag in
    closed form. The views are added up with weights, none negative, that predict best what was left out. Models of
    single instances, learnt from the labels of bags under noisy-or, join them and tell witnesses. Nothing has to be
    chosen by hand.

    Parameters
    ----------
    n_centers : int or "auto", default="auto"
        The size of the codebook. "auto" is a hundredth of the training instances, but at least 200 and at most 500;
        never more than there are instances.
    vote : {"kernel", "linear"}, default="kernel"
        How a view decides: by similarity to the training bags, or by one weight per centre. The linear vote uses
        the distances to the centres alone and is additive over centres; it is less accurate.
    scales : "auto" or sequence, default="auto"
        The scalings: any of "standard", "minmax", "l2", "standard+l2", "minmax+l2", "rank" (every feature
        replaced by its rank) and None. "auto" is all but None, and but "rank" where ``sample_size`` is exceeded: to
        rank all instances would take longer than everything else; for sparse bags None, "l2" and "standard".
    views : sequence, default=("range", "moments", "nearest")
        The embeddings of a bag. Sparse bags are embedded by their mean, their distances and,
        where None is one of the scalings, the signed square roots of their mean at length one (VLAD).
    centers : {"random", "k-means", "ranked"}, default="random"
        The codebook: instances drawn at random, the centres of k-means, or the best centres of k-means with five
        times as many clusters by Eq. 6 of the paper.
    witness_model : bool, default=True
        Learn small models of single instances, too. They tell witnesses in ``score_instances``, and join the decision
        about a bag so far as they predict bags that were left out. Not with the linear vote.
    sample_size : int or "auto", default="auto"
        With more dense instances than this, scalings, centres and the choice of views are made on a sample: at most
        ``max_bags`` bags, thinned alike. The views with most of the weight are then fitted to whole bags, read once.
        "auto": 20 000 for `gmil.LazyBags`, and for bags in memory with more than 200 000 instances.
    max_bags : int, default=1500
        With more bags than this, views and their weights are chosen on a stratified sample of so many, and fitted
        on all bags with ``n_points`` of them as points of comparison, at a cost linear in the bags; of more than 30 000
        bags, on a stratified sample of these.
    n_points : int, default=500
        See ``max_bags``.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, as in scikit-learn; not for indicator labels.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the kernels.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of centres and samples.

    Attributes
    ----------
    view_weights_ : list of dict
        ``scale``, ``kind``, ``kernel`` and the ``weights`` of every view, (n_problems,), those without weight included.
    views_ : list of dict
        The views that have a weight, as arrays.
    spaces_ : list of dict
        The scalings and centres that they use.
    intercepts_ : array of shape (n_problems,)
        The decision for the positive class without any view.
    left_out_decisions_ : array of shape (n_bags,) or (n_bags, n_problems)
        Log-odds of the training bags, as ``decision_function`` gives them, each (or its group) left out by every view,
        with weights and calibration that were found on other bags. NaN for bags outside the sample where ``max_bags``
        is exceeded.
    familiar_distance_, familiar_distances_ : float, array of shape (n,)
        99 % of the training bags are nearer than this to a centre of another bag; and the distances, sorted.
    training_labels_, training_groups_ : arrays of shape (n_bags,), or an indicator matrix; or None
        What ``predict_set`` goes by, with the left-out decisions: class numbers, and groups where there were any.
    classes_ : array of shape (n_classes,)
        For indicator labels the numbers of the columns.
    profile_ : dict or None
        Ranges and means of the features, for `gmil.check_drift`; None of `LazyBags` and of more than 2000 features.
    witnesses_ : dict or None
        The witness model: models of single instances (``scorers``, with their weights in decisions, ``stacking``, and
        in scores, ``mixture``), the weight of the views (``base``), and how much of what they know lies within bags.

    Notes
    -----
    Decisions are log-odds, calibrated on what was left out: above zero means more likely than not. With n
    bags, N instances, d features and K centres a view costs O(N K d + n^2 d + n^3) up to ``max_bags`` bags, and
    grows linearly in bags and instances beyond.

    Examples
    --------
    >>> from gmil import WeightedGMIL, load_musk1
    >>> bags, y = load_musk1(return_X_y=True)
    >>> model = WeightedGMIL(random_state=0).fit(bags[::2], y[::2])
    >>> model.score(bags[1::2], y[1::2]) > 0.75
    True
    """

    vote: str = parameter(default="kernel", rules=[("kernel", "linear")])
    class_weight: Any = parameter(default=None, rules=[dict, ("balanced",), None])
    pos_label: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        **FITTED_VIEWS,
        "view_weights_": Items(VIEW_WEIGHT),
        "left_out_decisions_": Either(Array("B", infinite=True, nan=True), Array("B", "P", infinite=True, nan=True)),
        "familiar_distance_": Number(infinite=True),
        "familiar_distances_": OrMissing(Array("F", infinite=True)),
        **TRAINING_LABELS,
        "profile_": PROFILE,
        "multilabel_": Flag(),
        "sparse_": Flag(),
    }

    # ---------------------------------------------------------------- fit

    def _folds_together(self, work: FoldWork) -> Worker | None:
        bags = work.bags
        if isinstance(bags, LazyBags):
            return partial(decide_folds, self)
        sizes = [setting.get("sample_size", self.sample_size) for setting in work.settings]
        is_sampled = any(bags.n_instances > most_instances(size, bags, in_memory=True) for size in sizes)
        together = (is_sampled or is_torch(self.backend)) and not sp.issparse(bags.instances)
        return partial(decide_folds, self) if together else None

    @checks_parameters
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Choose and fit the views.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        y : array of shape (n_bags,), or an indicator matrix of shape (n_bags, n_labels)
            One label per bag, or for several labels at once 1 where a bag has the label.
        groups : array of shape (n_bags,), optional
            Bags of one group (a patient, a site) are left out together wherever something is chosen.
        """
        return self._fit_stacked(X, y, groups)

    def _observe(self, bags: Bags | LazyBags) -> None:
        self.profile_ = None if isinstance(bags, LazyBags) else plain_profile(bags)

    def _keep(self, found: Fitting, learning: Learning, *, sparse: bool) -> Self:  # noqa: ARG002
        self.view_weights_, self.intercepts_ = found.summary, found.intercepts
        unseen = found.left_out.cross_fitted
        self.left_out_decisions_ = self._oriented(unseen[:, 0] if self._is_binary() else unseen)
        self.familiar_distances_ = found.familiar_distances
        self.familiar_distance_ = float(np.quantile(found.familiar_distances, 0.99))
        self.spaces_, self.views_ = found.as_plain()
        self.witnesses_ = None if found.witnesses is None else found.witnesses.as_plain()
        self.sparse_ = sparse
        return self

    def _learning(self, bags: Bags | LazyBags, y: Any, groups: Any) -> Learning:
        """Return what is to be learnt from checked bags, and set what every fitted classifier has."""
        positive, weights = self._check_problems(bags, y)
        self.training_groups_ = check_groups(groups, len(bags), least=2)
        kernels = ("linear",) if self.vote == "linear" else KERNELS
        backend = resolve(self.backend, self.n_jobs)
        return Learning(positive, weights, self.training_groups_, kernels, self.n_points, backend)

    def _check_problems(self, bags: Bags | LazyBags, y: Any) -> tuple[Booleans, Floats]:
        """Return which bags are positive in which problem, (n_bags, n_problems), and the weight of each."""
        indicator = indicator_of(y)
        if indicator is not None:
            check_label_count(len(indicator), bags)
            if self.class_weight is not None:
                msg = "class_weight is not for indicator labels. Leave it out."
                raise BagValidationError(msg)
            self.classes_, self.pos_label_, self.multilabel_ = np.arange(indicator.shape[1]), None, True
            self.training_labels_ = indicator > 0
            return self.training_labels_, np.ones(len(bags))
        labels = self.training_labels_ = self._check_labels(y, bags)
        self.multilabel_ = False
        weights = compute_sample_weight(self.class_weight, self.classes_[labels])
        if not weights.min() > 0:
            msg = f"class_weight must be above 0 for every class, got {self.class_weight}. Leave out bags instead."
            raise BagValidationError(msg)
        if len(self.classes_) > 2:
            return labels[:, None] == np.arange(len(self.classes_)), weights
        return self._is_positive(labels)[:, None], weights

    # ---------------------------------------------------------------- predict

    def _decide(self, X: Any) -> Floats:
        """Return log-odds of being positive, or of being of every class."""
        decisions = self._stacked(X)
        return decisions[:, 0] if self._is_binary() else decisions

    def _labels_of(self, decisions: Floats) -> NDArray[Any]:
        return (
            (decisions > 0).astype(np.int64) if getattr(self, "multilabel_", False) else super()._labels_of(decisions)
        )

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class (or label) for every bag, (n_bags, n_classes).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        return self._probabilities_of(self.decision_function(X))

    def _probabilities_of(self, decisions: Floats) -> Floats:
        if self.multilabel_:
            return np.asarray(expit(decisions))
        if decisions.ndim == 2:
            return np.asarray(softmax(log_expit(decisions), axis=1))
        return np.column_stack([expit(-decisions), expit(decisions)])

    def score_instances(self, X: Any, kind: str = "auto") -> Floats:
        """Return the score of every instance: how much it contributes to the positive class.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        kind : {"auto", "witness", "effect", "alone", "share"}
            "witness": log-odds that the instance is a witness, one that makes its bag positive; comparable over bags,
            and never above the log-odds of the bag. "effect": the decision about the bag minus that about the bag
            without the instance (about nothing where it is the only one). "alone": the decision about a bag of this
            instance. "share", for the linear vote: what the instance adds to the decision; shares and intercept add
            up to it. "auto": "witness", or "effect" where the model has no witness model.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
        """
        check_is_fitted(self)
        fitted = self._fitted()
        if kind == "auto":
            kind = "effect" if fitted.witnesses is None else "witness"
        check_kind(kind, fitted, {view["kernel"] for view in self.view_weights_})
        scores = self._scores_of_instances(X, kind)
        return scores[:, 0] if self._is_binary() else scores

    def _evidence(self, scores: Floats) -> Floats:
        # Log-odds of a witness: -log(1 - p), which adds up to -log(1 - P(bag)) under noisy-or.
        return super()._evidence(scores) if self.witnesses_ is None else np.logaddexp(0, scores)

    def familiarity(self, X: Any) -> Floats:
        """Return how familiar every bag is, (n_bags,): the p-value that it comes from where training bags came from.

        It is the share of training bags that are at least as far from all centres. Of bags like the training bags, a
        share of at most 5 % has a value of 0.05 or less.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        return familiarity(self._nearest(X), self.familiar_distances_)

    def _complete(self) -> None:
        is_older = hasattr(self, "left_out_decisions_") and not hasattr(self, "pos_label_")
        super()._complete()
        if is_older:  # 0.1.0 kept them as decisions about the positive class
            self.left_out_decisions_ = self._oriented(self.left_out_decisions_)
        if hasattr(self, "views_") and not hasattr(self, "witnesses_"):  # models of 0.1.0 have none
            self.witnesses_ = None

    def _is_binary(self) -> bool:
        return len(self.classes_) == 2 and not self.multilabel_

    def _fitted(self) -> FittedViews:
        return FittedViews.from_plain(self.spaces_, self.views_, self.intercepts_, self.witnesses_)

    def _instance_models(self) -> InstanceModels | None:
        models_witnesses = self.witness_model and self.vote == "kernel"  # shares of linear votes add up to the decision
        return WitnessModels() if models_witnesses else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
