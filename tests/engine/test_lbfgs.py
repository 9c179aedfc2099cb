"""L-BFGS for many functions at once: every job ends where SciPy ends, on arrays and on tensors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize as scipy_minimize
from scipy.special import expit

from gmil.engine.lbfgs import minimize


def on_arrays(function, start, **options):
    return minimize(function, start, **options)


def on_tensors(function, start, **options):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'gmil[torch]'")
    from gmil.engine.torch.lbfgs import minimize

    def loss(x):
        return tuple(torch.from_numpy(part) for part in function(slice(None), x.numpy()))

    return minimize(loss, torch.from_numpy(start), **options).numpy()


both = pytest.mark.parametrize("find", [on_arrays, on_tensors])


def logistic(jobs=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(jobs, 60, 5)) * np.array([1, 10, 0.1, 3])[:jobs, None, None]
    signs = rng.choice([-1.0, 1.0], (jobs, 60))

    def loss(jobs, w):
        margins = signs[jobs] * (X[jobs] @ w[..., None])[..., 0]
        value = np.logaddexp(0, -margins).sum(axis=1) + np.square(w).sum(axis=1) / 2
        return value, ((-signs[jobs] * expit(-margins))[:, None] @ X[jobs])[:, 0] + w

    return loss


@both
def test_every_job_ends_where_scipy_does(find):
    loss = logistic()
    found = find(loss, np.zeros((4, 5)), max_iter=200, tolerance=1e-12)
    for job in range(4):

        def one(w, job=job):
            value, slope = loss([job], w[None])
            return value[0], slope[0]

        expected = scipy_minimize(one, np.zeros(5), jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
        assert_allclose(found[job], expected.x, atol=2e-3)
        assert one(found[job])[0] <= expected.fun + 1e-6


@both
def test_it_goes_around_a_bend_and_stays_at_a_minimum(find):
    def loss(_jobs, w):
        x, y = w.T
        value = (1 - x) ** 2 + 100 * (y - x * x) ** 2
        return value, np.stack([2 * (x - 1) - 400 * x * (y - x * x), 200 * (y - x * x)], axis=1)

    start = np.array([[-1.2, 1.0], [1.0, 1.0], [0.0, 3.0]])
    assert_allclose(find(loss, start, max_iter=200, tolerance=1e-14), np.ones((3, 2)), atol=1e-4)


@both
def test_it_takes_no_more_steps_than_it_may(find):
    calls = []

    def loss(_jobs, w):
        calls.append(w)
        squares = np.square(w).sum(axis=1)
        return squares**0.51, w * squares[:, None] ** -0.49 * 1.02

    find(loss, np.full((1, 3), 1e6), max_iter=5, tolerance=0.0)
    assert len(calls) <= 30


def test_jobs_that_have_ended_are_not_asked_for_again_and_the_others_do_not_notice():
    loss, asked = logistic(), []

    def noted(jobs, w):
        asked.append(jobs)
        return loss(jobs, w)

    found = minimize(noted, np.zeros((4, 5)), max_iter=200, tolerance=1e-9)
    counts = np.bincount(np.concatenate(asked))
    assert counts.min() < counts.max()
    for job in range(4):
        alone = minimize(lambda _, w, job=job: loss([job], w), np.zeros((1, 5)), max_iter=200, tolerance=1e-9)
        assert_allclose(found[job], alone[0], atol=1e-9)


def test_a_job_that_starts_at_its_minimum_stays_there():
    found = minimize(lambda _, w: (np.square(w).sum(axis=1), 2 * w), np.zeros((2, 3)), max_iter=9, tolerance=0.0)
    assert_array_equal(found, 0)
