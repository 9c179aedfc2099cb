"""Is a leaderboard what its records give? Every hash, every fold and every figure again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.benchmark.cells import load_sets
from gmil.benchmark.counting import counted
from gmil.benchmark.leaderboard import leaderboard_of, read_leaderboard
from gmil.benchmark.shelf import set_row
from gmil.errors import DatasetError, MissingFileError
from gmil.model_selection.folds import fold_numbers

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from gmil.benchmark.records import MethodRecords
    from gmil.benchmark.specification import Benchmark

_TOLERANCE = 1e-8


def verify(benchmark: Benchmark, folder: str | os.PathLike[str]) -> tuple[list[str], int]:
    """Return what is wrong with a leaderboard, nothing where all is right, and how many figures were recomputed.

    Hashes are checked as records are read. Folds are drawn again from labels, groups and seeds. Where a set is here,
    its labels are compared with those on record. All figures and statistics are computed again and compared with
    those that were published.

    Parameters
    ----------
    benchmark : Benchmark
    folder : path
    """
    published, of = read_leaderboard(folder), counted(benchmark, folder)
    of.refuse_absent()
    wrong: list[str] = []
    for name, about in of.shared.items():
        wrong += _wrong_set(benchmark, name, about)
    drawn: dict[tuple[Any, ...], Any] = {}
    for records in of.records.values():
        wrong += _wrong_records(records, of.shared, drawn)
    again = json.loads(json.dumps(leaderboard_of(benchmark, of)))
    differences, n_figures = _compared(published, again)
    return wrong + differences, n_figures


def _wrong_set(benchmark: Benchmark, name: str, about: dict[str, Any]) -> Iterator[str]:
    """Compare a set on record with the data; generated sets have just been made for the record."""
    if name in benchmark.spec.generated:
        return
    try:
        found = load_sets(benchmark.restricted(None, [name]))[0][name]
    except (DatasetError, MissingFileError):  # it is not here: its labels on record must do
        return
    if found.fingerprint != about["data"]:
        yield f"{name}: the data on record is other data than that which is here"
    if not np.array_equal(found.y, about["y"]):
        yield f"{name}: the labels on record are not those of the data"
    if not np.array_equal(set_row(found)["instance_y"], about["instance_y"]):
        yield f"{name}: the labels of instances on record are not those of the data"


def _wrong_records(records: MethodRecords, shared: dict[str, Any], drawn: dict[tuple[Any, ...], Any]) -> Iterator[str]:
    for row in records.rows:
        where = f"{records.method} on {row['dataset']}, {row['setting']}, repeat {row['repeat']}"
        about = shared.get(row["dataset"])
        if about is None or about["data"] != row["data"]:
            yield f"{where}: it was measured on other data than that on record"
        elif row["status"] == "ok" and not np.array_equal(_folds(row, about, drawn), row["folds"]):
            yield f"{where}: the folds are not those of its seed"


def _folds(row: dict[str, Any], about: dict[str, Any], drawn: dict[tuple[Any, ...], Any]) -> Any:
    """Return the folds of a k-fold; all methods have the same, so that they are drawn once."""
    key = row["dataset"], row["n_folds"], row["seed"]
    if key not in drawn:
        drawn[key] = fold_numbers(row["n_folds"], about["y"].astype(np.int64), about["groups"], row["seed"])
    return drawn[key]


def _compared(published: Any, again: Any, where: str = "") -> tuple[list[str], int]:
    """Return what differs, and how many numbers were compared."""
    if isinstance(published, dict) and isinstance(again, dict) and published.keys() == again.keys():
        parts = [(f"{where}.{key}".lstrip("."), published[key], again[key]) for key in published]
    elif isinstance(published, list) and isinstance(again, list) and len(published) == len(again):
        parts = [(f"{where}[{i}]", *pair) for i, pair in enumerate(zip(published, again, strict=True))]
    else:
        is_number = isinstance(published, (int, float)) and isinstance(again, (int, float))
        same = bool(np.isclose(published, again, rtol=_TOLERANCE, atol=_TOLERANCE)) if is_number else published == again
        text = f"{where}: published {str(published)[:80]}, recomputed {str(again)[:80]}"
        return ([] if same else [text]), int(is_number)
    found = [_compared(one, other, place) for place, one, other in parts]
    return [text for texts, _ in found for text in texts], sum(n for _, n in found)
