"""Features of frames from elsewhere: files of every kind, and files that lie."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import gmil
from gmil.errors import ColumnWarning, FormatError, MissingFileError
from gmil.video import read_features
from gmil.video.features import times_of


def test_bad_feature_files_are_one_clear_sentence(tmp_path):
    with pytest.raises(MissingFileError, match="every bag must be a file of its own"):
        read_features(tmp_path)
    np.save(tmp_path / "a.npy", np.zeros(5))
    with pytest.raises(FormatError, match=r"a.npy must hold one matrix of numbers .*\(5,\)"):
        read_features(tmp_path)
    np.save(tmp_path / "a.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(FormatError, match=r"a.npy cannot be read as a NumPy array"):
        read_features(tmp_path)
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 4)))
    with pytest.raises(gmil.BagValidationError, match="Bag 1 has 4 features, but bag 0 has 3"):
        read_features(tmp_path)


def test_a_header_that_claims_more_than_is_there_takes_no_memory(tmp_path):
    with (tmp_path / "a.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**10, 100)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(FormatError, match=r"a.npy cannot be read as a NumPy array"):
        read_features(tmp_path)


def test_half_written_files_are_no_videos_and_a_name_stands_for_one(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / ".b-half.npy", np.zeros((1, 3)))
    assert read_features(tmp_path).bag_ids.tolist() == ["a"]
    np.savez(tmp_path / "a.npz", features=np.zeros((2, 3)))
    with pytest.raises(gmil.BagValidationError, match="several files for bag a"):
        read_features(tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_frame_and_time_of_any_table_are_no_features(tmp_path, suffix):
    info = {"frame": np.array([0, 2, 0]), "time": np.array([0.0, 0.5, 0.0])}
    bags = gmil.Bags(np.arange(6.0).reshape(3, 2), [0, 2, 3], np.array(["x", "z"]), ["p", "q"], info)
    is_told = suffix != ".parquet"
    with pytest.warns(ColumnWarning, match="are numbers, .*leave them out") if is_told else contextlib.nullcontext():
        gmil.write(tmp_path / f"t{suffix}", bags)
    found = read_features(tmp_path / f"t{suffix}")
    assert found.n_features == 2
    assert times_of(found).tolist() == [0.0, 0.5, 0.0]
    assert found.instance_info.column("frame").to_pylist() == [0, 2, 0]


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(tmp_path, rate):
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    with pytest.raises(FormatError, match=f"rate must be a number of rows per second above 0, got {rate}"):
        read_features(tmp_path, rate=rate)


def test_a_video_of_which_a_time_is_missing_counts_frames():
    times = np.array([0.0, np.nan, 0.4, 0.0, 0.2])
    info = {"video": np.array(list("xxxzz")), "frame": np.array([0, 1, 2, 0, 1]), "time": times}
    bags = gmil.Bags(np.zeros((5, 1)), [0, 3, 5], np.array(["x", "z"]), None, info)
    assert times_of(bags).tolist() == [0.0, 1.0, 2.0, 0.0, 0.2]
