"""Features of snippets as the field keeps them, temporal annotations, and frame-level figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.video.test_events import run

import gmil
from gmil.errors import FormatError, GmilError, MissingFileError, VideoError
from gmil.video import EventDetectors, read_annotations, read_features, score_frames
from gmil.video.snippets.annotations import Annotation
from gmil.video.snippets.names import by_video, short_name

RNG = np.random.default_rng(0)


def crops(n, d=4, seed=0):
    """Return features of ``n`` snippets with ten crops, (n, 10, d)."""
    return np.random.default_rng(seed).normal(size=(n, 10, d)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1])
def test_crops_are_on_the_axis_that_has_ten_in_every_video(tmp_path, axis):
    arrays = {"a": crops(3), "b": crops(10, seed=1), "c": crops(7, seed=2)}  # of b alone one could not tell
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", np.moveaxis(array, 1, axis))
    mean, first, every = (read_features(tmp_path, crops=how) for how in ("mean", "first", "all"))
    assert mean.bag_ids.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(mean.instances[3:13], arrays["b"].mean(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(first.instances[:3], arrays["a"][:, 0])
    np.testing.assert_array_equal(every.instances[:30], arrays["a"].reshape(30, 4))
    assert mean.instance_info.column("frame").to_pylist()[:4] == [0, 16, 32, 0]
    assert every.instance_info.column("frame").to_pylist()[:31] == [0] * 10 + [16] * 10 + [32] * 10 + [0]


def test_crops_may_be_files_of_their_own_in_folders_of_classes(tmp_path):
    array = crops(5)
    (tmp_path / "Abuse").mkdir()
    for i in range(10):
        np.save(tmp_path / "Abuse" / f"Abuse001_x264__{i}.npy", array[:, i])
    np.save(tmp_path / "Normal_7.npy", array[:2, 0])
    bags = read_features(tmp_path)
    assert bags.bag_ids.tolist() == ["Abuse001_x264", "Normal_7"]
    np.testing.assert_allclose(bags.instances[:5], array.mean(axis=1), rtol=1e-6)


def test_numbers_in_names_are_no_crops(tmp_path):
    names = ["clip_0", "clip_1", "take__3"]
    found = by_video([tmp_path / f"{name}.npy" for name in names])
    assert list(found) == names


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_other_files_hold_the_same(tmp_path, suffix):
    (tmp_path / "d").mkdir()
    array = crops(4)
    if suffix == ".npz":
        np.savez(tmp_path / "d" / "v.npz", features=array, fps=np.array(25.0))
    else:
        h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py: pip install 'gmil[slides]'")
        with h5py.File(tmp_path / "d" / "v.h5", "w") as file:
            file["features"] = array
        with h5py.File(tmp_path / "all.h5", "w") as file:
            file["v"], file["w"] = array, array[:2]
        assert read_features(tmp_path / "all.h5").sizes.tolist() == [4, 2]
    np.testing.assert_allclose(read_features(tmp_path / "d").instances, array.mean(axis=1), rtol=1e-6)


def test_lists_come_from_other_machines(tmp_path):
    (tmp_path / "i3d").mkdir()
    for name in ("a_i3d", "b_i3d", "c_i3d"):
        np.save(tmp_path / "i3d" / f"{name}.npy", crops(3))
    listing = tmp_path / "test.list"
    listing.write_text("/home/yu/i3d/b_i3d.npy\ni3d/a_i3d.npy 0\n")
    assert read_features(listing).bag_ids.tolist() == ["b_i3d", "a_i3d"]
    listing.write_text("nowhere.npy\n")
    with pytest.raises(MissingFileError, match=r"lists 1 file that is not there: nowhere.npy"):
        read_features(listing)


def test_a_list_takes_the_file_whose_path_ends_most_alike(tmp_path):
    for i, folder in enumerate(["rgb/train", "rgb/test", "flow/test"]):
        (tmp_path / folder).mkdir(parents=True)
        np.save(tmp_path / folder / "a.npy", np.full((2, 3), i))
    listing = tmp_path / "some.list"
    for i, line in enumerate(["/home/yu/train/a.npy", "/home/yu/rgb/test/a.npy", "D:\\yu\\flow\\test\\a.mp4"]):
        listing.write_text(f"{line}\n")
        assert read_features(listing).instances[0, 0] == i
    for line in ("/home/yu/a.npy", "/home/yu/test/a.npy"):
        listing.write_text(f"{line}\n")
        with pytest.raises(FormatError, match=rf"lists {line}, which may be .*a.npy or .*a.npy. Write its path"):
            read_features(listing)
    np.save(tmp_path / "rgb" / "test" / "b.npy", crops(3))
    listing.write_text("/home/yu/train/b.npy\n/home/yu/test/b.npy\n")
    with pytest.raises(MissingFileError, match=r"lists /home/yu/train/b.npy and .* but there is only .*b.npy for both"):
        read_features(listing)


def test_features_that_could_run_code_or_are_no_features_are_refused(tmp_path):
    (tmp_path / "d").mkdir()
    np.save(tmp_path / "d" / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match=r"a.npy cannot be read"):
        read_features(tmp_path)
    np.save(tmp_path / "d" / "a.npy", np.zeros((3, 7, 4)))
    with pytest.raises(FormatError, match=r"shape \(3, 7, 4\): of three axes one must be the crops"):
        read_features(tmp_path)
    np.save(tmp_path / "d" / "a.npy", np.zeros((0, 4)))
    with pytest.raises(FormatError, match="must be numbers of shape"):
        read_features(tmp_path)
    with pytest.raises(VideoError, match="crops must be one of"):
        read_features(tmp_path, crops="some")


def test_names_lose_folder_suffix_and_tool():
    assert short_name("Abuse/Abuse028_x264.mp4") == short_name("x\\Abuse028_x264_i3d.npy") == "Abuse028_x264"


def test_annotations_are_read_as_they_are_written(tmp_path):
    lines = [
        "Abuse028_x264.mp4  Abuse  165  240  -1  -1",
        "Burglary005_x264.mp4 Burglary 10 20 30 40",
        "Normal_Videos_003_x264.mp4  Normal  -1  -1  -1  -1",
        "v=1__#00-01-02_label_B6-0-0 0 5",
        "v=2__#00_label_A",
    ]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    found = read_annotations(tmp_path / "t.txt")
    assert found["Abuse028_x264"] == Annotation("Abuse", [(165, 240)])
    assert found["Burglary005_x264"].spans == [(10, 20), (30, 40)]
    assert found["Normal_Videos_003_x264"] == Annotation("Normal")
    assert [found[name].kind for name in list(found)[3:]] == ["B6", "Normal"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.mp4 Abuse 5", "has 1 times, but every start needs an end"),
        ("a.mp4 Abuse 9 5", "starts at frame 9 and ends at 5"),
        ("a.mp4 Abuse five 9", "must be: name class start end"),
        ("a.mp4 Abuse 1 2\na.avi Abuse 1 2", "names a for the second time"),
        ("", "has no lines"),
    ],
)
def test_annotations_that_make_no_sense_are_refused(tmp_path, line, message):
    (tmp_path / "t.txt").write_text(line)
    with pytest.raises(GmilError, match=message):
        read_annotations(tmp_path / "t.txt")


def test_figures_are_those_of_every_frame_by_hand():
    annotations = {
        "a": Annotation("Abuse", [(4, 9)]),
        "b": Annotation("Theft", [(0, 3), (12, 15)]),
        "n": Annotation("Normal"),
    }
    names, rng = ["a_i3d", "b_i3d", "n_i3d"], np.random.default_rng(3)
    scores = [rng.normal(size=4) for _ in names]
    starts = [np.arange(4) * 4] * 3
    found = score_frames(names, scores, starts, annotations, snippet_frames=4)
    truth = np.zeros((3, 16), dtype=int)
    truth[0, 4:10] = truth[1, 0:4] = truth[1, 12:16] = 1
    frames = np.repeat(scores, 4, axis=1)
    assert found.auc == pytest.approx(roc_auc_score(truth.ravel(), frames.ravel()))
    assert found.average_precision == pytest.approx(average_precision_score(truth.ravel(), frames.ravel()))
    assert found.auc_anomalous == pytest.approx(roc_auc_score(truth[:2].ravel(), frames[:2].ravel()))
    theft = roc_auc_score(truth[1:].ravel(), frames[1:].ravel())
    assert found.by_class["Theft"][0] == pytest.approx(theft)
    assert (found.n_videos, found.n_frames, found.by_class["Abuse"][2]) == (3, 48, 1)
    doubled = [np.repeat(own, 2) for own in scores]  # two crops of every snippet
    assert score_frames(names, doubled, [np.repeat(s, 2) for s in starts], annotations, 4) == found
    with pytest.raises(VideoError, match="1 of 3 videos are not annotated: x"):
        score_frames(["a", "b", "x"], scores, starts, annotations)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_rows_of_a_flat_folder_are_snippets_where_that_is_said(tmp_path, suffix):
    matrix = crops(3)[:, 0]
    if suffix == ".npy":
        np.save(tmp_path / "a.npy", matrix)
    elif suffix == ".npz":
        np.savez(tmp_path / "a.npz", features=matrix)
    else:
        gmil.write(tmp_path / "a.parquet", gmil.Bags(matrix, [0, 3]))
    frames, snippets = read_features(tmp_path, rate=2.0), read_features(tmp_path, rate=2.0, snippet_frames=8)
    assert frames.instance_info.column("frame").to_pylist() == [0, 1, 2]
    assert snippets.instance_info.column("frame").to_pylist() == [0, 8, 16]
    assert snippets.instance_info.column("time").to_pylist() == [0, 0.5, 1]  # a rate counts rows


def test_frames_that_a_file_holds_are_what_they_are(tmp_path):
    np.savez(tmp_path / "a.npz", features=crops(3)[:, 0], frame=np.array([4, 9, 14]))
    bags = read_features(tmp_path, snippet_frames=16)
    assert bags.instance_info.column("frame").to_pylist() == [4, 9, 14]


def test_events_beyond_the_end_of_a_video_are_named():
    annotations = {"a": Annotation("Theft", [(0, 3), (40, 50)]), "b": Annotation("Normal")}
    scores, starts = [np.array([1.0, 0.0])] * 2, [np.array([0, 4])] * 2
    with pytest.warns(UserWarning, match=r"1 annotated event lies beyond the frames .* a \(40 to 50, of 8 frames\)"):
        assert score_frames(["a", "b"], scores, starts, annotations, 4).n_frames == 16


@pytest.mark.parametrize("n_crops", [10, 0])
def test_score_on_the_command_line(tmp_path, n_crops):
    rng = np.random.default_rng(4)
    (tmp_path / "f").mkdir()
    rows, lines = [], []
    for i in range(16):
        features = rng.normal(size=(12, 10, 3)).astype(np.float32)
        if i % 2:
            features[4:8, :, 0] += 4
        np.save(tmp_path / "f" / f"v{i}_i3d.npy", features if n_crops else features.mean(axis=1))
        rows.append(f"v{i}.mp4,{'theft' if i % 2 else ''}")
        lines.append(f"v{i}.mp4 {'Theft 64 127' if i % 2 else 'Normal -1 -1'} -1 -1")
    (tmp_path / "labels.csv").write_text("\n".join(["video,event", *rows]))
    (tmp_path / "t.txt").write_text("\n".join(lines))
    model = tmp_path / "m.gmil"
    trained = run("train", tmp_path / "f", "--labels", tmp_path / "labels.csv", "-o", model)
    assert trained.exit_code == 0, trained.stderr
    result = run("score", model, tmp_path / "f", "--annotations", tmp_path / "t.txt", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["n_frames"] == 16 * 12 * 16
    assert found["auc"] > 0.95
    assert found["by_class"]["Theft"]["videos"] == 8
    table = run("score", model, tmp_path / "f", "--annotations", tmp_path / "t.txt").stdout
    assert "anomalous videos alone" in table
    assert EventDetectors.load(model).smoothing is not None
    lines[1] = "v1.mp4 Theft 500 600 -1 -1"
    (tmp_path / "t.txt").write_text("\n".join(lines))
    said = run("score", model, tmp_path / "f", "--annotations", tmp_path / "t.txt").stderr
    assert "v1_i3d (500 to 600, of 192 frames)" in said
