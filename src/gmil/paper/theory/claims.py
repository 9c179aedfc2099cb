"""Each claim of the paper's section 3.4 and appendix that does not hold, with numbers that contradict it.

All claims speak of a point x and of Pr(x = t | B_ij), one probability for every instance of every bag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gmil.methods.density.noisy_or import bag_nll, log_not

if TYPE_CHECKING:
    from gmil.engine.arrays import Floats

Probabilities = tuple[tuple[float, ...], ...]
"""One tuple a bag, one number an instance, above 0 and below 1."""


class Evidence(NamedTuple):
    """What the instances of all bags say about one point: Pr(x = t | B_ij) of positive and of negative bags."""

    positive: Probabilities
    negative: Probabilities

    @property
    def density_ratio(self) -> float:
        """Eq. 1: the sum over positive instances over the sum over negative instances."""
        return float(_flat(self.positive).sum() / _flat(self.negative).sum())

    @property
    def product_ratio(self) -> float:
        """The second line of the appendix: the same with products."""
        return float(_flat(self.positive).prod() / _flat(self.negative).prod())

    @property
    def absence_ratio(self) -> float:
        """The first line of the appendix: products of 1 - Pr, to be made small."""
        return float((1 - _flat(self.positive)).prod() / (1 - _flat(self.negative)).prod())

    @property
    def diverse_density(self) -> float:
        """The noisy-or model: every positive bag has an instance of the concept, no negative bag has one."""
        offsets = np.cumsum([0, *map(len, self.positive)])
        nll = bag_nll(-np.log(_flat(self.positive)), offsets)[0].sum() - log_not(-np.log(_flat(self.negative))).sum()
        return float(np.exp(-nll))

    @property
    def least_density_ratio(self) -> float:
        """What Diverse Density guarantees for Eq. 1, whatever the bags: n DD^(1/n) / -log DD for n positive bags."""
        n, dd = len(self.positive), self.diverse_density
        return float(n * dd ** (1 / n) / -np.log(dd))


def _flat(bags: Probabilities) -> Floats:
    return np.concatenate([np.asarray(bag, dtype=np.float64) for bag in bags])


@dataclass(frozen=True, slots=True)
class CounterExample:
    """Numbers under which a claim fails.

    Attributes
    ----------
    name : str
    claim : str
        What is printed, in words.
    points : dict of str to Evidence
        One point, or two that are compared.
    shown : tuple of str
        The quantities of `Evidence` that contradict the claim.
    """

    name: str
    claim: str
    points: dict[str, Evidence]
    shown: tuple[str, ...]


_EVEN = ((0.1,), (0.1,))

COUNTER_EXAMPLES = (
    CounterExample(
        "step 1",
        "To maximise Diverse Density is to minimise the ratio of the products of 1 - Pr.",
        {
            "x": Evidence(((0.99,), (0.01,)), _EVEN),
            "y": Evidence(((0.8,), (0.8,)), _EVEN),
        },
        ("absence_ratio", "diverse_density"),
    ),
    CounterExample(
        "step 2",
        "To minimise the ratio of the products of 1 - Pr is to maximise the ratio of the products of Pr.",
        {
            "x": Evidence(((0.99, 0.01),), ((0.1, 0.1),)),
            "y": Evidence(((0.5, 0.5),), ((0.1, 0.1),)),
        },
        ("absence_ratio", "product_ratio", "diverse_density"),
    ),
    CounterExample(
        "step 3, condition",
        "Under the condition of the lemma, the ratio of products is at least the ratio of sums.",
        {"x": Evidence(((0.9, 0.001),), ((0.4, 0.4),))},
        ("density_ratio", "product_ratio"),
    ),
    CounterExample(
        "step 3, number of instances",
        "With equally many bags, Theorem 1 applies to their instances.",
        {"x": Evidence(((0.5, 0.5),), ((0.5,),))},
        ("density_ratio", "product_ratio"),
    ),
    CounterExample(
        "step 3, maximisers",
        "What maximises a lower bound maximises what it bounds.",
        {
            "x": Evidence(((0.9, 0.9),), ((0.3, 0.1),)),
            "y": Evidence(((0.5, 0.5),), ((0.1, 0.1),)),
        },
        ("density_ratio", "product_ratio"),
    ),
    CounterExample(
        "conclusion",
        "To maximise the density ratio maximises Diverse Density.",
        {
            "x": Evidence(((0.9,) * 3, (0.01,) * 3, (0.01,) * 3), ((0.005,) * 3,) * 3),
            "y": Evidence(((0.9, 0.01, 0.01),) * 3, ((0.01,) * 3,) * 3),
        },
        ("density_ratio", "diverse_density"),
    ),
    CounterExample(
        "last lemma",
        "Under its condition, the density ratio is a lower bound of Diverse Density.",
        {"y": Evidence(((0.9, 0.01, 0.01),) * 3, ((0.01,) * 3,) * 3)},
        ("density_ratio", "diverse_density", "least_density_ratio"),
    ),
)
"""In the order of the appendix."""
