"""Tiny videos that the tests make themselves."""

from __future__ import annotations

import numpy as np
import pytest


def moving_frames(n_frames=20, height=48, width=64, speed=2, seed=0):
    """Return frames of a blocky texture that moves to the left."""
    rng = np.random.default_rng(seed)
    texture = np.kron(rng.integers(0, 256, (height // 4 + 1, (width + speed * n_frames) // 4 + 1)), np.ones((4, 4)))
    return [texture[:height, speed * i : speed * i + width].astype(np.uint8) for i in range(n_frames)]


def encode(path, frames, *, rate=25, codec="libvpx", times=None, audio=False):
    """Write grey frames; ``times`` are milliseconds of a variable frame rate."""
    av = pytest.importorskip("av", reason="the video tests need PyAV: pip install 'gmil[video]'")
    from fractions import Fraction

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width = frames[0].shape if frames else (48, 64)
        stream.pix_fmt, stream.bit_rate = "yuv420p", 2_000_000
        if codec == "libvpx":
            stream.options = {"deadline": "realtime", "cpu-used": "8", "crf": "10"}
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        for number, frame in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="gray").reformat(format="yuv420p")
            if times is not None:
                picture.pts, picture.time_base = times[number], Fraction(1, 1000)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


@pytest.fixture
def clip(tmp_path):
    """Return the maker of a small clip: ``clip(name, seed=..., speed=..., n_frames=...)``."""

    def make(name="clip.webm", *, folder=tmp_path, codec="libvpx", rate=25, times=None, **options):
        return encode(folder / name, moving_frames(**options), codec=codec, rate=rate, times=times)

    return make
