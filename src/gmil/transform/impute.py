"""Missing values: filled with medians of the training instances, or left out with the instances that have them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gmil.bags.bags import bags_drawn
from gmil.bags.finite import name_of_bag, name_of_feature, refuse_non_finite
from gmil.base import BagEstimator, register
from gmil.compat import StrOptions, check_feature_names_in, checks_parameters
from gmil.errors import BagValidationError, ColumnWarning, listed
from gmil.io.model_files.schema import Array, Kind
from gmil.validation import check_bags, is_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

STRATEGIES = ("median", "drop")


@register()
class Impute(TransformerMixin, BagEstimator, auto_wrap_output_keys=None):
    """Fill missing values (NaN) with medians of the training instances, or drop the instances that have some.

    It stands first in a pipeline, so that medians are learnt from training bags alone. A feature without a single
    value in the training bags is left out, with a warning.

    Parameters
    ----------
    strategy : {"median", "drop"}, default="median"
        "median" fills a gap with the median of its feature over all training instances. "drop" leaves out instances
        with a gap; a bag that would lose all its instances is an error.
    indicator : bool, default=False
        Add a feature, 0 or 1, for every feature with gaps in the training bags: whether the value was missing. With
        "drop" there is nothing left to tell, and it is refused.

    Attributes
    ----------
    medians_ : array of shape (n_features,)
        The median of every feature; NaN where a feature had no value at all and is left out.
    indicated_ : array of bool, of shape (n_features,)
        Which features have an indicator.
    n_features_in_ : int

    See Also
    --------
    PerInstance : Any transformer of scikit-learn, such as ``KNNImputer``, on instances.

    Notes
    -----
    In a `gmil.Pipeline`, ``score_instances`` gives a score for every instance of the bags that go in: NaN for those
    that were dropped. Infinity is no missing value, and is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from gmil import Bags, Impute
    >>> bags = Bags.from_list([[[1.0, 5.0], [np.nan, 6.0]], [[3.0, 7.0]]])
    >>> Impute().fit_transform(bags)[0]
    array([[1., 5.],
           [2., 6.]])
    >>> Impute("drop").fit_transform(bags).sizes
    array([1, 1])
    """

    _kept_parameters = ("strategy",)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "strategy": [StrOptions(set(STRATEGIES))],
        "indicator": ["boolean"],
    }
    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "medians_": Array("d", nan=True),
        "indicated_": Array("d", dtype="b"),
    }

    def __init__(self, strategy: str = "median", *, indicator: bool = False) -> None:
        self.strategy = strategy
        self.indicator = indicator

    @checks_parameters
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  gaps are filled without a look at labels
        """Learn the median of every feature, over all training instances.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : ignored
            Labels belong to bags, not to instances.
        """
        if self.indicator and self.strategy == "drop":
            msg = "must be False with strategy='drop', which leaves no gap to tell of, got True."
            raise BagValidationError(msg, parameter="indicator")
        bags = self._check(X, reset=True)
        self._keep_parameters()
        self.medians_ = medians_of(bags.instances)
        _warn_of_empty(bags, ~self._known)
        self.indicated_ = np.zeros(bags.n_features, dtype=bool)
        if self.indicator:
            self.indicated_[_gaps(bags.instances)[1]] = True
            self.indicated_ &= self._known
        return self

    def transform(self, X: Any) -> Any:
        """Return bags without gaps; bags come back as `Bags`, a 2-D array as an array.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        check_is_fitted(self)
        bags = self._check(X, reset=False)
        names = None if bags.feature_names is None else list(self.get_feature_names_out(bags.feature_names))
        if self.strategy_ == "drop":
            bags = with_some_instances(bags, self._complete_instances(bags.instances))
        found = self._filled(bags.instances)
        return found if is_table(X) else bags.with_instances(found, names)

    def kept_instances(self, X: Any) -> Booleans:
        """Tell which instances ``transform`` keeps, (n_instances,).

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        check_is_fitted(self)
        instances = self._check(X, reset=False).instances
        return self._complete_instances(instances) if self.strategy_ == "drop" else np.ones(instances.shape[0], bool)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features that come out, those of indicators last.

        Parameters
        ----------
        input_features : array of str or None, default=None
            Names of the features; by default those that ``fit`` has seen, else x0, x1, ...
        """
        check_is_fitted(self)
        names = check_feature_names_in(self, input_features)
        added = [f"missingindicator_{name}" for name in names[self.indicated_]]
        return np.array([*names[self._known], *added], dtype=object)

    @property
    def _known(self) -> Booleans:
        """Which features had a value in training, (n_features,)."""
        return ~np.isnan(self.medians_)

    def _check(self, X: Any, *, reset: bool) -> Bags:
        bags = check_bags(X, estimator=self, reset=reset, allow_nan=True)
        refuse_non_finite(bags, allow_nan=True, allow_large=True)
        return bags

    def _complete_instances(self, X: Instances) -> Booleans:
        """Tell which instances have a value for every feature that is known, (n_instances,)."""
        rows, columns = _gaps(X)
        complete = np.ones(X.shape[0], dtype=bool)
        complete[rows[self._known[columns]]] = False
        return complete

    def _filled(self, X: Any) -> Instances:
        """Return instances without gaps and without features that are not known, with indicators."""
        found = X if self._known.all() else X[:, self._known]
        found = _with_medians(found, self.medians_[self._known])
        if not self.indicated_.any():
            return found
        rows, columns = _gaps(X)
        flags = sp.csr_array((np.ones(len(rows), X.dtype), (rows, columns)), shape=X.shape)[:, self.indicated_]
        return sp.hstack([found, flags], format="csr") if sp.issparse(X) else np.hstack([found, flags.toarray()])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def medians_of(X: Instances) -> Floats:
    """Return the median of the values of every feature, (n_features,); NaN where there are none."""
    from sklearn.impute import SimpleImputer  # here: it would be a tenth of what `import gmil` takes

    statistics: Floats = SimpleImputer(strategy="median").fit(X).statistics_
    return statistics.astype(X.dtype)


def _gaps(X: Any) -> tuple[Integers, Integers]:
    """Return the row and the column of every missing value."""
    if not sp.issparse(X):
        rows, columns = np.nonzero(np.isnan(X))
        return rows, columns
    entries = np.flatnonzero(np.isnan(X.data))
    return np.searchsorted(X.indptr, entries, side="right") - 1, X.indices[entries].astype(np.int64)


def _with_medians(X: Any, medians: Floats) -> Any:
    """Return instances with medians in place of missing values; those without gaps as they are."""
    missing = np.isnan(X.data) if sp.issparse(X) else np.isnan(X)
    if not missing.any():
        return X
    found = X.copy()
    if sp.issparse(X):
        found.data[missing] = medians[X.indices[missing]]
        return found
    rows, columns = np.nonzero(missing)
    found[rows, columns] = medians[columns]
    return found


def with_some_instances(bags: Bags, keep: Booleans) -> Bags:
    """Return bags with some of their instances; a bag that would have none is refused."""
    if keep.all():
        return bags
    sizes = np.bincount(bags.segment_ids[keep], minlength=len(bags))
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        names = listed([name_of_bag(bags, int(position)) for position in empty])
        msg = f"Instances with a missing value are dropped, and these bags have no others: {names}."
        fix = "Fill the gaps with gmil.Impute('median'), or leave these bags out."
        raise BagValidationError(msg, parameter="strategy", fix=fix)
    info = None if bags.instance_info is None else bags.instance_info.take(np.flatnonzero(keep))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return bags_drawn(bags.instances[keep], offsets, bags.bag_ids, bags.feature_names, info)


def _warn_of_empty(bags: Bags, empty: Booleans) -> None:
    """Say which features have no value at all and are left out; without any other there is nothing to learn from."""
    names = [name_of_feature(bags, int(position)) for position in np.flatnonzero(empty)]
    if len(names) == bags.n_features:
        msg = f"All {bags.n_features} features are empty: X holds missing values only. Add values, or other features."
        raise BagValidationError(msg)
    if names:
        warnings.warn(ColumnWarning(f"Left out, without a value in training: {listed(names)}."), stacklevel=5)
