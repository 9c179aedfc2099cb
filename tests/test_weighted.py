"""WeightedGMIL: closed forms against refitting, instance scores against leaving instances out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import gmil
from gmil import Bags, BagValidationError, WeightedGMIL
from gmil.engine import resolve
from gmil.stacking import calibrate, ridge_weights
from gmil.transform.scaling import rank_knots
from gmil.transform.space import fit_scaling
from gmil.weighted import ridge, views, weighing
from gmil.weighted.effects import changes_without, means_without
from gmil.weighted.fitting import Learning
from gmil.weighted.model import KERNELS, Candidate, View, fit_candidate, fit_candidates, refit_on_points, similarity
from gmil.weighted.ridge import PENALTIES, center_kernel, fit_ridge
from gmil.weighted.views import SCALES, bag_features
from gmil.weighted.weighing import stacking_folds, weigh

BACKEND = resolve("numpy")


@pytest.fixture(scope="module")
def data():
    return gmil.make_bags(60, n_features=4, separation=5, random_state=1, return_X_y=True)


@pytest.fixture(scope="module")
def model(data):
    return WeightedGMIL(40, random_state=0).fit(*data)


# ------------------------------------------------------------------ ridge


def random_problem(seed, n=12):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    kernel = np.exp(-np.abs(points[:, None] - points).sum(axis=2))
    return kernel, rng.choice([-1.0, 1.0], size=(n, 2)), rng.uniform(0.5, 2.0, size=n), rng


def plain_ridge(kernel, targets, weights, penalty, rows):
    """Solve for f = K a + b on some rows: weighted squares plus penalty times the norm of f, b free."""
    k, t, w = kernel[np.ix_(rows, rows)], targets[rows], np.diag(weights[rows])
    n = len(rows)
    system = np.block(
        [[w @ k + penalty * np.eye(n), w @ np.ones((n, 1))], [np.ones((1, n)) @ w @ k, np.array([[w.sum()]])]]
    )
    solution = np.linalg.solve(system, np.vstack([w @ t, np.ones((1, n)) @ w @ t]))
    return lambda new: kernel[np.ix_(new, rows)] @ solution[:n] + solution[n]


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.booleans())
def test_what_is_left_out_in_closed_form_is_what_refitting_predicts(seed, grouped):
    kernel, targets, weights, rng = random_problem(seed)
    groups = rng.permutation(np.arange(12) % 4) if grouped else np.arange(12)
    centred, centering = center_kernel(kernel, weights)
    fit = fit_ridge(centred, targets, weights, groups if grouped else None)
    for target in range(2):
        for group in np.unique(groups):
            held_out, rest = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
            refit = plain_ridge(kernel, targets, weights, fit.penalties[target] * centering.trace, rest)
            np.testing.assert_allclose(fit.left_out[held_out, target], refit(held_out)[:, target], atol=1e-6)
    errors = (weights / weights.sum()) @ (targets - fit.left_out) ** 2
    np.testing.assert_allclose(fit.errors, errors, rtol=1e-9, atol=1e-20)


def center_rows(rows, centering, weights):
    """Return kernels between new bags and training bags, (n_new, n_train), centred as the training kernel was."""
    own_means = rows @ (weights / weights.sum())
    return (rows - own_means[:, None] - centering.means + centering.grand_mean) / centering.trace


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_coefficients_predict_as_a_plain_ridge_does(seed):
    kernel, targets, weights, _ = random_problem(seed, n=15)
    train, new = np.arange(12), np.arange(12, 15)
    centred, centering = center_kernel(kernel[:12, :12], weights[:12])
    fit = fit_ridge(centred, targets[:12], weights[:12])
    rows = center_rows(kernel[12:, :12], centering, weights[:12])
    found = rows @ fit.coefficients + fit.intercepts
    for target in range(2):
        plain = plain_ridge(kernel, targets, weights, fit.penalties[target] * centering.trace, train)
        np.testing.assert_allclose(found[:, target], plain(new)[:, target], atol=1e-6)


def test_the_penalty_is_the_one_with_the_least_error():
    kernel, targets, weights, _ = random_problem(3)
    centred, _ = center_kernel(kernel, weights)
    fit = fit_ridge(centred, targets, weights)
    assert set(np.round(fit.penalties / weights.sum(), 12)) <= set(np.round(PENALTIES, 12))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.booleans())
def test_penalties_of_a_fold_are_chosen_on_the_other_bags(seed, grouped):
    kernel, targets, weights, _ = random_problem(seed)
    groups = np.arange(12) // 2 if grouped else None
    centred, _ = center_kernel(kernel, weights)
    folds = [np.arange(12) // 4 == fold for fold in range(2)]  # the last four bags are in none
    fit = fit_ridge(centred, targets, weights, groups, folds)
    by_penalty = []
    for penalty in PENALTIES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ridge, "PENALTIES", np.array([penalty]))
            by_penalty.append(fit_ridge(centred, targets, weights, groups).left_out)
    left_out = np.stack(by_penalty)  # (n_penalties, n, n_targets)
    expected = fit.left_out.copy()
    for test in folds:
        errors = np.einsum("b,pbt->pt", weights[~test], (targets[~test] - left_out[:, ~test]) ** 2)
        for target, best in enumerate(errors.argmin(axis=0)):
            expected[test, target] = left_out[best, test, target]
    np.testing.assert_allclose(fit.cross_fitted, expected, atol=1e-9)


def test_stacking_prefers_the_view_that_is_right_and_never_subtracts():
    rng = np.random.default_rng(0)
    target = rng.choice([-1.0, 1.0], size=200)
    views = np.column_stack([target + rng.normal(0, 0.5, 200), rng.normal(size=200), -target])
    weights = ridge_weights(views, target, np.ones(200))
    assert (weights >= 0).all()
    assert weights[0] > 5 * weights[1]
    assert weights[2] == 0


def test_calibration_gives_log_odds():
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 2, 20_000)
    positive = rng.random(20_000) < 1 / (1 + np.exp(-odds))
    slope, shift = calibrate((odds - 0.7) / 3, positive, np.ones(20_000))
    assert slope == pytest.approx(3, rel=0.1)
    assert shift == pytest.approx(0.7, abs=0.1)
    slope, _ = calibrate(np.array([-1.0, -1.0, 1.0, 1.0]), np.array([False, False, True, True]), np.ones(4))
    assert 0 < slope < 10


def test_a_part_of_the_bags_is_calibrated_as_surely_as_all():
    """Classes that are told apart perfectly leave the slope to the number of bags: of a fold it must not be smaller."""
    decisions = np.tile([-1.1, -0.9, 0.9, 1.1], 10)
    known = decisions, decisions > 0, np.ones(40)
    whole, _ = calibrate(*known)
    half = [part[:20] for part in known]
    assert calibrate(*half, share=0.5)[0] == pytest.approx(whole, rel=1e-3)
    assert calibrate(*half)[0] < 0.9 * whole


def test_a_view_on_all_points_is_the_exact_view(data):
    bags, y = data
    features = bag_features(bags.instances, bags.offsets, "moments", np.empty((0, 4)), BACKEND)
    targets = np.where(y == 1, 1.0, -1.0)[:, None]
    exact = fit_candidate(0, "moments", features, "laplacian", targets, np.ones(60), None, BACKEND)
    view, intercepts = refit_on_points(exact, features, targets, np.ones(60), np.arange(60), BACKEND, 1.0)
    one = exact.view.votes(features, BACKEND) + exact.intercepts
    np.testing.assert_allclose(view.votes(features, BACKEND) + intercepts, one, atol=1e-4)


# ------------------------------------------------------------------ work that is done once


def test_kernels_on_the_same_vectors_are_what_each_is_alone(data):
    bags, y = data
    features = bag_features(bags.instances, bags.offsets, "moments", np.empty((0, 4)), BACKEND)
    rest = np.where(y == 1, 1.0, -1.0)[:, None], np.ones(60), None, BACKEND
    for found, kernel in zip(fit_candidates(0, "moments", features, KERNELS, *rest), KERNELS, strict=True):
        alone = fit_candidate(0, "moments", features, kernel, *rest)
        assert found.view.kernel == kernel
        np.testing.assert_array_equal(found.left_out, alone.left_out)
        np.testing.assert_array_equal(found.view.coefficients, alone.view.coefficients)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [*SCALES, None])
def test_instances_are_scaled_in_blocks_as_they_are_in_one(monkeypatch, scale, dtype):
    X = np.random.default_rng(0).normal(2, 3, size=(50, 7)).astype(dtype)
    X[3] = 0
    space = fit_scaling(X, scale)
    expected = space.apply(X).astype(np.float32)
    monkeypatch.setattr(views, "_SCALED_AT_ONCE", 40)
    found = views.in_single_precision(space, X)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


def test_a_scaling_with_unit_length_has_the_units_of_the_one_without(data):
    X = data[0].instances
    for found in views.fit_spaces(X, SCALES, np.arange(5), BACKEND):
        for part, expected in zip(found.space, fit_scaling(X, found.name), strict=True):
            np.testing.assert_array_equal(part, expected)


def test_a_fit_takes_instances_into_every_space_once(data, monkeypatch):
    taken = []
    plain = views.CentersInSpace.apply

    def apply(self, X, backend=None):
        taken.append(self.name)
        return plain(self, X, backend)

    monkeypatch.setattr(views.CentersInSpace, "apply", apply)
    WeightedGMIL(40, random_state=0).fit(*data)
    assert sorted(taken) == sorted(SCALES)


# ------------------------------------------------------------------ units of new bags


@pytest.fixture
def narrow():
    """Return a view of four bags: a column that differs, one of zeros, one of large equal numbers."""
    features = np.array([[0, 0, 1e6], [0, 0, 1e6], [2, 0, 1e6], [2, 0, 1e6]], dtype=np.float32)
    targets = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    return features, fit_candidate(0, "mean", features, "gaussian", targets, np.ones(4), None, BACKEND).view


def test_training_bags_are_within_the_limits(narrow):
    features, view = narrow
    np.testing.assert_array_equal(view.standardised(features), view.points)
    np.testing.assert_array_equal(view.points[:, 0], [-1, -1, 1, 1])


def test_a_new_bag_beyond_the_training_bags_counts_as_their_extreme(narrow):
    _, view = narrow
    np.testing.assert_allclose(view.standardised(np.array([[1.5, 0, 1e6], [99, 0, 1e6]]))[:, 0], [0.5, 1])
    np.testing.assert_allclose(view.standardised_entries(np.array([-7.0]), np.array([0])), [-1])


def test_where_training_bags_are_alike_a_new_one_is_as_far_as_one_of_them_could_be(narrow):
    """Of n bags one that differs is about the root of n from the mean, however much it differs."""
    _, view = narrow
    new = np.array([[1, 0.3, 1e6], [1, -500, 1e6 + 999], [1, 1e-9, 1e6 + 0.0625]])
    np.testing.assert_allclose(view.standardised(new)[:, 1], [2, -2, 0], atol=1e-5)
    np.testing.assert_allclose(view.standardised(new)[:, 2], [0, 2, 0], atol=1e-3)  # rounding is no difference


# ------------------------------------------------------------------ views


def test_ranks_are_between_zero_and_one_and_know_ties():
    X = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0], [2.0, 5.0]])
    ranks = BACKEND.column_ranks(np.array([[0.0, 1.0], [2.0, 9.0], [2.5, 3.0]]), rank_knots(X))
    np.testing.assert_allclose(ranks, [[0, 1.5 / 4], [2 / 4, 1], [3 / 4, 3 / 4]])
    many = np.random.default_rng(0).normal(size=(10_000, 1))
    thinned = BACKEND.column_ranks(many, rank_knots(many))
    true = np.argsort(np.argsort(many[:, 0])) / 10_000
    assert np.abs(thinned[:, 0] - true).max() < 2e-3


def test_bag_features_by_hand():
    scaled = np.array([[0.0, 4.0], [2.0, 0.0], [5.0, 5.0]])
    offsets, centers = np.array([0, 2, 3]), np.array([[0.0, 0.0]])
    one = {kind: bag_features(scaled, offsets, kind, centers, BACKEND)[0] for kind in ("range", "moments", "nearest")}
    assert one["range"].tolist() == [0, 0, 2, 4]
    assert one["moments"].tolist() == [1, 2, 1, 2]
    assert one["nearest"].tolist() == [2]


@pytest.mark.parametrize("kind", ["range", "moments", "nearest"])
@pytest.mark.parametrize("backend", gmil.engine.available_backends())
def test_features_without_an_instance_are_those_of_the_smaller_bag(kind, backend):
    rng = np.random.default_rng(0)
    engine = resolve(backend)
    bags = Bags.from_list([rng.normal(size=(n, 3)) for n in (2, 5, 3)])
    centers = rng.normal(size=(4, 3))
    whole = bag_features(bags.instances, bags.offsets, kind, centers, engine)
    if kind == "moments":
        found = means_without(bags.instances, bags.offsets, kind, engine)
    else:
        found = np.repeat(whole, bags.sizes, axis=0)
        changes = changes_without(bags.instances, bags.offsets, kind, centers, engine)
        found[changes.instance, changes.column] = changes.value
        assert (np.diff(changes.instance) >= 0).all()
        assert len(changes.instance) == whole.size
    for i, bag in enumerate(bags):
        for j in range(len(bag)):
            rest = np.delete(bag, j, axis=0)
            expected = bag_features(rest, np.array([0, len(rest)]), kind, centers, engine)[0]
            np.testing.assert_allclose(found[bags.offsets[i] + j], expected, atol=1e-6)


@pytest.mark.parametrize("vote", ["kernel", "linear"])
@pytest.mark.parametrize("views", [("range",), ("moments",), ("nearest",), ("range", "moments", "nearest")])
def test_effects_are_what_the_decision_loses_without_the_instance(vote, views):
    if vote == "linear":
        views = ("nearest",)
    rng = np.random.default_rng(1)
    bags = Bags.from_list([rng.normal(size=(n, 3)) + (i % 2) for i, n in enumerate([1, 2, 5, 3] * 8)])
    y = np.arange(32) % 2
    model = WeightedGMIL(12, views=views, vote=vote, random_state=0).fit(bags, y)
    found = model.score_instances(bags, kind="effect")
    decisions = model.decision_function(bags)
    for i in (1, 2, 3):
        for j in range(bags.sizes[i]):
            rest = model.decision_function([np.delete(bags[i], j, axis=0)])[0]
            assert found[bags.offsets[i] + j] == pytest.approx(decisions[i] - rest, abs=2e-5)


def test_vlad_of_sparse_bags_by_hand():
    scaled = sp.csr_array([[0.0, 8.0, 0.0], [0.0, 0.0, -18.0], [0.0, 0.0, 0.0]])
    found = bag_features(scaled, np.array([0, 2, 3]), "vlad", np.zeros((1, 3)), BACKEND).toarray()
    # The mean is 0, 4, -9; its signed roots 0, 2, -3. A bag without words stays nothing.
    np.testing.assert_allclose(found, [[0, 2 / np.sqrt(13), -3 / np.sqrt(13)], [0, 0, 0]])


@pytest.mark.parametrize("kind", ["mean", "vlad"])
def test_sparse_features_without_an_instance_are_those_of_the_smaller_bag(kind):
    rng = np.random.default_rng(0)
    rows = rng.poisson(0.7, size=(7, 9)).astype(np.float32)
    offsets, scaled = np.array([0, 3, 7]), sp.csr_array(rows)
    found = means_without(scaled, offsets, kind, BACKEND).toarray()
    for start, end in ((0, 3), (3, 7)):
        for j in range(start, end):
            rest = sp.csr_array(np.delete(rows[start:end], j - start, axis=0))
            expected = bag_features(rest, np.array([0, end - start - 1]), kind, np.empty((0, 9)), BACKEND)
            np.testing.assert_allclose(found[[j]], expected.toarray(), atol=1e-6)


@pytest.mark.parametrize("kernel", ["laplacian", "gaussian"])
def test_sparse_rows_are_as_similar_as_dense_ones(kernel):
    rows = np.random.default_rng(0).poisson(0.7, size=(5, 9)).astype(np.float32)
    sparse = sp.csr_array(rows)
    expected = similarity(rows, rows, kernel, 3.0, BACKEND)
    np.testing.assert_allclose(similarity(sparse, sparse, kernel, 3.0, BACKEND), expected, rtol=1e-5)


def test_sparse_bags_have_views_with_both_kernels(data):
    bags, y = data
    model = WeightedGMIL(random_state=0).fit(bags.with_instances(sp.csr_array(bags.instances)), y)
    kinds = {None: ("mean", "nearest", "vlad"), "l2": ("mean", "nearest"), "standard": ("mean", "nearest")}
    expected = {(scale, kind, kernel) for scale, own in kinds.items() for kind in own for kernel in KERNELS}
    assert {(view["scale"], view["kind"], view["kernel"]) for view in model.view_weights_} == expected


def test_similarity_is_one_for_the_same_bag():
    rows = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    kernel = similarity(rows, rows, "laplacian", 2.0, BACKEND)
    np.testing.assert_array_equal(np.diag(kernel), 1)
    assert kernel[0, 1] == pytest.approx(np.exp(-np.abs(rows[0] - rows[1]).sum() / 2.0), rel=1e-6)


# ------------------------------------------------------------------ the classifier


def test_it_learns_what_gmil_learns_and_more(data):
    bags, y = data
    assert gmil.cross_validate(WeightedGMIL(), bags, y, cv=5).accuracy() > 0.85


def test_decisions_are_log_odds(model, data):
    bags, _ = data
    decisions = model.decision_function(bags)
    np.testing.assert_allclose(model.predict_proba(bags)[:, 1], 1 / (1 + np.exp(-decisions)))
    assert ((decisions > 0) == (model.predict(bags) == 1)).all()


def test_the_effect_of_an_instance_is_what_its_absence_changes(model, data):
    bags, _ = data
    some = bags[:4]
    effects = model.score_instances(some, kind="effect")
    whole = model.decision_function(some)
    for i, bag in enumerate(some):
        for j in range(len(bag)):
            rest = model.decision_function([np.delete(bag, j, axis=0)])[0]
            assert effects[some.offsets[i] + j] == pytest.approx(whole[i] - rest, abs=1e-4)
    single = bags[0][:1]
    nothing = model.intercepts_[0] * model.witnesses_["base"][0] + model.witnesses_["shifts"][0]
    assert model.score_instances([single], kind="effect")[0] == pytest.approx(
        model.decision_function([single])[0] - nothing, abs=1e-6
    )


def test_an_instance_alone_is_a_bag_of_one(model, data):
    bags, _ = data
    alone = model.score_instances(bags[:3], kind="alone")
    np.testing.assert_allclose(alone, model.decision_function([row[None] for row in bags[:3].instances]), atol=1e-6)


def test_effects_find_the_witnesses():
    bunch = gmil.make_bags(80, n_features=4, separation=6, witness_rate=0.15, random_state=3)
    model = WeightedGMIL(random_state=0).fit(bunch.bags, bunch.y)
    scores, offsets = model.score_instances(bunch.bags), bunch.bags.offsets
    found = []
    for i in range(len(bunch.bags)):
        inside = slice(offsets[i], offsets[i + 1])
        if 0 < bunch.instance_y[inside].sum() < bunch.bags.sizes[i]:
            found.append(roc_auc_score(bunch.instance_y[inside], scores[inside]))
    assert np.mean(found) > 0.85


def test_shares_of_the_linear_vote_add_up(data):
    bags, y = data
    model = WeightedGMIL(30, vote="linear", random_state=0).fit(bags, y)
    shares = model.score_instances(bags, kind="share")
    sums = np.add.reduceat(shares, bags.offsets[:-1])
    np.testing.assert_allclose(sums + model.intercepts_[0], model.decision_function(bags), atol=1e-6)
    assert (model.predict(bags) == y).mean() > 0.8
    with pytest.raises(BagValidationError, match="Shares add up for the linear vote only"):
        WeightedGMIL(30, random_state=0).fit(bags, y).score_instances(bags, kind="share")


def test_several_labels_at_once_are_the_same_as_one_by_one(data):
    bags, y = data
    other = (bags.sizes > np.median(bags.sizes)).astype(int)
    # The folds of the witness model are stratified by all labels at once.
    plain = WeightedGMIL(30, witness_model=False, random_state=0)
    both = clone(plain).fit(bags, np.column_stack([y, other]))
    assert both.predict(bags).shape == (60, 2)
    assert both.predict_proba(bags).shape == (60, 2)
    for column, labels in enumerate((y, other)):
        alone = clone(plain).fit(bags, labels)
        np.testing.assert_allclose(both.decision_function(bags)[:, column], alone.decision_function(bags), atol=1e-6)
    with pytest.raises(BagValidationError, match="class_weight is not for indicator labels"):
        WeightedGMIL(class_weight="balanced").fit(bags, np.column_stack([y, other]))
    with pytest.raises(BagValidationError, match=r"class_weight must be above 0 for every class, got \{0: 1, 1: 0\}"):
        WeightedGMIL(class_weight={0: 1, 1: 0}).fit(bags, y)


def test_left_out_decisions_are_of_fits_without_the_bag(data):
    bags, y = data
    shuffled = np.random.default_rng(3).permutation(y)  # labels that mean nothing can only be known by heart
    model = WeightedGMIL(40, random_state=0).fit(bags, shuffled)
    assert model.left_out_decisions_.shape == (60,)
    assert roc_auc_score(shuffled, model.decision_function(bags)) > 0.8
    assert roc_auc_score(shuffled, model.left_out_decisions_) < 0.7
    both = WeightedGMIL(40, random_state=0).fit(bags, np.column_stack([shuffled, y]))
    assert both.left_out_decisions_.shape == (60, 2)
    assert roc_auc_score(y, both.left_out_decisions_[:, 1]) > 0.8


def test_left_out_decisions_by_hand(data):
    """With one view they are its predictions from closed form, weighed and calibrated by bags of other folds."""
    bags, y = data
    model = WeightedGMIL(20, vote="linear", scales=[None], random_state=0).fit(bags, y)
    (space,) = model.spaces_
    features = bag_features(bags.instances, bags.offsets, "nearest", space["centers"], BACKEND)
    targets = np.where(y == 1, 1.0, -1.0)[:, None]
    learning = Learning(targets > 0, np.ones(60), None, ("linear",), 60, BACKEND)
    folds = stacking_folds(learning)
    unseen = fit_candidate(0, "nearest", features, "linear", targets, np.ones(60), None, BACKEND, folds).unseen
    assert np.array_equal(np.sum(folds, axis=0), np.ones(60))
    for test in folds:
        others = unseen[~test]
        share = ridge_weights(others, targets[~test, 0], np.ones(len(others)))
        slope, shift = calibrate(others @ share, targets[~test, 0] > 0, np.ones(len(others)), share=(~test).mean())
        expected = slope * (unseen[test] @ share) + shift
        np.testing.assert_allclose(model.left_out_decisions_[test], expected, atol=1e-4)


def test_weights_of_a_fold_do_not_know_its_labels():
    """Decisions about a fold stay as they are whatever its labels, but for what views make of these."""
    rng = np.random.default_rng(0)
    columns, y = rng.normal(size=(40, 3)), np.arange(40) % 2 == 1
    view = View(0, "mean", None, None, "linear", None, 1.0, np.empty((0, 0)))
    candidates = [Candidate(view, column[:, None], np.zeros(1), np.ones(1), 1.0) for column in columns.T]
    learning = Learning(y[:, None], np.ones(40), None, ("linear",), 40, BACKEND)
    test = stacking_folds(learning)[0]
    swapped = y.copy()
    swapped[np.flatnonzero(test)[:2]] ^= True
    other = learning._replace(positive=swapped[:, None])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weighing, "stacking_folds", lambda _: [test])
        one, two = (weigh(candidates, own).left_out for own in (learning, other))
    np.testing.assert_array_equal(one.cross_fitted[test], two.cross_fitted[test])
    assert not np.allclose(one.weighed[test], two.weighed[test])


def test_bags_outside_the_sample_have_no_left_out_decision():
    bags, y = gmil.make_bags(80, n_features=4, separation=5, random_state=1, return_X_y=True)
    model = WeightedGMIL(20, max_bags=40, n_points=20, random_state=0).fit(bags, y)
    assert np.isfinite(model.left_out_decisions_).sum() == 40
    lazily = WeightedGMIL(20, max_bags=40, n_points=20, sample_size=100, random_state=0).fit(bags, y)
    assert np.isfinite(lazily.left_out_decisions_).sum() == 40


def test_groups_are_left_out_together():
    # Bags of a group are copies: left out one by one they predict each other, left out together they cannot.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 4)
    y = np.repeat(rng.permutation(12) % 2, 4)
    bags = Bags.from_list([rng.normal(size=(3, 5)) for _ in range(12) for _ in range(4)])
    copies = bags.with_instances(np.repeat(rng.normal(size=(12, 3, 5)), 4, axis=0).reshape(-1, 5))
    deceived = WeightedGMIL(random_state=0).fit(copies, y)
    careful = WeightedGMIL(random_state=0).fit(copies, y, groups=groups)
    assert np.abs(deceived.decision_function(copies)).mean() > 2 * np.abs(careful.decision_function(copies)).mean()
    with pytest.raises(BagValidationError, match="groups must name at least 2 groups"):
        WeightedGMIL().fit(copies, y, groups=np.zeros(48))


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_copies_are_judged_by_fits_without_them(seed):
    rng = np.random.default_rng(seed)
    groups, targets = np.repeat(np.arange(10), 4), np.repeat(rng.choice([-1.0, 1.0], 10), 4)[:, None]
    features = np.repeat(rng.normal(size=(10, 6)).astype(np.float32), 4, axis=0)
    found = fit_candidate(0, "mean", features, "laplacian", targets, np.ones(40), groups, resolve("auto"))
    columns = found.view.standardised(features)
    kernel = similarity(columns, columns, "laplacian", found.view.width, resolve("auto"))
    penalty = found.penalties[0] * found.trace
    for group in range(10):
        held_out, rest = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
        expected = plain_ridge(kernel, targets, np.ones(40), penalty, rest)(held_out)
        np.testing.assert_allclose(found.left_out[held_out], expected, atol=1e-3)


def test_class_weights_move_the_threshold(data):
    bags, y = data
    few = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:6]])
    plain = WeightedGMIL(random_state=0).fit(bags[few], y[few])
    balanced = WeightedGMIL(class_weight="balanced", random_state=0).fit(bags[few], y[few])
    assert balanced.decision_function(bags).mean() > plain.decision_function(bags).mean()


def test_many_bags_are_fitted_on_points():
    bags, y = gmil.make_bags(400, n_features=4, separation=5, random_state=5, return_X_y=True)
    exact = WeightedGMIL(60, random_state=0).fit(bags[:300], y[:300])
    points = WeightedGMIL(60, max_bags=100, n_points=60, random_state=0).fit(bags[:300], y[:300])
    assert max(len(view["points"]) for view in points.views_) == 60
    assert points.score(bags[300:], y[300:]) > exact.score(bags[300:], y[300:]) - 0.06
    linear = WeightedGMIL(60, vote="linear", max_bags=100, random_state=0).fit(bags[:300], y[:300])
    assert linear.score(bags[300:], y[300:]) > 0.75


@pytest.mark.parametrize("centers", ["random", "k-means", "ranked"])
def test_codebooks(data, centers):
    bags, y = data
    model = WeightedGMIL(20, centers=centers, random_state=0).fit(bags, y)
    assert {len(space["centers"]) for space in model.spaces_} == {20}
    assert (model.predict(bags) == y).mean() > 0.85


def test_unfamiliar_bags_are_told_apart(model, data):
    bags, _ = data
    assert model.unfamiliar(bags).mean() < 0.1
    assert model.unfamiliar(bags.with_instances(bags.instances + 1000)).all()


def test_view_weights_name_every_view(model):
    names = [(view["scale"], view["kind"], view["kernel"]) for view in model.view_weights_]
    assert len(names) == len(set(names)) == 32
    assert all((view["weights"] >= 0).all() for view in model.view_weights_)
    assert len(model.views_) == sum(view["weights"].any() for view in model.view_weights_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scales": ["z"]}, r"scales must be some of .* got \['z'\]"),
        ({"views": ["median"]}, r"views must be some of .* got \['median'\]"),
        ({"views": []}, "views must be some of"),
        ({"vote": "forest"}, "'vote' parameter of WeightedGMIL must be"),
        ({"n_centers": 0}, "'n_centers' parameter of WeightedGMIL must be"),
        ({"pos_label": 7}, "pos_label=7 is not a class of y"),
    ],
)
def test_wrong_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        WeightedGMIL(**parameters).fit(*data)


def test_wrong_kind_of_score(model, data):
    with pytest.raises(BagValidationError, match=r"kind must be one of .*'share'., got 'all'"):
        model.score_instances(data[0], kind="all")


# ------------------------------------------------------------------ backends


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("backend", [name for name in gmil.engine.available_backends() if name != "numpy"])
def test_backends_agree_as_far_as_the_docs_say(backend, dtype):
    bags, y = gmil.datasets.load_musk1(return_X_y=True)
    bags = Bags(bags.instances.astype(dtype), bags.offsets)
    model = WeightedGMIL(backend=backend, random_state=0).fit(bags, y)
    decisions = model.decision_function(bags)
    size = np.abs(decisions).max()
    elsewhere = model.set_params(backend="numpy").decision_function(bags)
    assert np.abs(elsewhere - decisions).max() < 2e-3 * size
    fitted_elsewhere = WeightedGMIL(backend="numpy", random_state=0).fit(bags, y).decision_function(bags)
    assert np.abs(fitted_elsewhere - decisions).max() < 0.05 * size
    assert roc_auc_score(y, fitted_elsewhere) == pytest.approx(roc_auc_score(y, decisions), abs=1e-3)
