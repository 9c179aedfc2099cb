"""`MICA`: the linear program, the best threshold, and the turns that they take."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils._param_validation import InvalidParameterError

import gmil
from gmil import MICA, Bags, BagValidationError, GmilError
from gmil.engine import available_backends, resolve
from gmil.methods.svm import mica, mica_program
from gmil.methods.svm.kernels import hinge
from gmil.methods.svm.mica_program import Separation, solve_compiled, solve_plane, solve_program
from gmil.methods.svm.mica_training import best_threshold, plane_objective, slack_costs, train_mica

BACKEND = resolve("auto", 1)
few = settings(max_examples=20)
LINE = [[[0.0], [4.0]], [[1.0], [5.0]], [[0.0]], [[1.0]]]
LINE_Y = [1, 1, 0, 0]


@st.composite
def arranged(draw):
    """Draw rows of positive bags, their offsets, and rows of negative bags behind them."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1] + draw(st.integers(1, 12)), 3))
    X[rng.choice(offsets[-1], len(sizes))] += draw(st.floats(0, 3))
    return X, offsets


# ------------------------------------------------------------------ by hand


def test_the_line():
    """Means 2 and 3 ask for the slope 2. Cut at 2.5, the mean 3 is on the margin and moves too: 4 and 5 ask for 2/3."""
    model = MICA(1000.0, scale=None).fit(LINE, LINE_Y)
    assert_allclose(model.objectives_, [2, 2 / 3], atol=1e-6)
    assert_allclose(model.support_instances_, [[2 / 3]], atol=1e-6)
    assert_allclose(model.score_instances([[[2.5], [4.0]]]), [0, 1], atol=1e-6)
    assert_allclose(model.decision_function([[[0.0], [3.0]], [[1.0]]]), [1 / 3, -1], atol=1e-6)
    assert model.stop_reason_ == "converged"
    assert model.n_weights_ == 1


def test_cheap_slack_leaves_no_weights():
    model = MICA(1e-3, scale=None).fit(LINE, LINE_Y)
    assert model.n_weights_ == 0
    assert MICA(1000.0, scale=None, max_iter=1).fit(LINE, LINE_Y).stop_reason_ == "iterations"


def test_features_without_a_part_in_it_have_no_weight():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(4, 20)) for _ in range(40)]
    y = np.arange(40) % 2
    for bag, label in zip(bags, y, strict=True):
        bag[0, 3] += 8 * label
    model = MICA(10.0).fit(bags, y)
    assert np.abs(model.support_instances_[0]).argmax() == 3
    assert model.n_weights_ < 10


# ------------------------------------------------------------------ the two steps


@few
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=6),
    st.lists(st.floats(-5, 5), min_size=1, max_size=6),
    st.booleans(),
)
def test_no_threshold_is_better(positive, negative, balance):
    positive, negative = np.array(positive), np.array(negative)
    costs = slack_costs(7.0, np.ones(len(positive)), np.ones(len(negative)), balance)

    def cost(threshold):
        return costs.points @ hinge(positive - threshold) + costs.negatives @ hinge(threshold - negative)

    found = best_threshold(positive, negative, costs)
    bends = np.concatenate([positive - 1, negative + 1])
    assert cost(found) <= min(cost(bend) for bend in bends) + 1e-9


def cost_of(plane, points, negatives, costs):
    return plane_objective(*plane, points @ plane.weights, negatives @ plane.weights, costs)


def limits(patch, alone):
    """Give rows of their own to so few negatives that groups are needed."""
    patch.setattr(mica_program, "MOST_ALONE", 0)
    patch.setattr(mica_program, "_STAY_ALONE", alone)
    patch.setattr(mica_program, "_AT_ONCE", alone)


@few
@given(
    arranged(),
    st.sampled_from([0.5, 10.0, 1000.0]),
    st.booleans(),
    st.integers(1, 5),
    st.sampled_from([1, 50]),
    st.booleans(),
)
def test_negatives_that_are_left_out_or_added_up_change_nothing(case, nu, balance, alone, rounds, sparse):
    X, offsets = case
    rng = np.random.default_rng(len(X))
    points, negatives = X[: offsets[-1]], np.repeat(X[offsets[-1] :], 8, axis=0)
    negatives += 0.3 * rng.normal(size=negatives.shape)
    costs = slack_costs(nu, np.ones(len(points)), rng.integers(0, 3, len(negatives)) + 1e-2, balance)
    costs.negatives[rng.random(len(negatives)) < 0.1] = 0
    guesses = [None, Separation(np.zeros(3), 0.0), Separation(rng.normal(size=3), 5.0)]
    whole = cost_of(solve_plane(points, negatives, costs, BACKEND), points, negatives, costs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mica_program, "_MOST_ROUNDS", rounds)
        patch.setattr(mica_program, "_plane_of_sample", lambda *_: Separation(np.ones(3), 1.0))
        limits(patch, alone)
        rows = sp.csr_array(negatives) if sparse else negatives
        for guess in guesses:
            found = solve_plane(points, rows, costs, BACKEND, guess)
            assert_allclose(cost_of(found, points, negatives, costs), whole, rtol=1e-5, atol=1e-9)


def test_many_negatives_take_small_programs(monkeypatch):
    rng = np.random.default_rng(0)
    points, negatives = rng.normal(size=(30, 5)) + 1, rng.normal(size=(6000, 5))
    costs = slack_costs(10.0, np.ones(30), np.ones(6000), balance=True)
    real, n_rows = mica_program.solve_program, []
    monkeypatch.setattr(
        mica_program, "solve_program", lambda rows, *rest: n_rows.append(len(rows)) or real(rows, *rest)
    )
    found = solve_plane(points, negatives, costs, BACKEND)
    assert max(n_rows) < 3000
    monkeypatch.setattr(mica_program, "MOST_ALONE", 6000)
    whole = solve_plane(points, negatives, costs, BACKEND)
    assert n_rows[-1] == 6030
    planes = [cost_of(plane, points, negatives, costs) for plane in (found, whole)]
    assert_allclose(planes[0], planes[1], rtol=1e-6)


def test_costs_of_a_sample_are_those_of_all():
    for balance in (True, False):
        thinned, whole = (
            slack_costs(6.0, np.ones(3), np.array(c), balance) for c in ([1.0, 3.0], [1.0, 1.0, 1.0, 1.0])
        )
        assert_array_equal([thinned.points, whole.points], 2.0)
        assert_allclose(thinned.negatives, [whole.negatives[0], 3 * whole.negatives[0]])
    assert whole.negatives[0] == whole.points[0]


@few
@given(arranged(), st.sampled_from([1.0, 10.0, 1000.0]), st.booleans())
def test_the_objective_never_rises(case, nu, balance):
    X, offsets = case
    costs = slack_costs(nu, np.ones(len(offsets) - 1), np.ones(len(X) - offsets[-1]), balance)
    plane = train_mica(X, offsets, costs, 20, 0.0, BACKEND)
    assert (np.diff(plane.objectives) <= 1e-6 * (1 + plane.objectives[:-1])).all()
    assert plane.stop_reason in {"converged", "iterations"}
    sparse = train_mica(sp.csr_array(X), offsets, costs, 20, 0.0, BACKEND)
    assert_allclose(sparse.objectives[0], plane.objectives[0], rtol=1e-6)


# ------------------------------------------------------------------ the class


def ring_bags():
    """Return bags around a ring; positive ones have an instance in its middle."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, size=(60, 3))
    y = np.arange(60) % 2
    ring = 4 * np.stack([np.cos(angles), np.sin(angles)], axis=2)
    bags = ring + rng.normal(size=ring.shape) / 5
    bags[y == 1, 0] = rng.normal(size=(30, 2)) / 2
    return bags, y


def test_a_ring_needs_the_kernel(tmp_path):
    bags, y = ring_bags()
    linear, kernel = (MICA(kernel=k, n_basis=40, random_state=0).fit(bags[:40], y[:40]) for k in ("linear", "rbf"))
    assert linear.score(bags[40:], y[40:]) < 0.8
    assert kernel.score(bags[40:], y[40:]) > 0.9
    assert len(kernel.support_instances_) == kernel.n_weights_ <= 40
    kernel.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").decision_function(bags), kernel.decision_function(bags))


def test_tuning_chooses_the_kernel():
    bags, y = ring_bags()
    model = MICA(tune=True, n_basis=40, random_state=0).fit(bags[:40], y[:40], groups=np.arange(40) // 2)
    assert (model.kernel, model.kernel_) == ("linear", "rbf")
    assert model.score(bags[40:], y[40:]) > 0.9
    before = model.decision_function(bags)
    assert_array_equal(model.set_params(kernel="linear").decision_function(bags), before)


def test_tuning_weighs_slack_as_the_bags_need_it(crowded_bags, monkeypatch):
    monkeypatch.setattr(mica, "KERNELS", ("linear",))
    monkeypatch.setattr(mica, "NUS", (100.0,))
    train, test = (crowded_bags(seed, positive_size=1) for seed in (0, 1))
    assert MICA(scale=None).fit(*train).score(*test) < 0.8
    model = MICA(tune=True, scale=None, random_state=0).fit(*train)
    assert model.balance_ is False
    assert model.score(*test) > 0.95
    # The means of positive bags, where training begins, lie among negative instances: unbalanced, all stay there.
    monkeypatch.setattr(mica, "NUS", (1000.0,))
    train, test = (crowded_bags(seed, n_easy=80) for seed in (0, 1))
    assert MICA(1000.0, balance=False, scale=None).fit(*train).score(*test) < 0.8
    model = MICA(balance=False, tune=True, scale=None, random_state=0).fit(*train)
    assert model.balance_ is True
    assert model.score(*test) > 0.95


def test_sparse_bags(gaussian_bags):
    bags, y = gaussian_bags()
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    for kernel in ("linear", "rbf"):
        model = MICA(kernel=kernel, random_state=0).fit(sparse, y)
        assert model.score(sparse, y) > 0.9


def test_tuning_leaves_bags_out(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_bags=20)
    trained_on = []
    real = mica.train_mica
    monkeypatch.setattr(mica, "train_mica", lambda X, *rest: trained_on.append(len(X)) or real(X, *rest))
    model = MICA(tune=True, random_state=0).fit(bags, y, groups=np.arange(20) // 2)
    widths = 2 if model.kernel_ == "rbf" else 0
    assert len(trained_on) == (4 + 3 + widths) * 2 * 5 + 1
    assert max(trained_on[:-1]) < trained_on[-1] == bags.n_instances
    assert model.nu_ in mica.NUS


def test_bad_input_is_refused(gaussian_bags, monkeypatch):
    bags, y = gaussian_bags(n_bags=6)
    with pytest.raises(InvalidParameterError, match="'nu' parameter of MICA must be"):
        MICA(nu=0).fit(bags, y)
    with pytest.raises(InvalidParameterError, match="'n_basis' parameter of MICA must be"):
        MICA(n_basis=0).fit(bags, y)
    with pytest.raises(BagValidationError, match=r"each of the 6 bags, got shape \(2,\)"):
        MICA().fit(bags, y, groups=[0, 1])

    class Unsolved:
        x, message = None, "Time limit reached."

    monkeypatch.setattr(mica_program, "solve_compiled", lambda *_: None)
    monkeypatch.setattr(mica_program, "linprog", lambda *_, **__: Unsolved)
    with pytest.raises(GmilError, match=r"linear program of MICA was not solved: Time limit reached\."):
        MICA().fit(bags, y)


# ------------------------------------------------------------------ the compiled simplex method


def program_of(points, negatives, costs):
    """Return rows, sides and costs of the program in which every negative has a row."""
    rows = np.concatenate([points, -negatives])
    return rows, np.repeat([1.0, -1.0], [len(points), len(negatives)]), np.concatenate(costs)


compiled = pytest.mark.skipif("native" not in available_backends(), reason="The kernels are not compiled here.")


@compiled
def test_two_points_by_hand():
    """2w - t >= 1 and t >= 1: the weight and the threshold are 1; a half of each point adds up to that."""
    rows = np.array([[2.0, 1.0], [0.0, -1.0]])
    prices, shares = resolve("native").margin_program(rows, np.array([9.0, 9.0]))
    assert_allclose(prices, [1, -1], atol=1e-12)
    assert_allclose(shares, [0.5, 0.5], atol=1e-12)
    prices, shares = resolve("native").margin_program(rows, np.array([0.25, 9.0]))  # slack is cheaper than a weight
    assert_allclose(prices[0], 0, atol=1e-12)
    assert_allclose(shares, [0.25, 0.25], atol=1e-12)


@compiled
@few
@given(
    st.integers(0, 10_000),
    st.sampled_from([1e-3, 1.0, 100.0, 1e4]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 0.05]),
)
def test_compiled_programs_are_those_of_scipy(seed, nu, balance, repeated, filled):
    rng = np.random.default_rng(seed)
    n_points, n_negatives, n_features = rng.integers(1, (20, 60, 30))
    points = rng.normal(size=(n_points, n_features)) + rng.uniform(0, 2)
    negatives = rng.normal(size=(n_negatives, n_features))
    if repeated:  # equal rows, equal columns and whole numbers make many solutions, and steps of length zero
        points, negatives = np.round(points), np.round(np.repeat(negatives, 2, axis=0))
        points, negatives = np.tile(points, (2, 2)), np.tile(negatives, (1, 2))
    for rows in (points, negatives):  # zeros are left out where most are
        rows[rng.random(rows.shape) >= filled] = 0
    costs = slack_costs(nu, np.ones(len(points)), rng.integers(0, 3, len(negatives)) + 1e-3, balance)
    assert solve_compiled(*program_of(points, negatives, costs), resolve("native")) is not None
    planes = (solve_plane(points, negatives, costs, resolve(backend)) for backend in ("native", "numpy"))
    found, expected = (cost_of(plane, points, negatives, costs) for plane in planes)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@compiled
def test_a_compiled_solution_must_be_proven(monkeypatch):
    points, negatives = np.array([[2.0], [3.0]]), np.array([[0.0], [0.5]])
    backend = resolve("native")
    rows, sides, most = program_of(points, negatives, slack_costs(10.0, np.ones(2), np.ones(2), balance=True))
    assert solve_compiled(rows, sides, most, backend) is not None
    prices, shares = backend.margin_program(np.array([[2.0, 1], [3, 1], [0, -1], [-0.5, -1]]), np.full(4, 5.0))
    for wrong in (None, (1.1 * prices, shares), (prices, 1.1 * shares), (prices, -shares)):
        monkeypatch.setattr(type(backend), "margin_program", lambda *_, wrong=wrong: wrong)
        assert solve_compiled(rows, sides, most, backend) is None
    assert solve_compiled(rows, sides, most, resolve("numpy")) is None


@few
@given(st.integers(0, 10_000), st.sampled_from([0, 1 << 25]))
def test_columns_that_no_row_fills_are_left_out_of_programs(seed, most_entries):
    rng = np.random.default_rng(seed)
    points, negatives = (rng.normal(size=(n, 40)) * (rng.random((n, 40)) < 0.05) for n in (8, 20))
    program = program_of(points, negatives, slack_costs(10.0, np.ones(8), np.ones(20), balance=True))
    rows, sides, most = program
    prices, shares = solve_program(*program, BACKEND)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mica_program, "_MOST_ENTRIES", most_entries)
        sparse_prices, sparse_shares = solve_program(sp.csr_array(rows), sides, most, BACKEND)
    assert sparse_prices.shape == prices.shape
    assert not sparse_prices[:-1][~rows.any(axis=0)].any()
    if most_entries:
        assert_array_equal(sparse_prices, prices)
        assert_array_equal(sparse_shares, shares)
    assert_allclose(sparse_shares.sum(), shares.sum(), rtol=1e-7)


@compiled
def test_shapes_that_do_not_fit_are_refused():
    from gmil.engine.native import _kernels

    rows = np.ones((3, 2))
    for most, prices, shares in ((2, 2, 3), (3, 3, 3), (3, 2, 2)):
        with pytest.raises(ValueError, match="does not fit"):
            _kernels.solve_margin_program(rows, np.ones(most), 9, np.ones(prices), np.ones(shares))
    assert not _kernels.solve_margin_program(rows, np.ones(3), 0, np.ones(2), np.ones(3))


@compiled
def test_decisions_do_not_depend_on_the_solver(gaussian_bags, monkeypatch):
    """A third of the points are on the margin up to rounding, which differs."""
    bags, y = gaussian_bags(n_bags=40)
    other = MICA().fit(bags, y)
    monkeypatch.setattr(mica_program, "solve_compiled", lambda *_: None)
    one = MICA().fit(bags, y)
    assert_allclose(other.objectives_, one.objectives_, rtol=1e-8)
    assert_allclose(other.decision_function(bags), one.decision_function(bags), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_musk1():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert gmil.cross_validate(MICA(), bags, y).accuracy() > 0.66


def test_a_program_that_one_method_does_not_solve_is_given_to_the_next(monkeypatch):
    """On dense features the simplex method now and then ends with an unknown status."""
    points, negatives = np.array([[2.0, 0.0], [2.0, 1.0]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    program = program_of(points, negatives, slack_costs(10.0, np.ones(2), np.ones(2), balance=True))
    backend = resolve("numpy")
    expected = solve_program(*program, backend)
    solve, tried = mica_program.linprog, []

    def lost_at_first(*args, method, **options):
        tried.append(method)
        found = solve(*args, method=method, **options)
        if len(tried) == 1:
            found.x = None
        return found

    monkeypatch.setattr(mica_program, "linprog", lost_at_first)
    found = solve_program(*program, backend)
    assert tried == ["highs", "highs-ds"]
    assert_allclose(found[0], expected[0], atol=1e-8)
