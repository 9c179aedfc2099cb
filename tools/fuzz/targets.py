"""What is done with a file: load it and predict, or read it and look at everything in it."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from tests.model_files import make

import gmil
from gmil.video import EventDetectors

if TYPE_CHECKING:
    from tools.fuzz.judging import Values

MODEL_FILES = Path(make.__file__).parent


def use_model(path: Path, bags: gmil.Bags) -> Values:
    """Load a model and return its decisions first, then its predictions and the scores of instances."""
    if path.stem == "EventDetectors":
        return [EventDetectors.load(path).decide(bags)]
    model = gmil.load(path)
    if hasattr(model, "transform") and not is_classifier(model):
        found = model.transform(bags)
        return [_dense(found.instances if isinstance(found, gmil.Bags) else found)]
    found = [model.decision_function(bags)] if is_classifier(model) else []
    found.append(model.predict(bags))
    if hasattr(model, "score_instances"):
        found.append(np.concatenate([np.ravel(scores) for scores in model.score_instances(bags)]))
    return found


def use_data(path: Path) -> Values:
    """Read a file or a folder and return all of it."""
    bags, y = gmil.read(path)
    _predict(bags)
    return _contents(bags, y)


def use_lazily(path: Path) -> Values:
    """Scan a file or a folder, load it, and return all of it."""
    lazy, y = gmil.scan(path)
    _predict(lazy)
    return _contents(lazy.load(), y)


def _predict(bags: Any) -> None:
    """Let a model decide about what was read; it may refuse, and what it decides is not looked at."""
    with contextlib.suppress(gmil.GmilError):
        _small_model().decision_function(bags)


@functools.cache
def _small_model() -> gmil.GMIL:
    return gmil.load(MODEL_FILES / "0.1.0" / "GMIL.gmil")


def _contents(bags: gmil.Bags, y: Any) -> Values:
    names = () if bags.feature_names is None else bags.feature_names
    info = () if bags.instance_info is None else bags.instance_info.column_names
    ids = np.array([]) if bags.bag_ids is None else bags.bag_ids
    labels = np.array([]) if y is None else y
    return [_dense(bags.instances), bags.offsets, ids, labels, np.array(names), np.array(info)]


def _dense(instances: Any) -> Any:
    """Return all numbers; a sparse matrix by its parts, which may be wider than memory."""
    if not sp.issparse(instances):
        return instances
    matrix = instances.tocsr()
    return np.concatenate([matrix.data, matrix.indices, matrix.indptr, matrix.shape])
