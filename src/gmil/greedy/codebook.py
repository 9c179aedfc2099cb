"""Clusters -> two histograms -> a score per bin -> C+ and C- (sections 3.1 and 3.2 of the paper).

All functions work for several classes at once, one against the others, on one clustering: counts, scores and
bins have an axis of classes before that of bins. Equations are numbered as in the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from gmil.engine.reference import dense_rows

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

COUNTINGS = ("instances", "bags", "bag-mass")
WEIGHTINGS = ("bags", "mass")
OVERLAPS = ("allow", "exclude", "exclude-positive")
NEGATIVE_RANKS = ("frequency", "ratio")


PARAMETERS = ("epsilon", "counting", "weighting", "overlap", "negative_rank")
"""Parameters of `gmil.GMIL` that `build_codebook` takes under the same names."""


class Codebook(NamedTuple):
    """Counts, scores and ranks of bins, from the histograms of positive and negative bags."""

    positive_counts: Floats  # (n_classes, n_clusters), Eq. 3
    negative_counts: Floats  # (n_classes, n_clusters), Eq. 4
    bin_scores: Floats  # (n_classes, n_clusters), Eq. 6
    positive_bins: Integers  # (n_classes, n_positive), C+, best first
    negative_bins: Integers  # (n_classes, n_negative), C-, best first


def count_bins(
    histograms: Integers,
    positive: Booleans,
    counting: str,
    training: Booleans | None = None,
    votes: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Count what positive and negative bags put into every bin (Eq. 3 and 4).

    Parameters
    ----------
    histograms : array of shape (..., n_bags, n_clusters)
        Instances of every bag in every bin.
    positive : array of shape (n_bags, n_classes)
        Whether a bag is positive for a class.
    counting : {"instances", "bags", "bag-mass"}
        Count instances, as printed; or bags that have an instance in the bin; or give every bag mass 1, shared
        by its instances.
    training : array of shape (..., n_bags), optional
        The bags that count; all by default.
    votes : array of shape (..., n_bags, n_clusters), optional
        What every bag adds to every bin, where that does not follow from the histograms.

    Returns
    -------
    positive_counts, negative_counts : arrays of shape (..., n_classes, n_clusters)
    """
    if votes is not None:
        pass
    elif counting == "instances":
        votes = histograms.astype(np.float64)
    elif counting == "bags":
        votes = (histograms > 0).astype(np.float64)
    else:
        votes = histograms / histograms.sum(axis=-1, keepdims=True)
    negative = ~positive
    if training is not None:
        positive, negative = positive & training[..., None], negative & training[..., None]
    return _by_class(positive, votes), _by_class(negative, votes)


def _by_class(member: Booleans, votes: Floats) -> Floats:
    """Sum the votes of the members of every class: (..., n_classes, n_clusters)."""
    return np.swapaxes(member, -1, -2).astype(np.float64) @ votes


def score_bins(
    positive_counts: Floats,
    negative_counts: Floats,
    n_positive_bags: Integers,
    *,
    epsilon: float | Floats,
    weighting: str | None,
) -> Floats:
    """Score every bin by the ratio of the two histograms and by how well it is filled (Eq. 6).

    ``weighting`` says what a bin is expected to hold: "bags" is the printed n/K, with n the number of positive
    bags; "mass" is an equal share of all positive counts; None leaves the sigmoid out (Eq. 5).
    """
    ratio = normalised(positive_counts) / (normalised(negative_counts) + epsilon)
    if weighting is None:
        return ratio
    total = n_positive_bags if weighting == "bags" else positive_counts.sum(axis=-1)
    expected = total[..., None] / positive_counts.shape[-1]  # n/K
    weighted: Floats = ratio * expit((positive_counts - expected) / expected)
    return weighted


def normalised(counts: Floats) -> Floats:
    """Return counts as shares of their sum over bins; smooth counts may all be zero, and are then zero shares."""
    return counts / np.maximum(counts.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny)


def rank_negative_bins(
    positive_counts: Floats, negative_counts: Floats, *, rank: str, epsilon: float | Floats
) -> Floats:
    """Return what C- is chosen by: the share of negatives h-, or its ratio to the share of positives."""
    negative = normalised(negative_counts)
    if rank == "frequency":
        return negative
    return negative / (normalised(positive_counts) + epsilon)


def best_bins(ranking: Floats, n_bins: int, last: Integers | None = None) -> Integers:
    """Return the bins with the largest rank, the first of equals first.

    Bins in ``last`` come behind all others: they are taken only where the others do not suffice, so that a
    codebook never has fewer bins than were asked for.
    """
    if last is None:
        return np.argsort(-ranking, axis=-1, kind="stable")[..., :n_bins]
    behind = np.zeros(ranking.shape, dtype=bool)
    np.put_along_axis(behind, last, values=True, axis=-1)
    order = np.lexsort((-ranking, behind), axis=-1)  # by `behind`, then by rank; stable
    return order[..., :n_bins]


def choose_epsilon(
    epsilon: float | str, histograms: Integers, positive: Booleans, training: Booleans | None = None
) -> float | Floats:
    """Return the constant of Eq. 6: a number, 1/K for "auto", one over the negative instances for "negatives".

    With several classes the negatives of a class are counted on average. Given ``training``, "negatives" is an
    array of shape (..., 1, 1).
    """
    if not isinstance(epsilon, str):
        return float(epsilon)
    if epsilon == "auto":
        return 1.0 / histograms.shape[-1]
    sizes = histograms.sum(axis=-1)  # (..., n_bags)
    if training is not None:
        sizes = sizes * training
    n_negative = (sizes @ ~positive).mean(axis=-1)
    return float(1 / n_negative) if training is None else (1 / n_negative)[..., None, None]


def medoids(X: Instances, centers: Floats, backend: Backend) -> Floats:
    """Return, for every centre, the instance that is nearest to it."""
    rows = [int(backend.sq_distances(X, center[None]).argmin()) for center in centers]
    return dense_rows(X, np.array(rows))


def build_codebook(
    histograms: Integers,
    positive: Booleans,
    *,
    n_positive: int,
    n_negative: int,
    epsilon: float | str = "auto",
    counting: str = "instances",
    weighting: str | None = "bags",
    overlap: str = "allow",
    negative_rank: str = "frequency",
    training: Booleans | None = None,
    votes: Floats | None = None,
) -> Codebook:
    """Choose C+ and C- from the histograms of bags over bins.

    Leading axes (folds, say) are several clusterings of the same bags, worked on at once.

    Parameters
    ----------
    histograms : array of shape (..., n_bags, n_clusters)
    positive : array of shape (n_bags, n_classes)
    n_positive, n_negative : int
        p and q of the paper.
    epsilon, counting, weighting, overlap, negative_rank
        See `gmil.GMIL`.
    training : array of shape (..., n_bags), optional
        The bags that count; all by default.
    votes : array of shape (..., n_bags, n_clusters), optional
        Counted in place of the histograms, as in `count_bins`.
    """
    constant = choose_epsilon(epsilon, histograms, positive, training)
    positive_counts, negative_counts = count_bins(histograms, positive, counting, training, votes)
    n_positive_bags = positive.sum(axis=0) if training is None else training.astype(np.int64) @ positive
    scores = score_bins(positive_counts, negative_counts, n_positive_bags, epsilon=constant, weighting=weighting)
    ranking = rank_negative_bins(positive_counts, negative_counts, rank=negative_rank, epsilon=constant)
    if overlap == "exclude-positive":
        negative_bins = best_bins(ranking, n_negative)
        positive_bins = best_bins(scores, n_positive, last=negative_bins)
    else:
        positive_bins = best_bins(scores, n_positive)
        negative_bins = best_bins(ranking, n_negative, last=positive_bins if overlap == "exclude" else None)
    return Codebook(positive_counts, negative_counts, scores, positive_bins, negative_bins)
