"""Finished cross-validations of values, grades and times, kept in a folder: a comparison that was stopped goes on."""

from __future__ import annotations

import dataclasses
import hashlib
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.datasets.fingerprint import data_fingerprint
from gmil.model_selection.crossval import cross_validate
from gmil.model_selection.result import CVResult
from gmil.model_selection.target_result import TargetResult
from gmil.paper.runs.fingerprints import canonical, canonical_json
from gmil.paper.runs.jobs import code_of, measured_params
from gmil.safety.atomic import replacing
from gmil.safety.temporaries import remove_leftovers

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from gmil.bags import Bags

Result = TargetResult | CVResult
_BY_REPEAT = {"predictions": 1, "decisions": 1, "folds": 0, "fit_seconds": 1, "predict_seconds": 1, "curves": 1}
"""Arrays of a result that have an axis of repeats, and which it is."""
_LABELS = ("predictions", "grades", "positive_label")
"""What holds labels; they are kept as numbers of classes, for labels may be of any kind."""


class KeptResults:
    """Cross-validations of bags in ``<output>/rows``, one file per method and repeat; files appear whole or not at all.

    A file is named by all that its result depends on: bags, targets and groups, the method with its parameters, folds,
    seed, and the source code that computes. Where any of it changes, the work is done again.

    Parameters
    ----------
    output : path
        Made where it does not exist.
    bags : Bags
    y : array
        What is to be predicted.
    groups : array of shape (n_bags,), optional
    """

    def __init__(self, output: str | os.PathLike[str], bags: Bags, y: Any, groups: Any = None) -> None:
        self.folder = Path(output) / "rows"
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)
        self.bags, self.y, self.groups = bags, np.asarray(y), groups
        self.found: list[str] = []
        self.damaged: list[str] = []
        self._data = data_fingerprint(bags, y, groups)

    def cross_validate(self, estimator: Any, *, cv: int, repeats: int, random_state: int, **how: Any) -> Result:
        """Do what `gmil.cross_validate` does; repeats that were done are read.

        Parameters
        ----------
        estimator : estimator
        cv, repeats, random_state : int
        **how
            What results do not depend on, such as ``n_processes``.
        """
        # Repeat r with the seed s is repeat 0 with the seed s + r: each can be done alone.
        parts = [self._repeat(estimator, cv, random_state + repeat, how) for repeat in range(repeats)]
        return _joined(parts, random_state)

    def _repeat(self, estimator: Any, folds: int, seed: int, how: Mapping[str, Any]) -> Result:
        path = self.folder / f"{self._name(estimator, folds, seed)}.npz"
        kept = self._read(path, seed)
        if kept is not None:
            self.found.append(path.name)
            return kept
        done = cross_validate(estimator, self.bags, self.y, cv=folds, groups=self.groups, random_state=seed, **how)
        with replacing(path) as temporary:
            np.savez_compressed(temporary, **_arrays(done))
        return done

    def _name(self, estimator: Any, folds: int, seed: int) -> str:
        content = {"method": canonical(estimator), "params": measured_params(estimator), "code": code_of(estimator)}
        content |= {"data": self._data, "folds": folds, "seed": seed}
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    def _read(self, path: Path, seed: int) -> Result | None:
        """Return what a file holds; None where it is not there, or damaged."""
        if not path.exists():
            return None
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return _result(arrays, self.y, self.groups, seed)
        except (OSError, ValueError, KeyError, IndexError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
            self.damaged.append(path.name)
            return None


def _arrays(result: Result) -> dict[str, Any]:
    """Return what cannot be known before a result is there, as arrays of numbers."""
    wanted = (*_BY_REPEAT, "times", "grades", "positive_label")
    arrays = {name: getattr(result, name) for name in wanted if getattr(result, name, None) is not None}
    if isinstance(result, TargetResult):
        return {**arrays, "target": np.array(result.target), "y": result.y}
    classes = np.unique(result.y)
    return arrays | {name: np.searchsorted(classes, arrays[name]) for name in _LABELS if name in arrays}


def _result(arrays: dict[str, Any], y: Any, groups: Any, seed: int) -> Result:
    """Rebuild from what `_arrays` returned; a ValueError says that arrays are not those of these bags."""
    n_bags = len(y)
    if arrays["folds"].shape != (1, n_bags) or arrays["predictions"].shape[:3] != (1, 1, n_bags):
        msg = "of other bags"
        raise ValueError(msg)
    own: dict[str, Any] = {"groups": None if groups is None else np.asarray(groups), "random_state": seed}
    if "target" in arrays:
        return TargetResult(**arrays | {"target": str(arrays["target"])}, **own)
    classes = np.unique(y)
    labels = {name: classes[arrays[name]] for name in _LABELS if name in arrays}
    if "grades" in labels:
        labels["grades"] = labels["grades"].tolist()
    return CVResult(y=y, **arrays | labels, **own)


def _joined(parts: Sequence[Result], seed: int) -> Result:
    """Return the repeats of one cross-validation as one result."""
    first: Any = parts[0]
    names = [name for name in _BY_REPEAT if getattr(first, name, None) is not None]
    whole = {name: np.concatenate([getattr(part, name) for part in parts], axis=_BY_REPEAT[name]) for name in names}
    joined: Result = dataclasses.replace(first, **whole, random_state=seed)
    return joined
