"""Vocabularies, samples and histograms of frames."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from tests.video.conftest import encode, moving_frames

from gmil.engine import resolve
from gmil.errors import ModelFileError, VideoError
from gmil.io.model_files.schema import Plain
from gmil.video import Hog3DSettings, IndexSettings, Vocabulary, hog3d, learn_vocabulary
from gmil.video.decoding import Frame
from gmil.video.histograms import frame_histograms, histograms_so_far
from gmil.video.vocabulary import SAVED_VOCABULARY, DescriptorSample

ENGINE = resolve("auto", 1)
ONE_SCALE = Hog3DSettings(scales_in_space=1, scales_in_time=1)


def as_frames(pictures):
    return (Frame(gray, i / 25) for i, gray in enumerate(pictures))


@pytest.fixture
def vocabulary():
    settings = IndexSettings(descriptor=ONE_SCALE, n_words=5, window=7)
    return learn_vocabulary([np.concatenate([d.values for d in hog3d(moving_frames(), ONE_SCALE)])], settings)


def slow_histograms(pictures, vocabulary):
    """Count the words of all descriptors in the window of every frame."""
    parts = list(hog3d(pictures, vocabulary.settings.descriptor))
    window = vocabulary.settings.window
    rows = []
    for frame in range(len(pictures)):
        counts = np.zeros(len(vocabulary.words))
        for part in parts:
            if 0 <= int(part.frame + 0.5) - (frame - window // 2) < window:
                for values in part.values:
                    counts[((values - vocabulary.words) ** 2).sum(axis=1).argmin()] += 1
        rows.append(counts / max(counts.sum(), 1))
    return np.array(rows)


@pytest.mark.parametrize(("scales_in_time", "window"), [(1, 7), (2, 7), (1, 6)])
def test_histograms_are_those_of_counting_by_hand(vocabulary, scales_in_time, window):
    descriptor = Hog3DSettings(scales_in_space=1, scales_in_time=scales_in_time)
    settings = IndexSettings(descriptor=descriptor, n_words=5, window=window)
    vocabulary = Vocabulary(vocabulary.words, vocabulary.spread, settings)
    pictures = moving_frames(30, seed=1)
    found = list(frame_histograms(as_frames(pictures), [vocabulary], ENGINE))
    assert [row.frame for row in found] == list(range(30))
    assert [row.time for row in found] == [i / 25 for i in range(30)]
    np.testing.assert_allclose([row.histograms[0] for row in found], slow_histograms(pictures, vocabulary), atol=1e-6)
    alone = list(frame_histograms(as_frames(pictures), [vocabulary], ENGINE, at_once=1))
    assert [row.frame for row in alone] == list(range(30))
    np.testing.assert_allclose([row.histograms[0] for row in alone], [row.histograms[0] for row in found], atol=1e-6)


def test_what_is_known_so_far_is_what_a_video_has_that_ends_there(vocabulary):
    pictures = moving_frames(30, seed=1)
    # The frame after a cut is like the one before it: a gradient needs the next frame, or else repeats the last one.
    frames = list(as_frames([pictures[i - i // 5] for i in range(30)]))
    so_far = []
    for number, (final, newer) in enumerate(histograms_so_far(frames, vocabulary, ENGINE, at_once=5), start=1):
        so_far += final
        if number * 5 > len(frames):
            break
        cut = list(frame_histograms(frames[: number * 5], [vocabulary], ENGINE))
        assert [row.frame for row in [*so_far, *newer]] == [row.frame for row in cut]
        for row, expected in zip([*so_far, *newer], cut, strict=True):
            np.testing.assert_allclose(row.histograms[0], expected.histograms[0], atol=1e-6)
    assert [row.frame for row in so_far] == list(range(30))


def test_several_vocabularies_share_one_look_at_the_video(vocabulary):
    other = Vocabulary(vocabulary.words[::-1].copy(), vocabulary.spread, vocabulary.settings)
    for row in frame_histograms(as_frames(moving_frames(30, seed=2)), [vocabulary, other], ENGINE):
        np.testing.assert_array_equal(row.histograms[0], row.histograms[1][::-1])


def test_every_so_many_frames_and_flat_frames():
    settings = IndexSettings(descriptor=ONE_SCALE, n_words=2, every=4)
    words = Vocabulary(np.eye(2, 960, dtype=np.float32), 1.0, settings)
    found = list(frame_histograms(as_frames([np.full((48, 64), 7, np.uint8)] * 30), [words], ENGINE))
    assert [row.frame for row in found] == list(range(0, 30, 4))
    assert not np.any([row.histograms for row in found])


def test_soft_assignment_shares_a_descriptor_out(vocabulary):
    values = next(iter(hog3d(moving_frames(seed=3), ONE_SCALE))).values
    soft = IndexSettings(descriptor=ONE_SCALE, n_words=5, assignment="soft", neighbours=2)
    found = Vocabulary(vocabulary.words, 0.5, soft).histogram(values[:1], ENGINE)
    squares = ((values[0] - vocabulary.words) ** 2).sum(axis=1)
    nearest = np.argsort(squares)[:2]
    weights = np.exp(-squares[nearest] / (2 * 0.5))
    expected = np.zeros(5)
    expected[nearest] = weights / weights.sum()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    on_a_word = Vocabulary(vocabulary.words, 0.0, soft).histogram(vocabulary.words[:1], ENGINE)
    np.testing.assert_allclose(on_a_word, [1, 0, 0, 0, 0])


def test_a_vocabulary_is_what_was_saved(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "words.safetensors")
    again = Vocabulary.load(tmp_path / "words.safetensors")
    np.testing.assert_array_equal(again.words, vocabulary.words)
    assert (again.spread, again.settings, again.digest) == (vocabulary.spread, vocabulary.settings, vocabulary.digest)


def test_a_model_is_no_vocabulary(tmp_path):
    from gmil import GMIL

    GMIL(random_state=0).fit(np.random.default_rng(0).normal(size=(10, 3, 2)), np.arange(10) % 2).save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="holds a GMIL, and not a video vocabulary"):
        Vocabulary.load(tmp_path / "m")


def test_a_vocabulary_is_no_model_and_a_damaged_one_is_said(vocabulary, tmp_path):
    from gmil import load
    from gmil.io import model_files

    vocabulary.save(tmp_path / "words")
    with pytest.raises(ModelFileError, match="holds a video vocabulary, and not one model"):
        load(tmp_path / "words")
    words = {"words": SAVED_VOCABULARY["words"]}
    model_files.save_parts({"kind": "video vocabulary", "words": vocabulary.words}, tmp_path / "half", words)
    with pytest.raises(ModelFileError, match=r"half is damaged: .*'spread'"):
        Vocabulary.load(tmp_path / "half")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": np.zeros((5, 7), dtype=np.float32)}, r"The words must be of shape \(5, 960\)"),
        ({"words": np.full((5, 960), np.nan)}, "words must be free of NaN"),
        ({"spread": -1.0}, "spread must be at least 0"),
        ({"settings": {}}, "settings must be a dict of"),
    ],
)
def test_a_vocabulary_that_lies_is_refused(vocabulary, tmp_path, changes, message):
    from gmil.io import model_files

    parts = {"kind": "video vocabulary", **vocabulary.as_parts(), **changes}
    model_files.save_parts(parts, tmp_path / "words", dict.fromkeys(set(parts) - {"kind"}, Plain(object)))
    with pytest.raises(ModelFileError, match=message):
        Vocabulary.load(tmp_path / "words")


def test_too_few_descriptors_are_said():
    with pytest.raises(VideoError, match=r"100 words cannot be learned from 7 descriptors. Ask for fewer"):
        learn_vocabulary([np.zeros((7, 960))], IndexSettings(n_words=100))


def test_a_sample_is_uniform_over_the_stream():
    """Every tenth of the stream is drawn as often as any other."""
    counts = np.zeros(10)
    for seed in range(40):
        sample = DescriptorSample(50, 1, np.random.default_rng(seed))
        for block in np.array_split(np.arange(1000.0)[:, None], 37):
            sample.add(block)
        assert sample.values.shape == (50, 1)
        assert len(np.unique(sample.values)) == 50
        counts += np.histogram(sample.values, bins=10, range=(0, 1000))[0]
    assert np.abs(counts / counts.sum() - 0.1).max() < 0.03


def test_a_sample_has_the_smallest_numbers_in_their_order():
    sample = DescriptorSample(5, 1, np.random.default_rng(3))
    for block in np.split(np.arange(40.0)[:, None], [3, 9, 10]):
        sample.add(block)
    expected = np.argsort(np.random.default_rng(3).random(40))[:5]
    np.testing.assert_array_equal(sample.values[:, 0], expected)


def test_memory_does_not_grow_with_the_length_of_a_video(vocabulary):
    """Five times the frames, the same peak."""
    pictures = moving_frames(20)

    def peak(n_frames):
        stream = (Frame(pictures[i % 20], i / 25) for i in range(n_frames))
        tracemalloc.start()
        for _ in frame_histograms(stream, [vocabulary], ENGINE):
            pass
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    peak(600)  # what is imported and cached on the way
    assert peak(600) < 1.05 * peak(120)


PEAK = """
import resource, sys
from pathlib import Path
from gmil.video import Vocabulary
from gmil.video.cache import Work
words = Vocabulary.load(sys.argv[1])
Path(sys.argv[3]).mkdir()
Work(Path(sys.argv[3]), words.settings).histograms(sys.argv[2], [words])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_long_file_takes_no_more_memory_than_a_short_one(vocabulary, tmp_path):
    """Decoding, descriptors, words and writing together, in a process of their own: 500 and 5000 frames."""
    vocabulary.save(tmp_path / "words")
    pictures = moving_frames(50)
    peaks = []
    for n_frames in (500, 5000):
        video = encode(tmp_path / f"{n_frames}.mp4", [pictures[i % 50] for i in range(n_frames)], codec="mpeg4")
        arguments = [str(part) for part in (tmp_path / "words", video, tmp_path / f"work{n_frames}")]
        done = subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 6_000  # kilobytes; the grey frames of the longer file are 14 000 more


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_words": 0}, "n_words must be at least 1, got 0"),
        ({"assignment": "fuzzy"}, r"assignment must be one of \['hard', 'soft'\], got 'fuzzy'"),
        ({"rate": 0}, "rate must be a number of frames per second above 0 and up to 1000, got 0"),
        ({"rate": float("nan")}, "rate must be a number .* got nan"),
        ({"rate": float("inf")}, "rate must be a number .* got inf"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(VideoError, match=message):
        IndexSettings(**wrong)
