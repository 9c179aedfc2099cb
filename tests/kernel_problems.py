"""Instances, centres and bags for the tests of kernels, and what is exact about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

KINDS = ("gaussian", "duplicates", "integers", "constant", "zeros")


@dataclass(frozen=True)
class Problem:
    """Instances and centres; the seed makes the data, so that a failing example is short."""

    seed: int
    n_instances: int
    n_features: int
    n_clusters: int
    dtype: str
    kind: str
    scale: float
    offset: float

    @property
    def has_ties(self):
        return self.kind != "gaussian"

    def instances(self):
        rng = np.random.default_rng(self.seed)
        shape = (self.n_instances, self.n_features)
        X = {
            "gaussian": lambda: rng.normal(size=shape),
            "duplicates": lambda: rng.normal(size=shape)[rng.integers(max(1, shape[0] // 3), size=shape[0])],
            "integers": lambda: rng.integers(-2, 3, size=shape).astype(float),
            "constant": lambda: np.where(np.arange(shape[1]) % 2, 3.0, rng.normal(size=shape)),
            "zeros": lambda: np.zeros(shape),
        }[self.kind]()
        return (X * self.scale + self.offset * self.scale).astype(self.dtype)

    def centers(self):
        rng = np.random.default_rng(self.seed + 1)
        X = self.instances()
        rows = X[rng.choice(len(X), self.n_clusters, replace=self.n_clusters > len(X))]
        jitter = 0 if self.has_ties else 0.1 * self.scale
        return (rows + jitter * rng.normal(size=rows.shape)).astype(self.dtype)

    def uniforms(self):
        n_trials = 2 + int(np.log(self.n_clusters))
        return np.random.default_rng(self.seed + 2).random((self.n_clusters, n_trials))

    def tolerance(self, *arrays):
        """Return how far squared distances may be apart: relative to the largest squared norm of the moved data."""
        X = self.instances().astype(np.float64)
        moved = np.vstack([X, *arrays]) - X.mean(axis=0)
        largest = float(np.square(moved).sum(axis=1).max()) + (1e-3 * self.scale) ** 2
        return largest * (1e-9 if self.dtype == "float64" else 1e-4)


@st.composite
def problems(draw, kinds=KINDS, dtypes=("float32", "float64"), max_instances=120, max_features=70):
    n_instances = draw(st.one_of(st.integers(1, 12), st.integers(1, max_instances)))
    return Problem(
        seed=draw(st.integers(0, 2**31)),
        n_instances=n_instances,
        n_features=draw(st.one_of(st.integers(1, 9), st.integers(1, max_features))),
        n_clusters=draw(st.one_of(st.just(1), st.just(n_instances), st.integers(1, n_instances))),
        dtype=draw(st.sampled_from(dtypes)),
        kind=draw(st.sampled_from(kinds)),
        scale=draw(st.sampled_from([1e-6, 1e-2, 1.0, 1e6])),
        offset=draw(st.sampled_from([0.0, 0.0, -20.0])),
    )


@st.composite
def bag_offsets(draw, max_bags=12, max_size=9):
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_bags))
    return np.append(0, np.cumsum(sizes))


def exact_squares(X, centers):
    """Squared distances by differences, in extended precision."""
    difference = X.astype(np.longdouble)[:, None] - centers.astype(np.longdouble)
    return np.square(difference).sum(axis=2).astype(np.float64)


def assert_nearest(problem, X, centers, labels, squares=None):
    """Assert that labels are nearest centres, as far as the precision tells."""
    exact, tolerance = exact_squares(X, centers), problem.tolerance(centers)
    own = exact[np.arange(len(X)), labels]
    assert (own <= exact.min(axis=1) + tolerance).all()
    if squares is not None:
        assert_allclose(squares, own, rtol=0, atol=tolerance)


def assert_same_end(problem, ours, theirs):
    """Assert that two runs of k-means ended with the same clusters, up to rounding."""
    assert_array_equal(ours.labels, theirs.labels)
    assert ours.n_iter == theirs.n_iter
    tolerance = problem.tolerance(problem.centers())
    assert_allclose(ours.centers, theirs.centers, rtol=0, atol=np.sqrt(tolerance * 1e-9))
    assert_allclose(ours.inertia, theirs.inertia, rtol=1e-9, atol=problem.n_instances * tolerance)


def random_jobs(seed, n_instances, n_jobs):
    members = np.random.default_rng(seed).random((n_jobs, n_instances)) < 0.8
    members[np.arange(n_jobs), np.arange(n_jobs) % n_instances] = True
    return members


def assert_alike(found, expected, **tolerances):
    """Compare shapes, types and, up to tolerances, values. NumPy before 2.0 cannot do it in one call."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert_allclose(found, expected, **tolerances)
