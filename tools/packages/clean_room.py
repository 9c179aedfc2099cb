"""Test a wheel where there is no compiler and no source: in an empty environment, with the tests in another folder.

Usage: python -m tools.packages.clean_room [--constraint FILE] [options of pytest]. The wheel is the newest in dist/.
All that git tracks but src/ and setup.py is copied beside the tests, so that tests of pages and tools run too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.packages.tree import ROOT, copy_files, tracked_files

COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|c[89]9|cpp|gcc|g\+\+|clang|clang\+\+|tcc|zig|as|ld|ld\.\w+)(-[\d.]+)?")
FORGOTTEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDSHARED", "LDFLAGS")


def link_commands(folder: Path) -> None:
    """Link every command that this process finds into a folder, but no compiler."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            if not COMPILERS.fullmatch(command.name) and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)


def clean_environment(folder: Path) -> dict[str, str]:
    """Return the variables of a machine without compiler, whose Python is that of the folder's ``venv``."""
    commands = folder / "commands"
    link_commands(commands)
    path = f"{folder / 'venv' / 'bin'}{os.pathsep}{commands}"
    found = [name for name in ("cc", "c++", "gcc", "g++", "clang", "clang++") if shutil.which(name, path=path)]
    if found:
        sys.exit(f"There must be no compiler, but {found} can be called.")
    return {**{name: value for name, value in os.environ.items() if name not in FORGOTTEN}, "PATH": path}


def install(wheel: Path, folder: Path, environment: dict[str, str], constraint: str | None) -> Path:
    """Install the wheel and what its tests need into an empty environment; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    command += ["--constraint", constraint] if constraint else []
    subprocess.run([*command, f"{wheel}[test]"], check=True, env=environment)
    subprocess.run([str(python), "-m", "pip", "list", "--disable-pip-version-check"], check=True, env=environment)
    return python


def main() -> int:
    """Make the room, install the wheel, run the tests; return their exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constraint")
    options, arguments = parser.parse_known_args()
    wheel = max((ROOT / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    with TemporaryDirectory(prefix="gmil-room-") as temporary:
        folder = Path(temporary)
        environment = clean_environment(folder)
        python = install(wheel, folder, environment, options.constraint)
        copy_files([p for p in tracked_files() if p != "setup.py" and not p.startswith("src/")], folder / "tree")
        (package,) = folder.glob("venv/lib/python*/site-packages/gmil")  # its examples are tests too
        command = [str(python), "tools/packages/installed.py", "tests", str(package), *arguments]
        return subprocess.run(command, check=False, env=environment, cwd=folder / "tree").returncode


if __name__ == "__main__":
    sys.exit(main())
