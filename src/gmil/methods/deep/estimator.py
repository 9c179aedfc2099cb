"""What the networks share as estimators: parameters, training, decisions, scores of instances, saving."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax

from gmil.compat import Interval
from gmil.engine import is_torch, why_not
from gmil.errors import BackendUnavailableError, BagValidationError, installing
from gmil.io.model_files.damage import DamageError
from gmil.io.model_files.schema import Array, Count, Kind
from gmil.methods.deep.weights import Weights, check_layout
from gmil.methods.shared.columns import varying_columns
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.model_selection.folds import inner_folds
from gmil.parameters import ABOVE_ZERO, AT_LEAST_ONE, INSIDE_UNIT, NOT_NEGATIVE, parameter, parameters
from gmil.transform.space import fit_scaling, fitted_space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.base import Training
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.deep.training import Job, Network, Schedule, Trained
    from gmil.methods.deep.weights import Layout


@parameters
class DeepClassifier(ScaledClassifier):
    """A network on bags. A class says which weights it has (``_layout``) and what is made of them (``_network``)."""

    hidden: Sequence[int] = parameter(default=(128,), rules=[tuple, list])
    dropout: float = parameter(default=0.25, rules=[Interval(Real, 0, 1, closed="left")])
    epochs: int = parameter(default=50, rules=[AT_LEAST_ONE])
    batch_size: int = parameter(default=8, rules=[AT_LEAST_ONE])
    learning_rate: float = parameter(default=1e-3, rules=[ABOVE_ZERO])
    weight_decay: float = parameter(default=1e-2, rules=[NOT_NEGATIVE])
    optimizer: str = parameter(default="adamw", rules=[{"adamw", "sgd"}])
    early_stopping: bool = parameter(default=False, rules=["boolean"])
    validation_fraction: float = parameter(default=0.2, rules=[INSIDE_UNIT])
    patience: int = parameter(default=20, rules=[AT_LEAST_ONE])
    scale: str | None = "standard"
    backend: str = "auto"
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "columns_": Array("k", dtype="i", at_least=0, below="d"),
        "space_": fitted_space("k"),
        "weights_": Weights(),
        "n_epochs_": Count(1),
        "losses_": Array("e"),
    }
    _kept_parameters: ClassVar[tuple[str, ...]] = ("hidden",)
    _folds_score_instances = True

    # ---------------------------------------------------------------- the network

    @abstractmethod
    def _layout(self, n_columns: int, n_outputs: int) -> Layout:
        """Return the weights of the network, by the parameters that a fitted model keeps."""

    @abstractmethod
    def _network(self) -> Network:
        """Return the network as a function of weights and a batch; only this needs PyTorch."""

    def _layout_of(self, columns: Integers) -> Layout:
        n_classes = len(self.classes_)
        return self._layout(len(columns), 1 if n_classes == 2 else n_classes)

    def _widths(self, least: int = 0) -> list[int]:
        """Return the widths of the hidden layers, checked; there are so many at least."""
        found = list(self.hidden_)
        if len(found) < least or not all(is_count(width) for width in found):
            msg = f"must be the widths of {least} layers or more, whole numbers above zero, got {self.hidden_!r}."
            raise BagValidationError(msg, parameter="hidden")
        return [int(width) for width in found]

    def _device(self) -> Any:
        """Return where the network runs; refuse to go on without PyTorch, or without the GPU that was asked for."""
        wanted = self.backend if is_torch(self.backend) else "torch:cpu"
        reason = why_not(wanted)
        if reason is not None:
            name = type(self).__name__
            fix = installing("torch") if why_not("torch") else "Pass backend='torch:cpu'."
            msg = (
                f"{name} is a network and runs in PyTorch, but with backend={self.backend!r} it cannot: {reason}. {fix}"
            )
            raise BackendUnavailableError(msg)
        from gmil.engine.torch.tensors import choose_device

        return choose_device(wanted)

    # ---------------------------------------------------------------- training

    def _learn(self, training: Training) -> None:
        device, bags = self._device(), training.bags
        from gmil.methods.deep.training import train

        numbers = np.arange(len(bags))
        job = self._job(bags.instances, numbers, training.labels, training.groups, training.generator)
        (found,) = train(
            self._network(), [job], bags.instances, bags.offsets, training.labels, self._schedule(), device
        )
        self._keep(job, found)

    def _job(
        self,
        instances: Instances,
        numbers: Integers,
        labels: Integers,
        groups: Integers | None,
        generator: np.random.Generator,
    ) -> Job:
        """Return what a model learns from: instances and labels of its bags alone, which have these numbers."""
        from gmil.methods.deep.training import Job

        held_out = self._held_out(labels, groups, generator)
        columns = varying_columns(instances)
        space = fit_scaling(_some_columns(instances, columns), self.scale)
        validation = numbers[held_out] if held_out.any() else numbers  # too few bags to hold any out
        return Job(numbers[~held_out], validation, columns, space, self._layout_of(columns), generator)

    def _held_out(self, labels: Integers, groups: Integers | None, generator: np.random.Generator) -> Any:
        """Return which training bags are for validation; none without early stopping."""
        nothing = np.zeros(len(labels), dtype=bool)
        if not self.early_stopping:
            return nothing
        share = self.validation_fraction
        few = Fraction(1, round(1 / share))
        parts = few if share <= 0.3 else min(Fraction(share).limit_denominator(10), Fraction(9, 10))
        folds = inner_folds(labels, parts.denominator, generator, groups)
        most = min(len(folds), max(1, len(folds) - 1))
        for n in range(min(max(1, round(share * len(folds))), most), 0, -1):
            held_out = np.logical_or.reduce(folds[:n])
            if len(np.unique(labels[~held_out])) == len(np.unique(labels)):  # folds of groups may hold all of a class
                return held_out
        return nothing

    def _schedule(self) -> Schedule:
        from gmil.methods.deep.training import Schedule

        patience = self.patience if self.early_stopping else None
        return Schedule(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            float(self.dropout),
            patience,
            self.optimizer,
        )

    def _keep(self, job: Job, found: Trained) -> None:
        self.columns_, self.space_ = job.columns, job.space
        self.weights_, self.n_epochs_, self.losses_ = found.weights, found.n_epochs, found.losses
        if not all(np.isfinite(each).all() for each in found.weights.values()):
            msg = f"The weights of {type(self).__name__} grew without bound in training."
            raise BagValidationError(msg, parameter="learning_rate", fix="Lower it with {learning_rate}")

    def _complete(self) -> None:
        super()._complete()
        if hasattr(self, "weights_") and hasattr(self, "columns_") and hasattr(self, "classes_"):
            check_layout(self.weights_, self._layout_in_file())

    def _layout_in_file(self) -> Layout:
        """Return the layout by the parameters that a file gives, whatever they are."""
        try:
            return self._layout_of(self.columns_)
        except (TypeError, ValueError) as error:
            msg = f"the parameters of {type(self).__name__} are those of no network ({error})"
            raise DamageError(msg) from error

    # ---------------------------------------------------------------- prediction

    def _decide(self, X: Any) -> Floats:
        """Return the logits of the network, (n_bags,) of the positive class, or (n_bags, n_classes)."""
        return self._run(X, of_instances=False)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class for every bag, (n_bags, n_classes): not calibrated.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        decisions = self.decision_function(X)
        return (
            softmax(decisions, axis=1)
            if decisions.ndim == 2
            else np.column_stack([expit(-decisions), expit(decisions)])
        )

    def score_instances(self, X: Any) -> Floats:
        """Return how much every instance is for the positive class, or for every class, as the notes of the class say.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.

        Returns
        -------
        array of shape (n_instances,) or (n_instances, n_classes)
            Aligned with the instances of all bags, one bag after the other.
        """
        return self._run(X, of_instances=True)

    def _run(self, X: Any, *, of_instances: bool) -> Floats:
        bags, device = self._check_new(X), self._device()
        from gmil.methods.deep.batches import Table
        from gmil.methods.deep.training import decide

        table = Table(bags.instances, bags.offsets, [self.columns_], [self.space_], device)
        (found,) = decide(self._network(), [self.weights_], table, [np.arange(len(bags))], of_instances=of_instances)
        return found[:, 0] if len(self.classes_) == 2 else found


def is_count(value: Any) -> bool:
    """Tell whether this is a whole number above zero."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value > 0)


def _some_columns(X: Instances, columns: Integers) -> Instances:
    """Return columns in the memory layout of a table that has no others, so that sums round alike."""
    if len(columns) == X.shape[1]:
        return X
    return X[:, columns] if sp.issparse(X) else np.ascontiguousarray(X[:, columns])
