"""Why a bag was decided as it was: its witnesses, and their shares in the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gmil.bags import Bags
from gmil.errors import BagValidationError, listed
from gmil.scale import LazyBags
from gmil.witnesses.carriers import carriers, class_number, evidence_for

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats, Integers


@dataclass(frozen=True)
class Witness:
    """An instance that carries the decision about its bag.

    Attributes
    ----------
    instance : int
        Its number in the bag.
    share : float
        Its part of the evidence of the bag, at most 1.
    info : dict or None
        Its ``instance_info``, where the bag has it.
    """

    instance: int
    share: float
    info: dict[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.instance} ({self.share:.0%})"


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a bag has its label: the instances that carry the decision.

    Attributes
    ----------
    label : label
        The predicted label.
    margin : float
        The decision value of the bag: of two classes for the positive one, of more for the class that is explained.
    witnesses : tuple of Witness
        The instances with the most evidence for that class, the first of them with the most. Of two classes, a bag
        that is predicted negative has none.
    bag_id : label or None
    """

    label: Any
    margin: float
    witnesses: tuple[Witness, ...] = ()
    bag_id: Any = None

    def renumbered(self, numbers: Integers) -> Self:
        """Return the same about a larger bag, of which this one has some of the instances.

        Parameters
        ----------
        numbers : array of shape (n_instances,)
            The number of every instance in the larger bag.
        """
        renumbered = tuple(replace(witness, instance=int(numbers[witness.instance])) for witness in self.witnesses)
        return replace(self, witnesses=renumbered)

    def __str__(self) -> str:
        return f"label {self.label}: {self._named_witnesses()}; margin {self.margin:.4g}"

    def _named_witnesses(self) -> str:
        named = [str(witness) for witness in self.witnesses]
        return f"witness{'es' * (len(named) > 1)} {listed(named)}" if named else "no witness"


def explain_bag(self: Any, bag: Any, *, label: Any = None, share: float = 0.9) -> Explanation:
    """Return which instances decided about one bag.

    Parameters
    ----------
    bag : 2-D array, or Bags with one bag
    label : label, optional
        With more than two classes, the class to explain; by default the predicted one.
    share : float, default=0.9
        The part of the evidence that the instances named have at least, as in ``witnesses``.
    """
    bags = one_bag(self, bag)
    return Explanation(**common_parts(self, bags, label, share, self._decide(bags)))


def one_bag(model: Any, bag: Any) -> Bags:
    """Return one bag, checked."""
    given = bag.load() if isinstance(bag, LazyBags) else bag
    bags: Bags = model._check_new(given if isinstance(given, Bags) else [given])
    if len(bags) != 1:
        msg = f"explain takes one bag, got {len(bags)}. Choose one with bags[i] or bags[i:i + 1]."
        raise BagValidationError(msg)
    return bags


def explained_column(model: Any, label: Any, decisions: Floats) -> int:
    """Return the column of decisions that is explained: that of a label, or of the prediction."""
    if decisions.ndim == 1:
        return 0
    predicted = model._labels_of(model._oriented(decisions))[0]
    if label is None and np.ndim(predicted):
        msg = "Bags have several labels, so one of them must be explained."
        raise BagValidationError(msg, parameter="label", fix="Choose one of the columns with {label}")
    return class_number(model, predicted if label is None else label)


def common_parts(model: Any, bags: Bags, label: Any, share: float, decisions: Floats) -> dict[str, Any]:
    """Return the fields that all explanations of one bag have."""
    column = explained_column(model, label, decisions)
    of_several = decisions.ndim == 2
    evidence = evidence_for(model, bags, model.classes_[column] if of_several and label is not None else None)
    chosen = carriers(evidence, share).tolist()
    return {
        "label": model._labels_of(model._oriented(decisions))[0],
        "margin": float(np.ravel(decisions)[column]),
        "witnesses": tuple(Witness(i, float(evidence[i] / evidence.sum()), info_of(bags, i)) for i in chosen),
        "bag_id": None if bags.bag_ids is None else bags.bag_ids[0],
    }


def info_of(bags: Bags, instance: int | None) -> dict[str, Any] | None:
    """Return the ``instance_info`` of an instance of the first bag, where there is any."""
    if bags.instance_info is None or instance is None:
        return None
    row: dict[str, Any] = bags.instance_info.slice(instance, 1).to_pylist()[0]
    return row
