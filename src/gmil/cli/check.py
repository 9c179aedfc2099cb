"""``gmil check``: whether data can be trusted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gmil.cli.console import clear_errors, print_table
from gmil.cli.inputs import data_options, read_data, require_labels
from gmil.errors import BagValidationError
from gmil.experiments.trust import check_data

if TYPE_CHECKING:
    from gmil.bags import Bags


@click.command()
@click.argument("source", metavar="DATA")
@click.option("--group", metavar="COLUMN", help="Column with the group of the bag (patient, site), kept together.")
@click.option("--permutations", default=20, show_default=True, help="How often labels are shuffled; at least 19.")
@click.option("--seed", default=0, show_default=True, help="Seed of folds, shufflings and method.")
@data_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def check(
    source: str,
    group: str | None,
    permutations: int,
    seed: int,
    bag: str | None,
    label: str | None,
    features: str | None,
    as_json: bool,
) -> None:
    """Tell whether results on DATA, a data set or a file, can be trusted.

    Looks for repeated bags and instances, missing values, what the size of a bag alone tells, and whether labels can be
    learnt better than shuffled labels.
    """
    with clear_errors():
        info = () if group is None else (group,)
        data = require_labels(read_data(source, bag, label, features, info, stream=False))
        groups = None if group is None else groups_of(data.bags, group)
        found = check_data(data.bags, data.y, groups=groups, n_permutations=permutations, random_state=seed)
        if as_json:
            click.echo(json.dumps({"dataset": data.name, "seed": seed, **found.to_dict()}, indent=2))
            return
        rows = [[f.name, "" if f.level == "ok" else f.level, f.text] for f in found.findings]
        print_table(["looked at", "level", "found"], rows, title=f"{data.name}: {found.verdict}", text_columns=3)


def groups_of(bags: Bags, column: str) -> Any:
    """Return the group of every bag from a column of its instances, which must agree."""
    table = bags.instance_info
    if table is None or column not in table.column_names:
        msg = f"--group {column} names no column of the data, or one of its features."
        raise BagValidationError(msg)
    values = table.column(column).to_numpy(zero_copy_only=False)
    groups = values[bags.offsets[:-1]]
    mixed = values != np.repeat(groups, bags.sizes)
    if mixed.any():
        number = int(bags.segment_ids[mixed.argmax()])
        msg = f"--group {column} must be one for all instances of a bag, but bag {number} has several."
        raise BagValidationError(msg)
    return groups
