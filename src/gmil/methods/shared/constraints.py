"""What parameters may be: the rules that several methods share."""

from __future__ import annotations

from numbers import Integral, Real

from gmil.compat import Interval

ABOVE_ZERO = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
INSIDE_UNIT = Interval(Real, 0, 1, closed="neither")
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
