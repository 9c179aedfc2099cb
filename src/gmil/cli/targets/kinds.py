"""Values, grades and times on the command line: which kind of target, and tables of what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import print_table, say
from gmil.errors import BagValidationError, count_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from gmil.cli.inputs import LabelledBags, Method

DEFAULTS = {
    "classes": "weighted-gmil",
    "regression": "weighted-gmil-regressor",
    "ordinal": "weighted-gmil-ordinal",
    "survival": "weighted-gmil-survival",
}
"""The method of every kind of target, where none is named."""


def with_target(method: Method, data: LabelledBags) -> LabelledBags:
    """Return data whose kind of target is decided: by --target, by the method, or by the labels; it is said which."""
    from gmil.model_selection.target_crossval import target_of
    from gmil.target_checks import kind_of_target

    target, has_times = data.target, data.y.dtype.names is not None
    if method.method is not None or method.paper:
        name = method.name  # which makes a method of the user known
        own = target_of(gmil.own_methods.all_methods()[name]())
        if target not in (None, own):
            msg = f"--target {target} is not what {name} predicts: {own}. Leave out --method or --target."
            raise BagValidationError(msg)
        target = own
    elif target is None:
        target, why = kind_of_target(data.y)
        if target != "classes":
            say(f"{data.name}: {target}, because {why}; {DEFAULTS[target]}. Choose with --target and --method.")
    if has_times != (target == "survival"):
        msg = (
            f"--event names times, but {target} was asked for. Leave out one."
            if has_times
            else "Survival needs to know which events were seen: name the column with --event; --label is the time."
        )
        raise BagValidationError(msg)
    return data._replace(target=target)


def read_times(bags: Any, y: Any, event: str, *, needs_labels: bool) -> Any:
    """Return events and times of bags; None where they are wrong, and nobody needs them."""
    from gmil.bags.bag_columns import groups_of
    from gmil.target_checks import outcomes_of, seen_events

    try:
        return outcomes_of(seen_events(groups_of(bags, event, "event"), parameter="event"), y)
    except BagValidationError:
        if needs_labels:
            raise
        return None


def is_of_values(target: str | None) -> bool:
    """Tell whether a target is neither classes nor grades."""
    return target in ("regression", "survival")


# -------------------------------------------------------------------------------- cross-validation


def print_value_rows(rows: list[dict[str, Any]]) -> None:
    """Print what cross-validation found about values or times, one row a data set."""
    from gmil.reporting.targets import TITLES

    first = rows[0]
    names = [name for name in TITLES if name in first]
    titles = [title for name in names for title in (_short(TITLES[name]), "95 % interval")]
    cells = []
    for row in rows:
        figures = [cell for name in names for cell in _figure(row, name)]
        cells.append([row["dataset"], row["method"], *figures, f"{row['seconds']:.2f}"])
    whole = "" if first["groups"] is None else " of whole groups"
    title = f"{first['repeats']} x {first['folds']}-fold{whole}, seed {first['seed']}; {first['target']}"
    print_table(["data set", "method", *titles, "seconds"], cells, title=title)


def _short(title: str) -> str:
    return title.split(",")[0].split(" (")[0]


def _figure(row: dict[str, Any], name: str) -> tuple[str, str]:
    value, limits = row.get(name), row.get(f"{name}_interval")
    shown = "" if limits is None else f"{limits[0]:.3f} - {limits[1]:.3f}"
    return ("-" if value is None else f"{value:.3f}"), shown


def write_value_page(done: list[Any], target: Path) -> None:
    """Write the page of cross-validations of values or times."""
    from gmil.reporting.targets import TargetPage, section_of, verdict_of

    sections = [section_of(found.result, found.data.name, found.data.bags) for found in done]
    first = done[0]
    names = ", ".join(found.data.name for found in done)
    protocol = f"{first.row['repeats']} x {first.row['folds']}-fold, seed {first.row['seed']}; {first.row['target']}"
    verdict = " ".join(verdict_of(section.title, section.figures) for section in sections)
    page = TargetPage(f"{first.row['method']} on {names}, cross-validated", verdict, protocol, sections)
    say(f"{page.save(target)} is written.")


# -------------------------------------------------------------------------------- models


def value_table(estimator: Any, bags: Any, ids: Any) -> pa.Table:
    """Return a row per bag: its id, and its value with an interval, or its risk with the median time."""
    import numpy as np
    import pyarrow as pa

    from gmil.model_selection.folds import last_step

    values = np.asarray(estimator.predict(bags))
    table = values.reshape(len(values), -1)
    ends = ["" if values.ndim == 1 else f"_{number}" for number in range(table.shape[1])]
    columns = {"bag": ids, **{f"prediction{end}": column for end, column in zip(ends, table.T, strict=True)}}
    if hasattr(estimator, "predict_interval"):
        limits = estimator.predict_interval(bags).reshape(len(values), -1, 2)
        for end, (low, high) in zip(ends, limits.transpose(1, 2, 0), strict=True):
            columns |= {f"low_90{end}": low, f"high_90{end}": high}
    if hasattr(estimator, "predict_survival_function"):
        curves, times = estimator.predict_survival_function(bags), last_step(estimator)[1].unique_times_
        below = curves <= 0.5
        median = np.where(below.any(axis=1), times[below.argmax(axis=1)], np.nan)
        columns = {"bag": ids, "risk": values, "median_time": median}
    return pa.table({name: pa.array(np.asarray(column).tolist(), from_pandas=True) for name, column in columns.items()})


def score_table(estimator: Any, data: LabelledBags, about: dict[str, Any], title: str, *, as_json: bool) -> None:
    """Print how well a model predicts values or times."""
    import json

    from gmil.model_selection.target_crossval import target_of
    from gmil.model_selection.target_scoring import score_values
    from gmil.reporting.targets import rows_of

    figures = score_values(estimator, data.bags, data.y, target_of(estimator), data.groups).figures()
    if as_json:
        click.echo(json.dumps({**about, **figures}, indent=2))
        return
    print_table(["measure", "value", "95 % interval"], [list(row) for row in rows_of(figures)], title=title)


def report_values(estimator: Any, data: LabelledBags, title: str, n_seen: int, target: Path) -> str:
    """Write the page of a model and bags with values or times; return the verdict."""
    from gmil.model_selection.target_crossval import target_of
    from gmil.model_selection.target_scoring import score_values
    from gmil.reporting.targets import TargetPage, section_of, verdict_of

    if data.y is None:
        msg = f"{data.name} has no labels, and a page of values compares predictions with them. Name them with --label."
        raise BagValidationError(msg)
    found = score_values(estimator, data.bags, data.y, target_of(estimator), data.groups)
    section = section_of(found, data.name, data.bags, n_seen)
    verdict = verdict_of(data.name, section.figures, n_seen)
    page = TargetPage(title, verdict, count_of(len(data.bags), "bag"), [section])
    say(f"{page.save(target)} is written.")
    return page.verdict
