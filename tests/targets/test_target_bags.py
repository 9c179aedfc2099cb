"""Bags made to order: what carries values, and how many times are censored."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gmil


def test_witnesses_tell_the_value():
    made = gmil.make_bags(400, target="regression", bag_size=(5, 10), witness_rate=0.1, random_state=0)
    assert made.y.shape == (400,)
    assert_array_equal([part.sum() for part in made.bags.split(made.instance_y)], 1)
    along = (made.bags.instances @ made.direction)[made.instance_y == 1]
    assert np.corrcoef(along, made.clean_y)[0, 1] == pytest.approx(2 / np.sqrt(5), abs=0.05)
    assert made.concept @ made.direction == pytest.approx(0, abs=1e-12)
    assert np.std(made.y - made.clean_y) == pytest.approx(0.1, abs=0.02)


def test_grades_are_of_equal_size():
    y = gmil.make_bags(100, target="ordinal", random_state=0).y
    assert_array_equal(np.bincount(y), [20] * 5)
    assert len(np.unique(gmil.make_bags(100, target="ordinal", n_classes=3, random_state=0).y)) == 3


@pytest.mark.parametrize("censoring", [0.0, 0.3, 0.8])
def test_times_have_the_hazard_of_their_riskiest_instance(censoring):
    made = gmil.make_bags(2000, target="survival", bag_size=4, censoring=censoring, random_state=1)
    assert made.y.dtype.names == ("event", "time")
    assert 1 - made.y["event"].mean() == pytest.approx(censoring, abs=0.01)
    assert_allclose(made.y["time"][made.y["event"]], made.event_time[made.y["event"]])
    assert (made.y["time"] <= made.event_time).all()
    largest = np.maximum.reduceat(made.instance_risk, made.bags.offsets[:-1])
    assert np.corrcoef(largest, made.risk)[0, 1] == pytest.approx(1)
    # Times an exponential of the risk are standard exponential.
    assert np.mean(made.event_time * np.exp(made.risk)) == pytest.approx(1, abs=0.08)


def test_the_seed_decides_and_classes_stay_as_they_were():
    one, other = (gmil.make_bags(30, target="survival", random_state=4) for _ in range(2))
    assert_array_equal(one.y, other.y)
    _, y = gmil.make_bags(20, random_state=0, return_X_y=True)
    assert_array_equal(y, gmil.make_bags(20, n_classes=2, target="classes", random_state=0).y)
    assert gmil.make_bags(20, n_features=1, target="regression", random_state=0).bags.n_features == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "rank"}, "target must be one of"),
        ({"censoring": 1.0}, "censoring must"),
        ({"target_noise": -1}, "target_noise must"),
    ],
)
def test_bad_wishes_are_refused(options, message):
    with pytest.raises(gmil.BagValidationError, match=message):
        gmil.make_bags(10, **options)
