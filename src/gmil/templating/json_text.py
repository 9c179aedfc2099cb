"""JSON for pages: numbers that JSON cannot say, and texts that may stand inside a script element."""

from __future__ import annotations

import json
import math
from typing import Any


def finite(value: Any) -> Any:
    """Return the same with None for every number that is none, which JSON cannot say."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def script_json(data: Any) -> str:
    r"""Return JSON that may stand inside a script element, whatever texts it holds.

    >>> script_json("</script><b>&")
    '"\\u003c/script\\u003e\\u003cb\\u003e\\u0026"'
    """
    text = json.dumps(finite(data), separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
