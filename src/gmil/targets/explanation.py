"""Why a bag has its value: which instances raise it, and which lower it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import listed
from gmil.witnesses.carriers import carriers
from gmil.witnesses.explanation import Witness, info_of

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class ValueExplanation:
    """Why a bag has its predicted value.

    Attributes
    ----------
    value : float
        What is predicted.
    typical : float
        The mean of the training bags.
    raised_by, lowered_by : tuple of Witness
        The fewest instances with a share of all that raises the value, or lowers it; the first has the most.
    bag_id : label or None
    """

    value: float
    typical: float
    raised_by: tuple[Witness, ...] = ()
    lowered_by: tuple[Witness, ...] = ()
    bag_id: Any = None

    def __str__(self) -> str:
        parts = [
            f"{how} by {listed([str(witness) for witness in found])}"
            for how, found in (("raised", self.raised_by), ("lowered", self.lowered_by))
            if found
        ]
        return f"value {self.value:.4g} (typical {self.typical:.4g}): {', '.join(parts) or 'no instance matters'}"


def explain_value(bags: Bags, value: float, typical: float, effects: Floats, share: float) -> ValueExplanation:
    """Return which instances of one bag raise and lower its value, given the effect of each, (n_instances,)."""
    return ValueExplanation(
        value=value,
        typical=typical,
        raised_by=_carriers(bags, np.maximum(effects, 0), share),
        lowered_by=_carriers(bags, np.maximum(-effects, 0), share),
        bag_id=None if bags.bag_ids is None else bags.bag_ids[0],
    )


def _carriers(bags: Bags, evidence: Floats, share: float) -> tuple[Witness, ...]:
    chosen = carriers(evidence, share).tolist()
    return tuple(Witness(i, float(evidence[i] / evidence.sum()), info_of(bags, i)) for i in chosen)
