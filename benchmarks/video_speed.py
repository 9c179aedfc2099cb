"""How fast HOG3D is: seconds of one core per second of a 320x240 video at 25 frames a second.

``python benchmarks/video_speed.py [--seconds 8] [--words 1000]``
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from gmil.engine import resolve
from gmil.video import Hog3DSettings, IndexSettings, Vocabulary, hog3d, read_frames
from gmil.video.encoding.codebooks import ENERGIES, Codebook
from gmil.video.histograms import frame_histograms
from gmil.video.motion import MotionSettings, motion_by_frame
from gmil.video.settings import DESCRIPTORS
from video_clips import write_video


def moving_texture(n_frames: int, height: int = 240, width: int = 320) -> list[np.ndarray]:
    """Two textures that move against each other, all of the picture alive: no box is flat and can be left out."""
    rng = np.random.default_rng(0)
    back = np.kron(rng.integers(0, 256, (height // 4, (width + 2 * n_frames) // 4 + 1)), np.ones((4, 4)))
    front = np.kron(rng.integers(0, 256, (height // 8, (width + 3 * n_frames) // 8 + 1)), np.ones((8, 8)))
    stripes = (np.arange(height) // 40 % 2 == 0)[:, None]
    frames = []
    for i in range(n_frames):
        moved = front[:, 3 * (n_frames - i) : 3 * (n_frames - i) + width]
        frames.append(np.where(stripes, back[:, 2 * i : 2 * i + width], moved).astype(np.uint8))
    return frames


def random_codebooks(n_words: int) -> tuple[IndexSettings, tuple[Codebook, ...]]:
    """Return settings that ask for all descriptors, and words of each: how near they are does not change the time."""
    rng, motion = np.random.default_rng(1), MotionSettings(camera="none")
    settings = IndexSettings(n_words=n_words, descriptors=DESCRIPTORS, motion=motion)
    boxes = [
        Codebook(name, "words", centers=rng.random((n_words, columns.stop - columns.start), dtype=np.float32))
        for name, columns in motion.columns.items()
    ]
    return settings, (*boxes, *(Codebook(name, ENERGIES) for name in motion.picture_columns))


def best_of(repeats: int, work) -> float:
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def main(seconds: int, n_words: int) -> None:
    frames = moving_texture(25 * seconds)
    print(f"{seconds} s of 320x240 at 25 frames/s; processor seconds per second of video, best of 3, one thread")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video.webm"
        write_video(path, frames)
        took = best_of(3, lambda: sum(1 for _ in read_frames(path)))
        print(f"decoding (VP9): {took / seconds:.3f}")
        for name, settings in {
            "20 directions": Hog3DSettings(),
            "10 directions (half)": Hog3DSettings(half=True),
            "one scale": Hog3DSettings(scales_in_space=1, scales_in_time=1),
        }.items():
            count = sum(len(part.values) for part in hog3d(frames, settings))
            took = best_of(3, lambda settings=settings: sum(1 for _ in hog3d(frames, settings)))
            print(f"HOG3D, {name}: {took / seconds:.3f} ({count / seconds:.0f} descriptors of {settings.n_features})")
        if importlib.util.find_spec("cv2") is not None:
            for name, boxes in (("energies of the picture", False), ("energies, and boxes along tracks", True)):
                work = partial(motion_by_frame, frames, MotionSettings(camera="none"), boxes=boxes)
                took = best_of(3, lambda work=work: sum(1 for _ in work()))
                print(f"optical flow, {name}: {took / seconds:.3f}")
        words = np.random.default_rng(0).random((n_words, 960), dtype=np.float32)
        vocabulary = Vocabulary(words, 1.0, IndexSettings(n_words=n_words))
        engine = resolve("auto", 1)
        took = best_of(3, lambda: sum(1 for _ in frame_histograms(read_frames(path), [vocabulary], engine)))
        print(f"decoding, HOG3D and {n_words} words, all together: {took / seconds:.3f}")
        if importlib.util.find_spec("cv2") is not None:
            vocabulary = Vocabulary(words, 1.0, *random_codebooks(n_words))
            took = best_of(3, lambda: sum(1 for _ in frame_histograms(read_frames(path), [vocabulary], engine)))
            print(f"decoding, all descriptors and {n_words} words of each, all together: {took / seconds:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--words", type=int, default=1000)
    arguments = parser.parse_args()
    main(arguments.seconds, arguments.words)
