"""What regressors, grades and survival by stacked views share."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gmil.engine import resolve
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Flag, Items, Kind, Number
from gmil.targets.attention import ATTENTION, AttentionModel, AttentionModels
from gmil.validation import check_groups
from gmil.weighted.fitting import FITTED_VIEWS, VIEW_WEIGHT, FittedViews, Learning
from gmil.weighted.model import KERNELS
from gmil.weighted.stacked import StackedViews

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.scale import LazyBags
    from gmil.weighted.fitting import Fitting
    from gmil.weighted.weighing import LeftOut
    from gmil.weighted.witness_fitting import InstanceModels

_KINDS = ("effect", "alone")


class TargetViews(StackedViews):
    """Stacked views of a bag that predict values; a class defines ``_targets``, and what it makes of the sum."""

    intercepts_: Floats
    left_out_scores_: Floats

    _measured: ClassVar[bool] = False
    """Whether the values that views predict are those of y, and do not stand for grades or times."""

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        **{name: kind for name, kind in FITTED_VIEWS.items() if name != "witnesses_"},
        "view_weights_": Items(VIEW_WEIGHT),
        "instance_models_": ATTENTION,
        "left_out_scores_": Array("B", "P", nan=True),
        "familiar_distance_": Number(infinite=True),
        "sparse_": Flag(),
    }

    def _instance_models(self) -> InstanceModels | None:
        return AttentionModels() if self.witness_model else None

    def _learning(self, bags: Bags | LazyBags, y: Any, groups: Any) -> Learning:
        large, values, outcomes = self._targets(bags, y)
        numbers, backend = check_groups(groups, len(bags), least=2), resolve(self.backend, self.n_jobs)
        weights = np.ones(len(bags))
        return Learning(large, weights, numbers, KERNELS, self.n_points, backend, values, outcomes, self._measured)

    @abstractmethod
    def _targets(self, bags: Bags | LazyBags, y: Any) -> tuple[Booleans, Floats, Floats | None]:
        """Return which bags have large values, values in units of their deviation, and outcomes, of checked bags."""

    def _keep(self, found: Fitting, learning: Learning, *, sparse: bool) -> Self:
        self.view_weights_, self.intercepts_ = found.summary, found.intercepts
        self.spaces_, self.views_ = found.as_plain()
        self.instance_models_ = None if found.witnesses is None else found.witnesses.as_plain()
        self.left_out_scores_ = found.left_out.weighed
        self.familiar_distance_ = float(np.quantile(found.familiar_distances, 0.99))
        self.sparse_ = sparse
        self._finish(learning, found.left_out)
        return self

    def _finish(self, learning: Learning, left_out: LeftOut) -> None:
        """Learn what the sum of the views means, from its values for bags that were left out."""

    def _fitted(self) -> FittedViews:
        found = self.spaces_, self.views_, self.intercepts_, self.instance_models_
        return FittedViews.from_plain(*found, model=AttentionModel)

    def _instance_effects(self, X: Any, kind: str) -> Floats:
        """Return scores of instances in units of the sum of the views, (n_instances, n_problems)."""
        check_is_fitted(self)
        if kind not in _KINDS:
            msg = f"must be one of {list(_KINDS)}, got {kind!r}."
            raise BagValidationError(msg, parameter="kind")
        return self._scores_of_instances(X, kind)
