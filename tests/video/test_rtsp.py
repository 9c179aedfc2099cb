"""An RTSP address, served by VLC: frames come, and a server that goes away and comes back is opened again."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from tests.video.conftest import encode, moving_frames

from gmil.video.live import source as sources
from gmil.video.live.source import Happening, Source

VLC = shutil.which("cvlc")
pytestmark = pytest.mark.skipif(
    VLC is None, reason="the tests of RTSP need the server of VLC: apt-get install vlc-bin vlc-plugin-base"
)
N_FRAMES = 100


@contextlib.contextmanager
def serving(video: Path, port: int):
    """Serve a video over and over; VLC refuses to run as root."""
    arguments = ["--no-audio", "--loop", "--sout", f"#rtp{{sdp=rtsp://127.0.0.1:{port}/s}}", "--sout-keep", str(video)]
    user = {"user": "nobody"} if os.geteuid() == 0 else {}
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    home = {**os.environ, "HOME": str(video.parent)}
    server = subprocess.Popen([str(VLC), *arguments], env=home, **silent, **user)
    try:
        wait_for(port)
        yield
    finally:
        server.kill()
        server.wait(10)


def wait_for(port: int) -> None:
    for _ in range(150):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    pytest.skip("VLC is installed, but did not serve within 15 s")


@pytest.fixture
def video():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # another user reads it
        pictures = moving_frames(20, height=64, width=96)
        path = encode(Path(folder) / "s.ts", [pictures[i % 20] for i in range(N_FRAMES)], codec="mpeg4")
        path.chmod(0o644)
        yield path


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_frames_come_from_an_rtsp_server_that_knows_udp_alone(video, port, monkeypatch):
    monkeypatch.setattr(sources, "_LONGEST_PAUSE", 0.2)  # it answers before it has something to show
    with serving(video, port):
        frames = []
        for item in Source(f"rtsp://127.0.0.1:{port}/s", 25.0, 320, patience=10.0, reconnects=50).frames():
            if not isinstance(item, Happening):
                frames.append(item)
            if len(frames) == 10:
                break
    assert len(frames) == 10
    assert {frame.gray.shape for frame in frames} == {(64, 96)}
    assert all(a.time < b.time for a, b in itertools.pairwise(frames))
    assert frames[-1].gray.std() > 20  # a picture, no grey


@pytest.mark.slow
def test_an_rtsp_server_that_comes_back_is_opened_again(video, port, monkeypatch):
    monkeypatch.setattr(sources, "_LONGEST_PAUSE", 0.5)
    statuses, n_frames = [], 0
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(serving(video, port))
        for item in Source(f"rtsp://127.0.0.1:{port}/s", 25.0, 320, patience=3.0, reconnects=20).frames():
            if isinstance(item, Happening):
                statuses.append(item.status)
                if statuses.count("lost") == 1 and item.status == "lost":
                    second.enter_context(serving(video, port))
                continue
            n_frames += 1
            if n_frames == 10:
                first.close()
            if statuses.count("connected") == 2:
                break
    assert statuses[0] == "connected"
    assert statuses[1] == "lost"
    assert statuses[-1] == "connected"
