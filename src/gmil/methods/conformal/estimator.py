"""ConformalClassifier: prediction sets for any classifier of bags, by models that left bags out."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logit
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from gmil.base import BagClassifier, Training, grouped_fit, register
from gmil.compat import HasMethods, Interval
from gmil.conformal.predicting import TRAINING_LABELS, PredictsSets
from gmil.engine import resolve
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Either, Fitted, Flag, Items, Kind, OrMissing
from gmil.methods.baselines.statistics import BagStatistics
from gmil.methods.ensemble.members import with_positive_class
from gmil.model_selection.folds import combinations, fit_with_groups, inner_folds, last_step, with_seed
from gmil.model_selection.scoring import decisions_of
from gmil.parameters import parameter, parameters
from gmil.safety.processes import bound
from gmil.sampling import make_generator
from gmil.validation import check_groups, check_label_count, indicator_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans, Floats, Integers

NO_MODEL = -1
"""In place of the number of a model: no model left this bag out."""


def _fit_on(base: Any, training: Training, chosen: Booleans, seed: int) -> Any:
    groups = None if training.groups is None else training.groups[chosen]
    return fit_with_groups(with_seed(base, seed), training.bags[chosen], training.y[chosen], groups)


def _inner_has(method: str) -> Any:
    return lambda model: hasattr(model.estimator_ if hasattr(model, "estimator_") else model._base(), method)


@register(method="conformal")
@parameters
class ConformalClassifier(PredictsSets, BagClassifier):
    """Prediction sets for any classifier of bags, by class-conditional conformal prediction.

    ``predict_set`` gives every bag the classes that cannot be ruled out, and ``predict(..., abstain=True)`` leaves bags
    undecided whose set is not one class. Everything else is what the estimator inside tells.

    With an indicator matrix as y (bags of several labels), every label is a problem of its own: column j of a set tells
    whether label j cannot be ruled out. The estimator has to know such labels, as `WeightedGMIL` does.

    Parameters
    ----------
    estimator : classifier of bags or None, default=None
        A classifier with decisions or probabilities, or a pipeline that ends in one; it is cloned. None is
        ``BagStatistics()``.
    method : {"cv+", "cv", "split"}, default="cv+"
        "cv+" leaves out every bag in one of ``cv`` folds, and asks the models of all folds about a new bag
        (cross-conformal prediction): the coverage is at least about 1 - 2 (1 - coverage) whatever happens, and in
        practice ``coverage`` or a little more. "cv" compares what the model of all bags tells of a new bag with what
        the models of the folds told of theirs: nearer to ``coverage``, one model to keep and to ask, and no guarantee
        where a few bags change the model much. "split" learns from one part of the bags and calibrates on the rest: the
        coverage is at least ``coverage``, but both parts are smaller.
    cv : int, default=5
        The number of folds; of "split", one fold of as many is for calibration. Fewer where a class has fewer bags.
    n_jobs : int or None, default=None
        Threads of every model inside; None leaves it to them. Results do not depend on it.
    n_processes : int or None, default=None
        Models that are trained at the same time, each in a process; None is one. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the models.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all bags; of "split", on those that do not calibrate.
    estimators_ : list of classifiers
        Those of "cv+", each fitted without one fold.
    left_out_decisions_ : array of shape (n_bags,) or (n_bags, n_classes)
        By the models that left out the bag; NaN for bags that none has left out.
    left_out_models_ : array of shape (n_bags,)
        Which model of "cv+" that is, else 0; -1 for none.
    training_labels_, training_groups_ : arrays of shape (n_bags,), or an indicator matrix; or None
        Class numbers; groups.
    multilabel_ : bool
        Whether bags have several labels; ``classes_`` are then the numbers of the columns.

    References
    ----------
    Vovk, V., "Cross-conformal predictors", Annals of Mathematics and Artificial Intelligence 74, 2015.
    Barber, R. F., Candes, E. J., Ramdas, A. and Tibshirani, R. J., "Predictive inference with the jackknife+", Annals
    of Statistics 49, 2021.

    Examples
    --------
    >>> from gmil import BagStatistics, ConformalClassifier, load_musk1
    >>> bags, y = load_musk1(return_X_y=True)
    >>> model = ConformalClassifier(BagStatistics(), random_state=0).fit(bags[::2], y[::2])
    >>> sets = model.predict_set(bags[1::2], coverage=0.8)
    >>> sets.shape
    (46, 2)
    """

    estimator: Any = parameter(default=None, rules=[HasMethods(["fit", "predict"]), None], kw_only=False)
    method: str = parameter(default="cv+", rules=[("cv+", "cv", "split")])
    cv: int = parameter(default=5, rules=[Interval(Integral, 2, None, closed="left")])
    pos_label: Any = None
    n_jobs: int | None = None
    n_processes: int | None = None
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "estimator_": Fitted("predict", n_features="d", n_classes="C"),
        "estimators_": Items(Fitted("predict", n_features="d", n_classes="C")),
        "left_out_decisions_": Either(Array("B", infinite=True, nan=True), Array("B", "C", infinite=True, nan=True)),
        "left_out_models_": Array("B", dtype="i", at_least=NO_MODEL),
        **TRAINING_LABELS,
        "multilabel_": OrMissing(Flag()),
    }

    multilabel_ = False  # of models of older files, too

    _takes_estimators = True
    fit = grouped_fit

    @property
    def _reads_blocks(self) -> bool:  # type: ignore[override]
        return bool(getattr(self._base(), "_reads_blocks", False))

    def _fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        indicator = indicator_of(y)
        self.multilabel_ = indicator is not None
        if indicator is None:
            return super()._fit(X, y, groups, sample_weight)
        self._refuse_one_label_alone()
        bags = self._check_bags(X)
        check_label_count(len(indicator), bags)
        self.classes_, self.pos_label_ = np.arange(indicator.shape[1]), None
        numbers, backend = check_groups(groups, len(bags)), resolve("auto", self.n_jobs)
        balanced_by, generator = combinations(indicator, self.cv), make_generator(self.random_state)
        self._learn(Training(bags, indicator, balanced_by, numbers, np.ones(len(bags)), backend, generator))
        return self

    def _refuse_one_label_alone(self) -> None:
        _, decides = last_step(self._base())
        if not get_tags(decides).classifier_tags.multi_label:
            got = f"got an indicator matrix as y for {type(decides).__name__}"
            msg = f"knows one label a bag, {got}. Pass WeightedGMIL(), or one column of y."
            raise BagValidationError(msg, parameter="estimator")

    def _learn(self, training: Training) -> None:
        several = self.multilabel_
        classes = training.labels if several else np.searchsorted(self.classes_, training.y)
        folds = inner_folds(classes, self.cv, training.generator, training.groups)
        folds = folds[:1] if self.method == "split" else folds
        base, seed = self._told_base(), int(training.generator.integers(2**31 - 1))
        every = np.ones(len(classes), dtype=bool)
        wanted = [*(~test for test in folds), *([every] if self.method != "split" or not folds else [])]
        models = Parallel(n_jobs=self.n_processes)(
            delayed(bound(_fit_on))(base, training, chosen, seed) for chosen in wanted
        )
        self.estimator_, self.estimators_ = models[-1], models[:-1] if self.method == "cv+" else []
        self.training_labels_ = training.y > 0 if several else classes
        self.training_groups_ = training.groups
        self._leave_out(training.bags, folds, models)

    def _leave_out(self, bags: Any, folds: list[Booleans], models: list[Any]) -> None:
        """Set what every bag was decided to be by the model that had not seen it."""
        one_a_bag = len(self.classes_) == 2 and not self.multilabel_
        decisions = np.full(len(bags) if one_a_bag else (len(bags), len(self.classes_)), np.nan)
        numbers = np.full(len(bags), NO_MODEL)
        for number, test in enumerate(folds):
            decisions[test] = self._decisions_by(models[number], bags[test])
            numbers[test] = number if self.estimators_ else 0
        self.left_out_decisions_, self.left_out_models_ = decisions, numbers

    def _decisions_by(self, model: Any, bags: Any) -> Floats:
        """Return decisions about ``classes_[1]``, or about every class or label."""
        found = np.asarray(decisions_of(model, bags), dtype=np.float64)
        if self.multilabel_:
            return found if hasattr(model, "decision_function") else logit(found)
        return found if found.ndim == 1 or len(self.classes_) > 2 else found[:, 1] - found[:, 0]

    def _decide(self, X: Any) -> Floats:
        bags = self._new_bags(X)
        return self._oriented(self._decisions_by(self.estimator_, bags))

    def _labels_of(self, decisions: Floats) -> NDArray[Any]:
        return (decisions > 0).astype(np.int64) if self.multilabel_ else super()._labels_of(decisions)

    def _models_of_left_out(self) -> Integers | None:
        return self.left_out_models_

    def _decisions_by_model(self, X: Any) -> list[Floats]:
        bags = self._new_bags(X)
        return [self._decisions_by(model, bags) for model in self.estimators_ or [self.estimator_]]

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, as the estimator inside tells it, (n_bags, n_classes).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        bags = self._new_bags(X)
        return np.asarray(self.estimator_.predict_proba(bags))

    def score_instances(self, X: Any) -> Floats:
        """Return the scores that the estimator inside gives to instances.

        Where it has no such scores, an instance has the decision about its bag less that about the bag without it.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Aligned with the instances of all bags, one bag after the other.
        """
        bags: Any = self._new_bags(X)
        if not hasattr(self.estimator_, "score_instances"):
            return self._effects(bags)
        scores = np.asarray(self.estimator_.score_instances(bags))
        theirs = getattr(last_step(self.estimator_)[1], "pos_label_", self.pos_label_)
        return scores if theirs == self.pos_label_ else -scores

    def _base(self) -> Any:
        return BagStatistics() if self.estimator is None else self.estimator

    def _told_base(self) -> Any:
        """Return what is trained, told which class is positive and how many threads it has."""
        base = with_positive_class(self._base(), self.pos_label_)
        if self.n_jobs is not None and "n_jobs" in base.get_params():
            base.set_params(n_jobs=self.n_jobs)
        return base

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = get_tags(self._base()).classifier_tags
        tags.classifier_tags.multi_class, tags.classifier_tags.multi_label = inside.multi_class, inside.multi_label
        return tags
