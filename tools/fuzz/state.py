"""Results that are kept, line by line, so that a run goes on where it ended."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tools.fuzz.results import Result

import gmil

if TYPE_CHECKING:
    from collections.abc import Iterable

_HERE = Path(__file__).parent


def fingerprint() -> str:
    """Return a short name of the code that is tried and of the code that tries it."""
    digest = hashlib.sha256()
    folders = (Path(gmil.__file__).parent, _HERE, _HERE.parents[1] / "tests" / "model_files")
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class State:
    """A file of JSON lines: the first says which code they belong to, every other is a result."""

    def __init__(self, path: Path, code: str) -> None:
        self._path = path
        self._results = {result.case: result for result in self._read(code)}
        if not self._results:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"code": code}) + "\n")

    def _read(self, code: str) -> list[Result]:
        if not self._path.is_file():
            return []
        first, *lines = self._path.read_text().splitlines() or [""]
        if first != json.dumps({"code": code}):
            return []
        return [result for line in lines if (result := _parsed(line)) is not None]

    @property
    def results(self) -> list[Result]:
        """One result a case, the last: a child may die of a case after it said that all is well."""
        return list(self._results.values())

    def add(self, results: Iterable[Result]) -> None:
        """Keep results, each as soon as it is there."""
        with self._path.open("a") as file:
            for result in results:
                file.write(json.dumps(dataclasses.asdict(result)) + "\n")
                file.flush()
                self._results[result.case] = result


def _parsed(line: str) -> Result | None:
    try:
        return Result(**json.loads(line))
    except (ValueError, TypeError):  # the last line of a run that was killed
        return None
