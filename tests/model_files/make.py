"""Write one small model file per registered class, with the decisions that the installed version makes.

Run with the version whose files are to be kept: ``python tests/model_files/make.py tests/model_files/0.1.0``. Files of
a released version are never written again: `tests/test_model_files.py` asks that they load for ever.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import gmil
from gmil.engine import why_not

WORDS = np.array(["active", "inactive"])


def training_bags(n_classes: int = 2) -> tuple[gmil.Bags, np.ndarray]:
    """Return 18 small bags, of which some instances lie where their class lies."""
    rng = np.random.default_rng(1205_0610)
    sizes = rng.integers(2, 5, 18)
    y = np.arange(18) % n_classes
    bags = [rng.normal(size=(size, 3)) for size in sizes]
    for bag, label in zip(bags, y, strict=True):
        bag[0] += 3 * label
    return gmil.Bags.from_list([bag.round(3) for bag in bags]), y


def variants() -> dict[str, tuple[object, str]]:
    """Return further models whose files hold other things, each with what it learns from."""
    return {
        "GMIL-pca": (gmil.GMIL(scale="minmax+l2", n_components=2, n_negative=0), "two"),
        "GMIL-three": (gmil.GMIL(), "three"),
        "GMIL-sparse": (gmil.GMIL(), "sparse"),
        "GMIL-mahalanobis": (gmil.GMIL(metric="mahalanobis"), "two"),
        "GMIL-kernel": (gmil.GMIL(clustering="kernel"), "two"),
        "GMIL-spectral": (gmil.GMIL(clustering="spectral"), "two"),
        "GMIL-smooth": (gmil.GMIL(density="gaussian"), "two"),
        "WeightedGMIL-linear": (gmil.WeightedGMIL(vote="linear"), "two"),
        "WeightedGMIL-three": (gmil.WeightedGMIL(), "three"),
        "WeightedGMIL-several": (gmil.WeightedGMIL(), "several"),
        "WeightedGMIL-streamed": (gmil.WeightedGMIL(sample_size=30), "two"),
        "BagStatistics-logistic": (gmil.BagStatistics(estimator=LogisticRegression()), "two"),
        "SingleInstance-logistic": (gmil.SingleInstance(estimator=LogisticRegression()), "two"),
        "PerInstance-standard": (gmil.PerInstance(StandardScaler()), "two"),
        "SetKernelSVM-three": (gmil.SetKernelSVM(), "three"),
        "GraphKernelSVM-explicit": (gmil.GraphKernelSVM(graphs="explicit"), "two"),
        "WitnessSVM-linear": (gmil.WitnessSVM(kernel="linear", solver="liblinear"), "two"),
        "InstanceSVM-sparse": (gmil.InstanceSVM(), "sparse"),
        "MICA-rbf": (gmil.MICA(kernel="rbf"), "two"),
    }


def problems() -> dict[str, tuple[gmil.Bags, np.ndarray]]:
    """Return what there is to learn from, by name."""
    bags, y = training_bags()
    sparse = gmil.Bags(sp.csr_array(np.where(np.abs(bags.instances) > 0.5, bags.instances, 0)), bags.offsets)
    several = np.column_stack([y, np.arange(18) % 3 == 0]).astype(np.int64)
    return {
        "two": (bags, y),
        "words": (bags, WORDS[1 - y]),
        "three": training_bags(3),
        "several": (bags, several),
        "sparse": (sparse, y),
    }


def save_detectors(folder: Path, bags: gmil.Bags, y: np.ndarray) -> np.ndarray:
    """Write event detectors with their vocabulary; return their decisions."""
    from gmil.video import EventDetectors

    detectors = EventDetectors.fit(bags, y, ["run", "jump"], topics=0)
    detectors.save(folder / "EventDetectors.gmil")
    return detectors.decide(bags)


def main(folder: Path) -> None:
    """Write every file and ``expected.npz``."""
    folder.mkdir(parents=True, exist_ok=True)
    has_torch = why_not("torch") is None
    classes = [(name, cls) for name, cls in gmil.all_estimators() if has_torch or "epochs" not in cls().get_params()]
    models: dict[str, tuple[object, str]] = {name: (cls(), "two") for name, cls in classes}
    for name, cls in classes:
        if "pos_label" in cls().get_params():  # the first class in the order of the alphabet is the positive one
            models[f"{name}-words"] = (cls(pos_label="active"), "words")
    data = problems()
    expected: dict[str, np.ndarray] = {}
    for name, (model, problem) in {**models, **variants()}.items():
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        if "param_grid" in model.get_params():  # a small one: the file holds what every setting reached
            model.set_params(param_grid={"n_clusters": [4, 6], "scale": [None, "standard"]})
        bags, y = data[problem]
        if getattr(model, "_target", None) == "survival":
            y = np.column_stack([np.ones(len(y)), 1 + np.arange(len(y))])
        model.fit(bags, y).save(folder / f"{name}.gmil")
        answers = ("decision_function", "predict", "transform")
        found = next(getattr(model, answer)(bags) for answer in answers if hasattr(model, answer))
        expected[f"{name}|{problem}"] = getattr(found, "instances", found)  # of bags, or one vector per bag
    bags, y = data["several"]
    expected["EventDetectors|several"] = save_detectors(folder, bags, y)
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
