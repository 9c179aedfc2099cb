"""``gmil check``: whether data can be trusted, and whether new data are like those of a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import announced, print_table, say
from gmil.cli.inputs import Method
from gmil.cli.options import group_options, json_option, page_option, seed_option
from gmil.cli.targets.kinds import with_target
from gmil.errors import SpecificationError, count_of
from gmil.safety.atomic import refuse_target

if TYPE_CHECKING:
    from gmil.checks import DataCheck
    from gmil.cli.inputs import LabelledBags, Reader


@click.command()
@click.argument("source", metavar="DATA")
@click.option("--permutations", default=20, show_default=True, help="How often labels are shuffled; at least 19.")
@click.option("--issues", metavar="FILE", help="Search for wrong labels, and write them as a .csv to correct.")
@click.option("--fdr", default=0.2, show_default=True, help="The share of flagged labels that may be right.")
@click.option("--model", metavar="MODEL", help="Compare DATA with what this saved model learnt from: drift.")
@click.option("--reference", metavar="DATA", help="With --model: the training data, for models that keep no profile.")
@page_option("A .html, .md or .json file with all findings.")
@seed_option("folds, shufflings and method")
@group_options
@json_option
def check(
    source: str,
    permutations: int,
    issues: str | None,
    fdr: float,
    model: str | None,
    reference: str | None,
    output: str | None,
    seed: int,
    reader: Reader,
    as_json: bool,
) -> None:
    """Tell whether results on DATA, a data set or a file, can be trusted.

    Checks for leaks (the label or identifiers among the features, repeated bags and instances, sorted files), for
    missing values and for labels that follow from bag size alone; and whether labels can be learnt better than shuffled
    labels, and from instances better than from noise. With --issues, labels that are probably wrong are flagged. With
    --model, DATA need no labels: they are compared with what the model learnt from.
    """
    if model is not None:
        _refuse_both(issues)
        _check_drift(source, model, reference, output, reader, as_json)
        return
    for target in (issues, output):
        if target is not None:
            refuse_target(target, source)
    data = with_target(Method(None, (), None, paper=False), reader.labelled(source, in_memory=True))
    with announced(f"Checking {count_of(len(data.bags), 'bag')}, {count_of(data.bags.n_instances, 'instance')}"):
        asked = {"groups": data.groups, "n_permutations": permutations, "random_state": seed}
        found = gmil.check_data(data.bags, data.y, target=data.target or "classes", **asked)
        doubtful = None
        if issues is not None:
            doubtful = gmil.find_label_issues(data.bags, data.y, groups=data.groups, fdr=fdr, random_state=seed)
            doubtful.to_csv(issues)
    if output is not None:
        from gmil.reporting.checked import check_report

        say(f"{check_report(found, data.name, data.bags, doubtful).save(output)} is written.")
    more = {} if doubtful is None else {"label_issues": doubtful.to_dict()}
    _tell(found, data.name, {"dataset": data.name, "seed": seed}, more, as_json)
    if doubtful is not None:
        n = int(doubtful.flagged.sum())
        how = "Fill in the column corrected, and read it back with gmil.apply_corrections."
        say(f"{issues}: {n} of {len(data.y)} labels flagged. {how}")


def _tell(found: DataCheck, name: str, about: dict[str, Any], more: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({**about, **found.to_dict(), **more}, indent=2))
        return
    rows = [[f.name, "" if f.level == "ok" else f.level, f.told()] for f in found.findings]
    print_table(["check", "level", "found"], rows, title=f"{name}: {found.verdict}", text_columns=3)


def _refuse_both(issues: str | None) -> None:
    if issues is not None:
        msg = "--issues is about labels of DATA, and --model compares DATA with a model. Leave out one."
        raise SpecificationError(msg)


def _check_drift(
    source: str, model: str, reference: str | None, output: str | None, reader: Reader, as_json: bool
) -> None:
    from gmil.io import model_files

    if output is not None:
        refuse_target(output, source, model)
    estimator, origin = model_files.load_with_origin(model)
    own = reader.of_model(estimator, origin)
    new = _in_memory(own.read(source, in_memory=True, needs_labels=False))
    known = None if reference is None else _in_memory(own.read(reference, in_memory=True))
    with announced(f"Comparing {count_of(len(new.bags), 'bag')} with those of {model}"):
        asked = {} if known is None else {"reference": known.bags, "reference_y": known.y}
        found = gmil.check_drift(estimator, new.bags, groups=new.groups, **asked)
    if output is not None:
        from gmil.reporting.checked import drift_report

        say(f"{drift_report(found, f'{new.name} against {model}', new.bags).save(output)} is written.")
    _tell(found, new.name, {"dataset": new.name, "model": model}, {"features": found.features}, as_json)


def _in_memory(data: LabelledBags) -> LabelledBags:
    return data._replace(bags=data.bags.load()) if isinstance(data.bags, gmil.LazyBags) else data
