"""Cuts in real clips: how many are found where two clips are joined, and how many inside of clips.

``python benchmarks/cuts.py CLIPS [--seed 0]``

CLIPS is a folder of videos with ``groups.csv`` (columns video and group). Clips come in an order that is drawn. Each is
looked through for cuts, and joined to the one before it where that is of another group: 12 frames of each.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from gmil.video import read_frames
from gmil.video.cuts import shots

JOINED = 12


def lengths(frames: list) -> list[int]:
    """Return how many frames the shots have."""
    return [len(list(shot)) for shot in shots(frames)]


def main(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.clips)
    with (folder / "groups.csv").open(newline="") as file:
        groups = {row["video"]: row["group"] for row in csv.DictReader(file)}
    n_frames, inside, joined, found = 0, [], 0, 0
    before, group = [], None
    for name in np.random.default_rng(arguments.seed).permutation(sorted(groups)).tolist():
        frames = list(read_frames(folder / name))
        n_frames += len(frames)
        own = lengths(frames)
        inside += [(name, sum(own[:i])) for i in range(1, len(own))]
        if group not in (None, groups[name]):
            parts = lengths([*before, *frames[:JOINED]])
            joined, found = joined + 1, found + (JOINED in np.cumsum(parts)[:-1])
        before, group = frames[-JOINED:], groups[name]
    print(f"{joined} joints of clips: {found} are found")
    listed = ", ".join(f"{name} before frame {frame}" for name, frame in inside) or "none"
    print(f"{len(groups)} clips, {n_frames} frames: {len(inside)} cuts inside of clips: {listed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips")
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
