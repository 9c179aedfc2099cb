"""What the rivals share: features are scaled on the training instances before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.base import BagClassifier
from gmil.errors import BagValidationError
from gmil.scaling import Scaling, apply_scaling, fit_scaling

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Instances


class ScaledClassifier(BagClassifier):
    """A classifier of bags with a parameter ``scale``, as `gmil.GMIL` has it."""

    scale: str | None
    scale_shift_: Floats | None
    scale_divisor_: Floats | None

    def _fit_scaled(self, bags: Bags) -> Instances:
        """Learn the scaling from training bags and return their instances scaled."""
        scaling = fit_scaling(bags.instances, self.scale)
        self.scale_shift_, self.scale_divisor_ = scaling.shift, scaling.divisor
        return apply_scaling(bags.instances, scaling)

    def _new_scaled(self, X: Any) -> tuple[Bags, Instances]:
        """Return new bags, checked, and their instances scaled as in training."""
        bags = self._check_new(X)
        unit_length = self.scale is not None and self.scale.endswith("l2")
        return bags, apply_scaling(bags.instances, Scaling(self.scale_shift_, self.scale_divisor_, unit_length))


class BinaryClassifier(ScaledClassifier):
    """A classifier of two classes, with a parameter ``pos_label`` as `gmil.GMIL` has it."""

    pos_label: Any

    def _check_two_classes(self, X: Any, y: Any) -> tuple[Bags, Booleans]:
        """Return training bags and which of them are positive."""
        bags, labels = self._check_training(X, y)
        if len(self.classes_) > 2:
            msg = (
                f"Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(self.classes_)} classes. Wrap {type(self).__name__} in OneVsRestClassifier."
            )
            raise BagValidationError(msg)
        self._check_positive_class()
        return bags, labels == self._class_order()[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
