"""Talking to a person: progress, tables, errors. Nothing here touches standard output but `print_table`."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

import click

from gmil.errors import MISSING, ClusterError, DatasetError, DiskError, GmilError, MethodFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FAILED, WRONG_USE, STOPPED = 1, 2, 130
"""Exit codes; the last is what shells give a command that Ctrl-C ended."""
_QUIET_SECONDS = 2.0
_SECONDS_BETWEEN_LINES = 15.0
_OPTIONS = {"cv": "folds", "random_state": "seed", "n_permutations": "permutations", "n_jobs": "jobs"}
_OPTIONS |= {"info": "group", "drop": "exclude", "patch_size": "patch-size", "splits": "splits"}
"""The options of parameters that have another name on the command line."""
_SAME_NAME = [
    "bag",
    "coverage",
    "event",
    "features",
    "group",
    "instances",
    "label",
    "labels",
    "layout",
    "mpp",
    "repeats",
]
"""The parameters whose option has their name."""
_ADVICE = {
    "strategy": "Fill the gaps with --missing median, or leave these bags out.",
    "y": "Take a --method that knows several.",
    "dtype": "Write it with --dtype float64.",
}
"""What helps on the command line, where the fix of an error is Python."""


def say(text: str) -> None:
    """Tell the person something, on standard error."""
    click.echo(text, err=True)


def say_first(text: str) -> None:
    """Tell what is being done before the libraries are loaded: that takes longer than many a command."""
    if "sklearn" not in sys.modules:
        say(text)


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Turn an error into one sentence and an exit code: 2 for bad input, 1 for work that failed."""
    try:
        yield
    except (ClusterError, DatasetError, DiskError, MethodFailedError) as error:
        _end(error, FAILED)
    except (GmilError, ValueError) as error:
        _end(error, WRONG_USE)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        _end(f"{error.filename}: {error.strerror}." if error.filename else error, WRONG_USE)
    except BrokenPipeError:
        raise  # who reads has seen enough, as head does; click ends quietly
    except (OSError, MemoryError) as error:
        _end(error, FAILED)
    except KeyboardInterrupt:
        _end("Stopped.", STOPPED)


def _is_stopped(error: Any) -> bool:
    """Tell whether Ctrl-C is behind an error: compiled code may turn it into one of its own."""
    while isinstance(error, BaseException):
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _end(error: Any, code: int) -> None:
    if _is_stopped(error):
        error, code = "Stopped.", STOPPED
    first_lines = " ".join(in_options(error).split())
    say(f"gmil: {first_lines or type(error).__name__}")
    sys.exit(code)


def in_options(error: Any) -> str:
    """Return the message of an error or warning, with options of the command in place of parameters of Python."""
    if not hasattr(error, "told"):
        return str(error)
    if error.fix and error.parameter in _ADVICE:
        return f"{error.args[0]} {_ADVICE[error.parameter]}"
    if error.parameter == MISSING:
        return f"{error.args[0]} {_advice_on_missing()}"
    options = {name: f"--{_OPTIONS.get(name, name)}" for name in (*_SAME_NAME, *_OPTIONS)}
    return str(error.told({**options, "in_memory": "leave out --stream", "decimal": "--decimal ,"}))


def _advice_on_missing() -> str:
    """Return what to do about missing values: here, or where the model is fitted."""
    context = click.get_current_context(silent=True)
    commands = getattr(context and context.command, "commands", {})
    command = commands.get(context and context.invoked_subcommand)
    if command is not None and any(parameter.name == "missing" for parameter in command.params):
        return "Fill them with --missing median, or leave out such instances with --missing drop."
    if context is not None and context.invoked_subcommand == "video":  # whose models fill nothing
        return "Fill them, or leave out such frames."
    return "Fill or drop them, or fit the model with --missing median, which fills them."


@contextlib.contextmanager
def said_warnings(*, at_once: bool = False) -> Iterator[None]:
    """Print warnings as one sentence each, without the line of code: at the end, or at once in work of hours."""
    said: dict[str, None] = {}

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = in_options(message)
        if at_once and text not in said:
            say(text)
        said[text] = None

    with warnings.catch_warnings():
        for category in (UserWarning, RuntimeWarning, FutureWarning):  # others are for programmers
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
    for text in () if at_once else said:
        say(text)


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Say what is being done where it takes longer than two seconds, and nobody can tell how far it is."""
    timer = threading.Timer(_QUIET_SECONDS, say, [f"{what} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Progress:
    """Shows how far a long run is: a bar on a terminal, a line now and then elsewhere, nothing for two seconds."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._start = self._last_line = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` steps are done."""
        now = time.monotonic()
        if now - self._start < _QUIET_SECONDS:
            return
        if sys.stderr.isatty():
            self._show_bar(done, total)
        elif now - self._last_line > _SECONDS_BETWEEN_LINES and done < total:
            self._last_line = now
            left = (now - self._start) / done * (total - done)
            say(f"{self.what}: {done} of {total} done, about {left:.0f} s left")

    def _show_bar(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = _terminal_bar()
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=total)
        self._bar.update(self._task, completed=done, total=total)


class Stages:
    """Shows how far work is that has several stages, one `Progress` after another."""

    def __init__(self) -> None:
        self._now: Progress | None = None

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: object) -> None:
        if self._now is not None:
            self._now.__exit__()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` steps of a stage are done."""
        if self._now is None or self._now.what != what:
            self.__exit__()
            self._now = Progress(what)
        self._now(done, total)


class StreamProgress(Progress):
    """Shows how far a pass over instances is, how fast it goes and how long it will take; passes follow each other.

    Parameters
    ----------
    what : str
    bags : Bags or LazyBags
        What is read, for the size of an instance.
    """

    def __init__(self, what: str, bags: Any) -> None:
        super().__init__(what)
        self._pass, self._began, self._done = 1, self._start, 0
        self._row_bytes = bags.n_features * bags.dtype.itemsize

    def __call__(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` instances of this pass are read."""
        now = time.monotonic()
        if done < self._done:
            self._pass, self._began = self._pass + 1, now
        self._done = done
        if now - self._start < _QUIET_SECONDS or now == self._began:
            return
        rate = done / (now - self._began)
        read, size, speed = (n * self._row_bytes / 1e6 for n in (done, total, rate))
        text = f"{self.what}, pass {self._pass}: {read:,.0f} of {size:,.0f} MB read, {speed:,.0f} MB/s"
        if sys.stderr.isatty():
            self._show_bar(done, total)
            self._bar.update(self._task, description=text)
        elif now - self._last_line > _SECONDS_BETWEEN_LINES and done < total:
            self._last_line = now
            say(f"{text}, about {(total - done) / rate:.0f} s left")


def _terminal_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Bar(*columns, console=Console(stderr=True), transient=True)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None, text_columns: int = 1
) -> None:
    """Print a table: in a box on a terminal, in plain aligned columns elsewhere. The first columns are text."""
    if sys.stdout.isatty():
        _print_rich(columns, rows, title, text_columns)
        return
    if title:
        click.echo(title)
    widths = [max(len(str(row[i])) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        cells = [
            cell.ljust(w) if i < text_columns else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None, text_columns: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if text_columns < len(columns) and console.width < _width(columns, rows):
        turned = list(zip(columns, *rows, strict=True))
        if _width(turned[0], turned[1:]) <= console.width:  # better than numbers that are cut off
            columns, rows = turned[0], turned[1:]
    # As texts: what stands in brackets in a name is no style.
    table = Table(title=None if title is None else Text(title), title_justify="left")
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < text_columns else "right")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how wide a boxed table is where nothing is cut off."""
    return sum(3 + max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))) + 1
