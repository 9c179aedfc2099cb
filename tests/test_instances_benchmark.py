"""The table of all methods on sets with labels of instances, on a tiny set."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score

import gmil

# Newer versions of Python warn of any fork beside threads; what is started here computes on its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).parents[1] / "benchmarks" / "instances.py"
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(path.parent)  # what it imports from beside it
    spec = importlib.util.spec_from_file_location("benchmark_of_instances", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    patch.undo()


def test_variants_rank_instances_with_the_same_decisions_about_bags(script):
    made = script.generated(0.3, seed=0, n_bags=30)
    expected = gmil.WeightedGMIL(random_state=0).fit(made.bags, made.y).decision_function(made.bags)
    for name, make in script.VARIANTS.items():
        model = make(random_state=0).fit(made.bags, made.y)
        if name != "without-model":
            np.testing.assert_allclose(model.decision_function(made.bags), expected)
        assert roc_auc_score(made.instance_y, model.score_instances(made.bags)) > 0.8, name


class Slow(gmil.SingleInstance):
    def _learn(self, training):
        time.sleep(60)
        super()._learn(training)


class Refuses(gmil.SingleInstance):
    def _learn(self, training):  # noqa: ARG002
        msg = "too many\n instances"
        raise ValueError(msg)


@pytest.fixture
def tiny(script, monkeypatch):
    """A set of 30 bags, and slides of few features; five methods, of which two are ill and one has no scores."""
    made = script.partial(script.generated, 0.3, n_bags=30)
    tissue = script.partial(script.slides, 3, n_slides=9, n_features=4)
    monkeypatch.setattr(script, "SETS", {"few": script.Set("Few", made), "slides": script.Set("Slides", tissue)})
    single = {"single-instance": gmil.SingleInstance, "emdd": gmil.EMDD, "none": DummyClassifier}
    monkeypatch.setattr(script, "known_methods", lambda: {**single, "slow": Slow, "refuses": Refuses})
    return script


def test_the_table_is_filled_shown_and_resumed(tiny, tmp_path, capsys):
    run = ["--out", str(tmp_path), "--methods", "single-*,none,refuses", "--sets", "few", "--seeds", "77,78"]
    tiny.main([*run, "--reliability", str(tmp_path / "drawn.svg")])
    table = capsys.readouterr().out.splitlines()
    cells = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert sorted(cells) == [f"{m}-few-{s}.json" for m in ("refuses", "single-instance") for s in (77, 78)]
    data = tiny.generated(0.3, 77, n_bags=30)
    expected = gmil.cross_validate(gmil.SingleInstance(), *data[:2], cv=5, random_state=77, instance_y=data.instance_y)
    found = cells["single-instance-few-77.json"]
    assert found["figures"]["auc"] == pytest.approx(expected.instances.auc())
    assert found["figures_of_decision"]["auc_within"] == 0.5
    assert sum(found["reliability"]["counts"]) == data.bags.n_instances
    mean = np.mean([cells[f"single-instance-few-{seed}.json"]["figures"]["auc"] for seed in (77, 78)])
    assert any(line.startswith(f"| single-instance | {mean:.3f}".replace("0.", ".")) for line in table)
    assert "| none | - |" in table
    assert "| refuses | failed |" in table
    assert "* refuses on few: ValueError: too many instances" in table
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    tiny.main(run)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")} == times


def test_a_method_that_takes_too_long_is_stopped(tiny, tmp_path, capsys):
    run = ["--out", str(tmp_path), "--methods", "slow", "--sets", "few", "--seeds", "77"]
    tiny.main([*run, "--most-seconds", "0.05"])
    assert "| slow | slow |" in capsys.readouterr().out
    assert not tiny.is_missing(tmp_path / "slow-few-77.json", 0.05)
    assert tiny.is_missing(tmp_path / "slow-few-77.json", 0.1)
    tiny.main([*run, "--show"])
    assert "* slow on few: stopped: a fit takes more than 0.05 s" in capsys.readouterr().out


def test_slides_ask_where_the_tumour_is(tiny, tmp_path):
    data = tiny.SETS["slides"].load(1)
    assert set(np.unique(data.instance_y)) == {1, 2, 3}  # 3: healthy, no class of slides
    for label, kinds in zip(data.y, data.bags.split(data.instance_y), strict=True):
        share = (kinds != 3).mean()
        assert set(kinds[kinds != 3]) == ({label} if label else set())
        assert share == 0 if label == 0 else 0.04 < share < 0.06
    assert data.bags.sizes.min() >= 50
    tiny.main(["--out", str(tmp_path), "--methods", "single-instance,emdd", "--sets", "slides", "--seeds", "77"])
    assert [path.name for path in tmp_path.glob("*.json")] == ["single-instance-slides-77.json"]  # EM-DD: two classes


def test_unknown_names_are_refused(tiny, tmp_path):
    with pytest.raises(SystemExit, match="There is no 'birds'; there are few, slides"):
        tiny.main(["--out", str(tmp_path), "--sets", "birds"])
