"""``gmil compare``: which method is right for these bags, and whether the bags can be trusted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import gmil
from gmil.cli.console import FAILED, Progress, Stages, print_table, say
from gmil.cli.inputs import Method, is_dataset, label_among
from gmil.cli.options import (
    all_cores_option,
    instance_options,
    methods_option,
    missing_option,
    output_option,
    positive_option,
    seed_option,
)
from gmil.cli.report import save_all
from gmil.cli.results import instance_cells, instance_titles
from gmil.cli.targets.compare import compare_targets
from gmil.cli.targets.kinds import with_target
from gmil.errors import count_of

if TYPE_CHECKING:
    from gmil.cli.inputs import LabelledBags, Reader
    from gmil.paper import Results


class Wanted(NamedTuple):
    """How to compare."""

    methods: list[str] | None
    folds: int
    repeats: int
    quick: bool
    seed: int
    jobs: int | None
    positive: str | None
    missing: str

    @classmethod
    def of(cls, options: dict[str, Any]) -> Wanted:
        """Return what is wanted, with as many folds and repeats as there are by default."""
        from gmil.paper import comparison

        folds, repeats = (5, 1) if options["quick"] else (comparison.FOLDS, comparison.REPEATS)
        return cls(**options | {"folds": options["folds"] or folds, "repeats": options["repeats"] or repeats})


@click.command()
@click.argument("data")
@methods_option
@click.option("--repeats", type=click.IntRange(min=1), help="Repeats with other folds; 3 by default.")
@click.option("--folds", type=click.IntRange(min=2), help="Folds of bags; 10 by default.")
@click.option("--quick", is_flag=True, help="Four methods, one repeat, five folds.")
@seed_option("folds, methods and checks")
@all_cores_option
@positive_option
@missing_option
@output_option("Where everything goes.", default="gmil-compare", short=True)
@instance_options
def compare(data: str, reader: Reader, output: str, **wanted: Any) -> None:
    """Compare methods on DATA, a data set or a file, and write a report.

    It begins with checks of the data: bag size alone, repeated instances, shuffled labels. Finished folds are kept in
    the output folder: a comparison that was stopped goes on. With --instances, methods that score instances are also
    measured by how well these scores find the instances of the positive class in bags that they never saw.

    Values, grades (--target ordinal) and times (--event) are compared by R², quadratic kappa and concordance, with
    controls.
    """
    from gmil.bags.finite import refuse_non_finite

    labelled = with_target(Method(None, (), None, paper=False), reader.labelled(data, in_memory=True))
    refuse_non_finite(labelled.bags, allow_nan=wanted["missing"] != "error")  # once, and not by every method
    if labelled.target != "classes":
        compare_targets(labelled, wanted, Path(output))
        return
    asked = {"source": data, "bag": reader.bag, "label": reader.label, "features": reader.feature_columns}
    asked |= {"positive": wanted["positive"], "group": reader.group, "instances": reader.instance_labels}
    asked |= {"exclude": list(reader.exclude), "decimal": reader.decimal, "missing": wanted["missing"]}
    summary = _compare(labelled, Wanted.of(wanted), asked, output)
    _print(summary)
    _write(summary, Path(output))
    if summary["failures"]:
        sys.exit(FAILED)


def _compare(labelled: LabelledBags, wanted: Wanted, asked: dict[str, Any], output: str) -> dict[str, Any]:
    from joblib import cpu_count

    from gmil.benchmark.decisions import notes_on_kind
    from gmil.benchmark.where import notes_on_where
    from gmil.datasets.fingerprint import data_fingerprint
    from gmil.paper import comparison, run
    from gmil.paper.runs.data import Dataset

    bags, y, groups = labelled.bags, labelled.y, labelled.groups
    instances = comparison.instances_without_scores(Dataset(labelled.name, bags, y, groups, labelled.instance_y))
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
        missing=wanted.missing,
    )
    notes += comparison.notes_on_folds(spec, wanted.folds, groups)
    if wanted.quick:
        spec = spec.quickly()
    sizes = count_of(len(bags), "bag"), count_of(bags.n_instances, "instance"), count_of(bags.n_features, "feature")
    say(f"{labelled.name}: {', '.join(sizes)}.")
    check = gmil.check_data(bags, y, groups=groups, random_state=wanted.seed)
    say(f"The check of the data has {check.warnings()}.")
    with Progress(f"{len(methods)} methods, fits") as progress:
        results: Results = run(
            spec,
            output=output,
            jobs=cpu_count() if wanted.jobs is None else wanted.jobs,
            data={labelled.name: (bags, y, groups, labelled.instance_y)},
            progress=progress,
        )
    known = is_dataset(asked["source"])
    source = asked["source"] if known else str(Path(asked["source"]).resolve())
    data = {**asked, "source": source, "is_dataset": known, "fingerprint": data_fingerprint(bags, y, groups)}
    notes += notes_on_kind(bags, y, labelled.instance_y)
    notes = [*comparison.notes_on_groups(asked["group"], groups), *comparison.notes_on_missing(wanted.missing), *notes]
    if instances is not None:
        notes += notes_on_where({entry.name: entry.label for entry in spec.methods})
    return comparison.summarize(results, check, data, notes, groups=groups, instances=instances)


def _print(summary: dict[str, Any]) -> None:
    rows = []
    for row in summary["rows"]:
        (cell,) = row["cells"].values()
        if cell["accuracy"] is None:
            rows.append([row["label"], "failed", "", "", ""])
            continue
        low, high = (f"{100 * limit:.1f}" for limit in cell["interval"])
        auc = "-" if cell["auc"] != cell["auc"] else f"{cell['auc']:.3f}"  # there are methods without decisions
        against = "" if cell["against_best"] is None else cell["against_best"]["verdict"]
        rows.append([row["label"], f"{100 * cell['accuracy']:.1f}", f"{low} - {high}", auc, against])
    protocol = summary["protocol"]
    title = f"{summary['title']}: {protocol['repeats']} x {protocol['folds']}-fold, seed {protocol['seed']}; per cent"
    if summary["data"]["group"] is not None:
        title += f"; whole groups ({summary['data']['group']}) left out"
    if summary["data"]["missing"] != "error":
        title += f"; missing values: {summary['data']['missing']}"
    print_table(["method", "accuracy", "95 % interval", "AUC", "against the best"], rows, title=title)
    if summary["data"]["instances"] is not None:
        _print_instances(summary)


def _print_instances(summary: dict[str, Any]) -> None:
    """Print the methods that score instances, the best within bags first."""
    cells = {row["label"]: next(iter(row["cells"].values()))["instances"] for row in summary["rows"]}
    known = [(label, found) for label, found in cells.items() if found is not None]
    known.sort(key=lambda pair: -(pair[1]["auc_within"] or pair[1]["auc"] or 0))
    rows = [[label, *instance_cells(found)] for label, found in known]
    print_table(["method", *instance_titles()], rows, title="Instances of held-out bags, by scores of instances")


def _write(summary: dict[str, Any], output: Path) -> None:
    from gmil.paper import comparison
    from gmil.paper.runs.output import write_csv, write_json
    from gmil.reporting.runs import run_report

    write_json(summary, output / "compare.json")
    write_csv(comparison.flat_rows(summary), output / "compare.csv")
    with Stages() as progress:
        made = run_report(output, progress=progress)
    save_all(made, output)
    click.echo(made.summary.verdict)
    for note in summary["notes"]:
        click.echo(f"* {note}")
    for failure in summary["failures"]:
        say(f"failed: {failure['method']}: {failure['reason']}")
