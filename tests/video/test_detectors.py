"""Detectors on frames that come in any order, and on events that training never saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gmil
from gmil.errors import VideoError
from gmil.video import EventDetectors, cross_validate_events, detect
from gmil.video.labels import LabelledVideos
from gmil.video.stacking import View


@pytest.fixture(scope="module")
def videos():
    """Twenty videos of ten frames, half of them with one event; another event in two."""
    rng = np.random.default_rng(0)
    y = np.zeros((20, 2), dtype=int)
    y[10:, 0], y[:2, 1] = 1, 1
    bags = gmil.Bags.from_list([rng.normal(size=(10, 3)) + 2 * label for label in y[:, 0]])
    return LabelledVideos(bags, y, ["fast", "rare"], [{} for _ in y], [])


def with_times(frames, times):
    info = {"video": np.repeat("v", len(times)), "frame": np.arange(len(times)), "time": times}
    return gmil.Bags(frames, [0, len(times)], np.array(["v"]), None, info)


def test_a_time_line_goes_by_time_whatever_the_order_of_rows(videos):
    detectors = EventDetectors.fit(videos.bags, videos.y, videos.events, estimator=gmil.WeightedGMIL(random_state=0))
    times, order = np.arange(10) / 25, np.random.default_rng(1).permutation(10)
    [straight] = detectors.time_lines(with_times(videos.bags[12], times))
    [mixed] = detectors.time_lines(with_times(videos.bags[12][order], times[order]))
    for one, other in zip(straight, mixed, strict=True):
        assert one.times.tolist() == other.times.tolist() == times.tolist()
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5, atol=1e-5)


def test_features_belong_to_one_video_only(videos, tmp_path):
    detectors = EventDetectors.fit(videos.bags, videos.y, videos.events)
    for name in ("x", "z"):
        np.save(tmp_path / f"{name}.npy", videos.bags[0])
    paths = [tmp_path / "a" / "x.mp4", tmp_path / "b" / "x.mp4", tmp_path / "b" / "z.mp4"]
    found, failures = detect(detectors, paths, features=tmp_path, rate=25)
    assert [detection.video for detection in found] == ["b/z.mp4"]
    assert sorted(failures) == ["a/x.mp4", "b/x.mp4"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("topics", [0, 2])
def test_an_event_that_training_never_saw_is_not_found_by_balancing(videos, topics):
    folds = np.where(videos.y[:, 1] == 1, 0, 1 + np.arange(20) % 3)
    bags = videos.bags.with_instances(np.abs(videos.bags.instances))
    result = cross_validate_events(videos, lambda _: bags, folds, balanced=True, topics=topics, time_lines=False)
    rare = result.results[1]
    assert np.isfinite(rare.decisions).all()
    assert not rare.predictions[0, 0, folds == 0].any()


@pytest.mark.parametrize("stretch", [-0.1, float("nan")])
def test_a_stretch_of_no_length_is_refused(videos, stretch):
    with pytest.raises(VideoError, match=f"stretch must be a number of seconds, 0 or more, got {stretch}"):
        EventDetectors.fit(videos.bags, videos.y, videos.events, stretch=stretch)


@pytest.mark.parametrize("smoothing", [0.1, None])
def test_events_that_are_not_detected_are_left_out_and_not_scored(videos, smoothing, monkeypatch):
    found = EventDetectors.fit(videos.bags, videos.y, videos.events, estimator=gmil.WeightedGMIL(random_state=0))
    detectors = replace(found, smoothing=smoothing)
    scored, score = [], View.score_instances
    monkeypatch.setattr(View, "score_instances", lambda *args: scored.append(list(args[2])) or score(*args))
    for frames in (videos.bags[3], videos.bags[12]):
        bag = with_times(frames, np.arange(10) / 25)
        [everything] = detectors.time_lines(bag)
        scored.clear()
        [detected] = detectors.time_lines(bag, detected_only=True)
        expected = [line for line in everything if line.decision > 0]
        assert [line.event for line in detected] == [line.event for line in expected]
        assert scored == ([[0]] if expected and smoothing else [])
        for one, other in zip(detected, expected, strict=True):
            np.testing.assert_allclose(one.scores, other.scores)
            assert (one.decision, one.segments) == (other.decision, other.segments)
    assert [line.event for line in detected] == ["fast"]
