"""Topics: what the words of frames say together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import gmil
from gmil.errors import VideoError
from gmil.video import EventDetectors, IndexSettings, Vocabulary, cross_validate_events, crossval, label_folds
from gmil.video import topics as topics_module
from gmil.video.labels import LabelledVideos
from gmil.video.stacking import count_topics, stack_weights
from gmil.video.topics import Topics, learn_topics

N_FRAMES = 20


def make_videos(n_videos, *, n_words=120, n_motions=6, seed=0, shown=0.2, counted=400):
    """Return word histograms of frames, and when each motion is seen, (n_videos, N_FRAMES, n_motions).

    A motion lasts eight frames and draws its words from a distribution of its own over all of them: no word is sure.
    """
    rng = np.random.default_rng(seed)
    own_words = np.random.default_rng(99).dirichlet(np.full(n_words, 0.3), size=n_motions + 1)
    seen = np.zeros((n_videos, N_FRAMES, n_motions))
    for video, motion in np.argwhere(rng.random((n_videos, n_motions)) < shown):
        start = rng.integers(0, N_FRAMES - 8)
        seen[video, start : start + 8, motion] = 1
    shares = 0.25 * seen @ own_words[1:] + own_words[0]
    counts = [rng.poisson(counted * row) for row in shares.reshape(-1, n_words)]
    histograms = np.array(counts, dtype=np.float32)
    histograms /= histograms.sum(axis=1, keepdims=True)
    return gmil.Bags(histograms, np.arange(n_videos + 1) * N_FRAMES), seen


def some_vocabulary(n_words):
    return Vocabulary(np.eye(n_words, 960, dtype=np.float32), 1.0, IndexSettings(n_words=n_words))


def test_weights_and_center_by_hand():
    bags = gmil.Bags(np.array([[0.25, 0.75, 0], [1, 0, 0], [0.36, 0.64, 0], [0.5, 0.5, 0]]), [0, 2, 4])
    found = learn_topics(bags, 2)
    expected = [np.log(1 + 4 / 4), np.log(1 + 4 / 3), np.log(1 + 4)]  # a word that is never seen counts as seen once
    np.testing.assert_allclose(found.weights, expected, rtol=1e-6)
    rooted = [(0.5 + 1 + 0.6 + 0.5**0.5) / 4, (0.75**0.5 + 0.8 + 0.5**0.5) / 4, 0]
    np.testing.assert_allclose(found.center, np.array(rooted) * expected, rtol=1e-6)
    assert found.directions.shape == (3, 2)


def test_topics_of_the_training_frames_have_unit_variance_and_no_correlation():
    bags, _ = make_videos(40)
    values = learn_topics(bags, 6).of(bags).instances.astype(np.float64)
    assert values.shape == (bags.n_instances, 6)
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(values.T @ values / len(values), np.eye(6), atol=1e-3)


def test_a_motion_is_a_topic_of_its_own_though_none_of_its_words_is():
    bags, seen = make_videos(60)
    truth = seen.reshape(-1, seen.shape[-1])

    def best(columns):
        found = np.abs(np.corrcoef(truth.T, columns.T)[: truth.shape[1], truth.shape[1] :])
        return found.max(axis=1)

    topics = learn_topics(bags, 6)
    rows = np.sqrt(bags.instances, dtype=np.float64) * topics.weights - topics.center
    varied = rows @ topics_module._varied_directions(rows, 6)
    words = bags.instances[:, bags.instances.std(axis=0) > 0]
    assert best(topics.of(bags).instances).min() > 0.9
    assert best(words).min() < 0.85
    assert best(varied).max() < 0.85  # directions of most variance are mixtures of motions


def test_words_get_further_views_unless_told_otherwise_and_other_features_do_not():
    bags, seen = make_videos(12)
    y = seen.any(axis=1).astype(int)[:, :2]
    words = some_vocabulary(bags.n_features)

    def numbers(**options):
        views = EventDetectors.fit(bags, y, ["a", "b"], **options).views
        assert views[0].topics is None
        assert all(view.models[0].n_features_in_ == view.topics.directions.shape[1] for view in views[1:])
        return [view.topics.directions.shape[1] for view in views[1:]]

    assert numbers() == []
    assert numbers(vocabulary=words, topics=0) == []
    assert numbers(vocabulary=words, estimator=gmil.GMIL(random_state=0)) == []
    assert numbers(vocabulary=words) == [12]  # no more topics than videos, and no view twice
    assert numbers(vocabulary=words, topics=[7, 3, 500]) == [3, 7, 12]
    assert numbers(topics=4) == [4]
    weighted = gmil.WeightedGMIL()
    assert count_topics(None, weighted, words=True) == (25, 50, 100)
    assert count_topics(None, weighted, words=False) == count_topics([0], weighted, words=True) == ()
    assert count_topics([7, 7, 0, 5], weighted, words=False) == (5, 7)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_decisions_are_weighted_sums_of_all_views(class_weight):
    bags, seen = make_videos(16)
    y = seen.any(axis=1).astype(int)[:, :2]
    estimator = gmil.WeightedGMIL(class_weight=class_weight, random_state=0)

    def fit(bags):
        if class_weight is None:
            model = clone(estimator).fit(bags, y)
            return model.decision_function(bags), model.left_out_decisions_
        models = [clone(estimator).fit(bags, column) for column in y.T]
        left_out = np.column_stack([model.left_out_decisions_ for model in models])
        return np.column_stack([model.decision_function(bags) for model in models]), left_out

    model = EventDetectors.fit(bags, y, ["a", "b"], estimator=estimator, topics=[5, 9], balanced=True)
    seen = [bags, learn_topics(bags, 5).of(bags), learn_topics(bags, 9).of(bags)]
    decisions, left_out = zip(*map(fit, seen), strict=True)
    counts = y.sum(axis=0)
    found = stack_weights(left_out, y, np.where(y, 8 / counts, 8 / (16 - counts)) if class_weight else np.ones(y.shape))
    expected = sum(w * own for w, own in zip(found.weights, decisions, strict=True)) + found.shifts
    expected += np.log((16 - counts) / counts)
    np.testing.assert_allclose(model.decide(bags), expected, rtol=1e-6)
    np.testing.assert_allclose(model.probabilities(bags), 1 / (1 + np.exp(-expected)), rtol=1e-6)


def test_detectors_with_topics_are_what_was_saved(tmp_path):
    bags, seen = make_videos(12)
    y = seen.any(axis=1).astype(int)[:, :2]
    model = EventDetectors.fit(bags, y, ["a", "b"], vocabulary=some_vocabulary(bags.n_features))
    model.save(tmp_path / "events.gmil")
    again = EventDetectors.load(tmp_path / "events.gmil")
    np.testing.assert_array_equal(again.decide(bags), model.decide(bags))
    for old, new in zip(model.time_lines(bags[:2]), again.time_lines(bags[:2]), strict=True):
        assert [line.segments for line in old] == [line.segments for line in new]
    line = again.time_lines(bags[:1])[0][1]
    smooth = again.smoothed_scores(bags[:1])[:, 1]
    np.testing.assert_allclose(line.scores, smooth, rtol=1e-5)
    # Frames that lie a second apart are decided one by one; their topics are found by iteration.
    old = EventDetectors.fit(bags, y, ["a", "b"], vocabulary=some_vocabulary(bags.n_features), stretch=0.2)
    middle = gmil.Bags(bags[0][5:6], [0, 1])
    assert old.time_lines(bags[:1])[0][1].scores[5] == pytest.approx(old.decide(middle)[0, 1], rel=1e-3)


def test_views_leave_out_the_same_videos_where_there_are_many():
    bags, seen = make_videos(40)
    y = seen.any(axis=1).astype(int)[:, :1]
    model = EventDetectors.fit(bags, y, ["a"], topics=4, estimator=gmil.WeightedGMIL(max_bags=20, n_centers=10))
    known = [np.isfinite(view.left_out()) for view in model.views]
    np.testing.assert_array_equal(*known)
    assert known[0].sum() == 20


def test_topics_are_learned_without_the_test_videos(monkeypatch):
    bags, seen = make_videos(20)
    y = seen.any(axis=1).astype(int)[:, :1]
    folds = label_folds(y, 4, 0)
    learned = []
    plain = topics_module.learn_topics
    monkeypatch.setattr(
        "gmil.video.stacking.learn_topics",
        lambda bags, n_topics: learned.append((bags, n_topics)) or plain(bags, n_topics),
    )
    videos = LabelledVideos(bags, y, ["motion"], [{} for _ in range(20)], [])
    options = {"estimator": gmil.WeightedGMIL(n_centers=5), "time_lines": False}
    result = cross_validate_events(videos, lambda _: bags, folds, vocabulary="shared by all folds", **options)
    assert (result.topics, len(learned)) == ((25, 50, 100), 4)
    for fold, (seen_bags, n_topics) in enumerate(learned):
        np.testing.assert_array_equal(seen_bags.instances, bags[folds != fold].instances)
        assert n_topics == 15  # one for every video at most
    learned.clear()
    result = cross_validate_events(videos, lambda _: bags, folds, vocabulary=crossval.NO_VOCABULARY, **options)
    assert (result.topics, learned) == ((), [])


def test_blocks_and_samples_of_frames_change_nothing_that_matters(monkeypatch):
    bags, seen = make_videos(60)
    topics = learn_topics(bags, 6)
    whole = topics.of(bags).instances
    monkeypatch.setattr(topics_module, "_FRAMES_AT_ONCE", 7)
    np.testing.assert_allclose(topics.of(bags).instances, whole, atol=1e-5)
    monkeypatch.setattr(topics_module, "_MOST_FRAMES", 600)
    sampled = learn_topics(bags, 6)
    np.testing.assert_array_equal(sampled.directions, learn_topics(bags, 6).directions)
    truth = seen.reshape(-1, seen.shape[-1])
    found = np.abs(np.corrcoef(truth.T, sampled.of(bags).instances.T)[:6, 6:]).max(axis=1)
    assert found.min() > 0.9


@pytest.mark.parametrize("histogram", [np.zeros(4), np.array([0.5, 0.5, 0, 0])])
def test_frames_that_are_all_alike_have_one_silent_topic(histogram):
    bags = gmil.Bags(np.tile(histogram, (6, 1)), [0, 3, 6])
    np.testing.assert_allclose(learn_topics(bags, 3).of(bags).instances, np.zeros((6, 1)), atol=1e-6)


def test_a_negative_feature_outside_the_sample_is_refused_too(monkeypatch):
    monkeypatch.setattr(topics_module, "_MOST_FRAMES", 20)
    histograms = np.ones((200, 2))
    histograms[np.setdiff1d(np.arange(200), np.random.default_rng(0).choice(200, 20, replace=False))[0]] = -1
    with pytest.raises(VideoError, match="a feature of a frame is -1"):
        learn_topics(gmil.Bags(histograms, [0, 100, 200]), 2)


def test_what_makes_no_sense_is_refused():
    bags = gmil.Bags(np.array([[0.5, -0.25], [1, 0]]), [0, 1, 2])
    with pytest.raises(VideoError, match=r"Topics are for word histograms, but a feature of a frame is -0.25. Pass"):
        learn_topics(bags, 2)
    with pytest.raises(VideoError, match="topics must be numbers of topics, or 0 for words alone, got -1"):
        count_topics([5, -1], gmil.WeightedGMIL(), words=True)
    with pytest.raises(VideoError, match=r"topics are for WeightedGMIL, .* but the method is GMIL\(\)"):
        count_topics(5, gmil.GMIL(), words=True)


def test_parts_are_the_same_topics():
    found = learn_topics(make_videos(8)[0], 3)
    again = Topics.from_parts(found.as_parts())
    assert all(np.array_equal(getattr(found, name), getattr(again, name)) for name in found.as_parts())
