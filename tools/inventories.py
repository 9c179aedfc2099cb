"""Write docs/_inventories: where other projects document the names that gmil's site links to.

Usage: python tools/inventories.py [--fetch]

An inventory lists the names below and no others, so that the site is built without a network and the files stay small.
Every name must exist in the package that is installed. With --fetch the addresses are compared with the inventories
that the projects publish; a name that has moved is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import inspect
import pkgutil
import sys
import urllib.request
import zlib
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "_inventories"


class Project(NamedTuple):
    """A project whose names are linked to: its site, the page of a name, and what is not a name with a page."""

    url: str
    page: str
    names: tuple[str, ...]
    others: tuple[tuple[str, str, str], ...] = ()  # name, kind, address


_GENERATED = "reference/generated/{name}.html#{name}"
_PIPELINE = "sklearn.pipeline.Pipeline"
PROJECTS = {
    "python": Project(
        "https://docs.python.org/3/",
        "library/{module}.html#{name}",
        ("dataclasses.dataclass", "collections.abc.Mapping", "fractions.Fraction", "pathlib.Path"),
    ),
    "numpy": Project(
        "https://numpy.org/doc/stable/",
        _GENERATED,
        (
            "numpy.arange",
            "numpy.argsort",
            "numpy.array",
            "numpy.asarray",
            "numpy.bincount",
            "numpy.concatenate",
            "numpy.flatnonzero",
            "numpy.full",
            "numpy.linspace",
            "numpy.log",
            "numpy.mean",
            "numpy.memmap",
            "numpy.meshgrid",
            "numpy.ndarray",
            "numpy.quantile",
            "numpy.repeat",
            "numpy.stack",
            "numpy.tile",
            "numpy.unique",
            "numpy.vstack",
            "numpy.where",
        ),
    ),
    "scipy": Project(
        "https://docs.scipy.org/doc/scipy/",
        _GENERATED,
        ("scipy.sparse.csr_array", "scipy.sparse.csr_matrix", "scipy.special.expit", "scipy.stats.spearmanr"),
    ),
    "sklearn": Project(
        "https://scikit-learn.org/stable/",
        "modules/generated/{name}.html#{name}",
        (
            "sklearn.base.BaseEstimator",
            "sklearn.base.ClassifierMixin",
            "sklearn.base.clone",
            "sklearn.calibration.calibration_curve",
            "sklearn.decomposition.PCA",
            "sklearn.ensemble.BaggingClassifier",
            "sklearn.inspection.permutation_importance",
            "sklearn.linear_model.LogisticRegression",
            "sklearn.metrics.accuracy_score",
            "sklearn.metrics.average_precision_score",
            "sklearn.metrics.brier_score_loss",
            "sklearn.metrics.r2_score",
            "sklearn.metrics.roc_auc_score",
            "sklearn.metrics.roc_curve",
            "sklearn.model_selection.GridSearchCV",
            "sklearn.model_selection.StratifiedKFold",
            "sklearn.model_selection.cross_val_predict",
            "sklearn.model_selection.cross_val_score",
            "sklearn.model_selection.learning_curve",
            "sklearn.model_selection.train_test_split",
            "sklearn.multioutput.MultiOutputRegressor",
            "sklearn.pipeline.Pipeline",
            "sklearn.pipeline.make_pipeline",
            "sklearn.preprocessing.FunctionTransformer",
            "sklearn.preprocessing.MinMaxScaler",
            "sklearn.preprocessing.StandardScaler",
            "sklearn.set_config",
        ),
        (  # which docstrings of inherited methods refer to
            (f"{_PIPELINE}.fit", "py:method", f"modules/generated/{_PIPELINE}.html#{_PIPELINE}.fit"),
            ("accuracy_score", "std:label", "modules/model_evaluation.html#accuracy-score"),
            ("df_output_transform", "std:label", "modules/df_output_transform.html#df-output-transform"),
            ("r2_score", "std:label", "modules/model_evaluation.html#r2-score"),
            ("metadata_routing", "std:label", "metadata_routing.html#metadata-routing"),
            (
                "sphx_glr_auto_examples_miscellaneous_plot_set_output.py",
                "std:label",
                "auto_examples/miscellaneous/plot_set_output.html"
                "#sphx-glr-auto-examples-miscellaneous-plot-set-output-py",
            ),
        ),
    ),
    "matplotlib": Project(
        "https://matplotlib.org/stable/",
        "api/_as_gen/{name}.html#{name}",
        ("matplotlib.pyplot.figure", "matplotlib.pyplot.rc", "matplotlib.pyplot.show", "matplotlib.pyplot.subplots"),
    ),
    "pandas": Project(
        "https://pandas.pydata.org/docs/",
        "reference/api/{name}.html#{name}",
        ("pandas.DataFrame", "pandas.read_csv", "pandas.read_parquet"),
    ),
}


def lines_of(project: Project) -> list[str]:
    """Return the lines of an inventory: name, kind, priority, address, and a dash for the name again."""
    return [f"{name} {kind} 1 {address} -" for name, kind, address in sorted(entries_of(project))]


def entries_of(project: Project) -> list[tuple[str, str, str]]:
    """Return name, kind and address of all that a project documents and gmil's site links to."""
    pages = {name: project.page.format(name=name, module=name.rpartition(".")[0]) for name in project.names}
    return [*((name, _kind(name), page) for name, page in pages.items()), *project.others]


def write(name: str) -> None:
    """Write the inventory of a project."""
    head = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    body = "".join(f"{line}\n" for line in lines_of(PROJECTS[name]))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.inv").write_bytes(head.encode() + zlib.compress(body.encode(), 9))


def read(inventory: bytes) -> list[str]:
    """Return the lines of an inventory."""
    return zlib.decompress(inventory.split(b"\n", 4)[4]).decode().splitlines()


def moved(name: str) -> list[str]:
    """Return the names that a project's own inventory has elsewhere, or not at all."""
    project = PROJECTS[name]
    with urllib.request.urlopen(f"{project.url}objects.inv") as answer:
        published = {(line.split()[0], line.split()[1].split(":")[0]): line.split()[3] for line in read(answer.read())}
    return [
        each
        for each, kind, address in entries_of(project)
        if published.get((each, kind.split(":")[0]), "").replace("$", each) != address
    ]


def _kind(name: str) -> str:
    return "py:class" if inspect.isclass(pkgutil.resolve_name(name)) else "py:function"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fetch", action="store_true")
    if parser.parse_args().fetch:
        sys.exit("\n".join(f"moved: {each}" for name in PROJECTS for each in moved(name)) or 0)
    for name in PROJECTS:
        write(name)


if __name__ == "__main__":
    main()
