"""The gallery: every script runs, draws pictures that can be read, uses public names, and states what it prints."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import gmil
from gmil.names import PACKAGES

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("plot_*.py"))
SLOW = {
    "plot_check_data",
    "plot_choosing",
    "plot_figure7",
    "plot_missing_values",
    "plot_out_of_core",
    "plot_own_method",
    "plot_prediction_sets",
    "plot_slides",
    "plot_values",
    "plot_witness_rate",
}
"""They take more than two seconds: make test-all runs them."""
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w|\.\d)")
every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


def text_blocks(script):
    """Return the texts of a page: the docstring, and what follows every ``# %%``."""
    source = script.read_text(encoding="utf-8")
    blocks = re.findall(r"^# %%[ ]*\n((?:#(?: .*)?\n)*)", source, re.MULTILINE)
    return [ast.get_docstring(ast.parse(source)), *(re.sub(r"^# ?", "", b, flags=re.MULTILINE) for b in blocks)]


def numbers(text):
    """Return the numbers of a text, each with the unit of its last digit."""
    return [(float(found), 10.0 ** -len(found.partition(".")[2])) for found in NUMBER.findall(text)]


# ---------------------------------------------------------------- as text


def test_there_are_twelve_scripts_or_more_in_folders_with_a_header():
    assert len(SCRIPTS) >= 12
    for folder in {EXAMPLES, *(script.parent for script in SCRIPTS)}:
        assert (folder / "GALLERY_HEADER.rst").is_file(), folder.name


@every_script
def test_a_page_has_a_title_a_question_what_one_sees_and_its_limits(script):
    first, *_, last = text_blocks(script)
    title, underline, *_ = first.splitlines()
    assert underline == "=" * len(title)
    assert "**Question.**" in first
    assert last.startswith("**What one sees.** ")
    assert "**Limits.** " in last
    pages = re.findall(r":doc:`[^<]+ <(/[^>]+)>`", last.replace("\n", " "))
    assert pages
    assert all((EXAMPLES.parent / f"docs{page}.md").is_file() for page in pages)


@every_script
def test_a_script_uses_public_names_alone(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        name = getattr(node, "attr", getattr(node, "id", ""))
        private = name.startswith("_") and name != "_" and not name.endswith("__")
        assert not private, f"{name} in line {node.lineno}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gmil":
            assert node.attr in gmil.__all__ or node.attr in PACKAGES, node.attr
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "gmil":
            assert {alias.name for alias in node.names} <= set(import_module(node.module).__all__)


# ---------------------------------------------------------------- run


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """Return the list that figures are added to when they are shown and checked; all data there are bundled."""
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib, which draws the gallery, is not installed.")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figures = []

    def show():
        for figure in map(plt.figure, plt.get_fignums()):
            check_figure(figure)
            figures.append(figure)
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    monkeypatch.setenv("GMIL_DATA_HOME", str(tmp_path / "nothing"))
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context():
        yield figures
    plt.close("all")


def check_figure(figure):
    """Tell that a figure is not blank, and that its texts are large enough and not cut off."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    assert (pixels != pixels[0, 0]).any(axis=2).mean() > 0.01, "The figure is blank."
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    ticks = {label for axis in axes for label in axis.get_ticklabels(which="both")}  # some are not drawn
    texts = figure.findobj(lambda artist: hasattr(artist, "get_fontsize") and artist.get_visible())
    written = [text for text in texts if text.get_text().strip()]
    assert len(written) > len(ticks & set(written)), "Nothing names what is shown."
    for text in written:
        assert text.get_fontsize() >= 10, text.get_text()
        box = text.get_window_extent().extents
        inside = (box[:2] >= -1).all() and (box[2:] <= figure.bbox.max + 1).all()
        assert inside or text in ticks, f"{text.get_text()!r} is cut off."


def marked(script):
    return pytest.param(script, id=script.stem, marks=pytest.mark.slow if script.stem in SLOW else ())


@pytest.mark.parametrize("script", [marked(script) for script in SCRIPTS])
def test_a_script_runs_draws_and_states_what_it_prints(script, shown, capsys):
    if script.stem == "plot_out_of_core" and sys.platform != "linux":
        pytest.skip("Linux alone keeps the peak memory of a process in /proc.")
    found = runpy.run_path(str(script), run_name=script.stem)
    assert shown, "The script shows no figure."
    assert not list(Path.cwd().iterdir()), "The script leaves files behind."
    code = ast.unparse(ast.parse(script.read_text(encoding="utf-8")).body[1:])
    known = np.array([value for value, _ in numbers(capsys.readouterr().out) + numbers(code)])
    for text in text_blocks(script)[1:]:
        for value, unit in numbers(text):
            allowed = 1.001 * unit if unit < 1 else 0  # the last digit may depend on the machine
            near = (abs(value - known) <= allowed) | (abs(value - 100 * known) <= 1.001 * unit)
            assert near.any(), f"{value} is neither printed nor in the code: {text}"
    CLAIMS[script.stem](found)


# ---------------------------------------------------------------- what the texts claim in words

CLAIMS = {}


def claims(check):
    """Keep a check of the variables of a script under its name."""
    CLAIMS[check.__name__] = check
    return check


@claims
def plot_first_model(found):
    wrong, probability = found["wrong"], found["probability"]
    assert abs(wrong.sum() - 7) <= 1
    assert np.mean((probability < 0.1) | (probability > 0.9)) > 0.5
    assert np.median(abs(probability - 0.5)[wrong]) < np.median(abs(probability - 0.5)[~wrong])


@claims
def plot_missing_values(found):
    assert found["at_random"][0] - found["at_random"][-1] < 0.1
    assert 0.5 < found["by_median"] < found["by_indicator"] - 0.05


@claims
def plot_out_of_core(found):
    read, scan = ([row["MiB"] for row in found["found"][how]] for how in ("read", "scan"))
    assert read[-1] - read[0] > 2 * (found["file_mib"][-1] - found["file_mib"][0])
    assert scan[-1] - scan[0] < (read[-1] - read[0]) / 2
    assert found["same"]


@claims
def plot_slides(found):
    y, decisions, patients = found["y"], found["decisions"], found["patients"]
    assert np.mean(decisions[y == 1] > 0) > 0.7
    assert np.mean(decisions[y == 0] < 0) > 0.7
    assert np.mean([len(set(decisions[patients == name] > 0)) == 1 for name in set(patients)]) > 0.7


@claims
def plot_vectors(found):
    assert max(found["accuracy"], key=found["accuracy"].get) == "BagSummaries"
    assert max(found["accuracy"].values()) - min(found["accuracy"].values()) < 0.15


@claims
def plot_values(found):
    assert found["found"] > found["known"] + 0.1
    assert abs(found["held"] - 0.9) < 0.05
    assert np.mean(found["hits"]) > 0.8
    assert np.abs(found["shown"][found["is_witness"]]).mean() > 3 * np.abs(found["shown"][~found["is_witness"]]).mean()


@claims
def plot_conformers(found):
    everything, without_another, without_best = found["steps"].values()
    assert without_another.mean() > everything.mean() - 0.02
    assert without_best.mean() < everything.mean() - 0.05
    assert np.mean(without_best > 0.5) > 0.5
    needed = {i: len(found["witnesses"][i]) for i in found["musks"]}
    largest = sorted(needed, key=lambda i: found["test"].sizes[i])[-2:]
    assert max(needed[i] for i in needed if i not in largest) <= 5 < min(needed[i] for i in largest)
    assert not found["y_test"][largest].any()


@claims
def plot_heatmaps(found):
    (score, rank), (other, other_rank) = found["maps"].values()
    assert np.mean(score.scores > -3) > 0.04  # a bright region
    assert np.mean(other.scores > -3.1) < 0.01  # dark, but for a patch
    assert np.median(score.scores) > np.median(other.scores) + 1
    assert rank.values.max() == other_rank.values.max() == 100


@claims
def plot_slide_map(found):
    mean = [of_slide.mean() for of_slide in found["test"].split(found["raw"])]
    first, second, without = (mean[slide] for slide in found["shown"])
    assert without < min(first, second) - 1
    assert found["low"] > without


@claims
def plot_video_events(found):
    assert (found["detected"] == found["y"][50:]).all()
    assert found["shared"].min() >= 0.5
    assert found["scores"].max() < 1


@claims
def plot_choosing(found):
    accuracy = dict(zip(found["METHODS"], found["accuracy"], strict=True))
    assert (accuracy["WeightedGMIL"] >= found["accuracy"].max(axis=0) - 0.015).all()
    assert sorted(accuracy, key=lambda name: -accuracy[name].mean())[:2] == ["WeightedGMIL", "BagStatistics"]
    kinds = {kind.__name__: i for i, kind in enumerate(found["KINDS"])}
    assert accuracy["MI-SVM"][kinds["one_witness"]] > 0.9 > 0.65 > accuracy["MI-SVM"][kinds["larger_share"]]
    single = accuracy["SingleInstance"]
    assert single[kinds["larger_share"]] > 0.9 > 0.65 > single[kinds["two_together"]]


@claims
def plot_witness_rate(found):
    weighted, machine, greedy, mean = found["accuracy"].mean(axis=2)
    assert weighted[0] > 0.75 > 0.65 > max(machine[0], mean[0])
    assert mean[3:].min() > 0.95
    assert (greedy < np.minimum(weighted, machine)).all()


@claims
def plot_own_method(found):
    rows = {row["method"]: row for row in found["found"].rows}
    mine = rows["Quartiles (mine)"]
    assert all(mine["low"] > rows[control]["high"] for control in ("majority", "bag-size", "noise"))
    assert mine["verdict_to_best"] == "undecided"
    assert -0.13 < mine["difference_to_best"] < -0.07 or 0.07 < mine["difference_to_best"] < 0.13


@claims
def plot_figure7(found):
    for result in found["found"].values():
        assert 100 * result.accuracy().max() < found["majority"] + 0.2
    assert not found["found"]["n_negative"].predictions[-1].any()  # q = K


@claims
def plot_theory(found):
    def distance(one, other):
        return np.linalg.norm(found[one] - found[other])

    assert distance("best_r", "GROUP") < 1 < distance("best_r", "CONCEPT")
    assert distance("best_dd", "CONCEPT") < 0.5
    assert (found["log_r"] >= found["log_bound"]).all()
    assert (found["log_r"] > found["log_dd"]).all()


@claims
def plot_calibration(found):
    y, models = found["y_test"], found["models"]
    sure = {name: y[given > 0.9].mean() for name, given in models.items()}
    assert sure["WeightedGMIL"] > 0.93 > 0.9 > sure["logistic regression"]


@claims
def plot_check_data(found):
    checks = found["checks"]
    assert [name for name, check in checks.items() if check.warnings() == "no warning"] == ["sound"]
    assert checks["size leaks"].verdict == "no better than bag size"
    assert checks["every bag twice"]["identical bags"].value == 160
    assert checks["shuffled labels"].verdict == "no better than chance"


@claims
def plot_groups(found):
    by_bag, by_patient, truth = (np.array(values) for values in found["found"].values())
    assert (by_bag > truth).all()
    assert abs(by_patient.mean() - truth.mean()) < 0.05


def test_every_script_has_its_claims_checked():
    assert set(CLAIMS) == {script.stem for script in SCRIPTS}


@claims
def plot_prediction_sets(found):
    assert np.abs(np.array(found["held"]) - found["coverages"]).max() < 0.07
    assert found["error"][-1] < found["forced"] / 2
    assert found["decided"][0] < found["decided"][2] > found["decided"][-1]
