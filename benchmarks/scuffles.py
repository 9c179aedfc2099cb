"""Generated clips of people that scuffle, or do something else that is lively: a second set for `fights.py`.

``python benchmarks/scuffles.py FOLDER [--seed 0] [--sources 15]``, then
``python benchmarks/fights.py FOLDER --out results/scuffles --descriptors flow pyramid``

Every source is a camera of its own, with its ground, light, shake, noise, bit rate and size of people, and has three
clips of each kind. In a scuffle two people close to each other strike and recoil at irregular times. In the others they
walk, run, talk with their hands, or dance, which is as fast, but regular.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from video_clips import _sample, _texture, write_video

WIDTH, HEIGHT = 240, 180
OTHERS = ("walk", "run", "talk", "dance")


@dataclass
class Camera:
    """What the clips of one source share."""

    ground: np.ndarray
    contrast: float
    shake: float
    pan: float
    noise: float
    size: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Camera:
        return cls(
            _texture(rng, rng.uniform(1.5, 4)),
            rng.uniform(0.2, 0.6),
            rng.choice([0, 0, 0.5, 1.5]),
            rng.choice([0, 0, 0, 1.0]),
            rng.uniform(1, 8),
            rng.uniform(9, 20),
        )


def strokes(n_frames: int, rng: np.random.Generator) -> np.ndarray:
    """Return how far an arm is stretched, 0 to 1: sudden strokes at irregular times."""
    found, at = np.zeros(n_frames), int(rng.integers(0, 8))
    while at < n_frames:
        shape = np.array([0.4, 1.0, 0.8, 0.5, 0.2])[: n_frames - at]
        found[at : at + len(shape)] = shape * rng.uniform(0.6, 1)
        at += int(rng.integers(6, 16))
    return found


def persons(kind: str, n_frames: int, size: float, rng: np.random.Generator) -> list[list[np.ndarray]]:
    """Return, for every person, the way of torso, head and two hands, (n_frames, 2) each, as x and y."""
    t, middle = np.arange(n_frames), np.array([rng.uniform(0.3, 0.7) * WIDTH, rng.uniform(0.4, 0.65) * HEIGHT])
    hits = [strokes(n_frames, rng) for _ in range(2)]
    found = []
    for number in range(2):
        side = 1 if number else -1
        place = middle + np.array([side * size * rng.uniform(0.8, 1.3), rng.uniform(-3, 3)])
        torso = np.tile(place, (n_frames, 1))
        swing, period = rng.uniform(0.3, 0.6) * size, {"dance": rng.uniform(7, 12)}.get(kind, rng.uniform(18, 30))
        if kind in ("walk", "run"):
            speed = size * rng.uniform(*((0.04, 0.1) if kind == "walk" else (0.15, 0.3))) * rng.choice([-1, 1])
            torso = torso + np.stack([speed * (t - n_frames / 2), np.abs(np.sin(t / 3))], axis=1)
        if kind == "dance":
            swing *= 1.6
            torso = torso + np.stack([0.3 * size * np.sin(2 * np.pi * t / (2 * period)), np.zeros(n_frames)], axis=1)
        phase = 2 * np.pi * (t / period + rng.random())
        hands = [torso + np.stack([s * size * 0.8 + swing * np.sin(phase), swing * np.cos(phase)], 1) for s in (-1, 1)]
        if kind == "fight":
            recoil = np.convolve(hits[1 - number], [0, 0, 0.5, 0.4, 0.25, 0.1])[:n_frames] * size
            torso = torso + np.stack([side * recoil, 0.3 * recoil], axis=1)
            reach = hits[number][:, None] * np.array([-side * 1.5 * size, rng.uniform(-0.6, 0.2) * size])
            rest = size * np.array([[-0.6 * side, 0], [0.5 * side, 0.2]])
            hands = [torso + rest[0] + reach, torso + rest[1]]
        found.append([torso, torso - np.array([0, 1.3 * size]), *hands])
    return found


def draw(kind: str, camera: Camera, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the grey frames of a clip."""
    n_frames = int(rng.integers(50, 76))
    people = persons(kind, n_frames, camera.size, rng)
    looks = [[_texture(rng, 2.0) * camera.contrast + rng.uniform(20, 120) for _ in range(4)] for _ in people]
    radii = camera.size * np.array([1.0, 0.45, 0.35, 0.35])
    moved = np.cumsum(rng.normal(0, camera.shake, (n_frames, 2)), axis=0) + camera.pan * np.arange(n_frames)[:, None]
    rows, columns = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    frames = []
    for i in range(n_frames):
        canvas = _sample(camera.ground, (rows + moved[i, 1]) / 3, (columns + moved[i, 0]) / 3) * 0.5 + 60
        for parts, textures in zip(people, looks, strict=True):
            for place, radius, texture in zip(parts, radii, textures, strict=True):
                x, y = place[i] - moved[i]
                v, u = (rows - y) / (1.6 if radius == radii[0] else 1.0), columns - x
                inside = u**2 + v**2 <= radius**2
                canvas[inside] = _sample(texture, 2 * v[inside], 2 * u[inside])
        canvas += rng.normal(0, camera.noise, canvas.shape)
        frames.append(np.clip(canvas, 0, 255).astype(np.uint8))
    return frames


def main(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    labels, groups = [("video", "event")], [("video", "group")]
    for source in range(arguments.sources):
        camera = Camera.drawn(np.random.default_rng([arguments.seed, source]))
        for clip in range(6):
            rng, name = np.random.default_rng([arguments.seed, source, clip]), f"s{source:02d}_{clip}.webm"
            kind = "fight" if clip < 3 else str(rng.choice(OTHERS))
            if not (folder / name).exists():
                write_video(folder / name, draw(kind, camera, rng), bit_rate=1000 * int(rng.integers(60, 300)))
            labels.append((name, "fight" if kind == "fight" else ""))
            groups.append((name, str(source)))
    for name, rows in (("labels.csv", labels), ("groups.csv", groups)):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sources", type=int, default=15)
    main(parser.parse_args())
