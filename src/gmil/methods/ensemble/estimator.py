"""MIL-Ensemble: several classifiers, each trained on bags drawn again, and the majority of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from gmil.base import BagClassifier, grouped_fit, register
from gmil.compat import HasMethods
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Fitted, Items, Kind
from gmil.methods.ensemble.members import with_positive_class
from gmil.methods.neighbours.citation import CitationKNN
from gmil.model_selection.folds import fit_with_groups, last_step, takes_groups, with_seed
from gmil.parameters import AT_LEAST_ONE, parameter, parameters
from gmil.safety.processes import bound

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine.arrays import Floats, Integers

_MOST_DRAWS = 1000


def draw_bags(labels: Integers, generator: np.random.Generator) -> Integers:
    """Draw as many bags as there are, with replacement; a draw that loses a class is drawn again."""
    n_classes = len(np.unique(labels))
    for _ in range(_MOST_DRAWS):
        drawn = generator.integers(len(labels), size=len(labels))
        if len(np.unique(labels[drawn])) == n_classes:
            return np.sort(drawn)
    msg = (
        f"No draw of {len(labels)} bags with replacement had all {n_classes} classes in {_MOST_DRAWS} tries: "
        "some classes have too few bags. Add bags, or leave those classes out."
    )
    raise BagValidationError(msg)


def _fit_member(base: BaseEstimator, bags: Bags, labels: Any, groups: Any, seed: int) -> Any:
    return fit_with_groups(with_seed(base, seed), bags, labels, groups)


@register(method="ensemble")
@parameters
class MILEnsemble(BagClassifier):
    """Bagging of multiple instance learners: majority vote over bootstrap samples of the bags (Zhou & Zhang 2003).

    Parameters
    ----------
    estimator : classifier of bags or None, default=None
        What is trained on every draw; it is cloned. None is ``CitationKNN()``.
    n_estimators : int, default=5
        The number of draws. With an even number two classes may tie, and a tie is negative.
    pos_label : label or None, default=None
        The positive class of two; None is ``classes_[1]``. It is what training and ``score_instances`` are about;
        decisions are about ``classes_[1]`` in any case. Members that have no own ``pos_label`` get it.
    n_jobs : int or None, default=None
        Threads of every member; None leaves it to the members. Results do not depend on it.
    n_processes : int or None, default=None
        Members that are trained at the same time, each in a process; None is one. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws and of the members.

    Attributes
    ----------
    estimators_ : list of classifiers
        The members, fitted.

    Notes
    -----
    The decision for a class of two is the share of members for it less that for the other; of more classes, the share
    for each.

    Every draw takes as many bags as there are, with replacement: a bag may be there twice, and then counts twice. A
    draw without a bag of some class is drawn again.

    References
    ----------
    Zhou, Z.-H. and Zhang, M.-L., "Ensembles of multi-instance learners", ECML 2003.

    Examples
    --------
    >>> from gmil import APR, MILEnsemble, load_musk1
    >>> bags, y = load_musk1(return_X_y=True)
    >>> model = MILEnsemble(APR(), random_state=0).fit(bags[::2], y[::2])
    >>> model.score(bags[1::2], y[1::2]) > 0.7
    True
    """

    estimator: Any = parameter(default=None, rules=[HasMethods(["fit", "predict"]), None], kw_only=False)
    n_estimators: int = parameter(default=5, rules=[AT_LEAST_ONE], kw_only=False)
    pos_label: Any = None
    n_jobs: int | None = None
    n_processes: int | None = None
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "estimators_": Items(Fitted("predict", n_features="d"), least=1),
    }

    _takes_estimators = True
    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        bags, generator, numbers = training.bags, training.generator, training.groups
        draws = [draw_bags(training.labels, generator) for _ in range(self.n_estimators)]
        seeds = generator.integers(2**31 - 1, size=self.n_estimators).tolist()
        base = self._base_with_positive_class()
        if self.n_jobs is not None and "n_jobs" in base.get_params():
            base.set_params(n_jobs=self.n_jobs)
        if numbers is None and takes_groups(base):  # copies of a bag belong together
            numbers = np.arange(len(bags))
        self.estimators_ = Parallel(n_jobs=self.n_processes)(
            delayed(bound(_fit_member))(
                base, bags[drawn], training.y[drawn], None if numbers is None else numbers[drawn], seed
            )
            for drawn, seed in zip(draws, seeds, strict=True)
        )

    def _decide(self, X: Any) -> Floats:
        """Return the share of members for the positive class minus that for the other, or the shares of all classes."""
        bags = self._check_new(X)
        predicted = np.array([member.predict(bags) for member in self.estimators_])  # (n_members, n_bags)
        return self._decisions_of((predicted[..., None] == self.classes_).mean(axis=0))

    def score_instances(self, X: Any) -> Floats:
        """Return the mean over the members of their scores of every instance.

        All members are of one kind, so their scores have one unit. Scores of members that take the other class as
        positive, by a ``pos_label`` of their own, are turned round. Where members have no such scores, an instance has
        the decision about its bag less that about the bag without it.

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
        if not hasattr(self.estimators_[0], "score_instances"):
            return self._effects(bags)
        scores = np.mean([member.score_instances(bags) for member in self.estimators_], axis=0)
        theirs = getattr(last_step(self.estimators_[0])[1], "pos_label_", self.pos_label_)
        return scores if theirs == self.pos_label_ else -scores

    def _base(self) -> BaseEstimator:
        return CitationKNN() if self.estimator is None else self.estimator

    def _base_with_positive_class(self) -> BaseEstimator:
        """Return what is trained, told which class is positive, so that all members score alike."""
        if len(self.classes_) > 2:
            return clone(self._base())
        return with_positive_class(self._base(), self.pos_label_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = get_tags(self._base()).classifier_tags.multi_class
        return tags
