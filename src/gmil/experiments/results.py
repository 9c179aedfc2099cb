"""The rows of an experiment, and what tables and figures ask of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.cv_result import CVResult
from gmil.errors import SpecificationError

if TYPE_CHECKING:
    import pyarrow as pa

    from gmil.engine.arrays import Floats
    from gmil.experiments.specification import Spec


@dataclass(frozen=True)
class Results:
    """Everything that an experiment measured, one row per fold.

    A *cell* is what one number of a table stands for: one method in one column on one data set (and, where that has
    several, as in a sweep, one label), over all repeats. A cell with a failed repeat has no accuracy: leaving
    failures out would flatter the method.

    Attributes
    ----------
    spec : Spec
    table : pyarrow.Table
        One row per fold: job, spec, dataset, method, label, column, params (JSON), folds, repeat, fold, seed,
        status ("ok" or "failed"), reason, bags (positions in the test fold), labels, predictions, decisions
        (flattened), classes, positive_label, accuracy, fit_seconds, predict_seconds, tune_seconds, chosen
        (JSON), warnings (JSON), versions (JSON), machine (JSON), finished_at.
    notes : tuple of str
        What a reader must know: missing data, damaged files, methods that are not there.
    datasets : tuple of str
        The data sets that were present.
    """

    spec: Spec
    table: pa.Table
    notes: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.table.to_pandas()

    def rows(self, dataset: str, method: str, column: str, label: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of one cell as dictionaries, by repeat and fold; none where it was not measured."""
        import pyarrow.compute as pc

        mask = pc.field("dataset") == dataset
        mask &= (pc.field("method") == method) & (pc.field("column") == column)
        if label is not None:
            mask &= pc.field("label") == label
        found: list[dict[str, Any]] = self.table.filter(mask).to_pylist()
        if len({row["params"] for row in found}) > 1:
            labels = sorted({row["label"] for row in found})
            msg = f"{method} on {dataset} has several cells in {column!r}. Name one by its label: {labels}."
            raise SpecificationError(msg)
        return sorted(found, key=lambda row: (row["repeat"], row["fold"]))

    def jobs(self, dataset: str, method: str, column: str, label: str | None = None) -> list[str]:
        """Return the hashes of the jobs behind a cell: ``<output>/rows/<hash>.parquet``."""
        return list(dict.fromkeys(row["job"] for row in self.rows(dataset, method, column, label)))

    def failure(self, dataset: str, method: str, column: str, label: str | None = None) -> str | None:
        """Return why a cell failed, or None."""
        reasons = [row["reason"] for row in self.rows(dataset, method, column, label) if row["status"] == "failed"]
        return reasons[0] if reasons else None

    def failures(self) -> list[dict[str, Any]]:
        """Return dataset, method, column, label, repeat, job and reason of every job that failed."""
        names = ("dataset", "method", "column", "label", "repeat", "job", "reason")
        failed = {row["job"]: row for row in self.table.to_pylist() if row["status"] == "failed"}
        return [{name: row[name] for name in names} for row in failed.values()]

    def cross_validation(self, dataset: str, method: str, column: str, label: str | None = None) -> CVResult | None:
        """Return a cell as the result of a repeated cross-validation, None where it has none.

        Labels and predictions are texts. Its methods give accuracy, interval, AUC and more.
        """
        rows = self.rows(dataset, method, column, label)
        if not rows or any(row["status"] != "ok" for row in rows):
            return None
        return cv_result(rows)

    def fold_accuracies(self, dataset: str, method: str, column: str, label: str | None = None) -> Floats | None:
        """Return the accuracy in every fold, (n_repeats, n_folds), None where the cell has none."""
        found = self.cross_validation(dataset, method, column, label)
        return None if found is None else found.fold_accuracies()[0]

    def accuracy(self, dataset: str, method: str, column: str, label: str | None = None) -> float | None:
        """Return the mean accuracy over folds and repeats, None where the cell has none."""
        found = self.cross_validation(dataset, method, column, label)
        return None if found is None else float(found.accuracy())

    def tune_seconds(self, dataset: str, method: str, column: str, label: str | None = None) -> float | None:
        """Return the seconds that choosing took in a whole k-fold, the median over repeats, None if not tuned."""
        by_repeat: dict[int, float] = {}
        for row in self.rows(dataset, method, column, label):
            if row["tune_seconds"] is not None:
                by_repeat[row["repeat"]] = by_repeat.get(row["repeat"], 0.0) + row["tune_seconds"]
        return float(np.median(list(by_repeat.values()))) if by_repeat else None


def cv_result(rows: list[dict[str, Any]]) -> CVResult:
    """Put the rows of one cell, by repeat and fold, together again."""
    repeats = sorted({row["repeat"] for row in rows})
    n_folds, n_bags = rows[0]["folds"], 1 + max(max(row["bags"]) for row in rows)
    classes = rows[0]["classes"]
    shape = (len(repeats), n_bags)
    y, predictions = np.empty(n_bags, dtype=object), np.empty(shape, dtype=object)
    decisions = np.empty(shape if len(classes) == 2 else (*shape, len(classes)))
    folds, seconds = np.empty(shape, dtype=np.int64), np.zeros((2, len(repeats), n_folds))
    for row in rows:
        r, bags = repeats.index(row["repeat"]), row["bags"]
        y[bags], predictions[r, bags], folds[r, bags] = row["labels"], row["predictions"], row["fold"]
        decisions[r, bags] = np.reshape(row["decisions"], decisions[r, bags].shape)
        seconds[:, r, row["fold"]] = row["fit_seconds"], row["predict_seconds"]
    if decisions.ndim == 3:
        decisions = decisions[..., np.argsort(classes)]  # as texts, 10 comes before 9
    elif rows[0]["positive_label"] == min(classes):
        decisions = -decisions
    return CVResult(
        y.astype(str),
        predictions.astype(str)[None],
        decisions[None],
        folds,
        seconds[0][None],
        seconds[1][None],
        positive_label=rows[0]["positive_label"],
    )
