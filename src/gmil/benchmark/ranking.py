"""Who is better over many sets: mean ranks, differences to a reference, wins, ties and losses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from gmil.benchmark.figures import SMALLER_IS_BETTER
from gmil.paper.statistics import (
    ZONE,
    average_ranks,
    compare_with_best,
    corrected_difference,
    critical_difference,
    holm,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gmil.engine.arrays import Floats

_MOST = 0.8
"""The share of the sets that ranks are over at least."""


@dataclass(frozen=True)
class Scores:
    """One figure of methods on sets.

    Attributes
    ----------
    measure : str
    methods, sets : tuple of str
    values : array of shape (n_sets, n_methods)
        NaN where there is none.
    empty : array of shape (n_sets, n_methods)
        Whether a cell was tried and is empty, for time, memory or an error; it ranks last.
    """

    measure: str
    methods: tuple[str, ...]
    sets: tuple[str, ...]
    values: Floats
    empty: Any

    @property
    def gain(self) -> Floats:
        """The values, or their negatives where small ones are good."""
        return -self.values if self.measure in SMALLER_IS_BETTER else self.values

    def of(self, methods: Sequence[str], sets: Sequence[str]) -> Scores:
        """Return those of some methods on some sets."""
        columns, rows = [self.methods.index(m) for m in methods], [self.sets.index(s) for s in sets]
        at = np.ix_(rows, columns)
        return Scores(self.measure, tuple(methods), tuple(sets), self.values[at], self.empty[at])

    def ready(self) -> Scores:
        """Return a part in which every method was tried on every set: all methods that leave most of the sets.

        Methods join by the number of sets that they were tried on, the most first, where four fifths of the sets stay:
        one that was tried on few sets so far must not take the others from all methods.
        """
        tried = ~np.isnan(self.values) | self.empty
        kept, whole = [], np.ones(len(self.sets), dtype=bool)  # tried by all that are kept
        for i in np.argsort(-tried.sum(axis=0), kind="stable").tolist():
            if (whole & tried[:, i]).sum() >= _MOST * len(self.sets):
                kept.append(i)
                whole &= tried[:, i]
        return self.of([self.methods[i] for i in sorted(kept)], [s for s, w in zip(self.sets, whole, strict=True) if w])

    def complete(self) -> Scores:
        """Return those of the methods that have a figure on every set of the same part."""
        ready = self.ready()
        whole = [m for m, column in zip(ready.methods, (~np.isnan(ready.values)).T, strict=True) if column.all()]
        return ready.of(whole, ready.sets)


def ranks(scores: Scores, reference: str) -> dict[str, Any] | None:
    """Return the mean rank of every method, the best first, and which differ from the reference.

    Empty cells rank last, and share that place. ``critical`` is Nemenyi's critical difference of mean ranks;
    ``p_holm`` is of the difference in mean rank to the reference, by a normal distribution, under Holm's correction
    (Demsar 2006). None where there are no two methods, no two sets, or no figure at all.

    Parameters
    ----------
    scores : Scores
        Without cells that were not tried.
    reference : str
    """
    n_sets, n_methods = scores.values.shape
    if n_methods < 2 or n_sets < 2 or np.isnan(scores.values).all():
        return None
    filled = np.where(scores.empty, -np.inf, scores.gain)
    means = average_ranks(filled)
    found: dict[str, Any] = dict(zip(scores.methods, means.tolist(), strict=True))
    others = [m for m in scores.methods if m != reference]
    p_holm: dict[str, float] = {}
    if reference in found:
        error = np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))
        p = [2 * stats.norm.sf(abs(found[m] - found[reference]) / error) for m in others]
        p_holm = dict(zip(others, holm(p).tolist(), strict=True))
    return {
        "n_sets": n_sets,
        "sets": list(scores.sets),
        "critical": critical_difference(n_methods, n_sets),
        "rows": [
            {"method": m, "rank": round(found[m], 6), "p_holm": p_holm.get(m)}
            for m in sorted(found, key=found.get)  # type: ignore[arg-type]
        ],
    }


def against(scores: Scores, reference: str, zone: float = ZONE) -> list[dict[str, Any]]:
    """Return wins, ties and losses of the reference against every other method, and the mean difference over sets.

    A win is more than the zone, a loss less; a set on which only the other is empty is a win, one on which only the
    reference is, a loss. The difference is over sets that both have, with the interval and Holm's p-value of a t-test
    over sets.
    """
    if reference not in scores.methods:
        return []
    at = scores.methods.index(reference)
    rows = [
        _against(other, scores.gain[:, [at, i]].T, scores.empty[:, [at, i]].T, zone)
        for i, other in enumerate(scores.methods)
        if other != reference
    ]
    rows = [row for row in rows if row["wins"] + row["ties"] + row["losses"]]  # both must have such a figure
    tested = [row for row in rows if row["p_value"] is not None]
    for row, p in zip(tested, holm([row["p_value"] for row in tested]).tolist(), strict=True):
        row["p_holm"] = p
    return rows


def _against(other: str, gains: Floats, empty: Any, zone: float) -> dict[str, Any]:
    """Return how the reference, in the first row, compares with another method, in the second."""
    differences = (gains[0] - gains[1])[~np.isnan(gains).any(axis=0)]
    by_default = [int((empty[1 - i] & ~np.isnan(gains[i])).sum()) for i in (0, 1)]
    row = {
        "method": other,
        "wins": int((differences > zone).sum()) + by_default[0],
        "ties": int((np.abs(differences) <= zone).sum()),
        "losses": int((differences < -zone).sum()) + by_default[1],
        "difference": float(differences.mean()) if len(differences) else None,
        "interval": None,
        "p_value": None,
        "p_holm": None,
    }
    if len(differences) > 1 and differences.std() > 0:
        over_sets = corrected_difference(differences, 0.0).comparison(0.05, zone)
        row |= {"interval": list(over_sets.interval), "p_value": over_sets.p_value}
    return row


def verdicts_on_set(folds: Mapping[str, Floats], reference: str, n_bags: int) -> dict[str, dict[str, Any]]:
    """Return how every method compares with the reference on one set, by the corrected t-test and Holm's correction.

    Parameters
    ----------
    folds : mapping of str to arrays of shape (n_repeats, n_folds)
        Accuracies; a method is compared by the repeats that it shares with the reference.
    reference : str
    n_bags : int
    """
    if reference not in folds or len(folds) < 2:
        return {}
    compared = compare_with_best(folds, reference, n_bags=n_bags)
    n_repeats = {method: min(len(folds[method]), len(folds[reference])) for method in compared}
    return {method: {**asdict(one), "n_repeats": n_repeats[method]} for method, one in compared.items()}
