"""``gmil check``: whether data can be trusted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

import gmil
from gmil.cli.console import announced, print_table
from gmil.cli.inputs import Method
from gmil.cli.options import group_options, json_option, seed_option
from gmil.cli.targets.kinds import with_target

if TYPE_CHECKING:
    from gmil.cli.inputs import Reader


@click.command()
@click.argument("source", metavar="DATA")
@click.option("--permutations", default=20, show_default=True, help="How often labels are shuffled; at least 19.")
@seed_option("folds, shufflings and method")
@group_options
@json_option
def check(source: str, permutations: int, seed: int, reader: Reader, as_json: bool) -> None:
    """Tell whether results on DATA, a data set or a file, can be trusted.

    Checks for repeated bags and instances, for missing values and for labels that follow from bag size alone; and
    whether labels can be learnt better than shuffled labels, and from instances better than from noise.
    """
    data = with_target(Method(None, (), None, paper=False), reader.labelled(source, in_memory=True))
    with announced(f"Checking {len(data.bags)} bags, {data.bags.n_instances} instances"):
        asked = {"groups": data.groups, "n_permutations": permutations, "random_state": seed}
        found = gmil.check_data(data.bags, data.y, target=data.target or "classes", **asked)
    if as_json:
        click.echo(json.dumps({"dataset": data.name, "seed": seed, **found.to_dict()}, indent=2))
        return
    rows = [[f.name, "" if f.level == "ok" else f.level, f.text] for f in found.findings]
    print_table(["check", "level", "found"], rows, title=f"{data.name}: {found.verdict}", text_columns=3)
