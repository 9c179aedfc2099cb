"""How likely is each label wrong? A model of labels that are flipped at a rate nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans, Floats, Integers

RATES = np.array([0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3])
"""Shares of wrong labels that are thought possible."""
NONE_WRONG = 0.5
"""The prior probability that no label is wrong; the rest is spread over the other rates, each alike."""
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
    rate : float
        The expected share of wrong labels.
    """

    wrong: Floats
    classes: Floats
    rate: float

    @property
    def suggested(self) -> Integers:
        """The most likely class of every bag."""
        return np.asarray(self.classes.argmax(axis=1))


def suspect(log_odds: Floats, labels: Integers) -> Suspicion:
    """Return how likely every label is wrong, given left-out evidence.

    True classes follow from the evidence by a softmax; a share of the labels is then replaced by another class. Slope
    and shifts of the softmax are fitted for every share of `RATES`, and the shares are averaged over, each by how well
    it explains the labels: a few bags far on the wrong side mean wrong labels where the others are told apart well, and
    nothing where they are not.

    Parameters
    ----------
    log_odds : array of shape (n_bags,) or (n_bags, n_classes)
        Left-out decisions: about the second of two classes, or about every class.
    labels : array of shape (n_bags,)
        Class numbers.
    """
    evidence = np.column_stack([np.zeros(len(log_odds)), log_odds]) if log_odds.ndim == 1 else log_odds
    size = float(np.sqrt(np.mean((evidence - evidence.mean(axis=1, keepdims=True)) ** 2))) or 1.0
    fits = [_fit(evidence / size, labels, rate) for rate in RATES]
    prior = np.where(RATES == 0, NONE_WRONG, (1 - NONE_WRONG) / (len(RATES) - 1))
    weights = softmax([loss_classes[0] for loss_classes in fits] + np.log(prior))
    wrong = sum(w * _wrong(classes, labels, rate) for w, (_, classes), rate in zip(weights, fits, RATES, strict=True))
    classes = sum(w * classes for w, (_, classes) in zip(weights, fits, strict=True))
    return Suspicion(np.asarray(wrong), np.asarray(classes), float(weights @ RATES))


def _fit(evidence: Floats, labels: Integers, rate: float) -> tuple[float, Floats]:
    """Return the log-likelihood of the labels under a rate of wrong ones, and the probabilities of the classes."""
    n_bags, n_classes = evidence.shape
    rows = np.arange(n_bags)
    spread = rate / (n_classes - 1)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope = np.exp(parameters[0])
        logits = slope * evidence + np.append(0.0, parameters[1:])
        log_p = log_softmax(logits, axis=1)
        own = np.exp(log_p[rows, labels])
        told = own * (1 - rate - spread) + spread
        pull = np.exp(log_p) * (-own * (1 - rate - spread) / told)[:, None]  # of the log-likelihood, by the logits
        pull[rows, labels] += own * (1 - rate - spread) / told
        value = -np.log(np.maximum(told, 1e-300)).sum() + parameters @ parameters / (2 * _WIDTH**2)
        gradient = np.append((pull * evidence).sum() * slope, pull[:, 1:].sum(axis=0))
        return float(value), -gradient + parameters / _WIDTH**2

    start = np.zeros(n_classes)
    bounds = [_SLOPES, *[(-20.0, 20.0)] * (n_classes - 1)]
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    logits = np.exp(found.x[0]) * evidence + np.append(0.0, found.x[1:])
    return -float(found.fun), np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


def _wrong(classes: Floats, labels: Integers, rate: float) -> Floats:
    """Return how likely every label is wrong by Bayes' rule."""
    own = classes[np.arange(len(labels)), labels]
    flipped = (1 - own) * rate / (classes.shape[1] - 1)
    return flipped / np.maximum(flipped + (1 - rate) * own, 1e-300)


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
