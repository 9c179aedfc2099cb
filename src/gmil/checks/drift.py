"""`check_drift`: whether new bags are like those that a model learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import stats

from gmil.checks.findings import DataCheck, Finding
from gmil.checks.near_duplicates import compared_by
from gmil.checks.values import feature_names
from gmil.errors import BagValidationError, count_of, listed
from gmil.model_selection.scoring import grades_of, shown_order
from gmil.transform.profile import Profile, bag_means
from gmil.validation import check_bag_labels, check_bags, check_groups
from gmil.weighted import WeightedGMIL
from gmil.weighted.familiar import familiarity

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats, Integers

LEVEL = 0.05
"""The false-alarm rate: of new bags like the training bags, a check warns so often at most."""
_MOST_STEPS = 500


@dataclass(frozen=True, slots=True)
class DriftCheck(DataCheck):
    """The outcome of `check_drift`: findings, and what they are about.

    Attributes
    ----------
    verdict : str
        "no drift found", or which checks warn.
    findings : list of Finding
        Of ranges, features, bags and labels.
    features : list of dict
        For every feature its ``name``, ``outside`` (the share of bags with a value out of range), ``distance``
        (Kolmogorov-Smirnov, between means of bags) and ``p_value``, adjusted for the number of features; the most
        drifted first.
    familiarity : array of shape (n_bags,)
        The p-value of every bag; small where it is unlike the training bags.
    """

    features: list[dict[str, Any]]
    familiarity: Floats


class Counted(NamedTuple):
    """How much every new bag counts, and how many there are on either side; bags of one group count as one."""

    weights: Floats  # (n_bags,), in sum ``n_new``
    n_new: int
    n_known: int

    @classmethod
    def of(cls, groups: Integers | None, n_bags: int, n_known: int) -> Counted:
        """Count ``n_bags`` new bags, of groups of their own, against those that are known."""
        if groups is None:
            return cls(np.ones(n_bags), n_bags, n_known)
        sizes = np.bincount(groups)
        return cls(1 / sizes[groups], len(sizes), n_known)


def check_drift(
    model: Any, bags: Any, *, groups: Any = None, reference: Any = None, reference_y: Any = None
) -> DriftCheck:
    """Compare new bags with those that a model learnt from.

    Values out of the training range are counted. Three tests follow, each with a false-alarm rate of 5 %: of the means
    of features over bags (Kolmogorov-Smirnov with Holm's correction for the number of features); of bags unlike the
    training bags; and of the shares of classes, from the probabilities of the model (label shift, by expectation
    maximisation).

    Parameters
    ----------
    model : fitted classifier of bags
        A `gmil.WeightedGMIL` that was fitted in memory knows its training bags. For others pass ``reference``.
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
        New bags; labels are not needed.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) resemble each other: together they count as one bag, or tests would warn
        too often. Groups of the training bags are known to the model that was fitted with them.
    reference : Bags, optional
        The training bags, or others that are as they should be.
    reference_y : array of shape (n_bags,), optional
        Their labels, for the shares of classes.

    Returns
    -------
    DriftCheck

    References
    ----------
    Saerens, M., Latinne, P. and Decaestecker, C., "Adjusting the outputs of a classifier to new a priori
    probabilities", Neural Computation 14, 2002.

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> model = gmil.WeightedGMIL(random_state=0).fit(bags[::2], y[::2])
    >>> gmil.check_drift(model, bags[1::2]).verdict
    'no drift found'
    >>> moved = bags[1::2].with_instances(bags[1::2].instances + 100)
    >>> gmil.check_drift(model, moved)["features"].level
    'warning'
    """
    bags = check_bags(bags, allow_nan=True)
    known = None if reference is None else check_bags(reference, allow_nan=True)
    profile, own = _profile(model, known), check_groups(groups, len(bags))
    counted = Counted.of(own, len(bags), _n_units(model, known) or profile.n_bags)
    features = compare_features(bags, profile, counted)
    unlike = _familiarity(model, bags, known)
    findings = [
        _range_finding(features, profile.n_bags),
        _feature_finding(features),
        _bag_finding(unlike, counted._replace(n_known=_n_units(model, known) or _n_known(model, known))),
        _label_finding(model, bags, known, reference_y, counted.weights),
    ]
    warned = [finding.name for finding in findings if finding.level == "warning"]
    verdict = f"drift: {', '.join(warned)}" if warned else "no drift found"
    return DriftCheck(verdict, findings, features, unlike)


def _last(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _profile(model: Any, reference: Bags | None) -> Profile:
    if reference is not None:
        return Profile.of(reference)
    kept = getattr(_last(model), "profile_", None)
    if kept is None:
        msg = (
            f"This {type(_last(model)).__name__} does not know its training bags. Pass reference=..., the training "
            "bags (--reference DATA)."
        )
        raise BagValidationError(msg)
    return Profile(**kept)


def _n_units(model: Any, reference: Bags | None) -> int:
    """Return how many groups the model learnt from, or 0 where that is not known."""
    groups = getattr(_last(model), "training_groups_", None) if reference is None else None
    return 0 if groups is None else len(np.unique(groups))


def _n_known(model: Any, reference: Bags | None) -> int:
    kept = getattr(_last(model), "familiar_distances_", None)
    return len(reference) if reference is not None else 1 if kept is None else len(kept)


# -------------------------------------------------------------------------------- features


def compare_features(bags: Bags, profile: Profile, counted: Counted | None = None) -> list[dict[str, Any]]:
    """Return what `DriftCheck` has of every feature, the most drifted first."""
    counted = counted or Counted.of(None, len(bags), profile.n_bags)
    if bags.n_features != len(profile.low):
        msg = f"The new bags have {count_of(bags.n_features, 'feature')}, and the training bags had {len(profile.low)}."
        raise BagValidationError(msg)
    outside, means = _outside(bags, profile, counted.weights), bag_means(bags)
    n = counted.n_new * counted.n_known / (counted.n_new + counted.n_known)
    distances = np.array([_distance(means[:, j], counted.weights, profile, j) for j in range(bags.n_features)])
    chances = holm(np.asarray(stats.kstwobign.sf(distances * (np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n)))))
    rows = [
        {"name": name, "outside": float(out), "distance": float(distance), "p_value": float(chance)}
        for name, out, distance, chance in zip(feature_names(bags), outside, distances, chances, strict=True)
    ]
    return sorted(rows, key=lambda row: (row["p_value"], -row["distance"]))


def _outside(bags: Bags, profile: Profile, weights: Floats) -> Floats:
    """Return, for every feature, the share of bags with a value out of the training range."""
    X: Any = bags.instances.toarray() if sp.issparse(bags.instances) else bags.instances
    wrong = (profile.low > X) | (profile.high < X)
    return np.average(np.logical_or.reduceat(wrong, bags.offsets[:-1], axis=0), axis=0, weights=weights)


def _distance(values: Floats, weights: Floats, profile: Profile, feature: int) -> float:
    """Return the largest difference between the shares of bags below any value (Kolmogorov-Smirnov)."""
    known, order = profile.means[feature], np.argsort(values)
    values, below = values[order], np.append(0.0, np.cumsum(weights[order]))
    points = np.concatenate([known, values])
    theirs = np.searchsorted(known, points, "right") / len(known)
    ours = below[np.searchsorted(values, points, "right")] / below[-1]
    return float(np.abs(theirs - ours).max())


def holm(chances: Floats) -> Floats:
    """Return p-values adjusted for how many there are (Holm).

    >>> holm(np.array([0.5, 0.01, 0.02])).tolist()
    [0.5, 0.03, 0.04]
    """
    order = np.argsort(chances)
    adjusted = np.minimum(1, np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1)))
    found = np.empty(len(chances))
    found[order] = adjusted
    return found


def _range_finding(features: list[dict[str, Any]], n_known: int) -> Finding:
    share, expected = float(np.mean([row["outside"] for row in features])), 2 / (n_known + 1)
    worst = sorted((row for row in features if row["outside"] > 2 * expected), key=lambda row: -row["outside"])
    text = (
        f"On average over features, {share:.2%} of the bags have a value out of the range of the training bags; "
        f"{expected:.2%} are expected"
    )
    shown = listed(["{name} {outside:.1%}".format_map(row) for row in worst], 5)
    text += f". Most: {shown}" if worst else ""
    level: Any = "ok" if share < 2 * expected else "note" if share < 3 * expected + LEVEL else "warning"
    return Finding("ranges", level, share, f"{text}.", fix="" if level == "ok" else "Compare units and programs.")


def _feature_finding(features: list[dict[str, Any]]) -> Finding:
    drifted = [row for row in features if row["p_value"] <= LEVEL]
    if not drifted:
        return Finding("features", "ok", 0.0, "No feature has other means over bags than in training.")
    shown = listed([f"{row['name']} (distance {row['distance']:.2f})" for row in drifted], 5)
    text = f"{len(drifted)} of {len(features)} features have other means over bags than in training: {shown}."
    return Finding("features", "warning", float(len(drifted)), text, fix="Find out what changed, and fit again.")


# -------------------------------------------------------------------------------- bags


def _familiarity(model: Any, bags: Bags, reference: Bags | None) -> Floats:
    """Return the p-value of every bag: by the model where it can tell, else by distances to reference bags."""
    inner = _last(model)
    if reference is None or isinstance(inner, WeightedGMIL):
        inside = model[:-1].transform(bags) if hasattr(model, "steps") and len(model.steps) > 1 else bags
        return np.asarray(inner.familiarity(inside))
    own, new = compared_by(reference, bags)
    return familiarity(new, np.sort(own))


def _bag_finding(unlike: Floats, counted: Counted) -> Finding:
    count, n, n_known = int((unlike <= LEVEL).sum()), len(unlike), counted.n_known
    place = max(1, int(LEVEL * (n_known + 1)))
    alike = max(n_known + 1 - place, 0)
    weighed = int(counted.weights[unlike <= LEVEL].sum() + 1e-9)  # what is left of groups that are unlike in part
    chance = float(stats.betabinom.sf(weighed - 1, counted.n_new, place, alike)) if alike > 1 else 1.0
    text = (
        f"{count} of {n} bags are farther from the training bags than {1 - LEVEL:.0%} of these are from each other, "
        f"about {LEVEL * n:.0f} are expected (p = {chance:.2g})."
    )
    fix = "Do not trust predictions of these bags." if chance <= LEVEL else ""
    return Finding("bags", "warning" if chance <= LEVEL else "ok", chance, text, fix=fix)


# -------------------------------------------------------------------------------- labels


def _label_finding(model: Any, bags: Bags, reference: Bags | None, reference_y: Any, weights: Floats) -> Finding:
    name, shares = "shares of classes", _training_shares(model, reference, reference_y)
    if shares is None or not hasattr(model, "predict_proba"):
        return Finding(name, "ok", None, "Not tested: the model has no probabilities, or its labels are not known.")
    found, chance = label_shift(np.asarray(model.predict_proba(bags)), shares, weights)
    names = [f'"{c}" {old:.0%} to {new:.0%}' for c, old, new in zip(model.classes_, shares, found, strict=True)]
    shown = [names[place] for place in shown_order(model.classes_, grades_of(model))]
    text = f"Estimated from training to now: {listed(shown, 10)} (likelihood ratio test: p = {chance:.2g})."
    fix = "Probabilities assume the old shares: correct them, or fit again." if chance <= LEVEL else ""
    return Finding(name, "warning" if chance <= LEVEL else "ok", chance, text, fix=fix)


def _training_shares(model: Any, reference: Bags | None, reference_y: Any) -> Floats | None:
    labels: Any = getattr(_last(model), "training_labels_", None)
    if reference_y is not None and reference is not None:
        labels = check_bag_labels(reference_y, reference, WeightedGMIL())[1]
    if labels is None or labels.ndim == 2:
        return None
    return np.bincount(labels, minlength=len(model.classes_)) / len(labels)


def label_shift(probabilities: Floats, shares: Floats, weights: Floats | None = None) -> tuple[Floats, float]:
    """Return the shares of classes under which bags have these probabilities, and the p-value that nothing changed.

    Probabilities are taken as true for the training shares; other shares multiply them by a ratio each (Saerens et al.
    2002). The p-value is that of the likelihood ratio.

    Parameters
    ----------
    probabilities : array of shape (n_bags, n_classes)
    shares : array of shape (n_classes,)
        Of the training bags.
    weights : array of shape (n_bags,), optional
        How much every bag counts, 1 by default.

    Examples
    --------
    >>> sure = np.repeat([[0.99, 0.01], [0.01, 0.99]], [90, 10], axis=0)
    >>> found, p = label_shift(sure, np.array([0.5, 0.5]))
    >>> found.round(2).tolist(), p < 0.001
    ([0.91, 0.09], True)
    """
    likelihood: Floats = probabilities / np.maximum(shares, 1e-12)
    weights = np.ones(len(probabilities)) if weights is None else weights
    found = shares.copy()
    for _ in range(_MOST_STEPS):
        joint = likelihood * found
        new = np.average(joint / joint.sum(axis=1, keepdims=True), axis=0, weights=weights)
        if np.abs(new - found).max() < 1e-9:
            break
        found = new
    gain = 2 * float(weights @ np.log((likelihood @ found) / (likelihood @ shares)))
    return found, float(stats.chi2.sf(max(gain, 0.0), len(shares) - 1))
