"""Slides whose patches and scores are known."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
import pytest

import gmil


class Png(NamedTuple):
    pixels: np.ndarray
    texts: dict[str, str]


def read_png(data):
    """Read what `gmil.heatmaps.png` writes: eight bits, no filter, no interlace."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts, texts = 8, b"", {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, bits, colour, *rest = struct.unpack(">IIBBBBB", body)
            assert (bits, rest) == (8, [0, 0, 0])
        elif kind == b"IDAT":
            parts += body
        elif kind == b"iTXt":
            keyword, _, rest = body.partition(b"\0")
            texts[keyword.decode()] = rest[4:].decode()
        at += 12 + size
    depth = {2: 3, 6: 4}[colour]
    lines = np.frombuffer(zlib.decompress(parts), dtype=np.uint8).reshape(height, 1 + width * depth)
    assert not lines[:, 0].any()
    return Png(lines[:, 1:].reshape(height, width, depth), texts)


def one_slide(x, y, side=None, *, name="s1", **columns):
    """Return bags of one slide."""
    info = {"x": np.asarray(x), "y": np.asarray(y), **columns}
    if side is not None:
        info["patch_size"] = np.broadcast_to(side, len(x)).copy()
    return gmil.Bags(np.zeros((len(x), 1)), [0, len(x)], bag_ids=[name], instance_info=info)


def lattice(width, height, step, left=0, top=0):
    """Return the corners of a full lattice, row by row."""
    x, y = np.meshgrid(left + step * np.arange(width), top + step * np.arange(height))
    return x.ravel(), y.ravel()


def write_tiff(path, width=512, height=384, tile=128, mpp=None):
    """Write a tiled TIFF as OpenSlide reads it: one level, one grey a tile, no compression."""
    n = (width // tile) * (height // tile)
    grey = [bytes([40 + 15 * i]) * (3 * tile * tile) for i in range(n)]
    size, at = len(grey[0]), 8 + n * len(grey[0])
    bits_at = at + 8 * n
    entries = [
        *[
            (256, 4, 1, width),
            (257, 4, 1, height),
            (258, 3, 3, bits_at),
            (259, 3, 1, 1),
            (262, 3, 1, 2),
            (277, 3, 1, 3),
        ],
        *([(282, 5, 1, bits_at + 8), (283, 5, 1, bits_at + 8), (296, 3, 1, 3)] if mpp else []),
        *[(322, 3, 1, tile), (323, 3, 1, tile), (324, 4, n, at), (325, 4, n, at + 4 * n)],
    ]
    with path.open("wb") as file:
        file.write(struct.pack("<2sHI", b"II", 42, bits_at + 16) + b"".join(grey))
        file.write(struct.pack(f"<{2 * n}I", *(8 + i * size for i in range(n)), *[size] * n))
        file.write(struct.pack("<4H2I", 8, 8, 8, 0, round(10000 / (mpp or 1)), 1))
        file.write(struct.pack("<H", len(entries)))
        for entry in entries:
            file.write(struct.pack("<HHII", *entry))
        file.write(struct.pack("<I", 0))
    return path


class ByFirstFeature:
    """Scores patches by their first feature, and bags by the highest."""

    classes_ = np.array(["normal", "tumour"])

    def __init__(self, sign=1.0):
        self.sign = sign

    def decision_function(self, bags):
        return np.array([self.sign * bag[:, 0].max() for bag in bags])

    def predict(self, bags):
        return self.classes_[(self.decision_function(bags) > 0).astype(int)]

    def predict_proba(self, bags):
        positive = 1 / (1 + np.exp(-self.decision_function(bags)))
        return np.column_stack([1 - positive, positive])

    def score_instances(self, bags):
        return self.sign * bags.instances[:, 0]


class Cohort(NamedTuple):
    bags: gmil.Bags
    y: np.ndarray
    model: gmil.WeightedGMIL


def tissue(rng, width=10, height=8):
    """Return the corners of most patches of a lattice, and which are tumour."""
    x, y = lattice(width, height, 256, 1000, 500)
    keep = rng.random(len(x)) < 0.9
    middle = rng.integers(keep.sum())
    x, y = x[keep], y[keep]
    return x, y, np.hypot(x - x[middle], y - y[middle]) < 400


@pytest.fixture(scope="session")
def cohort():
    """Sixteen slides of about 70 patches, in every second a small tumour, and a model fitted on all of them."""
    rng = np.random.default_rng(0)
    features, infos, y = [], [], np.arange(16) % 2
    for label in y:
        left, top, tumour = tissue(rng)
        found = rng.normal(size=(len(left), 6))
        found[tumour & (label == 1)] += 2.5
        features.append(found.astype(np.float32))  # as files keep them
        infos.append(np.column_stack([left, top]))
    places = np.concatenate(infos)
    info = {"x": places[:, 0], "y": places[:, 1], "patch_size": np.full(len(places), 256), "unit": ["px"] * len(places)}
    ids = [f"slide {i}" for i in range(16)]
    bags = gmil.Bags.from_list(features, bag_ids=ids, instance_info=info)
    labels = np.where(y == 1, "tumour", "normal")
    model = gmil.WeightedGMIL(random_state=0, pos_label="tumour", n_jobs=1).fit(bags, labels)
    return Cohort(bags, labels, model)
