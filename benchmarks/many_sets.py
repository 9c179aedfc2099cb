"""The sets that benchmarks of breadth run on: five, UCF-Crime, and every file of ``$GMIL_DATA_HOME/more``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import gmil

if TYPE_CHECKING:
    from collections.abc import Iterator

FIVE = ("musk1", "musk2", "elephant", "fox", "tiger")


def further_files() -> dict[str, Path]:
    """Return the files of further sets by name."""
    folder = Path(os.environ.get("GMIL_DATA_HOME", "")) / "more"
    return {path.stem: path for path in sorted(folder.glob("*.npz"))}


def all_names() -> list[str]:
    """Return the names of all sets, small ones first."""
    return [*FIVE, *further_files(), "ucf_crime"]


def load_set(name: str) -> tuple[Any, Any, Any]:
    """Return bags, labels, and which bags are copies of each other (None where nobody knows)."""
    files = further_files()
    if name in files:
        with np.load(files[name], allow_pickle=False) as file:
            groups = file.get("dup_group")
        return *gmil.read(files[name]), groups
    loader = getattr(gmil, f"load_{name}", None) or getattr(gmil, f"fetch_{name}")
    return *loader(return_X_y=True), None


class Rows:
    """Rows of a benchmark in a file of JSON lines: what is there is not done again."""

    def __init__(self, path: Path, *keys: str) -> None:
        self.path, self.keys = path, keys
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self._done = {tuple(row[key] for key in keys) for row in self.rows}

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._done

    def add(self, row: dict[str, Any]) -> None:
        """Write a row at once: a run may be stopped at any time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        self._done.add(tuple(row[key] for key in self.keys))

    def of(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows with these values."""
        return (row for row in self.rows if all(row[key] == value for key, value in wanted.items()))
