"""From videos to detectors on the command line: index, train, cv, detect, with bad videos among them."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from tests.video.conftest import encode, moving_frames

import gmil
from gmil.cli.main import main
from gmil.errors import FormatError, VideoError
from gmil.video import (
    EventDetectors,
    IndexSettings,
    Vocabulary,
    bags_for_folds,
    detect,
    index_videos,
    label_folds,
    match_labels,
    overlap,
    read_event_labels,
    read_features,
    segments,
    vocabulary_of,
)
from gmil.video import cache as caching
from gmil.video.batches import Batch, named_videos
from gmil.video.indexing import cache_path, vocabulary_path
from gmil.video.timeline import TimeLine, stretch_scores


def run(*arguments):
    result = CliRunner().invoke(main, ["video", *(str(a) for a in arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight clips, every second of them fast; index and labels beside them."""
    where = tmp_path_factory.mktemp("videos")
    for i in range(8):
        encode(where / f"v{i}.webm", moving_frames(seed=i, speed=1 + 3 * (i % 2)))
    rows = [f"v{i}.webm,{'fast' if i % 2 else ''},0,0.8" for i in range(8)]
    (where / "labels.csv").write_text("\n".join(["video,event,start,end", *rows]) + "\n")
    result = run("index", *sorted(where.glob("*.webm")), "-o", where / "frames.parquet", "--words", 12)
    assert result.exit_code == 0, result.stderr
    return where


# ------------------------------------------------------------------ index


def test_index_writes_frames_as_instances_and_the_vocabulary_beside_them(folder):
    bags, y = gmil.read(folder / "frames.parquet")
    assert y is None
    assert bags.bag_ids.tolist() == [f"v{i}.webm" for i in range(8)]
    assert bags.shape == (8, 12)
    assert bags.sizes.tolist() == [20] * 8
    info = bags.instance_info
    assert info.column_names == ["video", "frame", "time"]
    assert info.column("frame").to_pylist()[:21] == [*range(20), 0]
    assert info.column("time").to_pylist()[19] == pytest.approx(0.76)
    np.testing.assert_allclose(bags.instances.sum(axis=1), 1, rtol=1e-5)
    assert pq.read_schema(folder / "frames.parquet").field("features").type.list_size == 12
    assert vocabulary_of(folder / "frames.parquet").words.shape == (12, 960)


def test_bad_videos_are_named_and_the_rest_is_done(folder, tmp_path):
    (tmp_path / "broken.mp4").write_text("no video")
    (tmp_path / "empty.mp4").touch()
    encode(tmp_path / "short.webm", moving_frames(5))
    encode(tmp_path / "small.webm", moving_frames(20, height=20, width=40))
    bad = [tmp_path / name for name in ("broken.mp4", "empty.mp4", "short.webm", "small.webm", "missing.mp4")]
    result = run(
        "index", folder / "v0.webm", *bad, tmp_path, folder / "v1.webm", "-o", tmp_path / "f.parquet", "--words", 5
    )
    assert result.exit_code == 1
    lines = [line for line in result.stderr.splitlines() if line.startswith("left out: ")]
    assert len(lines) == 6
    assert "short.webm has 5 frames, but a descriptor spans 9" in result.stderr
    assert "small.webm is 40x20 pixels, but a descriptor spans 24x24" in result.stderr
    assert all(name.name in result.stderr for name in bad)
    assert read_features(tmp_path / "f.parquet").bag_ids.tolist() == ["v0.webm", "v1.webm"]


def test_nothing_is_written_where_no_video_can_be_read(tmp_path):
    (tmp_path / "broken.mp4").write_text("no video")
    result = run("index", tmp_path / "broken.mp4", "-o", tmp_path / "f.parquet")
    assert result.exit_code == 2
    assert "None of 1 video can be indexed" in result.stderr
    assert not (tmp_path / "f.parquet").exists()


def test_targets_that_cannot_be_are_refused_before_the_work(folder, tmp_path):
    calls = [
        (["index", folder / "v0.webm", "-o", tmp_path / "f.csv"], "The frames are written to a .parquet file"),
        (["train", "nothing", "--labels", "nothing", "-o", tmp_path / "no" / "m.gmil"], "there is no folder"),
        (["detect", "nothing", "nothing.mp4", "--html", tmp_path], "it is a folder. Name a file in it."),
    ]
    for arguments, sentence in calls:
        result = run(*arguments)
        assert result.exit_code == 2
        assert sentence in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_indexed_is_not_done_again(folder, tmp_path, monkeypatch):
    looks = []
    plain = caching.read_frames

    def counted(path, **options):
        looks.append(Path(path).name)
        return plain(path, **options)

    monkeypatch.setattr(caching, "read_frames", counted)
    settings = IndexSettings(n_words=5)
    output = tmp_path / "f.parquet"
    first = index_videos([folder / "v0.webm", folder / "v1.webm"], output, settings)
    assert first.learned
    assert looks == ["v0.webm", "v1.webm"]  # frames are kept for counting
    looks.clear()
    again = index_videos([folder / "v0.webm", folder / "v1.webm", folder / "v2.webm"], output, settings)
    assert looks == ["v2.webm"]
    assert not again.learned
    assert again.vocabulary.digest == first.vocabulary.digest
    looks.clear()
    index_videos([folder / "v0.webm"], output, IndexSettings(n_words=4))  # other words, the same sample
    assert looks == ["v0.webm"]
    assert not [file for file in cache_path(output).iterdir() if file.name.startswith(".")]


def test_videos_that_are_not_named_again_are_said_to_be_gone(folder, tmp_path):
    output, videos = tmp_path / "f.parquet", [folder / f"v{i}.webm" for i in range(3)]
    first = run("index", *videos[:2], "-o", output, "--words", 4)
    assert "any more" not in first.stderr
    assert "any more" not in run("index", *videos, "-o", output, "--words", 4).stderr
    result = run("index", videos[2], "-o", output, "--words", 4)
    assert "f.parquet: 1 video; 4 words used again." in result.stderr
    assert "2 videos that were in it are not any more: v0.webm, v1.webm. Name all videos to keep them" in result.stderr


def test_a_video_that_breaks_off_leaves_no_half_file(folder, tmp_path):
    data = (folder / "v0.webm").read_bytes()
    (tmp_path / "cut.webm").write_bytes(data[: int(0.6 * len(data))])
    with pytest.raises(VideoError, match="cut short"):
        index_videos([tmp_path / "cut.webm"], tmp_path / "f.parquet", IndexSettings(n_words=2))
    assert list(cache_path(tmp_path / "f.parquet").iterdir()) == []


def test_a_vocabulary_is_used_again_for_new_videos(folder, tmp_path):
    words = vocabulary_path(folder / "frames.parquet")
    result = run("index", folder / "v3.webm", "-o", tmp_path / "new.parquet", "--vocabulary", words)
    assert "12 words used again" in result.stderr
    old, new = read_features(folder / "frames.parquet"), read_features(tmp_path / "new.parquet")
    np.testing.assert_array_equal(new.instances, old[3])
    assert Vocabulary.load(vocabulary_path(tmp_path / "new.parquet")).digest == Vocabulary.load(words).digest


@pytest.mark.slow
def test_processes_change_nothing(folder, tmp_path):
    index_videos(sorted(folder.glob("*.webm")), tmp_path / "two.parquet", IndexSettings(n_words=12), n_processes=2)
    one, two = read_features(folder / "frames.parquet"), read_features(tmp_path / "two.parquet")
    np.testing.assert_array_equal(one.instances, two.instances)


@pytest.mark.parametrize(
    "call",
    [
        lambda n_jobs: index_videos([], "frames.parquet", n_jobs=n_jobs),
        lambda n_jobs: detect(None, [], n_jobs=n_jobs),
        lambda n_jobs: bags_for_folds("frames.parquet", None, None, vocabulary="none", n_jobs=n_jobs),
    ],
)
def test_processes_have_their_old_name_with_a_warning(call):
    with pytest.warns(FutureWarning, match="n_processes"), pytest.raises(VideoError):
        call(1)


def test_files_of_one_name_are_told_apart_and_a_file_counts_once(tmp_path):
    names = named_videos([tmp_path / "a" / "x.mp4", tmp_path / "b" / "x.mp4", tmp_path / "a" / ".." / "a" / "x.mp4"])
    assert list(names) == ["a/x.mp4", "b/x.mp4"]
    with pytest.raises(VideoError, match="No videos are listed"):
        named_videos([])


def test_progress_counts_every_video():
    seen = []
    batch = Batch(progress=lambda *done: seen.append(done))
    assert batch.each("Naming", str, {"a": Path("a"), "b": Path("b")}) == {"a": "a", "b": "b"}
    assert seen == [("Naming", 1, 2), ("Naming", 2, 2)]


# ------------------------------------------------------------------ train, cv, detect


def test_groups_stay_together_in_folds_choices_and_intervals(folder, tmp_path, monkeypatch):
    cameras = [f"c{i // 2}" for i in range(8)]
    (tmp_path / "groups.csv").write_text("\n".join(["video,group", *(f"v{i},{c}" for i, c in enumerate(cameras))]))
    seen = []
    fit = gmil.WeightedGMIL.fit
    monkeypatch.setattr(
        gmil.WeightedGMIL,
        "fit",
        lambda model, X, y, *, groups=None: seen.append(groups.tolist()) or fit(model, X, y, groups=groups),
    )
    options = ["--labels", folder / "labels.csv", "--group", tmp_path / "groups.csv", "--folds", 2, "--topics", 0]
    result = run("cv", folder / "frames.parquet", *options, "--vocabulary", "shared", "--json")
    found = json.loads(result.stdout)
    assert found["groups"] == 4
    assert sorted(itertools.chain(*seen)) == sorted(cameras)
    assert all(kept.count(camera) == 2 for kept in seen for camera in kept)
    [event] = found["events"]
    assert event["auc_interval"][0] <= event["auc"] <= event["auc_interval"][1]
    assert event["accuracy_interval"][0] <= event["accuracy"] <= event["accuracy_interval"][1]
    table = run("cv", folder / "frames.parquet", *options, "--vocabulary", "shared").stdout
    assert "2-fold by 4 groups" in " ".join(table.split())
    run("train", folder / "frames.parquet", *options[:4], "--topics", 0, "-o", tmp_path / "m.gmil")
    assert seen[-1] == cameras


def test_train_and_detect_say_what_happens_and_when(folder, tmp_path):
    model, page = tmp_path / "events.gmil", tmp_path / "page.html"
    trained = run("train", folder / "frames.parquet", "--labels", folder / "labels.csv", "-o", model)
    assert trained.exit_code == 0, trained.stderr
    assert "1 detector from 8 videos (fast 4)" in trained.stderr
    encode(tmp_path / "new.webm", moving_frames(seed=50, speed=4))
    (tmp_path / "bad.webm").write_text("no video")
    table = run("detect", model, tmp_path / "new.webm", tmp_path / "bad.webm", "--html", page)
    assert table.exit_code == 1
    assert "bad.webm cannot be read as a video" in table.stderr
    header, row = table.stdout.splitlines()
    assert header.split() == ["video", "event", "probability", "when"]
    assert row.split()[:2] == ["new.webm", "fast"]
    assert 'src="new.webm"' in page.read_text()
    [found] = json.loads(run("detect", model, tmp_path / "new.webm", "--json").stdout)
    [event] = found["events"]
    assert event["happens"]
    assert event["probability"] > 0.5
    assert {name: len(values) for name, values in event["time_line"].items()} == dict.fromkeys(
        ("time", "score", "probability"), 20
    )
    assert 0 <= event["segments"][0]["start"] < event["segments"][0]["end"] <= 0.8


def test_a_stretch_that_lasts_less_than_nothing_is_refused(folder, tmp_path):
    arguments = ["train", folder / "frames.parquet", "--labels", folder / "labels.csv", "-o", tmp_path / "m.gmil"]
    result = run(*arguments, "--stretch", -1)
    assert result.exit_code == 2
    assert "stretch must be a number of seconds, 0 or more, got -1.0." in result.stderr


def test_detectors_are_what_was_saved(folder, tmp_path):
    data = match_labels(read_features(folder / "frames.parquet"), read_event_labels(folder / "labels.csv"))
    two = np.column_stack([data.y[:, 0], 1 - data.y[:, 0]])
    for estimator in (None, gmil.GMIL(n_clusters=4, random_state=0)):
        model = EventDetectors.fit(data.bags, two, ["fast", "slow"], estimator=estimator)
        model.save(tmp_path / "events.gmil")
        again = EventDetectors.load(tmp_path / "events.gmil")
        np.testing.assert_array_equal(again.decide(data.bags), model.decide(data.bags))
        np.testing.assert_array_equal(again.probabilities(data.bags), model.probabilities(data.bags))
        assert ((model.decide(data.bags) > 0) == two).mean() > 0.8
        assert (again.events, again.stretch) == (["fast", "slow"], model.stretch)


@pytest.mark.parametrize(
    ("vocabulary", "said"), [("folds", "learned in the training folds"), ("shared", "shared by all folds")]
)
def test_cv_names_the_vocabulary(folder, vocabulary, said):
    options = ["--labels", folder / "labels.csv", "--folds", 4, "--vocabulary", vocabulary]
    result = run("cv", folder / "frames.parquet", *options, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["vocabulary"] == said
    [row] = found["events"]
    assert (row["event"], row["positives"]) == ("fast", 4)
    assert row["balanced_accuracy"] >= 0.75
    assert 0 <= row["time_found"] <= 1
    assert found["topics"] == [25, 50, 100]
    assert f"{said}; topics: none" in run("cv", folder / "frames.parquet", *options, "--topics", 0).stdout


def test_an_area_that_no_fold_has_is_null_and_the_reason_is_said(folder, tmp_path):
    rows = [f"v{i}.webm,{'fast' if i % 2 else ''},{i % 2}{i // 4}" for i in range(8)]  # cameras see one kind alone
    (tmp_path / "labels.csv").write_text("\n".join(["video,event,camera", *rows]))
    options = ["--labels", tmp_path / "labels.csv", "--folds", 4, "--vocabulary", "shared", "--group", "camera"]
    result = run("cv", folder / "frames.parquet", *options, "--json")
    [row] = json.loads(result.stdout, parse_constant=pytest.fail)["events"]
    assert (row["auc"], row["auc_interval"], row["auc_folds_dropped"]) == (None, [None, None], 4)
    assert "fast has no AUC: no fold has videos with and without it." in result.stderr
    assert "nan" not in run("cv", folder / "frames.parquet", *options).stdout


def test_cv_names_the_topics(folder):
    said = "shared by all folds"
    options = ["--labels", folder / "labels.csv", "--folds", 4, "--vocabulary", "shared"]
    assert f"{said}; topics: 2, 5" in run("cv", folder / "frames.parquet", *options, "--topics", "5,2").stdout
    many = run("cv", folder / "frames.parquet", *options, "--topics", "2,25,50").stdout  # there are 8 videos
    assert f"{said}; topics: 2, one per training video; per cent" in many


def test_topics_are_numbers(folder):
    result = run("cv", folder / "frames.parquet", "--labels", folder / "labels.csv", "--topics", "5;2")
    assert result.exit_code == 2
    assert "'5;2' is not a number, or several with commas between them, such as 25,50." in " ".join(
        result.stderr.split()
    )


def test_words_of_folds_are_learned_without_the_test_videos(folder, monkeypatch):
    from gmil.video import crossval

    data = match_labels(read_features(folder / "frames.parquet"), read_event_labels(folder / "labels.csv"))
    folds = label_folds(data.y, 4, 0)
    learned = []
    plain = crossval.learn_vocabulary
    monkeypatch.setattr(
        crossval, "learn_vocabulary", lambda samples, settings: learned.append(samples) or plain(samples, settings)
    )
    bags_of, _ = crossval.bags_for_folds(folder / "frames.parquet", data, folds)
    assert [len(samples) for samples in learned] == [6, 6, 6, 6]
    every = {sample.tobytes() for samples in learned for sample in samples}
    for fold, samples in enumerate(learned):
        left_out = every - {sample.tobytes() for sample in samples}
        assert len(left_out) == (folds == fold).sum() == 2
    assert not np.array_equal(bags_of(0).instances, bags_of(1).instances)
    assert bags_of(0).bag_ids.tolist() == data.bags.bag_ids.tolist()


def test_folds_need_the_videos_and_say_so(folder, tmp_path):
    for i in range(4):
        encode(tmp_path / f"v{i}.webm", moving_frames(seed=i, speed=1 + 3 * (i % 2)))
    videos = sorted(tmp_path.glob("*.webm"))
    index_videos(videos, tmp_path / "f.parquet", IndexSettings(n_words=5))
    videos[0].unlink()
    result = run("cv", tmp_path / "f.parquet", "--labels", folder / "labels.csv", "--folds", 2)
    assert result.exit_code == 2
    assert "1 are gone" in result.stderr
    assert "--vocabulary shared" in result.stderr


def test_balanced_detectors_take_the_rarity_of_events_out(folder):
    data = match_labels(read_features(folder / "frames.parquet"), read_event_labels(folder / "labels.csv"))
    y = np.array([[0], [1], [0], [0], [0], [1], [0], [0]])
    plain = EventDetectors.fit(data.bags, y, ["event"])
    balanced = EventDetectors.fit(data.bags, y, ["event"], balanced=True)
    np.testing.assert_allclose(balanced.decide(data.bags), plain.decide(data.bags) + np.log(6 / 2))
    expected = 1 / (1 + np.exp(-balanced.decide(data.bags)))
    np.testing.assert_allclose(balanced.probabilities(data.bags), expected)
    with pytest.raises(VideoError, match="balanced is for WeightedGMIL"):
        EventDetectors.fit(data.bags, y, ["event"], estimator=gmil.GMIL(), balanced=True)


# ------------------------------------------------------------------ features from elsewhere


def write_other_features(where, kind):
    """A file per video of 3 features a frame; the first tells the fast videos."""
    where.mkdir()
    rng = np.random.default_rng(0)
    for i in range(8):
        matrix = rng.normal(size=(20, 3)).astype(np.float32)
        matrix[:, 0] += 5 * (i % 2)
        if kind == "npy":
            np.save(where / f"v{i}.npy", matrix)
        elif kind == "npz":
            np.savez(where / f"v{i}.npz", features=matrix, time=np.arange(20) / 25)
        else:
            gmil.write(where / f"v{i}.parquet", gmil.Bags(matrix, [0, 20], None, None, {"time": np.arange(20) / 25}))
    return where


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_other_frame_features_fit_in_the_same_way(folder, tmp_path, kind):
    other = write_other_features(tmp_path / "features", kind)
    labels = ["--labels", folder / "labels.csv"]
    assert "vocabulary: none" in run("cv", "--features", other, *labels, "--folds", 4).stdout
    assert run("train", "--features", other, *labels, "-o", tmp_path / "e.gmil").exit_code == 0
    result = run("detect", tmp_path / "e.gmil", folder / "v1.webm", folder / "v2.webm", "--features", other, "--json")
    fast, slow = json.loads(result.stdout)
    assert (fast["events"][0]["happens"], slow["events"][0]["happens"]) == (True, False)
    assert fast["events"][0]["time_line"]["time"][-1] == pytest.approx(0.76, abs=0.001)


def test_times_of_labels_are_not_compared_with_numbers_of_rows(folder, tmp_path):
    other = write_other_features(tmp_path / "features", "npy")
    rows = [f"v{i}.webm,{'fast,0.1,0.5' if i % 2 else ',,'}" for i in range(8)]
    (tmp_path / "labels.csv").write_text("\n".join(["video,event,start,end", *rows]))
    result = run("cv", other, "--labels", tmp_path / "labels.csv", "--folds", 4, "--json")
    assert json.loads(result.stdout)["events"][0]["time_found"] is None
    assert "the features no times, so that time lines are not evaluated" in result.stderr


def test_detectors_of_other_features_ask_for_them(folder, tmp_path):
    other = write_other_features(tmp_path / "features", "npy")
    run("train", other, "--labels", folder / "labels.csv", "-o", tmp_path / "e.gmil")
    result = run("detect", tmp_path / "e.gmil", folder / "v1.webm")
    assert (result.exit_code, "--features" in result.stderr) == (2, True)
    result = run("detect", tmp_path / "e.gmil", folder / "v1.webm", "--features", folder / "frames.parquet")
    assert "trained on 3 features per frame, but these videos have 12" in result.stderr
    (other / "v1.npy").unlink()
    result = run("detect", tmp_path / "e.gmil", folder / "v1.webm", "--features", other)
    assert "v1.webm has no features in" in result.stderr


def test_detectors_of_an_index_take_no_other_features(folder, tmp_path):
    np.save(tmp_path / "v1.npy", np.ones((20, 12), dtype=np.float32))
    run("train", folder / "frames.parquet", "--labels", folder / "labels.csv", "-o", tmp_path / "e.gmil", "--topics", 0)
    own, other = (
        run("detect", tmp_path / "e.gmil", folder / "v1.webm", "--features", features, "--json")
        for features in (folder / "frames.parquet", tmp_path)
    )
    assert own.exit_code == 0, own.stderr
    assert (other.exit_code, "was not indexed with their vocabulary. Leave out" in other.stderr) == (
        2,
        True,
    )


def test_missing_features_are_not_advised_to_an_option_that_is_not_there(folder, tmp_path):
    other = write_other_features(tmp_path / "features", "npy")
    np.save(other / "v3.npy", np.full((20, 3), np.nan, dtype=np.float32))
    result = run("train", other, "--labels", folder / "labels.csv", "-o", tmp_path / "e.gmil")
    assert (result.exit_code, "--missing" in result.stderr) == (2, False)
    assert "Fill them, or leave out such frames." in result.stderr


@pytest.mark.parametrize(("name", "message"), [("x.srt", "Events are written as"), ("x.vtt", "is about one video")])
def test_a_file_of_events_is_refused_before_the_work(folder, tmp_path, name, message):
    result = run("detect", tmp_path / "no.gmil", folder / "v1.webm", folder / "v2.webm", "--events", tmp_path / name)
    assert (result.exit_code, message in result.stderr) == (2, True)


# ------------------------------------------------------------------ labels


def test_labels_in_both_forms_and_by_name_without_suffix(folder, tmp_path):
    (tmp_path / "wide.csv").write_text("video,jump,fall\nv0,1,0\nv1,0,0\nv2,1,1\n")
    wide = read_event_labels(tmp_path / "wide.csv")
    (tmp_path / "long.csv").write_text("video,event\nv0,jump\nv1,\nv2,jump; fall\n")
    long = read_event_labels(tmp_path / "long.csv")
    assert wide.events == long.events == ["fall", "jump"]
    assert wide.of_video == long.of_video == {"v0": {"jump"}, "v1": set(), "v2": {"jump", "fall"}}
    (tmp_path / "semicolons.csv").write_text("video;jump;fall\nv0;1;0\nv1;0;0\nv2;1;1\n")
    assert read_event_labels(tmp_path / "semicolons.csv") == wide
    data = match_labels(read_features(folder / "frames.parquet"), wide)
    assert data.y.tolist() == [[0, 1], [0, 0], [1, 1]]
    assert data.notes[0].startswith("5 videos have no label and are left out: v3.webm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows"),
        ("video,event,start,end\na,jump,2,1.5\n", r"Line 2 of .*: the event starts at 2 and ends at 1\.5"),
        ("video,event\n\xe9,jump\n", r"is no UTF-8 text: .* byte 0xe9 .* Save it as UTF-8"),
        ("clip,event\na,b\n", "has no column 'video'"),
        ("video,jump\na,maybe\n", "Line 2 .* has 'maybe' for 'jump'"),
        ("video,jump,fall\na,1,0\nb,0,\n", "Line 3 .* does not say whether 'fall' happens in b. Write 1"),
        ("video,jump,fall\na,1\n", "Line 2 .* does not say whether 'fall' happens in a"),
        ("video,jump,fall,jump\na,1,0,0\n", "has the column 'jump' more than once"),
        ("video,jump\na,1\na,0\n", "Line 3 .* says of a that nothing happens, and a line before that jump does"),
        ("video,event\na,jump\na,\n", "Line 3 .* says of a that nothing happens, and a line before that jump does"),
        ("video,event\na,\na,jump\n", "Line 3 .* says of a that jump happens, and a line before that nothing does"),
        ("video,event\na,\n", "names no event"),
        ("video,event\n,jump\n", "Line 2 .* names no video"),
        ("video,event,start,end\na,jump,soon,2\n", "Line 2 .* has 'soon' for a time"),
    ],
)
def test_bad_labels_are_one_clear_sentence(tmp_path, text, message):
    (tmp_path / "labels.csv").write_text(text, encoding="latin-1")
    with pytest.raises(FormatError, match=message):
        read_event_labels(tmp_path / "labels.csv")


def test_labels_that_fit_no_video_or_every_video_are_refused(folder, tmp_path):
    bags = read_features(folder / "frames.parquet")
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["video", "event"], *([f"v{i}.webm", "jump"] for i in range(8))])
    with pytest.raises(VideoError, match="'jump' happens in every labelled video"):
        match_labels(bags, read_event_labels(tmp_path / "labels.csv"))
    (tmp_path / "labels.csv").write_text("video,event\nx,jump\n")
    with pytest.raises(VideoError, match="No video has both features and labels"):
        match_labels(bags, read_event_labels(tmp_path / "labels.csv"))


def test_folds_hold_every_event_and_rare_pairs_do_no_harm():
    y = np.zeros((30, 2), dtype=int)
    y[:10, 0], y[10:20, 1] = 1, 1
    y[0] = 1  # one video with both
    folds = label_folds(y, 5, 0)
    assert np.bincount(folds).tolist() == [6] * 5
    assert all(y[folds == fold].sum(axis=0).min() >= 1 for fold in range(5))
    with pytest.raises(VideoError, match="cv=11 is too many folds for 30 videos, of which at most 10 show the same"):
        label_folds(y, 11, 0)


# ------------------------------------------------------------------ time lines


def test_the_score_of_a_frame_is_the_decision_about_its_stretch():
    times = np.arange(10) / 10
    instances = np.arange(10.0)[:, None]
    found = stretch_scores(lambda bags: np.array([[bag.max(), len(bag)] for bag in bags]), instances, times, 0.2)
    assert found[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    assert found[:, 1].tolist() == [2, 3, 3, 3, 3, 3, 3, 3, 3, 2]


def test_segments_are_where_scores_are_high():
    times = np.arange(100) / 25
    scores = np.full(100, -1.0)
    scores[10:20], scores[40:60] = 2.0, 3.0
    found = segments(scores, times)
    assert [(round(s.start, 6), round(s.end, 6), s.score) for s in found] == [(1.6, 2.4, 3.0), (0.4, 0.8, 2.0)]
    assert segments(np.zeros(100), times)[0][:2] == (0.0, 4.0)
    assert segments(scores + 1.5, times) == [(0.0, 4.0, 4.5)]  # no moment has a negative score
    assert segments(np.zeros(1), times[:1])[0].start == 0


@pytest.mark.parametrize(
    ("high", "expected"),
    [
        ([(10, 20), (30, 40)], [(0.4, 1.6)]),  # 0.4 s apart: one
        ([(10, 20), (33, 43)], [(0.4, 0.8), (1.32, 1.72)]),  # 0.52 s apart: two
        ([(10, 20), (40, 43)], [(0.4, 0.8)]),  # 0.12 s is too short
        ([(50, 52)], [(1.84, 2.24)]),  # all there is, widened around its middle
        ([(0, 2)], [(0.0, 0.4)]),
        ([(98, 100)], [(3.6, 4.0)]),
        ([(i, i + 1) for i in range(10, 40, 3)], [(0.4, 1.52)]),  # flicker
    ],
)
def test_segments_are_merged_and_none_is_short(high, expected):
    times, scores = np.arange(100) / 25, np.full(100, -1.0)
    for first, last in high:
        scores[first:last] = 2.0
    assert [(round(s.start, 6), round(s.end, 6)) for s in segments(scores, times)] == expected


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=80), st.sampled_from([1, 10, 25]))
def test_segments_lie_in_the_video_apart_and_hold_the_highest_score(scores, rate):
    times = np.arange(len(scores)) / rate
    found = segments(np.array(scores), times)
    assert found[0].score == max(scores)
    ordered = sorted(found)
    assert ordered[0].start >= 0
    assert ordered[-1].end <= times[-1] + (1 / rate if len(scores) > 1 else 0) + 1e-9
    assert all(b.start - a.end > 0 for a, b in itertools.pairwise(ordered))
    shortest = min(0.4, len(scores) / rate if len(scores) > 1 else 0)
    assert all(s.end - s.start >= shortest - 1e-6 for s in found)


@pytest.mark.parametrize("n_high", [1, 2, 30])
def test_scores_that_differ_by_rounding_alone_are_one_segment_without_a_threshold(n_high):
    scores = np.full(40, -0.3)
    scores[:n_high] = np.nextafter(-0.3, 0)
    line = TimeLine.of("fall", 1.0, 0.7, np.arange(40) / 25, scores, expit(scores))
    assert line.threshold is None
    assert [segment[:2] for segment in line.segments] == [(0.0, 1.6)]


def test_overlap_is_the_share_of_common_time():
    assert overlap((0, 1), (2, 3)) == 0
    assert overlap((0, 4), (1, 2)) == 0.25
    assert overlap((1, 1), (1, 1)) == 0


def test_a_video_without_a_vocabulary_is_told(folder, tmp_path):
    data = match_labels(read_features(folder / "frames.parquet"), read_event_labels(folder / "labels.csv"))
    model = EventDetectors.fit(data.bags, data.y, data.events)
    with pytest.raises(VideoError, match="trained on features from elsewhere"):
        detect(model, [folder / "v0.webm"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model.events.append("more"), r"weights weights must be of shape|cannot decide"),
        (lambda model: model.weights.shifts.fill(np.nan), "shifts must be free of NaN"),
        (lambda model: model.views.clear(), "looks must be a list of at least 1"),
        (lambda model: model.views[0].models.clear(), "models must be a list of at least 1"),
    ],
)
def test_detectors_that_lie_are_neither_saved_nor_loaded(change, message, tmp_path, monkeypatch):
    from gmil.io import model_files

    rng = np.random.default_rng(0)
    y = np.column_stack([np.arange(12) % 2, np.arange(12) % 3 == 0]).astype(int)
    model = EventDetectors.fit(gmil.Bags.from_list(list(rng.normal(size=(12, 3, 2)))), y, ["a", "b"], topics=0)
    change(model)
    path = tmp_path / "events.gmil"
    with pytest.raises(gmil.ModelFileError, match=message):
        model.save(path)
    monkeypatch.setattr(model_files.Record, "check", lambda *_: None)
    model.save(path)
    monkeypatch.undo()
    with pytest.raises(gmil.ModelFileError, match=message):
        EventDetectors.load(path)


def test_detectors_whose_views_do_not_fit_each_other_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    y = np.column_stack([np.arange(12) % 2, np.arange(12) % 3 == 0]).astype(int)
    model = EventDetectors.fit(gmil.Bags.from_list(list(rng.normal(size=(12, 3, 2)))), y, ["a", "b"], topics=0)
    model.views[0].models.append(model.views[0].models[0])  # four decisions about two events
    model.save(tmp_path / "events.gmil")
    with pytest.raises(gmil.ModelFileError, match="its detectors cannot decide"):
        EventDetectors.load(tmp_path / "events.gmil")
