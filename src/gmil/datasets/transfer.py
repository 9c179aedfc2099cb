"""Reading from an address that is not trusted: a limit on the time of all, and redirects to the web alone."""

from __future__ import annotations

import functools
import http.client
import io
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from gmil.errors import DatasetError

_SECONDS_OF_SILENCE = 30.0


def open_address(url: str, deadline: float) -> Any:
    """Open an address; reading raises `DatasetError` once ``deadline``, by `time.monotonic`, is over."""
    opener = urllib.request.build_opener(_Redirects, _Timed(deadline))
    return opener.open(url, timeout=_SECONDS_OF_SILENCE)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to http and https, and never from https to http."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        scheme = urlsplit(newurl).scheme
        if scheme not in ("http", "https") or (req.type, scheme) == ("https", "http"):
            text = (
                f"{req.full_url} cannot be downloaded: it leads to {newurl}, and gmil follows only to http and https, "
                "and from https only to https. Download the file by hand from a source that you trust."
            )
            raise DatasetError(text)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Timed(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Opens both kinds of addresses, and takes the place of both handlers of `urllib`."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self.deadline = deadline

    def http_open(self, req: Any) -> Any:
        return self.do_open(functools.partial(_connection, http.client.HTTPConnection, self.deadline), req)

    def https_open(self, req: Any) -> Any:
        return self.do_open(functools.partial(_connection, http.client.HTTPSConnection, self.deadline), req)


def _connection(kind: type[http.client.HTTPConnection], deadline: float, host: str, **options: Any) -> Any:
    connection: Any = kind(host, **options)
    connection.response_class = functools.partial(_TimedResponse, deadline)
    return connection


class _TimedResponse(http.client.HTTPResponse):
    """A response whose lines and bytes come in time, or not at all: a timeout of the socket is one of every byte."""

    def __init__(self, deadline: float, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock, deadline))


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: Any, deadline: float) -> None:
        self._socket, self._raw, self._deadline = sock, sock.makefile("rb", buffering=0), deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left > 0:
            self._socket.settimeout(min(left, _SECONDS_OF_SILENCE))
            try:
                found: int | None = self._raw.readinto(buffer)
            except TimeoutError:
                if time.monotonic() < self._deadline:
                    raise
            else:
                return found
        msg = "The server sends too slowly: the time for this download is over. Try again later, or download by hand."
        raise DatasetError(msg)

    def close(self) -> None:
        self._raw.close()
        super().close()
