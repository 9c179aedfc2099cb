"""The compiled steps of HOG3D against those in NumPy, on every instruction set that runs here."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.simd import simd_level  # noqa: F401 (every test runs with it)

from gmil.video.gradients import cells as in_numpy
from gmil.video.gradients.cells import Grid
from gmil.video.gradients.integral import no_sums
from gmil.video.gradients.polyhedra import polyhedron
from gmil.video.hog3d import Hog3DSettings, hog3d

compiled = pytest.importorskip("gmil.engine.native.cells", exc_type=ImportError)

SOLIDS = [(name, half) for name in ("icosahedron", "dodecahedron") for half in (False, True)]


def pictures(rng, shape, n=3):
    return list(rng.integers(0, 256, (n, *shape), dtype=np.uint8))


@settings(max_examples=40)
@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 40))
def test_sums_of_gradients_are_the_same_to_the_last_bit(seed, height, width):
    rng = np.random.default_rng(seed)
    expected, found = no_sums(height, width), no_sums(height, width)
    expected[:, 1:, 1:] = found[:, 1:, 1:] = np.iinfo(np.int32).max - 50  # they wrap around
    for _ in range(3):
        three = pictures(rng, (height, width))
        in_numpy.integrate_gradients(*three, expected)
        compiled.integrate_gradients(*three, found)
    assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "half"), SOLIDS)
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_histograms_of_cells_are_those_of_numpy(name, half, blocks):
    rows, columns = np.cumsum([0, *[1, 2, 3, 2] * 3]), np.cumsum([0, *[2, 1, 3] * 4])
    grid, solid = Grid(rows, columns, blocks), polyhedron(name, half=half)
    sums = no_sums(int(rows[-1]) + 2, int(columns[-1]) + 1)
    shape = (len(rows) - 1) // blocks, (len(columns) - 1) // blocks
    results = []
    for kernels in (in_numpy, compiled):
        histograms, lengths = np.ones((*shape, len(solid.normals)), np.float32), np.zeros(shape, np.float32)
        held = np.zeros((3, len(rows), len(columns)), dtype=np.int32)
        rng, sums[...] = np.random.default_rng(7), 0
        for n_frames in (1, 2):
            for _ in range(n_frames):
                three = pictures(rng, (sums.shape[1] - 1, sums.shape[2] - 1))
                in_numpy.integrate_gradients(*three, sums)
            kernels.add_directions(sums, held, grid, n_frames, solid, histograms, lengths)
        results.append((histograms, lengths, held))
    for expected, found in zip(*results, strict=True):
        assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert results[0][1].min() > 1  # every cell got something
    assert_array_equal(results[1][2], results[0][2])


def test_a_flat_layer_adds_nothing():
    grid, solid = Grid(np.arange(7), np.arange(7), 3), polyhedron("icosahedron")
    sums, held = no_sums(6, 6), np.zeros((3, 7, 7), dtype=np.int32)
    histograms, lengths = np.zeros((2, 2, 20), np.float32), np.zeros((2, 2), np.float32)
    compiled.add_directions(sums, held, grid, 1, solid, histograms, lengths)
    assert not histograms.any()
    assert not lengths.any()


@pytest.mark.parametrize("n_faces", [6, 10, 20])
@pytest.mark.parametrize("first", [0, 2])
def test_boxes_are_those_of_numpy(n_faces, first):
    cells = np.random.default_rng(0).random((3, 6, 7, n_faces), dtype=np.float32) ** 8
    cells[:, :2, :2] = 0
    places = np.array([[0, 0], [4, 5], [1, 2]])
    found = compiled.cell_boxes(cells, first, places, 2, 0.25)
    assert_allclose(found, in_numpy.cell_boxes(cells, first, places, 2, 0.25), rtol=2e-6, atol=1e-7)
    assert not found[0].any()  # nothing divided by nothing
    assert compiled.cell_boxes(cells, first, places[:0], 2, 0.25).shape == (0, 4 * 3 * n_faces)


@pytest.mark.parametrize("half", [False, True])
def test_descriptors_are_those_of_numpy(half, monkeypatch):
    video = np.random.default_rng(1).integers(0, 256, (20, 40, 52), dtype=np.uint8)
    video[:, :30, :30] = 7  # boxes without a descriptor
    s = Hog3DSettings(half=half)
    found = list(hog3d(video, s))
    monkeypatch.setattr(sys.modules["gmil.video.hog3d"], "_cell_kernels", lambda: in_numpy)
    expected = list(hog3d(video, s))
    assert len(found) == len(expected) > 3
    for mine, theirs in zip(found, expected, strict=True):
        assert_allclose(mine.values, theirs.values, atol=2e-6)
        assert_array_equal(mine.x, theirs.x)
        assert_array_equal(mine.y, theirs.y)
        assert (mine.frame, mine.pixels, mine.frames) == (theirs.frame, theirs.pixels, theirs.frames)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"rows": np.array([0, 2, 9])}, "rows"),
        ({"columns": np.array([0, 2, 2])}, "columns"),
        ({"blocks": 0}, "blocks"),
        ({"histograms": np.zeros((2, 2, 19), np.float32)}, "histograms"),
        ({"corners": np.zeros((3, 2, 3), np.int32)}, "corners"),
        ({"normals": np.zeros((21, 3), np.float32)}, "normals"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, what):
    given = {"sums": no_sums(6, 6), "corners": np.zeros((3, 3, 3), np.int32)}
    given |= {"rows": np.array([0, 2, 4]), "columns": np.array([0, 2, 4]), "blocks": 1, "frames": 1.0}
    given |= {"normals": np.zeros((20, 3), np.float32), "neighbour_cosine": 0.7, "half": False}
    given |= {"histograms": np.zeros((2, 2, 20), np.float32), "lengths": np.zeros((2, 2), np.float32)}
    with pytest.raises(ValueError, match=f"{what} does not fit"):
        compiled._kernels.add_directions(**{**given, **changes})


def test_boxes_outside_the_cells_are_refused():
    cells = np.zeros((3, 4, 4, 20), np.float32)
    with pytest.raises(ValueError, match="places does not fit"):
        compiled.cell_boxes(cells, 0, np.array([[1, 3]]), 2, 0.25)
