"""What the rivals share: features are scaled on the training instances before anything else."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from gmil.base import BagClassifier, TwoClassMixin
from gmil.compat import StrOptions
from gmil.io.model_files.schema import Array, Flag, Kind, OrNone
from gmil.transform.scaling import SCALINGS, Scaling, apply_scaling, fit_scaling

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Instances


class ScaledClassifier(BagClassifier):
    """A classifier of bags with parameters ``scale`` and ``pos_label``, as `gmil.GMIL` has them."""

    scale: str | None
    pos_label: Any
    scale_shift_: Floats | None
    scale_divisor_: Floats | None
    unit_length_: bool

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "scale_shift_": OrNone(Array("d")),
        "scale_divisor_": OrNone(Array("d", above=0)),
        "unit_length_": Flag(),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": [StrOptions(set(SCALINGS)), None],
        "pos_label": [Real, str, "boolean", None],
    }

    def _fit_scaled(self, bags: Bags) -> Instances:
        """Learn the scaling from training bags and return their instances scaled."""
        scaling = fit_scaling(bags.instances, self.scale)
        self._keep_scaling(scaling)
        return apply_scaling(bags.instances, scaling)

    def _keep_scaling(self, scaling: Scaling) -> None:
        self.scale_shift_, self.scale_divisor_, self.unit_length_ = scaling

    def _new_scaled(self, X: Any) -> tuple[Bags, Instances]:
        """Return new bags, checked, and their instances scaled as in training."""
        bags = self._check_new(X)
        return bags, self._scaled(bags.instances)

    def _scaled(self, instances: Instances) -> Instances:
        """Return instances scaled as in training."""
        return apply_scaling(instances, self._scaling())

    def _scaling(self) -> Scaling:
        return Scaling(self.scale_shift_, self.scale_divisor_, self.unit_length_)


class BinaryClassifier(TwoClassMixin, ScaledClassifier):
    """A classifier of two classes."""
