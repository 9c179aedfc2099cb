"""scikit-learn transformers on the instances of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from gmil.base import BagEstimator, register
from gmil.compat import HasMethods
from gmil.io.model_files.schema import Fitted, Kind
from gmil.validation import check_bags, is_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.bags import Bags


@register()
class PerInstance(TransformerMixin, BagEstimator, auto_wrap_output_keys=None):
    """Apply a scikit-learn transformer to the instances of bags, for pipelines.

    Parameters
    ----------
    transformer : transformer or None, default=None
        Any scikit-learn transformer of rows; None is ``StandardScaler()``.

    Attributes
    ----------
    transformer_ : transformer
        The fitted one.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from gmil import GMIL, PerInstance, load_musk1
    >>> bags, y = load_musk1(return_X_y=True)
    >>> model = make_pipeline(PerInstance(MinMaxScaler()), GMIL(random_state=0)).fit(bags, y)
    >>> model.predict(bags).shape
    (92,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"transformer": [HasMethods(["fit", "transform"]), None]}
    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "transformer_": Fitted("transform", n_features="d"),
    }

    def __init__(self, transformer: BaseEstimator | None = None) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  labels belong to bags, not to instances
        """Fit the transformer on all instances of all bags.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : ignored
            Labels belong to bags, not to instances.
        """
        bags = check_bags(X, estimator=self, reset=True, allow_nan=_allows_nan(self._base()), allow_large=True)
        self.transformer_ = clone(self._base()).fit(bags.instances)
        return self

    def transform(self, X: Any) -> Any:
        """Transform all instances; bags come back as `Bags`, a 2-D array as an array.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        check_is_fitted(self)
        bags = check_bags(X, estimator=self, allow_nan=_allows_nan(self.transformer_), allow_large=True)
        transformed = self.transformer_.transform(bags.instances)
        if is_table(X):
            return transformed
        return bags.with_instances(transformed, self._names_out(bags))

    def _base(self) -> BaseEstimator:
        return StandardScaler() if self.transformer is None else self.transformer

    def _names_out(self, bags: Bags) -> list[str] | None:
        if bags.feature_names is None or not hasattr(self.transformer_, "get_feature_names_out"):
            return None
        names: NDArray[Any] = self.transformer_.get_feature_names_out(list(bags.feature_names))
        return [str(name) for name in names]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = _allows_nan(self._base())
        tags.input_tags.sparse = get_tags(self._base()).input_tags.sparse
        return tags


def _allows_nan(transformer: BaseEstimator) -> bool:
    return bool(get_tags(transformer).input_tags.allow_nan)
