"""Accuracies beside those of Weka 3.6 on the same folds, where Weka and Java are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gmil
from gmil import EMDD, CitationKNN, DiverseDensity, cross_validate

JAR = Path("/usr/share/java/weka.jar")  # where the Debian package `weka` puts it

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
    pytest.mark.skipif(not JAR.exists(), reason=f"Weka 3.6 is not installed: there is no {JAR}"),
]


def weka_accuracy(folder, classifier, options, bags, y, folds):
    """Return the mean accuracy over folds of one of Weka's classifiers of bags."""
    gmil.write(folder / "all.arff", bags, y)
    head, mark, rows = (folder / "all.arff").read_text().partition("@data\n")
    rows = np.array(rows.splitlines(), dtype=object)  # one row a bag; every file has the header of all bags
    found = []
    for fold in range(folds.max() + 1):
        for name, inside in (("train", folds != fold), ("test", folds == fold)):
            (folder / f"{name}.arff").write_text(head + mark + "\n".join(rows[inside]) + "\n")
        command = ["java", "-Djava.awt.headless=true", "-Xmx1g", "-cp", str(JAR), f"weka.classifiers.mi.{classifier}"]
        files = ["-t", str(folder / "train.arff"), "-T", str(folder / "test.arff"), "-o"]
        done = subprocess.run([*command, *files, *options], capture_output=True, text=True, check=True)
        on_test = done.stdout.partition("=== Error on test data ===")[2]
        found.append(float(re.search(r"Correctly Classified Instances\s+\d+\s+([\d.]+)\s+%", on_test)[1]))
    return np.mean(found)


@pytest.mark.parametrize(
    ("classifier", "options", "method"),
    [
        ("CitationKNN", ["-R", "2", "-C", "4"], CitationKNN()),
        ("MIDD", [], DiverseDensity()),
        ("MIEMDD", [], EMDD()),
    ],
    ids=["CitationKNN", "MIDD", "MIEMDD"],
)
def test_accuracy_on_musk1_is_that_of_weka(classifier, options, method, tmp_path):
    bags, y = gmil.load_musk1(return_X_y=True)
    result = cross_validate(method, bags, y)
    theirs = weka_accuracy(tmp_path, classifier, options, bags, y, result.folds[0])
    ours = 100 * result.accuracy()
    print(f"{classifier}: Weka {theirs:.1f}, gmil {ours:.1f}")  # noqa: T201  shown by pytest -s
    assert abs(ours - theirs) < 4, f"{classifier} of Weka has {theirs:.1f}, gmil {ours:.1f}"
