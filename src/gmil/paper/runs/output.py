"""Summaries as files."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.safety.atomic import replacing

if TYPE_CHECKING:
    import os


def write_json(summary: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a summary as JSON; a number that is none becomes null."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(finite(summary), indent=2) + "\n", encoding="utf-8")


def write_csv(rows: list[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write rows of the same keys as CSV."""
    with replacing(path) as temporary, Path(temporary).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


def finite(value: Any) -> Any:
    """Return the same with None for every number that is none, which JSON cannot say."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
