"""Event lists for tables, players and editors; smoothing of time lines."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import gmil
from gmil.errors import VideoError
from gmil.video import Detection, EventDetectors, Segment, TimeLine, overlap, write_events
from gmil.video.smoothing import smoothed


def detection(name="a.mp4", event="fall & rise"):
    nothing = np.array([0.0])
    segments = [Segment(62.5, 63.0, 2.0), Segment(1.2, 2.4, 1.0)]
    line = TimeLine(event, 1.0, 0.93, nothing, nothing, segments, nothing, 0.5)
    return Detection(name, Path(name), [line])


def test_tables_have_a_row_for_every_segment_in_the_order_of_time(tmp_path):
    write_events([detection(), detection("b.mp4")], tmp_path / "e.csv", tolerance=0.34)
    with (tmp_path / "e.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["video"], float(row["start"]), float(row["end"])) for row in rows] == [
        ("a.mp4", 1.2, 2.4),
        ("a.mp4", 62.5, 63.0),
        ("b.mp4", 1.2, 2.4),
        ("b.mp4", 62.5, 63.0),
    ]
    assert rows[0]["tolerance"] == "0.34"
    write_events([detection()], tmp_path / "e.json")
    assert json.loads((tmp_path / "e.json").read_text())[0]["event"] == "fall & rise"


def test_players_get_webvtt(tmp_path):
    write_events([detection()], tmp_path / "e.vtt")
    assert (tmp_path / "e.vtt").read_text() == (
        "WEBVTT\n\n00:00:01.200 --> 00:00:02.400\nfall &amp; rise 93 %\n\n"
        "00:01:02.500 --> 00:01:03.000\nfall &amp; rise 93 %\n"
    )


def test_editors_get_an_edit_list_without_gaps(tmp_path):
    write_events([detection()], tmp_path / "e.edl")
    lines = (tmp_path / "e.edl").read_text().splitlines()
    assert lines[:2] == ["TITLE: a.mp4", "FCM: NON-DROP FRAME"]
    assert lines[3] == "001  AX       V     C        00:00:01:05 00:00:02:10 00:00:00:00 00:00:01:05"
    assert lines[7].split()[4:] == ["00:01:02:12", "00:01:03:00", "00:00:01:05", "00:00:01:18"]
    assert "* FROM CLIP NAME: a.mp4" in lines


@pytest.mark.parametrize(
    ("name", "n", "message"), [("e.xml", 1, "written as .csv"), ("e.vtt", 2, "is about one video")]
)
def test_other_files_are_refused(tmp_path, name, n, message):
    with pytest.raises(VideoError, match=message):
        write_events([detection()] * n, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_smoothing_of_steady_and_of_other_times_is_a_gaussian_mean():
    rng = np.random.default_rng(0)
    scores, times = rng.normal(size=(40, 2)), np.arange(40) / 25
    weights = np.exp(-((times[:, None] - times) ** 2) / (2 * 0.06**2))
    slow = weights @ scores / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(smoothed(scores, times, 0.06), slow, atol=1e-3)  # cut off at four deviations
    np.testing.assert_array_equal(smoothed(scores, times, 0.0), scores)
    uneven = np.sort(rng.random(40))
    weights = np.exp(-((uneven[:, None] - uneven) ** 2) / (2 * 0.06**2))
    slow = weights @ scores / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(smoothed(scores, uneven, 0.06), slow)


def events_in_noise(n_videos, seed, n_frames=60):
    """Return videos, every second with an event in some frames, and when it is, in seconds."""
    rng = np.random.default_rng(seed)
    rows, spans = [], []
    for i in range(n_videos):
        frames = rng.normal(size=(n_frames, 6)).astype(np.float32)
        start = int(rng.integers(5, 35))
        spans.append((start / 25, (start + 18) / 25))
        if i % 2:
            frames[start : start + 18, :2] += 2.0
        rows.append(frames)
    numbers = np.tile(np.arange(n_frames), n_videos)
    info = {"video": np.repeat(np.arange(n_videos), n_frames).astype(str), "frame": numbers, "time": numbers / 25}
    bags = gmil.Bags(np.concatenate(rows), np.arange(n_videos + 1) * n_frames, None, None, info)
    return bags, np.arange(n_videos)[:, None] % 2, spans


def test_scores_of_frames_find_when_better_than_decisions_about_stretches(tmp_path):
    bags, y, _ = events_in_noise(40, 1)
    test, shown, spans = events_in_noise(20, 2)

    def mean_overlap(detectors):
        lines = [line for line, here in zip(detectors.time_lines(test), shown[:, 0], strict=True) if here]
        true = [span for span, here in zip(spans, shown[:, 0], strict=True) if here]
        found = [
            overlap(line.segments[0][:2], span) if line.segments else 0
            for [line], span in zip(lines, true, strict=True)
        ]
        return np.mean(found)

    by_frames = EventDetectors.fit(bags, y, ["jump"])
    assert 0 < by_frames.smoothing <= 0.2  # an event has 0.72 s
    assert mean_overlap(by_frames) > 0.75
    by_stretches = EventDetectors.fit(bags, y, ["jump"], stretch=0.2)
    assert by_stretches.smoothing is None
    assert mean_overlap(by_frames) > mean_overlap(by_stretches)
    by_frames.save(tmp_path / "m")
    again = EventDetectors.load(tmp_path / "m")
    assert again.smoothing == by_frames.smoothing
    np.testing.assert_array_equal(again.smoothed_scores(test), by_frames.smoothed_scores(test))


@pytest.mark.parametrize("of_one", [1, 16])
def test_a_bandwidth_that_is_chosen_without_times_counts_rows(tmp_path, of_one):
    timed, y, _ = events_in_noise(40, 1)
    info = {name: timed.instance_info.column(name).to_numpy() for name in ("video", "frame")}
    info["frame"], info["time"] = info["frame"] * of_one, np.full(timed.n_instances, np.nan)
    untimed = gmil.Bags(timed.instances, timed.offsets, None, None, info)
    in_seconds, in_rows = (EventDetectors.fit(bags, y, ["jump"]) for bags in (timed, untimed))
    assert (in_seconds.smoothing_in_rows, in_rows.smoothing_in_rows) == (False, True)
    assert in_rows.smoothing == pytest.approx(25 * in_seconds.smoothing)
    in_rows.save(tmp_path / "m")
    again = EventDetectors.load(tmp_path / "m")
    for test in (timed, untimed):
        np.testing.assert_allclose(again.smoothed_scores(test), in_seconds.smoothed_scores(timed), atol=1e-9)
    [[one], *_], [[other], *_] = again.time_lines(timed), in_seconds.time_lines(timed)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)
    assert again.tolerance_of(one.times) == pytest.approx(in_seconds.tolerance)
    assert np.isnan(again.tolerance)
