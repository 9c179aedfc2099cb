"""Citation kNN against paper and pencil, a plain loop, and the published leave-one-out figures."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, directed_hausdorff

import gmil
from gmil import Bags, CitationKNN, cross_validate
from gmil.engine import resolve
from gmil.methods.neighbours import distances as bag_distances
from gmil.methods.neighbours.distances import distances_between, distances_within, grouped, rank_within

# ------------------------------------------------------------------ plain loops


def ranked(A, B, how, rank):
    nearest = np.sort(cdist(A, B).min(axis=1))
    return nearest[rank_within(how, rank, len(A)) - 1]


def plain_distance(A, B, how="min", rank=1):
    return max(ranked(A, B, how, rank), ranked(B, A, how, rank))


def plain_votes(query, training, labels, n_references, n_citers, how="min", rank=1):
    """Count votes as Wang & Zucker do; distances that differ by rounding are equal."""
    to_query = [plain_distance(query, bag, how, rank) for bag in training]
    last = sorted(to_query)[min(n_references, len(training)) - 1]
    votes = {0: 0, 1: 0}
    for i, bag in enumerate(training):
        if to_query[i] <= last * (1 + 1e-7):
            votes[labels[i]] += 1
        others = sorted(plain_distance(bag, other, how, rank) for j, other in enumerate(training) if j != i)
        radius = others[n_citers - 1] if n_citers <= len(others) else np.inf
        if to_query[i] < radius * (1 - 1e-7):
            votes[labels[i]] += 1
    return votes[1] - votes[0]


@st.composite
def labelled_bags(draw):
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(4, 9))
    sizes = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    # Whole numbers make duplicates and ties; shifted far from the origin, rounding has its chance.
    step, shift = draw(st.sampled_from([(1.0, 0.0), (0.37, 1000.0)]))
    bags = [shift + step * rng.integers(0, 4, size=(size, 2)) for size in sizes]
    return bags, np.arange(n) % 2


# ------------------------------------------------------------------ paper and pencil


BAGS = [np.array([[0.0], [10.0]]), np.array([[1.0]]), np.array([[3.0], [12.0]]), np.array([[20.0]]), np.array([[22.0]])]
LABELS = np.array([1, 1, 0, 0, 0])


def test_votes_by_hand():
    # Least distances: 0-1: 1, 0-2: 2, 0-3: 10, 0-4: 12, 1-2: 2, 1-3: 19, 1-4: 21, 2-3: 8, 2-4: 10, 3-4: 2.
    model = CitationKNN(1, 2, scale=None).fit(BAGS, LABELS)
    assert_array_equal(model.radii_, [2, 2, 2, 8, 10])
    # The query 0.6 lies at 0.6, 0.4, 2.4, 19.4 and 21.4: bag 1 is its reference, bags 0 and 1 cite it.
    # The query 17 lies at 7, 16, 5, 3 and 5: bag 3 is its reference, bags 3 and 4 cite it.
    assert_array_equal(model.decision_function([[[0.6]], [[17.0]]]), [3, -3])
    assert_array_equal(model.predict([[[0.6]], [[17.0]]]), [1, 0])
    assert_array_equal(model.score_instances([[[0.6], [17.0]]]), [3, -3])


def test_a_tie_of_votes_is_negative():
    model = CitationKNN(2, 1, scale=None).fit([[[0.0]], [[10.0]], [[0.5]], [[10.5]]], [0, 1, 0, 1])
    # 5.25 lies at 5.25, 4.75, 4.75, 5.25: two references, one of each class, and nobody cites it.
    assert_array_equal(model.decision_function([[[5.25]]]), [0])
    assert_array_equal(model.predict([[[5.25]]]), [0])


def test_bags_as_near_as_the_last_reference_vote_too():
    model = CitationKNN(1, 1, scale=None).fit([[[0.0]], [[0.0]], [[2.0]], [[2.0]], [[9.0]]], [0, 1, 1, 1, 0])
    # Four bags lie at 1; each has a twin, so that none of them cites.
    assert_array_equal(model.decision_function([[[1.0]]]), [3 - 1])


def test_more_neighbours_than_bags_are_all_bags():
    model = CitationKNN(50, 50, scale=None).fit(BAGS, LABELS)
    assert_array_equal(model.decision_function(BAGS), np.full(5, 2 * 2 - 2 * 3))
    assert_array_equal(CitationKNN(50, 50).leave_one_out(BAGS, LABELS), [0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("how", "rank", "size", "expected"),
    [("min", 3, 7, 1), ("max", 3, 7, 7), ("ranked", 3, 7, 3), ("ranked", 9, 7, 7), ("ranked", 0.5, 7, 4)],
)
def test_ranks(how, rank, size, expected):
    assert rank_within(how, rank, size) == expected


# ------------------------------------------------------------------ distances


@pytest.mark.parametrize("entries", [1, 7, 1 << 21])
@pytest.mark.parametrize(("how", "rank"), [("min", 1), ("max", 1), ("ranked", 2), ("ranked", 0.5)])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_distances_are_those_of_the_definition(how, rank, backend, entries, gaussian_bags, monkeypatch):
    if backend == "native" and "native" not in gmil.engine.available_backends():
        pytest.skip("the compiled kernels are not here")
    monkeypatch.setattr(bag_distances, "_ENTRIES_AT_ONCE", entries)
    bags, other = gaussian_bags(n_bags=8)[0], gaussian_bags(n_bags=5, seed=1)[0]
    kernels = resolve(backend, 1)
    within = distances_within(grouped(bags.instances, bags.offsets), how, rank, kernels)
    expected = np.array([[plain_distance(A, B, how, rank) for B in bags] for A in bags])
    np.fill_diagonal(expected, 0)
    assert_allclose(within, expected, rtol=1e-9)
    assert_array_equal(within, within.T)
    between = distances_between(
        grouped(other.instances, other.offsets), grouped(bags.instances, bags.offsets), how, rank, kernels
    )
    assert_allclose(between, [[plain_distance(A, B, how, rank) for B in bags] for A in other], rtol=1e-9)


def test_the_largest_is_that_of_scipy(gaussian_bags):
    bags, _ = gaussian_bags(n_bags=4)
    found = distances_within(grouped(bags.instances, bags.offsets), "max", 1, resolve("auto", 1))
    one, other = bags[0].copy(), bags[1].copy()  # SciPy 1.13 takes no arrays that cannot be written to
    assert_allclose(found[0, 1], max(directed_hausdorff(one, other)[0], directed_hausdorff(other, one)[0]))


@settings(max_examples=40)
@given(
    labelled_bags(),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([("min", 1), ("max", 1), ("ranked", 2), ("ranked", 0.5)]),
)
def test_votes_are_those_of_a_plain_loop(data, n_references, n_citers, measure):
    bags, y = data
    how, rank = measure
    model = CitationKNN(n_references, n_citers, distance=how, rank=rank, scale=None).fit(bags[:-1], y[:-1])
    expected = [plain_votes(bag, bags[:-1], y[:-1], n_references, n_citers, how, rank) for bag in bags]
    assert_array_equal(model.decision_function(bags), expected)


@settings(max_examples=20)
@given(labelled_bags(), st.integers(1, 4), st.integers(1, 5))
def test_leaving_one_out_is_fitting_without_it(data, n_references, n_citers):
    bags, y = data
    for scale in (None, "l2"):
        model = CitationKNN(n_references, n_citers, scale=scale)
        found = model.leave_one_out(bags, y)
        assert not hasattr(model, "classes_")
        for i in range(len(bags)):
            others = [j for j in range(len(bags)) if j != i]
            if len(set(y[others])) == 2:
                model.fit([bags[j] for j in others], y[others])
                assert model.predict([bags[i]])[0] == found[i]
                del model.classes_


# ------------------------------------------------------------------ folds, classes, sparse bags


@pytest.mark.parametrize("scale", [None, "l2", "minmax", "standard+l2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_that_share_distances_decide_as_folds_on_their_own(scale, n_classes, gaussian_bags):
    class OnItsOwn(CitationKNN):  # a subclass may do anything, so it shares nothing
        pass

    bags, y = gaussian_bags(n_bags=30, n_classes=n_classes)
    grid = {"n_references": [1, 3], "n_citers": [2, 4], "distance": ["min", "max"]}
    shared, apart = (
        cross_validate(cls(scale=scale), bags, y, cv=3, repeats=2, param_grid=grid) for cls in (CitationKNN, OnItsOwn)
    )
    assert_array_equal(shared.decisions, apart.decisions)
    assert_array_equal(shared.predictions, apart.predictions)


@pytest.mark.parametrize(("scale", "n_matrices"), [(None, 1), ("l2", 1), ("minmax", 8)])
def test_folds_and_settings_share_their_distances(scale, n_matrices, gaussian_bags, monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return distances_within(*arguments)

    monkeypatch.setattr("gmil.methods.neighbours.citation.distances_within", counted)
    cross_validate(CitationKNN(scale=scale), *gaussian_bags(), cv=4, repeats=2, param_grid={"n_references": [1, 2]})
    assert len(calls) == n_matrices


def test_shared_folds_report_progress_and_refuse_what_fit_refuses(gaussian_bags):
    bags, y = gaussian_bags()
    seen = []
    cross_validate(CitationKNN(scale="l2"), bags, y, cv=4, n_jobs=2, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (4, 4)
    with pytest.raises(ValueError, match="'n_citers' parameter of CitationKNN must be"):
        cross_validate(CitationKNN(scale=None, n_citers=0), bags, y, cv=4)
    with pytest.raises(ValueError, match="pos_label=9 is not a class of y"):
        cross_validate(CitationKNN(scale=None, pos_label=9), bags, y, cv=4)


@pytest.mark.parametrize("how", ["min", "max"])
def test_few_distances_between_instances_are_held_at_once(how, gaussian_bags, monkeypatch):
    largest = []

    class Watched:
        bag_two_min = staticmethod(resolve("numpy").bag_two_min)

        def sq_distances(self, X, centers):
            largest.append(len(X) * len(centers))
            return resolve("numpy").sq_distances(X, centers)

    monkeypatch.setattr(bag_distances, "_ENTRIES_AT_ONCE", 200)
    bags, _ = gaussian_bags(n_bags=60, sizes=(1, 9))
    distances_within(grouped(bags.instances, bags.offsets), how, 1, Watched())
    assert max(largest) <= 200
    if how == "min":  # every pair of bags once, and only blocks against themselves twice
        assert sum(largest) < 0.6 * bags.n_instances**2


def test_sparse_bags_stay_sparse_and_are_saved(gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    model = CitationKNN().fit(sparse, y)
    assert isinstance(model.instances_, dict)
    assert_array_equal(model.decision_function(sparse), CitationKNN().fit(bags, y).decision_function(bags))
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").predict(sparse), model.predict(sparse))


def test_the_positive_class_turns_scores_round_and_no_decision(gaussian_bags):
    bags, y = gaussian_bags()
    plain, turned = CitationKNN().fit(bags, y), CitationKNN(pos_label=0).fit(bags, y)
    assert_array_equal(turned.decision_function(bags), plain.decision_function(bags))
    assert_array_equal(turned.score_instances(bags), -plain.score_instances(bags))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_references": 0}, "'n_references' parameter of CitationKNN must be"),
        ({"n_citers": 0}, "'n_citers' parameter of CitationKNN must be"),
        ({"distance": "mean"}, "'distance' parameter of CitationKNN must be"),
        ({"rank": 0.0}, "'rank' parameter of CitationKNN must be"),
        ({"rank": 1.5}, "'rank' parameter of CitationKNN must be"),
        ({"pos_label": 7}, "pos_label=7 is not a class of y"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "leave_one_out"])
def test_bad_parameters_are_refused(parameters, message, method, gaussian_bags):
    with pytest.raises(ValueError, match=message):
        getattr(CitationKNN(**parameters), method)(*gaussian_bags())


def test_a_positive_class_among_three_is_refused(gaussian_bags):
    with pytest.raises(ValueError, match="pos_label=1 names the positive class of two, but y has 3 classes"):
        CitationKNN(pos_label=1).fit(*gaussian_bags(n_classes=3))


# ------------------------------------------------------------------ published figures


def test_published_leave_one_out_on_musk1():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert np.sum(CitationKNN().leave_one_out(bags, y) == y) == 84  # 91.3 %


def test_published_leave_one_out_on_musk2():
    bags, y = gmil.load_musk2(return_X_y=True)
    assert np.sum(CitationKNN().leave_one_out(bags, y) == y) == 88  # 86.3 %, as published
