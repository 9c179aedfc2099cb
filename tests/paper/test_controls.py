"""What every accuracy must beat: relations that rise and fall count, and noise is worth no more than sizes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gmil
from gmil import Bags, cross_validate
from gmil.checks.controls import CONTROLS, BagSize, NoiseFeatures, noise_like
from gmil.paper import comparison, run


def of_sizes(sizes, n_features=4):
    """Return bags of noise with these sizes."""
    rng = np.random.default_rng(1)
    return Bags.from_list([rng.normal(size=(size, n_features)) for size in sizes])


@pytest.fixture(scope="module")
def middle():
    """Return bags of which those of middle size are positive."""
    sizes = np.random.default_rng(0).integers(2, 30, size=90)
    return of_sizes(sizes), (sizes > 8) & (sizes < 20)


def test_the_size_may_tell_by_rising_and_falling(middle):
    found = cross_validate(BagSize(), *middle, cv=5)
    assert found.accuracy() > 0.9
    assert found.auc() > 0.95


def test_the_size_of_musk1_tells_more_than_a_line_does():
    bags, y = gmil.load_musk1(return_X_y=True)
    assert cross_validate(BagSize(), bags, y, repeats=3).accuracy() > 0.64  # logistic in the logarithm: 0.59


@pytest.mark.parametrize("sizes", [[3] * 30, [3, 4] * 15, [1, 1, 1, 1, 50] * 6])
def test_few_different_sizes_are_no_matter(sizes):
    y = np.arange(30) % 2
    found = cross_validate(BagSize(), of_sizes(sizes), y, cv=3)
    assert np.isfinite(found.decisions).all()
    if len(set(sizes)) == 2 and sizes[0] == 3:
        assert found.accuracy() == 1


@pytest.mark.parametrize("control", [cls for _, cls in CONTROLS.values()])
@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"]])
def test_controls_know_several_classes_and_their_names(control, labels, recwarn):
    y = np.array(labels)[np.arange(45) % len(labels)]
    bags = of_sizes(2 + 3 * (np.arange(45) % len(labels)))
    found = cross_validate(control(), bags, y, cv=3)
    assert set(np.unique(found.predictions)) <= set(labels)
    assert np.isfinite(found.decisions).all()
    if control is not CONTROLS["majority"][1]:
        assert found.accuracy() > 1 / len(labels) + 0.15
    assert not recwarn.list


def test_noise_knows_the_sizes_and_nothing_else(middle):
    """Features that tell everything are no use to it, sizes are."""
    sizes = np.full(60, 6)
    y = np.arange(60) % 2
    bags = of_sizes(sizes)
    told = bags.with_instances(bags.instances + 9 * y[bags.segment_ids][:, None])
    by_seed = [cross_validate(NoiseFeatures(), told, y, cv=5, random_state=seed).accuracy() for seed in range(2)]
    assert 0.3 < np.mean(by_seed) < 0.7
    assert cross_validate(gmil.WeightedGMIL(), told, y, cv=5).accuracy() == 1
    large = of_sizes(np.where(y == 1, 40, 4))
    assert cross_validate(NoiseFeatures(), large, y, cv=5).accuracy() > 0.9


def test_noise_is_new_in_the_test_bags_and_the_same_for_the_same_seed():
    bags = of_sizes([3, 5, 2])
    noise = noise_like(bags, seed=4)
    assert np.array_equal(noise.offsets, bags.offsets)
    assert noise.instances.shape == bags.instances.shape
    assert np.array_equal(noise.instances, noise_like(bags, seed=4).instances)
    for other in (noise_like(bags, seed=5), noise_like(bags, seed=4, part=1)):
        assert not np.isclose(noise.instances, other.instances).any()


def test_noise_for_sparse_bags_stays_small():
    wide = Bags(sp.csr_array((12, 50_000)), np.arange(0, 13, 2))
    assert noise_like(wide, seed=0).instances.shape == (12, 200)


def test_a_comparison_has_a_row_for_every_control(tmp_path):
    bags, y = gmil.make_bags(24, n_features=3, random_state=1, return_X_y=True)
    spec = comparison.comparison_spec("mine", y, ["gmil", "bag-statistics"], repeats=2, folds=3, seed=0)
    results = run(spec, output=tmp_path, data={"mine": (bags, y, None)})
    summary = comparison.summarize(results, None, {"source": "mine"}, [])
    rows = {row["method"]: row["cells"]["mine"] for row in summary["rows"]}
    assert {"majority", "bag-size", "noise"} <= set(rows)
    others = [cell["against_best"] for method, cell in rows.items() if method != summary["best"]]
    assert all(against["p_holm"] >= against["p_value"] for against in others)
    assert rows[summary["best"]]["against_best"] is None
    assert {line["method"] for line in comparison.flat_rows(summary)} == set(rows)
    assert all("p_holm_to_best" in line for line in comparison.flat_rows(summary))
