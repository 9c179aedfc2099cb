"""Bags of words: models of sparse bags decide about sparse bags as those of the same bags made dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from tests.estimators import seeded, small

import gmil
from gmil import Bags

SEE_THE_ORIGIN = {"SingleInstance", "WeightedGMIL", "WeightedGMILOrdinal"}
"""They scale sparse rows without a shift, and see it: as do networks, which have ``epochs``."""

CLASSIFIERS = [
    small(cls)
    for name, cls in gmil.all_estimators()
    if is_classifier(cls()) and name not in SEE_THE_ORIGIN and "epochs" not in cls().get_params()
]
CLASSIFIERS.append(gmil.SetKernelSVM("stk", scale="standard", tune=False))

_N_TRAINING, _N_BAGS, _N_WORDS = 24, 32, 90


@pytest.fixture(scope="module")
def texts():
    """Return bags of word counts, few of many words each, and labels; new bags have words of their own."""
    rng = np.random.default_rng(0)
    y = np.arange(_N_BAGS) % 2
    sizes = rng.integers(2, 6, size=_N_BAGS)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = rng.poisson(0.05, size=(offsets[-1], _N_WORDS)).astype(float)
    topic = offsets[:-1][y == 1]
    counts[topic, :4] += rng.poisson(2.0, size=(len(topic), 4))
    counts[: offsets[_N_TRAINING], -10:] = 0
    counts[:, 40] = 0
    bags = Bags(counts, offsets)
    return bags[:_N_TRAINING], y[:_N_TRAINING], bags[_N_TRAINING:]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda estimator: type(estimator).__name__)
def test_sparse_texts_are_decided_as_dense_ones(classifier, texts):
    if not get_tags(classifier).input_tags.sparse:
        pytest.skip("takes dense bags only")
    training, y, new = texts
    expected = seeded(classifier).fit(training, y).decision_function(new)
    sparse = [Bags(sp.csr_array(bags.instances), bags.offsets) for bags in (training, new)]
    model = seeded(classifier).fit(sparse[0], y)
    atol = 1e-3 * np.abs(expected).max()  # the tolerance of support vector machines
    assert_allclose(model.decision_function(sparse[1]), expected, atol=atol)
    assert_allclose(model.decision_function(new), expected, atol=atol)


def test_columns_that_no_bag_fills_change_no_choice(texts):
    training, y, new = texts
    grid = {"n_clusters": [4, 6], "n_positive": [1, 2], "n_negative": [1, 2]}
    model = gmil.GMILCV(grid, cv=4, random_state=0)
    empty = [sp.csr_array((bags.n_instances, 300)) for bags in (training, new)]
    wide = [sp.csr_array(sp.hstack([columns, bags.instances])) for columns, bags in zip(empty, texts[::2], strict=True)]
    found = model.fit(Bags(wide[0], training.offsets), y)
    expected = gmil.GMILCV(grid, cv=4, random_state=0).fit(Bags(sp.csr_array(training.instances), training.offsets), y)
    assert found.best_params_ == expected.best_params_
    decisions = expected.decision_function(Bags(sp.csr_array(new.instances), new.offsets))
    assert_allclose(found.decision_function(Bags(wide[1], new.offsets)), decisions)
