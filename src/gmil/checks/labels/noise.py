"""How likely each label is wrong: two models of labels of which a share is flipped, and the more careful of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

HARD = 0.2
"""Bags that evidence tells nothing about, outliers of their class, for every wrong label: 2 % where 10 % are wrong."""
PRIOR = 30
"""The share of wrong labels that is expected counts as much as what so many bags tell of it."""
_SLOPES = (-4.0, 2.5)
"""Limits of the logarithm of the slope."""
_WIDTH = 2.0
"""Standard deviation of the prior of slope (its logarithm) and shifts."""
_MOST_STEPS = 200
_CHANGE = 1e-5
_MOST_RATES = 20
_RATE_CHANGE = 1e-4
"""The softmax is fitted again until the share of wrong labels changes by less, so many times at most."""


class Suspicion(NamedTuple):
    """What the model of wrong labels found.

    Parameters
    ----------
    wrong : array of shape (n_bags,)
        The probability that the label of the bag is wrong.
    classes : array of shape (n_bags, n_classes)
        The probability of every class, whatever the label.
    """

    wrong: Floats
    classes: Floats

    @property
    def suggested(self) -> Integers:
        """The most likely class of every bag."""
        return np.asarray(self.classes.argmax(axis=1))


def suspect(log_odds: Floats, labels: Integers, rate: float) -> Suspicion:
    """Return how likely every label is wrong, given left-out evidence.

    A label is as likely wrong as the more careful of two models tells. In the first, true classes follow from the
    evidence by a softmax, whose slope and shifts are fitted, and a share of the labels is replaced by another class: a
    bag far on the wrong end is then rather a wrong label where the other bags are told apart well, and nothing special
    where they are not. In the second, the evidence of every class is normal: where no bags lie apart from the others
    with their label, few labels are wrong. Both learn the share of wrong labels; in the first it is ``rate`` at most.

    Parameters
    ----------
    log_odds : array of shape (n_bags,) or (n_bags, n_classes)
        Left-out decisions: about the second of two classes, or about every class.
    labels : array of shape (n_bags,)
        Class numbers.
    rate : float
        The share of labels that are thought to be wrong before anything is known of them.
    """
    evidence = np.column_stack([np.zeros(len(log_odds)), log_odds]) if log_odds.ndim == 1 else log_odds
    size = float(np.sqrt(np.mean((evidence - evidence.mean(axis=1, keepdims=True)) ** 2))) or 1.0
    by_softmax = suspect_by_softmax(evidence / size, labels, rate)
    return by_softmax._replace(wrong=np.minimum(by_softmax.wrong, wrong_among_normals(evidence / size, labels, rate)))


def suspect_by_softmax(evidence: Floats, labels: Integers, rate: float) -> Suspicion:
    """Return how likely every label is wrong where true classes follow from evidence by a softmax.

    The share of wrong labels is learnt, but is ``rate`` at most: where bags are hard to tell apart, a curve with many
    wrong labels explains the labels as well as a flat one does.

    Parameters
    ----------
    evidence : array of shape (n_bags, n_classes)
    labels : array of shape (n_bags,)
    rate : float
    """
    expected = rate
    for _ in range(_MOST_RATES):
        classes = _fit(evidence, labels, expected)
        wrong = _wrong(classes, labels, expected)
        before, expected = expected, min(_expected_rate(wrong, rate), rate)
        if abs(expected - before) < _RATE_CHANGE:
            break
    return Suspicion(wrong, classes)


def _expected_rate(wrong: Floats, rate: float) -> float:
    """Return the share of wrong labels by how likely each is wrong; ``rate`` counts as much as ``PRIOR`` bags.

    >>> round(_expected_rate(np.zeros(70), rate=0.1), 3), round(_expected_rate(np.full(70, 0.5), rate=0.1), 3)
    (0.03, 0.38)
    """
    return float(wrong.sum() + rate * PRIOR) / (len(wrong) + PRIOR)


def _fit(evidence: Floats, labels: Integers, rate: float) -> Floats:
    """Return the probabilities of the classes that explain the labels best, a share of which is wrong."""
    n_bags, n_classes = evidence.shape
    rows = np.arange(n_bags)
    spread = rate / (n_classes - 1)
    hard = HARD * rate
    slack = 1 - hard - rate - spread

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope = np.exp(parameters[0])
        logits = slope * evidence + np.append(0.0, parameters[1:])
        log_p = log_softmax(logits, axis=1)
        own = np.exp(log_p[rows, labels])
        told = own * slack + spread + hard / n_classes
        pull = np.exp(log_p) * (-own * slack / told)[:, None]  # of the log-likelihood, by the logits
        pull[rows, labels] += own * slack / told
        value = -np.log(np.maximum(told, 1e-300)).sum() + parameters @ parameters / (2 * _WIDTH**2)
        gradient = np.append((pull * evidence).sum() * slope, pull[:, 1:].sum(axis=0))
        return float(value), -gradient + parameters / _WIDTH**2

    start = np.zeros(n_classes)
    bounds = [_SLOPES, *[(-20.0, 20.0)] * (n_classes - 1)]
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    logits = np.exp(found.x[0]) * evidence + np.append(0.0, found.x[1:])
    return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


def _wrong(classes: Floats, labels: Integers, rate: float) -> Floats:
    """Return how likely every label is wrong by Bayes' rule."""
    own = classes[np.arange(len(labels)), labels]
    n_classes, hard = classes.shape[1], HARD * rate
    flipped = (1 - own) * rate / (n_classes - 1)
    return flipped / (flipped + (1 - rate - hard) * own + hard / n_classes)


def wrong_among_normals(evidence: Floats, labels: Integers, rate: float) -> Floats:
    """Return how likely every label is wrong where the evidence of a class is normal, all with one variance.

    Expectation maximisation finds means, variance, shares of classes, and the share of wrong labels (discriminant
    analysis with label noise).

    Parameters
    ----------
    evidence : array of shape (n_bags, n_classes)
    labels : array of shape (n_bags,)
    rate : float

    References
    ----------
    Lawrence, N. D. and Schoelkopf, B., "Estimating a kernel Fisher discriminant in the presence of label noise", ICML
    2001.
    """
    n_bags, n_classes = evidence.shape
    is_label = labels[:, None] == np.arange(n_classes)
    values, expected = evidence - evidence.mean(axis=1, keepdims=True), rate
    members = is_label.astype(np.float64)
    for _ in range(_MOST_STEPS):
        counts = members.sum(axis=0)
        squares = ((values[:, None] - (members.T @ values) / counts[:, None]) ** 2).sum(axis=2)
        variance = max(float((members * squares).sum()) / (n_bags * (n_classes - 1)), 1e-9)
        told = np.where(is_label, 1 - expected, expected / (n_classes - 1))
        members = softmax(np.log(counts * told) - squares / (2 * variance), axis=1)
        before, expected = expected, _expected_rate(1 - members[is_label], rate)
        expected = min(expected, 1 - 1 / n_classes)  # with more, labels would mean the other classes
        if abs(expected - before) < _CHANGE:
            break
    return 1 - members[is_label]


def flag(wrong: Floats, fdr: float) -> Booleans:
    """Return which labels to flag: as many as possible, of which a share of at most ``fdr`` is expected to be right.

    Labels that are rather right than wrong are never flagged.

    >>> flag(np.array([0.9, 0.2, 0.95, 0.6, 0.55]), fdr=0.2).tolist()
    [True, False, True, True, False]
    """
    order = np.argsort(-wrong, kind="stable")
    expected = np.cumsum(1 - wrong[order]) / np.arange(1, len(wrong) + 1)
    flagged = np.zeros(len(wrong), dtype=bool)
    flagged[order] = (expected <= fdr) & (wrong[order] > 0.5)
    return flagged
