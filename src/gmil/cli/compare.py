"""``gmil compare``: which method is right for these bags, and whether the bags can be trusted."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from joblib import cpu_count

from gmil import datasets
from gmil.cli.console import FAILED, Progress, clear_errors, print_table, say
from gmil.cli.inputs import (
    LabelledBags,
    data_options,
    feature_columns,
    group_option,
    label_among,
    read_data,
    require_labels,
)
from gmil.cli.report import save_all
from gmil.paper import comparison, run
from gmil.paper.runs.output import write_csv, write_json

if TYPE_CHECKING:
    from gmil.paper import Results

_QUICK_FOLDS, _QUICK_REPEATS = 5, 1


@dataclasses.dataclass(frozen=True)
class Wanted:
    """How to compare, as asked for on the command line."""

    methods: list[str] | None
    folds: int
    repeats: int
    quick: bool
    seed: int
    jobs: int
    positive: str | None
    output: Path


@click.command()
@click.argument("data")
@click.option("--methods", metavar="A,B,...", help="Only these methods; see gmil methods.")
@click.option(
    "--repeats", type=click.IntRange(min=1), help=f"Repeats with other folds; {comparison.REPEATS} by default."
)
@click.option("--folds", type=click.IntRange(min=2), help=f"Folds of bags; {comparison.FOLDS} by default.")
@click.option("--quick", is_flag=True, help="Four methods, one repeat, five folds.")
@click.option("--seed", default=0, show_default=True, help="Seed of folds, methods and checks.")
@click.option("--jobs", type=int, help="Processes; by default all cores. Results do not depend on it.")
@click.option("--positive", metavar="LABEL", help="The label of the positive class.")
@click.option("-o", "--output", default="gmil-compare", show_default=True, metavar="DIR", help="Where everything goes.")
@group_option
@data_options
def compare(
    data: str,
    methods: str | None,
    repeats: int | None,
    folds: int | None,
    quick: bool,
    seed: int,
    jobs: int | None,
    positive: str | None,
    output: str,
    group: str | None,
    bag: str | None,
    label: str | None,
    features: str | None,
) -> None:
    """Compare methods on DATA, a data set or a file, and write a report.

    It begins with checks of the data: bag size alone, repeated instances, shuffled labels. Finished folds are kept in
    the output folder: a comparison that was stopped goes on.
    """
    with clear_errors():
        labelled = require_labels(read_data(data, bag, label, features, group=group, stream=False))
        wanted = Wanted(
            None if methods is None else [name.strip() for name in methods.split(",")],
            folds or (_QUICK_FOLDS if quick else comparison.FOLDS),
            repeats or (_QUICK_REPEATS if quick else comparison.REPEATS),
            quick,
            seed,
            cpu_count() if jobs is None else jobs,
            positive,
            Path(output),
        )
        asked = {
            "source": data,
            "bag": bag,
            "label": label,
            "features": feature_columns(features),
            "positive": positive,
        }
        asked["group"] = group
        summary = _compare(labelled, wanted, asked)
        _print(summary)
        _write(summary, wanted.output)
        if summary["failures"]:
            sys.exit(FAILED)


def _compare(labelled: LabelledBags, wanted: Wanted, asked: dict[str, Any]) -> dict[str, Any]:
    from gmil.checks import check_data
    from gmil.datasets.fingerprint import data_fingerprint

    bags, y, groups = labelled.bags, labelled.y, labelled.groups
    methods, notes = comparison.choose_methods(bags, y, wanted.methods, quick=wanted.quick)
    pos_label = None if wanted.positive is None else label_among(wanted.positive, y)
    spec = comparison.comparison_spec(
        labelled.name,
        y,
        methods,
        repeats=wanted.repeats,
        folds=wanted.folds,
        seed=wanted.seed,
        pos_label=pos_label,
        groups=groups,
    )
    if spec.protocol.folds < wanted.folds:
        what = "bags" if groups is None else "groups"
        notes.append(f"{spec.protocol.folds} folds and not {wanted.folds}: the rarest class has no more {what}.")
    if wanted.quick:
        spec = spec.quickly()
    say(f"{labelled.name}: {len(bags)} bags, {bags.n_instances} instances, {bags.n_features} features.")
    check = check_data(bags, y, groups=groups, random_state=wanted.seed)
    say(f"The check of the data has {check.warnings()}.")
    with Progress(f"{len(methods)} methods, fits") as progress:
        results: Results = run(
            spec, output=wanted.output, jobs=wanted.jobs, data={labelled.name: (bags, y, groups)}, progress=progress
        )
    is_dataset = asked["source"] in datasets.dataset_names() and not Path(asked["source"]).exists()
    source = asked["source"] if is_dataset else str(Path(asked["source"]).resolve())
    data = {**asked, "source": source, "is_dataset": is_dataset, "fingerprint": data_fingerprint(bags, y, groups)}
    notes = [*comparison.notes_on_groups(asked["group"], groups), *notes]
    return comparison.summarize(results, check, data, notes, groups=groups)


def _print(summary: dict[str, Any]) -> None:
    rows = []
    for row in summary["rows"]:
        (cell,) = row["cells"].values()
        if cell["accuracy"] is None:
            rows.append([row["label"], "failed", "", "", ""])
            continue
        low, high = (f"{100 * limit:.1f}" for limit in cell["interval"])
        against = "" if cell["against_best"] is None else cell["against_best"]["verdict"]
        rows.append([row["label"], f"{100 * cell['accuracy']:.1f}", f"{low} - {high}", f"{cell['auc']:.3f}", against])
    protocol = summary["protocol"]
    title = f"{summary['title']}: {protocol['repeats']} x {protocol['folds']}-fold, seed {protocol['seed']}; per cent"
    if summary["data"]["group"] is not None:
        title += f"; whole groups ({summary['data']['group']}) left out"
    print_table(["method", "accuracy", "95 % interval", "AUC", "against the best"], rows, title=title)


def _write(summary: dict[str, Any], output: Path) -> None:
    from gmil.reporting.runs import run_report

    write_json(summary, output / "compare.json")
    write_csv(comparison.flat_rows(summary), output / "compare.csv")
    made = run_report(output)
    save_all(made, output)
    click.echo(made.summary.verdict)
    for note in summary["notes"]:
        click.echo(f"* {note}")
    for failure in summary["failures"]:
        say(f"failed: {failure['method']}: {failure['reason']}")
