"""When events are found: smoothed scores of frames against decisions about short stretches, on generated frames.

``python benchmarks/time_lines.py [seed ...]``

Videos of three seconds, 75 frames of 12 features; half of them show an event of 0.6 to 1 s, in which three features are
shifted by two standard deviations. Detectors are trained on 60 of them. The overlap of the surest segment and the event
is the time in both as a share of the time in either; an event that is missed counts as 0.
"""

from __future__ import annotations

import sys

import numpy as np

import gmil
from gmil.video import EventDetectors, overlap

N_FRAMES, RATE = 75, 25


def make_videos(n: int, seed: int) -> tuple[gmil.Bags, np.ndarray, list[tuple[float, float]]]:
    """Return videos, whether each shows the event, and when."""
    rng = np.random.default_rng(seed)
    frames, spans = rng.normal(size=(n, N_FRAMES, 12)).astype(np.float32), []
    for i in range(n):
        start = int(rng.integers(5, 45))
        stop = start + int(rng.integers(15, 25))
        spans.append((start / RATE, stop / RATE))
        if i % 2:
            frames[i, start:stop, :3] += 2.0
    numbers = np.tile(np.arange(N_FRAMES), n)
    info = {"video": np.repeat(np.arange(n), N_FRAMES).astype(str), "frame": numbers, "time": numbers / RATE}
    bags = gmil.Bags(frames.reshape(-1, 12), np.arange(n + 1) * N_FRAMES, None, None, info)
    return bags, np.arange(n)[:, None] % 2, spans


def main(seed: int) -> None:
    bags, y, _ = make_videos(60, seed)
    test, shown, spans = make_videos(40, seed + 1000)
    for name, stretch in (("stretches of 0.2 s", 0.2), ("smoothed scores of frames", None)):
        detectors = EventDetectors.fit(bags, y, ["event"], stretch=stretch)
        lines = detectors.time_lines(test)
        found = [
            overlap(line.segments[0][:2], span) if line.segments else 0.0
            for [line], span, here in zip(lines, spans, shown[:, 0], strict=True)
            if here
        ]
        bandwidth = "" if detectors.smoothing is None else f" (bandwidth {detectors.smoothing:.2f} s)"
        print(f"seed {seed}, {name}: mean overlap {np.mean(found):.3f}{bandwidth}", flush=True)


if __name__ == "__main__":
    for given in sys.argv[1:] or ["0", "1", "2"]:
        main(int(given))
