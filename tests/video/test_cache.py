"""What is kept beside an index: found again, pruned when nobody uses it, made again when it is gone."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.video.conftest import encode, moving_frames

from gmil.errors import VideoError
from gmil.video import IndexSettings, bags_for_folds, index_videos, label_folds, match_labels, read_features
from gmil.video.cache import Work, again_if_gone
from gmil.video.decoding import Frame, read_frames
from gmil.video.indexing import cache_path, vocabulary_of
from gmil.video.kept_frames import keeping, kept_frames
from gmil.video.labels import EventLabels

WEEK = 7 * 24 * 3600


def age(path, seconds=WEEK + 60):
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture
def index(tmp_path):
    """Six indexed videos, every second of them fast; returns the features and the labelled videos."""
    for i in range(6):
        encode(tmp_path / f"v{i}.webm", moving_frames(seed=i, speed=1 + 3 * (i % 2)))
    features = tmp_path / "frames.parquet"
    index_videos(sorted(tmp_path.glob("*.webm")), features, IndexSettings(n_words=6))
    events = {f"v{i}": {"fast"} if i % 2 else set() for i in range(6)}
    return features, match_labels(read_features(features), EventLabels(["fast"], events, {}))


def names(features):
    return {file.name for file in cache_path(features).iterdir()}


def test_what_nobody_used_for_a_week_goes_and_the_index_and_other_files_stay(index):
    features, _ = index
    folder, vocabulary = cache_path(features), vocabulary_of(features)
    own = names(features)
    old = {f"{'a' * 16}-{'0' * 16}.parquet", f"{'a' * 16}-{'1' * 16}.npy", f".{'a' * 16}-{'2' * 16}-x_y1.parquet"}
    fresh = {f"{'b' * 16}-{'0' * 16}.parquet", f".{'b' * 16}-{'2' * 16}-abc.npy"}
    foreign = {"notes.txt", "a-b.parquet", ".hidden.npy"}
    for name in old | fresh | foreign:
        (folder / name).touch()
    for name in own | old | foreign:
        age(folder / name)
    for name in fresh:
        age(folder / name, WEEK - 60)
    assert set(Work(folder, vocabulary.settings).prune(vocabulary)) == old
    assert names(features) == own | fresh | foreign


def test_a_file_in_use_is_not_old(index):
    features, _ = index
    vocabulary, other = vocabulary_of(features), IndexSettings(n_words=5)
    work = Work(cache_path(features), vocabulary.settings)
    video = features.parent / "v0.webm"
    used, drawn = work.histogram(video, vocabulary), work.sample(video)
    made = [file.stat().st_ino for file in (used, drawn)]
    for file in cache_path(features).iterdir():
        age(file)
    assert [work.histogram(video, vocabulary), work.sample(video)] == [used, drawn]
    index_videos([video], features, other)  # other words on the same sample: the old ones are not protected any more
    left = names(features)
    assert [file.stat().st_ino for file in (used, drawn)] == made
    assert len([name for name in left if vocabulary.digest in name]) == 1
    assert len([name for name in left if name.endswith(".npy")]) == 6


@pytest.mark.slow
def test_cross_validation_prunes_the_words_of_folds_of_old_runs(index):
    features, data = index
    before = names(features)
    bags_for_folds(features, data, label_folds(data.y, 2, 0))
    first = names(features) - before
    assert len(first) == 2 * 6
    bags_for_folds(features, data, label_folds(data.y, 3, 0))
    second = names(features) - before - first
    assert len(second) == 3 * 6
    for file in cache_path(features).iterdir():
        age(file)
    bags_for_folds(features, data, label_folds(data.y, 3, 0))
    assert names(features) == before | second


@pytest.mark.slow
def test_words_of_folds_that_another_run_pruned_are_counted_again(index):
    features, data = index
    before = names(features)
    bags_of, _ = bags_for_folds(features, data, label_folds(data.y, 2, 0))
    expected = bags_of(1).instances
    gone = names(features) - before
    for name in gone:
        (cache_path(features) / name).unlink()
    np.testing.assert_array_equal(bags_of(1).instances, expected)
    assert len(gone & names(features)) == 6  # those of the fold that was asked for


def test_samples_that_another_run_pruned_are_drawn_again(index):
    features, _ = index
    work = Work(cache_path(features), vocabulary_of(features).settings)
    video = features.parent / "v0.webm"
    file = work.sample(video)
    expected = np.load(file)
    file.unlink()
    np.testing.assert_array_equal(work.read_sample(video, file), expected)


def test_only_a_file_that_is_gone_is_made_again(tmp_path):
    file = tmp_path / "file"
    file.write_text("there")
    assert again_if_gone(lambda path: path.read_text(), file, pytest.fail) == "there"
    with pytest.raises(ZeroDivisionError):
        again_if_gone(lambda _: 1 / 0, file, pytest.fail)


@pytest.mark.slow
def test_runs_that_prune_at_the_same_time_do_not_disturb_each_other(index):
    features, _ = index
    folder, vocabulary = cache_path(features), vocabulary_of(features)
    work, own = Work(folder, vocabulary.settings), names(features)
    old = [f"{i:016x}-{'0' * 16}.parquet" for i in range(300)]
    for name in old:
        (folder / name).touch()
        age(folder / name)
    with ThreadPoolExecutor(4) as pool:
        removed = [name for part in pool.map(work.prune, [vocabulary] * 4) for name in part]
    assert sorted(removed) == old
    assert names(features) == own


# ------------------------------------------------------------------ frames between two passes


@pytest.fixture
def decoded(monkeypatch):
    """Return the list of videos that are decoded, in their order."""
    seen = []

    def counted(path, **options):
        seen.append(os.path.basename(path))  # noqa: PTH119
        yield from read_frames(path, **options)

    monkeypatch.setattr("gmil.video.cache.read_frames", counted)
    return seen


def test_a_video_is_decoded_once_by_an_index_and_once_by_folds(decoded, index):
    features, data = index
    assert sorted(decoded) == [f"v{i}.webm" for i in range(6)]
    assert not [name for name in names(features) if name.endswith(".frames")]
    decoded.clear()
    for name in names(features):
        if name.endswith(".npy"):
            (cache_path(features) / name).unlink()  # samples, which folds draw again
    bags_for_folds(features, data, label_folds(data.y, 2, 0))
    assert sorted(decoded) == [f"v{i}.webm" for i in range(6)]
    assert not [name for name in names(features) if name.endswith(".frames")]


@pytest.mark.parametrize("most", [0, 20_000])
def test_frames_without_room_are_decoded_again_with_the_same_result(most, decoded, index, tmp_path, monkeypatch):
    features, _ = index
    decoded.clear()
    monkeypatch.setattr("gmil.video.kept_frames.MOST_BYTES", most)
    again = tmp_path / "again.parquet"
    index_videos(sorted(tmp_path.glob("*.webm")), again, IndexSettings(n_words=6))
    assert sorted(decoded) == sorted(2 * [f"v{i}.webm" for i in range(6)])
    assert not [name for name in names(again) if name.endswith(".frames")]
    np.testing.assert_array_equal(read_features(again).instances, read_features(features).instances)


def some_frames(n=4, shape=(5, 7)):
    rng = np.random.default_rng(0)
    return [Frame(rng.integers(0, 256, shape, dtype=np.uint8), i / 25) for i in range(n)]


def test_kept_frames_are_what_went_by(tmp_path):
    frames, target = some_frames(), tmp_path / "a.frames"
    assert len(list(keeping(frames, target, 10**6))) == 4
    for found, expected in zip(kept_frames(target), frames, strict=True):
        np.testing.assert_array_equal(found.gray, expected.gray)
        assert found.time == expected.time
    assert [path.name for path in tmp_path.iterdir()] == ["a.frames"]
    assert kept_frames(tmp_path / "none.frames") is None


def test_frames_of_a_video_that_breaks_off_are_not_kept(tmp_path):
    def broken():
        yield from some_frames()
        msg = "cut short"
        raise VideoError(msg)

    with pytest.raises(VideoError, match="cut short"):
        list(keeping(broken(), tmp_path / "a.frames", 10**6))
    next(keeping(some_frames(), tmp_path / "b.frames", 10**6))  # nobody takes the rest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_file_of_frames_without_its_end_is_refused(tmp_path, share):
    target = tmp_path / "a.frames"
    list(keeping(some_frames(), target, 10**6))
    whole = target.read_bytes()
    target.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(VideoError, match=r"a\.frames is damaged: it has no end\. Remove it"):
        list(kept_frames(target))
