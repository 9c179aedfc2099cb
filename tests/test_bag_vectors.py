"""Bags to vectors: formulas one by one, names, blocks, pipelines, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from tests.torch_devices import TORCH_BACKENDS

import gmil
from gmil import (
    MILES,
    VLAD,
    Bags,
    BagStatistics,
    BagSummaries,
    BagValidationError,
    CodebookDistances,
    FisherVector,
    FisherVectorClassifier,
    InstanceSimilarities,
    LazyBags,
    ModelFileError,
    VLADClassifier,
)
from gmil.engine import available_backends, resolve

TRANSFORMERS = [
    BagSummaries(),
    BagSummaries(("sd", "max"), scale="standard+l2"),
    CodebookDistances(3, random_state=0),
    InstanceSimilarities(random_state=0),
    InstanceSimilarities(max_prototypes=5, scale=None, random_state=0),
    VLAD(3, random_state=0),
    VLAD(2, occupancy=False, scale="standard", random_state=0),
    FisherVector(2, random_state=0),
    FisherVector(n_components=None, scale=None, random_state=0),
]

every_transformer = pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
every_class = pytest.mark.parametrize(
    "cls", [BagSummaries, CodebookDistances, InstanceSimilarities, VLAD, FisherVector]
)


@st.composite
def some_bags(draw):
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    sizes = draw(st.lists(st.integers(1, 6), min_size=4, max_size=8))
    return Bags.from_list([rng.normal(size=(size, 3)) for size in sizes])


def as_lazy(bags):
    return LazyBags.from_array(bags.instances, bags.offsets, feature_names=bags.feature_names)


def in_tiny_blocks(monkeypatch, rows=2):
    monkeypatch.setattr(LazyBags, "block_rows", lambda _: rows)


# ------------------------------------------------------------------ formulas


@given(bags=some_bags(), names=st.permutations(["min", "mean", "max", "sd"]), n_names=st.integers(1, 4))
@settings(max_examples=25)
def test_statistics_one_by_one(bags, names, n_names):
    of = {"min": np.min, "mean": np.mean, "max": np.max, "sd": np.std}
    expected = [[of[name](bag[:, j]) for name in names[:n_names] for j in range(3)] for bag in bags]
    found = BagSummaries(tuple(names[:n_names])).fit_transform(bags)
    assert_allclose(found, expected, atol=1e-12)


@given(bags=some_bags(), seed=st.integers(0, 5))
@settings(max_examples=25)
def test_distances_to_centres_one_by_one(bags, seed):
    model = CodebookDistances(3, scale=None, random_state=seed).fit(bags)
    expected = [[min(np.linalg.norm(x - center) for x in bag) for center in model.cluster_centers_] for bag in bags]
    assert_allclose(model.transform(bags), expected, atol=1e-7)


@given(bags=some_bags(), gamma=st.floats(0.1, 3))
@settings(max_examples=25)
def test_similarities_one_by_one(bags, gamma):
    found = InstanceSimilarities(gamma, scale=None).fit_transform(bags)
    expected = [[max(np.exp(-gamma * ((x - z) ** 2).sum()) for x in bag) for z in bags.instances] for bag in bags]
    assert_allclose(found, expected, atol=1e-9)


@given(bags=some_bags(), seed=st.integers(0, 5), occupancy=st.booleans())
@settings(max_examples=25)
def test_aggregated_descriptors_one_by_one(bags, seed, occupancy):
    model = VLAD(2, occupancy=occupancy, scale=None, random_state=seed).fit(bags)
    for bag, vector in zip(bags, model.transform(bags), strict=True):
        sums, shares = np.zeros((2, 3)), np.zeros(2)
        for x in bag:
            k = int(np.argmin(np.linalg.norm(model.cluster_centers_ - x, axis=1)))
            sums[k] += (x - model.cluster_centers_[k]) / len(bag)
            shares[k] += 1 / len(bag)
        whole = np.concatenate([sums.ravel(), shares if occupancy else []])
        roots = np.sign(whole) * np.sqrt(np.abs(whole))
        assert_allclose(vector, roots / (np.linalg.norm(roots) or 1), atol=1e-7)


@given(bags=some_bags())
@settings(max_examples=25)
def test_fisher_vectors_of_one_gaussian_one_by_one(bags):
    model = FisherVector(n_components=None, scale=None).fit(bags)
    for bag, vector in zip(bags, model.transform(bags), strict=True):
        z = (bag - model.means_[0]) / np.sqrt(model.variances_[0])
        whole = np.concatenate([z.mean(axis=0), (z**2 - 1).mean(axis=0) / np.sqrt(2)])
        roots = np.sign(whole) * np.sqrt(np.abs(whole))
        assert_allclose(vector, roots / np.linalg.norm(roots), atol=1e-9)


# ------------------------------------------------------------------ kinds of input


@every_transformer
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_bags_read_in_blocks_have_the_same_vectors(transformer, rows, gaussian_bags, monkeypatch):
    bags, _ = gaussian_bags(sizes=(1, 9))
    model = clone(transformer).fit(bags)
    expected = model.transform(bags)
    in_tiny_blocks(monkeypatch, rows)
    assert_allclose(model.transform(as_lazy(bags)), expected, atol=1e-7)
    order = np.array([3, 0, 3, 7])
    assert_allclose(model.transform(as_lazy(bags)[order]), expected[order], atol=1e-7)


@every_transformer
def test_what_is_learnt_from_blocks_is_what_is_learnt_in_memory(transformer, gaussian_bags, monkeypatch):
    bags, _ = gaussian_bags()
    in_tiny_blocks(monkeypatch)
    found = clone(transformer).fit(as_lazy(bags)).transform(bags)
    assert_allclose(found, clone(transformer).fit(bags).transform(bags), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (VLAD(sample_size=None), "sample_size"),
        (CodebookDistances(sample_size=None), "sample_size"),
        (FisherVector(sample_size=None), "sample_size"),
        (InstanceSimilarities(max_prototypes=None), "max_prototypes"),
    ],
)
def test_what_needs_all_in_memory_is_refused_for_blocks(model, name, gaussian_bags):
    with pytest.raises(BagValidationError, match=f"{name}=None needs all instances in memory"):
        model.fit(as_lazy(gaussian_bags()[0]))


@every_class
def test_single_precision_stays_near(cls, gaussian_bags):
    bags, _ = gaussian_bags()
    model = cls().fit(bags)
    single = bags.with_instances(bags.instances.astype(np.float32))
    assert_allclose(model.transform(single), model.transform(bags), atol=2e-3)


@every_class
@pytest.mark.parametrize("name", [name for name in available_backends() if name != "native"])
def test_every_backend_gives_the_same_vectors(cls, name, gaussian_bags):
    bags, _ = gaussian_bags()
    model = cls().fit(bags)
    expected = model.transform(bags)
    assert_allclose(model.set_params(backend=name).transform(bags), expected, atol=1e-6)


@pytest.mark.skipif("torch" not in available_backends(), reason="needs PyTorch")
@pytest.mark.parametrize("backend", TORCH_BACKENDS)
@every_transformer
def test_tensors_have_the_same_vectors(transformer, backend, gaussian_bags):
    import torch

    bags, _ = gaussian_bags()
    X = torch.from_numpy(bags.instances.copy()).to(resolve(backend).device)
    resident = LazyBags.from_array(X, bags.offsets)
    model = clone(transformer).set_params(backend=backend).fit(resident)
    again = np.array([4, 4, 1])
    assert_allclose(model.transform(resident), model.transform(bags), atol=1e-6)
    assert_allclose(model.transform(resident[again]), model.transform(bags)[again], atol=1e-6)


@every_class
def test_sparse_bags_have_the_same_vectors(cls, gaussian_bags):
    bags, _ = gaussian_bags()
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    model = cls().fit(bags)
    assert_allclose(model.transform(sparse), model.transform(bags), atol=1e-9)
    assert np.isfinite(cls().fit(sparse).transform(sparse)).all()


def test_prototypes_of_sparse_bags_stay_sparse(gaussian_bags, tmp_path):
    bags, _ = gaussian_bags()
    sparse = Bags(sp.csr_array(bags.instances), bags.offsets)
    model = InstanceSimilarities(scale=None).fit(sparse)
    assert sp.issparse(model.prototypes_)
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").transform(sparse), model.transform(sparse))


@every_class
def test_bags_of_one_instance_are_rows_of_a_table(cls, gaussian_bags):
    bags, _ = gaussian_bags(sizes=(1, 1))
    model = cls().fit(bags.instances)
    assert_array_equal(model.transform(bags.instances), model.transform(bags))
    assert_allclose(model.transform(bags[:1]), model.transform(bags)[:1], rtol=1e-12)  # BLAS adds fewer rows otherwise


# ------------------------------------------------------------------ names


def named(bags):
    return Bags(bags.instances, bags.offsets, feature_names=["a", "b", "c"])


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (BagSummaries(("max", "sd")), ["max(a)", "max(b)", "max(c)", "sd(a)", "sd(b)", "sd(c)"]),
        (CodebookDistances(2), ["centre0", "centre1"]),
        (InstanceSimilarities(max_prototypes=2), ["prototype0", "prototype1"]),
        (VLAD(1), ["centre0(a)", "centre0(b)", "centre0(c)", "share(centre0)"]),
        (VLAD(1, occupancy=False), ["centre0(a)", "centre0(b)", "centre0(c)"]),
        (FisherVector(n_components=None), ["mean0(a)", "mean0(b)", "mean0(c)", "sd0(a)", "sd0(b)", "sd0(c)"]),
        (FisherVector(2, n_components=1), ["mean0(pc0)", "sd0(pc0)", "mean1(pc0)", "sd1(pc0)"]),
    ],
)
def test_columns_have_names_and_may_be_a_table(model, names, gaussian_bags):
    bags = named(gaussian_bags()[0])
    assert model.fit(bags).get_feature_names_out().tolist() == names
    table = model.set_output(transform="pandas").transform(bags)
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == names
    assert_array_equal(table.to_numpy(), model.set_output(transform="default").transform(bags))
    with pytest.raises(ValueError, match="input_features"):
        model.get_feature_names_out(["a", "b"])


@every_transformer
def test_every_column_has_a_name_of_its_own(transformer, gaussian_bags):
    bags, _ = gaussian_bags()
    model = clone(transformer)
    names = model.fit(bags).get_feature_names_out()
    assert len(set(names)) == model.transform(bags).shape[1]


# ------------------------------------------------------------------ with scikit-learn


@every_class
@pytest.mark.parametrize("make", [make_pipeline, gmil.make_pipeline])
def test_pipelines_with_any_classifier(cls, make, gaussian_bags):
    bags, y = gaussian_bags(n_bags=60, all_witnesses=True)
    model = make(cls(), LogisticRegression()).fit(bags, y)
    assert model.score(bags, y) > 0.9
    assert_array_equal(model.predict_proba(as_lazy(bags)).round(6), model.predict_proba(bags).round(6))


def test_grids_over_parameters_keep_groups_together(gaussian_bags):
    bags, y = gaussian_bags(n_bags=60, all_witnesses=True)
    groups = np.arange(60) // 2
    model = make_pipeline(VLAD(random_state=0), LogisticRegression())
    search = GridSearchCV(model, {"vlad__n_clusters": [1, 3], "vlad__occupancy": [True, False]}, cv=GroupKFold(3))
    assert search.fit(bags, y, groups=groups).best_score_ > 0.9
    with config_context(enable_metadata_routing=True):
        again = clone(search).fit(bags, y, groups=groups)
    assert again.best_params_ == search.best_params_
    assert again.best_estimator_[0].cluster_centers_.shape[0] == again.best_params_["vlad__n_clusters"]


def test_scores_of_folds_on_bags_read_in_blocks(gaussian_bags):
    bags, y = gaussian_bags(n_bags=60, all_witnesses=True)
    model = make_pipeline(CodebookDistances(random_state=0), LogisticRegression())
    assert cross_val_score(model, as_lazy(bags), y).mean() > 0.9
    assert gmil.cross_validate(model, bags, y, cv=3).accuracy() > 0.9


# ------------------------------------------------------------------ classifiers are a transformer and a head


@pytest.mark.parametrize(
    ("classifier", "transformer"),
    [
        (VLADClassifier(3, scale="standard", random_state=0), VLAD(3, scale="standard", random_state=0)),
        (FisherVectorClassifier(2, random_state=0), FisherVector(2, random_state=0)),
        (BagStatistics(("min", "sd"), scale="l2"), BagSummaries(("min", "sd"), scale="l2")),
    ],
)
def test_classifiers_have_the_transformer_of_the_same_parameters(classifier, transformer, gaussian_bags):
    bags, y = gaussian_bags()
    classifier.fit(bags, y)
    assert type(classifier.transformer_) is type(transformer)
    assert_array_equal(classifier.transformer_.transform(bags), transformer.fit(bags).transform(bags))


def test_miles_keeps_the_prototypes_with_a_weight(gaussian_bags):
    bags, y = gaussian_bags()
    model = MILES(random_state=0).fit(bags, y)
    whole = InstanceSimilarities(random_state=0).fit(bags)
    assert model.gamma_ == whole.gamma_
    assert (cdist(model.prototypes_, whole.prototypes_).min(axis=1) == 0).all()
    vectors = model.transformer_.transform(bags)
    assert_allclose(vectors @ model.coef_[:, 0] + model.intercept_[0], model.decision_function(bags))


# ------------------------------------------------------------------ files


@every_transformer
def test_files_keep_every_number(transformer, gaussian_bags, tmp_path):
    bags = named(gaussian_bags()[0])
    model = clone(transformer).fit(bags)
    model.save(tmp_path / "model.gmil")
    again = gmil.load(tmp_path / "model.gmil")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert_array_equal(again.transform(bags), model.transform(bags))
    assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())


def test_pipelines_are_saved_whole(gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    model = gmil.make_pipeline(VLAD(random_state=0), LogisticRegression()).fit(bags, y)
    model.save(tmp_path / "model.gmil")
    assert_array_equal(gmil.load(tmp_path / "model.gmil").predict_proba(bags), model.predict_proba(bags))


@pytest.mark.parametrize("classifier", [MILES(), VLADClassifier(), FisherVectorClassifier(), BagStatistics()])
def test_classifiers_are_saved_with_their_transformer(classifier, gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    classifier.fit(bags, y).save(tmp_path / "model.gmil")
    again = gmil.load(tmp_path / "model.gmil")
    assert_array_equal(again.decision_function(bags), classifier.decision_function(bags))
    assert_array_equal(again.transformer_.transform(bags), classifier.transformer_.transform(bags))


def test_weights_that_do_not_fit_the_vectors_are_refused(gaussian_bags, tmp_path):
    model = VLADClassifier().fit(*gaussian_bags())
    model.coef_ = model.coef_[1:]
    model.save(tmp_path / "model.gmil")
    with pytest.raises(ModelFileError, match="coef_ of VLADClassifier must be of shape \\(8\\), but it is \\(7,\\)"):
        gmil.load(tmp_path / "model.gmil")


def test_the_transformer_of_another_classifier_is_refused(gaussian_bags, tmp_path):
    model = MILES().fit(*gaussian_bags())
    model.transformer_ = VLAD().fit(gaussian_bags()[0])
    model.save(tmp_path / "model.gmil")
    with pytest.raises(ModelFileError, match="transformer_ of MILES must be a InstanceSimilarities, but it is a VLAD"):
        gmil.load(tmp_path / "model.gmil")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BagSummaries(()), "statistics must be some of .*got none"),
        (BagSummaries(("median",)), "got 'median'"),
        (CodebookDistances(10_000), "n_clusters=10000 is above the number of instances"),
        (InstanceSimilarities(gamma=0), "'gamma' parameter of InstanceSimilarities"),
        (FisherVector(n_components=9), "n_components=9 is above what the data allow"),
    ],
)
def test_what_cannot_be_is_refused(model, message, gaussian_bags):
    with pytest.raises(ValueError, match=message):
        model.fit(gaussian_bags()[0])
