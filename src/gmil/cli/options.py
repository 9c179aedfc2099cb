"""Options that several commands share, and the records in which commands get their values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from gmil.cli.inputs import DEFAULT_METHOD, INSTANCE_LABELS, Method, Reader
from gmil.cli.methods import known_method
from gmil.errors import SpecificationError

Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def options(*added: Decorator) -> Decorator:
    """Return a decorator that adds several options, in the order of the help."""
    return lambda command: functools.reduce(lambda inner, option: option(inner), reversed(added), command)


def _as_record(name: str, record: Any, *added: Decorator) -> Decorator:
    """Return a decorator that adds options; the command gets their values as one record."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            fields = {field: given.pop(field) for field in record._fields if field in given}
            command(**{name: record(**fields)}, **given)

        return options(*added)(call)

    return decorate


def _checked_jobs(_context: click.Context, _parameter: click.Parameter, jobs: int | None) -> int | None:
    if jobs is not None and (jobs == 0 or jobs < -1):
        msg = f"must be a number of processes, or -1 for every core, got {jobs}."
        raise SpecificationError(msg, parameter="n_jobs")
    return jobs


def names_in(_context: click.Context, _parameter: click.Parameter, text: str | None) -> list[str] | None:
    """Return names that were given with commas between them."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _excluded(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    return tuple(names_in(context, parameter, text) or ())


def seed_option(about: str) -> Decorator:
    """Return the option --seed."""
    return click.option("--seed", default=0, show_default=True, help=f"Seed of {about}.")


def jobs_option(about: str) -> Decorator:
    """Return the option --jobs."""
    return click.option("--jobs", type=int, callback=_checked_jobs, help=about)


def output_option(about: str, *, default: str = "gmil-paper", short: bool = False) -> Decorator:
    """Return the option --output for a folder."""
    names = ["-o", "--output"] if short else ["--output"]
    return click.option(*names, default=default, show_default=True, metavar="DIR", help=about)


def page_option(about: str) -> Decorator:
    """Return the option --output for a page."""
    return click.option("-o", "--output", metavar="FILE", help=about)


importance_option = click.option(
    "--importance",
    type=click.IntRange(min=0),
    metavar="REPEATS",
    help="How often features are exchanged between bags to tell on the page which matter, 0 for never; by default ten "
    "times where that is quick.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
all_cores_option = jobs_option("Processes; by default all cores. Results do not depend on it.")


def _methods_in(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:
    """Return methods that were given with commas between them, however they are written."""
    names = names_in(context, parameter, text)
    # A table has some of the methods only, and tells which.
    return None if names is None else [known_method(name) or name for name in names]


methods_option = click.option(
    "--methods",
    metavar="A,B,...",
    callback=_methods_in,
    help="Only these methods; see gmil methods. Your own: package.module:Class.",
)
missing_option = click.option(
    "--missing",
    type=click.Choice(["median", "drop", "error"]),
    default="error",
    show_default=True,
    help="Empty cells: fill them with training medians, drop their instances, or stop.",
)
positive_option = click.option("--positive", metavar="LABEL", help="The label of the positive class.")

_columns = (
    click.option("--bag", metavar="COLUMN", help="Column with the bag of every instance."),
    click.option("--label", metavar="COLUMN", help="Column with the label of the bag."),
    click.option("--features", metavar="A,B,...", help="Feature columns or patterns ('desc_*'), or one list column."),
    click.option(
        "--exclude", metavar="A,B,...", callback=_excluded, help="Columns, or patterns, that are not features."
    ),
    click.option(
        "--decimal", type=click.Choice([".", ","]), default=".", show_default=True, help="Decimal sign of a CSV file."
    ),
)
_group = click.option(
    "--group",
    "--groups",
    "group",
    metavar="COLUMN",
    help="Column with the group of the bag (patient, site), kept together; of a folder, one of its labels.csv.",
)
instances_option = click.option(
    "--instances",
    "instance_labels",
    is_flag=False,
    flag_value=INSTANCE_LABELS,
    metavar="[COLUMN]",
    help=f"Column with the label of the instance, {INSTANCE_LABELS} by default; not a feature. Of slides, a CSV file "
    "with the columns slide, x, y and the label of the patch. Write it after DATA.",
)
_slides = (
    click.option(
        "--labels",
        multiple=True,
        metavar="FILE",
        help="Labels of a folder: a CSV file with a row per bag. Of slides also two: of patients and of slides.",
    ),
    click.option("--layout", metavar="TOOL", help="Which tool wrote a folder of slides; by default it is recognised."),
    click.option("--mpp", type=float, help="Micrometres per pixel of slides whose coordinates are in micrometres."),
    click.option("--patch-size", type=float, metavar="PIXELS", help="Side of a patch at level 0, if files lack it."),
)
splits_option = click.option(
    "--splits", metavar="FILE", help="Folds of slides: a file or folder of CLAM or STAMP, or a column of the labels."
)
_target = (
    click.option(
        "--target",
        "target_kind",
        type=click.Choice(["classes", "regression", "ordinal", "survival"]),
        help="What the label is; by default by its values, which is said. Grades must be asked for: ordinal.",
    ),
    click.option(
        "--event", metavar="COLUMN", help="Column that says whether the event was seen; --label is then the time."
    ),
)
_blocks = (
    click.option(
        "--stream",
        is_flag=True,
        help="Read DATA in blocks, as folders and Parquet files of more than 1 GiB in memory always are.",
    ),
    click.option("--dask", metavar="ADDRESS", help="Read in blocks on a Dask cluster, such as tcp://host:8786."),
)
_labelled = (*_columns, *_slides, *_target, _group)
data_options = _as_record("reader", Reader, *_columns, *_slides)
block_options = _as_record("reader", Reader, *_columns, *_slides, *_blocks)
group_options = _as_record("reader", Reader, *_labelled)
instance_options = _as_record("reader", Reader, *_labelled, instances_option)
group_block_options = _as_record("reader", Reader, *_labelled, *_blocks)
instance_block_options = _as_record("reader", Reader, *_labelled, instances_option, *_blocks)
split_options = _as_record("reader", Reader, *_labelled, splits_option, instances_option, *_blocks)

setting_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the method, as in Python; may be given several times.",
)
method_options = _as_record(
    "method",
    Method,
    click.option(
        "--method",
        help=f"Which classifier; {DEFAULT_METHOD} by default, gmil with --paper. See gmil methods. "
        "Your own: package.module:Class.",
    ),
    setting_option,
    positive_option,
    click.option("--paper", is_flag=True, help="Use the settings that the paper prints for the data set."),
    missing_option,
)
