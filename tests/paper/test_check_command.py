"""``gmil check``: the verdict and every finding, as text and as JSON."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from click.testing import CliRunner
from tests.paper.test_trust import clean

import gmil
from gmil import Bags, check_data
from gmil.cli.main import main


def run(*arguments):
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def test_the_command_prints_the_verdict_and_every_finding():
    result = run("musk1")
    assert result.exit_code == 0
    title, _, *rows = result.stdout.splitlines()
    assert title == "musk1: better than chance and than bag size"
    found = check_data(*gmil.load_musk1(return_X_y=True))
    assert len(rows) == 19
    assert all(row.endswith(finding.told()) for row, finding in zip(rows, found.findings, strict=True))


def test_the_command_as_json_with_groups(tmp_path):
    bags, y = clean()
    groups = np.arange(60) // 2
    info = pa.table({"site": np.repeat(groups, bags.sizes), "row": np.arange(bags.n_instances)})
    path = tmp_path / "bags.parquet"
    gmil.write(path, Bags(bags.instances, bags.offsets, instance_info=info), y)
    result = run(path, "--group", "site", "--json", "--seed", 2)
    expected = check_data(bags, y, groups=groups, random_state=2).to_dict()
    found = json.loads(result.stdout)
    assert (found["dataset"], found["seed"], found["verdict"]) == ("bags.parquet", 2, expected["verdict"])
    for own, other in zip(found["findings"], expected["findings"], strict=True):  # files round to single precision
        assert (own["name"], own["level"]) == (other["name"], other["level"])
    assert found["findings"][:8] == expected["findings"][:8]
    assert any(finding["name"] == "instances in several groups" for finding in found["findings"])
    mixed = run(path, "--group", "row")
    assert mixed.exit_code == 2
    assert "The group 'row' must be one for all instances of a bag" in mixed.stderr
    absent = run("musk1", "--group", "site")
    assert absent.exit_code == 2
    assert "The group 'site' names no column" in absent.stderr
