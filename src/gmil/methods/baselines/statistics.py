"""A bag as the vector of statistics of its features, and any classifier of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from gmil.base import grouped_fit, register
from gmil.compat import HasMethods
from gmil.io.model_files.schema import Fitted, Kind
from gmil.methods.embeddings.embedded import OfTransformer, VectorClassifier
from gmil.methods.shared.multiclass import class_decisions, fit_decider
from gmil.parameters import parameter, parameters
from gmil.sampling import make_generator
from gmil.transform.vectors import BagSummaries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.base import BaseEstimator

    from gmil.base import Training
    from gmil.engine.arrays import Floats


@register(method="bag-statistics")
@parameters
class BagStatistics(VectorClassifier):
    """Any classifier on a bag embedding of simple statistics: minimum, mean, maximum, deviation of every feature.

    It knows nothing of witnesses, and where it is level with methods that do, the data do not need them.

    Parameters
    ----------
    statistics : tuple of {"min", "mean", "max", "sd"}, default=("min", "mean", "max", "sd")
        What to take of every feature; "sd" divides by the number of instances, so one instance has deviation 0.
    estimator : classifier or None, default=None
        What learns from the statistics, with ``decision_function`` or ``predict_proba``. None is an RBF support
        vector machine with C=10 on statistics of mean 0 and deviation 1.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default=None
        Scaling of the instances, fitted on the training instances. With the default estimator only those with
        "l2" make a difference, because it scales the statistics.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the statistics.

    Attributes
    ----------
    transformer_ : BagSummaries
        What makes the statistics.
    estimator_ : classifier
        The fitted classifier of statistics; its classes are numbers, positions in ``classes_`` (of two classes the
        positive one is 1).

    Notes
    -----
    Decisions are those of the estimator or, where it has none, its probability (of two classes less one half).

    The statistics cost O(N d) for N instances; the default estimator then sees one row per bag.

    Examples
    --------
    >>> from gmil import BagStatistics, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = BagStatistics(("min", "max")).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.8
    True
    """

    statistics: Sequence[str] = parameter(default=("min", "mean", "max", "sd"), kw_only=False)
    estimator: BaseEstimator | None = parameter(default=None, rules=[HasMethods(["fit", "predict"]), None])
    scale: str | None = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "estimator_": Fitted("predict", n_classes="C"),
    }

    _transformer = BagSummaries
    statistics_ = OfTransformer()

    _takes_estimators = True
    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        bags, labels, numbers = training.bags, training.labels, training.groups
        rows = self._fit_vectors(bags, training.backend, make_generator(0))
        self.estimator_ = fit_decider(self.estimator, _default_estimator, rows, labels, numbers)

    def _decide_vectors(self, vectors: Floats) -> Floats:
        return class_decisions(self.estimator_, vectors)


def _default_estimator() -> Any:
    return make_pipeline(StandardScaler(), SVC(C=10))
