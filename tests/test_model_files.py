"""Model files of released versions load for ever and decide as they did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from tests.model_files.make import problems

import gmil

# scikit-learn warns of models that another of its versions wrote: the files must load all the same.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
FOLDER = Path(__file__).parent / "model_files"
FILES = sorted(FOLDER.glob("*/*.gmil"))
WORDS_FILES = sorted(FOLDER.glob("0.1.0/*-words.gmil"))
PROBLEMS = problems()


def expected_of(path):
    with np.load(path.parent / "expected.npz") as saved:
        (key,) = [key for key in saved if key.startswith(f"{path.stem}|")]
        return PROBLEMS[key.partition("|")[2]][0], saved[key]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_old_files_decide_as_they_did(path):
    bags, expected = expected_of(path)
    if path.stem == "EventDetectors":
        pytest.importorskip("gmil.video")
        from gmil.video import EventDetectors

        found = EventDetectors.load(path).decide(bags)
    else:
        model = gmil.load(path)
        found = model.decision_function(bags) if is_classifier(model) else model.transform(bags)
        found = getattr(found, "instances", found)  # of bags, or one vector per bag
        if path.stem.endswith("-words"):
            # Their positive class is classes_[0]. 0.1.0 gave decisions about it; now they are about classes_[1].
            expected = -expected
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("path", WORDS_FILES, ids=lambda path: path.stem)
def test_old_files_predict_as_they_did(path):
    bags, expected = expected_of(path)
    model = gmil.load(path)
    assert model.pos_label_ == "active"
    assert_array_equal(model.predict(bags), np.where(expected > 0, "active", "inactive"))


def test_what_was_left_out_is_about_the_second_class_too():
    bags, _ = PROBLEMS["words"]
    model = gmil.load(FOLDER / "0.1.0/WeightedGMIL-words.gmil")
    assert np.corrcoef(model.left_out_decisions_, model.decision_function(bags))[0, 1] > 0


def test_there_is_a_file_of_every_class_of_0_1_0():
    names = {path.stem.partition("-")[0] for path in FOLDER.glob("0.1.0/*.gmil")}
    assert len(names) == 25
    assert names - {"EventDetectors"} <= {name for name, _ in gmil.all_estimators()}
