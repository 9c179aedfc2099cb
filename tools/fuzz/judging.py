"""Use a file, watch what happens, and judge it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tools.fuzz import watch

from gmil.errors import GmilError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Values = Sequence[NDArray[np.generic]]

TIMES_THE_FILE = 20
BYTES_MORE = 200 * 10**6
MOST_BYTES_ASKED = 3 * 2**30


@dataclass(frozen=True)
class Rules:
    """What counts as harm for a file.

    Attributes
    ----------
    expected : sequence of arrays
        What the file gave before it was mutated.
    guarded : bool
        Whether a stale checksum tells of the mutation: values that changed are then bad.
    may_be_large : bool
        Whether the file may take more memory than the bound, as compressed data do.
    must_be_finite : bool
        Whether the first array must hold finite numbers.
    """

    expected: Values
    guarded: bool
    may_be_large: bool = False
    must_be_finite: bool = True


def judge(use: Callable[[], Values], folder: Path, n_bytes: int, rules: Rules) -> tuple[str, str]:
    """Run ``use`` on a file of ``n_bytes`` in ``folder``; return the outcome and a note."""
    error: BaseException | None = None
    found: Values = ()
    watch.reset_peak()
    before = watch.memory_now()
    with watch.acts(folder) as seen:
        try:
            found = use()
        except KeyboardInterrupt:
            raise
        except BaseException as caught:  # Rust panics are no Exceptions
            error = caught
    taken = watch.memory_peak() - before
    if seen:
        return "code", seen[0]
    if _asked_too_much(error):
        return "memory", _last_lines(error)
    if taken > TIMES_THE_FILE * n_bytes + BYTES_MORE:
        return "large" if rules.may_be_large else "memory", f"{taken / 1e6:.0f} MB for a file of {n_bytes} bytes"
    if error is not None:
        return ("refused", str(error)[:200]) if isinstance(error, GmilError) else ("raw", _last_lines(error))
    return _compare(found, rules)


def _asked_too_much(error: BaseException | None) -> bool:
    return any(isinstance(cause, MemoryError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _last_lines(error: BaseException | None) -> str:
    """Return where an exception was raised in gmil, and what it says."""
    assert error is not None
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/gmil/" in frame.filename]
    where = f" at {frames[-1].filename.rpartition('/gmil/')[2]}:{frames[-1].lineno}" if frames else ""
    entry = f" from {frames[0].name}" if frames else ""
    return f"{type(error).__name__}: {str(error)[:160]}{where}{entry}"


def _compare(found: Values, rules: Rules) -> tuple[str, str]:
    if rules.must_be_finite and not np.isfinite(np.asarray(found[0], dtype=np.float64)).all():
        return "not finite", f"decisions {np.ravel(found[0])[:3]}"
    if _equal(found, rules.expected):
        return "same", ""
    return ("unnoticed" if rules.guarded else "changed"), ""


def _equal(found: Values, expected: Values) -> bool:
    return len(found) == len(expected) and all(map(_equal_arrays, found, expected))


def _equal_arrays(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc")
