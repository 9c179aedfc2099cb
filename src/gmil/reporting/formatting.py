"""Numbers and lists as they are written on pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_LONGEST_PARAMETERS = 400
_UNITS = ((1, "ms", 1e-3), (600, "s", 1.0), (7200, "min", 60.0), (math.inf, "h", 3600.0))


def seconds_text(seconds: float) -> str:
    """Return a time with two digits and a unit.

    >>> seconds_text(0.0042), seconds_text(0.143), seconds_text(12.3), seconds_text(3600)
    ('4.2 ms', '140 ms', '12 s', '60 min')
    """
    unit, size = next((unit, size) for limit, unit, size in _UNITS if seconds < limit * (1 - 1e-9) or math.isinf(limit))
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"


def ratio_text(ratio: float | None) -> str:
    """Return a ratio in brackets, after a space.

    >>> ratio_text(2.5), ratio_text(None)
    (' (2.5×)', '')
    """
    return "" if ratio is None else f" ({ratio:.3g}×)" if ratio < 1000 else f" ({ratio:.0f}×)"


def percent(share: float | None) -> str:
    """Return a share in per cent, without the sign.

    >>> percent(0.5871), percent(None)
    ('58.7', '–')
    """
    return "–" if share is None else f"{100 * share:.1f}"


def interval_text(interval: Sequence[float]) -> str:
    """Return the limits of an interval in per cent.

    >>> interval_text([0.5, 0.75])
    '50.0 to 75.0'
    """
    return " to ".join(percent(limit) for limit in interval)


def joined(names: Sequence[str]) -> str:
    """Return names as one phrase.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop.

    >>> sentence("nothing was measured")
    'Nothing was measured.'
    """
    return f"{text[0].upper()}{text[1:]}."


def parameters_text(model: Any) -> str:
    """Return an estimator with its parameters on one line that is not too long."""
    text = " ".join(str(model).split())
    return text if len(text) <= _LONGEST_PARAMETERS else f"{text[: _LONGEST_PARAMETERS - 3]}..."
