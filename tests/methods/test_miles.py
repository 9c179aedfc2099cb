"""`MILES`: similarities to training instances, few of them kept."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import LinearSVC

import gmil
from gmil import MILES, Bags
from gmil.engine import available_backends, resolve
from gmil.methods.embeddings.miles import nearest_shares
from gmil.transform.vectors import similarities
from gmil.transform.vectors.similarities import nearest_squares


@pytest.fixture(params=available_backends())
def backend(request):
    return resolve(request.param, 1)


@st.composite
def some_bags(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    return Bags.from_list([rng.integers(-3, 4, size=(size, 2)).astype(float) for size in sizes])


@given(bags=some_bags(), entries=st.integers(1, 60), sparse=st.booleans(), data=st.data())
@settings(max_examples=30)
def test_bags_are_as_near_as_their_nearest_instance(bags, entries, sparse, data):
    rows = np.array(data.draw(st.lists(st.integers(0, bags.n_instances - 1), min_size=1, unique=True)))
    X = sp.csr_array(bags.instances) if sparse else bags.instances
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarities, "_BLOCK_ENTRIES", entries)
        found = nearest_squares(X, bags.offsets, X[rows], resolve("auto", 1))
    expected = [[min(((x - bags.instances[row]) ** 2).sum() for x in bag) for row in rows] for bag in bags]
    assert_allclose(found, expected, atol=1e-10)


def test_shares_on_paper(backend):
    # Bags {0, 2} and {5}, prototypes at 1 (both instances of the first bag are equally near) and at 0.
    squares = np.array([[1.0, 0.0], [1.0, 4.0], [16.0, 25.0]])
    assert_allclose(nearest_shares(squares, np.array([0, 2, 3]), backend), [[0.5, 1], [0.5, 0], [1, 1]])


@pytest.fixture
def by_hand():
    """Return a model with prototypes 1 and 0, weights 2 and -1, intercept 0.5."""
    model = MILES(gamma=1.0, scale=None).fit([[[0.0]], [[1.0]]], [0, 1])
    model.prototypes_ = np.array([[1.0], [0.0]])
    model.coef_, model.intercept_ = np.array([[2.0], [-1.0]]), np.array([0.5])
    return model


def test_decisions_and_contributions_on_paper(by_hand):
    bags = [[[0.0], [2.0]], [[5.0]]]
    near, far = np.exp(-1), (np.exp(-16), np.exp(-25))
    assert_allclose(by_hand.decision_function(bags), [2 * near - 1 + 0.5, 2 * far[0] - far[1] + 0.5])
    assert_allclose(by_hand.score_instances(bags), [near - 1, near, 2 * far[0] - far[1]])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_add_up_to_decisions(gaussian_bags, n_classes):
    bags, y = gaussian_bags(n_classes=n_classes)
    model = MILES(random_state=0).fit(bags, y)
    sums = np.array([part.sum(axis=0) for part in np.split(model.score_instances(bags), bags.offsets[1:-1])])
    intercept = model.intercept_ if n_classes > 2 else model.intercept_[0]
    assert_allclose(sums + intercept, model.decision_function(bags), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_are_those_of_the_whole_embedding(gaussian_bags, n_classes):
    bags, y = gaussian_bags(n_classes=n_classes)
    model = MILES(gamma=0.2, scale=None, random_state=0).fit(bags, y)
    embedded = np.array(
        [[max(np.exp(-0.2 * ((x - z) ** 2).sum()) for x in bag) for z in bags.instances] for bag in bags]
    )
    oracle = LinearSVC(penalty="l1", dual=False, max_iter=100_000, tol=1e-6, random_state=0).fit(embedded, y)
    # Equally good sets of prototypes exist; what they decide is alike.
    assert_allclose(model.decision_function(bags), oracle.decision_function(embedded), atol=0.02)
    assert len(model.prototypes_) < bags.n_instances / 2


def test_the_width_follows_from_the_median(gaussian_bags):
    model = MILES(scale=None).fit([[[0.0]], [[1.0]], [[3.0]]], [0, 1, 1])
    assert model.gamma_ == pytest.approx(3 / 4)


def test_candidates_may_be_a_sample(gaussian_bags):
    bags, y = gaussian_bags(n_bags=60, all_witnesses=True)
    few = MILES(max_prototypes=10, random_state=0).fit(bags, y)
    assert len(few.prototypes_) <= 10
    assert few.score(bags, y) >= 0.9
    many = MILES(max_prototypes=bags.n_instances, random_state=0).fit(bags, y)
    assert_array_equal(
        many.decision_function(bags), MILES(max_prototypes=None, random_state=0).fit(bags, y).decision_function(bags)
    )


def test_tuning_chooses_among_multiples(gaussian_bags):
    bags, y = gaussian_bags()
    model = MILES(gamma=0.9, C=2.0, tune=True, random_state=0).fit(bags, y)
    assert any(model.gamma_ == pytest.approx(gamma) for gamma in (0.3, 0.9, 2.7))
    assert any(pytest.approx(price) == model.C_ for price in (0.2, 2.0, 20.0))
    alone = MILES(gamma=0.9, C=2.0, tune=True).fit(bags[:3], [0, 1, 0])
    assert (alone.gamma_, alone.C_) == (0.9, 2.0)


def test_a_price_too_low_for_any_prototype_still_decides(gaussian_bags):
    bags, y = gaussian_bags()
    model = MILES(C=1e-6, random_state=0).fit(bags, y)
    assert len(set(model.decision_function(bags))) == 1
    assert_array_equal(model.score_instances(bags), np.zeros(bags.n_instances))


def test_equal_instances_share_their_contribution(gaussian_bags):
    bags, y = gaussian_bags()
    model = MILES(random_state=0).fit(bags, y)
    doubled = model.score_instances([np.concatenate([bags[1], bags[1]])])
    alone = model.score_instances([bags[1]])
    assert_allclose(doubled, np.concatenate([alone, alone]) / 2, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": "mean"}, "'gamma' parameter of MILES"),
        ({"max_prototypes": 0}, "'max_prototypes' parameter"),
        ({"pos_label": "yes"}, "pos_label='yes' is not a class of y"),
    ],
)
def test_bad_parameters_are_refused(gaussian_bags, parameters, message):
    with pytest.raises(ValueError, match=message):
        MILES(**parameters).fit(*gaussian_bags())


@pytest.mark.slow
def test_accuracy_on_musk1():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(MILES(), bags, y, repeats=2).accuracy() > 0.79
