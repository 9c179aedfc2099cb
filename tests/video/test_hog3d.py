"""HOG3D against a slow, direct implementation, and what must and must not change it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmil.errors import VideoError
from gmil.video.gradients.integral import box_sums, corners, gradient, in_threes, integrate, no_sums
from gmil.video.gradients.polyhedra import polyhedron, summed_histograms
from gmil.video.hog3d import Hog3DSettings, hog3d

SMALL = Hog3DSettings(
    cell_pixels=4, cell_frames=2, cells_in_space=2, cells_in_time=2, blocks=2, scales_in_space=2, min_gradient=0
)


def random_video(shape=(14, 18, 23), seed=0, low=0, high=256):
    return np.random.default_rng(seed).integers(low, high, shape, dtype=np.uint8)


# ------------------------------------------------------------------ the slow, direct implementation


def slow_gradient(video, t, y, x):
    """Central differences, the outermost value repeated at the borders."""

    def value(t, y, x):
        n_t, n_y, n_x = video.shape
        return float(video[min(max(t, 0), n_t - 1), min(max(y, 0), n_y - 1), min(max(x, 0), n_x - 1)])

    return np.array(
        [
            (value(t, y, x + 1) - value(t, y, x - 1)) / 2,
            (value(t, y + 1, x) - value(t, y - 1, x)) / 2,
            (value(t + 1, y, x) - value(t - 1, y, x)) / 2,
        ]
    )


def slow_quantised(gradient, normals):
    """Klaeser et al., section 3.2: project, subtract what a neighbour would get, share the length out."""
    length = np.linalg.norm(gradient)
    if length == 0:
        return np.zeros(len(normals))
    others = [normals[0] @ normal for normal in normals[1:]]
    projection = np.array([normal @ gradient / length for normal in normals]) - max(others)
    projection = np.maximum(projection, 0)
    return length * projection / np.linalg.norm(projection)


def slow_edge(number, length):
    return math.floor(number * length + 0.5)


def slow_descriptor(video, s, cell, cell_frames, t0, y0, x0):
    """One descriptor whose box begins at a cell, every sum taken over the pixels themselves."""
    normals = polyhedron(s.polyhedron).normals
    histograms = []
    for cy, cx, ct in itertools.product(range(s.cells_in_space), range(s.cells_in_space), range(s.cells_in_time)):
        histogram = np.zeros(len(normals))
        for by, bx, bt in itertools.product(range(s.blocks), repeat=3):
            first = [(t0 + ct) * s.blocks + bt, (y0 + cy) * s.blocks + by, (x0 + cx) * s.blocks + bx]
            sizes = [cell_frames / s.blocks, cell / s.blocks, cell / s.blocks]
            ranges = [range(slow_edge(i, size), slow_edge(i + 1, size)) for i, size in zip(first, sizes, strict=True)]
            inside = [slow_gradient(video, t, y, x) for t, y, x in itertools.product(*ranges)]
            histogram += slow_quantised(np.mean(inside, axis=0), normals)
        histograms.append(histogram)
    values = np.concatenate(histograms)
    values = np.minimum(values / np.linalg.norm(values), s.clip)
    return values / np.linalg.norm(values)


def slow_hog3d(video, s):
    """Return all descriptors by scale, time and place: {(side, length, frame, y, x): values}."""
    n_t, n_y, n_x = video.shape
    found = {}
    for i, j in itertools.product(range(s.scales_in_space), range(s.scales_in_time)):
        cell, cell_frames = s.cell_pixels * 2 ** (i / 2), s.cell_frames * 2**j
        ends = [n_t // cell_frames - s.cells_in_time, n_y // cell - s.cells_in_space, n_x // cell - s.cells_in_space]
        steps = [s.step_in_time, s.step_in_space, s.step_in_space]
        starts = [range(0, int(end) + 1, step) for end, step in zip(ends, steps, strict=True)]
        side, length = cell * s.cells_in_space, cell_frames * s.cells_in_time
        for t, y, x in itertools.product(*starts):
            at = (side, length, t * cell_frames + length / 2 - 0.5, y * cell + side / 2, x * cell + side / 2)
            found[tuple(round(number, 6) for number in at)] = slow_descriptor(video, s, cell, cell_frames, t, y, x)
    return found


@pytest.mark.parametrize(
    "changes",
    [{}, {"step_in_space": 1, "polyhedron": "dodecahedron"}, {"cell_pixels": 5, "blocks": 1, "step_in_time": 2}],
    ids=["two scales", "other polyhedron", "uneven cells"],
)
def test_descriptors_are_those_of_the_slow_implementation(changes):
    s = Hog3DSettings(**{**SMALL.__dict__, **changes})
    video = random_video()
    expected = slow_hog3d(video, s)
    found = {}
    for part in hog3d(video, s):
        for values, x, y in zip(part.values, part.x, part.y, strict=True):
            found[tuple(round(float(n), 6) for n in (part.pixels, part.frames, part.frame, y, x))] = values
    assert set(found) == set(expected)
    assert len(expected) > 10
    for at, values in expected.items():
        np.testing.assert_allclose(found[at], values, atol=2e-6)


@given(seed=st.integers(0, 999), y=st.tuples(st.integers(0, 9), st.integers(0, 9)), t=st.integers(1, 5))
@settings(max_examples=25)
def test_an_integral_video_gives_the_sum_over_any_cuboid(seed, y, t):
    video = random_video((6, 10, 8), seed)
    pieces = [gradient(*three) for three in in_threes(video)]
    sums = no_sums(10, 8)
    rows, columns = np.array([min(y), max(y) + 1]), np.array([2, 7])
    before = corners(sums, rows, columns)
    for piece in pieces[:t]:
        integrate(sums, piece)
    expected = np.stack(pieces[:t]).astype(np.int64)[:, :, rows[0] : rows[1], 2:7].sum(axis=(0, 2, 3))
    np.testing.assert_array_equal(box_sums(before, corners(sums, rows, columns))[:, 0, 0], expected)


def test_sums_that_wrap_around_are_exact_all_the_same():
    sums = no_sums(4, 4)
    sums[...] = np.iinfo(np.int32).max - 3
    before = corners(sums, np.array([1, 3]), np.array([1, 3]))
    integrate(sums, np.full((3, 4, 4), 100, dtype=np.int16))
    assert (sums < 0).any()
    assert box_sums(before, corners(sums, np.array([1, 3]), np.array([1, 3]))).ravel().tolist() == [400, 400, 400]


# ------------------------------------------------------------------ the polyhedra


@pytest.mark.parametrize(
    ("name", "n_faces", "cosine"), [("icosahedron", 20, 5**0.5 / 3), ("dodecahedron", 12, 5**-0.5)]
)
def test_normals_are_those_of_a_regular_polyhedron(name, n_faces, cosine):
    solid = polyhedron(name)
    assert solid.normals.shape == (n_faces, 3)
    np.testing.assert_allclose(np.linalg.norm(solid.normals, axis=1), 1)
    np.testing.assert_allclose(solid.normals.sum(axis=0), 0, atol=1e-12)
    assert solid.neighbour_cosine == pytest.approx(cosine)
    cosines = np.sort(solid.normals @ solid.normals.T, axis=1)
    n_neighbours = {"icosahedron": 3, "dodecahedron": 5}[name]
    np.testing.assert_allclose(cosines[:, -1 - n_neighbours : -1], cosine)


@pytest.mark.parametrize("name", ["icosahedron", "dodecahedron"])
def test_a_gradient_along_a_normal_falls_into_its_bin_alone(name):
    solid = polyhedron(name)
    histograms, lengths = summed_histograms(3 * solid.normals[:, None, :], solid)
    np.testing.assert_allclose(histograms, 3 * np.eye(len(solid.normals)), atol=1e-12)
    np.testing.assert_allclose(lengths, 3)


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=3))
def test_the_histogram_of_one_gradient_is_as_long_as_the_gradient(vector):
    gradient = np.array(vector)
    for solid in (polyhedron("icosahedron"), polyhedron("dodecahedron"), polyhedron("icosahedron", half=True)):
        histogram = summed_histograms(gradient[None, None], solid)[0][0]
        assert np.linalg.norm(histogram) == pytest.approx(np.linalg.norm(gradient), abs=1e-6)


def test_half_a_polyhedron_cannot_tell_opposite_gradients_apart():
    vectors = np.random.default_rng(0).normal(size=(20, 1, 3))
    half, full = polyhedron("icosahedron", half=True), polyhedron("icosahedron")
    np.testing.assert_allclose(summed_histograms(vectors, half)[0], summed_histograms(-vectors, half)[0])
    assert not np.allclose(summed_histograms(vectors, full)[0], summed_histograms(-vectors, full)[0])


# ------------------------------------------------------------------ what must not change a descriptor, and what must


def all_values(video, s=SMALL):
    return np.concatenate([part.values for part in hog3d(video, s)])


def test_a_brightness_offset_changes_nothing():
    video = random_video(high=200)
    np.testing.assert_array_equal(all_values(video), all_values(video + 55))


def test_contrast_changes_nothing_but_rounding():
    video = random_video(high=100)
    np.testing.assert_allclose(all_values(video), all_values(video * 2), atol=1e-6)


def test_other_motion_changes_descriptors():
    video = random_video()
    assert np.abs(all_values(video) - all_values(video[::-1])).max() > 0.05


def test_descriptors_have_length_one_and_no_negative_entry():
    values = all_values(random_video(seed=3))
    np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1, rtol=1e-5)
    assert values.min() >= 0


def grating(angle, speed, shape=(16, 48, 48), period=16.0):
    """Return a grating whose stripes cross ``angle`` and move along it by ``speed`` pixels a frame."""
    t, y, x = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    along = x * np.cos(angle) + y * np.sin(angle) - speed * t
    return np.round(128 + 100 * np.sin(2 * np.pi * along / period)).astype(np.uint8)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", ["icosahedron", "dodecahedron"])
def test_a_drifting_grating_lies_in_the_bin_of_its_motion(name, half):
    """Its gradients are all parallel to (cos, sin, -speed), which is aimed at the centre of each bin in turn."""
    solid = polyhedron(name, half=half)
    s = Hog3DSettings(polyhedron=name, half=half, scales_in_space=1, scales_in_time=1, min_gradient=0)
    for number, (x, y, t) in enumerate(solid.normals):
        slope = np.hypot(x, y)
        if slope < 0.3 or abs(t) / slope > 3:
            continue  # faster than two frames can show
        values = all_values(grating(np.arctan2(y, x), -t / slope), s)
        energy = values.reshape(-1, len(solid.normals)).sum(axis=0)
        opposite = np.argmin(solid.normals @ solid.normals[number])  # where the wave falls instead of rising
        right = {number} if half else {number, int(opposite)}
        assert energy[list(right)].sum() > 0.8 * energy.sum()
        assert set(np.argsort(energy)[-len(right) :].tolist()) == right


def test_a_still_picture_has_no_motion_in_time():
    still = np.repeat(random_video((1, 24, 24)), 12, axis=0)
    assert all(not gradient(*three)[2].any() for three in in_threes(still))


# ------------------------------------------------------------------ flat places, sizes, settings


def test_flat_boxes_have_no_descriptor():
    video = np.full((12, 24, 72), 90, dtype=np.uint8)
    video[:, :, 48:] = random_video((12, 24, 24))
    s = Hog3DSettings(scales_in_space=1, scales_in_time=1)
    assert list(hog3d(np.full((12, 24, 48), 90, dtype=np.uint8), s)) == []
    places = [part.x for part in hog3d(video, s)]
    assert places
    assert np.concatenate(places).min() == 36  # the first box that reaches the border of the texture


def test_a_picture_that_is_too_small_has_no_descriptors():
    assert list(hog3d(random_video((20, 23, 64)))) == []
    assert list(hog3d(random_video((8, 24, 64)))) == []
    assert len(list(hog3d(random_video((9, 24, 64))))) == 1
    assert (Hog3DSettings().smallest_side, Hog3DSettings().fewest_frames) == (24, 9)


def test_descriptors_come_as_soon_as_their_frames_are_there():
    seen = []

    def frames():
        for number, frame in enumerate(random_video((40, 24, 24))):
            seen.append(number)
            yield frame

    first = next(hog3d(frames()))
    assert first.frame == 4
    assert len(seen) == 10  # nine frames, and one for the gradient of the last


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cell_pixels": 2}, "cell_pixels must be at least 3, got 2"),
        ({"scales_in_time": 0}, "scales_in_time must be at least 1, got 0"),
        ({"clip": 0}, "clip must be at least 0.01, got 0"),
        ({"polyhedron": "cube"}, "'icosahedron' or 'dodecahedron', got 'cube'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(VideoError, match=message):
        Hog3DSettings(**wrong)
