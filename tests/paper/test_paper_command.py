"""``gmil paper``: what it prints where, what it writes, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gmil.cli.main import main
from gmil.reporting.runs import run_report


@pytest.fixture
def call(small_paper):
    """Run the command in this process, on bundled data, with few settings."""

    def run(*arguments):
        result = CliRunner().invoke(main, ["paper", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_table1_prints_the_table_and_writes_everything(call, tmp_path):
    result = call("table1", "--quick", "--jobs", 1, "--output", tmp_path / "out", "--methods", "gmil,apr")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Table 1: accuracy on one data set (quick); per cent (95 % interval); 1 x 10-fold")
    assert lines[1].split()[:3] == ["method", "column", "musk1"]
    columns = [line[:40].strip() for line in lines]
    assert any(c.startswith("GMIL") and "paper setting" in c for c in columns)
    assert any(line.startswith("majority class") for line in lines)
    assert any(line.startswith("bag size alone") for line in lines)
    assert any("elephant is not here and is left out" in line for line in lines)
    assert any("not reached" in line or "states no scaling" in line for line in lines)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"rows", "table1-quick.csv", "table1-quick.json", "table1-quick.svg"}
    written = json.loads((tmp_path / "out" / "table1-quick.json").read_text())
    for row in written["rows"]:
        for cell in row["cells"].values():
            assert all((tmp_path / "out" / "rows" / f"{job}.parquet").exists() for job in cell.get("jobs", []))


def test_tuned_columns_may_be_left_out(call, tmp_path):
    out = tmp_path / "out"
    tuned = call("table1", "--quick", "--jobs", 1, "--output", out, "--methods", "gmil").stdout
    untuned = call("table1", "--quick", "--untuned", "--jobs", 1, "--output", out, "--methods", "gmil").stdout
    assert "tuned 1 x" in tuned
    assert "tuned" not in untuned
    columns = {row["column"] for row in json.loads((out / "table1-quick.json").read_text())["rows"]}
    assert columns == {"paper", "printed", "control"}
    assert "tuned" not in run_report(out).summary.protocol


def test_table2_prints_times_and_says_what_jobs_do(call, tmp_path):
    result = call("table2", "--quick", "--jobs", 2, "--output", tmp_path / "out")
    assert result.exit_code == 0
    assert "--jobs is not used" in result.stderr
    measured = next(line for line in result.stdout.splitlines() if "measured" in line)
    assert measured.split()[0] == "GMIL"
    assert "(1x)" in measured
    assert "1 thread" in result.stdout


@pytest.mark.slow
def test_figure7_prints_every_point(call, tmp_path):
    result = call("figure7", "--quick", "--jobs", 1, "--output", tmp_path / "out")
    assert result.exit_code == 0
    parameters = [line.split()[0] for line in result.stdout.splitlines()[2:6]]
    assert parameters == ["n_clusters", "n_negative", "n_positive", "sample_size"]
    assert "Controls on musk2: majority 61." in result.stdout
    assert (tmp_path / "out" / "figure7-quick.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table1", "--methods", "nothing"], "table1 has no method 'nothing'; it has gmil, weighted-gmil"),
        (["table1", "--repeats", "0"], "repeats in the protocol must be a whole number of at least 1, got 0"),
        (["table1", "--jobs", "0"], "--jobs must be a number of processes"),
        (["table9"], "No such command 'table9'"),
        (["figure7", "--folds", "3"], "No such option"),
    ],
)
def test_wrong_use_ends_with_two_and_writes_nothing(call, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_a_file_ends_with_an_error(call, tmp_path):
    (tmp_path / "taken").write_text("mine")
    result = call("table1", "--quick", "--output", tmp_path / "taken")
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith("gmil: ")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.slow
def test_a_failed_fit_ends_with_one_and_the_rest_is_there(call, tmp_path, monkeypatch):
    from gmil.paper.runs import jobs

    monkeypatch.setattr(jobs, "paper_params", lambda _entry, _dataset: {"n_clusters": 10_000})
    result = call("table1", "--quick", "--jobs", 1, "--output", tmp_path / "out", "--methods", "gmil")
    assert result.exit_code == 1
    assert "failed: gmil on musk1: BagValidationError: n_clusters=10000" in result.stderr
    assert "--retry-failed" in result.stderr
    assert "tuned" in result.stdout
    assert (tmp_path / "out" / "table1-quick.json").exists()


def test_the_help_lists_the_experiments():
    result = CliRunner().invoke(main, ["paper", "--help"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("table1", "table2", "figure7"))


@pytest.mark.slow
def test_importing_gmil_and_its_experiments_loads_no_plotting_and_no_arrow():
    code = (
        "import sys; sys.modules['pandas'] = None\n"  # scikit-learn imports it where it is, and it imports pyarrow
        "import sklearn.utils; before = set(sys.modules)\n"  # version 1.7 imports pyarrow by itself
        "import gmil, gmil.paper, gmil.cli.main\n"
        "print([m for m in ('matplotlib', 'pyarrow', 'jinja2') if m in sys.modules and m not in before])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table1", "table2", "figure7"])
def test_quick_runs_finish_within_two_minutes(name, tmp_path):
    arguments = [sys.executable, "-m", "gmil", "paper", name, "--quick", "--output", str(tmp_path)]
    subprocess.run(arguments, check=True, capture_output=True, timeout=120)
