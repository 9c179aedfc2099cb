"""Optical flow, what is described in boxes that follow it, and in the whole picture."""

from __future__ import annotations

import numpy as np
import pytest
from tests.video.conftest import moving_frames

from gmil.errors import BackendUnavailableError, VideoError
from gmil.video import IndexSettings, MotionSettings
from gmil.video.encoding.descriptors import descriptors_by_frame
from gmil.video.encoding.energies import N_FEATURES, N_SUMS, energy_vector
from gmil.video.hog3d import hog3d_by_frame
from gmil.video.motion.directions import energies, oriented
from gmil.video.motion.flow import Field, camera_motion, import_cv2
from gmil.video.motion.tracks import Tracks

SMALL = MotionSettings(longest_side=96, frames=6, cells_in_time=3, step_in_time=3)


@pytest.fixture
def cv2():
    return pytest.importorskip("cv2", reason="optical flow needs OpenCV: pip install 'gmil[video]'")


def moved_square(n_frames=16, start=20, speed=2, drift=0, seed=0, height=64, width=96):
    """Return frames of a square that goes to the right over a texture that drifts to the left."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    back = gaussian_filter(rng.normal(0, 1, (height, width + abs(drift) * n_frames)), 2)
    front = gaussian_filter(rng.normal(0, 1, (20, 20)), 2)
    frames = []
    for i in range(n_frames):
        picture = back[:, drift * i : drift * i + width].copy()
        picture[22:42, start + speed * i : start + 20 + speed * i] = front
        frames.append(np.clip(128 + 300 * picture, 0, 255).astype(np.uint8))
    return frames


def test_directions_are_those_of_a_slow_loop():
    rng = np.random.default_rng(0)
    dx, dy = rng.normal(size=(2, 50))
    slow = np.zeros((50, 8))
    for i in range(50):
        place = (np.degrees(np.arctan2(dy[i], dx[i])) % 360) / 45
        low, share = int(place), place - int(place)
        slow[i, low % 8] += np.hypot(dx[i], dy[i]) * (1 - share)
        slow[i, (low + 1) % 8] += np.hypot(dx[i], dy[i]) * share
    np.testing.assert_allclose(oriented(dx, dy), slow, atol=1e-6)
    assert not oriented(np.zeros(3), np.zeros(3)).any()


def test_energies_are_means_over_cells_and_their_place_does_not_matter():
    motion = np.zeros((6, 8, 8), dtype=np.float32)
    motion[0:2, 2:4, 3] = 4.0  # the whole of the second cell of the first row
    changes = np.zeros((6, 8, 16), dtype=np.float32)
    found = energies(motion, changes)
    coarse, fine = found[:288].reshape(12, 24), found[288:].reshape(6, 8, 24)
    assert coarse[1, 3] == coarse.sum() == 4.0
    assert fine[0:2, 2:4, 3].sum() == fine.sum() == 16.0
    for name, columns in MotionSettings().picture_columns.items():
        elsewhere = energies(np.roll(motion, 4, axis=1), changes)[columns]
        sums = [np.append(part, np.float32(1)) for part in (found[columns], elsewhere)]
        expected = energy_vector(name, sums[0])
        assert (len(sums[0]), len(expected)) == (N_SUMS[name], N_FEATURES[name])
        np.testing.assert_array_equal(expected, energy_vector(name, sums[1]))
        assert energy_vector(name, 2 * sums[0]) == pytest.approx(expected)  # of twice as many fields


def test_a_pyramid_does_not_tell_left_from_right_and_flow_does():
    rng = np.random.default_rng(0)
    own = rng.normal(size=(24, 32, 2)).astype(np.float32)
    mirrored = own[:, ::-1] * np.array([-1, 1], dtype=np.float32)
    vectors = {}
    for field in (own, mirrored):
        slopes = [np.gradient(field[..., part])[::-1] for part in (0, 1)]  # across, down
        changes = np.concatenate([oriented(*part) for part in slopes], axis=2)
        rows = energies(oriented(field[..., 0], field[..., 1]), changes)
        for name, columns in MotionSettings().picture_columns.items():
            vectors.setdefault(name, []).append(energy_vector(name, np.append(rows[columns], np.float32(1))))
    np.testing.assert_allclose(*vectors["pyramid"], atol=1e-4)
    assert np.abs(vectors["flow"][0] - vectors["flow"][1]).max() > 0.01


def test_the_motion_of_the_camera_is_taken_out():
    flow = np.zeros((60, 80, 2), dtype=np.float32)
    ys, xs = np.mgrid[:60, :80]
    flow[..., 0], flow[..., 1] = 2.0 + 0.02 * xs, 0.01 * ys - 0.03 * xs
    flow[20:40, 20:40] += 5  # something that moves by itself
    own = flow - camera_motion(flow, "affine")
    outside = np.ones((60, 80), dtype=bool)
    outside[20:40, 20:40] = False
    assert np.abs(own[outside]).max() < 0.05
    assert np.abs(own[~outside] - 5).max() < 0.05
    np.testing.assert_allclose(camera_motion(flow, "median"), np.median(flow.reshape(-1, 2), axis=0))
    assert not camera_motion(flow, "none").any()


def test_boxes_see_where_and_whereto_something_moves(cv2):
    [*_, last] = boxes_of(moved_square(), "hof")
    columns = SMALL.columns["hof"]
    directions = (last.values[:, columns] ** 2).reshape(len(last.values), -1, 9).sum(axis=1)
    assert directions.sum(axis=1) == pytest.approx(1, abs=1e-4)
    assert set(directions[:, :8].argmax(axis=1)) == {0}  # to the right
    assert ((last.x > 30) & (last.x < 80)).all()
    assert ((last.y > 10) & (last.y < 54)).all()


def _asking(*names):
    return IndexSettings(descriptors=names, motion=SMALL)


def boxes_of(frames, name):
    return [part for found in descriptors_by_frame(frames, _asking(name)) for part in found.get("boxes", ())]


def test_boxes_follow_what_they_show_or_stay(cv2):
    frames = moved_square()
    ends = {}
    for follow in (True, False):
        motion = MotionSettings(longest_side=96, frames=12, step_in_time=100, follow=follow, min_motion=0.5)
        settings = IndexSettings(descriptors=("trajectory",), motion=motion)
        [found] = (part for parts in descriptors_by_frame(frames, settings) for part in parts.get("boxes", ()))
        ends[follow] = found
        assert found.frame == 6.0
    assert ends[True].x.max() > ends[False].x.max() + 8  # it went on by 24 pixels
    whole = ends[False].x % 1
    assert not whole.any()


def test_boxes_beside_motion_have_sums_of_zero_and_not_less(cv2):
    rng, shape = np.random.default_rng(0), (64, 96)
    histograms = (rng.random((*shape, 33)) ** 8 * 50).astype(np.float32)
    histograms[:, 40:, :8] = 0  # no slope of brightness: what leaves a running sum is more than what is in it
    flow = np.ones((*shape, 2), dtype=np.float32)
    tracks = Tracks(SMALL, cv2)
    found = [part for i in range(6) for part in tracks.advance(i, Field(flow[..., 0], flow, flow), histograms)]
    assert np.isfinite(found[0].values).all()


def test_a_still_video_and_a_panning_camera_have_no_boxes(cv2):
    still = [moved_square()[0]] * 12
    assert not boxes_of(still, "mbh")
    pan = moved_square(start=60, speed=-2, drift=2)  # the square goes along with the background
    n_boxes, n_own = (
        sum(len(part.values) for part in boxes_of(frames, "mbh")) for frames in (pan, moved_square(drift=2))
    )
    assert n_boxes < n_own / 2


def test_all_descriptors_come_from_one_reading_and_hog3d_is_what_it_is_alone(cv2):
    frames = moving_frames(30)
    read = []
    together = list(descriptors_by_frame((read.append(1) or f for f in frames), _asking("hog3d", "hof", "flow")))
    assert len(read) == len(together) == 30
    alone = list(hog3d_by_frame(frames, IndexSettings().descriptor))
    for found, own in zip(together, alone, strict=True):
        for part, expected in zip(found["hog3d"], own, strict=True):
            np.testing.assert_array_equal(part.values, expected.values)
    assert sum(len(found.get("picture", ())) for found in together) == 29


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flow": "magic"}, r"flow must be one of \['dis', 'farneback'\], got 'magic'"),
        ({"camera": "gone"}, "camera must be one of"),
        ({"frames": 7}, "frames must be a multiple of cells_in_time, 3, got 7"),
        ({"step_in_space": 0}, "step_in_space must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(VideoError, match=message):
        MotionSettings(**options)


def test_descriptors_and_encodings_are_known_and_once():
    for options in ({"descriptors": ["sift"]}, {"descriptors": []}, {"encodings": ["words", "words"]}):
        with pytest.raises(VideoError, match=r"must be some of .* each once, got"):
            IndexSettings(**options)


def test_without_opencv_the_command_that_installs_it_is_said(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'gmil\[video\]'"):
        import_cv2()
