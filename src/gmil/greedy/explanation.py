"""Why a bag was decided as it was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers
    from gmil.greedy.voting import Voter


@dataclass(frozen=True)
class Explanation:
    """Why a bag has its label: its instance nearest to a positive centre, and that nearest to a negative one.

    Attributes
    ----------
    label : label
        The predicted label.
    margin : float
        The decision value of the bag.
    positive_instance : int
        The instance of the bag that is nearest to C+.
    positive_center : int
        The bin of C+ that it is nearest to.
    positive_distance : float
    negative_instance, negative_center : int or None
        The same for C-; None where there is no negative codebook.
    negative_distance : float
        The distance to C-, or the threshold where there is no negative codebook.
    bag_id : label or None
    positive_info, negative_info : dict or None
        The ``instance_info`` of the two instances, where the bag has it.
    """

    label: Any
    margin: float
    positive_instance: int
    positive_center: int
    positive_distance: float
    negative_instance: int | None
    negative_center: int | None
    negative_distance: float
    bag_id: Any = None
    positive_info: dict[str, Any] | None = None
    negative_info: dict[str, Any] | None = None

    def renumbered(self, numbers: Integers) -> Explanation:
        """Return the same about a larger bag, of which this one has some of the instances.

        Parameters
        ----------
        numbers : array of shape (n_instances,)
            The number of every instance in the larger bag.
        """
        negative = self.negative_instance
        return replace(
            self,
            positive_instance=int(numbers[self.positive_instance]),
            negative_instance=None if negative is None else int(numbers[negative]),
        )

    def __str__(self) -> str:
        against = (
            f"the threshold is {self.negative_distance:.4g}"
            if self.negative_instance is None
            else f"instance {self.negative_instance} is {self.negative_distance:.4g} from negative centre "
            f"{self.negative_center}"
        )
        return (
            f"label {self.label}: instance {self.positive_instance} is {self.positive_distance:.4g} from positive "
            f"centre {self.positive_center}, {against}; margin {self.margin:.4g}"
        )


def explain_problem(
    voter: Voter, problem: int, to_used: Floats, *, margin: float, label: Any, bags: Bags
) -> Explanation:
    """Explain one problem for one bag from the distances of its instances to the bins in use."""
    positive = voter.positive_bins[problem]
    instance, center, distance = _nearest_pair(to_used[:, voter.columns(positive)], positive)
    against: tuple[int | None, int | None, float]
    if voter.thresholds is not None:
        against = None, None, float(voter.thresholds[problem])
    else:
        negative = voter.negative_bins[problem]
        against = _nearest_pair(to_used[:, voter.columns(negative)], negative)
    return Explanation(
        label=label,
        margin=margin,
        positive_instance=instance,
        positive_center=center,
        positive_distance=distance,
        negative_instance=against[0],
        negative_center=against[1],
        negative_distance=against[2],
        bag_id=None if bags.bag_ids is None else bags.bag_ids[0],
        positive_info=_info_of(bags, instance),
        negative_info=_info_of(bags, against[0]),
    )


def _nearest_pair(to_centers: Floats, bins: Integers) -> tuple[int, int, float]:
    instance, column = np.unravel_index(to_centers.argmin(), to_centers.shape)
    return int(instance), int(bins[column]), float(to_centers[instance, column])


def _info_of(bags: Bags, instance: int | None) -> dict[str, Any] | None:
    if bags.instance_info is None or instance is None:
        return None
    row: dict[str, Any] = bags.instance_info.slice(instance, 1).to_pylist()[0]
    return row
