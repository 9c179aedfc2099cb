"""What a person at a terminal sees of the ``gmil`` command: help, progress, tables."""

from __future__ import annotations

import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import gmil
from gmil.cli import console
from gmil.cli.examples import HELP, commands_of
from gmil.cli.inputs import parse_setting
from gmil.cli.main import main


def test_settings_are_python_literals_or_strings():
    assert parse_setting("n_components=0.9") == ("n_components", 0.9)
    assert parse_setting("scale=None") == ("scale", None)
    assert parse_setting("scale=standard+l2") == ("scale", "standard+l2")
    assert parse_setting("init=[[1, 2], [3, 4]]") == ("init", [[1, 2], [3, 4]])


def test_the_module_runs_and_help_names_every_command():
    done = subprocess.run([sys.executable, "-m", "gmil", "-h"], capture_output=True, text=True, check=True)
    for name in ("cv", "fit", "predict", "data", "doctor"):
        assert f"  {name} " in done.stdout
    version = subprocess.run([sys.executable, "-m", "gmil", "--version"], capture_output=True, text=True, check=True)
    assert gmil.__version__ in version.stdout


ALL_COMMANDS = dict(commands_of(main))


def test_every_command_has_two_examples_that_can_be_parsed():
    assert set(HELP) == set(ALL_COMMANDS)
    for path, known in HELP.items():
        assert len(known.examples) == 2, path
        for example in known.examples:
            words = shlex.split(example)
            command, arguments = main, words[1:]
            while isinstance(command, click.Group):
                command, arguments = command.commands[arguments[0]], arguments[1:]
            assert command in [inner for _, inner in commands_of(ALL_COMMANDS[path])]
            command.make_context(path, arguments, parent=click.Context(main))


@pytest.mark.parametrize("path", ALL_COMMANDS)
def test_help_shows_examples_and_cuts_nothing_at_80_columns(path):
    shown = CliRunner().invoke(main, [*path.split()[1:], "-h"], terminal_width=80).output
    for example in HELP[path].examples:
        assert f"\n    {example}\n" in shown
    listed = shown.partition("Commands:")[2].partition("Examples:")[0]
    assert "..." not in listed
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("path", ALL_COMMANDS)
def test_short_help_option_works_for_a_command_called_alone(path):
    assert CliRunner().invoke(ALL_COMMANDS[path], ["-h"]).exit_code == 0


def test_ctrl_c_is_130_wrong_use_2_and_failed_work_1(monkeypatch):
    def raising(error):
        def call(*_, **__):
            raise error

        return call

    codes = {KeyboardInterrupt(): 130, gmil.BagValidationError("x"): 2, OSError("x"): 1, gmil.DatasetError("x"): 1}
    for error, code in codes.items():
        monkeypatch.setattr("gmil.datasets.dataset_names", raising(error))
        result = CliRunner().invoke(main, ["data", "list"])
        assert result.exit_code == code
        assert "Traceback" not in result.stderr
    for arguments in (["nosuch"], ["cv"], ["cv", "musk1", "--nosuch"], ["cv", "musk1", "--missing", "mean"]):
        assert CliRunner().invoke(main, arguments).exit_code == 2


def test_a_real_ctrl_c_is_130():
    lines = (
        "import os, signal, threading",
        "from gmil.cli.main import main",
        "threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()",
        "main(['cv', 'musk2', '--repeats', '5000'])",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    first = "weighted-gmil on musk2, 5000 x 10-fold\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{first}gmil: Stopped.\n")


def test_ctrl_c_that_became_another_error_is_130(capsys):
    from gmil.cli.console import clear_errors

    # What NumPy made of one.
    error = ValueError("'T{d:val:}' is not a valid PEP 3118 buffer format string")
    error.__cause__ = KeyboardInterrupt()
    with pytest.raises(SystemExit) as ended, clear_errors():
        raise error
    assert ended.value.code == 130
    assert capsys.readouterr().err == "gmil: Stopped.\n"


def test_progress_is_quiet_for_two_seconds_and_speaks_on_standard_error(monkeypatch, capsys):
    from gmil.cli import console

    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.Progress("work") as progress:
        progress(1, 10)
        now[0] = 1.9
        progress(2, 10)
        assert capsys.readouterr() == ("", "")
        now[0] = 20.0
        progress(5, 10)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "work: 5 of 10 done, about 20 s left\n"


def test_every_option_has_a_help_text():
    commands = [main]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        assert command.help
        assert [p.opts for p in command.params if p.param_type_name == "option" and not p.help] == []


def test_a_terminal_gets_a_bar_and_a_boxed_table(monkeypatch, capsys):
    from gmil.cli import console

    monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
    console.print_table(["a", "b"], [["x", "1"]], title="t")
    assert "┃" in capsys.readouterr().out
    monkeypatch.setattr(console.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(console, "_QUIET_SECONDS", -1.0)
    with console.Progress("work") as progress:
        progress(1, 2)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["[clip] a.mp4", "[/b].mp4"])
def test_brackets_in_a_name_are_no_style(monkeypatch, capsys, name):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    console.print_table(["video", "sure"], [[name, "1 %"]], title=f"In {name}")
    assert capsys.readouterr().out.count(name) == 2
    with console._terminal_bar() as bar:
        bar.add_task(name, total=2)


def test_no_number_is_cut_off_on_a_narrow_terminal(monkeypatch, capsys):
    from gmil.cli import console

    monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    names = ["data set", "method", "accuracy", "95 % interval", "balanced", "seconds"]
    row = ["frames.parquet", "weighted-gmil", "91.0 ± 1.2", "85.0 - 97.0", "90.9", "1.24"]
    for rows in ([row], [row, row]):
        console.print_table(names, rows)
        shown = capsys.readouterr().out
        assert "…" not in shown
        assert all(word in shown for word in [*names, *row])
