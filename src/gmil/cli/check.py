"""``gmil check``: whether data can be trusted."""

from __future__ import annotations

import json

import click

from gmil.checks import check_data
from gmil.cli.console import announced, clear_errors, print_table
from gmil.cli.inputs import data_options, group_option, read_data, require_labels


@click.command()
@click.argument("source", metavar="DATA")
@group_option
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
    learnt better than shuffled labels, and from instances better than from noise.
    """
    with clear_errors():
        data = require_labels(read_data(source, bag, label, features, group=group, stream=False))
        with announced(f"Checking {len(data.bags)} bags, {data.bags.n_instances} instances"):
            found = check_data(data.bags, data.y, groups=data.groups, n_permutations=permutations, random_state=seed)
        if as_json:
            click.echo(json.dumps({"dataset": data.name, "seed": seed, **found.to_dict()}, indent=2))
            return
        rows = [[f.name, "" if f.level == "ok" else f.level, f.text] for f in found.findings]
        print_table(["looked at", "level", "found"], rows, title=f"{data.name}: {found.verdict}", text_columns=3)
