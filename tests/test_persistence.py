"""Models as files: what is written comes back exactly, what is damaged is refused, and nothing in a file runs."""

from __future__ import annotations

import functools
import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, QuantileTransformer, StandardScaler
from tests.conftest import target_for

import gmil
from gmil import GMIL, ModelFileError, PerInstance
from gmil.errors import FileAccessError, MissingFileError
from gmil.io.model_files import FORMAT_VERSION, checksum, clear_damage, load_parts, save, save_parts
from gmil.io.model_files.schema import Plain


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gmil"


@pytest.fixture
def training(gaussian_bags):
    return gaussian_bags()


def round_trip(model, path):
    model.save(path)
    loaded = gmil.load(path)
    assert type(loaded) is type(model)
    return loaded


def round_trip_of(value, path):
    """Return what comes back of any value."""
    kinds = {"kept": Plain(object)}
    save_parts({"kind": "test", "kept": value}, path, kinds)
    return load_parts(path, "test", kinds)["kept"]


def with_seed(estimator):
    return estimator.set_params(random_state=0) if "random_state" in estimator.get_params() else estimator


# ------------------------------------------------------------------ round trips


@pytest.mark.parametrize(("name", "cls"), gmil.all_estimators())
def test_every_estimator_comes_back_as_it_was(name, cls, training, path):
    bags, y = training
    model = with_seed(cls()).fit(bags, target_for(cls(), y))
    loaded = round_trip(model, path)
    assert repr(loaded) == repr(model)
    if hasattr(model, "predict"):
        assert_array_equal(loaded.predict(bags), model.predict(bags))
    if is_classifier(model):
        assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))
        assert_array_equal(loaded.predict(bags), model.predict(bags))
        assert loaded.classes_.dtype == model.classes_.dtype
    if hasattr(model, "predict_proba"):
        assert_array_equal(loaded.predict_proba(bags), model.predict_proba(bags))
    if hasattr(model, "score_instances"):
        assert_array_equal(loaded.score_instances(bags), model.score_instances(bags))
    if hasattr(model, "transform"):
        found, expected = loaded.transform(bags), model.transform(bags)  # bags, or one vector per bag
        assert_array_equal(getattr(found, "instances", found), getattr(expected, "instances", expected))


@pytest.mark.parametrize(("name", "cls"), gmil.all_estimators())
def test_every_estimator_can_be_saved_before_it_is_fitted(name, cls, path):
    loaded = round_trip(cls(), path)
    assert repr(loaded) == repr(cls())


def test_several_classes_with_string_labels(gaussian_bags, path):
    bags, y = gaussian_bags(n_bags=30, n_classes=3)
    labels = np.array(["none", "left", "right"])[y]
    model = GMIL(random_state=0, n_negative=0).fit(bags, labels)
    loaded = round_trip(model, path)
    assert_array_equal(loaded.classes_, model.classes_)
    assert_array_equal(loaded.predict(bags), model.predict(bags))
    assert_array_equal(loaded.predict_proba(bags), model.predict_proba(bags))
    assert_array_equal(loaded.threshold_, model.threshold_)


@pytest.mark.parametrize(
    "labels",
    [np.array(["no", "yes"], dtype=object), np.array(["nö", "ja ☃"]), np.array([False, True]), np.array([-1.0, 1.0])],
    ids=["objects", "beyond ASCII", "booleans", "floats"],
)
def test_classes_keep_their_type(training, path, labels):
    bags, y = training
    model = GMIL(random_state=0, pos_label=labels[1]).fit(bags, labels[y])
    loaded = round_trip(model, path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert_array_equal(loaded.predict(bags), model.predict(bags))


def test_feature_names_come_back(training, path):
    bags, y = training
    named = bags.with_instances(bags.instances, ["a", "b", "c"])
    loaded = round_trip(GMIL(random_state=0).fit(named, y), path)
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature 0 is 'x'"):
        loaded.predict(bags.with_instances(bags.instances, ["x", "b", "c"]))


@pytest.mark.parametrize("scale", ["minmax+l2", "global"])
def test_scaling_and_components_come_back(training, path, scale):
    bags, y = training
    model = GMIL(scale=scale, n_components=2, random_state=0).fit(bags, y)
    assert_array_equal(round_trip(model, path).decision_function(bags), model.decision_function(bags))


def test_initial_centres_come_back(training, path):
    bags, y = training
    centers = np.asfortranarray(bags.instances[:4])
    model = GMIL(init=centers, random_state=0).fit(bags, y)
    loaded = round_trip(model, path)
    assert_array_equal(loaded.init, centers)
    assert_array_equal(clone(loaded).fit(bags, y).decision_function(bags), model.decision_function(bags))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.asfortranarray(np.arange(24, dtype=np.int32).reshape(2, 3, 4)),
        np.arange(20.0)[::-3],
        np.arange(6, dtype=">i4"),
        np.arange(6, dtype=">f8").reshape(2, 3),
        np.array(3.5, dtype=np.float32),
        np.empty((0, 3)),
        np.array([True, False]),
        np.arange(4, dtype=np.float16),
        np.arange(4, dtype=np.uint8),
        np.array([["a", "bc"], ["", "d"]]),
        np.array(["a", 1, None, 2.5, ("b", 2)], dtype=object),
        np.array([np.nan, np.inf, -0.0]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_come_back_exactly(array, path):
    loaded = round_trip_of(array, path)
    assert loaded.shape == array.shape
    assert loaded.dtype == array.dtype.newbyteorder("=")
    assert loaded.flags.f_contiguous or not array.flags.f_contiguous
    assert_array_equal(loaded, array)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        2**80,
        0.1,
        float("inf"),
        5e-324,
        "text ☃",
        [1, [2.5, None]],
        (1, ("a",)),
        {"a": 1, "b": [0.5]},
        {"float": "0x1p0", "tensor": 3},
        [],
        {},
    ],
    ids=repr,
)
def test_plain_values_come_back_exactly(value, path):
    loaded = round_trip_of(value, path)
    assert loaded == value
    assert type(loaded) is type(value)


def test_numpy_scalars_come_back_as_plain_numbers(path):
    model = GMIL(n_clusters=np.int64(5), epsilon=np.float32(0.1), pos_label=np.bool_(True))
    assert round_trip(model, path).get_params() == GMIL(5, epsilon=float(np.float32(0.1)), pos_label=True).get_params()


def test_arrays_of_similar_names_stay_apart(path):
    loaded = round_trip_of({"a.b": np.zeros(2), "a": {"b": np.ones(2)}}, path)
    assert_array_equal(loaded["a.b"], [0, 0])
    assert_array_equal(loaded["a"]["b"], [1, 1])


def test_what_does_not_end_with_an_underscore_is_no_part_of_the_model(path):
    model = GMIL()
    model.cache = model._hidden_ = np.ones(3)
    loaded = round_trip(model, path)
    assert not hasattr(loaded, "cache")
    assert not hasattr(loaded, "_hidden_")


# ------------------------------------------------------------------ scikit-learn models inside


@pytest.mark.parametrize(
    "transformer",
    [
        MinMaxScaler(),
        PCA(2, random_state=0),
        QuantileTransformer(n_quantiles=5),
        SimpleImputer(),
        make_pipeline(SimpleImputer(), StandardScaler()),
        FunctionTransformer(np.log1p),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_a_scikit_learn_model_comes_back(transformer, training, path):
    bags = training[0].with_instances(np.abs(training[0].instances))
    model = PerInstance(transformer).fit(bags)
    loaded = round_trip(model, path)
    assert type(loaded.transformer) is type(transformer)
    assert_array_equal(loaded.transform(bags).instances, model.transform(bags).instances)


@pytest.mark.parametrize("weights", [{0: 1.0, 1: 2.5}, {np.int64(0): 1, np.int64(1): np.float32(2)}, {0.0: 1, True: 2}])
def test_weights_of_classes_that_are_numbers_are_kept(weights, gaussian_bags, path):
    bags, y = gaussian_bags()
    model = gmil.WeightedGMIL(class_weight=weights, n_centers=5, random_state=0).fit(bags, y)
    loaded = round_trip(model, path)
    assert loaded.class_weight == weights
    assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))


@pytest.mark.parametrize(
    ("transformer", "named"),
    [
        (RandomTreesEmbedding(n_estimators=2, max_depth=2, random_state=0), r"sklearn\.tree\._tree\.Tree"),
        (FunctionTransformer(functools.partial(np.add, 1)), r"functools\.partial|partial"),
        (FunctionTransformer(lambda x: x), "lambda"),
        (FunctionTransformer(os.system), "system"),
    ],
    ids=["trees", "partial", "lambda", "os.system"],
)
def test_a_model_of_types_that_are_not_known_to_be_safe_is_not_saved(transformer, named, training, path):
    model = PerInstance(transformer)
    if isinstance(transformer, RandomTreesEmbedding):
        model.fit(training[0])
    with pytest.raises(ModelFileError, match=rf"of PerInstance cannot be saved: .*not known to be safe.*({named})"):
        model.save(path)
    assert list(path.parent.iterdir()) == []


def test_types_that_are_not_known_to_be_safe_are_refused_by_name_when_a_file_has_them(training, path):
    import skops.io

    PerInstance(MinMaxScaler()).fit(training[0]).save(path)
    tensors, document = load_file(path), document_of(path)
    evil = skops.io.dumps(FunctionTransformer(os.system))
    tensors["param.transformer"] = np.frombuffer(evil, dtype=np.uint8)
    write(path, document, tensors)
    with pytest.raises(ModelFileError, match=r"not known to be safe and are not loaded: .*system"):
        gmil.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda archive: archive.writestr("9.npy", bytes(2**20), zipfile.ZIP_DEFLATED),
        lambda archive: archive.writestr("schema.json", archive.read("schema.json")),
        lambda archive: archive.writestr("9.npz", npz_of(np.zeros(2**22)), zipfile.ZIP_STORED),
        lambda archive: archive.writestr("9.npy", npy_of(np.zeros(3)).replace(b"(3,)", b"(9,)")),
        lambda archive: archive.writestr("inner.zip", b""),
    ],
    ids=["compressed", "twice", "sparse", "shape", "nested"],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_that_would_take_more_memory_than_it_has_bytes_is_refused(change, training, path):
    PerInstance(MinMaxScaler()).fit(training[0]).save(path)
    tensors, document = load_file(path), document_of(path)
    archive = io.BytesIO(tensors["param.transformer"].tobytes())
    with zipfile.ZipFile(archive, "a") as members:
        change(members)
    write(path, document, {**tensors, "param.transformer": np.frombuffer(archive.getvalue(), dtype=np.uint8)})
    with pytest.raises(ModelFileError, match=r"scikit-learn model in the file is damaged: DamageError"):
        gmil.load(path)


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz_of(array):
    file = io.BytesIO()
    np.savez_compressed(file, array)
    return file.getvalue()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_damaged_scikit_learn_model_is_refused_or_harmless(tmp_path_factory, seed):
    path = tmp_path_factory.mktemp("damaged") / "model.gmil"
    PerInstance(MinMaxScaler()).save(path)
    tensors, document = load_file(path), document_of(path)
    rng = np.random.default_rng(seed)
    archive = tensors["param.transformer"].copy()
    archive[rng.integers(len(archive), size=2)] = rng.integers(256, size=2)
    write(path, document, {"param.transformer": archive[: rng.integers(len(archive) // 2, len(archive) + 1)]})
    try:
        assert isinstance(gmil.load(path), PerInstance)
    except ModelFileError as error:
        assert "Save the model again" in str(error) or "not known to be safe" in str(error)  # noqa: PT017


# ------------------------------------------------------------------ what cannot be saved


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"random_state": np.random.RandomState(0)}, r"'random_state' of GMIL .* RandomState.*Use an integer seed"),
        ({"random_state": np.random.default_rng(0)}, r"'random_state' of GMIL .* Generator.*Use an integer seed"),
        ({"scale": len}, "'scale' of GMIL cannot be saved: builtin_function_or_method is not data"),
        ({"scale": lambda x: x}, "'scale' of GMIL cannot be saved: function is not data"),
        ({"scale": StandardScaler}, "'scale' of GMIL cannot be saved: type is not data"),
        ({"init": [np.ones(2), print]}, "'init' of GMIL cannot be saved: builtin_function_or_method is not data"),
        ({"init": {(1, 2): 3}}, "'init' of GMIL cannot be saved: dict is not data"),
        ({"init": np.ones(2, dtype=complex)}, "arrays of complex128 are not supported"),
        ({"init": np.ones(2, dtype=np.longdouble)}, "arrays of .*float.* are not supported"),
        ({"init": np.array(["2020"], dtype="M8[Y]")}, "datetime64"),
        ({"init": np.array([b"raw"])}, r"arrays of \|S3 are not supported"),
        ({"init": np.array([print], dtype=object)}, "builtin_function_or_method is not data"),
    ],
)
def test_what_is_not_data_is_refused_and_nothing_is_written(changes, message, path):
    with pytest.raises(ModelFileError, match=message):
        GMIL(**changes).save(path)
    assert list(path.parent.iterdir()) == []


class NotRegistered(GMIL):
    """A subclass that gmil does not know."""


@pytest.mark.parametrize("model", [NotRegistered(), StandardScaler()])
def test_an_estimator_that_is_not_ours_is_refused(model, path):
    with pytest.raises(ModelFileError, match=f"{type(model).__name__} cannot be saved: it is not one of gmil's"):
        save(model, path)
    assert list(path.parent.iterdir()) == []


def test_an_existing_file_survives_a_failed_save(training, path):
    GMIL(n_clusters=7).save(path)
    with pytest.raises(ModelFileError, match="integer seed"):
        GMIL(random_state=np.random.RandomState(0)).save(path)
    assert gmil.load(path).n_clusters == 7
    assert list(path.parent.iterdir()) == [path]


def test_an_existing_file_is_replaced(path):
    GMIL(n_clusters=7).save(path)
    GMIL(n_clusters=8).save(str(path))
    assert gmil.load(str(path)).n_clusters == 8
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none"):
        GMIL().save(tmp_path / "none" / "model.gmil")


def test_a_folder_is_not_overwritten(tmp_path):
    with pytest.raises(FileAccessError, match="it is a folder"):
        GMIL().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(FileAccessError, match=r"model\.gmil cannot be written: Permission denied"):
        GMIL().save(tmp_path / "model.gmil")


# ------------------------------------------------------------------ files that cannot be read


def document_of(path):
    header_size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    header = json.loads(path.read_bytes()[8 : 8 + header_size])
    return json.loads(header["__metadata__"]["gmil"])


def write(path, document, tensors=None):
    text = document if isinstance(document, str) else json.dumps(document)
    save_file(tensors or {}, path, metadata={"gmil": text, "sha256": checksum(text, tensors or {})})


def model_document(**changes):
    return {"version": 2, "gmil": "0", "probe": "", "model": {"class": "GMIL", "params": {}, "fitted": {}, **changes}}


def deep_list(depth):
    return {"list": [deep_list(depth - 1)]} if depth else 1


def test_a_hand_made_file_is_read(path):
    write(path, model_document(params={"n_clusters": 3}))
    assert gmil.load(path).n_clusters == 3


def test_a_newer_format_asks_for_a_newer_gmil(path):
    write(path, {**model_document(), "version": FORMAT_VERSION + 1, "gmil": "9.8"})
    with pytest.raises(ModelFileError, match=rf"written by gmil 9\.8 in format {FORMAT_VERSION + 1}.*newer gmil"):
        gmil.load(path)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (model_document(**{"class": "os.system"}), r"holds a 'os\.system', which this gmil does not know"),
        (model_document(**{"class": "StandardScaler"}), "holds a 'StandardScaler', which"),
        (model_document(**{"class": ["GMIL"]}), "damaged"),
        (model_document(params={"no_such": 1}), "parameter 'no_such', which this gmil does not know"),
        (model_document(params={"__class__": 1}), "parameter '__class__', which"),
        (model_document(params=[1]), "parameter 1, which|damaged"),
        (model_document(fitted={"predict": 1}), "attribute 'predict', which this gmil does not know"),
        (model_document(fitted={"save": 1}), "attribute 'save', which"),
        (model_document(fitted={"__class__": 1}), "attribute '__class__', which"),
        (model_document(fitted={"__init__": 1}), "attribute '__init__', which"),
        (model_document(fitted={"n_clusters": 1}), "attribute 'n_clusters', which"),
        (model_document(fitted={"Upper_": 1}), "attribute 'Upper_', which"),
        (
            model_document(fitted={"classes_": {"tensor": "none", "shape": [1], "order": "C"}}),
            "tensor 'none' is missing",
        ),
        (model_document(fitted={"classes_": {"unheard-of": 1}}), "damaged: it holds a value that is none"),
        (model_document(fitted={"classes_": [1]}), "damaged: it holds a value that is none"),
        (model_document(fitted={"classes_": {"strings": [["a"], ["b", "c"]], "object": False}}), "damaged"),
        (model_document(params={"epsilon": {"float": "zero"}}), "damaged: ValueError"),
        (model_document(params={"epsilon": {"float": "0x1p99999"}}), "damaged: OverflowError"),
        (model_document(params={"epsilon": {"skops": "none"}}), "tensor 'none' is missing"),
        (model_document(params={"epsilon": deep_list(60)}), "more than 50 deep"),
        (model_document(params={"n_clusters": -3}), "The 'n_clusters' parameter of GMIL must be"),
        (model_document(params={"n_jobs": 10**9}), "n_jobs of GMIL must be at most"),
        (json.dumps(model_document()).replace('"probe"', '"gmil": "1", "probe"'), "a key is there twice"),
        (json.dumps(model_document()).replace('"probe": ""', '"probe": NaN'), "NaN is no number"),
        (model_document(fitted={"classes_": {"pairs": [[{"list": []}, 1]]}}), "damaged: TypeError"),
        ({"version": 2}, "damaged: KeyError"),
        ({"version": 2, "parts": [1]}, "damaged: AttributeError"),
        ({"version": "1"}, "names no format version"),
        ({}, "names no format version"),
        ([1, 2], "not a gmil model, or it is damaged"),
        ("no json", "not a gmil model, or it is damaged"),
        ("[" * 100_000, "not a gmil model, or it is damaged"),
    ],
)
def test_a_document_that_is_none_of_ours_is_refused(document, message, path):
    write(path, document)
    with pytest.raises(ModelFileError, match=message):
        gmil.load(path)


def test_an_array_that_cannot_be_made_is_damage():
    with pytest.raises(ModelFileError, match=r"x\.gmil is damaged: MemoryError"), clear_damage("x.gmil"):
        raise MemoryError


def test_a_method_that_looks_like_a_fitted_attribute_is_not_overwritten(path, monkeypatch):
    monkeypatch.setattr(GMIL, "decide_", len, raising=False)
    write(path, model_document(fitted={"decide_": 1}))
    with pytest.raises(ModelFileError, match="attribute 'decide_', which this gmil does not know"):
        gmil.load(path)


def test_an_array_of_another_shape_is_refused(path):
    write(path, model_document(fitted={"classes_": {"tensor": "a", "shape": [5], "order": "C"}}), {"a": np.arange(2)})
    with pytest.raises(ModelFileError, match=r"tensor 'a' is \(2,\), but its shape should be \[5\]"):
        gmil.load(path)


@pytest.fixture(scope="module")
def saved_bytes(tmp_path_factory, gaussian_bags):
    path = tmp_path_factory.mktemp("saved") / "model.gmil"
    GMIL(random_state=0).fit(*gaussian_bags()).save(path)
    return path.read_bytes()


def test_a_file_that_is_cut_off_anywhere_is_refused(saved_bytes, path):
    cuts = {*range(12), *range(12, len(saved_bytes), 97), *range(len(saved_bytes) - 4, len(saved_bytes))}
    for length in sorted(cuts):
        path.write_bytes(saved_bytes[:length])
        with pytest.raises(ModelFileError, match="not a gmil model, or it is damaged"):
            gmil.load(path)


def test_a_file_that_goes_on_behind_its_end_is_refused(saved_bytes, path):
    path.write_bytes(saved_bytes + b"more")
    with pytest.raises(ModelFileError, match="damaged"):
        gmil.load(path)


@settings(max_examples=200)
@given(data=st.data())
def test_a_damaged_header_is_refused_or_harmless(tmp_path_factory, saved_bytes, data):
    header_size = struct.unpack("<Q", saved_bytes[:8])[0]
    damaged = bytearray(saved_bytes)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, 7 + header_size))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.gmil"
    path.write_bytes(damaged)
    try:
        assert isinstance(gmil.load(path), BaseEstimator)
    except ModelFileError as error:
        assert "damaged.gmil" in str(error) or "The file" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "content", [b"", b"bag,label\n1,2\n", b"PK\x03\x04" + bytes(40), b"\x93NUMPY" + bytes(40), bytes(64), b"\xff" * 64]
)
def test_a_file_of_another_kind_is_refused(content, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.gmil is not a gmil model, or it is damaged"):
        gmil.load(path)


def test_arrays_without_a_document_are_no_model(path):
    save_file({"a": np.ones(3)}, path)
    with pytest.raises(ModelFileError, match="not a gmil model"):
        gmil.load(path)


class LeavesATrace:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_does_not_run(tmp_path, path):
    trace = tmp_path / "trace"
    path.write_bytes(pickle.dumps(LeavesATrace(trace)))
    with pytest.raises(ModelFileError, match="not a gmil model"):
        gmil.load(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())
    assert trace.exists(), "the pickle would have run"


def test_a_missing_file_is_a_missing_file(path):
    with pytest.raises(MissingFileError, match=r"model\.gmil does not exist"):
        gmil.load(path)


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(OSError, match=tmp_path.name):
        gmil.load(tmp_path)
