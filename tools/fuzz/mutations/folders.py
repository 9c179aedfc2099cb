"""Mutations of folders: links, pipes, folders and odd names where a file is expected."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tools.fuzz.mutations.trees import pick

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.random import Generator

_NAMES = ("bag99", "-rf", "a b", "ü", "line\nbreak", "x" * 200, "..bag", "%s", "{0}")


def add_entry(folder: Path, rng: Generator) -> str:
    """Add something to a folder of bags that is no file with a bag; return what it is."""
    suffix = pick((".npy", ".npz", ".parquet", ".csv"), rng)
    path = folder / (pick(_NAMES, rng) + suffix)
    kind = pick(
        ("pipe", "link outside", "link to itself", "link to nothing", "folder", "empty file", "other file"), rng
    )
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "empty file":
        path.touch()
    elif kind == "other file":
        path.write_bytes(rng.bytes(64))
    else:
        path.symlink_to({"link outside": "/etc/passwd", "link to itself": path.name}.get(kind, "nothing"))
    return f"folder {kind}"
