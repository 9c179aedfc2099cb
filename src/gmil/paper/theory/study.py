"""The whole check as one summary: counter-examples, trials, conditions, maximisers on generated and on real bags."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sklearn.preprocessing import StandardScaler

from gmil import datasets
from gmil.errors import DatasetError
from gmil.paper.theory.agreement import (
    BAG_SIZE,
    N_BAGS,
    SEPARATION,
    VARIED,
    measure_agreement,
    measure_setting,
    settings_of,
    summarize,
)
from gmil.paper.theory.claims import COUNTER_EXAMPLES
from gmil.paper.theory.trials import run_trials
from gmil.transform.per_instance import PerInstance

if TYPE_CHECKING:
    from collections.abc import Callable

    from gmil.paper.theory.agreement import Setting

DATASETS = ("musk1", "musk2", "elephant", "fox", "tiger")
_SEEDS_OF_REAL_SETS = 20


def run_study(n_seeds: int = 100, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Check everything; generated bags and k-means take the seeds 0 ... n_seeds - 1, random trials the seed 0."""
    rows = _measure_generated(n_seeds, progress)
    keys = ("varied", "value", "candidates", "rule")
    return {
        "counter_examples": counter_example_rows(),
        "trials": [trial._asdict() for trial in run_trials()],
        "generated": {"n_bags": N_BAGS, "bag_size": BAG_SIZE, "separation": SEPARATION, "seeds": n_seeds},
        "agreement": summarize((row for row in rows if row["rule"] != "conditions"), keys),
        "conditions": summarize(
            (row for row in rows if row["rule"] == "conditions" and row["varied"] != "positive_share"), keys
        ),
        "real": _measure_real(min(n_seeds, _SEEDS_OF_REAL_SETS)),
    }


def counter_example_rows() -> list[dict[str, Any]]:
    """Return one row for every point of every counter-example, with the quantities that contradict the claim."""
    return [
        {
            "name": example.name,
            "claim": example.claim,
            "point": name,
            "positive": evidence.positive,
            "negative": evidence.negative,
            **{quantity: getattr(evidence, quantity) for quantity in example.shown},
        }
        for example in COUNTER_EXAMPLES
        for name, evidence in example.points.items()
    ]


def flat_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the measured maximisers, generated and real, as rows of the same keys."""
    columns = list(summary["agreement"][0])
    real = [{"varied": "data set", "value": row["dataset"], **row} for row in summary["real"]]
    return [{name: row.get(name) for name in columns} for row in [*summary["agreement"], *real]]


def _measure_generated(n_seeds: int, progress: Callable[[int, int], None] | None) -> list[dict[str, Any]]:
    settings = {name: settings_of(name) for name in VARIED}
    distinct = list(dict.fromkeys(setting for some in settings.values() for setting in some))
    measured: dict[Setting, list[dict[str, Any]]] = {setting: [] for setting in distinct}
    for done, setting in enumerate(distinct):
        for seed in range(n_seeds):
            measured[setting] += measure_setting(setting, seed)
            if progress is not None:
                progress(done * n_seeds + seed + 1, len(distinct) * n_seeds)
    return [
        {"varied": name, "value": asdict(setting)[name], **row}
        for name, some in settings.items()
        for setting in some
        for row in measured[setting]
    ]


def _measure_real(n_seeds: int) -> list[dict[str, Any]]:
    """Measure on the data sets that are here, every feature of deviation 1."""
    rows = []
    for name in DATASETS:
        try:
            found = datasets.load(name, download_if_missing=False)
        except DatasetError:
            continue
        bags = PerInstance(StandardScaler()).fit_transform(found.bags)
        for seed in range(n_seeds):
            rows += [{"dataset": name, **row} for row in measure_agreement(bags, found.y == 1, seed)]
    return summarize(rows, ("dataset", "candidates", "rule"))
