"""How often the paper's equations and Diverse Density have their maximum at one point, and what it costs where not.

Two sets of candidate points: instances of positive bags, where Eq. 1 and 2 are defined, and the centres of GMIL's
clusters, where Eq. 1, 2, 5 and 6 all are. Diverse Density takes one width for all features, the one under which its
maximum over the candidates is largest; Eq. 1 uses the same Gaussian, Eq. 2 the box that holds as many instances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gmil.datasets import make_bags
from gmil.greedy import GMIL
from gmil.greedy.codebook import score_bins
from gmil.greedy.windows import choose_width, window_sums
from gmil.paper.theory.conditions import condition_row
from gmil.paper.theory.profile import density_profile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats

N_BAGS, BAG_SIZE, SEPARATION = 100, 20, 4.0
N_CANDIDATES = 200
RULES = {
    "dd": "Diverse Density",
    "eq1": "Eq. 1",
    "eq1-epsilon": "Eq. 1 with epsilon",
    "eq2": "Eq. 2",
    "eq2-epsilon": "Eq. 2 with epsilon",
    "eq5": "Eq. 5",
    "eq6": "Eq. 6",
    "eq6-small": "Eq. 6, small epsilon",
}
"""Every rule that names a point.

Eq. 1, 2 and 5 are as printed, without an epsilon. Eq. 6 has epsilon = 1/K; "small" is one over the number of negative
instances, which is also the epsilon of `gmil.DensityRatio` that Eq. 1 and 2 are given.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """Bags to generate."""

    witness_rate: float
    n_features: int
    positive_share: float


BASE = Setting(witness_rate=0.2, n_features=5, positive_share=0.5)
VARIED: dict[str, tuple[float, ...]] = {
    "witness_rate": (0.05, 0.1, 0.2, 0.4, 0.8),
    "n_features": (2, 5, 10, 20, 50),
    "positive_share": (0.1, 0.25, 0.5, 0.75, 0.9),
}


def settings_of(name: str) -> list[Setting]:
    """Return the settings that differ in one respect: "witness_rate", "n_features" or "positive_share"."""
    return [replace(BASE, **{name: cast("Any", value)}) for value in VARIED[name]]


def measure_setting(setting: Setting, seed: int) -> list[dict[str, Any]]:
    """Generate bags and return a row for every set of candidates and every rule."""
    made = make_bags(
        N_BAGS,
        n_features=setting.n_features,
        bag_size=BAG_SIZE,
        witness_rate=setting.witness_rate,
        positive_share=setting.positive_share,
        separation=SEPARATION,
        random_state=seed,
    )
    return measure_agreement(made.bags, made.y == 1, seed, concept=made.centers[0])


def measure_agreement(
    bags: Bags, positive: Booleans, seed: int, *, concept: Floats | None = None
) -> list[dict[str, Any]]:
    """Return, for every set of candidates and every rule, whether it names the point of Diverse Density; the regret.

    Parameters
    ----------
    bags : Bags
    positive : array of shape (n_bags,)
    seed : int
        Of the candidates and of k-means.
    concept : array of shape (n_features,), optional
        Where the witnesses lie, and the background around the origin, where that is known. The conditions of the
        paper's lemmas are then looked at there, in a row of their own.
    """
    generator = np.random.default_rng(seed)
    in_positive = positive[bags.segment_ids]
    rows = np.flatnonzero(in_positive)
    drawn = np.sort(generator.choice(rows, min(N_CANDIDATES, len(rows)), replace=False))
    model = GMIL(n_positive=1, n_negative=0, random_state=seed).fit(bags, positive)
    points = np.concatenate([bags.instances[drawn], model.cluster_centers_]).astype(np.float64)
    nll, width = density_profile(points, bags, positive)
    widths = {"gaussian": width, "box": _same_mass(points, bags, width, generator)}
    scores = {"dd": -nll, **window_scores(points, bags.instances, in_positive, widths)}
    parts = {"instances": slice(len(drawn)), "centres": slice(len(drawn), None)}
    found = []
    for kind, part in parts.items():
        here = {name: values[part] for name, values in scores.items()}
        if kind == "centres":
            here |= bin_scores(model, int(positive.sum()))
        reach = None if concept is None else points[part] @ concept / (concept @ concept)
        assessed = {rule: assess(here[rule], nll[part], reach, len(bags)) for rule in RULES if rule in here}
        found += [{"candidates": kind, "rule": rule, "width": width, **row} for rule, row in assessed.items()]
    if concept is not None:
        found.append(condition_row(concept, bags, positive, widths))
    return found


def _same_mass(points: Floats, bags: Bags, width: float, generator: np.random.Generator) -> float:
    """Return the edge of the box that holds, at the median point, as much as the Gaussian does."""
    everything = np.ones(bags.n_instances, dtype=bool)
    held = window_sums(points, bags.instances, everything, "gaussian", width)[0]
    return choose_width(points, bags.instances, "box", generator, float(np.median(held)) / bags.n_instances)


def window_scores(points: Floats, X: Floats, in_positive: Booleans, widths: dict[str, float]) -> dict[str, Floats]:
    """Return Eq. 1 (Gaussian) and Eq. 2 (box) at every point, as printed and with epsilon."""
    scores = {}
    n_negative = int((~in_positive).sum())
    for name, kernel in (("eq1", "gaussian"), ("eq2", "box")):
        inside, outside = window_sums(points, X, in_positive, kernel, widths[kernel])
        scores[name] = ratio(inside, outside)
        scores[f"{name}-epsilon"] = inside / int(in_positive.sum()) / ((outside + 1) / n_negative)
    return scores


def bin_scores(model: GMIL, n_positive_bags: int) -> dict[str, Floats]:
    """Return Eq. 5 and 6 of every cluster."""
    above, below = model.positive_counts_, model.negative_counts_
    small = score_bins(above, below, np.array(n_positive_bags), epsilon=1 / float(below.sum()), weighting="bags")
    return {"eq5": ratio(above, below), "eq6": model.bin_scores_, "eq6-small": small}


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide as printed: infinity where nothing negative is there, and zero where nothing is there at all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above > 0, above / below, 0.0)


def assess(scores: Floats, nll: Floats, reach: Floats | None, n_bags: int) -> dict[str, float | None]:
    """Compare the best candidate by a score with the best by Diverse Density; equals are averaged over.

    The regret is in nats of log-likelihood per bag; relative to a candidate drawn at random it is 0 for the best
    candidate, 1 for a random one, and more than 1 for worse than that. The reach is where a candidate lies on the way
    from the background, 0, to the concept, 1; beyond the middle it has found the concept.
    """
    chosen, best = scores == scores.max(), nll == nll.min()
    lost = float(nll[chosen].mean() - nll.min())
    at_random = float(nll.mean() - nll.min())
    return {
        "agreement": float(best[chosen].mean()),
        "regret": lost / n_bags,
        "relative_regret": lost / at_random if at_random > 0 else 0.0,
        "finds_concept": None if reach is None else float((reach[chosen] > 0.5).mean()),
        "reach": None if reach is None else float(reach[chosen].mean()),
        "ties": float(chosen.sum()),
    }


def summarize(rows: Iterable[dict[str, Any]], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the mean and the standard error of every measure over rows that are alike in ``keys``."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [{**dict(zip(keys, at, strict=True)), **_means(group, keys)} for at, group in groups.items()]


def _means(group: list[dict[str, Any]], keys: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {"n": len(group)}
    for name, value in group[0].items():
        if isinstance(value, float) and name not in keys:
            values = np.array([row[name] for row in group])
            found[name] = float(values.mean())
            found[f"{name}_error"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return found
