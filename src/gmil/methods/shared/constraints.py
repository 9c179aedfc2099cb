"""What parameters may be: the rules that several rivals share."""

from __future__ import annotations

from numbers import Integral, Real

from gmil.compat import Interval, StrOptions

ABOVE_ZERO = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
INSIDE_UNIT = Interval(Real, 0, 1, closed="neither")
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")

KERNEL_WIDTH = [ABOVE_ZERO, StrOptions({"median"})]
"""Of a parameter ``gamma``, as `gmil.methods.kernels.bag_kernels.kernel_width` reads it."""
