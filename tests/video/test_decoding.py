"""Decoding: frames, times, rates and sizes; every kind of bad file is one clear sentence."""

from __future__ import annotations

import wave

import numpy as np
import pytest
from tests.video.conftest import encode, moving_frames

from gmil.errors import BackendUnavailableError, VideoError
from gmil.video import decoding
from gmil.video.decoding import read_frames, video_info


@pytest.mark.parametrize(("name", "codec"), [("a.webm", "libvpx"), ("a.mp4", "libx264"), ("a.avi", "mpeg4")])
def test_frames_and_times_are_those_that_were_written(clip, name, codec):
    found = list(read_frames(clip(name, codec=codec)))
    expected = moving_frames()
    assert len(found) == 20
    np.testing.assert_allclose([frame.time for frame in found], np.arange(20) / 25, atol=1e-6)
    for frame, gray in zip(found, expected, strict=True):
        assert frame.gray.dtype == np.uint8
        assert np.abs(frame.gray.astype(int) - gray).mean() < 10  # what the codec loses


@pytest.mark.parametrize("name", ["a:b.webm", "concat:c.webm", "-o %d.webm", "ü #?|'.webm"])
def test_names_of_odd_characters_are_names(clip, tmp_path, monkeypatch, name):
    clip().rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert len(list(read_frames(name))) == 20


def test_large_pictures_are_made_smaller_and_odd_sizes_are_read(clip):
    odd = clip("odd.mkv", codec="libvpx", height=51, width=67)
    assert {frame.gray.shape for frame in read_frames(odd)} == {(51, 67)}
    assert {frame.gray.shape for frame in read_frames(odd, longest_side=40)} == {(30, 40)}
    assert video_info(odd)[:2] == (67, 51)


def test_a_variable_frame_rate_becomes_a_steady_one(clip):
    """A frame at 0, 40, 80, 400, 440 ms: the one at 80 ms stands still until the one at 400 ms is nearer."""
    path = clip("variable.mkv", n_frames=5, times=[0, 40, 80, 400, 440])
    found = list(read_frames(path, rate=25))
    originals = [frame.astype(int) for frame in moving_frames(n_frames=5)]
    shown = [int(np.argmin([np.abs(f.gray - o).mean() for o in originals])) for f in found]
    steps = np.diff([frame.time for frame in found])
    np.testing.assert_allclose(steps, steps[0], atol=1e-9)
    assert shown == sorted(shown)
    held = np.bincount(shown, minlength=5)
    assert held[2] + held[3] > 5 * held[0]
    assert set(shown) == {0, 1, 2, 3, 4}


def test_a_fast_video_is_brought_to_the_rate_and_a_near_one_keeps_its_own(clip):
    fast = list(read_frames(clip("fast.webm", rate=50), rate=25))
    assert len(fast) == 10
    np.testing.assert_allclose([frame.time for frame in fast], np.arange(10) / 25, atol=1e-3)
    assert len(list(read_frames(clip("near.webm", rate=30), rate=25))) == 20


@pytest.mark.parametrize("angle", [90, 180, -90])
def test_a_video_that_lies_on_its_side_is_turned_up(tmp_path, angle):
    av = pytest.importorskip("av")
    pictures = moving_frames(6)
    with av.open(str(tmp_path / "turned.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.height, stream.width = pictures[0].shape
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "5"}
        if not hasattr(stream, "set_display_rotation"):
            pytest.skip("this PyAV cannot write how a video is to be turned")
        stream.set_display_rotation(angle)
        for gray in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(gray, format="gray").reformat(format="yuv420p")))
        container.mux(stream.encode())
    found = [frame.gray for frame in read_frames(tmp_path / "turned.mp4")]
    expected = np.rot90(pictures[0], round(angle / 90))
    assert found[0].shape == expected.shape
    assert np.corrcoef(found[0].ravel(), expected.ravel())[0, 1] > 0.98


def test_ten_bits_of_colour_are_read_as_eight(tmp_path):
    av = pytest.importorskip("av")
    pictures = moving_frames(6)
    with av.open(str(tmp_path / "deep.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.height, stream.width = pictures[0].shape
        stream.pix_fmt = "yuv420p10le"
        for gray in pictures:
            picture = av.VideoFrame.from_ndarray(gray, format="gray").reformat(format="yuv420p10le")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    found = [frame.gray for frame in read_frames(tmp_path / "deep.mkv")]
    assert len(found) == 6
    assert np.abs(found[0].astype(int) - pictures[0]).mean() < 3


def test_a_video_of_one_frame_is_one_frame(tmp_path):
    path = encode(tmp_path / "one.webm", moving_frames(1))
    assert len(list(read_frames(path))) == 1


# ------------------------------------------------------------------ bad files


def sound_file(path):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 800)
    return path


def cut(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    return path


def written(path, text):
    path.write_text(text)
    return path


BAD = {
    "not a video": (lambda folder: written(folder / "x.mp4", "hello" * 50), "x.mp4 cannot be read as a video"),
    "cut WebM": (lambda folder: cut(encode(folder / "x.webm", moving_frames()), 0.6), "x.webm is cut short: it should"),
    "cut MP4": (lambda folder: cut(encode(folder / "x.mp4", moving_frames(), codec="libx264"), 0.5), "cut short"),
    "no frames": (lambda folder: encode(folder / "x.mkv", [], codec="mpeg4"), "x.mkv"),
    "sound only": (lambda folder: sound_file(folder / "x.wav"), "x.wav has no video in it, only audio"),
    "folder": (lambda folder: folder, "is a folder, not a video. Name the files in it"),
    "no bytes": (lambda folder: written(folder / "x.webm", ""), "x.webm is empty: it has 0 bytes"),
    "missing": (lambda folder: folder / "x.webm", "x.webm does not exist. Check the name"),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_one_clear_sentence(tmp_path, make, message):
    pytest.importorskip("av")
    with pytest.raises(VideoError, match=message) as error:
        list(read_frames(make(tmp_path)))
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_time_stamps_that_jump_are_refused(clip):
    path = clip("jump.mkv", n_frames=3, times=[0, 40, 1_000_000])
    with pytest.raises(VideoError, match=r"jump.mkv is damaged: its time stamps jump from 0.0 s to 1000.0 s"):
        list(read_frames(path))


def test_without_pyav_the_install_command_is_named(monkeypatch, clip):
    path = clip()
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'gmil\[video\]'"):
        decoding.import_av()
    with pytest.raises(BackendUnavailableError):
        list(read_frames(path))
