"""The files of the project and the time of its last commit: what packages are made from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def git(*arguments: str) -> str:
    """Return what a git command prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tracked_files() -> list[str]:
    """Return the paths of the tracked files that are there, relative to the root."""
    return [path for path in git("ls-files", "-z").split("\0") if path and (ROOT / path).is_file()]


def commit_time() -> str:
    """Return the seconds of the last commit, for SOURCE_DATE_EPOCH."""
    return git("log", "-1", "--format=%ct").strip()


def copy_files(paths: list[str], folder: Path) -> None:
    """Copy files of the project into a folder."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
