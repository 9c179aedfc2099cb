"""How likely each label is wrong: a model of labels of which a share is flipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

HARD = 0.02
"""The share of bags that evidence tells nothing about: outliers of their class, whose labels are right or wrong."""
_SLOPES = (-4.0, 2.5)
"""Limits of the logarithm of the slope."""
_WIDTH = 2.0
"""Standard deviation of the prior of slope (its logarithm) and shifts."""


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

    True classes follow from the evidence by a softmax, whose slope and shifts are fitted; a share of ``rate`` of the
    labels is replaced by another class. A bag far on the wrong side is then rather a wrong label where the other bags
    are told apart well, and nothing special where they are not.

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
    return Suspicion(_wrong(classes, labels, rate), classes)


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
