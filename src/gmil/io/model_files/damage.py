"""What a damaged file raises while it is read, and how that becomes one clear error."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gmil.errors import GmilError, ModelFileError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

_RAISED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, MemoryError)


class DamageError(ValueError):
    """Something in a file, or in a model that is to become one, that is not as it must be."""


def expect(holds: object, otherwise: str) -> None:
    """Raise `DamageError` where something does not hold."""
    if not holds:
        raise DamageError(otherwise)


@contextlib.contextmanager
def clear_damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what a damaged file raises while its parts are put together into one clear error."""
    try:
        yield
    except DamageError as error:
        msg = f"{path} is damaged: {error}. Save the model again."
        raise ModelFileError(msg) from error
    except GmilError:
        raise
    except _RAISED as error:
        msg = f"{path} is damaged: {type(error).__name__} while reading it ({error}). Save the model again."
        raise ModelFileError(msg) from error
