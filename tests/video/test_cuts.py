"""A cut is no motion: where it is seen, what is taken for none, and that nothing is described across it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from gmil.engine import resolve
from gmil.video import Hog3DSettings, IndexSettings
from gmil.video.cuts import shots
from gmil.video.decoding import Frame
from gmil.video.histograms import frame_histograms, histograms_so_far
from gmil.video.hog3d import hog3d
from gmil.video.vocabulary import Vocabulary, learn_vocabulary

ENGINE = resolve("auto", 1)
SMALL = Hog3DSettings(scales_in_space=1, scales_in_time=1)


def scene(seed, height=96, width=400):
    """Return a picture with large and small shapes, as wide as a camera may turn."""
    rng = np.random.default_rng(seed)
    parts = [gaussian_filter(rng.normal(size=(height, width)), size) for size in (3, 12)]
    return 120 + sum(20 * part / part.std() for part in parts)


def turning(picture, n_frames, speed=0.0, width=128, seed=0):
    """Return what a camera sees that turns by so many pixels a frame, with noise."""
    rng = np.random.default_rng(seed)
    frames = []
    for i in range(n_frames):
        at = int(speed * i)
        frames.append(picture[:, at : at + width] + rng.normal(0, 3, (len(picture), width)))
    return frames


def as_frames(pictures, start=0):
    return [Frame(np.clip(each, 0, 255).astype(np.uint8), (start + i) / 25) for i, each in enumerate(pictures)]


def lengths(pictures):
    """Return how many frames the shots have."""
    frames = as_frames(pictures)
    found = [[frame.time for frame in shot] for shot in shots(frames)]
    assert [time for shot in found for time in shot] == [frame.time for frame in frames]
    return [len(shot) for shot in found]


def test_shots_end_at_cuts():
    first, second, third = (turning(scene(seed), n, speed=2) for seed, n in ((0, 20), (1, 9), (2, 30)))
    assert lengths([*first, *second, *third]) == [20, 9, 30]
    assert lengths([*first, *second[:3]]) == [20, 3]
    assert lengths([]) == []
    assert lengths(first[:1]) == [1]


def test_a_cut_to_black_and_back_is_seen():
    black = [np.full((96, 128), 16.0)] * 10
    assert lengths([*turning(scene(0), 20), *black, *turning(scene(0), 20)]) == [20, 10, 20]


@pytest.mark.parametrize("speed", [0.0, 4.0, 12.0])
def test_a_camera_that_turns_or_starts_to_turn_makes_no_cut(speed):
    frames = turning(scene(3), 20, speed)
    assert lengths([*turning(scene(3), 20), *frames]) == [40]


def test_flashes_light_and_fast_things_make_no_cut():
    still = turning(scene(4), 40)
    lightning = [frame + 120 * (i == 20) for i, frame in enumerate(still)]  # saturates, for one frame
    lights = [1.8 * frame - 40 if 12 <= i < 30 else frame for i, frame in enumerate(still)]
    passing = [frame.copy() for frame in still]
    for i in range(15, 20):  # an eighth of the picture, 30 pixels a frame
        passing[i][:, 30 * (i - 15) : 30 * (i - 15) + 16] = 255
    fade = [frame * abs(i - 20) / 20 for i, frame in enumerate(still)]
    for frames in (lightning, lights, passing, fade):
        assert lengths(frames) == [40]


def test_a_film_at_half_the_rate_makes_no_cuts():
    frames = turning(scene(5), 20, speed=12)
    assert lengths([frame for frame in frames for _ in range(2)]) == [40]


@pytest.fixture
def vocabulary():
    grays = (frame.gray for frame in as_frames(turning(scene(6), 20, speed=2)))
    rows = np.concatenate([part.values for part in hog3d(grays, SMALL)])
    return learn_vocabulary([rows], IndexSettings(descriptor=SMALL, n_words=5, window=7))


def test_nothing_is_described_across_a_cut(vocabulary):
    first, second = turning(scene(7), 21, speed=2), turning(scene(8), 20, speed=2)
    found = list(frame_histograms(as_frames([*first, *second]), [vocabulary], ENGINE))
    alone = [
        row
        for own in (as_frames(first), as_frames(second, start=21))
        for row in frame_histograms(own, [vocabulary], ENGINE)
    ]
    assert [row.frame for row in found] == list(range(41))
    assert [row.time for row in found] == [row.time for row in alone]
    np.testing.assert_allclose([row.histograms[0] for row in found], [row.histograms[0] for row in alone], atol=1e-6)
    live = [
        row
        for final, _ in histograms_so_far(as_frames([*first, *second]), vocabulary, ENGINE, at_once=5)
        for row in final
    ]
    np.testing.assert_allclose([row.histograms[0] for row in live], [row.histograms[0] for row in alone], atol=1e-6)


def test_descriptors_reach_across_cuts_where_settings_say_so(vocabulary):
    across = Vocabulary(
        vocabulary.words, vocabulary.spread, IndexSettings(descriptor=SMALL, n_words=5, window=7, cuts=False)
    )
    frames = as_frames([*turning(scene(7), 21, speed=2), *turning(scene(8), 20, speed=2)])
    rows = [[row.histograms[0] for row in frame_histograms(frames, [own], ENGINE)] for own in (vocabulary, across)]
    differ = np.abs(np.subtract(*rows)).max(axis=1) > 1e-6
    assert differ[17:25].any()
    assert not differ[:8].any()
    assert across.digest != vocabulary.digest


def test_one_histogram_in_so_many_frames_is_counted_over_the_whole_video(vocabulary):
    settings = IndexSettings(descriptor=SMALL, n_words=5, window=7, every=4)
    words = Vocabulary(vocabulary.words, vocabulary.spread, settings)
    frames = as_frames([*turning(scene(7), 21, speed=2), *turning(scene(8), 20, speed=2)])
    assert [row.frame for row in frame_histograms(frames, [words], ENGINE)] == list(range(0, 41, 4))


def test_settings_of_older_files_reach_across_cuts_and_keep_their_digest():
    older = {name: value for name, value in IndexSettings().as_dict().items() if name != "cuts"}
    settings = IndexSettings.from_dict(older)
    assert not settings.cuts
    assert settings.as_dict() == older
    assert settings.sample_key() != IndexSettings().sample_key()
