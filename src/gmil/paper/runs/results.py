"""The rows of an experiment, and what tables and figures ask of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import SpecificationError
from gmil.model_selection.result import CVResult

if TYPE_CHECKING:
    import pyarrow as pa

    from gmil.engine.arrays import Floats, Integers
    from gmil.paper.runs.specification import Spec


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
        (flattened), instance_scores (flattened; nothing where none were asked for), classes, positive_label, accuracy,
        fit_seconds, predict_seconds, tune_seconds, chosen (JSON), warnings (JSON), versions (JSON), machine (JSON),
        finished_at.
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

    def cell(self, dataset: str, method: str, column: str, label: str | None = None) -> pa.Table:
        """Return the rows of one cell, by repeat and fold; none where it was not measured."""
        import pyarrow.compute as pc

        mask = pc.field("dataset") == dataset
        mask &= (pc.field("method") == method) & (pc.field("column") == column)
        if label is not None:
            mask &= pc.field("label") == label
        found = self.table.filter(mask)
        if len(pc.unique(found["params"])) > 1:
            labels = sorted(pc.unique(found["label"]).to_pylist())
            msg = f"{method} on {dataset} has several cells in {column!r}. Name one by its label: {labels}."
            raise SpecificationError(msg)
        return found.sort_by([("repeat", "ascending"), ("fold", "ascending")])

    def rows(self, dataset: str, method: str, column: str, label: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of one cell as dictionaries, by repeat and fold; none where it was not measured."""
        found: list[dict[str, Any]] = self.cell(dataset, method, column, label).to_pylist()
        return found

    def jobs(self, dataset: str, method: str, column: str, label: str | None = None) -> list[str]:
        """Return the hashes of the jobs behind a cell: ``<output>/rows/<hash>.parquet``."""
        return list(dict.fromkeys(self.cell(dataset, method, column, label)["job"].to_pylist()))

    def failure(self, dataset: str, method: str, column: str, label: str | None = None) -> str | None:
        """Return why a cell failed, or None."""
        failed = _failed(self.cell(dataset, method, column, label))
        return failed["reason"][0].as_py() if failed.num_rows else None

    def failures(self) -> list[dict[str, Any]]:
        """Return dataset, method, column, label, repeat, job and reason of every job that failed."""
        names = ["dataset", "method", "column", "label", "repeat", "job", "reason"]
        return list({row["job"]: row for row in _failed(self.table).select(names).to_pylist()}.values())

    def cross_validation(self, dataset: str, method: str, column: str, label: str | None = None) -> CVResult | None:
        """Return a cell as the result of a repeated cross-validation, None where it has none.

        Labels and predictions are texts. Its methods give accuracy, interval, AUC and more.
        """
        key = (dataset, method, column, label)
        if key not in self._validations:
            found = self.cell(*key)
            self._validations[key] = cv_result(found) if found.num_rows and not _failed(found).num_rows else None
        return self._validations[key]

    @cached_property
    def _validations(self) -> dict[tuple[str, str, str, str | None], CVResult | None]:
        """Cells that were asked for: every method is compared with the same one."""
        return {}

    def fold_accuracies(self, dataset: str, method: str, column: str, label: str | None = None) -> Floats | None:
        """Return the accuracy in every fold, (n_repeats, n_folds), None where the cell has none."""
        found = self.cross_validation(dataset, method, column, label)
        return None if found is None else found.fold_accuracies()[0]

    def accuracy(self, dataset: str, method: str, column: str, label: str | None = None) -> float | None:
        """Return the mean accuracy over folds and repeats, None where the cell has none."""
        found = self.cross_validation(dataset, method, column, label)
        return None if found is None else float(found.accuracy())

    def measures(
        self,
        dataset: str,
        method: str,
        column: str,
        label: str | None = None,
        *,
        groups: Any = None,
        also: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Return a cell as plain values: its jobs, accuracy with interval and spread, or why it failed.

        Where bags belong to groups, the interval is by bootstrap over these. ``also`` names more of `gmil.CVResult`.
        """
        case = (dataset, method, column, label)
        jobs, found = self.jobs(*case), self.cross_validation(*case)
        if found is None:
            return {"accuracy": None, "failure": self.failure(*case), "jobs": jobs}
        return {
            "accuracy": found.accuracy(),
            "interval": list(replace(found, groups=groups).accuracy_interval()),
            "spread": found.accuracy_std() if len(found.folds) > 1 else None,
            "repeats": len(found.folds),
            **{name: getattr(found, name)() for name in also},
            "jobs": jobs,
        }

    def instance_scores(self, dataset: str, method: str, column: str, sizes: Integers) -> Floats | None:
        """Return held-out scores, (n_repeats, n_instances, n_problems), None where the cell has none.

        ``sizes (n_bags,)`` are the numbers of instances of the bags.
        """
        found = self.cell(dataset, method, column)
        if not found.num_rows or found["instance_scores"].null_count:
            return None
        numbers, repeat_of = np.unique(found["repeat"].to_numpy(), return_inverse=True)
        folds = list(zip(found["bags"].to_pylist(), found["instance_scores"].to_pylist(), strict=True))
        n_problems = len(folds[0][1]) // int(sizes[folds[0][0]].sum())
        scores = np.empty((len(numbers), int(sizes.sum()), n_problems))
        for repeat, (bags, values) in zip(repeat_of, folds, strict=True):
            tested = np.repeat(np.isin(np.arange(len(sizes)), bags), sizes)
            scores[repeat, tested] = np.reshape(values, (-1, n_problems))
        return scores

    def n_bags(self, dataset: str) -> int:
        """Return how many bags a data set has that something was measured on."""
        import pyarrow.compute as pc

        tested = self.table.filter((pc.field("dataset") == dataset) & (pc.field("status") == "ok"))["bags"]
        return 1 + int(pc.max(pc.list_flatten(tested)).as_py())

    def tune_seconds(self, dataset: str, method: str, column: str, label: str | None = None) -> float | None:
        """Return the seconds that choosing took in a whole k-fold, the median over repeats, None if not tuned."""
        found = self.cell(dataset, method, column, label)
        seconds = found["tune_seconds"].to_numpy()  # NaN where nothing was chosen
        if np.isnan(seconds).all():
            return None
        _, repeats = np.unique(found["repeat"].to_numpy(), return_inverse=True)
        return float(np.median(np.bincount(repeats, weights=np.nan_to_num(seconds))))


def _failed(table: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.field("status") == "failed")


def cv_result(table: pa.Table) -> CVResult:
    """Put the rows of one cell, by repeat and fold, together again."""
    import pyarrow.compute as pc

    numbers, repeat_of = np.unique(table["repeat"].to_numpy(), return_inverse=True)
    sizes = pc.list_value_length(table["bags"]).to_numpy()
    bags, labels, predicted, decided = (
        pc.list_flatten(table[name]).to_numpy() for name in ("bags", "labels", "predictions", "decisions")
    )
    places = (np.repeat(repeat_of, sizes), bags)
    classes, shape = table["classes"][0].as_py(), (len(numbers), int(bags.max()) + 1)
    y, predictions = np.empty(shape[1], dtype=object), np.empty(shape, dtype=object)
    decided = decided.reshape(len(bags), -1)
    folds, decisions = np.empty(shape, dtype=np.int64), np.empty((*shape, decided.shape[1]))
    y[bags], predictions[places], decisions[places] = labels, predicted, decided
    folds[places] = np.repeat(table["fold"].to_numpy(), sizes)
    # As texts, 10 comes before 9.
    decisions = decisions[..., 0] if len(classes) == 2 else decisions[..., np.argsort(classes)]
    if len(classes) == 2 and table["positive_label"][0].as_py() == min(classes):
        decisions = -decisions
    fitting, predicting = (
        table[name].to_numpy().reshape(1, len(numbers), -1) for name in ("fit_seconds", "predict_seconds")
    )
    return CVResult(
        y.astype(str),
        predictions.astype(str)[None],
        decisions[None],
        folds,
        fitting,
        predicting,
        positive_label=table["positive_label"][0].as_py() if len(classes) == 2 else None,
    )
