"""The control: instances inherit the labels of their bags, and no one asks which of them deserve it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.linear_model import LogisticRegression

from gmil.base import grouped_fit, register
from gmil.compat import HasMethods
from gmil.engine import resolve
from gmil.io.model_files.schema import Fitted, Kind
from gmil.methods.shared.multiclass import class_decisions, fit_decider
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.parameters import parameter, parameters

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from gmil.base import Training
    from gmil.engine.arrays import Floats


@register(method="single-instance")
@parameters
class SingleInstance(ScaledClassifier):
    """Single-instance baseline: instances inherit the label of their bag; a bag takes their largest or mean score.

    This is what to beat: it ignores that a positive bag may hold negative instances.

    Parameters
    ----------
    estimator : classifier or None, default=None
        What learns from the instances, with ``decision_function`` or ``predict_proba``. None is logistic
        regression, which is linear in the number of instances.
    aggregate : {"max", "mean"}, default="max"
        How the scores of its instances become that of a bag. "max" is the standard assumption, that one positive
        instance makes a bag positive; it favours large bags.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the reductions over bags.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier of instances; its classes are numbers, positions in ``classes_`` (of two classes the
        positive one is 1).

    Notes
    -----
    Decisions are the largest or the mean score of the instances of a bag.

    Examples
    --------
    >>> from gmil import SingleInstance, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = SingleInstance().fit(bags[:80], y[:80])
    >>> bool(model.score_instances(bags[:1]).max() == model.decision_function(bags[:1])[0])
    True
    """

    estimator: BaseEstimator | None = parameter(
        default=None, rules=[HasMethods(["fit", "predict"]), None], kw_only=False
    )
    aggregate: str = parameter(default="max", rules=[{"max", "mean"}])
    scale: str | None = "standard"
    n_jobs: int | None = None
    backend: str = "auto"

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "estimator_": Fitted("predict", n_features="d", n_classes="C"),
    }

    _kept_parameters = ("aggregate",)

    _takes_estimators = True
    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        bags, labels, numbers = training.bags, training.labels, training.groups
        instances, of = self._fit_scaled(bags), bags.segment_ids
        groups_of_instances = None if numbers is None else numbers[of]
        self.estimator_ = fit_decider(self.estimator, _default_estimator, instances, labels[of], groups_of_instances)

    def _decide(self, X: Any) -> Floats:
        """Return the largest or the mean score of the instances, (n_bags,) or (n_bags, n_classes)."""
        bags, instances = self._new_scaled(X)
        backend = resolve(self.backend, self.n_jobs)
        reduce = backend.bag_max if self.aggregate_ == "max" else backend.bag_mean
        return reduce(class_decisions(self.estimator_, instances), bags.offsets)

    def score_instances(self, X: Any) -> Floats:
        """Return how positive every instance is: the decision of the classifier of instances.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Aligned with the instances of all bags, one bag after the other.
        """
        _, instances = self._new_scaled(X)
        return class_decisions(self.estimator_, instances)


def _default_estimator() -> Any:
    return LogisticRegression(max_iter=10_000)
