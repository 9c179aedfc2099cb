"""The fitted space: the same for arrays, sparse arrays, tensors, blocks, and models from files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gmil
from gmil.engine import available_backends, resolve
from gmil.errors import ModelFileError
from gmil.transform.embedding import spectral_embedding
from gmil.transform.scaling import SCALINGS, summarize_columns
from gmil.transform.space import Space, fit_scaling, fit_space

WAYS = [*SCALINGS, None]


def some_instances(seed, n=30, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * [1, 10, 0.1, 1] + 3


def slowly(space, X):
    """Return every instance in a space, one by one, by the formulas."""
    found = []
    for x in X:
        row = x - (0 if space.shift is None else space.shift)
        row = row / (1 if space.divisor is None else space.divisor)
        row = row / np.sqrt((row**2).sum()) if space.unit_length else row
        if space.pca_components is not None:
            row = np.array([component @ (row - space.pca_mean) for component in space.pca_components])
        found.append(row if space.whitening is None else space.whitening @ row)
    return np.array(found)


@given(
    seed=st.integers(0, 100),
    scale=st.sampled_from(WAYS),
    n_components=st.sampled_from([None, 1, 3, 0.9]),
    metric=st.sampled_from(["euclidean", "mahalanobis"]),
)
@settings(max_examples=40)
def test_every_part_by_its_formula(seed, scale, n_components, metric):
    X, new = some_instances(seed), some_instances(seed + 1)
    space, inside = fit_space(X, scale, n_components, np.random.default_rng(0), metric)
    assert_allclose(inside, slowly(space, X), atol=1e-9)
    assert_allclose(space.apply(new), slowly(space, new), atol=1e-9)


@pytest.mark.skipif("torch" not in available_backends(), reason="needs PyTorch")
@pytest.mark.parametrize("scale", WAYS)
@pytest.mark.parametrize(("n_components", "metric"), [(None, "euclidean"), (2, "mahalanobis")])
def test_tensors_come_to_the_same_places(scale, n_components, metric):
    import torch

    X = some_instances(0)
    space, inside = fit_space(X, scale, n_components, np.random.default_rng(0), metric)
    tensor = torch.from_numpy(X)
    assert_allclose(space.on_device_of(tensor).apply(tensor).numpy(), inside, atol=1e-9)
    assert_array_equal(tensor.numpy(), X)


@pytest.mark.parametrize("scale", ["l2", None])
def test_sparse_instances_stay_sparse_and_come_to_the_same_places(scale):
    X = some_instances(0) * (some_instances(1) > 3)
    space = fit_scaling(sp.csr_array(X), scale)
    found = space.apply(sp.csr_array(X))
    assert sp.issparse(found)
    assert_allclose(found.toarray(), fit_scaling(X, scale).apply(X))


@pytest.mark.parametrize("scale", WAYS)
def test_a_summary_read_in_blocks_gives_the_same_scaling(scale):
    X = some_instances(0)
    lazy = gmil.LazyBags.from_array(X, [0, 1, 10, 30])
    (summary,) = summarize_columns(lazy, [np.ones(3, dtype=bool)], resolve("auto", 1))
    assert_allclose(fit_scaling(summary, scale).apply(X), fit_scaling(X, scale).apply(X), atol=1e-12)


def test_ranks_are_shares_of_smaller_values():
    X = np.arange(10.0)[:, None]
    found = fit_scaling(X, "rank").apply(np.array([[-5.0], [4.5], [50.0]]))
    assert_array_equal(np.diff(found[:, 0]) > 0, [True, True])
    assert found.min() >= 0
    assert found.max() <= 1


def test_spaces_without_anything_fitted_are_the_same():
    X = some_instances(0)
    assert Space().is_same(fit_scaling(None, None))
    assert fit_scaling(None, "l2").is_same(Space(unit_length=True))
    assert not fit_scaling(None, "l2").is_same(Space())
    assert not fit_scaling(X, "standard").is_same(fit_scaling(X, "standard"))
    one = fit_scaling(X, "rank")
    assert one.is_same(one)


def test_what_a_file_holds_is_a_space_again_or_stays_as_it_is():
    X = some_instances(0)
    space = fit_scaling(X, "minmax")._replace(embedding=spectral_embedding(X, 2))
    plain = (*space[:-1], tuple(space.embedding))
    again = Space.from_file(plain)
    assert_array_equal(again.apply(X), space.apply(X))
    assert Space.from_file(plain[:3]).embedding is None  # an older file knows fewer parts
    assert Space.from_file("space") == "space"
    assert Space.from_file((1,) * 20) == (1,) * 20


@pytest.mark.parametrize(
    "model",
    [
        gmil.GMIL(5, scale="standard+l2", n_components=2, metric="mahalanobis", random_state=0),
        gmil.GMIL(5, clustering="spectral", random_state=0),
        gmil.GMIL(5, clustering="kernel", scale="minmax", random_state=0),
        gmil.CitationKNN(),
    ],
)
def test_a_space_is_saved_as_one_part(model, gaussian_bags, tmp_path):
    bags, y = gaussian_bags()
    model.fit(bags, y).save(tmp_path / "model.gmil")
    again = gmil.load(tmp_path / "model.gmil")
    assert type(again.space_) is Space
    assert type(again.space_.embedding) is type(model.space_.embedding)
    assert_array_equal(again.decision_function(bags), model.decision_function(bags))


def test_a_space_that_does_not_fit_is_not_saved(gaussian_bags, tmp_path):
    model = gmil.CitationKNN(scale="standard").fit(*gaussian_bags())
    model.space_ = model.space_._replace(divisor=np.zeros(3))
    with pytest.raises(ModelFileError, match="space_ of CitationKNN divisor must be above 0"):
        model.save(tmp_path / "model.gmil")
