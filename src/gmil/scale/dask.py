"""Passes on a Dask cluster: a task for every part, results in the order of parts."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import CancelledError, Future, wait
from typing import TYPE_CHECKING, Any

from gmil.errors import BagValidationError, ClusterError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS_FOR_AN_ANSWER = 120.0  # importing gmil may be slow on a network disk
_SECONDS_WITHOUT_WORKERS = 60.0
_SECONDS_BETWEEN_LOOKS = 2.0


class DaskRunner:
    """Runs the parts of a pass on the workers of a ``dask.distributed.Client``.

    A worker reads the parts that it is given, one a thread, and sends back their tables. What a lost worker had is done
    again by another; tables are joined in the order of parts, so that no sum depends on who did what. A cluster that
    has no workers for a minute, or workers without gmil, or that is lost, is a `ClusterError`.

    Parameters
    ----------
    client : dask.distributed.Client
        Its workers must see the files under the same names, and have gmil installed.
    """

    def __init__(self, client: Any) -> None:
        if not (hasattr(client, "submit") and hasattr(client, "cancel")):
            msg = f"A Dask client is needed, got {type(client).__name__}. Pass dask.distributed.Client(address)."
            raise BagValidationError(msg)
        self.client = client

    def __call__(self, function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function with every tuple of arguments; yield the results in their order."""
        if not tasks:
            return
        with self._clear_errors():
            self._check_workers()
            shared, futures = self._submit(function, tasks)
        try:
            while futures:
                with self._clear_errors():
                    result = self._wait_for(futures[0])
                yield result
                futures.pop(0).release()
        finally:
            with contextlib.suppress(OSError, CancelledError):  # nothing is left to be cancelled where all is lost
                self.client.cancel(futures)
            shared.release()

    def _submit(self, function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> tuple[Any, list[Any]]:
        # What all tasks have in common travels once, as a task of its own: the scheduler can make it again.
        is_shared = [all(task[i] is tasks[0][i] for task in tasks) for i in range(len(tasks[0]))]
        shared = self.client.submit(_keep, [x for x, same in zip(tasks[0], is_shared, strict=True) if same], pure=False)
        own = [[x for x, same in zip(task, is_shared, strict=True) if not same] for task in tasks]
        return shared, [
            self.client.submit(_call, function, is_shared, shared, special, pure=False, priority=-number)
            for number, special in enumerate(own)
        ]

    def _check_workers(self) -> None:
        """Refuse a cluster that has no workers, or some that cannot import gmil: its client would wait for ever."""
        try:
            self.client.wait_for_workers(1, timeout=_SECONDS_WITHOUT_WORKERS)
        except TimeoutError as error:
            raise ClusterError(self._no_workers()) from error
        answer = _in_background(lambda: self.client.run(_importer(), on_error="return"))
        if not _is_done(answer, _SECONDS_FOR_AN_ANSWER):
            msg = (
                f"The workers of the Dask cluster at {self._address()} do not answer within "
                f"{_SECONDS_FOR_AN_ANSWER:.0f} s. Restart them."
            )
            raise ClusterError(msg)
        without = [f"{worker} ({reason})" for worker, reason in answer.result().items() if reason is not None]
        if without:
            msg = f"These Dask workers cannot import gmil: {listed(without)}. Install gmil where they run."
            raise ClusterError(msg)

    def _wait_for(self, future: Any) -> Any:
        """Return the result of a task, and look now and then whether anybody is left to work on it."""
        answer = _in_background(future.result)
        since = time.monotonic()  # when there was a worker last
        while not _is_done(answer, _SECONDS_BETWEEN_LOOKS):
            if self.client.scheduler_info()["workers"]:
                since = time.monotonic()
            elif time.monotonic() - since > _SECONDS_WITHOUT_WORKERS:
                raise ClusterError(self._no_workers())
        return answer.result()

    def _no_workers(self) -> str:
        return (
            f"The Dask cluster at {self._address()} has had no worker for {_SECONDS_WITHOUT_WORKERS:.0f} s. Start one "
            f"with dask worker {self._address()}."
        )

    def _address(self) -> str:
        return str(getattr(getattr(self.client, "scheduler", None), "address", "an unknown address"))

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Turn the loss of the scheduler into one clear error; what a task raises passes."""
        from distributed.comm.core import CommClosedError

        try:
            yield
        except (CancelledError, CommClosedError) as error:
            msg = (
                f"The Dask cluster at {self._address()} was lost, or its tasks were cancelled: {error or 'no reason'}. "
                "Start it again, and run the same again with a new client."
            )
            raise ClusterError(msg) from error


def _importer() -> Callable[[], str | None]:
    """Return a function that tells why gmil cannot be imported; it travels as code, to where gmil may be missing."""

    def why_not() -> str | None:
        from importlib import import_module

        try:
            import_module("gmil")
        except ImportError as error:
            return str(error)
        return None

    return why_not


def _in_background(function: Callable[[], Any]) -> Future[Any]:
    """Call a function of a client, which may wait for ever, in a thread that nobody has to wait for."""
    answer: Future[Any] = Future()

    def call() -> None:
        try:
            answer.set_result(function())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return answer


def _is_done(answer: Future[Any], seconds: float) -> bool:
    return bool(wait([answer], timeout=seconds).done)


def _keep(things: list[Any]) -> list[Any]:
    return things


def _call(function: Callable[..., Any], is_shared: list[bool], shared: list[Any], own: list[Any]) -> Any:
    common, special = iter(shared), iter(own)
    return function(*(next(common) if same else next(special) for same in is_shared))


def connect(address: str, timeout: str = "10s") -> Any:
    """Return a client of the cluster at an address such as ``tcp://10.0.0.1:8786``."""
    try:
        import distributed
    except ImportError as error:
        msg = "Dask is not installed. Install it with pip install gmil[dask]."
        raise BagValidationError(msg) from error
    try:
        client: Any = distributed.Client
        return client(address, timeout=timeout)
    except (OSError, ValueError) as error:
        msg = f"No Dask scheduler answers at {address}. Start one with dask scheduler, or correct the address."
        raise BagValidationError(msg) from error
