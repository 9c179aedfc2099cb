"""How much every view at the videos counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from gmil.video.stacking import stack_weights


def make_views(n_videos, *, noise=(1.0, 1.0), seed=0):
    """Return log-odds of two views at the same truth, each with noise of its own, and labels, (n_videos, 1)."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(scale=3, size=(n_videos, 1))
    y = (rng.random((n_videos, 1)) < expit(truth)).astype(int)
    return [truth + rng.normal(scale=size, size=truth.shape) for size in noise], y


def slow_loss(parameters, views, y, weights):
    """The log-likelihood and the prior, video by video."""
    first, second, shift = parameters
    loss = (first - 0.5) ** 2 / (2 * 0.5**2) + (second - 0.5) ** 2 / (2 * 0.5**2)
    for one, other, label, weight in zip(views[0][:, 0], views[1][:, 0], y[:, 0], weights[:, 0], strict=True):
        odds = first * one + second * other + shift
        loss -= weight * log_expit(odds if label else -odds)
    return loss


@pytest.mark.parametrize("n_videos", [5, 30])
def test_weights_are_the_best_there_are(n_videos):
    views, y = make_views(n_videos)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=y.shape)
    found = stack_weights(views, y, weights)
    best = minimize(slow_loss, [0.5, 0.5, 0.0], args=(views, y, weights), method="Nelder-Mead", tol=1e-10)
    np.testing.assert_allclose([*found.weights[:, 0], *found.shifts], best.x, atol=1e-3)


def test_the_better_look_counts_more_and_a_useless_one_nothing():
    views, y = make_views(400, noise=(0.5, 5.0))
    weights = np.ones(y.shape)
    good, poor = stack_weights(views, y, weights).weights[:, 0]
    assert good > 5 * poor
    assert stack_weights([views[0], -5 * views[0]], y, weights).weights[1, 0] == 0


def test_many_useless_views_do_not_take_the_weight_of_a_good_one():
    views, y = make_views(100, noise=(0.5,) + (20.0,) * 9)
    weights = stack_weights([views[0], *(view / 10 for view in views[1:])], y, np.ones(y.shape)).weights[:, 0]
    assert weights[0] > 0.5 > weights[1:].max()


def test_every_event_has_weights_of_its_own():
    views, y = make_views(60, noise=(0.5, 3.0))
    both = [np.column_stack([one, other]) for one, other in zip(views, views[::-1], strict=True)]
    found = stack_weights(both, np.column_stack([y, y]), np.ones((60, 2)))
    np.testing.assert_allclose(found.weights[:, 0], found.weights[::-1, 1], rtol=1e-4)
    alone = stack_weights(views, y, np.ones((60, 1)))
    np.testing.assert_allclose(found.weights[:, :1], alone.weights)


def test_videos_that_no_fit_left_out_have_no_say():
    views, y = make_views(40)
    some = [view.copy() for view in views]
    some[0][:10], some[1][5:15] = np.nan, np.nan
    found = stack_weights(some, y, np.ones(y.shape))
    expected = stack_weights([view[15:] for view in views], y[15:], np.ones((25, 1)))
    np.testing.assert_allclose(found.weights, expected.weights)
    np.testing.assert_allclose(found.shifts, expected.shifts)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_teaches_nothing(label):
    views, y = make_views(6)
    found = stack_weights(views, np.full_like(y, label), np.ones(y.shape))
    np.testing.assert_array_equal(found.weights, [[0.5], [0.5]])
    assert found.shifts == 0
