"""Reliability of probabilities: tenths, their sums, the drawing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from gmil.reporting.plots.reliability import Reliability, reliability_figure


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_points_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.random(int(rng.integers(2, 200)))
    positive = rng.random(len(probabilities)) < probabilities
    shares, means = calibration_curve(positive, probabilities, n_bins=10)
    found = Reliability.of(probabilities, positive).points()
    np.testing.assert_allclose([point[0] for point in found], means)
    np.testing.assert_allclose([point[1] for point in found], shares)
    assert sum(point[2] for point in found) == len(positive)


def test_sums_add_up_over_data_sets():
    rng = np.random.default_rng(0)
    probabilities, positive = rng.random(90), rng.random(90) < 0.3
    whole = Reliability.of(probabilities, positive)
    parts = [Reliability.of(probabilities[i::3], positive[i::3]) for i in range(3)]
    np.testing.assert_allclose(Reliability.joined(parts).points(), whole.points())
    again = Reliability(**whole.to_dict())
    assert again.points() == whole.points()
    assert again.gap() == whole.gap()


def test_the_gap_by_hand():
    found = Reliability.of([0.05, 0.05, 0.75, 1.0], [0, 1, 1, 1])
    assert found.points() == [(0.05, 0.5, 2), (0.75, 1.0, 1), (1.0, 1.0, 1)]
    assert found.gap() == pytest.approx((2 * 0.45 + 0.25) / 4)


def test_the_drawing_names_what_it_counts(tmp_path):
    curves = {"Birds": Reliability.of([0.1, 0.9], [0, 1]), "a < b": Reliability.of([0.5], [1])}
    [path] = reliability_figure(curves, "Of instances", "instances").save(tmp_path / "drawn")
    drawn = ET.parse(path)
    words = [element.text for element in drawn.iter() if element.text]
    assert any("share of positive instances" in text for text in words)
    assert "a < b: 0.500 given, 1.000 true, 1 instances" in words
