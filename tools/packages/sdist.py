"""Build the source archive twice, from two copies of the tracked files, and keep it if both have the same bytes.

Usage: python -m tools.packages.sdist [folder]; the archive goes into dist/ where no folder is named.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.packages.tree import ROOT, commit_time, copy_files, tracked_files

WRITTEN = re.compile(r"PKG-INFO|setup\.cfg|src/gmil\.egg-info/.*")
"""What setuptools adds to the files of the project."""


def build(folder: Path, umask: int) -> Path:
    """Build the archive in a folder from a copy of the project; new files get their rights by the mask."""
    copy_files(tracked_files(), folder / "tree")
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(folder), str(folder / "tree")]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time()}
    subprocess.run(command, check=True, env=environment, umask=umask, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob("*.tar.gz")
    return archive


def digest(archive: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def members(archive: Path) -> set[str]:
    """Return the files of an archive, without those that setuptools writes."""
    with tarfile.open(archive) as opened:
        names = {member.name.partition("/")[2] for member in opened if member.isfile()}
    return {name for name in names if not WRITTEN.fullmatch(name)}


def check_members(archive: Path) -> None:
    """Leave where the archive has not exactly the files of the project."""
    found, expected = members(archive), set(tracked_files())
    if found != expected:
        sys.exit(f"The archive lacks {sorted(expected - found)} and has {sorted(found - expected)}: see MANIFEST.in.")


def main(folder: str = "dist") -> None:
    """Build, compare, check and keep the archive."""
    with TemporaryDirectory() as temporary:
        first = build(Path(temporary) / "first", 0o022)
        second = build(Path(temporary) / "second", 0o077)
        if digest(first) != digest(second):
            sys.exit(f"Two builds differ: {digest(first)} and {digest(second)}.")
        check_members(first)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(first)], check=True)
        target = ROOT / folder / first.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(first.read_bytes())
    print(f"{digest(target)}  {folder}/{target.name}, the same twice")


if __name__ == "__main__":
    main(*sys.argv[1:])
