"""The witness model of WeightedGMIL: instances under noisy-or, their log-odds, and their part in decisions."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, logit
from sklearn.metrics import average_precision_score, roc_auc_score
from tests import noisy_or_reference

import gmil
from gmil import BagValidationError, WeightedGMIL
from gmil.engine import resolve
from gmil.weighted import spread
from gmil.weighted.effects import first_order_effects
from gmil.weighted.instances import instance_scores
from gmil.weighted.noisy_or import bag_log_probabilities, fit_noisy_or
from gmil.weighted.views import InSpaces
from gmil.weighted.witness import Scorer, WitnessModel
from gmil.weighted.witness_fitting import _mix, _stack

OFFSETS = np.array([0, 1, 4, 6])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def data():
    return gmil.make_bags(80, n_features=6, bag_size=(5, 15), witness_rate=0.15, separation=4, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return WeightedGMIL(random_state=0).fit(data.bags[::2], data.y[::2])


# -------------------------------------------------------------------------------- noisy-or


@given(st.lists(st.floats(-8, 8), min_size=6, max_size=6))
def test_a_bag_is_positive_where_any_instance_is(scores):
    expected = [1 - np.prod(1 - expit(part)) for part in np.split(np.array(scores), OFFSETS[1:-1])]
    np.testing.assert_allclose(np.exp(bag_log_probabilities(np.array(scores), OFFSETS)), expected, rtol=1e-6)


def _loss(parameters, features, offsets, positive, weights):
    """Write the loss out bag by bag."""
    total = parameters[:-1] @ parameters[:-1] / 2
    share = {True: weights[positive].sum(), False: weights[~positive].sum()}
    for bag, (start, end) in enumerate(itertools.pairwise(offsets)):
        none = np.prod(1 - expit(features[start:end] @ parameters[:-1] + parameters[-1]))
        weight = weights[bag] / share[bool(positive[bag])] * len(weights) / 2
        total -= weight * np.log(1 - none if positive[bag] else none)
    return total


def fit_one(features, offsets, positive, weights):
    """Return the fit of one problem to all bags, coefficients and intercept."""
    everything = [np.ones(len(positive), dtype=bool)]
    ((coefficients, intercepts),) = fit_noisy_or(features, offsets, everything, positive[:, None], weights)
    return np.append(coefficients[:, 0], intercepts)


def some_bags(rng, n_bags=30):
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 6, n_bags))])
    features = rng.normal(size=(offsets[-1], 3))
    positive = np.array([features[a:b, 0].max() > 1 for a, b in itertools.pairwise(offsets)])
    return features, offsets, positive, rng.uniform(0.5, 2, n_bags)


def test_the_fit_is_where_the_loss_written_bag_by_bag_is_flat(rng):
    known = some_bags(rng)
    found = fit_one(*known)
    assert np.abs(approx_fprime(found, _loss, 1e-6, *known)).max() < 0.05
    assert found[0] > 3 * np.abs(found[1:-1]).max()


def test_all_choices_of_bags_and_all_problems_are_fitted_as_one_by_one(rng):
    features, offsets, first, weights = some_bags(rng, 60)
    positive = np.stack([first, np.arange(60) % 3 == 0, np.zeros(60, dtype=bool)], axis=1)
    inside = [np.arange(60) % 4 != 0, np.ones(60, dtype=bool)]
    found = fit_noisy_or(features, offsets, inside, positive, weights)
    for some, (coefficients, intercepts) in zip(inside, found, strict=True):
        assert not coefficients[:, 2].any()
        assert intercepts[2] == 0
        rows, starts = noisy_or_reference.inside_only(features, offsets, some)
        for problem, own in enumerate(positive.T[:2]):
            known = rows, starts, own[some], weights[some], 60  # some bags weigh as much as all of them
            ours = noisy_or_reference.loss(np.append(coefficients[:, problem], intercepts[problem]), *known)[0]
            assert ours <= noisy_or_reference.loss(noisy_or_reference.fit(*known), *known)[0] * (1 + 1e-3)


def test_sparse_features_give_the_same_fit(rng):
    features = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.5)
    positive = np.array([True, False, True])
    dense = fit_one(features, OFFSETS, positive, np.ones(3))
    np.testing.assert_allclose(dense, fit_one(sp.csr_array(features), OFFSETS, positive, np.ones(3)), atol=1e-8)


@pytest.mark.parametrize("positive", [np.ones(3, dtype=bool), np.zeros(3, dtype=bool)])
def test_one_class_alone_teaches_nothing(positive):
    assert not fit_one(np.ones((6, 2)), OFFSETS, positive, np.ones(3)).any()


# -------------------------------------------------------------------------------- weighing


def test_what_is_known_of_means_alone_does_not_tell_instances_apart():
    positive = np.repeat([True, False], 10)
    level, flat = np.repeat([2.0, 0.0], 10), np.zeros(20)
    knows_bags = _mix([(level, level)], positive)[1]
    knows_instances = _mix([(level, flat)], positive)[1]
    assert knows_bags == 0
    assert knows_instances == pytest.approx(1)


def test_a_scorer_that_knows_nothing_leaves_the_views_alone(rng):
    positive = np.repeat([True, False], 200)
    views = np.where(positive, 2.0, -2.0) + rng.normal(size=400) * 2
    useless = _stack(np.column_stack([views, rng.normal(size=400)]), positive, np.ones(400))
    useful = _stack(
        np.column_stack([views, np.where(positive, 1.0, -1.0) + rng.normal(size=400)]), positive, np.ones(400)
    )
    assert useless.tolist() == [1, 0, 0]
    assert useful[1] > 0.5


# -------------------------------------------------------------------------------- scores


def test_scores_are_log_odds_that_keep_to_the_bag(model, data):
    bags = data.bags[1::2]
    scores, decisions = model.score_instances(bags), model.decision_function(bags)
    assert (scores <= np.repeat(decisions, bags.sizes) + 1e-12).all()
    known = data.instance_y[np.repeat(np.arange(80) % 2 == 1, data.bags.sizes)]
    assert roc_auc_score(known, scores) > 0.95
    assert average_precision_score(known, scores) > 0.8
    assert abs(expit(scores).mean() - known.mean()) < 0.1


def test_the_only_instance_of_a_bag_is_as_likely_a_witness_as_the_bag_is_positive(model, data):
    singles = [bag[:1] for bag in data.bags[1::2]]
    np.testing.assert_allclose(model.score_instances(singles), model.decision_function(singles), atol=1e-9)


def test_hand_computed_log_odds():
    fitted = WitnessModel([_scorer(mixture=1.0)], np.ones(1), np.zeros(1), np.ones(1))
    scores = np.array([[[0.0], [logit(0.2)]]])
    shares = np.array([0.5, 0.2]) / 0.6
    by_model = np.log((0.02 + shares) / 1.02)
    found = fitted.witness_scores(np.array([[-0.5]]), np.array([[0.6], [0.0]]), scores, np.array([0, 2]))
    expected = np.log(expit(-0.5)) + by_model + np.array([np.log(4.0), 0.0]) / 2
    np.testing.assert_allclose(found[:, 0], np.minimum(expected, -0.5))

    # A bag that is positive for sure has a witness: both rise alike until one of the two is there.
    found = fitted.witness_scores(np.array([[4.0]]), np.array([[0.6], [0.0]]), scores, np.array([0, 2]))
    rises = found[:, 0] - expected - np.log(expit(4.0) / expit(-0.5))
    assert rises[0] == pytest.approx(rises[1])
    assert rises[0] > 0
    assert 1 - np.prod(1 - expit(found)) == pytest.approx(expit(4.0), abs=1e-5)


def test_a_bag_has_a_witness_at_least_as_likely_as_it_is_positive(model, data):
    bags = gmil.Bags.from_list([bag[: 1 + number % 7] for number, bag in enumerate(data.bags)])
    scores, decisions = model.score_instances(bags), model.decision_function(bags)
    assert (bag_log_probabilities(scores, bags.offsets) >= np.log(expit(decisions)) - 1e-4).all()


def _scorer(*, mixture):
    one = np.ones(1)

    return Scorer(0, "linear", 1.0, np.ones((1, 1)), 0 * one, 0 * one, one, mixture * one, 0 * one)


def test_first_order_effects_are_close_where_effects_are_small(rng):
    """In large bags an instance moves means and deviations a little: gradients then tell the exact effect."""
    bags = gmil.Bags.from_list([rng.normal(size=(300, 3)) + (i % 2) for i in range(20)])
    y = np.arange(20) % 2
    model = WeightedGMIL(20, views=("moments",), scales=("standard",), random_state=0).fit(bags, y)
    fitted, backend = model._fitted(), resolve("auto", 1)
    # The Laplacian kernel has kinks, which a gradient does not see.
    fitted = fitted._replace(witnesses=None, views=[view for view in fitted.views if view.kernel == "gaussian"])
    assert fitted.views

    exact = instance_scores(fitted, bags[:4], "effect", backend)[:, 0]
    linear = first_order_effects(fitted, InSpaces(fitted.spaces, bags[:4], backend))[:, 0]
    assert np.corrcoef(exact, linear)[0, 1] > 0.95  # vectors of bags are in single precision
    assert linear.std() == pytest.approx(exact.std(), rel=0.1)


def test_effects_of_witness_scores_are_those_on_views_by_means_where_there_are_any(model, data):
    fitted, backend = model._fitted(), resolve("auto", 1)

    def effects(*kinds):
        some = fitted._replace(views=[view for view in fitted.views if view.kind in kinds])
        return first_order_effects(some, InSpaces(some.spaces, data.bags, backend))

    everything = effects("moments", "range", "nearest")
    np.testing.assert_array_equal(everything, effects("moments"))
    of_extremes = effects("range", "nearest")  # of a model that looks at minima and maxima alone
    assert of_extremes.any()
    np.testing.assert_allclose(of_extremes, effects("range") + effects("nearest"), atol=1e-12)


def test_models_that_know_bags_by_their_means_alone_have_no_say_within_bags(rng):
    positive, mean = np.arange(200) % 2 == 1, rng.normal(size=200)
    mean[positive] += 3
    spread = rng.normal(size=200)  # how far the best instance is above the mean tells nothing
    _, within = _mix([(mean + spread, mean)], positive)
    assert within == 0
    spread[positive] += 5  # it tells everything
    _, within = _mix([(mean + spread, mean)], positive)
    assert within == 1


@pytest.mark.parametrize("kernel", ["laplacian", "gaussian"])
def test_gradients_are_those_of_the_votes(model, data, kernel):
    view = next(view for view in model._fitted().views if view.kernel == kernel)
    backend = resolve("numpy", 1)
    vector = np.asarray(view.points[0] * 0.7 + 0.05, dtype=np.float64) * view.divisor + view.shift
    gradient = view.gradients(vector[None], backend)[0, :, 0]
    # The kink of a Laplacian kernel is rounded off over a fifth of a deviation.
    step = (0.2 if kernel == "laplacian" else 1e-3) * view.divisor
    slopes = []
    for column in range(len(vector)):
        ahead, behind = vector.copy(), vector.copy()
        ahead[column] += step[column]
        behind[column] -= step[column]
        slopes.append((view.votes(ahead[None], backend) - view.votes(behind[None], backend))[0, 0] / (2 * step[column]))
    assert np.corrcoef(gradient, slopes)[0, 1] > 0.98
    np.testing.assert_allclose(gradient, slopes, atol=0.2 * np.abs(slopes).max())


# -------------------------------------------------------------------------------- as part of WeightedGMIL


def test_few_witnesses_are_where_it_helps():
    data = gmil.make_bags(120, n_features=20, bag_size=(20, 60), separation=4, witness_rate=0.05, random_state=1)
    train = np.arange(120) % 2 == 0
    with_model, without = (
        WeightedGMIL(witness_model=flag, random_state=0).fit(data.bags[train], data.y[train]) for flag in (True, False)
    )
    assert with_model.score(data.bags[~train], data.y[~train]) > without.score(data.bags[~train], data.y[~train])


def test_without_it_scores_are_effects(data):
    model = WeightedGMIL(witness_model=False, random_state=0).fit(data.bags, data.y)
    assert model.witnesses_ is None
    few = data.bags[:5]
    np.testing.assert_array_equal(model.score_instances(few), model.score_instances(few, kind="effect"))
    with pytest.raises(BagValidationError, match="no witness model"):
        model.score_instances(few, kind="witness")


def test_a_score_for_every_class():
    data = gmil.make_bags(90, n_classes=3, n_features=5, bag_size=(4, 8), separation=5, random_state=0)
    model = WeightedGMIL(random_state=0).fit(data.bags, data.y)
    scores = model.score_instances(data.bags)
    assert scores.shape == (data.bags.n_instances, 3)
    assert (scores <= np.repeat(model.decision_function(data.bags), data.bags.sizes, axis=0) + 1e-12).all()


def test_sparse_bags_have_witnesses_and_effects(rng):
    dense = [rng.random((6, 30)) * (rng.random((6, 30)) < 0.3) for _ in range(40)]
    for bag in dense[::2]:
        bag[0, :3] += 2
    bags = gmil.Bags.from_list(dense)
    sparse = bags.with_instances(sp.csr_array(bags.instances))
    y = (np.arange(40) % 2 == 0).astype(int)
    model = WeightedGMIL(random_state=0).fit(sparse, y)
    scores = model.score_instances(sparse)
    firsts = scores.reshape(40, 6)[::2]
    assert (firsts.argmax(axis=1) == 0).mean() > 0.9
    effects = model.score_instances(sparse[:1], kind="effect")
    rest = sparse[:1].with_instances(sparse[:1].instances)
    for number in range(6):
        kept = np.delete(np.arange(6), number)
        without = gmil.Bags(sp.csr_array(rest.instances[kept]), np.array([0, 5]))
        expected = model.decision_function(sparse[:1]) - model.decision_function(without)
        assert effects[number] == pytest.approx(expected[0], abs=1e-4)


@settings(max_examples=5)
@given(st.integers(0, 2**31 - 1))
def test_order_of_instances_does_not_matter(seed):
    data = gmil.make_bags(30, n_features=4, bag_size=(3, 6), random_state=1)
    model = WeightedGMIL(20, random_state=0).fit(data.bags, data.y)
    bag = data.bags[0]
    order = np.random.default_rng(seed).permutation(len(bag))
    np.testing.assert_allclose(model.score_instances([bag[order]]), model.score_instances([bag])[order], atol=1e-9)


@pytest.mark.parametrize("sample_size", [2000, 10_000])
def test_bags_read_in_blocks_have_the_same_model(sample_size):
    """With a small sample, scorers learn from thinned bags and are weighed by whole ones, in one pass."""
    data = gmil.make_bags(120, n_features=20, bag_size=(20, 60), separation=4, witness_rate=0.05, random_state=1)
    lazy = gmil.LazyBags.like(data.bags, data.bags.instances)
    model = WeightedGMIL(sample_size=sample_size, random_state=0).fit(lazy, data.y)
    assert any(scorer["stacking"].any() for scorer in model.witnesses_["scorers"])
    assert model.score(lazy, data.y) > 0.9
    some, few = lazy[:20], data.bags[:20]
    np.testing.assert_allclose(model.decision_function(some), model.decision_function(few), atol=1e-4)
    np.testing.assert_allclose(model.score_instances(some), model.score_instances(few), atol=1e-3)
    assert np.isfinite(model.left_out_decisions_).all()


def test_it_is_saved_with_the_model(model, data, tmp_path):
    model.save(tmp_path / "model.gmil")
    loaded = gmil.load(tmp_path / "model.gmil")
    np.testing.assert_array_equal(loaded.score_instances(data.bags[:5]), model.score_instances(data.bags[:5]))


# ------------------------------------------------------------------ few witnesses in large bags


def make_large(seed, n_bags=40, size=200, n_features=20):
    """Return bags with shifts of their own, 2 % witnesses in every second one, and which instances these are."""
    rng = np.random.default_rng(seed)
    positive, shifts = np.arange(n_bags) % 2 == 1, rng.normal(scale=0.5, size=(n_bags, n_features))
    X = rng.normal(size=(n_bags * size, n_features)) + np.repeat(shifts, size, axis=0)
    witness = np.repeat(positive, size) & (np.tile(np.arange(size), n_bags) < 0.02 * size)
    X[witness, 0] += 4
    features = (3 * X / np.sqrt(n_features)).astype(np.float32)
    return features, np.arange(0, len(X) + 1, size), positive, witness


def test_starts_of_many_fits_multiply_every_instance_once(monkeypatch):
    rng, offsets = np.random.default_rng(0), np.arange(0, 361, 12)
    features, fold, label = rng.normal(size=(360, 6)).astype(np.float32), np.arange(30) % 3, np.arange(30) // 3 % 4
    inside = np.repeat(np.stack([*(fold != one for one in range(3)), fold < 3]), 4, axis=0)
    positive, start = np.tile(label == np.arange(4)[:, None], (4, 1)), np.zeros((16, 7))
    taken = []
    monkeypatch.setattr(spread, "take_rows", lambda rows, which: taken.extend(which) or rows[which])
    together = spread.spread_starts(features, offsets, inside, positive, start)
    assert sorted(taken) == list(range(360))
    for job in range(16):
        alone = spread.spread_starts(features, offsets, *(part[job : job + 1] for part in (inside, positive, start)))
        found = [own[job] for own in together]
        in_order = np.sign(found[0][0]) == np.sign(alone[0][0, 0])  # the two senses of a direction have no order
        np.testing.assert_allclose(found if in_order else found[::-1], [own[0] for own in alone], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_several_starts_find_few_witnesses_in_large_bags(backend):
    features, offsets, positive, witness = make_large(3)
    given = features
    if backend == "torch":
        given = pytest.importorskip("torch").from_numpy(features)
    areas = []
    for several in (False, True):
        inside = [np.ones(40, dtype=bool), np.arange(40) < 30]
        fits = fit_noisy_or(given, offsets, inside, positive[:, None], np.ones(40), several_starts=several)
        areas.append([roc_auc_score(witness, features @ coefficients[:, 0]) for coefficients, _ in fits])
    assert np.max(areas[0]) < 0.8  # from zero, other peaks of the likelihood are found
    assert np.min(areas[1]) > 0.97


def test_starts_do_not_look_at_bags_that_are_left_out():
    features, offsets, positive, _ = make_large(2)
    inside = np.arange(40) < 30
    given = [inside], positive[:, None], np.ones(40)
    ((expected, constant),) = fit_noisy_or(features, offsets, *given, several_starts=True)
    other = features.copy()
    other[offsets[30] :] = 100.0
    ((found, level),) = fit_noisy_or(other, offsets, *given, several_starts=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(level, constant, rtol=1e-5)


def test_a_choice_of_one_class_stays_at_zero():
    features, offsets, positive, _ = make_large(3)
    ((found, level),) = fit_noisy_or(features, offsets, [positive], positive[:, None], np.ones(40), several_starts=True)
    assert not found.any()
    assert not level.any()


def test_a_tumour_of_few_patches_is_found():
    features, offsets, positive, witness = make_large(8)
    model = gmil.WeightedGMIL(random_state=0, n_jobs=1).fit(gmil.Bags(features, offsets), positive.astype(int))
    assert roc_auc_score(witness, model.score_instances(gmil.Bags(features, offsets))) > 0.95


def test_a_combination_of_labels_that_only_one_bag_has_does_not_cost_the_witness_model(data):
    y = np.column_stack([data.y, 1 - data.y])
    y[0] = 1
    model = WeightedGMIL(random_state=0).fit(data.bags[::2], y[::2])
    assert model.witnesses_ is not None
    assert model.score_instances(data.bags).min() < -1  # log-odds; effects are near 0
