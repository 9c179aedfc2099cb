"""``gmil benchmark run | verify | show | page``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gmil.cli.console import FAILED, print_table, said_warnings, say
from gmil.cli.inputs import cluster
from gmil.cli.options import jobs_option, methods_option, names_in
from gmil.cli.results import number, percent, print_notes
from gmil.errors import SpecificationError, count_of

if TYPE_CHECKING:
    from gmil.benchmark import Benchmark

_MOST_SHOWN = 20


@click.group()
def benchmark() -> None:
    """Measure many methods on many sets, cell by cell; verify and show the leaderboard.

    SPEC is a TOML file with sets, methods, protocol and budget. The leaderboard is a folder with one file for every
    method, which has its decisions on every bag: all figures are made of these.
    """


_spec = click.argument("spec", type=click.Path(dir_okay=False))
_folder = click.option("-o", "--output", metavar="DIR", help="The folder of the leaderboard; by default beside SPEC.")


@benchmark.command("run")
@_spec
@_folder
@methods_option
@click.option("--sets", metavar="A,B,...", callback=names_in, help="Only these sets.")
@jobs_option("Cells at the same time; 1 by default, -1 for all cores. Times are CPU times of one thread.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Begin no cell after so many minutes.")
@click.option("--repeats", type=click.IntRange(min=1), help="So many repeats now; a later run does the others.")
@click.option("--changed", is_flag=True, help="Measure again what was measured with other code.")
@click.option("--retry-failed", is_flag=True, help="Measure again what is empty.")
@click.option("--dask", metavar="ADDRESS", help="Measure on a Dask cluster, such as tcp://host:8786.")
def run_benchmark(spec: str, output: str | None, dask: str | None, jobs: int | None, **how: Any) -> None:
    """Measure the cells of SPEC that are missing; a run that was stopped goes on."""
    from joblib import cpu_count

    from gmil.benchmark import load_benchmark, run, write_leaderboard
    from gmil.benchmark.counting import counted
    from gmil.benchmark.leaderboard import FILE, leaderboard_of
    from gmil.paper.runs.store import Store
    from gmil.safety.locking import locked

    whole = load_benchmark(spec)
    folder = _folder_of(spec, output)
    wanted = whole.restricted(how.pop("methods"), how.pop("sets"))
    processes = cpu_count() if jobs == -1 else jobs or 1
    with cluster(dask) as client, said_warnings(at_once=True):
        notes = run(wanted, output=folder, processes=processes, client=client, progress=_tell, **how)
    with locked(Store(folder).folder):  # another run must not write figures of fewer records after this one
        of = counted(whole, folder)
        if of.absent:
            print_notes([*notes, f"Records are written to {folder}; {FILE} is as it was. {of.why_no_figures()}"])
            return
        found = leaderboard_of(whole, of)
        say(f"{write_leaderboard(found, folder)} is written.")
    _print(found, whole)
    print_notes([*notes, *of.notes()])


def _tell(done: int, total: int, cell: str) -> None:
    say(f"{done} of {total}: {cell}" if done else cell)


def _folder_of(spec: str, output: str | None) -> Path:
    folder = Path(spec).with_suffix("") if output is None else Path(output)
    if folder == Path(spec):
        msg = f"The leaderboard of {spec} would be a folder of that name. Call the file {spec}.toml, or give --output."
        raise SpecificationError(msg)
    return folder


@benchmark.command("verify")
@_spec
@_folder
def verify_leaderboard(spec: str, output: str | None) -> None:
    """Recompute every hash, fold and figure of a leaderboard from its records."""
    from gmil.benchmark import load_benchmark, verify

    folder = _folder_of(spec, output)
    wrong, n_figures = verify(load_benchmark(spec), folder)
    for text in wrong[:_MOST_SHOWN]:
        say(f"wrong: {text}")
    if wrong:
        say(f"{folder}: {len(wrong)} things are not what the records give.")
        sys.exit(FAILED)
    click.echo(f"{folder}: all {n_figures} figures are those that the records give.")


@benchmark.command("show")
@_spec
@_folder
def show_leaderboard(spec: str, output: str | None) -> None:
    """Print the leaderboard: mean ranks, means, wins, ties and losses."""
    from gmil.benchmark import load_benchmark
    from gmil.benchmark.leaderboard import present_leaderboard

    benchmark = load_benchmark(spec)
    _print(present_leaderboard(benchmark, _folder_of(spec, output)), benchmark)


@benchmark.command("page")
@_spec
@_folder
@click.option("--page", "file", metavar="FILE", help="The page; by default index.html in the folder.")
@click.option("--decisions", metavar="FILE", help="Also write which method is for which bags, and for where, as JSON.")
def write_pages(spec: str, output: str | None, file: str | None, decisions: str | None) -> None:
    """Write the leaderboard as a page to be searched and sorted."""
    from gmil.benchmark import load_benchmark
    from gmil.benchmark.decisions import decision_table
    from gmil.benchmark.leaderboard import present_leaderboard
    from gmil.benchmark.page import write_page
    from gmil.benchmark.where import where_table
    from gmil.paper.runs.output import write_json

    folder = _folder_of(spec, output)
    found = present_leaderboard(load_benchmark(spec), folder)
    target = folder / "index.html" if file is None else Path(file)
    write_page(found, target)
    if decisions is not None:
        write_json({"kinds": decision_table(found), "where": where_table(found)}, decisions)
    say(f"{target} is written.")


def _print(found: dict[str, Any], benchmark: Benchmark) -> None:
    from gmil.benchmark.leaderboard import n_not_measured
    from gmil.benchmark.overview import overview

    n_views = 2 if benchmark.chose_defaults else 1  # without any such set, the second would be the first again
    for setting in found["statistics"]:
        for view in [view for view in overview(found, setting)[:n_views] if view["rows"]]:
            ranks = view["statistics"]["ranks"]
            over = (
                f"ranks over {count_of(ranks['n_sets'], 'set')}" if ranks else "no ranks, for want of sets or methods"
            )
            title = f"{found['title']}; {setting} setting, {view['title']}; {over}"
            header = ["method", "sets", "rank", "mean AUC", "mean accuracy", "wins/ties/losses", "CPU s"]
            print_table(header, [_cells(row) for row in view["rows"]], title=title)
    empty = [cell for cell in found["cells"] if cell["reason"] is not None]
    for cell in empty[:_MOST_SHOWN]:
        where = f"{benchmark.labels.get(cell['method'], cell['method'])} on {cell['set']}, {cell['setting']} setting"
        click.echo(f"Empty: {where}: {cell['reason']}")
    if len(empty) > _MOST_SHOWN:
        click.echo(f"Empty: {len(empty) - _MOST_SHOWN} more; the page has all.")
    if empty:
        click.echo("gmil benchmark run --retry-failed measures empty cells again.")
    n_open, n_cells = n_not_measured(found), len(found["cells"])
    click.echo(
        f"{count_of(n_cells, 'cell is', 'cells are')} measured or empty with a reason; {n_open} not measured yet."
    )
    click.echo(f"Wins, ties and losses are those of {benchmark.labels[benchmark.reference]}, by AUC, zone of 1 point.")


def _cells(row: dict[str, Any]) -> list[str]:
    against = row["against"]
    record = "-" if against is None else f"{against['wins']}/{against['ties']}/{against['losses']}"
    means = (percent(row["auc"]), percent(row["accuracy"]))
    return [row["label"], str(row["n_sets"]), number(row["rank"], ".2f"), *means, record, number(row["seconds"], ".2f")]
