"""Why a bag was decided as it was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gmil.witnesses.explanation import Explanation, info_of

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers
    from gmil.greedy.voting import Voter


@dataclass(frozen=True, kw_only=True)
class CodebookExplanation(Explanation):
    """Why a bag has its label: its instance nearest to a positive centre, and that nearest to a negative one.

    Attributes
    ----------
    label, margin, witnesses, bag_id
        As in `gmil.Explanation`.
    positive_instance : int
        The instance of the bag that is nearest to C+.
    positive_center : int
        The bin of C+ that it is nearest to.
    positive_distance : float
    negative_instance, negative_center : int or None
        The same for C-; None where there is no negative codebook.
    negative_distance : float
        The distance to C-, or the threshold where there is no negative codebook.
    positive_info, negative_info : dict or None
        The ``instance_info`` of the two instances, where the bag has it.
    """

    positive_instance: int
    positive_center: int
    positive_distance: float
    negative_instance: int | None
    negative_center: int | None
    negative_distance: float
    positive_info: dict[str, Any] | None = None
    negative_info: dict[str, Any] | None = None

    def renumbered(self, numbers: Integers) -> Self:
        """Return the same about a larger bag, of which this one has some of the instances.

        Parameters
        ----------
        numbers : array of shape (n_instances,)
            The number of every instance in the larger bag.
        """
        negative = self.negative_instance
        return replace(
            super().renumbered(numbers),
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
            f"centre {self.positive_center}, {against}; {self._named_witnesses()}; margin {self.margin:.4g}"
        )


def explain_problem(
    voter: Voter, problem: int, to_used: Floats, bags: Bags, common: dict[str, Any]
) -> CodebookExplanation:
    """Explain one problem for one bag from the distances of its instances to the bins in use.

    ``common`` are the fields that explanations of all classifiers have.
    """
    positive = voter.positive_bins[problem]
    instance, center, distance = _nearest_pair(to_used[:, voter.columns(positive)], positive)
    against: tuple[int | None, int | None, float]
    if voter.thresholds is not None:
        against = None, None, float(voter.thresholds[problem])
    else:
        negative = voter.negative_bins[problem]
        against = _nearest_pair(to_used[:, voter.columns(negative)], negative)
    return CodebookExplanation(
        **common,
        positive_instance=instance,
        positive_center=center,
        positive_distance=distance,
        negative_instance=against[0],
        negative_center=against[1],
        negative_distance=against[2],
        positive_info=info_of(bags, instance),
        negative_info=info_of(bags, against[0]),
    )


def _nearest_pair(to_centers: Floats, bins: Integers) -> tuple[int, int, float]:
    instance, column = np.unravel_index(to_centers.argmin(), to_centers.shape)
    return int(instance), int(bins[column]), float(to_centers[instance, column])
