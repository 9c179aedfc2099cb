"""How likely each label is wrong: two models of labels of which a share is flipped, and the more careful of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

HARD = 0.02
"""The share of bags that evidence tells nothing about: outliers of their class, whose labels are right or wrong."""
_SLOPES = (-4.0, 2.5)
"""Limits of the logarithm of the slope."""
_WIDTH = 2.0
"""Standard deviation of the prior of slope (its logarithm) and shifts."""
_MOST_STEPS = 200
_CHANGE = 1e-5


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
    evidence by a softmax, whose slope and shifts are fitted, and a share of ``rate`` of the labels is replaced by
    another class: a bag far on the wrong end is then rather a wrong label where the other bags are told apart well, and
    nothing special where they are not. In the second, the evidence of every class is normal, and the share of wrong
    labels is learnt: where no bags lie apart from the others with their label, few labels are wrong.

    Parameters
    ----------
    log_odds : array of shape (n_bags,) or (n_bags, n_classes)
        Left-out decisions: about the second of two classes, or about every class.
    labels : array of shape (n_bags,)
        Class numbers.
    rate : float
        The share of labels that are wrong, before anything is known of them.
    """
    evidence = np.column_stack([np.zeros(len(log_odds)), log_odds]) if log_odds.ndim == 1 else log_odds
    size = float(np.sqrt(np.mean((evidence - evidence.mean(axis=1, keepdims=True)) ** 2))) or 1.0
    classes = _fit(evidence / size, labels, rate)
    among = wrong_among_normals(evidence / size, labels, rate)
    return Suspicion(np.minimum(_wrong(classes, labels, rate), among), classes)


def _fit(evidence: Floats, labels: Integers, rate: float) -> Floats:
    """Return the probabilities of the classes that explain the labels best, a share of which is wrong."""
    n_bags, n_classes = evidence.shape
    rows = np.arange(n_bags)
    spread = rate / (n_classes - 1)
    slack = 1 - HARD - rate - spread

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope = np.exp(parameters[0])
        logits = slope * evidence + np.append(0.0, parameters[1:])
        log_p = log_softmax(logits, axis=1)
        own = np.exp(log_p[rows, labels])
        told = own * slack + spread + HARD / n_classes
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
    n_classes = classes.shape[1]
    flipped = (1 - own) * rate / (n_classes - 1)
    return flipped / (flipped + (1 - rate - HARD) * own + HARD / n_classes)


def wrong_among_normals(evidence: Floats, labels: Integers, rate: float) -> Floats:
    """Return how likely every label is wrong where the evidence of a class is normal, all with one variance.

    Expectation maximisation finds means, variance, shares of classes, and the share of wrong labels, whose prior is a
    beta distribution with the mean ``rate`` (discriminant analysis with label noise).

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
        before, expected = expected, float(members[~is_label].sum() + 1) / (n_bags + 2 / rate - 2)
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
