"""Bags whose instances are a tensor of PyTorch, on a GPU or not: they stay where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.finite import largest_value
from gmil.engine.resident import take_rows
from gmil.errors import BagValidationError
from gmil.scale.passes import Joined, MatrixSource, bags_between, part_edges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers
    from gmil.scale.lazy import LazyBags
    from gmil.scale.passes import Join

_ENTRIES_OF_A_BLOCK = {"cpu": 1 << 22, "cuda": 1 << 31}
"""How many numbers a pass holds beside its input: 16 MiB in single precision, or 8 GiB on a GPU."""


@dataclass(frozen=True)
class TensorBags:
    """Bags whose instances are a tensor, with what methods ask of `gmil.Bags` when they learn.

    Parameters
    ----------
    instances : torch.Tensor of shape (n_instances, n_features)
    offsets : array of shape (n_bags + 1,)
    """

    instances: Any
    offsets: Integers

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_instances(self) -> int:
        """The number of instances in all bags."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> Integers:
        """The number of instances of every bag, (n_bags,)."""
        return np.diff(self.offsets)

    def __getitem__(self, positions: Integers) -> TensorBags:
        """Return some bags, given by their positions, in a tensor of their own."""
        cuts = np.concatenate([[0], np.cumsum(self.sizes[positions])])
        return TensorBags.of(self.instances, self.offsets[positions], cuts)

    @classmethod
    def of(cls, X: Any, begins: Integers, offsets: Integers) -> TensorBags:
        """Return bags that begin at these rows of a tensor; bags that follow each other there are not copied."""
        sizes = np.diff(offsets)
        if np.array_equal(begins[1:], begins[:-1] + sizes[:-1]):
            return cls(X[int(begins[0]) : int(begins[0] + offsets[-1])], offsets)
        return cls(take_rows(X, np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], sizes)), offsets)


def blocks_of_tensor(
    X: Any, offsets: Integers, wanted: Integers, row_entries: int
) -> Iterator[tuple[Integers, TensorBags]]:
    """Yield the rows of some bags in blocks, with the numbers of the bags; one may go on in the next block.

    Parameters
    ----------
    X : torch.Tensor of shape (n_instances, n_features)
    offsets : array of shape (n_bags + 1,)
    wanted : array of int
        Numbers of bags, ascending.
    row_entries : int
        How many numbers are held for every row of a block.
    """
    own = np.concatenate([[0], np.cumsum(np.diff(offsets)[wanted])])  # bags one after the other, without the others
    step = max(1, _ENTRIES_OF_A_BLOCK[X.device.type] // row_entries)
    for start in range(0, int(own[-1]), step):
        stop = min(start + step, int(own[-1]))
        first, last = bags_between(own, start, stop)
        cuts = np.clip(own[first : last + 1], start, stop) - start
        begins = offsets[wanted[first:last]] + np.maximum(start - own[first:last], 0)
        yield wanted[first:last], TensorBags.of(X, begins, cuts)


def reduce_on_device(
    bags: LazyBags, function: Callable[[TensorBags], Sequence[Any]], joins: Sequence[Join], X: Any, row_entries: int
) -> list[NDArray[Any]]:
    """Do what `LazyBags.reduce` does where all instances lie on a device; the function is given tensors.

    Parameters
    ----------
    bags : LazyBags
    function : callable
        Takes bags whose instances are a tensor, among them perhaps a piece of a bag, and returns tables.
    joins : sequence of callable
    X : torch.Tensor
        What `LazyBags.tensor_on` returns.
    row_entries : int
        How many numbers the function holds on the device for every instance.
    """
    joined = Joined(tuple(joins))
    for numbers, block in blocks_of_tensor(X, bags.source_offsets, np.unique(bags.bags_of_source()), row_entries):
        joined.add(numbers, function(block))
        bags._report(int(bags.source_offsets[numbers[-1] + 1]))
    return bags._in_order(joined.tables())


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
