"""Words, VLAD and Fisher vectors of windows of frames, and detectors on several blocks of features."""

from __future__ import annotations

import numpy as np
import pytest
from tests.video.conftest import encode, moving_frames
from tests.video.test_events import run

from gmil.engine import resolve
from gmil.errors import ModelFileError
from gmil.transform.vectors.fisher import fisher_vectors
from gmil.transform.vectors.mixtures import Mixture
from gmil.transform.vectors.vlad import normalize_vectors, vlad_vectors
from gmil.video import EventDetectors, IndexSettings, Vocabulary, index_videos, read_features, vocabulary_of
from gmil.video.encoding.codebooks import learn_codebook
from gmil.video.settings import SAVED_SETTINGS
from gmil.video.vocabulary import Block

ENGINE = resolve("auto", 1)
ROWS = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)


@pytest.mark.parametrize("encoding", ["words", "vlad", "fisher"])
def test_sums_of_parts_are_the_vector_of_the_whole(encoding):
    book = learn_codebook("hof", encoding, ROWS, 4, 3, ENGINE, [0])
    parts = book.sums(ROWS, np.array([0, 17, 120, 300]), ENGINE)
    assert parts.shape == (3, book.n_sums)
    alone = book.sums(ROWS[17:120], np.array([0, 103]), ENGINE)[0]
    np.testing.assert_allclose(parts[1], alone, atol=1e-4)
    whole = book.vector(sum(parts))
    assert whole.shape == (book.n_features,)
    offsets = np.array([0, len(ROWS)])
    if encoding == "words":
        nearest = ((ROWS[:, None] - book.centers) ** 2).sum(axis=2).argmin(axis=1)
        expected = np.bincount(nearest, minlength=4) / len(ROWS)
    else:
        reduced = (ROWS - book.middle) @ book.directions
        vectors = (
            vlad_vectors(reduced, offsets, book.centers, ENGINE, occupancy=True)
            if encoding == "vlad"
            else fisher_vectors(reduced, offsets, Mixture(book.weights, book.centers, book.variances, 0), ENGINE)
        )
        expected = normalize_vectors(vectors)[0]
    np.testing.assert_allclose(whole, expected, atol=1e-4)
    assert not book.vector(np.zeros(book.n_sums, dtype=np.float32)).any()


def test_settings_of_hog3d_alone_are_saved_as_ever():
    plain, more = IndexSettings(), IndexSettings(descriptors=["hof", "flow"], encodings=["fisher"])
    assert "motion" not in plain.as_dict()
    for settings in (plain, more):
        SAVED_SETTINGS.check(settings.as_dict(), "settings", {})
        assert IndexSettings.from_dict(settings.as_dict()) == settings
    assert plain.sample_key() != more.sample_key()


def test_views_see_their_own_columns_and_are_saved(tmp_path):
    rng = np.random.default_rng(1)
    import gmil

    y = np.arange(24)[:, None] % 2
    instances = rng.random((24 * 5, 7)).astype(np.float32)
    instances[:, 5] += 3 * np.repeat(y[:, 0], 5)  # in the second block alone
    bags = gmil.Bags(instances, np.arange(25) * 5)
    blocks = [Block("a", 0, 4, words=False), Block("b", 4, 7, words=False)]
    found = EventDetectors.fit(bags, y, ["jump"], blocks=blocks, topics=0)
    assert [view.columns for view in found.views] == [(0, 4), (4, 7)]
    assert found.n_features == 7
    assert found.weights.weights[1, 0] > found.weights.weights[0, 0]
    assert ((found.decide(bags)[:, 0] > 0) == y[:, 0]).all()
    found.save(tmp_path / "m.gmil")
    np.testing.assert_array_equal(EventDetectors.load(tmp_path / "m.gmil").decide(bags), found.decide(bags))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight clips, every second of them fast, with labels and cameras."""
    where = tmp_path_factory.mktemp("motions")
    for i in range(8):
        encode(where / f"v{i}.webm", moving_frames(seed=i, speed=1 + 3 * (i % 2), n_frames=20))
    rows = [f"v{i}.webm,{'fast' if i % 2 else ''},c{i // 2}" for i in range(8)]
    (where / "labels.csv").write_text("\n".join(["video,event,camera", *rows]) + "\n")
    return where


@pytest.mark.slow
def test_several_descriptors_from_index_to_detection(folder, tmp_path):
    pytest.importorskip("cv2", reason="optical flow needs OpenCV: pip install 'gmil[video]'")
    frames = tmp_path / "f.parquet"
    asked = ["--descriptors", "hog3d,mbh,flow", "--encodings", "words,fisher", "--words", 6, "--centers", 2]
    # A camera that pans over a texture is all that moves here.
    motion = ["--motion", "frames=6", "--motion", "camera=none", "--every", 5]
    result = run("index", *sorted(folder.glob("*.webm")), "-o", frames, *asked, *motion)
    assert result.exit_code == 0, result.stderr
    words = vocabulary_of(frames)
    names = ["hog3d words", "hog3d fisher", "mbh words", "mbh fisher", "flow"]
    assert [block.name for block in words.blocks] == names
    assert all(name in result.stderr for name in names)
    assert read_features(frames).n_features == words.n_features == words.blocks[-1].stop
    labels = ["--labels", folder / "labels.csv", "--group", "camera", "--topics", 0]
    found = run("cv", frames, *labels, "--folds", 2)
    assert found.exit_code == 0, found.stderr
    assert run("train", frames, *labels, "-o", tmp_path / "m.gmil").exit_code == 0
    detected = run("detect", tmp_path / "m.gmil", folder / "v1.webm")
    assert detected.exit_code == 0, detected.stderr
    np.testing.assert_array_equal(EventDetectors.load(tmp_path / "m.gmil").vocabulary.words, words.words)


def test_codebooks_that_do_not_fit_their_settings_are_refused(folder, tmp_path):
    pytest.importorskip("cv2", reason="optical flow needs OpenCV: pip install 'gmil[video]'")
    from dataclasses import replace

    settings = IndexSettings(descriptors=["hof", "flow"], encodings=["vlad"], n_centers=2, n_components=3)
    settings = replace(settings, motion=replace(settings.motion, frames=6, camera="none"))
    words = index_videos([folder / "v1.webm"], tmp_path / "f.parquet", settings).vocabulary
    words.save(tmp_path / "w")
    assert Vocabulary.load(tmp_path / "w").digest == words.digest
    narrow = replace(words.codebooks[0], middle=np.zeros(5, np.float32), directions=np.zeros((5, 3), np.float32))
    for books in ((), words.codebooks[:1], (narrow, words.codebooks[1])):
        replace(words, codebooks=books).save(tmp_path / "w")
        with pytest.raises(ModelFileError, match="codebook"):
            Vocabulary.load(tmp_path / "w")
