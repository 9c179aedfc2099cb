"""Model files that lie: whatever they claim about arrays, counts and names is found out before anything predicts."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file
from sklearn.base import is_classifier
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer
from sklearn.svm import SVC, NuSVC, OneClassSVM
from tests.conftest import target_for
from tests.estimators import small
from tests.model_files.make import problems, variants

import gmil
from gmil import GMIL, BagStatistics, ModelFileError, PerInstance, SingleInstance, WeightedGMIL
from gmil.errors import FileAccessError
from gmil.io.model_files import checksum
from gmil.io.model_files.fitted import check_model, declared, fitted_values
from gmil.io.model_files.schema import Array, Count, Either, Items, Labels, Number, Offsets, Record, Rows
from gmil.io.model_files.sklearn_models import check_sklearn_model

PROBLEMS = problems()


def document_of(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["gmil"])


def rewrite(path, document, tensors):
    """Write a file whose checksum is right."""
    text = json.dumps(document)
    save_file(tensors, path, metadata={"gmil": text, "sha256": checksum(text, tensors)})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gmil"


@pytest.fixture
def saved(path):
    """Save a fitted model on small bags; return its file, what is in it and its tensors."""

    def save(model, problem="two"):
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        model.fit(*PROBLEMS[problem]).save(path)
        return path, document_of(path), load_file(path)

    return save


# ------------------------------------------------------------------ what fits come back


def every_model():
    models = {name: (small(cls), "two") for name, cls in gmil.all_estimators()}
    for name, cls in gmil.all_estimators():
        if cls().__sklearn_tags__().input_tags.sparse:
            models[f"{name}-sparse"] = (small(cls), "sparse")
    return {**models, **variants()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", every_model())
def test_every_fitted_attribute_is_declared_and_comes_back(name, path):
    model, problem = every_model()[name]
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    bags, y = PROBLEMS[problem]
    model.fit(bags, target_for(model, y))
    undeclared = sorted(set(fitted_values(model)) - set(declared(type(model))))
    assert not undeclared, f"declare {undeclared} in _fitted_attributes of {type(model).__name__}"
    check_model(model)
    model.save(path)
    loaded = gmil.load(path)
    assert set(fitted_values(loaded)) == set(fitted_values(model))
    if is_classifier(model):
        assert_array_equal(loaded.decision_function(bags), model.decision_function(bags))


def test_what_lacks_an_attribute_or_has_a_strange_one_is_neither_saved_nor_loaded(saved):
    path, document, tensors = saved(GMIL())
    del document["model"]["fitted"]["slope_"]
    rewrite(path, document, tensors)
    with pytest.raises(ModelFileError, match="GMIL is fitted, but lacks the attribute 'slope_'"):
        gmil.load(path)
    model = GMIL(random_state=0).fit(*PROBLEMS["two"])
    model.kept_ = 1
    with pytest.raises(ModelFileError, match="GMIL cannot be saved: GMIL has the attribute 'kept_', which no fitted"):
        model.save(path)
    del model.kept_, model.slope_
    with pytest.raises(ModelFileError, match="lacks the attribute 'slope_'"):
        model.save(path)


# ------------------------------------------------------------------ checksum


def test_any_flipped_bit_of_a_tensor_is_noticed(saved):
    path, _, _ = saved(GMIL())
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    for place in range(8 + size, len(data), 13):
        for bit in (0, 5):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
            with pytest.raises(ModelFileError, match=r"checksum is not that of its content|truth values"):
                gmil.load(path)


def test_a_file_without_checksum_is_refused_unless_it_is_of_the_first_version(saved):
    path, document, tensors = saved(GMIL())
    save_file(tensors, path, metadata={"gmil": json.dumps(document)})
    with pytest.raises(ModelFileError, match="it has no checksum"):
        gmil.load(path)
    save_file(tensors, path, metadata={"gmil": json.dumps({**document, "version": 1})})
    assert isinstance(gmil.load(path), GMIL)


def test_a_checksum_that_is_there_must_be_right_in_every_version(saved):
    path, document, tensors = saved(GMIL())
    text = json.dumps({**document, "version": 1})
    save_file(tensors, path, metadata={"gmil": text, "sha256": checksum(text, tensors)})
    assert isinstance(gmil.load(path), GMIL)
    save_file(tensors, path, metadata={"gmil": text, "sha256": checksum(text + " ", tensors)})
    with pytest.raises(ModelFileError, match="checksum is not that of its content"):
        gmil.load(path)


def test_the_checksum_is_as_documented():
    import hashlib

    tensors = {"b": np.arange(6, dtype=np.int32).reshape(2, 3), "a": np.array([True])}
    content = b"{}a\0bool\x001\0\x01b\0int32\x002,3\0" + np.arange(6, dtype="<i4").tobytes()
    assert checksum("{}", tensors) == hashlib.sha256(content).hexdigest()


# ------------------------------------------------------------------ the file itself


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileAccessError, match="not a regular file"):
            gmil.load(path)


def test_a_file_that_is_rewritten_while_it_is_read_does_no_harm(saved):
    path, _, _ = saved(WeightedGMIL())
    data, stop = path.read_bytes(), threading.Event()

    def rewrite_in_place():
        with path.open("r+b") as file:
            while not stop.is_set():
                file.truncate(100)
                file.seek(0)
                file.write(data)
                file.flush()

    writer = threading.Thread(target=rewrite_in_place)
    writer.start()
    try:
        for _ in range(20):
            try:
                assert isinstance(gmil.load(path), WeightedGMIL)
            except ModelFileError as error:
                assert "damaged" in str(error)  # noqa: PT017
    finally:
        stop.set()
        writer.join()


def raw_file(path, header, body):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}, "'t' is of type 'F8_E4M3', which NumPy does not"),
        ({"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}, "'t' is of type 'BF16'"),
        ({"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}, "'t' does not lie where it should"),
        ({"dtype": "F64", "shape": [1], "data_offsets": [0, 800]}, "'t' does not lie where it should"),
        ({"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}, "'t' does not lie where it should"),
        ({"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]}, "'t' is no number of bytes"),
        ({"dtype": "F64", "shape": [True], "data_offsets": [0, 8]}, "'t' is no number of bytes"),
        ({"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}, "8 bytes belong to no tensor"),
        ({"dtype": "F64", "shape": [2**62, 4, 0], "data_offsets": [0, 0]}, "8 bytes|array is too big|damaged"),
        ({"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}, "truth values other than 0 and 1"),
        ({"dtype": "F64", "shape": [1]}, "'t' is not described"),
        (7, "'t' is not described"),
    ],
)
def test_a_tensor_that_lies_about_itself_is_refused(entry, message, path):
    raw_file(path, {"__metadata__": {"gmil": "{}"}, "t": entry}, b"\x07" * 8)
    with pytest.raises(ModelFileError, match=message):
        gmil.load(path)


def test_tensors_that_overlap_are_refused(path):
    entry = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    raw_file(path, {"__metadata__": {"gmil": "{}"}, "t": entry, "u": entry}, bytes(8))
    with pytest.raises(ModelFileError, match="'u' does not lie where it should"):
        gmil.load(path)


# ------------------------------------------------------------------ memory


def peak_of_loading(path):
    tracemalloc.start()
    try:
        gmil.load(path)
    except ModelFileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def model_of(**fitted):
    entry = {"class": "GMIL", "params": {}, "fitted": fitted}
    return {"version": 2, "gmil": "0", "probe": "", "model": entry}


def test_strings_are_not_padded_beyond_their_text(path):
    strings = ["x" * 100_000, *(str(i) for i in range(6000))]
    rewrite(path, model_of(classes_={"strings": strings, "object": False}), {})
    assert peak_of_loading(path) < 20 * path.stat().st_size + (50 << 20)


def test_one_tensor_belongs_to_one_value(path):
    entry = {"tensor": "t", "shape": [1 << 17], "order": "F"}
    rewrite(path, model_of(best_={"list": [entry] * 1000}), {"t": np.zeros(1 << 17)})
    with pytest.raises(ModelFileError, match="attribute 'best_'"):
        gmil.load(path)
    document = model_of()
    document["model"]["params"] = {"init": {"list": [entry] * 1000}}
    rewrite(path, document, {"t": np.zeros(1 << 17)})
    with pytest.raises(ModelFileError, match="'t' is missing, or two values refer to it"):
        gmil.load(path)
    assert peak_of_loading(path) < 20 * path.stat().st_size + (50 << 20)


@pytest.mark.parametrize("n_values", [40_000, pytest.param(400_000, marks=pytest.mark.slow)])
def test_many_small_values_stay_within_bounds(path, n_values):
    document = model_of()
    document["model"]["params"] = {"init": {"list": [{"list": []}] * n_values}}
    rewrite(path, document, {})
    assert peak_of_loading(path) < 20 * path.stat().st_size + n_values * 524


def test_more_text_than_a_file_has_room_for_is_not_saved(path):
    with pytest.raises(ModelFileError, match="16 MiB"):
        GMIL(pos_label="x" * (17 << 20)).save(path)


# ------------------------------------------------------------------ fitted attributes that lie


@pytest.mark.parametrize(
    ("model", "name", "change", "message"),
    [
        (GMIL(), "cluster_centers_", lambda a: a * np.nan, "cluster_centers_ of GMIL must be free of NaN"),
        (GMIL(), "cluster_centers_", lambda a: a + np.inf, "cluster_centers_ of GMIL must be finite"),
        (GMIL(), "cluster_centers_", lambda a: a.astype(np.int64), "must be an array of float32 or float64"),
        (GMIL(), "cluster_centers_", lambda a: a[:, :2], "cannot predict"),
        (GMIL(), "positive_bins_", lambda a: a + 100, "positive_bins_ of GMIL must be below K"),
        (GMIL(), "positive_bins_", lambda a: -1 - a, "positive_bins_ of GMIL must be at least 0"),
        (GMIL(), "bin_scores_", lambda a: a[:3], "bin_scores_ of GMIL must be of shape"),
        (GMIL(), "classes_", lambda a: a[:1], "the positive class 1 of"),
        (GMIL(), "classes_", lambda a: a[::-1].copy(), "classes_ of GMIL must be different labels in order"),
        (gmil.APR(), "features_", lambda a: a + 3, "features_ of APR must be below d = 3"),
        (gmil.APR(), "deviations_", lambda a: a * 0, "deviations_ of APR must be above 0"),
        (gmil.CitationKNN(), "offsets_", lambda a: a[::-1].copy(), "offsets_ of CitationKNN must be offsets"),
        (gmil.CitationKNN(), "labels_", lambda a: a + 1, "labels_ of CitationKNN must be below C = 2"),
        (gmil.MILES(), "coef_", lambda a: a[1:], "must be of shape"),
    ],
)
def test_an_array_that_lies_is_refused(model, name, change, message, saved):
    path, document, tensors = saved(model)
    key = document["model"]["fitted"][name]["tensor"]
    tensors[key] = np.ascontiguousarray(change(tensors[key]))
    document["model"]["fitted"][name]["shape"] = list(tensors[key].shape)
    rewrite(path, document, tensors)
    with pytest.raises(ModelFileError, match=message):
        gmil.load(path)


@pytest.mark.parametrize(
    ("path_to", "value", "message"),
    [
        (["views_", "list", 0, "dict", "space"], 99, "views_ of WeightedGMIL 0 space must be from 0 to"),
        (["views_", "list", 0, "dict", "kind"], "no", "kind must be one of"),
        (["views_", "list", 0, "dict", "width"], {"float": "0x0p+0"}, "width must be above 0"),
        (["views_", "list", 0, "dict", "extra"], 1, "must be a dict of"),
        (["spaces_", "list", 0, "dict", "unit_length"], 1, "unit_length must be true or false"),
        (["multilabel_"], True, "the positive class 1 of"),
        (["n_features_in_"], 4, "must be of shape"),
        (["familiar_distance_"], "far", "familiar_distance_ of WeightedGMIL must be a number"),
    ],
)
def test_a_value_inside_that_lies_is_refused(path_to, value, message, saved):
    path, document, tensors = saved(WeightedGMIL())
    entry = document["model"]["fitted"]
    for key in path_to[:-1]:
        entry = entry[key]
    entry[path_to[-1]] = value
    rewrite(path, document, tensors)
    with pytest.raises(ModelFileError, match=message):
        gmil.load(path)


# ------------------------------------------------------------------ scikit-learn models that lie


def with_estimator(saved, model, change, problem="two"):
    """Save a model whose scikit-learn model was changed after fit; return the file."""
    path, document, tensors = saved(model, problem)
    loaded = gmil.load(path)
    inner = loaded.estimator_ if hasattr(loaded, "estimator_") else loaded.transformer_
    change(inner[-1] if hasattr(inner, "steps") else inner)
    key = next(
        value["skops"] for value in document["model"]["fitted"].values() if isinstance(value, dict) and "skops" in value
    )
    tensors[key] = np.frombuffer(skops.io.dumps(inner), dtype=np.uint8)
    rewrite(path, document, tensors)
    return path


def setter(name, change):
    return lambda model: setattr(model, name, change(getattr(model, name)))


@pytest.mark.parametrize(
    "change",
    [
        setter("support_", lambda a: a + 10**6),
        setter("support_", lambda a: a[:-1].copy()),
        setter("support_", lambda a: a.astype(np.int64)),
        setter("_n_support", lambda a: a * 100_000),
        setter("_n_support", lambda a: np.array([-5, a.sum() + 5], dtype=np.int32)),
        setter("_n_support", lambda a: np.array([a.sum()], dtype=np.int32)),
        setter("support_vectors_", lambda a: a[:, :1].copy()),
        setter("support_vectors_", lambda a: a[:2].copy()),
        setter("support_vectors_", lambda a: a * np.nan),
        setter("_dual_coef_", lambda a: a[:, :2].copy()),
        setter("_dual_coef_", lambda a: sp.csr_matrix(a)),
        setter("_intercept_", lambda a: a[:0].copy()),
        setter("_probA", lambda _: np.zeros(7)),
        setter("_gamma", lambda _: float("inf")),
        setter("kernel", lambda _: "precomputed"),
        setter("kernel", lambda _: "unheard-of"),
        setter("shape_fit_", lambda _: (10**9, 10**9)),
        setter("_sparse", lambda _: True),
        setter("_sparse", lambda _: 1),
        setter("n_features_in_", lambda _: 10**9),
        lambda model: setattr(model, "_impl", "epsilon_svr"),
        lambda model: setattr(model, "classes_", np.arange(4)),
    ],
)
def test_a_support_vector_machine_that_lies_is_refused(change, saved):
    with pytest.raises(ModelFileError):
        gmil.load(with_estimator(saved, BagStatistics(), change))


@pytest.mark.parametrize(
    "change",
    [
        setter("support_vectors_", lambda a: a[:, :1]),
        lambda model: model.support_vectors_.indices.__setitem__(0, 10**6),
        lambda model: model.support_vectors_.indptr.__setitem__(1, 10**6),
        lambda model: model._dual_coef_.indices.__setitem__(0, 10**6),
    ],
)
def test_a_sparse_support_vector_machine_that_lies_is_refused(change, saved):
    with pytest.raises(ModelFileError):
        gmil.load(with_estimator(saved, SingleInstance(SVC(), scale=None), change, "sparse"))


@pytest.mark.parametrize("estimator", [SVC(), NuSVC(), SVC(kernel="linear"), LogisticRegression(), None])
@pytest.mark.parametrize("problem", ["two", "three", "sparse"])
def test_honest_machines_come_back(estimator, problem, saved):
    bags = PROBLEMS[problem][0]
    model = SingleInstance(estimator, scale=None)
    path, _, _ = saved(model, problem)
    assert_array_equal(gmil.load(path).decision_function(bags), model.decision_function(bags))


def test_clusters_of_other_features_are_refused(saved):
    change = setter("cluster_centers_", lambda a: a[:, :1].copy())
    with pytest.raises(ModelFileError, match="cluster_centers_ of KMeans must be of shape"):
        gmil.load(with_estimator(saved, PerInstance(KMeans(2, random_state=0)), change))


def test_a_sparse_array_that_lies_is_refused(saved):
    def change(model):
        model.coef_ = sp.csr_matrix(model.coef_)
        model.coef_.indices[0] = 10**6

    with pytest.raises(ModelFileError):
        gmil.load(with_estimator(saved, SingleInstance(LogisticRegression()), change))


def test_a_model_that_refuses_unknown_values_comes_back(path):
    bags = gmil.Bags.from_list([np.array([[7.0], [9.0]]), np.array([[9.0]]), np.array([[7.0]]), np.array([[9.0]])])
    for estimator in (
        make_pipeline(OneHotEncoder(), LogisticRegression()),
        make_pipeline(PowerTransformer("box-cox"), LogisticRegression()),
    ):
        model = SingleInstance(estimator, scale=None).fit(bags, [0, 1, 0, 1])
        model.save(path)
        assert_array_equal(gmil.load(path).decision_function(bags), model.decision_function(bags))
        document, tensors = document_of(path), load_file(path)
        save_file(tensors, path, metadata={"gmil": json.dumps({**document, "version": 1})})
        assert isinstance(gmil.load(path), SingleInstance)


def test_a_model_that_cannot_predict_is_refused(saved):
    def change(model):
        model.coef_ = model.coef_.astype(str)

    with pytest.raises(ModelFileError, match="cannot predict"):
        gmil.load(with_estimator(saved, SingleInstance(LogisticRegression()), change))


def test_a_machine_without_classes_is_checked_too():
    bags, _ = PROBLEMS["two"]
    machine = OneClassSVM().fit(bags.instances)
    check_sklearn_model(machine)
    machine._n_support = machine._n_support * 2
    with pytest.raises(ValueError, match="_n_support of OneClassSVM"):
        check_sklearn_model(machine)


# ------------------------------------------------------------------ the words of declarations


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Array("K", "d"), np.zeros((2, 3)), np.zeros((2, 4))),
        (Array("2*d"), np.zeros(6), np.zeros(5)),
        (Array("d+1"), np.zeros(4), np.zeros(3)),
        (Array("d", dtype="b"), np.zeros(3, dtype=bool), np.zeros(3)),
        (Array("d", nan=True), np.full(3, np.nan), np.full(3, np.inf)),
        (Array("d", infinite=True), np.full(3, np.inf), np.full(3, np.nan)),
        (Offsets("B+1", "d"), np.array([0, 1, 3]), np.array([0, 0, 3])),
        (Rows("n", "d"), sp.csr_array(np.eye(3)), sp.csr_array(np.ones((2, 4)))),
        (Labels("C"), np.array(["a", "b"]), np.array([0.5, np.nan])),
        (Labels("C"), np.array(["a", "b"], dtype=object), np.array(["a", None], dtype=object)),
        (Number(above=0), 0.5, 0),
        (Number(), 1, True),
        (Count(1), 3, 0.5),
        (Either(Number(), Array("d")), np.zeros(3), "x"),
        (Items(Count(), "d"), [1, 2, 3], [1, 2]),
        (Record({"a": Count()}), {"a": 1}, {"a": 1, "b": 2}),
    ],
)
def test_every_word_of_a_declaration_means_what_it_says(kind, good, bad):
    kind.check(good, "it", {"d": 3})
    with pytest.raises(ValueError, match="it"):
        kind.check(bad, "it", {"d": 3})


def test_loading_imports_nothing_that_the_model_does_not_need(saved):
    path, _, _ = saved(GMIL())
    code = f"import sys, gmil; gmil.load({str(path)!r}); print('skops' in sys.modules, 'gmil.methods' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    start = time.perf_counter()
    gmil.load(path)
    assert time.perf_counter() - start < 1
