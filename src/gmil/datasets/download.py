"""Where data sets are kept and how they get there: checked by SHA-256, renamed when whole."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.datasets.transfer import open_address
from gmil.errors import DatasetError
from gmil.safety.atomic import is_disk_error, replacing

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA_HOME = "GMIL_DATA_HOME"
"""The environment variable that names the data folder."""

DELAYS = (1.0, 3.0, 9.0)
"""Seconds to wait before each further attempt."""

_CHUNK = 1 << 16
_MOST_SECONDS = 600.0  # for all attempts together; no data set is nearly as large
_MOST_BYTES = 1 << 28  # no data set is nearly as large; a server that never stops would fill the disk
_TOO_MANY_REQUESTS = 429
_CHANGED = "It was not kept; the file has changed at its source or on the way."


class _InterruptedError(Exception):
    """The server closed the connection before the file was whole."""


def data_home(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder where data sets are looked for and downloaded to.

    It is ``folder`` where one is given, else the environment variable ``GMIL_DATA_HOME``, else ``gmil`` in
    the user's cache folder.

    Examples
    --------
    >>> from gmil.datasets import data_home
    >>> data_home("data").name
    'data'
    """
    chosen = folder or os.environ.get(DATA_HOME)
    return Path(chosen).expanduser() if chosen else _user_cache() / "gmil"


def _user_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    # The XDG specification says that a relative path is to be ignored.
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return xdg if xdg.is_absolute() else Path.home() / ".cache"


def download(url: str, target: Path, sha256: str, *, delays: Sequence[float] | None = None) -> None:
    """Download ``url`` to ``target``, trying again after ``delays`` where that may help.

    Nothing is left behind unless the file is whole and has the right SHA-256.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary:
            _fetch(url, temporary, target, sha256, DELAYS if delays is None else delays)
    except DatasetError:
        raise
    except OSError as error:
        msg = (
            f"The data folder {target.parent} cannot be written to: {_reason(error)}. "
            f"Set {DATA_HOME} to another folder."
        )
        raise DatasetError(msg) from error


def _fetch(url: str, temporary: Path, target: Path, sha256: str, delays: Sequence[float]) -> None:
    deadline = time.monotonic() + _MOST_SECONDS
    for delay in (*delays, None):
        try:
            found = _copy(url, temporary, deadline)
        except DatasetError:
            raise
        except (OSError, http.client.HTTPException, _InterruptedError) as error:
            if is_disk_error(error):
                raise
            if delay is None or not _worth_another_try(error):
                msg = (
                    f"{url} cannot be downloaded: {_reason(error)}. On a machine without network, put "
                    f"the file {target.name} into {target.parent}, or set {DATA_HOME} to the folder "
                    "that holds it."
                )
                raise DatasetError(msg) from error
            time.sleep(delay)
        else:
            _refuse_other_file(url, found, sha256, _CHANGED)
            return


def _copy(url: str, temporary: Path, deadline: float) -> str:
    """Write the file at ``url`` to ``temporary`` and return its SHA-256."""
    digest = hashlib.sha256()
    size = 0
    with open_address(url, deadline) as response, temporary.open("wb") as file:
        while chunk := response.read(_CHUNK):
            size += len(chunk)
            _refuse_endless(url, size)
            digest.update(chunk)
            file.write(chunk)
        _refuse_partial(response, size)
    return digest.hexdigest()


def _refuse_other_file(where: object, found: str, sha256: str, fix: str) -> None:
    if found != sha256:
        msg = f"{where} is not the file that gmil knows: its SHA-256 is {found}, not {sha256}. {fix}"
        raise DatasetError(msg)


def refuse_damaged(path: Path, sha256: str) -> None:
    """Refuse a file of the data folder that is not, or no longer, what was downloaded."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    _refuse_other_file(path, found, sha256, "Remove it: it is then downloaded again.")


def _refuse_endless(url: str, size: int) -> None:
    if size > _MOST_BYTES:
        msg = f"{url} is larger than {_MOST_BYTES >> 20} MiB, which no data set of gmil is. It was not kept."
        raise DatasetError(msg)


def _refuse_partial(response: Any, size: int) -> None:
    # Reading in pieces, http.client takes an early end of the stream for the end of the file.
    promised = response.headers.get("Content-Length") or ""
    if promised.strip().isdecimal() and size < int(promised):  # the SHA-256 decides where a server writes no number
        msg = f"the connection was closed after {size} of {promised} bytes"
        raise _InterruptedError(msg)


def _worth_another_try(error: Exception) -> bool:
    """Tell a passing failure from an address that is wrong for good."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code >= 500 or error.code == _TOO_MANY_REQUESTS
    return not isinstance(getattr(error, "reason", error), FileNotFoundError)


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return str(error)  # with the number: "HTTP Error 404: Not Found"
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).rstrip(".") or type(error).__name__
