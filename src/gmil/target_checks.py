"""What bags are to be predicted by: values, ordered grades, or times that may be censored, checked once for all."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.bags.finite import name_of_bag
from gmil.bags.tables import unmasked
from gmil.errors import BagValidationError
from gmil.validation import check_label_count

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats
    from gmil.scale import LazyBags

TARGETS = ("classes", "regression", "ordinal", "survival")
_MOST_CLASSES = 20
"""Whole numbers with more different values than this are measured, not named."""
_NAMES = (("event", "status", "observed"), ("time", "duration", "survival_time"))


class Outcomes(NamedTuple):
    """Whether something happened to a bag, and when; or until when nothing had."""

    event: Booleans  # (n_bags,)
    time: Floats  # (n_bags,)

    @property
    def table(self) -> Floats:
        """Both as columns, (n_bags, 2)."""
        return np.column_stack([self.event, self.time])


def kind_of_target(y: Any) -> tuple[str, str]:
    """Return the kind of target that values are of, and why: "classes", "regression" or "survival".

    Grades are classes to who does not know their order: "ordinal" is never guessed.

    >>> kind_of_target(np.array([0.5, 1.25, 3.0]))
    ('regression', 'the label has fractions')
    >>> kind_of_target(np.array(["a", "b"]))[0]
    'classes'
    """
    values = np.asarray(y)
    if values.dtype.names is not None:
        return "survival", "the label has an event and a time"
    if values.dtype.kind == "f" and values.size and (values != np.rint(values)).any():
        return "regression", "the label has fractions"
    if values.dtype.kind in "iuf" and values.ndim == 1 and len(np.unique(values)) > _MOST_CLASSES:
        return "regression", f"the label is a number with {len(np.unique(values))} different values"
    return "classes", "the label is a text" if values.dtype.kind in "UO" else "the label has few different values"


def check_values(y: Any, bags: Bags | LazyBags, estimator: BaseEstimator) -> Floats:
    """Return values in double precision, (n_bags,) or (n_bags, n_targets); what is no value is refused."""
    owner = type(estimator).__name__
    values = _given(y, owner)
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        msg = f"y must hold a number for every bag, or a row of numbers, got shape {values.shape}."
        raise BagValidationError(msg, parameter="y")
    check_label_count(len(values), bags)
    numbers = _numbers(values, f"{owner} predicts numbers")
    _refuse_not_finite(numbers, bags)
    if len(numbers) < 2:
        msg = f"{owner} needs at least two bags to learn from, got one sample only (n_samples = 1)."
        raise BagValidationError(msg, parameter="y")
    constant = np.ptp(numbers, axis=0) == 0
    if constant.any():
        value = numbers.reshape(len(numbers), -1)[0, int(np.argmax(constant))]
        msg = f"y is {value:g} for every bag, so there is nothing to learn. Check the column."
        raise BagValidationError(msg, parameter="y")
    return numbers


def check_outcomes(y: Any, bags: Bags | LazyBags | None = None, owner: str = "Survival analysis") -> Outcomes:
    """Return events and times, from a structured array, a frame, or two columns; what is none is refused.

    Parameters
    ----------
    y : structured array, data frame, or array of shape (n_bags, 2)
        A truth value and a time for every bag: whether the event was seen, and when, or until when it was not. Two
        columns are in this order, unless a frame names them.
    bags : Bags, optional
        The bags that they are of.
    owner : str
        Who asks.
    """
    event, time = _two_columns(y, owner)
    if bags is not None:
        check_label_count(len(time), bags)
    times = _numbers(time, "times must be numbers")
    _refuse_not_finite(times, bags)
    if (times < 0).any():
        where = name_of_bag(bags, int((times < 0).argmax())) if bags is not None else f"bag {int((times < 0).argmax())}"
        msg = f"Times must not be negative, but that of {where} is {times[times < 0][0]:g}. Correct it."
        raise BagValidationError(msg, parameter="y")
    events = _events(event)
    if not events.any():
        msg = "No event was seen in any bag: every time is censored, so there is nothing to learn. Check the column."
        raise BagValidationError(msg, parameter="y")
    return Outcomes(events, times)


def outcomes_of(event: Any, time: Any) -> NDArray[Any]:
    """Return events and times as scikit-survival keeps them: a structured array of ``event`` and ``time``.

    >>> outcomes_of([True, False], [3.0, 5.0])
    array([( True, 3.), (False, 5.)], dtype=[('event', '?'), ('time', '<f8')])
    """
    found = np.empty(len(time), dtype=[("event", "?"), ("time", "<f8")])
    found["event"], found["time"] = event, time
    return found


def _given(y: Any, owner: str) -> NDArray[Any]:
    if y is None:
        msg = f"This {owner} estimator requires y to be passed, but the target y is None."
        raise BagValidationError(msg)
    return np.asarray(unmasked(y))


def _numbers(values: NDArray[Any], rule: str) -> Floats:
    if values.dtype.kind in "biufO":
        with contextlib.suppress(TypeError, ValueError):
            return values.astype(np.float64)
    got = next((item for item in values.ravel().tolist() if isinstance(item, str)), None)
    what = f"texts such as {got!r}" if got is not None else f"{values.dtype} data"
    msg = f"Unknown label type: {rule}, but y holds {what}. Turn them into numbers, or take a classifier."
    raise BagValidationError(msg, parameter="y")


def _refuse_not_finite(numbers: Floats, bags: Bags | LazyBags | None) -> None:
    wrong = ~np.isfinite(numbers)
    if not wrong.any():
        return
    row = int(wrong.reshape(len(numbers), -1).any(axis=1).argmax())
    bag = f"bag {row}" if bags is None else name_of_bag(bags, row)
    missing = np.isnan(numbers[row]).any()
    what = "NaN: the target" if missing else "infinity: the target"
    msg = f"Input y contains {what} of {bag} is {'missing' if missing else 'infinite'}. Fill it in, or drop the bag."
    raise BagValidationError(msg, parameter="y")


def _two_columns(y: Any, owner: str) -> tuple[NDArray[Any], NDArray[Any]]:
    names = getattr(y, "columns", None)
    if names is not None:
        chosen = [next((name for name in names if str(name).lower() in known), None) for known in _NAMES]
        if None in chosen or len(names) != 2:
            msg = f"A frame of times must have the columns 'event' and 'time', got {[str(name) for name in names]}."
            raise BagValidationError(msg, parameter="y")
        return tuple(np.asarray(y[name]) for name in chosen)  # type: ignore[return-value]
    values = _given(y, owner)
    fields = values.dtype.names
    if fields is not None and len(fields) == 2:
        truth = [name for name in fields if values.dtype[name].kind == "b"] or [fields[0]]
        return values[truth[0]], values[next(name for name in fields if name != truth[0])]
    if values.ndim == 2 and values.shape[1] == 2:
        return values[:, 0], values[:, 1]
    msg = (
        f"{owner} needs an event and a time for every bag: a structured array with a truth value and a number, or two "
        f"columns, got shape {values.shape} of {values.dtype}."
    )
    raise BagValidationError(msg, parameter="y")


def _events(event: NDArray[Any]) -> Booleans:
    known = event.astype(np.float64) if event.dtype.kind in "biufO" else np.array([np.nan])
    if not np.isin(known, (0.0, 1.0)).all():
        got = next(item for item in np.asarray(event).tolist() if item not in (0, 1))
        msg = f"Events must be true or false, 1 or 0, got {got!r}."
        raise BagValidationError(msg, parameter="y")
    return known > 0
