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
        features.append(found)
        infos.append(np.column_stack([left, top]))
    places = np.concatenate(infos)
    info = {"x": places[:, 0], "y": places[:, 1], "patch_size": np.full(len(places), 256), "unit": ["px"] * len(places)}
    ids = [f"slide {i}" for i in range(16)]
    bags = gmil.Bags.from_list(features, bag_ids=ids, instance_info=info)
    labels = np.where(y == 1, "tumour", "normal")
    model = gmil.WeightedGMIL(random_state=0, pos_label="tumour", n_jobs=1).fit(bags, labels)
    return Cohort(bags, labels, model)
