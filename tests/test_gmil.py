"""What every parameter of GMIL does, on bags small enough to reason about."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score

import gmil
from gmil import GMIL, Bags, BagValidationError
from gmil.engine.kmeans import SEEDINGS
from gmil.greedy.settings import choose_codebook_size

PLACES = [[0.0], [10.0], [20.0]]  # both kinds of bag, positive bags alone, negative bags alone


@pytest.fixture
def line():
    """Bags on a line: 0 is common ground, 10 the concept, 20 what negative bags are full of."""
    bags = Bags.from_list([[[0.0], [10.0]], [[0.0], [10.0], [10.0]], [[0.0], [20.0]], [[20.0], [20.0]]])
    return bags, np.array([1, 1, 0, 0])


@pytest.fixture
def clouds():
    """Forty bags in the plane with one witness in every positive bag."""
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    bags = [rng.normal(size=(rng.integers(3, 8), 2)) for _ in y]
    for bag, label in zip(bags, y, strict=True):
        if label:
            bag[0] = rng.normal([6, 6], 0.3)
    return Bags.from_list(bags), y


def fit(bags, y, **parameters):
    return GMIL(**{"init": PLACES, "n_positive": 1, "n_negative": 1, **parameters}).fit(bags, y)


# ------------------------------------------------------------------ sizes


@pytest.mark.parametrize(
    ("n_instances", "share", "expected"),
    [
        (476, 0.5, (15, 3, 3)),
        (6598, 0.38, (22, 1, 3)),
        (1, 0.5, (1, 1, 1)),
        (10**6, 0.1, (35, 2, 6)),
        (3, 0.5, (3, 1, 1)),
    ],
)
def test_automatic_sizes_follow_the_rules_of_the_paper(n_instances, share, expected):
    positive = (np.arange(100) < 100 * share)[:, None]
    assert choose_codebook_size("auto", "auto", "auto", n_instances, n_instances, positive) == expected


def test_a_number_above_what_the_data_allow_is_an_error(line):
    bags, y = line
    with pytest.raises(BagValidationError, match=r"n_clusters=10 is above the number of instances to cluster, 9"):
        GMIL(10).fit(bags, y)
    with pytest.raises(BagValidationError, match=r"n_positive=4 is above the number of clusters, 3"):
        GMIL(3, 4).fit(bags, y)
    with pytest.raises(BagValidationError, match=r"n_negative=5 is above the number of clusters, 3"):
        GMIL(3, 1, 5).fit(bags, y)
    with pytest.raises(BagValidationError, match=r"n_components=2 is above"):
        GMIL(3, n_components=2).fit(bags, y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("n_clusters", 0), ("n_clusters", 2.5), ("epsilon", 0.0), ("threshold", "median"), ("scale", "z"), ("n_init", 0),
     ("counting", "instance"), ("overlap", True), ("rule", "knn"), ("backend", "cuda"), ("sample_size", 0),
     ("metric", "cosine"), ("n_components", 1.5), ("weighting", "none"), ("centers", "mode"), ("sampling", "x")],
)  # fmt: skip
def test_wrong_parameters_are_named_with_what_is_right(line, parameter, value):
    with pytest.raises(ValueError, match=rf"'{parameter}' parameter of GMIL must be .* Got {value!r}"):
        GMIL(**{parameter: value}).fit(*line)


# ------------------------------------------------------------------ counting and scoring


def test_counting(line):
    bags, y = line
    assert fit(bags, y).positive_counts_.tolist() == [2, 3, 0]
    assert fit(bags, y, counting="bags").positive_counts_.tolist() == [2, 2, 0]
    assert fit(bags, y, counting="bags").negative_counts_.tolist() == [1, 0, 2]
    np.testing.assert_allclose(fit(bags, y, counting="bag-mass").positive_counts_, [1 / 2 + 1 / 3, 1 / 2 + 2 / 3, 0])
    np.testing.assert_allclose(fit(bags, y, counting="bag-mass").negative_counts_, [1 / 2, 0, 1 / 2 + 1])


def test_weighting(line):
    bags, y = line
    ratio = np.array([0.4 / (0.25 + 0.1), 0.6 / 0.1, 0])
    np.testing.assert_allclose(fit(bags, y, epsilon=0.1, weighting=None).bin_scores_, ratio)
    expected = 5 / 3  # all positive counts over K
    sigmoid = 1 / (1 + np.exp(-(np.array([2, 3, 0]) - expected) / expected))
    np.testing.assert_allclose(fit(bags, y, epsilon=0.1, weighting="mass").bin_scores_, ratio * sigmoid)


def test_epsilon(line):
    bags, y = line
    one_third = fit(bags, y, epsilon=1 / 3).bin_scores_
    np.testing.assert_allclose(fit(bags, y).bin_scores_, one_third)
    np.testing.assert_allclose(fit(bags, y, epsilon="negatives").bin_scores_, fit(bags, y, epsilon=1 / 4).bin_scores_)


def test_negative_rank():
    bags = [[[0.0], [0.0], [10.0]], [[0.0], [10.0]], [[0.0], [0.0], [0.0]], [[0.0], [20.0]]]
    frequent = fit(bags, [1, 1, 0, 0])
    rare = fit(bags, [1, 1, 0, 0], negative_rank="ratio", epsilon=0.01)
    assert frequent.negative_bins_.tolist() == [0]
    assert rare.negative_bins_.tolist() == [2]


# ------------------------------------------------------------------ overlap


def test_overlap():
    # 0 is both the best positive and the most frequent negative bin.
    bags = [[[0.0], [0.0]], [[0.0], [10.0]], [[0.0], [0.0]], [[0.0], [20.0]]]
    y = [1, 1, 0, 0]
    both = {"n_positive": 2, "n_negative": 1, "epsilon": 10.0}
    assert fit(bags, y, **both).positive_bins_.tolist() == [0, 1]
    assert fit(bags, y, **both).negative_bins_.tolist() == [0]
    assert fit(bags, y, **both, overlap="exclude").negative_bins_.tolist() == [2]
    assert fit(bags, y, **both, overlap="exclude-positive").positive_bins_.tolist() == [1, 2]


def test_a_codebook_never_empties_because_the_best_excluded_bins_come_back(line):
    bags, y = line
    model = fit(bags, y, n_positive=3, n_negative=2, overlap="exclude")
    assert model.negative_bins_.tolist() == [2, 0]
    model = fit(bags, y, n_positive=2, n_negative=2, overlap="exclude")
    assert model.positive_bins_.tolist() == [1, 0]
    assert model.negative_bins_.tolist() == [2, 0]


def test_a_bag_on_a_shared_center_is_a_tie_and_a_tie_is_negative():
    bags = [[[0.0], [0.0]], [[0.0], [10.0]], [[0.0], [0.0]], [[0.0], [20.0]]]
    model = fit(bags, [1, 1, 0, 0], n_positive=1, n_negative=1, epsilon=10.0)
    assert model.positive_bins_.tolist() == model.negative_bins_.tolist() == [0]
    assert model.decision_function([[[3.0], [9.0]]]).tolist() == [0.0]
    assert model.predict([[[3.0], [9.0]]]).tolist() == [0]


# ------------------------------------------------------------------ distances, rules, thresholds


@pytest.mark.parametrize(
    ("distance", "to_positive", "to_negative"),
    [("min", 1, 2), ("mean", (1 + 8) / 2, (9 + 2) / 2), ("max", 8, 9), ("hausdorff", 8, 9), ("center-mean", 1, 2)],
)
def test_distances_between_a_bag_and_one_center(line, distance, to_positive, to_negative):
    model = fit(*line, distance=distance)
    new = [[[11.0], [18.0]]]
    assert model.decision_function(new)[0] == pytest.approx(to_negative - to_positive)


def test_distances_to_several_centers(line):
    new = [[[11.0], [18.0]]]
    for distance, expected in {"hausdorff": 9 - max(8, 11), "center-mean": 2 - (1 + 11) / 2}.items():
        model = fit(*line, n_positive=2, n_negative=1, distance=distance)  # C+ = {10, 0}, C- = {20}
        assert model.decision_function(new)[0] == pytest.approx(expected)


def test_the_vote_of_the_instances(line):
    model = fit(*line, rule="vote")
    decisions = model.decision_function([[[9.0], [11.0], [19.0]], [[9.0], [19.0]], [[15.0]]])
    np.testing.assert_allclose(decisions, [1 / 3, 0, -1])
    assert model.predict([[[9.0], [19.0]]]).tolist() == [0]  # a draw is negative


def thresholds(line, **parameters):
    bags = Bags.from_list([[[8.0]], [[10.0], [13.0]], [[14.0]], [[20.0]]])
    return fit(bags, [1, 1, 0, 0], init=[[10.0], [20.0]], n_negative=0, max_iter=1, **parameters)


@pytest.mark.parametrize("name", ["mean", "mean-positive", "midpoint", "best", "variance"])
def test_thresholds_from_the_training_bags(line, name):
    model = thresholds(line, threshold=name)
    center = model.cluster_centers_[model.positive_bins_[0], 0]
    d = np.abs(np.array([8.0, 10.0, 14.0, 20.0]) - center)
    d[1] = min(abs(10 - center), abs(13 - center))
    members = np.array([8.0, 10.0, 13.0, 14.0])
    expected = {
        "mean": d.mean(),
        "mean-positive": d[:2].mean(),
        "midpoint": (d[:2].mean() + d[2:].mean()) / 2,
        "best": (d[0] + d[3]) / 2,  # in order: +, -, +, -; one error at least, and this gap is the widest
        "variance": np.sqrt(((members - center) ** 2).mean()),
    }
    assert model.threshold_ == pytest.approx(expected[name])
    new = np.array([[[center + 1.0]]])
    assert model.decision_function(new)[0] == pytest.approx(model.threshold_ - 1)


def test_the_best_threshold_when_all_or_none_should_be_positive():
    from gmil.greedy.voting import choose_threshold

    far_positive = choose_threshold("best", np.array([1.0, 2.0, 3.0]), np.array([False, False, True]), 0.0)
    assert not (np.array([1.0, 2.0, 3.0]) < far_positive).any()  # one error is the least there is
    all_positive = choose_threshold("best", np.array([1.0, 2.0, 3.0]), np.array([True, False, True]), 0.0)
    errors = ((np.array([1.0, 2.0, 3.0]) < all_positive) != [True, False, True]).sum()
    assert errors == 1


def test_a_threshold_may_be_a_number(line):
    assert thresholds(line, threshold=0.082).threshold_ == 0.082


def test_medoids_are_instances(clouds):
    bags, y = clouds
    model = GMIL(6, centers="medoid", random_state=0).fit(bags, y)
    for center in model.cluster_centers_:
        assert (bags.instances == center).all(axis=1).any()


# ------------------------------------------------------------------ spaces, samples, seeds


def test_l2_scaling_makes_length_irrelevant(clouds):
    bags, y = clouds
    model = GMIL(6, scale="l2", random_state=0).fit(bags, y)
    longer = bags.with_instances(bags.instances * 7)
    np.testing.assert_allclose(model.decision_function(longer), model.decision_function(bags), atol=1e-12)


@pytest.mark.parametrize("scale", [None, "standard", "minmax", "global"])
def test_every_scaling_that_keeps_the_concept_apart_finds_it(clouds, scale):
    bags, y = clouds
    accuracies = [cross_val_score(GMIL(6, scale=scale, random_state=seed), bags, y, cv=5).mean() for seed in range(4)]
    assert np.mean(accuracies) > 0.8


def test_pca_with_all_components_changes_nothing_but_the_axes(clouds):
    bags, y = clouds
    init = bags.instances[:6]
    plain = GMIL(init=init).fit(bags, y)
    rotated = GMIL(init=init, n_components=2).fit(bags, y)
    np.testing.assert_allclose(plain.decision_function(bags), rotated.decision_function(bags), atol=1e-9)
    assert GMIL(init=init, n_components=1).fit(bags, y).cluster_centers_.shape == (6, 1)
    assert GMIL(init=init, n_components=0.5).fit(bags, y).cluster_centers_.shape == (6, 1)


def test_the_sample_is_what_is_clustered_and_all_instances_are_counted(clouds):
    bags, y = clouds
    model = GMIL(5, sample_size=20, random_state=0).fit(bags, y)
    total = model.positive_counts_.sum() + model.negative_counts_.sum()
    assert total == bags.n_instances
    with pytest.raises(BagValidationError, match="n_clusters=21 is above the number of instances to cluster, 20"):
        GMIL(21, sample_size=20).fit(bags, y)
    for sampling in ("bags", "classes"):
        GMIL(5, sample_size=20, sampling=sampling, random_state=0).fit(bags, y)


def test_samples_give_every_bag_or_class_the_same_chance():
    from gmil.sampling import sample_rows

    bags = Bags.from_list([np.zeros((900, 1)), np.zeros((50, 1)), np.zeros((50, 1))])
    labels = np.array([0, 1, 1])
    chosen = {
        how: bags.segment_ids[sample_rows(bags, labels, 40, how, np.random.default_rng(0))]
        for how in ("uniform", "bags", "classes")
    }
    assert (chosen["uniform"] == 0).mean() > 0.75
    assert (chosen["bags"] == 0).mean() < 0.6
    assert 0.3 < (chosen["classes"] == 0).mean() < 0.75
    for rows in chosen.values():
        assert len(rows) == 40


def test_restarts_keep_the_best_clustering(clouds):
    bags, y = clouds

    def inertia(model):
        d = ((bags.instances[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
        return d.min(axis=1).sum()

    once = [inertia(GMIL(7, random_state=s).fit(bags, y)) for s in range(5)]
    often = inertia(GMIL(7, n_init=20, random_state=0).fit(bags, y))
    assert often <= min(once) + 1e-9 or often <= np.median(once)


def test_seeds(clouds):
    bags, y = clouds
    one, two = (GMIL(random_state=5).fit(bags, y) for _ in range(2))
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    state = np.random.RandomState(5)
    first, second = GMIL(random_state=state).fit(bags, y), GMIL(random_state=state).fit(bags, y)
    again = GMIL(random_state=np.random.RandomState(5)).fit(bags, y)
    np.testing.assert_array_equal(first.cluster_centers_, again.cluster_centers_)
    assert not np.array_equal(first.cluster_centers_, second.cluster_centers_)


def test_initial_centers_that_do_not_fit(line):
    with pytest.raises(
        BagValidationError, match=r"init must be an array of centres with 1 features each, got shape \(3, 2\)"
    ):
        GMIL(init=np.zeros((3, 2))).fit(*line)
    with pytest.raises(BagValidationError, match="init has 3 centres, but n_clusters is 4"):
        GMIL(4, init=PLACES).fit(*line)
    with pytest.raises(BagValidationError, match="NaN or infinity"):
        GMIL(init=[[np.nan]]).fit(*line)


def test_sparse_equals_dense_from_the_same_centers(clouds):
    bags, y = clouds
    sparse_bags = Bags(sp.csr_array(bags.instances), bags.offsets)
    for scale in (None, "standard", "minmax", "l2", "global"):
        dense = GMIL(init=bags.instances[:6], scale=scale).fit(bags, y)
        sparse = GMIL(init=bags.instances[:6], scale=scale).fit(sparse_bags, y)
        np.testing.assert_array_equal(dense.positive_counts_, sparse.positive_counts_)
        np.testing.assert_array_equal(dense.positive_bins_, sparse.positive_bins_)
        np.testing.assert_allclose(dense.decision_function(bags), sparse.decision_function(sparse_bags), atol=1e-9)
    projected = GMIL(init=bags.instances[:6], n_components=1).fit(sparse_bags, y)
    assert projected.predict(sparse_bags).shape == y.shape


# ------------------------------------------------------------------ classes


def test_the_positive_class(line):
    bags, _ = line
    names = np.array(["musk", "musk", "air", "air"])
    with pytest.warns(UserWarning, match="'musk' is taken as the positive class"):
        model = fit(bags, names)
    assert model.predict([[[10.0]], [[20.0]]]).tolist() == ["musk", "air"]
    other = fit(bags, names, pos_label="air")
    assert other.predict([[[10.0]], [[20.0]]]).tolist() == ["musk", "air"]
    assert other.decision_function([[[20.0]]])[0] < 0 < other.score_instances([[[20.0]]])[0]
    assert other.positive_bins_.tolist() == [2]
    np.testing.assert_array_equal(other.predict_proba([[[20.0]]]).argmax(axis=1), [0])
    with pytest.raises(
        BagValidationError, match=r"pos_label='water' is not a class of y; the classes are \['air', 'musk'\]"
    ):
        fit(bags, names, pos_label="water")


def test_more_classes_share_one_clustering():
    rng = np.random.default_rng(0)
    places = np.array([[0, 0], [8, 0], [0, 8]])
    y = np.repeat(["a", "b", "c"], 10)
    bags = [
        np.vstack([rng.normal(size=(3, 2)) + 20, places["abc".index(c)] + rng.normal(0, 0.5, size=(2, 2))]) for c in y
    ]
    model = GMIL(8, 1, 2, random_state=0).fit(bags, y)
    assert model.cluster_centers_.shape == (8, 2)
    assert model.positive_counts_.shape == model.bin_scores_.shape == (3, 8)
    assert model.positive_bins_.shape == (3, 1)
    assert model.negative_bins_.shape == (3, 2)
    assert model.decision_function(bags).shape == (30, 3)
    assert model.score_instances(bags).shape == (150, 3)
    assert (model.predict(bags) == y).mean() == 1
    np.testing.assert_allclose(model.predict_proba(bags).sum(axis=1), 1)
    np.testing.assert_array_equal(
        model.predict_proba(bags).argmax(axis=1), model.decision_function(bags).argmax(axis=1)
    )
    for i, label in enumerate("abc"):
        binary = GMIL(1, 1, 2, init=model.cluster_centers_, pos_label=True).set_params(n_clusters="auto")
        binary.set_params(epsilon=1 / 8, max_iter=1).fit(bags, y == label)
        np.testing.assert_array_equal(binary.positive_counts_, model.positive_counts_[i])
        np.testing.assert_array_equal(binary.positive_bins_, model.positive_bins_[i])
    explained = model.explain(bags[0], label="b")
    assert explained.label == "a"
    assert explained.margin == pytest.approx(model.decision_function(bags[:1])[0, 1])
    with pytest.raises(BagValidationError, match="label='x' is not a class"):
        model.explain(bags[0], label="x")
    with pytest.raises(BagValidationError, match="names the positive class of two, but y has 3 classes"):
        GMIL(pos_label="a").fit(bags, y)


# ------------------------------------------------------------------ probabilities, instances, explanations


def test_probabilities_are_one_half_at_a_decision_of_zero(line):
    model = fit(*line)
    bags = [[[15.0]], [[10.0]], [[20.0]]]
    probabilities = model.predict_proba(bags)[:, 1]
    assert probabilities[0] == 0.5
    assert probabilities[1] > 0.5 > probabilities[2]
    assert model.slope_ > 0


def test_probabilities_order_bags_as_decisions_do(clouds):
    bags, y = clouds
    model = GMIL(6, random_state=0).fit(bags, y)
    order = np.argsort(model.decision_function(bags), kind="stable")
    assert (np.diff(model.predict_proba(bags)[order, 1]) >= 0).all()
    # They are the best fit of their family to the training labels.
    logits = model.decision_function(bags)

    def loss(slope):
        p = 1 / (1 + np.exp(-slope * logits))
        target = np.where(y == 1, 21 / 22, 1 / 22)
        return -(target * np.log(p) + (1 - target) * np.log(1 - p)).sum()

    assert loss(model.slope_) <= min(loss(model.slope_ * f) for f in (0.8, 0.95, 1.05, 1.25)) + 1e-6


def test_witnesses_score_highest(clouds):
    bags, y = clouds
    model = GMIL(6, random_state=0).fit(bags, y)
    scores = model.score_instances(bags)
    for i in np.flatnonzero(y):
        assert scores[bags.offsets[i] : bags.offsets[i + 1]].argmax() == 0


def test_explanations(line):
    bags, y = line
    model = fit(bags, y)
    new = Bags.from_list([[[0.0], [11.0], [18.0]]], bag_ids=["m7"], instance_info={"time": [1.5, 2.5, 3.5]})
    found = model.explain(new)
    assert (found.positive_instance, found.positive_center, found.positive_distance) == (1, 1, pytest.approx(1.0))
    assert (found.negative_instance, found.negative_center, found.negative_distance) == (2, 2, pytest.approx(2.0))
    assert (found.label, found.margin, found.bag_id) == (1, pytest.approx(1.0), "m7")
    assert (found.positive_info, found.negative_info) == ({"time": 2.5}, {"time": 3.5})
    assert "instance 1 is 1 from positive centre 1" in str(found)
    from_array = model.explain(np.array([[0.0], [11.0], [18.0]]))
    assert from_array.margin == found.margin
    with pytest.raises(BagValidationError, match="explain takes one bag, got 4"):
        model.explain(bags)
    alone = fit(bags, y, n_negative=0, threshold=3.0).explain(new)
    assert (alone.negative_instance, alone.negative_distance) == (None, 3.0)
    assert "the threshold is 3" in str(alone)


# ------------------------------------------------------------------ the paper, scikit-learn


def test_settings_of_the_paper():
    model = GMIL.from_paper("musk1")
    assert (model.n_clusters, model.n_positive, model.n_negative, model.threshold) == (10, 2, 0, 0.082)
    for name in ("musk1", "musk2", "elephant", "fox", "tiger", "med11"):
        assert GMIL.from_paper(name).epsilon == 1e-6
        assert GMIL.from_paper(name).init == "plain-k-means++"
    model = GMIL.from_paper("fox", random_state=1)
    assert (model.n_clusters, model.n_positive, model.n_negative, model.scale, model.random_state) == (
        20,
        4,
        4,
        "l2",
        1,
    )
    assert GMIL.from_paper("med11").n_negative == 9
    assert GMIL.from_paper("musk2").n_clusters == 22
    with pytest.raises(ValueError, match="no experiment 'trec9'; it has musk1, musk2"):
        GMIL.from_paper("trec9")


def test_the_printed_threshold_is_of_the_size_of_distances_under_global_scaling_alone():
    bags, y = gmil.load_musk1(return_X_y=True)
    shares = {
        scale: GMIL.from_paper("musk1", scale=scale, random_state=0).fit(bags, y).predict(bags).mean()
        for scale in (None, "standard", "minmax", "l2", "global")
    }
    assert 0.3 < shares.pop("global") < 0.9
    assert set(shares.values()) == {0.0}  # every bag is called negative


def test_centres_that_are_plainly_drawn_are_others_than_greedy_ones(clouds):
    bags, y = clouds
    greedy, plain = (GMIL(5, init=init, max_iter=1, random_state=0).fit(bags, y) for init in sorted(SEEDINGS))
    assert not np.allclose(greedy.cluster_centers_, plain.cluster_centers_)
    with pytest.raises(ValueError, match=r"'init' parameter of GMIL must be .* Got 'random'"):
        GMIL(init="random").fit(bags, y)


def test_grid_search(clouds):
    bags, y = clouds
    search = GridSearchCV(GMIL(random_state=0), {"n_clusters": [2, 6]}, cv=3).fit(bags, y)
    assert search.best_params_ == {"n_clusters": 6}
    assert search.predict(bags[:3]).shape == (3,)


def test_float32_and_float64_agree_but_for_near_ties(clouds):
    bags, y = clouds
    init = bags.instances[:6]
    double = GMIL(init=init).fit(bags, y)
    single_bags = bags.with_instances(bags.instances.astype(np.float32))
    single = GMIL(init=init.astype(np.float32)).fit(single_bags, y)
    assert single.cluster_centers_.dtype == np.float32
    one, other = double.decision_function(bags), single.decision_function(single_bags)
    np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(one).max())


def test_an_instance_at_the_origin_on_a_center_there_is_at_distance_zero():
    from gmil.engine import available_backends, distances, resolve

    X = np.array([[0.0, 0.0], [3.0, 1.0]])
    centers = np.array([[0.0, 0.0], [0.1, 0.3]])
    for backend in available_backends():
        assert distances(X, centers, resolve(backend))[0, 0] == 0
