"""Pipelines of steps on bags that can be saved, and that score instances and explain bags as their last step does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import sklearn.pipeline
from sklearn import get_config
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if

from gmil.bags import Bags
from gmil.errors import BagValidationError, ModelFileError, count_of
from gmil.io import model_files
from gmil.model_selection.folds import last_step
from gmil.scale import LazyBags
from gmil.transform.impute import Impute
from gmil.validation import check_bags, is_table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from sklearn.base import BaseEstimator

    from gmil.engine.arrays import Booleans, Floats, Integers


def _last_has(method: str) -> Callable[[Pipeline], bool]:
    return lambda pipeline: hasattr(pipeline.steps[-1][1], method)


@model_files.register_class
class Pipeline(sklearn.pipeline.Pipeline):
    """scikit-learn's pipeline, for steps on bags: with ``save``, and what the last step can do more than predict.

    Parameters
    ----------
    steps : list of tuples (name, estimator)
        Transformers of bags, such as `gmil.Impute` and `gmil.PerInstance`, and a classifier of bags at the end.
    transform_input, memory, verbose
        As in `sklearn.pipeline.Pipeline`. ``memory`` is not saved: a model from a file keeps no cache.

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> model = gmil.make_pipeline(gmil.Impute(), gmil.WeightedGMIL(random_state=0))
    >>> model.fit(bags, y).score_instances(bags[:2]).shape == (bags[:2].n_instances,)
    True
    """

    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}  # it is the last step that asks for them

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **params: Any) -> Self:
        """Fit all steps, each on what the steps before it make of the bags.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags.
        y : array of shape (n_bags,)
            One label per bag.
        groups : array of shape (n_bags,), optional
            Which bags belong together, for a last step whose ``fit`` takes groups.
        **params
            As in `sklearn.pipeline.Pipeline.fit`.
        """
        if groups is not None:
            prefix = "" if get_config()["enable_metadata_routing"] else last_step(self)[0]
            params[f"{prefix}groups"] = groups
        if not isinstance(X, LazyBags) and not is_table(X):
            X = check_bags(X, allow_nan=True)  # which tell a step that takes no bags what to do; a list does not
        super().fit(X, y, **params)
        return self

    @available_if(_last_has("predict_set"))
    def predict_set(self, X: Any, coverage: float = 0.9, **params: Any) -> Booleans:
        """Return for every bag the classes that cannot be ruled out, as the last step tells it, (n_bags, n_classes).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        coverage : float, default=0.9
            How often the class of a bag is to be in its set.
        **params
            As in ``predict_set`` of the last step.
        """
        return self._asked("predict_set", X, coverage=coverage, **params)

    @available_if(_last_has("predict_p_values"))
    def predict_p_values(self, X: Any, **params: Any) -> Floats:
        """Return how well every bag agrees with the training bags of every class, as the last step tells it.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        **params
            As in ``predict_p_values`` of the last step.
        """
        return self._asked("predict_p_values", X, **params)

    @available_if(_last_has("predict_interval"))
    def predict_interval(self, X: Any, **params: Any) -> Floats:
        """Return an interval for the value of every bag, as the last step tells it, (n_bags, 2).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        **params
            As in ``predict_interval`` of the last step.
        """
        return self._asked("predict_interval", X, **params)

    @available_if(_last_has("predict_survival_function"))
    def predict_survival_function(self, X: Any, *times: Any, **params: Any) -> Any:
        """Return survival curves of bags, as the last step tells them.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        *times, **params
            As in ``predict_survival_function`` of the last step.
        """
        return self._asked("predict_survival_function", X, *times, **params)

    @available_if(_last_has("predict_cumulative_hazard_function"))
    def predict_cumulative_hazard_function(self, X: Any, *times: Any, **params: Any) -> Any:
        """Return cumulative hazards of bags, as the last step tells them.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        *times, **params
            As in ``predict_cumulative_hazard_function`` of the last step.
        """
        return self._asked("predict_cumulative_hazard_function", X, *times, **params)

    def _asked(self, method: str, X: Any, *arguments: Any, **params: Any) -> Any:
        """Return what a method of the last step tells of bags behind the other steps."""
        inside = self[:-1].transform(X) if len(self.steps) > 1 else X
        return getattr(self.steps[-1][1], method)(inside, *arguments, **params)

    @available_if(_last_has("score_instances"))
    def score_instances(self, X: Any, **params: Any) -> Floats:
        """Return how much every instance is of the positive class, as the last step scores it.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        **params
            As ``score_instances`` of the last step takes them.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Aligned with the instances given: NaN for those that `gmil.Impute` drops. Other steps that drop or add
            instances are refused here.
        """
        bags, kept = self._before_last(X)
        scores: Floats = self.steps[-1][1].score_instances(bags, **params)
        if kept.all():
            return scores
        aligned = np.full((len(kept), *scores.shape[1:]), np.nan)
        aligned[kept] = scores
        return aligned

    @available_if(_last_has("witnesses"))
    def witnesses(self, X: Any, share: float = 0.9, **params: Any) -> list[Integers]:
        """Return the fewest instances of every bag that carry its decision, as the last step finds them.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        share : float, default=0.9
            The part of the evidence of a bag that its witnesses have at least.
        **params
            As ``witnesses`` of the last step takes them.
        """
        bags, kept = self._before_last(X)
        found: list[Integers] = self.steps[-1][1].witnesses(bags, share, **params)
        return found if kept.all() else _numbered_as_given(found, bags.offsets, X, kept)

    @available_if(_last_has("explain"))
    def explain(self, bag: Any, **params: Any) -> Any:
        """Return what decided about one bag, as the last step explains it.

        Where `gmil.Impute` drops instances, an explanation that has a method ``renumbered``, as `gmil.Explanation`
        has, is told their numbers in the bag given.

        Parameters
        ----------
        bag : 2-D array or Bags of one bag
        **params
            As ``explain`` of the last step takes them.
        """
        bags, kept = self._before_last(bag if isinstance(bag, Bags) else check_bags([bag], allow_nan=True))
        found = self.steps[-1][1].explain(bags, **params)
        return found if kept.all() or not hasattr(found, "renumbered") else found.renumbered(np.flatnonzero(kept))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted pipeline to a file that `gmil.load` reads; no file that it reads can run code.

        Parameters
        ----------
        path : path
            The file; one that exists is replaced in one step.
        """
        save(self, path)

    def _before_last(self, X: Any) -> tuple[Any, Booleans]:
        """Return bags as the last step gets them, and which of the instances given these are, (n_instances,)."""
        found, kept = _through(self.steps[:-1], X)
        if kept.sum() != _count_instances(found):
            msg = (
                f"Scores must belong to the instances given, but the steps before {self.steps[-1][0]!r} make "
                f"{count_of(_count_instances(found), 'instance')} of {len(kept)}. "
                "Leave out or add instances before the pipeline."
            )
            raise BagValidationError(msg)
        return found, kept

    def _complete(self) -> None:
        """Refuse what a file gives as steps and is none; a cache that it names would be read without any check."""
        self.memory = None
        if not isinstance(self.steps, list) or not self.steps or not all(map(_is_step, self.steps)):
            msg = (
                "The steps of the Pipeline in the file must be pairs of a name and an estimator. Save the model again."
            )
            raise ModelFileError(msg)


def _through(steps: list[tuple[str, Any]], X: Any) -> tuple[Any, Booleans]:
    """Return bags behind steps, and which of the instances given are left as the steps tell it, (n_instances,)."""
    kept = np.ones(_count_instances(X), dtype=bool)
    for _, step in steps:
        if step is None or step == "passthrough":
            continue
        if isinstance(step, sklearn.pipeline.Pipeline):
            X, kept[kept] = _through(step.steps, X)
            continue
        if hasattr(step, "kept_instances"):
            kept[kept] = step.kept_instances(X)
        X = step.transform(X)
    return X, kept


def _numbered_as_given(found: list[Integers], offsets: Integers, X: Any, kept: Booleans) -> list[Integers]:
    """Return numbers of instances within bags as they were given, from those within what is left of them."""
    given = (X if isinstance(X, (Bags, LazyBags)) else check_bags(X, allow_nan=True)).offsets
    rows = np.flatnonzero(kept)
    return [rows[start + own] - first for own, start, first in zip(found, offsets[:-1], given[:-1], strict=True)]


def kept_instances(model: Any, X: Any) -> Booleans:
    """Tell which instances reach the classifier in a pipeline, or in the best one of a search, (n_instances,)."""
    model = getattr(model, "best_estimator_", model)
    return _through(model.steps[:-1] if isinstance(model, sklearn.pipeline.Pipeline) else [], X)[1]


def _is_step(step: Any) -> bool:
    is_pair = isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str)
    return is_pair and (step[1] is None or step[1] == "passthrough" or hasattr(step[1], "fit"))


def _count_instances(X: Any) -> int:
    return X.n_instances if isinstance(X, (Bags, LazyBags)) else check_bags(X, allow_nan=True).n_instances


def make_pipeline(*steps: BaseEstimator, memory: Any = None, verbose: bool = False) -> Pipeline:
    """Return a pipeline of steps that are named after their classes.

    Parameters
    ----------
    *steps : estimators
        Transformers of bags, and a classifier of bags at the end.
    memory, verbose
        As in `sklearn.pipeline.make_pipeline`.

    Examples
    --------
    >>> import gmil
    >>> list(gmil.make_pipeline(gmil.PerInstance(), gmil.GMIL()).named_steps)
    ['perinstance', 'gmil']
    """
    return Pipeline(sklearn.pipeline.make_pipeline(*steps).steps, memory=memory, verbose=verbose)


def imputing(estimator: BaseEstimator, missing: str) -> BaseEstimator:
    """Return an estimator behind `gmil.Impute` with a strategy; as it is where missing values are an "error"."""
    return estimator if missing == "error" else make_pipeline(Impute(missing), estimator)


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a model to a file that `gmil.load` reads; no file that it reads can run code.

    Parameters
    ----------
    model : estimator of gmil, or pipeline
        A pipeline may be scikit-learn's, of steps of gmil and of scikit-learn that are safe to load; it comes back as
        `gmil.Pipeline`.
    path : path
        The file; one that exists is replaced in one step.

    Examples
    --------
    >>> import gmil, os, tempfile
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "musk.gmil")
    >>> gmil.save(gmil.GMIL(random_state=0).fit(bags, y), path)
    >>> gmil.load(path)
    GMIL(random_state=0)
    """
    model_files.save(_as_ours(model), path)


def _as_ours(model: Any) -> Any:
    """Return a pipeline and the pipelines in it as pipelines of gmil, without a cache; any other model as it is."""
    if not isinstance(model, sklearn.pipeline.Pipeline):
        return model
    steps = [(name, _as_ours(step)) for name, step in model.steps]
    return Pipeline(steps, transform_input=model.transform_input, verbose=model.verbose)
