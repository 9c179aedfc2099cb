"""Write oldest.txt: the oldest version of every dependency that pyproject.toml allows, as constraints of pip.

Of the extras, those that the tests need are in it. Usage: python -m tools.packages.oldest.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from tools.packages.tree import ROOT

EXTRAS = ("frames", "dask", "video", "slides", "test")
FILE = Path(__file__).with_name("oldest.txt")
HEAD = "# The oldest versions that pyproject.toml allows. `make oldest` writes them, `make test-oldest` tests them.\n"


def requirements() -> list[Requirement]:
    """Return the dependencies and those of the extras, without gmil itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (line for extra in EXTRAS for line in project["optional-dependencies"][extra])
    found = [Requirement(line) for line in (*project["dependencies"], *extras)]
    return [requirement for requirement in found if requirement.name != project["name"]]


def lowest(requirement: Requirement) -> str:
    """Return the requirement with its lower bound as the one version."""
    (bound,) = (part.version for part in requirement.specifier if part.operator == ">=")
    return f"{requirement.name}=={bound}"


def constraints() -> str:
    """Return the text of the file."""
    return HEAD + "".join(f"{line}\n" for line in sorted(map(lowest, requirements())))


if __name__ == "__main__":
    FILE.write_text(constraints(), encoding="utf-8")
