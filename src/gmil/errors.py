"""Every error that gmil raises on purpose.

Messages follow one shape: what, the rule, what was got, which bag, the fix. An error carries the parameter that it is
about, so that a command can name its own option in place of it.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_IN_PYTHON = {
    "decimal": "decimal=','.",
    "features": "features=[...].",
    "layout": "layout='...'.",
    "in_memory": "read it into memory with gmil.read.",
}
"""How a fix ends in Python, where that is not ``name=...``."""

MISSING = "missing"
"""What an error about missing values is about: a parameter of no one, which the command line has as an option."""


class _Message:
    """A text about a parameter, as `GmilError` describes it."""

    def __init__(self, message: str = "", *, parameter: str | None = None, value: Any = None, fix: str = "") -> None:
        super().__init__(message)  # type: ignore[call-arg]  # of an exception
        self.parameter, self.value, self.fix = parameter, value, fix

    def __str__(self) -> str:
        return self.told({})

    def told(self, options: Mapping[str, str]) -> str:
        """Return the text with options of a command in place of parameters.

        Parameters
        ----------
        options : dict of str
            What parameters are called there; others keep their names.
        """
        message = super().__str__()
        called = options.get(self.parameter or "", "").removeprefix("--")
        if called:
            message = message.replace(f"The {self.parameter} ", f"The {called} ", 1)
        if self.fix:
            return f"{message} {self.fix.format_map(_Named(options))}"
        if self.parameter is None or message[:1].isupper():  # a sentence of its own
            return message
        name, equals = options.get(self.parameter, self.parameter), " " if self.parameter in options else "="
        return f"{name} {message}" if self.value is None else f"{name}{equals}{self.value} {message}"


class _Named(dict[str, str]):
    """Options by parameter, as the last word of a sentence."""

    def __getitem__(self, parameter: str) -> str:
        option = self.get(parameter)
        return _IN_PYTHON.get(parameter, f"{parameter}=...") if option is None else f"{option}."


class GmilError(_Message, Exception):
    """Base of all errors raised by gmil: a message, and the parameter that it is about.

    Parameters
    ----------
    message : str
        What is wrong. Without a fix, the parameter (and its value) is put before it.
    parameter : str, optional
        The argument that this is about.
    value : object, optional
        What was passed, where that is to be shown.
    fix : str
        What helps. Names of parameters in braces become ``name=...`` at the end of a sentence.

    Examples
    --------
    >>> error = BagValidationError("must be at least 2, got 1.", parameter="cv")
    >>> print(error)
    cv must be at least 2, got 1.
    >>> error.told({"cv": "--folds"})
    '--folds must be at least 2, got 1.'
    >>> print(BagValidationError("There is no bag column.", parameter="bag", fix="Name it with {bag}"))
    There is no bag column. Name it with bag=...
    """


class ColumnWarning(_Message, UserWarning):
    """A column of a table that is not used as its name or its place would suggest."""


class SlideWarning(_Message, UserWarning):
    """Slides that are left out, or that are not used as they lie."""


class BagValidationError(GmilError, ValueError):
    """Bags, labels or instances that cannot be used."""


class LabelError(BagValidationError):
    """Labels that cannot be used, of bags that can: these are in ``bags``, for those who need no labels."""

    bags: Any = None


class FormatError(GmilError, ValueError):
    """A file that cannot be read as bags."""


class FileAccessError(GmilError, OSError):
    """A file that cannot be opened or written where it is."""


class DiskError(FileAccessError):
    """A file that could not be written to the end: the disk is full, a quota is used up, or the disk fails."""


class MissingFileError(FileAccessError, FileNotFoundError):
    """A file that is not there."""


class ModelFileError(GmilError, ValueError):
    """A model file that cannot be read or written."""


class DatasetError(GmilError, OSError):
    """A data set that is not here and cannot be fetched."""


class ClusterError(GmilError, OSError):
    """A Dask cluster that has no workers, or none that can work, or that is lost."""


class MethodFailedError(GmilError, RuntimeError):
    """A method of somebody else's that raised an error while it was fitted or predicted."""


class SpecificationError(GmilError, ValueError):
    """An experiment that is not described as it must be."""


class VideoError(GmilError, ValueError):
    """A video that cannot be read, or a setting of the video commands that makes no sense."""


class BackendUnavailableError(GmilError, RuntimeError):
    """A backend was asked for by name and cannot run here."""


def count_of(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun, and its verb where it is given.

    >>> count_of(1, "bag"), count_of(3, "bag"), count_of(1, "bag has", "bags have")
    ('1 bag', '3 bags', '1 bag has')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question about the known name that is nearest, with a space before it; nothing where none is near.

    >>> did_you_mean("refernce", ["reference", "controls"])
    " Did you mean 'reference'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def installing(extra: str) -> str:
    """Return how an extra is added to a gmil that is installed.

    >>> installing("slides")
    "Install it with pip install 'gmil[slides]'."
    """
    return f"Install it with pip install 'gmil[{extra}]'."


def listed(items: Sequence[str], most: int = 5) -> str:
    """Join at most ``most`` items and count the rest.

    >>> listed(["3", "7", "9"], most=2)
    '3, 7 and 1 more'
    """
    shown = ", ".join(items[:most])
    rest = len(items) - most
    return f"{shown} and {rest} more" if rest > 0 else shown
