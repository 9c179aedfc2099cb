"""What the methods share: features are scaled on the training instances before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.base import BagClassifier
from gmil.parameters import parameter, parameters
from gmil.transform.scaling import SCALINGS
from gmil.transform.space import SpaceMixin, fit_scaling

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Instances


@parameters
class ScaledClassifier(SpaceMixin, BagClassifier):
    """A classifier of bags with parameters ``scale`` and ``pos_label``, as `gmil.GMIL` has them."""

    scale: str | None = parameter(default="minmax", rules=[SCALINGS, None])
    pos_label: Any = None

    def _fit_scaled(self, bags: Bags) -> Instances:
        """Learn the scaling from training bags and return their instances scaled."""
        self.space_ = fit_scaling(bags.instances, self.scale)
        return self._scaled(bags.instances)

    def _new_scaled(self, X: Any) -> tuple[Bags, Instances]:
        """Return new bags, checked, and their instances scaled as in training."""
        bags = self._check_new(X)
        return bags, self._scaled(bags.instances)

    def _scaled(self, instances: Instances) -> Instances:
        """Return instances scaled as in training."""
        scaled: Instances = self.space_.apply(instances)
        return scaled
