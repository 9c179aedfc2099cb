"""A stream that is watched: events once, what happens to the source said, memory bounded."""

from __future__ import annotations

import http.server
import json
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from tests.video.conftest import encode
from tests.video.test_events import run

from gmil.errors import VideoError
from gmil.video import (
    EventDetectors,
    IndexSettings,
    index_videos,
    match_labels,
    read_event_labels,
    read_features,
    vocabulary_of,
    watch,
)
from gmil.video.decoding import Frame
from gmil.video.live import source as sources
from gmil.video.live.source import Happening, Source
from gmil.video.live.watching import _Watch, stated_delay


def blinking(n_frames, events=(), seed=0, height=48, width=64):
    """Return frames of slow noise in which a bar rushes through at some times."""
    rng = np.random.default_rng(seed)
    frames = []
    for i in range(n_frames):
        frame = (100 + 20 * np.sin(np.arange(width) / 9 + i / 30) + rng.normal(0, 1, (height, width))).astype(np.uint8)
        if any(start <= i < stop for start, stop in events):
            at = 6 * i % width
            frame[:, at : at + 8] = 230
        frames.append(frame)
    return frames


def lossless(path, frames):
    """Write frames as they are: encoders that lose something do it in another way in every run."""
    return encode(path, frames, codec="ffv1")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Detectors of a bar that rushes through."""
    pytest.importorskip("av", reason="the video tests need PyAV: pip install 'gmil[video]'")
    where, starts = tmp_path_factory.mktemp("live"), np.random.default_rng(0).integers(5, 16, size=24)
    for i, start in enumerate(starts):
        lossless(where / f"v{i}.mkv", blinking(40, [(start, start + 20)] if i % 2 else [], seed=i))
    rows = [f"v{i}.mkv,{'rush' if i % 2 else ''}" for i in range(24)]
    (where / "labels.csv").write_text("\n".join(["video,event", *rows]))
    frames = where / "f.parquet"
    index_videos(sorted(where.glob("*.mkv")), frames, IndexSettings(n_words=24, window=7))
    data = match_labels(read_features(frames), read_event_labels(where / "labels.csv"))
    words = vocabulary_of(frames)
    EventDetectors.fit(data.bags, data.y, data.events, vocabulary=words, topics=0).save(where / "m.gmil")
    return where / "m.gmil"


def test_every_event_is_reported_once_with_its_time(model, tmp_path):
    path = lossless(tmp_path / "s.mkv", blinking(260, [(60, 85), (170, 195)], seed=50))
    detectors = EventDetectors.load(model)
    reports = list(watch(detectors, str(path), context=1.6))
    assert [r["status"] for r in reports if r["kind"] == "source"] == ["connected", "ended"]
    found = [r for r in reports if r["kind"] == "event"]
    assert [r["state"] for r in found] == ["begins", "ends"] * 2
    for begin, end, (start, stop) in zip(found[::2], found[1::2], [(2.4, 3.4), (6.8, 7.8)], strict=True):
        assert begin["start"] == end["start"] == pytest.approx(start, abs=0.3)
        assert end["end"] == pytest.approx(stop, abs=0.6)  # a box of 18 frames shows what is in its middle
        assert begin["start"] + begin["delay"] < start + 0.8
        assert 0.5 < begin["probability"] <= end["probability"] <= 1
    assert stated_delay(detectors) < 0.9


def test_watch_prints_json_lines_and_realtime_takes_its_time(model, tmp_path):
    path = encode(tmp_path / "s.webm", blinking(30, seed=51))
    began = time.monotonic()
    result = run("watch", model, path, "--realtime")
    assert result.exit_code == 0, result.stderr
    assert time.monotonic() - began > 1.0  # 30 frames are 1.2 s
    assert [json.loads(line)["status"] for line in result.stdout.splitlines()] == ["connected", "ended"]
    assert "behind the newest frame" in result.stderr


def scripted(*items):
    """Return a source that hands on what it is given."""

    class Scripted(Source):
        def frames(self):
            yield from items

    return Scripted


def as_frames(pictures, start=0.0):
    return [Frame(gray, start + i / 25) for i, gray in enumerate(pictures)]


def test_a_break_ends_what_is_open_and_frames_of_two_sizes_are_never_mixed(model, monkeypatch):
    from gmil.video.live import watching

    pieces = [
        Happening("connected", "cam is open.", restarts=True),
        *as_frames(blinking(70, [(20, 70)], seed=60)),
        Happening("resized", "cam changed from 64x48 to 80x60 pixels.", restarts=True),
        *as_frames(blinking(70, [(20, 70)], seed=61, height=60, width=80), start=2.8),
        Happening("lost", "cam: no frame for 10 s. It is opened again.", restarts=True),
        Happening("connected", "cam is open.", restarts=True),
        *as_frames(blinking(70, seed=62), start=20.0),
    ]
    monkeypatch.setattr(watching, "Source", scripted(*pieces))
    reports = list(watch(EventDetectors.load(model), "rtsp://cam/x", context=1.6))
    statuses = [r["status"] for r in reports if r["kind"] == "source"]
    assert statuses == ["connected", "resized", "lost", "connected"]
    events = [r["state"] for r in reports if r["kind"] == "event"]
    assert events == ["begins", "ends", "begins", "ends"]


def decided(known, now, start=None, end=None):
    """Return the states that a decision about the last seconds reports; without a start it is negative."""
    known.newest = known.decided = now
    line = None
    if start is not None:
        line = SimpleNamespace(segments=[SimpleNamespace(start=start, end=end)], probability=0.9)
    return [(report["state"], report["start"]) for report in known._decide("rush", line)]


def test_an_event_that_is_seen_again_in_the_same_seconds_is_reported_once():
    known = _Watch(SimpleNamespace(), context=3.0, every=0.4)
    assert decided(known, 10.0, 9.0, 9.8) == [("begins", 9.0)]
    assert decided(known, 10.4, 9.0, 9.9) == []
    assert decided(known, 10.8) == []  # it may go on
    assert decided(known, 11.2) == [("ends", 9.0)]
    assert decided(known, 11.6, 9.1, 9.9) == []  # the same, which is still among the last seconds
    assert decided(known, 12.4, 9.5, 12.3) == [("begins", 9.9)]  # more than that: a new one, from where the old ended


def test_memory_does_not_grow_with_the_stream(model):
    from gmil.video.histograms import FrameHistograms

    detectors = EventDetectors.load(model)
    known = _Watch(detectors, context=1.0, every=1000.0)
    for i in range(3000):
        known.newest = i / 25
        list(known._take([FrameHistograms(i, i / 25, [np.full(24, 1 / 24, np.float32)])], []))
        assert len(known.rows) <= 27


def test_a_live_source_is_opened_again_and_given_up_in_the_end(monkeypatch):
    opened = []

    class Broken(Source):
        def open(self):
            opened.append(1)
            msg = "cam cannot be opened: refused. Check the address."
            raise VideoError(msg)

    monkeypatch.setattr(sources, "_LONGEST_PAUSE", 0.0)
    found = list(Broken("rtsp://cam/x", 25.0, 320, reconnects=2).frames())
    assert [item.status for item in found] == ["lost", "lost", "ended"]
    assert len(opened) == 3
    assert "refused" in found[0].text


def test_frames_that_nobody_takes_are_dropped_and_that_is_said():
    reader = sources._Reader(Source("rtsp://cam/x", 25.0, 320))
    for frame in as_frames(blinking(1) * 120):
        reader._hand_on(frame)
    waiting = list(reader.waiting.queue)
    assert len(waiting) <= 50
    assert reader.dropped >= 70
    assert any(isinstance(item, Happening) and item.status == "behind" for item in waiting)
    assert waiting[-1].time == pytest.approx(119 / 25)


def test_what_cannot_be_watched_is_refused(model, tmp_path):
    detectors = EventDetectors.load(model)
    with pytest.raises(VideoError, match="does not exist"):
        list(watch(detectors, str(tmp_path / "no.mp4")))
    with pytest.raises(VideoError, match="every must be a number of seconds above 0, got 0"):
        list(watch(detectors, "a.mp4", every=0))


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (blinking(5), "s.mkv has 5 frames, but a descriptor spans 9"),
        (blinking(30, height=8, width=8), "s.mkv is 8x8 pixels, but a descriptor spans"),
    ],
)
def test_a_file_that_no_descriptor_fits_in_is_refused(model, tmp_path, frames, message):
    result = run("watch", model, lossless(tmp_path / "s.mkv", frames))
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_small_pictures_of_a_camera_are_said(model, monkeypatch):
    from gmil.video.live import watching

    pictures = as_frames([np.zeros((8, 8), dtype=np.uint8)] * 3)
    monkeypatch.setattr(watching, "Source", scripted(*pictures))
    [report] = watch(EventDetectors.load(model), "rtsp://camera/x")
    assert (report["status"], "is 8x8 pixels" in report["text"]) == ("small", True)


def test_options_that_cannot_be_are_refused_before_anything_is_said(model):
    result = run("watch", model, "a.mp4", "--every", -1)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "gmil: every must be a number of seconds above 0, got -1.0.\n"


def test_an_address_that_nobody_serves_is_said_without_its_password(model):
    result = run("watch", model, "rtsp://me:secret@127.0.0.1:9/x", "--reconnects", 0, "--patience", 1)
    assert result.exit_code != 0
    assert "rtsp://127.0.0.1:9/x cannot be opened" in result.stderr
    assert "secret" not in result.stdout + result.stderr


@pytest.fixture
def camera(tmp_path):
    """A server whose first viewer gets the beginning of a video and then nothing, the second one the whole."""
    path = encode(tmp_path / "s.ts", blinking(100, seed=70), codec="mpeg2video")
    data, viewers, over = path.read_bytes(), [], threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            viewers.append(1)
            self.send_response(200)
            self.send_header("Content-Type", "video/mp2t")
            self.end_headers()
            self.wfile.write(data if len(viewers) > 1 else data[: len(data) * 3 // 4])
            self.wfile.flush()
            if len(viewers) == 1:
                over.wait(20)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/s.ts"
    over.set()
    server.shutdown()
    server.server_close()


def test_a_camera_that_stalls_is_opened_again(camera, monkeypatch):
    monkeypatch.setattr(sources, "_LONGEST_PAUSE", 0.0)
    statuses, frames, texts = [], 0, []
    for item in Source(camera, 25.0, 320, patience=1.0, reconnects=1).frames():
        if isinstance(item, Happening):
            statuses.append(item.status)
            texts.append(item.text)
        else:
            frames += 1
        if statuses.count("connected") == 2 and frames > 100:
            break
    assert statuses[:3] == ["connected", "lost", "connected"]
    assert "no frame for 1 s" in texts[1]
    assert frames > 100
