"""Every error that gmil raises on purpose.

Messages follow one shape: what, the rule, what was got, which bag, the fix.
"""

from __future__ import annotations

from typing import Any


class GmilError(Exception):
    """Base of all errors raised by gmil."""


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


class SpecificationError(GmilError, ValueError):
    """An experiment that is not described as it must be."""


class VideoError(GmilError, ValueError):
    """A video that cannot be read, or a setting of the video commands that makes no sense."""


class BackendUnavailableError(GmilError, RuntimeError):
    """A backend was asked for by name and cannot run here."""


def listed(items: list[str], most: int = 5) -> str:
    """Join at most ``most`` items and count the rest.

    >>> listed(["3", "7", "9"], most=2)
    '3, 7 and 1 more'
    """
    shown = ", ".join(items[:most])
    rest = len(items) - most
    return f"{shown} and {rest} more" if rest > 0 else shown
