"""Whether the paper's figures for GMIL are reached by the method as printed: set by set, over many 10-folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.paper.tables.published import dataset_title, published_accuracy

if TYPE_CHECKING:
    from gmil.paper.runs.results import Results

METHOD = "gmil"


def reproduction(results: Results) -> list[dict[str, Any]]:
    """Return, for every data set with a published figure, what whole k-folds of the paper's setting give.

    A cell has the mean ``accuracy`` of all k-folds with its ``interval``, how many ``repeats`` there are, the accuracy
    of the ``best`` one, the ``published`` figure, and the share of k-folds that have ``reached`` it, as it is printed.
    """
    entry = next((entry for entry in results.spec.methods if entry.name == METHOD and entry.from_paper), None)
    if entry is None or "paper" not in entry.columns:
        return []
    cells = [_cell(results, dataset, entry.label) for dataset in results.datasets]
    return [cell for cell in cells if cell is not None]


def _cell(results: Results, dataset: str, label: str) -> dict[str, Any] | None:
    found = results.cross_validation(dataset, METHOD, "paper", label)
    printed = published_accuracy(METHOD, dataset)
    if found is None or printed is None:
        return None
    percents = 100 * found.fold_accuracies()[0].mean(axis=1)  # (n_repeats,)
    return {
        "dataset": dataset,
        "label": label,
        **results.measures(dataset, METHOD, "paper", label),
        "best": float(percents.max() / 100),
        "published": printed / 100,
        "reached": float(np.mean(percents.round(1) >= printed)),
    }


def sentences(cells: list[dict[str, Any]]) -> list[str]:
    """Return what must be said about the published figures, one sentence for every data set."""
    return [
        f"{dataset_title(cell['dataset'])}, the paper's GMIL as printed: {_percent(cell['accuracy'])} % on average, "
        f"{_percent(cell['best'])} % in the best of {cell['repeats']} whole cross-validations, of which "
        f"{share_text(cell)} the published {_percent(cell['published'])} %."
        for cell in cells
    ]


def share_text(cell: dict[str, Any]) -> str:
    """Return how many cross-validations reach the published figure.

    >>> share_text({"reached": 0.0}), share_text({"reached": 0.047}), share_text({"reached": 1.0})
    ('none reaches', '4.7 % reach', 'all reach')
    """
    if cell["reached"] in (0.0, 1.0):
        return "none reaches" if cell["reached"] == 0 else "all reach"
    return f"{_percent(cell['reached'])} % reach"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
