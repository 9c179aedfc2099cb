"""Drift: what changed is found, what did not is not, and false alarms are as rare as stated."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gmil
from gmil.checks.drift import check_drift, compare_features, holm, label_shift
from gmil.transform.profile import Profile

FAST = {"scales": ("standard",), "witness_model": False, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def made():
    return gmil.make_bags(240, n_features=5, bag_size=(4, 8), separation=5, random_state=1, return_X_y=True)


@pytest.fixture(scope="module")
def model(made):
    bags, y = made
    return gmil.WeightedGMIL(**FAST).fit(bags[:120], y[:120])


def warned(found):
    return {finding.name for finding in found.findings if finding.level == "warning"}


def test_like_bags_have_no_drift(model, made):
    found = check_drift(model, made[0][120:])
    assert found.verdict == "no drift found"
    assert len(found.features) == 5
    assert found.familiarity.shape == (120,)


def test_a_moved_feature_is_named(model, made):
    new = made[0][120:]
    X = new.instances.copy()
    X[:, 3] += 1.0
    found = check_drift(model, new.with_instances(X))
    assert "features" in warned(found)
    assert found.features[0]["name"] == "column 3"
    assert found.features[0]["p_value"] < 1e-6
    assert found.features[1]["p_value"] > 0.05


def test_values_out_of_range_and_bags_unlike_training(model, made):
    new = made[0][120:]
    found = check_drift(model, new.with_instances(10 * new.instances))
    assert {"ranges", "bags"} <= warned(found)
    assert found.verdict.startswith("drift: ranges")
    assert found.features[0]["outside"] > 0.5


def test_other_shares_of_classes(model, made):
    bags, y = made
    some = np.concatenate([120 + np.flatnonzero(y[120:] == 0), 120 + np.flatnonzero(y[120:] == 1)[:6]])
    found = check_drift(model, bags[some])
    assert "shares of classes" in warned(found)
    assert "labels" not in found.verdict


def test_label_shift_by_hand():
    sure = np.repeat([[1.0, 0.0], [0.0, 1.0]], [30, 10], axis=0)
    found, p = label_shift(sure, np.array([0.5, 0.5]))
    assert_allclose(found, [0.75, 0.25], atol=1e-6)
    assert p < 0.01
    assert label_shift(np.full((40, 2), 0.5), np.array([0.5, 0.5]))[1] == pytest.approx(1)


def test_holm_by_hand():
    assert_allclose(holm(np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])


def test_features_that_did_not_change_rarely_warn():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(60):
        old, new = (gmil.Bags(rng.normal(size=(160, 4)).round(1), np.arange(0, 161, 4)) for _ in range(2))
        alarms += compare_features(new, Profile.of(old))[0]["p_value"] <= 0.05
    assert alarms <= 8


def patients(rng, n_patients, bags_each=8):
    """Return bags of patients that are much like each other, and whose they are."""
    groups = np.repeat(np.arange(n_patients), bags_each)
    own = rng.normal(size=(n_patients, 3))[groups]
    X = np.repeat(own, 4, axis=0) + 0.1 * rng.normal(size=(4 * len(groups), 3))
    return gmil.Bags(X, np.arange(0, len(X) + 1, 4)), groups


def test_bags_of_a_group_count_as_one():
    """Of new patients that are like the old ones, one check in twenty warns; without groups, nearly all do."""
    alarms = dict.fromkeys(("groups", "without"), 0)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        (old, whose), (new, groups) = patients(rng, 20), patients(rng, 20)
        y = rng.integers(0, 2, 20)
        y[:2] = 0, 1
        for name, known, given in (("groups", whose, groups), ("without", None, None)):
            model = gmil.WeightedGMIL(**FAST).fit(old, y[whose], groups=known)
            alarms[name] += "features" in warned(check_drift(model, new, groups=given))
    assert alarms["groups"] <= 4
    assert alarms["without"] >= 15


def test_groups_that_moved_are_found(model, made):
    new, groups = made[0][120:], np.arange(120) // 2
    found = check_drift(model, new.with_instances(new.instances + 2), groups=groups)
    assert {"features", "bags"} <= warned(found)


def test_weights_of_label_shift_are_copies():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=20)
    counts, shares = rng.integers(1, 4, size=20), np.full(3, 1 / 3)
    for ours, theirs in zip(
        label_shift(p, shares, counts), label_shift(np.repeat(p, counts, axis=0), shares), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-6)


def test_other_models_need_the_training_bags(made):
    bags, y = made
    other = gmil.BagStatistics().fit(bags[:80], y[:80])
    with pytest.raises(gmil.BagValidationError, match="does not know its training bags"):
        check_drift(other, bags[120:])
    found = check_drift(other, bags[120:], reference=bags[:80], reference_y=y[:80])
    assert found["bags"].level == "ok"
    far = bags[120:].with_instances(bags[120:].instances + 20)
    assert "bags" in warned(check_drift(other, far, reference=bags[:80], reference_y=y[:80]))


def test_other_features_are_refused(model):
    with pytest.raises(gmil.BagValidationError, match="have 3 features, and the training bags had 5"):
        check_drift(model, [np.ones((2, 3))])


def test_the_command_compares_with_a_model(model, made, tmp_path, run):
    model.save(tmp_path / "model.gmil")
    gmil.write(tmp_path / "new.parquet", made[0][120:160])
    asked = ("check", tmp_path / "new.parquet", "--model", tmp_path / "model.gmil")
    result = run(*asked, "-o", tmp_path / "page.html")
    assert result.exit_code == 0, result.stderr
    assert "familiarity" in (tmp_path / "page.html").read_text()
    assert run(*asked, "--issues", tmp_path / "x.csv").exit_code != 0
