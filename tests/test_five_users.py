"""Five users on their first day, from files as people have them to a page, on the command line and without a dead end.

Every command ends well, or refuses in one sentence that tells what to do, and to do that then works. The page that each
user ends with is opened in a real browser, on a telephone and on a desk, in both themes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.browser import every_screen, overflow
from tests.video.conftest import encode, moving_frames

import gmil
from gmil import own_methods
from gmil.cli.main import main

OWN_METHOD = '''
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression


class MeanVector(ClassifierMixin, BaseEstimator):
    """Logistic regression on the mean instance of every bag."""

    def fit(self, X, y):
        self.model_ = LogisticRegression(max_iter=1000).fit([bag.mean(axis=0) for bag in X], y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict([bag.mean(axis=0) for bag in X])

    def decision_function(self, X):
        return self.model_.decision_function([bag.mean(axis=0) for bag in X])
'''


class Ending(NamedTuple):
    """The page that a user ends with, and what it must tell."""

    page: str
    words: list[str]


def gmil_works(*arguments):
    """Run a command that must end well; return what it prints and what it tells."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, f"gmil {' '.join(map(str, arguments))}: {result.output}"
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def gmil_refuses(*arguments):
    """Run a command that must refuse; return the sentence that tells why and what to do."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 2, result.output
    sentence = result.stderr.strip().splitlines()[-1]
    assert "Traceback" not in result.output
    assert sentence.endswith((".", "`"))
    return sentence


def table_of(n_bags, *, n_features=4, seed=0):
    """Return a frame with a row per instance, and the names and labels of its bags."""
    bags, y = gmil.make_bags(n_bags, n_features=n_features, separation=5, random_state=seed, return_X_y=True)
    names = [f"m{i:02d}" for i in bags.segment_ids]
    frame = pd.DataFrame(bags.instances.round(3), columns=[f"desc_{j}" for j in range(n_features)])
    return frame.assign(molecule=names, activity=np.array(["inactive", "active"])[y[bags.segment_ids]])


def accuracy_in(printed):
    """Return the accuracy that ``gmil score`` prints."""
    return re.search(r"^accuracy, per cent +([\d.]+)", printed, re.MULTILINE)[1]


# ------------------------------------------------------------------ the five


def spreadsheet():
    """A chemist exports a sheet: semicolons, decimal commas, an index, a text, blank cells, rows in any order."""
    frame = table_of(24).sample(frac=1, random_state=0)
    frame.iloc[::11, 1] = np.nan
    frame.insert(0, "solvent", np.where(np.arange(len(frame)) % 2, "water", "ethanol"))
    frame.to_csv("sheet.csv", sep=";", decimal=",")  # with the index of pandas
    columns = ["--bag", "molecule", "--label", "activity"]
    sentence = gmil_refuses("data", "info", "sheet.csv", *columns)
    assert "--decimal ," in sentence
    columns += ["--decimal", ","]
    described, _ = gmil_works("data", "info", "sheet.csv", *columns)
    assert "desc_0, desc_1, desc_2, desc_3" in described  # neither the index nor the text is a feature
    sentence = gmil_refuses("compare", "sheet.csv", *columns, "-o", "run")
    assert "--missing median" in sentence
    chosen = ["--methods", "gmil,bag-statistics", "--folds", 4, "--repeats", 1, "--jobs", 1]
    wanted = ["--missing", "median", "--positive", "active"]
    printed, _ = gmil_works("compare", "sheet.csv", *columns, *wanted, *chosen, "-o", "run")
    row = next(line for line in printed.splitlines() if line.startswith("GMIL"))
    return Ending("run/report.html", ["Methods on sheet.csv", "bag statistics", row.split()[1], "missing values"])


def embeddings():
    """An engineer has a float32 array per slide and a table of labels and patients."""
    bags, y = gmil.make_bags(24, n_features=8, separation=5, random_state=3, return_X_y=True)
    names = [f"slide_{i:02d}" for i in range(24)]
    Path("slides").mkdir()
    table = pd.DataFrame({"bag": names, "label": y, "patient": [f"p{i // 2}" for i in range(24)]})
    table.to_csv("slides/labels.csv", index=False)
    for name, bag in zip(names, bags, strict=True):
        np.savez(f"slides/{name}.npz", features=bag.astype(np.float32))
    sentence = gmil_refuses("cv", "slides", "--group", "person")
    assert "patient" in sentence
    fast = ["--method", "bag-statistics", "--group", "patient"]
    printed, _ = gmil_works("cv", "slides", *fast, "--folds", 4)
    assert "slides" in printed
    gmil_works("fit", "slides", *fast, "-o", "slides.gmil")
    scored, _ = gmil_works("score", "slides.gmil", "slides")
    gmil_works("report", "slides.gmil", "slides", "-o", "slides.html")
    return Ending("slides.html", ["slides.gmil", "24 bags", accuracy_in(scored), "slide_00", "BagStatistics"])


def own_method():
    """A researcher compares a class of fifteen lines with gmil's methods."""
    Path("my_bag_methods.py").write_text(OWN_METHOD)
    table_of(24).to_csv("bags.csv", index=False)
    columns = ["--bag", "molecule", "--label", "activity"]
    sentence = gmil_refuses("cv", "bags.csv", *columns, "--method", "my_bag_methods:MeanVektor")
    assert "'my_bag_methods' has no class 'MeanVektor'" in sentence
    sentence = gmil_refuses("cv", "bags.csv", *columns, "--method", "my_bag_methods:MeanVector", "--positive", "active")
    assert "Leave out --positive" in sentence
    described, _ = gmil_works("methods", "my_bag_methods:MeanVector")
    assert "Logistic regression on the mean instance" in described
    gmil_works("cv", "bags.csv", *columns, "--method", "my_bag_methods:MeanVector", "--folds", 4)
    chosen = ["--methods", "gmil,my_bag_methods:MeanVector", "--folds", 4, "--repeats", 1, "--jobs", 1]
    printed, _ = gmil_works("compare", "bags.csv", *columns, *chosen, "-o", "run")
    row = next(line for line in printed.splitlines() if line.startswith("MeanVector"))
    return Ending("run/report.html", ["MeanVector", row.split()[1], "GMIL"])


def missing_values():
    """Somebody has gaps, then new data with other columns in another order."""
    frame = table_of(40)
    frame.iloc[::7, 2] = np.nan
    training = frame["molecule"] < "m24"
    frame[training].to_csv("old.csv", index=False)
    new = frame[~training].assign(remark="none")
    new[new.columns[::-1]].to_csv("new.csv", index=False)
    columns = ["--bag", "molecule", "--label", "activity"]
    checked, _ = gmil_works("check", "old.csv", *columns)
    assert "desc_2" in checked
    sentence = gmil_refuses("fit", "old.csv", *columns, "-o", "model.gmil")
    assert "--missing median" in sentence
    gmil_works("fit", "old.csv", *columns, "--missing", "median", "--method", "gmil", "-o", "model.gmil")
    _, told = gmil_works("predict", "model.gmil", "new.csv", "-o", "predictions.csv")
    assert "16 bags predicted" in told
    rows = pd.read_csv("predictions.csv").to_dict("records")
    assert len(rows) == 16
    assert {row["prediction"] for row in rows} <= {"active", "inactive"}
    scored, _ = gmil_works("score", "model.gmil", "new.csv")
    gmil_works("report", "model.gmil", "new.csv", "-o", "page.html")
    return Ending("page.html", ["model.gmil", "16 bags", accuracy_in(scored), "active", "m24"])


def video():
    """Somebody has clips and a list of what happens in them."""
    for i in range(6):
        encode(f"clip{i}.webm", moving_frames(seed=i, speed=1 + 3 * (i % 2)))
    pd.DataFrame({"video": [f"clip{i}.webm" for i in range(6)], "fast": [0, 1] * 3}).to_csv("events.csv", index=False)
    train = ["video", "train", "frames.parquet", "--labels", "events.csv", "-o", "events.gmil"]
    sentence = gmil_refuses(*train)
    assert "gmil video index" in sentence
    gmil_works("video", "index", *(f"clip{i}.webm" for i in range(6)), "-o", "frames.parquet", "--words", 12)
    gmil_works(*train, "--topics", 0)
    encode("new.webm", moving_frames(seed=9, speed=4, n_frames=40))
    printed, _ = gmil_works("video", "detect", "events.gmil", "new.webm", "--html", "page.html")
    header, row = (line.split() for line in printed.splitlines())
    assert header == ["video", "event", "probability", "when"]
    return Ending("page.html", ["new.webm", "fast", f"probability {row[2]} %", "threshold"])


USERS = {made.__name__: made for made in (spreadsheet, embeddings, own_method, missing_values, video)}


@pytest.fixture(scope="module", params=USERS)
def ending(request, tmp_path_factory):
    """Let a user work in a folder of their own; return the page and what it must tell."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp(request.param)
        patch.chdir(folder)
        patch.setattr(own_methods, "_own", {})
        patch.setattr(sys, "path", [str(folder), *sys.path])
        found = USERS[request.param]()
        yield Ending(folder / found.page, found.words)
        sys.modules.pop("my_bag_methods", None)


def test_there_is_no_dead_end(ending):
    assert ending.page.is_file()


@every_screen
def test_the_page_answers_on_every_screen(ending, visit, width, theme):
    page = visit(ending.page, width=width, theme=theme)
    assert overflow(page) == [0, []]
    text = page.evaluate("document.title + document.body.innerText")
    for word in ending.words:
        assert word in text
