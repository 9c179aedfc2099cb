from __future__ import annotations

import dataclasses
import hashlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from gmil import Bags, datasets
from gmil.datasets import download, registry
from gmil.datasets.copies import groups_of_copies
from gmil.errors import DatasetError


@pytest.mark.parametrize(("name", "n_bags", "n_positive"), [("musk1", 92, 47), ("musk2", 102, 39)])
def test_musk_has_the_published_counts(name, n_bags, n_positive):
    found = datasets.load(name)
    assert len(found.bags) == len(found.y) == n_bags
    assert found.y.sum() == n_positive
    assert found.y.dtype.kind == "i"
    assert found.bags.dtype == np.float64
    assert found.bags.feature_names[0] == "f1"
    assert found.instance_y is None
    assert found.name == name
    assert "CC BY 4.0" in found.DESCR
    assert "Dietterich" in found.DESCR


@pytest.mark.parametrize("name", ["musk1", "musk2"])
def test_bundled_musk_equals_the_shared_files(name, shared_data):
    bags, y = datasets.load(name, return_X_y=True)
    with np.load(shared_data / f"{name}.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(bags.instances, arrays["X"])
        np.testing.assert_array_equal(bags.segment_ids, arrays["bag_index"])
        np.testing.assert_array_equal(y, arrays["y"])


def test_return_X_y_gives_the_same():
    bags, y = datasets.load_musk1(return_X_y=True)
    found = datasets.load_musk1()
    assert isinstance(bags, Bags)
    np.testing.assert_array_equal(bags.instances, found.bags.instances)
    np.testing.assert_array_equal(y, found.y)


@pytest.mark.parametrize("name", [name for name in datasets.dataset_names() if name != "fights"])
def test_every_data_set_is_what_the_registry_says(name, shared_data):
    found = datasets.load(name)
    info = datasets.describe(name)
    assert found.bags.shape == (info.n_bags, info.n_features)
    assert found.bags.n_instances == info.n_instances
    if info.task == "classes":
        assert set(np.unique(found.y)) == {0, 1}
        assert found.y.sum() == info.n_positive
    else:
        assert info.n_positive is None
        assert found.y.dtype == np.float64
    assert (found.groups is not None) == info.has_copies
    assert str(info) == found.DESCR


def test_videos_are_no_bags(shared_data):
    with pytest.raises(DatasetError, match=r"fights is a folder of videos.*gmil data show fights"):
        datasets.load("fights")


@pytest.mark.parametrize("name", ["mutagenesis_easy", "mutagenesis_atoms"])
def test_groups_are_the_bags_that_are_copies(name, shared_data):
    found = datasets.load(name)
    own = groups_of_copies(found.bags)
    pairs = set(zip(own.tolist(), found.groups.tolist(), strict=True))
    assert len(pairs) == len(np.unique(own)) == len(np.unique(found.groups))  # the same partition


def test_a_set_is_found_without_the_folders_of_the_data_folder(shared_data, tmp_path):
    shutil.copy(shared_data / "more" / "mutagenesis_atoms.npz", tmp_path)
    assert len(datasets.load("mutagenesis_atoms", data_home=tmp_path).bags) == 188


def test_sorted_labels_are_refused(shared_data, tmp_path):
    """A copy in which labels were sorted and bags were not, as popular ones are."""
    with np.load(shared_data / "more" / "birds_brown_creeper.npz") as file:
        arrays = dict(file)
    arrays["y"] = np.sort(arrays["y"])
    np.savez(tmp_path / "birds_brown_creeper.npz", **arrays)
    with pytest.raises(DatasetError, match="other values"):
        datasets.load("birds_brown_creeper", data_home=tmp_path)


def test_labels_of_instances_that_contradict_the_bag_are_refused(shared_data, tmp_path):
    with np.load(shared_data / "more" / "newsgroups_rec_autos.npz") as file:
        arrays = dict(file)
    arrays["y_instance"] = np.ones_like(arrays["y_instance"])
    np.savez(tmp_path / "newsgroups_rec_autos.npz", **arrays)
    with pytest.raises(DatasetError, match=r"contradict each other: bag \d+ is negative"):
        datasets.load("newsgroups_rec_autos", data_home=tmp_path)


def test_fetchers_are_load_by_another_name(shared_data):
    fetchers = {
        "elephant": datasets.fetch_elephant,
        "fox": datasets.fetch_fox,
        "tiger": datasets.fetch_tiger,
        "trec9": datasets.fetch_trec9,
        "ucf-crime": datasets.fetch_ucf_crime,
    }
    for name, fetch in fetchers.items():
        bags, y = fetch(data_home=shared_data, return_X_y=True)
        assert fetch(data_home=shared_data).name == name
        assert len(bags) == len(y) == datasets.describe(name).n_bags


def test_ucf_crime_has_events_and_known_instances(shared_data):
    found = datasets.fetch_ucf_crime()
    assert set(found.events[found.y == 0]) == {"Normal"}
    assert len(set(found.events[found.y == 1])) == 7
    assert set(np.unique(found.instance_y)) == {-1, 0, 1}
    normal = np.isin(found.bags.segment_ids, np.flatnonzero(found.y == 0))
    assert (found.instance_y[normal] == 0).all()
    assert found.bags.bag_ids[0] == "Abuse001_x264"
    assert len(found.official_split) == len(found.bags)


def test_trec9_stays_sparse(shared_data):
    bags = datasets.fetch_trec9().bags
    assert sp.issparse(bags.instances)
    assert bags.instances.dtype == np.float64


# ---------------------------------------------------------------- the original .mat


@pytest.mark.parametrize("signs", ["plus and minus", "one and zero"])
@pytest.mark.parametrize("sparse_labels", [True, False])
def test_mat_and_npz_give_the_same_bags(signs, sparse_labels, shared_data, tmp_path, monkeypatch):
    with np.load(shared_data / "elephant.npz", allow_pickle=False) as arrays:
        index, X, y = arrays["bag_index"], arrays["X"], arrays["y"]
    labels = y[index].astype(np.float64)
    if signs == "plus and minus":
        labels = 2 * labels - 1
    labels = labels[np.newaxis]
    variables = {
        "features": sp.csc_array(X),
        "bag_ids": index[np.newaxis] + 1.0,
        "labels": sp.csc_array(labels) if sparse_labels else labels,
    }
    scipy.io.savemat(tmp_path / "elephant_100x100_matlab.mat", variables, do_compression=True)
    trust(tmp_path / "elephant_100x100_matlab.mat", "elephant", monkeypatch)
    from_mat = datasets.fetch_elephant(data_home=tmp_path, download_if_missing=False)
    from_npz = datasets.fetch_elephant(data_home=shared_data)
    assert_same(from_mat.bags, from_npz.bags)
    np.testing.assert_array_equal(from_mat.y, from_npz.y)
    assert from_mat.y.dtype == from_npz.y.dtype


def trust(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file be the one that the registry knows."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(registry.REGISTRY, name, dataclasses.replace(datasets.describe(name), sha256=digest))


def assert_same(one: Bags, other: Bags) -> None:
    assert one.dtype == other.dtype
    assert isinstance(one.instances, np.ndarray)
    np.testing.assert_array_equal(one.instances, other.instances)
    np.testing.assert_array_equal(one.offsets, other.offsets)
    np.testing.assert_array_equal(one.bag_ids, other.bag_ids)
    assert one.bag_ids.dtype == other.bag_ids.dtype
    assert one.feature_names == other.feature_names


# ---------------------------------------------------------------- what is missing or wrong


def test_unknown_name_lists_the_known():
    with pytest.raises(DatasetError, match=r"no data set 'musk3'.*musk1.*ucf-crime"):
        datasets.load("musk3")


@pytest.mark.parametrize("name", ["trec9", "ucf-crime"])
def test_local_data_says_which_file_to_put_where(name, tmp_path):
    info = datasets.describe(name)
    with pytest.raises(DatasetError) as caught:
        datasets.load(name, data_home=tmp_path)
    assert f"Put the file {info.filename} into {tmp_path}" in str(caught.value)
    assert "GMIL_DATA_HOME" in str(caught.value)


def test_no_download_says_which_file_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setenv("GMIL_DATA_HOME", str(tmp_path))
    with pytest.raises(DatasetError, match=r"Put fox\.npz or fox_100x100_matlab\.mat there"):
        datasets.fetch_fox(download_if_missing=False)


def test_other_data_under_the_name_is_refused(tmp_path, small):
    bags, _ = small
    datasets.write(tmp_path / "fox.npz", bags, [1, 0, 1])
    with pytest.raises(DatasetError, match=r"fox holds other data.*\(3, 2, 4, 2\), not \(200, 100"):
        datasets.fetch_fox(data_home=tmp_path)


@pytest.mark.parametrize("change", ["value", "label"])
def test_other_values_under_the_name_are_refused(change, shared_data, tmp_path):
    with np.load(shared_data / "fox.npz", allow_pickle=False) as file:
        arrays = dict(file)
    if change == "value":
        arrays["X"][700, 3] += 1e-9
    else:
        arrays["y"][[0, -1]] = arrays["y"][[-1, 0]]
    np.savez(tmp_path / "fox.npz", **arrays)
    with pytest.raises(DatasetError, match=r"fox holds other values.*Replace it"):
        datasets.fetch_fox(data_home=tmp_path)


def test_the_same_values_in_another_file_are_taken(shared_data, tmp_path):
    found = datasets.fetch_fox(data_home=shared_data)
    datasets.write(tmp_path / "fox.npz", found.bags, found.y)
    assert_same(datasets.fetch_fox(data_home=tmp_path).bags, found.bags)


def test_an_original_that_changed_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "fox_100x100_matlab.mat"
    scipy.io.savemat(path, {"features": np.eye(2)})
    trust(path, "fox", monkeypatch)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DatasetError, match=r"fox_100x100_matlab\.mat is not the file.*Remove it"):
        datasets.fetch_fox(data_home=tmp_path)


def test_mat_without_the_variables_is_refused(tmp_path, monkeypatch):
    scipy.io.savemat(tmp_path / "fox_100x100_matlab.mat", {"features": np.eye(2)})
    trust(tmp_path / "fox_100x100_matlab.mat", "fox", monkeypatch)
    with pytest.raises(DatasetError, match=r"no variable 'labels'"):
        datasets.fetch_fox(data_home=tmp_path)


# ---------------------------------------------------------------- the folder


def test_data_home_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("GMIL_DATA_HOME", "~/from-environment")
    assert datasets.data_home("given") == Path("given")
    assert datasets.data_home() == Path.home() / "from-environment"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the XDG rules are those of Linux")
def test_cache_folder_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("GMIL_DATA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_home() == tmp_path / "gmil"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert datasets.data_home() == Path.home() / ".cache" / "gmil"


@pytest.mark.parametrize(("platform", "parts"), [("darwin", ("Library", "Caches")), ("win32", ("AppData", "Local"))])
def test_cache_folder_on_other_systems(platform, parts, monkeypatch):
    monkeypatch.delenv("GMIL_DATA_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert datasets.data_home() == Path.home().joinpath(*parts, "gmil")


# ---------------------------------------------------------------- the registry


def test_registry_is_complete():
    for name, info in registry.REGISTRY.items():
        assert info.name == name
        assert info.task != "classes" or 0 < info.n_positive < info.n_bags <= info.n_instances
        assert all((info.title, info.licence, info.citation, info.about, info.filename, info.label_check))
        assert (info.kind == "local") == (info.url is None) == (info.sha256 is None)
        assert (info.contents is None) == (info.task == "videos")
        assert info.contents is None or len(info.contents) == 64


def test_fetch_downloads_what_the_registry_says(tmp_path, monkeypatch):
    asked = []

    def refuse(url, target, sha256):
        asked.append((url, target, sha256))
        msg = "no network"
        raise DatasetError(msg)

    monkeypatch.setattr(download, "download", refuse)
    with pytest.raises(DatasetError, match="no network"):
        datasets.fetch_tiger(data_home=tmp_path)
    info = datasets.describe("tiger")
    assert asked == [(info.url, tmp_path / "tiger_100x100_matlab.mat", info.sha256)]


def test_description_can_be_replaced_for_a_mirror():
    info = dataclasses.replace(datasets.describe("fox"), url="https://example.org/fox.mat")
    assert info.original == "fox.mat"
