"""Blocks most of whose numbers are zero: the same tables as from dense rows, without scaling these."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import gmil
from gmil.engine import resolve
from gmil.transform.space import Space, fit_scaling
from gmil.weighted import mostly_zero
from gmil.weighted.block_vectors import Wanted, vectors_of
from gmil.weighted.mostly_zero import InColumns, SideBySide, SparseRows
from gmil.weighted.views import SCALES, fit_spaces, in_single_precision
from gmil.weighted.witness import Scorer

BACKEND = resolve("numpy")
OFFSETS = np.array([0, 7, 8, 30, 60])
SCALINGS = [*(scale for scale in SCALES if scale != "rank"), None]


@pytest.fixture
def X():
    """Return histograms of words with a row of zeros, a column of zeros, and a bag of equal rows."""
    rng = np.random.default_rng(0)
    found = rng.poisson(0.06, size=(60, 40)).astype(np.float32) / 7
    found[3], found[:, 5], found[8:30] = 0, 0, found[9]
    return found


def _exact(scaled, centers):
    return np.square(scaled[:, None].astype(float) - centers[None].astype(float)).sum(axis=2)


@pytest.mark.parametrize("scale", SCALINGS)
def test_distances_are_those_of_scaled_instances(X, scale):
    space = fit_scaling(X, scale)
    scaled = in_single_precision(space, X)
    own, rows = InColumns.of(space, 40), SparseRows.of(X, OFFSETS)
    (measured,) = SideBySide([own]).measure(rows)
    found = own.sq_distances(rows, own.factors(scaled[::7]), measured.lengths, BACKEND)
    expected = _exact(scaled, scaled[::7])
    assert found.dtype == np.float32
    assert_allclose(found, expected, atol=1e-6 * expected.max())


@pytest.mark.parametrize("entries", [1, 1_000_000])
def test_moments_are_those_of_scaled_instances(X, entries, monkeypatch):
    monkeypatch.setattr(mostly_zero, "_ENTRIES_AT_ONCE", entries)  # of one scaling after the other, or of all at once
    spaces = [fit_scaling(X, scale) for scale in ("standard", "l2", "rank", "standard+l2", "minmax+l2")]
    beside = SideBySide([InColumns.of(space, 40) for space in spaces], [1, 3, 4])
    found = beside.measure(SparseRows.of(X, OFFSETS))
    assert found[2] is None
    assert found[0].moments is None
    for place in (1, 3, 4):
        expected = BACKEND.bag_moments(in_single_precision(spaces[place], X).astype(float), OFFSETS)
        assert_allclose(found[place].moments, expected, atol=2e-7)
        assert_array_equal(found[place].moments[1:3, 2], 0)  # one instance, and equal ones, do not deviate at all


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_scores_are_those_of_scaled_instances(X, scale):
    rng = np.random.default_rng(1)
    space = fit_scaling(X, scale)
    scorer = Scorer(0, "linear", 1.0, rng.normal(size=(40, 3)), rng.normal(size=3), *[np.ones(3)] * 4)
    moved = InColumns.of(space, 40).scorer(scorer)
    expected = scorer.scores_of(in_single_precision(space, X))
    assert_allclose(moved.scores_of(SparseRows.of(X, OFFSETS).rows), expected, atol=1e-5)


def test_blocks_of_other_numbers_stay_dense(X):
    assert SparseRows.of(X + 1, OFFSETS) is None
    assert SparseRows.of(sp.csr_array(X), OFFSETS) is None


def test_scalings_that_single_precision_is_too_narrow_for_stay_dense(X):
    ones, rows = np.ones(40), SparseRows.of(X, OFFSETS)
    assert InColumns.of(Space(np.zeros(40), 1e-20 * ones), 40) is None
    assert InColumns.of(fit_scaling(X, "rank"), 40) is None
    large = InColumns.of(Space(), 40)
    assert SideBySide([large]).measure(SparseRows.of(1e17 * X, OFFSETS)) == [None]
    # All of an instance but its last digits is the shift, and these would be brought to length one.
    near = InColumns(X[0].astype(float), ones, True)
    assert SideBySide([near], [0]).measure(rows) == [None]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_of_bags_in_all_views_are_those_of_dense_blocks(X, dtype, monkeypatch):
    """Distances near zero are roots of rounding, so they are compared before roots are taken."""
    rng = np.random.default_rng(2)
    bags = gmil.LazyBags.from_array(X.astype(dtype), OFFSETS)
    spaces = fit_spaces(X.astype(dtype), tuple(SCALINGS), np.arange(0, 60, 5), BACKEND)
    kinds = [(space, kind) for space in range(len(spaces)) for kind in ("range", "moments", "nearest")]
    linear = Scorer(0, "linear", 1.0, rng.normal(size=(40, 2)), np.zeros(2), *[np.ones(2)] * 4)
    gaussian = linear._replace(space=3, kernel="gaussian", coefficients=rng.normal(size=(12, 2)))
    wanted = [Wanted(spaces, kinds, [linear, gaussian])]
    (found,) = vectors_of(bags, wanted, BACKEND)
    monkeypatch.setattr(mostly_zero, "_MOST", 0)
    (expected,) = vectors_of(bags, wanted, BACKEND)
    assert found.keys() == expected.keys()
    differs = False
    for key, table in expected.items():
        power = 2 if key[1] == "nearest" else 1
        assert_allclose(found[key] ** power, table**power, atol=2e-6 * np.abs(table**power).max(), err_msg=str(key))
        differs |= not np.array_equal(found[key], table)
    assert differs  # or no block was taken as sparse rows
