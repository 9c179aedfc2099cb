"""Short clips of motion: five events hidden in clutter of other motion, each at a known time.

Every clip shows textured discs over a textured ground. Some come and go and drift, rise, sway, turn slowly or
shrink into themselves: that is the clutter. An event is one disc that falls, dashes sideways, spins, grows from inside
or shakes.
"""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

EVENTS = ("fall", "dash", "spin", "grow", "shake")
CLUTTER = ("drift", "rise", "sway", "turn", "shrink")
WIDTH, HEIGHT, N_FRAMES, RATE = 128, 96, 75, 25
_TEXTURE = 64


@dataclass(frozen=True)
class Clip:
    """What happens in a clip: events and their first and last frame."""

    name: str
    events: tuple[tuple[str, int, int], ...]


def plan_clips(n_of_each: int, n_pairs: int, n_none: int, seed: int) -> list[Clip]:
    """Plan ``n_of_each`` clips of every event, ``n_pairs`` clips with two events, and some with none."""
    generator = np.random.default_rng(seed)
    left = dict.fromkeys(EVENTS, n_of_each)
    chosen: list[tuple[str, ...]] = []
    for i in range(n_pairs):
        pair = EVENTS[i % 5], EVENTS[(i + 1 + i // 5 % 2) % 5]
        chosen.append(pair)
        for event in pair:
            left[event] -= 1
    chosen += [(event,) for event in EVENTS for _ in range(left[event])] + [()] * n_none
    order = generator.permutation(len(chosen))
    return [Clip(f"clip{i:03d}.webm", _times(chosen[at], generator)) for i, at in enumerate(order)]


def _times(events: tuple[str, ...], generator: np.random.Generator) -> tuple[tuple[str, int, int], ...]:
    """Place events one after the other, 20 to 30 frames each; which comes first is drawn."""
    if len(events) == 2:
        first, second = generator.permutation(events).tolist()
        lengths = generator.integers(20, 27, size=2)
        start = int(generator.integers(2, 8))
        later = int(generator.integers(start + lengths[0] + 4, N_FRAMES - lengths[1] - 2))
        return (first, start, start + int(lengths[0])), (second, later, later + int(lengths[1]))
    length = int(generator.integers(20, 31))
    start = int(generator.integers(3, N_FRAMES - length - 3))
    return tuple((event, start, start + length) for event in events)


@dataclass
class _Disc:
    motion: str
    first: int
    last: int
    x: float
    y: float
    radius: float
    texture: np.ndarray
    direction: float
    speed: float

    def state(self, frame: int) -> tuple[float, float, float]:
        """Return the place and angle at a frame."""
        t = frame - self.first
        x, y, angle = self.x, self.y, 0.0
        if self.motion in ("drift", "rise", "fall", "dash"):
            heading = {"rise": -np.pi / 2, "fall": np.pi / 2, "dash": 0.0 if self.direction < np.pi else np.pi}
            way = heading.get(self.motion, self.direction)
            x, y = x + self.speed * t * np.cos(way), y + self.speed * t * np.sin(way)
        elif self.motion == "sway":
            x += 8 * np.sin(2 * np.pi * t / 30)
        elif self.motion == "shake":
            x += 4 * np.sin(2 * np.pi * t / 6)
        elif self.motion in ("spin", "turn"):
            angle += self.speed * t * (1 if self.direction < np.pi else -1)
        return x, y, angle

    def paint_at(self, v: np.ndarray, u: np.ndarray, frame: int, angle: float) -> np.ndarray:
        """Return the grey levels at places around the centre."""
        if self.motion not in ("grow", "shrink"):
            cos, sin = np.cos(angle), np.sin(angle)
            return _sample(self.texture, cos * v - sin * u, sin * v + cos * u)
        # The texture streams outwards or inwards, on and on: its rows are circles, farther apart the larger they are.
        way = self.speed * (frame - self.first) * (1 if self.motion == "grow" else -1)
        depth = 18 * np.log(np.hypot(u, v) + 2) - way
        return _sample(self.texture, depth, np.arctan2(v, u) * _TEXTURE / (2 * np.pi))


_SPEEDS = {"drift": (0.3, 1.2), "rise": (2.5, 3.5), "fall": (2.5, 3.5), "dash": (3.0, 4.0), "sway": (0, 0)}
_SPEEDS |= {"shake": (0, 0), "spin": (0.22, 0.3), "turn": (0.02, 0.06), "grow": (3.0, 4.0), "shrink": (0.5, 1.5)}


def _texture(generator: np.random.Generator, smooth: float) -> np.ndarray:
    noise = gaussian_filter(generator.normal(size=(_TEXTURE, _TEXTURE)), smooth, mode="wrap")
    return 128 + 45 * noise / noise.std()


def _disc(motion: str, first: int, last: int, generator: np.random.Generator) -> _Disc:
    low, high = _SPEEDS[motion]
    speed = generator.uniform(low, high)
    x, y = generator.uniform(24, WIDTH - 24), generator.uniform(24, HEIGHT - 24)
    direction = generator.uniform(0, 2 * np.pi)
    way = speed * (last - first)
    if motion == "fall":
        y = generator.uniform(-0.3, 0.1) * way + 10
    elif motion == "rise":
        y = HEIGHT - 10 - generator.uniform(-0.3, 0.1) * way
    elif motion == "dash":
        x = (WIDTH - way) / 2 if direction < np.pi else (WIDTH + way) / 2
    return _Disc(motion, first, last, x, y, generator.uniform(17, 23), _texture(generator, 1.8), direction, speed)


def draw_clip(clip: Clip, seed: int) -> list[np.ndarray]:
    """Return the grey frames of a clip."""
    generator = np.random.default_rng([seed, int(clip.name[4:7])])
    ground = np.clip(_texture(generator, 3.0) * 0.4 + 76, 0, 255)
    discs = [_disc(event, first, last, generator) for event, first, last in clip.events]
    for _ in range(int(generator.integers(2, 5))):
        length = int(generator.integers(20, N_FRAMES))
        first = int(generator.integers(-10, N_FRAMES - length + 10))
        discs.append(_disc(str(generator.choice(CLUTTER)), first, first + length, generator))
    order = generator.permutation(len(discs))
    pan = generator.uniform(-0.5, 0.5, size=2)
    return list(_painted(ground, pan, [discs[i] for i in order], N_FRAMES, generator))


def draw_stream(n_frames: int, events: tuple[tuple[str, int, int], ...], seed: int) -> Iterator[np.ndarray]:
    """Yield the grey frames of one long scene without a cut, as full of other motion as clips are."""
    generator = np.random.default_rng(seed)
    ground = np.clip(_texture(generator, 3.0) * 0.4 + 76, 0, 255)
    discs = [_disc(event, first, last, generator) for event, first, last in events]
    for start in range(0, n_frames, N_FRAMES):
        for _ in range(int(generator.integers(2, 5))):
            length, first = int(generator.integers(20, N_FRAMES)), start + int(generator.integers(N_FRAMES))
            discs.append(_disc(str(generator.choice(CLUTTER)), first, first + length, generator))
    return _painted(ground, generator.uniform(-0.5, 0.5, size=2), discs, n_frames, generator)


def _painted(
    ground: np.ndarray, pan: np.ndarray, discs: list[_Disc], n_frames: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield frames: the ground moves on, discs come and go, and there is noise."""
    # Events lie on top: what hides them is other motion, not other discs.
    layers = sorted(discs, key=lambda disc: disc.motion in EVENTS)
    for frame in range(n_frames):
        rows, columns = np.mgrid[:HEIGHT, :WIDTH]
        canvas = _sample(ground, rows / 2 + pan[0] * frame, columns / 2 + pan[1] * frame)
        for disc in layers:
            if disc.first <= frame <= disc.last:
                _paint(canvas, disc, frame)
        canvas += generator.normal(scale=2, size=canvas.shape)
        yield np.clip(canvas, 0, 255).astype(np.uint8)


def _paint(canvas: np.ndarray, disc: _Disc, frame: int) -> None:
    x, y, angle = disc.state(frame)
    reach = int(disc.radius) + 1
    rows = np.arange(max(0, int(y) - reach), min(HEIGHT, int(y) + reach + 1))
    columns = np.arange(max(0, int(x) - reach), min(WIDTH, int(x) + reach + 1))
    if not len(rows) or not len(columns):
        return
    v, u = np.meshgrid(rows - y, columns - x, indexing="ij")
    inside = u**2 + v**2 <= disc.radius**2
    part = canvas[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    part[inside] = disc.paint_at(v[inside], u[inside], frame, angle)


def _sample(texture: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return map_coordinates(texture, [rows, columns], order=1, mode="grid-wrap")


def write_video(path: Path, frames: Iterable[np.ndarray], rate: int = RATE, bit_rate: int = 1_000_000) -> None:
    """Write grey frames as VP9 in WebM, which every browser plays."""
    import av

    # Bit-exact files: descriptors are drawn by the content of a file, in which a number drawn by chance would stand.
    with av.open(str(path), "w", container_options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libvpx-vp9", rate=rate)
        frames = iter(frames)
        first = next(frames)
        stream.height, stream.width = first.shape
        stream.pix_fmt, stream.bit_rate = "yuv420p", bit_rate
        stream.options = {"deadline": "realtime", "cpu-used": "8", "crf": "10"}
        for frame in itertools.chain([first], frames):
            picture = av.VideoFrame.from_ndarray(frame, format="gray").reformat(format="yuv420p")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())


def make_clips(folder: Path, clips: list[Clip], seed: int) -> None:
    """Write all clips that are not there, and what happens in them, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for clip in clips:
        if not (folder / clip.name).exists():
            write_video(folder / clip.name, draw_clip(clip, seed))
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["video", "event", "start", "end"])
        for clip in clips:
            for event, first, last in clip.events or [("", None, None)]:
                times = ["", ""] if first is None else [first / RATE, (last + 1) / RATE]
                writer.writerow([clip.name, event, *times])
