"""Bags whose instances are a tensor of PyTorch, on a GPU or not: they stay where they are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gmil.bags.finite import largest_value
from gmil.errors import BagValidationError
from gmil.scale.passes import MatrixSource, part_edges

if TYPE_CHECKING:
    import numpy as np

    from gmil.engine.arrays import Floats


def is_tensor(X: Any) -> bool:
    """Tell whether this is a tensor of PyTorch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


class TensorSource(MatrixSource):
    """A matrix of PyTorch; who cannot work on its device reads it in blocks."""

    @classmethod
    def of(cls, X: Any) -> TensorSource:
        """Cut a matrix into parts."""
        if X.ndim != 2 or str(X.dtype) not in ("torch.float32", "torch.float64"):
            msg = (
                f"X must be a matrix in single or double precision, got {X.dtype} of shape {tuple(X.shape)}. "
                "Convert it with X.float()."
            )
            raise BagValidationError(msg)
        return cls(X.detach().contiguous(), part_edges(X.shape[0], X.shape[1] * X.element_size()))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that pieces have."""
        from gmil.engine.torch.tensors import numpy_dtype

        return numpy_dtype(self.X)

    def are_usable(self) -> bool:
        """Tell whether every value is finite, and small enough that sums of squares are; the device is asked once."""
        if self.X.numel() == 0:
            return True
        low, high = self.X.aminmax()
        limit = largest_value(self.n_features, self.dtype)
        return bool((low >= -limit) & (high <= limit))  # NaN is neither

    def as_array(self, rows: Any) -> Floats:
        """See `MatrixSource.as_array`."""
        found: Floats = rows.cpu().numpy()
        return found

    def place(self, part: int) -> str:
        """See `gmil.scale.passes.Source`."""
        return f"part {part} of the tensor"
