"""Passes on a Dask cluster: a task for every part, results in the order of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.errors import BagValidationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class DaskRunner:
    """Runs the parts of a pass on the workers of a ``dask.distributed.Client``.

    A worker reads the parts that it is given, one a thread, and sends back their tables. What a lost worker had is done
    again by another; tables are joined in the order of parts, so that no sum depends on who did what.

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
        # What all tasks have in common travels once, as a task of its own: the scheduler can make it again.
        is_shared = [all(task[i] is tasks[0][i] for task in tasks) for i in range(len(tasks[0]))]
        shared = self.client.submit(_keep, [x for x, same in zip(tasks[0], is_shared, strict=True) if same], pure=False)
        futures = [
            self.client.submit(
                _call,
                function,
                is_shared,
                shared,
                [x for x, same in zip(task, is_shared, strict=True) if not same],
                pure=False,
                priority=-number,
            )
            for number, task in enumerate(tasks)
        ]
        try:
            while futures:
                yield futures[0].result()
                futures.pop(0).release()
        finally:
            self.client.cancel(futures)
            shared.release()


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
