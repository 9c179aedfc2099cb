"""Passes on a Dask cluster: a task for every part, results in the order of parts."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from concurrent.futures import CancelledError, Future, wait
from typing import TYPE_CHECKING, Any

from gmil.errors import BagValidationError, ClusterError, installing, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS_FOR_AN_ANSWER = 25.0
_SECONDS_WITHOUT_WORKERS = 25.0
_SECONDS_BETWEEN_CHECKS = 1.0
_SECONDS_OF_PATIENCE = 10.0
_TIMES_THE_MEDIAN = 4.0
"""A task that takes longer than both, its queue included, is given to another worker as well."""


class DaskRunner:
    """Runs the parts of a pass on the workers of a ``dask.distributed.Client``.

    A worker reads the parts that it is given, one a thread, and sends back their tables. What a lost worker had is done
    again by another, and so is what all others wait for a slow one to do. Tables are joined in the order of parts, so
    that no sum depends on who did what. A cluster without workers, with workers without gmil or with another version of
    it, or that is lost, is a `ClusterError` within half a minute.

    Parameters
    ----------
    client : dask.distributed.Client
        Its workers must see the files under the same names, and have the same version of gmil installed.
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
            work = _Work(self.client, function, tasks)
        watch = _Watch(self.client)
        try:
            for number in range(len(tasks)):
                with self._clear_errors():
                    result = work.wait_for(number, watch)
                yield result
        finally:
            with contextlib.suppress(OSError, CancelledError):  # nothing is left to be cancelled where all is lost
                work.cancel()

    def _check_workers(self) -> None:
        """Refuse a cluster that has no workers, or some that cannot work: its client would wait for ever."""
        try:
            self.client.wait_for_workers(1, timeout=_SECONDS_WITHOUT_WORKERS)
        except TimeoutError as error:
            raise ClusterError(_no_workers(self.client)) from error
        answer = _in_background(lambda: self.client.run(_importer(), on_error="return"))
        if not _is_done(answer, _SECONDS_FOR_AN_ANSWER):
            msg = (
                f"The workers of the Dask cluster at {_address(self.client)} do not answer within "
                f"{_SECONDS_FOR_AN_ANSWER:.0f} s. Restart them."
            )
            raise ClusterError(msg)
        found_by = answer.result().items()  # a worker that was lost meanwhile has an error in place of an answer
        versions = {name: found if isinstance(found, tuple) else (False, str(found)) for name, found in found_by}
        without = [f"{worker} ({found})" for worker, (is_there, found) in versions.items() if not is_there]
        if without:
            msg = f"These Dask workers cannot import gmil: {listed(without)}. Install gmil where they run."
            raise ClusterError(msg)
        own = _importer()()[1]
        other = [f"{worker} ({found})" for worker, (_, found) in versions.items() if found != own]
        if other:
            msg = (
                f"These Dask workers have another version of gmil than {own}, which runs here: {listed(other)}. "
                f"Install gmil {own} where they run."
            )
            raise ClusterError(msg)

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Turn the loss of the scheduler into one clear error; what a task raises passes."""
        from distributed.comm.core import CommClosedError

        try:
            yield
        except (CancelledError, CommClosedError) as error:
            raise ClusterError(_lost(self.client, error)) from error


class _Work:
    """The tasks of a pass on their way; a task may be on its way twice."""

    def __init__(self, client: Any, function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> None:
        # What all tasks have in common travels once, as a task of its own: the scheduler can make it again.
        is_shared = [all(task[i] is tasks[0][i] for task in tasks) for i in range(len(tasks[0]))]
        common = [x for x, same in zip(tasks[0], is_shared, strict=True) if same]
        self._client = client
        self._shared = client.submit(_keep, common, pure=False)
        self._function, self._is_shared = function, is_shared
        self._own = [[x for x, same in zip(task, is_shared, strict=True) if not same] for task in tasks]
        self._futures = {number: [self._submit(number)] for number in range(len(tasks))}
        self._seconds: list[float] = []

    def _submit(self, number: int, **options: Any) -> Any:
        return self._client.submit(
            _call, self._function, self._is_shared, self._shared, self._own[number],
            pure=False, priority=-number, **options,
        )  # fmt: skip

    def wait_for(self, number: int, watch: _Watch) -> Any:
        """Return the result of a task, and check now and then whether anybody is left to work on it."""
        since = time.monotonic()
        copies = self._futures[number]
        while not (done := [copy for copy in copies if copy.done()]):
            if not _wait_for_any(copies):
                watch.check()
                if len(copies) == 1 and time.monotonic() - since > self._patience():
                    copies += self._copy_elsewhere(number, copies[0])
        answer = _in_background(done[0].result)
        while not _is_done(answer, _SECONDS_BETWEEN_CHECKS):
            watch.check()
        seconds, result = answer.result()
        self._seconds.append(seconds)
        self._client.cancel([copy for copy in copies if copy is not done[0]])
        del self._futures[number]  # which lets go of the result on the cluster
        return result

    def _patience(self) -> float:
        typical = statistics.median(self._seconds) if self._seconds else 0.0
        return max(_SECONDS_OF_PATIENCE, _TIMES_THE_MEDIAN * typical)

    def _copy_elsewhere(self, number: int, slow: Any) -> list[Any]:
        """Give a task to the workers that do not have it; to nobody where there are none."""
        others = [worker for worker, keys in self._client.processing().items() if slow.key not in keys]
        return [self._submit(number, workers=others)] if others else []

    def cancel(self) -> None:
        """Take back what is still on its way."""
        self._client.cancel([copy for copies in self._futures.values() for copy in copies])
        self._shared.release()


class _Watch:
    """Checks whether a cluster is alive: its scheduler answers, and it has a worker."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._with_workers = time.monotonic()  # when there was a worker last
        self._question: Future[Any] | None = None
        self._asked = 0.0

    def check(self) -> None:
        """Raise an error where nobody answers, or nobody works, for long."""
        now = time.monotonic()
        if self._question is None:
            self._question, self._asked = _in_background(self._client.nthreads), now
        if self._question.done():
            if self._answer(self._question):
                self._with_workers = now
            self._question = None
        elif now - self._asked > _SECONDS_FOR_AN_ANSWER:
            msg = (
                f"The Dask scheduler at {_address(self._client)} does not answer within "
                f"{_SECONDS_FOR_AN_ANSWER:.0f} s. Start it again, and run the same again with a new client."
            )
            raise ClusterError(msg)
        if now - self._with_workers > _SECONDS_WITHOUT_WORKERS:
            raise ClusterError(_no_workers(self._client))

    def _answer(self, question: Future[Any]) -> Any:
        try:
            return question.result()
        except OSError as error:
            raise ClusterError(_lost(self._client, error)) from error


def _no_workers(client: Any) -> str:
    return (
        f"The Dask cluster at {_address(client)} has had no worker for {_SECONDS_WITHOUT_WORKERS:.0f} s. Start one "
        f"with dask worker {_address(client)}."
    )


def _lost(client: Any, error: BaseException) -> str:
    return (
        f"The Dask cluster at {_address(client)} was lost, or its tasks were cancelled: {str(error) or 'no reason'}. "
        "Start it again, and run the same again with a new client."
    )


def _address(client: Any) -> str:
    return str(getattr(getattr(client, "scheduler", None), "address", "an unknown address"))


def _importer() -> Callable[[], tuple[bool, str]]:
    """Return a function that tells the version of gmil, or why there is none; it travels as code."""

    def version() -> tuple[bool, str]:
        from importlib import import_module

        try:
            return True, str(import_module("gmil").__version__)
        except ImportError as error:
            return False, str(error)

    return version


def _wait_for_any(futures: list[Any]) -> bool:
    """Wait a while for one of several tasks; tell whether one is done."""
    import distributed

    wait_for: Any = distributed.wait
    try:
        wait_for(futures, timeout=_SECONDS_BETWEEN_CHECKS, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return False
    return True


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


def _call(function: Callable[..., Any], is_shared: list[bool], shared: list[Any], own: list[Any]) -> tuple[float, Any]:
    """Return the seconds that a task took, and its result."""
    start = time.monotonic()
    common, special = iter(shared), iter(own)
    result = function(*(next(common) if same else next(special) for same in is_shared))
    return time.monotonic() - start, result


def connect(address: str, timeout: str = "10s") -> Any:
    """Return a client of the cluster at an address such as ``tcp://10.0.0.1:8786``."""
    try:
        import distributed
    except ImportError as error:
        msg = f"Dask is not installed. {installing('dask')}"
        raise BagValidationError(msg) from error
    try:
        client: Any = distributed.Client
        return client(address, timeout=timeout)
    except (OSError, ValueError) as error:
        msg = f"No Dask scheduler answers at {address}. Start one with dask scheduler, or correct the address."
        raise BagValidationError(msg) from error
