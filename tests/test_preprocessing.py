"""`PerInstance`: scikit-learn's transformers on the instances of bags."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MaxAbsScaler, MinMaxScaler, StandardScaler

from gmil import GMIL, Bags, BagValidationError, PerInstance


@pytest.fixture
def training(gaussian_bags):
    return gaussian_bags()


@pytest.mark.parametrize("transformer", [None, MinMaxScaler(), PCA(2)])
def test_all_instances_are_transformed_together(training, transformer):
    bags, _ = training
    alone = StandardScaler() if transformer is None else transformer
    transformed = PerInstance(transformer).fit(bags).transform(bags)
    assert isinstance(transformed, Bags)
    assert_allclose(transformed.instances, alone.fit_transform(bags.instances))
    assert_array_equal(transformed.offsets, bags.offsets)


def test_fit_transform_is_fit_then_transform(training):
    bags, y = training
    expected = PerInstance(MinMaxScaler()).fit(bags).transform(bags)
    assert_array_equal(PerInstance(MinMaxScaler()).fit_transform(bags, y).instances, expected.instances)


def test_the_given_transformer_stays_unfitted(training):
    scaler = MinMaxScaler()
    model = PerInstance(scaler).fit(training[0])
    assert model.transformer is scaler
    assert not hasattr(scaler, "scale_")
    assert_array_equal(model.transformer_.data_max_, training[0].instances.max(axis=0))


def test_ids_and_info_are_kept(rich_bags):
    transformed = PerInstance().fit_transform(rich_bags)
    assert_array_equal(transformed.bag_ids, rich_bags.bag_ids)
    assert transformed.instance_info.equals(rich_bags.instance_info)


@pytest.mark.parametrize(
    ("transformer", "names"),
    [
        (MinMaxScaler(), ("width", "height")),
        (PCA(1), ("pca0",)),
        (SimpleImputer(add_indicator=True), ("width", "height")),
        (make_pipeline(MinMaxScaler(), PCA(2)), ("pca0", "pca1")),
    ],
    ids=["scaler", "components", "imputer", "pipeline"],
)
def test_names_come_out_of_the_transformer(rich_bags, transformer, names):
    assert PerInstance(transformer).fit_transform(rich_bags).feature_names == names


def test_names_follow_a_selection():
    bags = Bags(np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]]), [0, 2], feature_names=["a", "b", "c"])
    assert PerInstance(VarianceThreshold()).fit_transform(bags).feature_names == ("a", "c")


def test_bags_without_names_come_out_without_names(training):
    assert PerInstance().fit_transform(training[0]).feature_names is None


@pytest.mark.parametrize("given_as", [list, tuple, np.array], ids=["list", "tuple", "3-D"])
def test_whatever_bags_go_in_bags_come_out(given_as):
    cube = np.arange(24.0).reshape(4, 3, 2)
    transformed = PerInstance().fit_transform(given_as(list(cube)))
    assert isinstance(transformed, Bags)
    assert_allclose(transformed.instances, StandardScaler().fit_transform(cube.reshape(12, 2)))


@pytest.mark.parametrize("given_as", [np.asarray, np.ndarray.tolist, pd.DataFrame], ids=["array", "lists", "frame"])
def test_a_table_comes_out_as_a_table(given_as):
    table = np.arange(8.0).reshape(4, 2)
    transformed = PerInstance().fit(given_as(table)).transform(given_as(table))
    assert isinstance(transformed, np.ndarray)
    assert_allclose(transformed, StandardScaler().fit_transform(table))


def test_missing_values_can_be_filled_in_a_pipeline(training):
    bags, y = training
    holes = bags.instances.copy()
    holes[5, 1] = holes[17, 0] = np.nan
    with_holes = bags.with_instances(holes)
    with pytest.raises(BagValidationError, match=r"NaN: in bag .*gmil\.Impute\(\)"):
        GMIL(random_state=0).fit(with_holes, y)
    model = make_pipeline(PerInstance(SimpleImputer()), PerInstance(), GMIL(random_state=0)).fit(with_holes, y)
    assert model.predict(with_holes).shape == y.shape
    filled = model[0].transform(with_holes).instances
    assert_allclose(filled[5, 1], np.nanmean(holes[:, 1]))


@pytest.mark.parametrize(
    "transformer", [PCA(1), make_pipeline(PCA(1), SimpleImputer())], ids=["components", "pipeline"]
)
def test_missing_values_are_refused_where_the_transformer_cannot_take_them(transformer):
    with pytest.raises(BagValidationError, match="NaN: in bag 1, instance 0, column 0"):
        PerInstance(transformer).fit([np.ones((2, 2)), np.array([[np.nan, 1.0]])])


def test_sparse_bags_stay_sparse(training):
    bags, y = training
    sparse = bags.with_instances(sp.csr_array(bags.instances))
    transformed = PerInstance(MaxAbsScaler()).fit_transform(sparse)
    assert isinstance(transformed.instances, sp.csr_array)
    assert_allclose(transformed.instances.toarray(), MaxAbsScaler().fit_transform(bags.instances))
    model = make_pipeline(PerInstance(MaxAbsScaler()), GMIL(random_state=0)).fit(sparse, y)
    assert model.predict(sparse).shape == y.shape


def test_dense_bags_may_become_sparse(training):
    bags, _ = training
    bins = KBinsDiscretizer(3, encode="onehot", strategy="uniform")
    transformed = PerInstance(bins).fit_transform(bags)
    assert isinstance(transformed.instances, sp.csr_array)
    assert transformed.shape == (len(bags), 9)


def test_float32_stays_float32(training):
    bags, _ = training
    assert PerInstance().fit_transform(bags.with_instances(bags.instances.astype(np.float32))).dtype == np.float32


def test_parameters_inside_can_be_searched(training):
    bags, y = training
    pipeline = make_pipeline(PerInstance(PCA(random_state=0)), GMIL(random_state=0))
    grid = {"perinstance__transformer__n_components": [1, 3], "perinstance__transformer": [PCA(random_state=0)]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(bags, y)
    assert search.best_params_["perinstance__transformer__n_components"] == 3
    assert search.best_estimator_[0].transformer_.n_components_ == 3


def test_other_features_are_refused_at_transform(training):
    model = PerInstance().fit(training[0])
    with pytest.raises(BagValidationError, match="X has 2 features, but PerInstance is expecting 3"):
        model.transform([np.ones((1, 2))])


def test_transform_needs_fit(training):
    with pytest.raises(NotFittedError):
        PerInstance().transform(training[0])
