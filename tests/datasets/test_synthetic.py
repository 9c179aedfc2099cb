from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmil import Bags
from gmil.datasets import make_bags


@settings(max_examples=60)
@given(
    n_bags=st.integers(1, 30),
    n_features=st.integers(1, 6),
    smallest=st.integers(1, 6),
    extra=st.integers(0, 5),
    witness_rate=st.floats(0.01, 1.0),
    positive_share=st.floats(0.0, 1.0),
    n_classes=st.integers(2, 4),
    n_concepts=st.integers(1, 4),
    seed=st.integers(0, 2**31 - 1),
)
def test_witnesses_are_where_they_should_be(
    n_bags,
    n_features,
    smallest,
    extra,
    witness_rate,
    positive_share,
    n_classes,
    n_concepts,
    seed,
):
    made = make_bags(
        n_bags,
        n_features=n_features,
        bag_size=(smallest, smallest + extra),
        witness_rate=witness_rate,
        positive_share=positive_share,
        n_classes=n_classes,
        n_concepts=n_concepts,
        random_state=seed,
    )
    assert made.bags.shape == (n_bags, n_features)
    assert made.bags.sizes.min() >= smallest
    assert made.bags.sizes.max() <= smallest + extra
    assert (made.y > 0).sum() == round(positive_share * n_bags)
    assert made.centers.shape == ((n_classes - 1) * n_concepts, n_features)
    parts = np.split(made.instance_y, made.bags.offsets[1:-1])
    kinds = np.split(made.concepts, made.bags.offsets[1:-1])
    for part, concepts, label, size in zip(parts, kinds, made.y, made.bags.sizes, strict=True):
        wanted = 0 if label == 0 else max(1, round(witness_rate * int(size)))
        assert (part > 0).sum() == wanted
        assert set(part) <= {0, label}
        assert len(set(concepts[concepts >= 0])) == (label > 0)
        assert ((concepts >= 0) == (part > 0)).all()
    np.testing.assert_array_equal(made.y, made.clean_y)


def test_without_noise_instances_are_the_centers():
    made = make_bags(20, n_features=4, n_concepts=3, separation=5.0, noise=0.0, random_state=1)
    background = made.concepts < 0
    assert (made.bags.instances[background] == 0).all()
    np.testing.assert_array_equal(made.bags.instances[~background], made.centers[made.concepts[~background]])
    np.testing.assert_allclose(made.centers @ made.centers.T, 25.0 * np.eye(3), atol=1e-12)


def test_more_concepts_than_features_lie_at_the_same_distance():
    made = make_bags(5, n_features=2, n_concepts=5, separation=3.0, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(made.centers, axis=1), 3.0)


def test_noise_is_the_standard_deviation():
    made = make_bags(400, n_features=5, noise=0.5, separation=0.0, random_state=3)
    assert made.bags.instances.std() == pytest.approx(0.5, rel=0.02)


def test_label_noise_replaces_exactly_that_many():
    made = make_bags(40, n_classes=3, label_noise=0.25, random_state=0)
    assert (made.y != made.clean_y).sum() == 10
    assert set(made.y) <= {0, 1, 2}


def test_same_seed_same_bags():
    first, again, other = (make_bags(5, random_state=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.bags.instances, again.bags.instances)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.bags.instances, other.bags.instances)


def test_return_X_y_and_fixed_size():
    bags, y = make_bags(4, bag_size=3, random_state=0, return_X_y=True)
    assert isinstance(bags, Bags)
    assert bags.sizes.tolist() == [3, 3, 3, 3]
    assert y.tolist() == make_bags(4, bag_size=3, random_state=0).y.tolist()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n_bags": 0}, r"n_bags must be an integer >= 1, got 0"),
        ({"n_features": 1.5}, r"n_features must be an integer >= 1, got 1\.5"),
        ({"n_concepts": 0}, r"n_concepts .* got 0"),
        ({"n_classes": 1}, r"n_classes must be an integer >= 2, got 1"),
        ({"bag_size": (5, 2)}, r"bag_size .* got \(5, 2\)"),
        ({"bag_size": 0}, r"bag_size .* got 0"),
        ({"bag_size": (1, 2, 3)}, r"bag_size .* got \(1, 2, 3\)"),
        ({"witness_rate": 0.0}, r"witness_rate must be above 0 .* got 0\.0"),
        ({"positive_share": 1.1}, r"positive_share must lie between 0 and 1, got 1\.1"),
        ({"label_noise": -0.1}, r"label_noise .* got -0\.1"),
        ({"separation": float("nan")}, r"separation .* got nan"),
        ({"noise": -1.0}, r"noise .* got -1\.0"),
    ],
)
def test_wrong_arguments(arguments, match):
    with pytest.raises(ValueError, match=match):
        make_bags(**arguments)
