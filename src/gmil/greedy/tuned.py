"""GMILCV: the paper's method with everything that the paper leaves open chosen on the training bags."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from gmil.base import BagClassifier, grouped_fit, register
from gmil.compat import Interval
from gmil.errors import BagValidationError
from gmil.fold_work import Fold, FoldWork
from gmil.greedy.batch import decide_folds, why_not_batched
from gmil.greedy.gmil import GMIL
from gmil.io.model_files.schema import Fitted, Kind, Number, Plain
from gmil.model_selection.folds import complete_folds
from gmil.parameters import AT_LEAST_ONE, parameter, parameters
from gmil.validation import check_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine.arrays import Booleans, Floats
    from gmil.scale import LazyBags
    from gmil.witnesses import Explanation

_SCALES = (None, "standard", "minmax", "l2")
_CLUSTERS = (10, 20, 40, 80, 160)
_POSITIVE = (1, 2, 4, 8, 16)
_NEGATIVE = (0, 1, 2, 4, 8)


@register(method="gmil-cv")
@parameters
class GMILCV(BagClassifier):
    """GMIL with its hyperparameters chosen by cross-validation on the training bags.

    Instances are clustered once for every scaling, number of clusters and inner fold; all other parameters are
    swept on top of these clusters and cost almost nothing.

    Parameters
    ----------
    param_grid : dict, list of dicts or "auto", default="auto"
        The settings to choose from, as for scikit-learn's ``GridSearchCV``; any parameter of `gmil.GMIL` but
        ``distance`` other than "min" and "center-mean" and ``rule`` other than "nearest". "auto": four scalings;
        10 to 160 clusters, fewer than half of the instances; 1 to 16 positive and 0 to 8 negative centres;
        epsilon 1/K or one over the negative instances; instances or bags counted; overlap allowed or not.
    cv : int, default=5
        Inner folds of bags.
    repeats : int, default=1
        Repetitions of the inner folds, with other partitions and seeds.
    sample_size : int or None, default=10_000
        As in `gmil.GMIL`.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of the kernels.
    random_state : int, RandomState instance or None, default=None
        Seed of inner folds and clusterings.

    Attributes
    ----------
    estimator_ : GMIL
        Fitted on all training bags with the best setting; codebooks and centres are its attributes.
    best_params_ : dict
    best_score_ : float
        The accuracy of the best setting over the inner folds; chosen as the largest, so it flatters.
    cv_results_ : dict
        ``params``, a list of dicts, and ``accuracy``, an array, for every setting.

    Notes
    -----
    Of settings with the same accuracy the first is taken. The cost is that of clustering once for every scaling,
    number of clusters and inner fold.

    Examples
    --------
    >>> from gmil import GMILCV, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = GMILCV(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:])
    1.0
    >>> sorted(model.best_params_)[:3]
    ['counting', 'epsilon', 'n_clusters']
    """

    param_grid: Any = parameter(default="auto", rules=[dict, list, {"auto"}], kw_only=False)
    cv: int = parameter(default=5, rules=[Interval(Integral, 2, None, closed="left")])
    repeats: int = parameter(default=1, rules=[AT_LEAST_ONE])
    sample_size: int | None = parameter(default=10_000, rules=GMIL._parameter_constraints["sample_size"])
    pos_label: Any = None
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    _reads_blocks = True
    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "estimator_": Fitted("decision_function", "predict_proba", "score_instances", n_features="d", n_classes="C"),
        "best_params_": Plain(dict),
        "best_score_": Number(),
        "cv_results_": Plain(dict),
    }

    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        bags, y, generator = training.bags, training.y, training.generator
        base = GMIL(sample_size=self.sample_size, pos_label=self.pos_label_, n_jobs=self.n_jobs, backend=self.backend)
        folds = self._inner_folds(training)
        settings = self._settings(bags, folds)
        for setting in settings:
            if (reason := why_not_batched(base, setting)) is not None:
                msg = f"{reason} cannot be tuned by GMILCV. Leave it out, or use GridSearchCV(GMIL(), ...)."
                raise BagValidationError(msg)
        accuracies = self._inner_accuracies(base, settings, bags, y, folds, generator)
        best = int(accuracies.argmax())
        self.best_params_, self.best_score_ = dict(settings[best]), float(accuracies[best])
        self.cv_results_ = {"params": [dict(setting) for setting in settings], "accuracy": accuracies}
        seed = int(generator.integers(2**31 - 1))
        self.estimator_ = base.set_params(**self.best_params_, random_state=seed).fit(bags, y)

    def _inner_folds(self, training: Training) -> list[Booleans]:
        """Return which bags inner folds test; fewer folds where there are fewer groups or bags of a class."""
        counts = np.unique(training.y, return_counts=True)[1]
        if counts.min() < 2:
            msg = (
                f"Class {self.classes_.tolist()[counts.argmin()]!r} has one bag, but GMILCV needs at "
                "least 2 of every class to choose by cross-validation. Use GMIL, or add bags."
            )
            raise BagValidationError(msg)
        groups = check_groups(training.groups, len(training.y), least=2)
        n_folds = min(int(self.cv), int(counts.min()), self.cv if groups is None else len(np.unique(groups)))
        seeds = training.generator.integers(2**31 - 1, size=self.repeats).tolist()
        # With groups a class may be in one fold only; who trains without that fold has never seen it.
        folds = [test for seed in seeds for test in complete_folds(training.y, n_folds, seed, groups)]
        if not folds:
            msg = "groups leave a class out of every inner training fold. Add groups that have bags of every class."
            raise BagValidationError(msg)
        return folds

    def _settings(self, bags: Bags | LazyBags, folds: list[Booleans]) -> list[Mapping[str, Any]]:
        if not isinstance(self.param_grid, str):
            return list(ParameterGrid(self.param_grid))
        held_out = [int(bags.sizes[test].sum()) for test in folds]
        smallest = min(bags.n_instances - max(held_out), self.sample_size or bags.n_instances)
        return automatic_settings(smallest)

    def _inner_accuracies(
        self,
        base: GMIL,
        settings: Sequence[Mapping[str, Any]],
        bags: Bags | LazyBags,
        y: Any,
        folds: list[Booleans],
        generator: np.random.Generator,
    ) -> Floats:
        """Return the accuracy of every setting over the inner folds."""
        inner = [Fold(~test, int(generator.integers(2**31 - 1))) for test in folds]
        tested = np.array(folds)  # (n_folds in all, n_bags)
        truth = y if len(self.classes_) > 2 else y == self.pos_label_
        hits = np.zeros(len(settings))

        def count(setting: int, some: list[int], decisions: Floats) -> None:
            several = decisions.shape[1] > 1
            found = self.classes_[decisions.argmax(axis=1)] if several else decisions[:, 0] > 0
            inside = tested if len(some) == len(tested) else tested[some]
            hits[setting] += np.count_nonzero((found == truth) & inside)

        decide_folds(base, FoldWork(settings, bags, y, inner, n_jobs=self.n_jobs), count)
        return hits / tested.sum()

    def _decide(self, X: Any) -> Floats:
        bags = self._new_bags(X)
        return self._oriented(self.estimator_.decision_function(bags))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class for every bag, as `gmil.GMIL.predict_proba` does.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        bags = self._new_bags(X)
        return self.estimator_.predict_proba(bags)

    def score_instances(self, X: Any) -> Floats:
        """Return how positive every instance is, as `gmil.GMIL.score_instances` does.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
        """
        bags = self._new_bags(X)
        return self.estimator_.score_instances(bags)

    def explain(self, bag: Any, *, label: Any = None, share: float = 0.9) -> Explanation:
        """Return which instances and centres decided about one bag, as `gmil.GMIL.explain` does.

        Parameters
        ----------
        bag : 2-D array, or Bags with one bag
        label : label, optional
            With more than two classes, the class to explain; by default the predicted one.
        share : float, default=0.9
            The part of the evidence that the witnesses named have at least, as in ``witnesses``.
        """
        check_is_fitted(self)
        return self.estimator_.explain(bag, label=label, share=share)


def automatic_settings(n_instances: int) -> list[Mapping[str, Any]]:
    """Return the settings that "auto" stands for, given how many instances the smallest training fold has."""
    settings: list[Mapping[str, Any]] = []
    for n_clusters in [k for k in _CLUSTERS if k <= n_instances / 2] or [max(1, n_instances // 2)]:
        grid = {
            "scale": _SCALES,
            "n_clusters": [n_clusters],
            "n_positive": [p for p in _POSITIVE if p <= n_clusters],
            "n_negative": [q for q in _NEGATIVE if q <= n_clusters],
            "epsilon": ["auto", "negatives"],
            "counting": ["instances", "bags"],
            "overlap": ["allow", "exclude"],
        }
        settings += list(ParameterGrid(grid))
    return settings
