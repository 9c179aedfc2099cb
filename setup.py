"""Build the compiled kernels, and source archives that are the same each time.

The rest of the package is described in ``pyproject.toml``. Where there is no compiler the extension is left out, the
install succeeds, and the NumPy reference runs.
"""

from __future__ import annotations

import gzip
import os
import platform
import sys
import sysconfig
import tarfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import CompileError

NATIVE = Path("src/gmil/engine/native")
COMMON = ["dispatch", "empty", "histograms", "margin_program", "memory", "threads", "variant_baseline"]

# GMIL_ABI3=1, for wheels, builds one binary for this version of Python and all later ones (the limited API). An empty
# call takes half a microsecond longer then, what kernels compute no longer. Free-threaded Python has none.
OLDEST_PYTHON = (3, 11)
ABI3 = os.environ.get("GMIL_ABI3") == "1" and not sysconfig.get_config_var("Py_GIL_DISABLED")

# Instructions that one file alone may use; the choice between the files is made at run time.
VARIANTS = {
    "variant_avx2": ["-mavx2", "-mfma"],
    "variant_avx512": ["-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mavx2", "-mfma"],
}

UNIX_FLAGS = [
    "-std=c++17",
    "-O3",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-g0",
    "-pthread",
]
MSVC_FLAGS = ["/std:c++17", "/O2", "/EHsc"]
MSVC_VARIANTS = {"variant_avx2": ["/arch:AVX2"]}  # of wider vectors it compiles an empty table


def variant_flags(name: str, *, msvc: bool) -> list[str]:
    """Return the flags of a variant, or none on a processor that is not x86."""
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"} and sys.platform != "darwin":
        return []
    if msvc:
        return MSVC_VARIANTS.get(name, [])
    if sys.platform == "darwin":  # one build may be for two architectures
        return [part for flag in VARIANTS[name] for part in ("-Xarch_x86_64", flag)]
    return VARIANTS[name]


class BuildKernels(build_ext):
    """Compile each variant with its own flags."""

    def build_extension(self, ext: Extension) -> None:
        """Compile the variants first; the rest of the extension follows as usual."""
        msvc = self.compiler.compiler_type == "msvc"
        sanitizers = os.environ.get("GMIL_SANITIZE")
        flags = MSVC_FLAGS if msvc else UNIX_FLAGS
        if sanitizers:
            flags = [*flags, "-g", "-O1", "-fno-omit-frame-pointer", f"-fsanitize={sanitizers}"]
            flags += ["-fno-sanitize-recover=all"]
            ext.extra_link_args = [*ext.extra_link_args, f"-fsanitize={sanitizers}"]
        if not msvc:
            ext.extra_link_args = [*ext.extra_link_args, "-pthread"]
        ext.extra_compile_args = [*ext.extra_compile_args, *flags]
        ext.extra_objects = [
            *ext.extra_objects,
            *(self._compile_variant(name, variant_flags(name, msvc=msvc), flags) for name in VARIANTS),
        ]
        super().build_extension(ext)

    def _compile_variant(self, name: str, own: list[str], flags: list[str]) -> str:
        source = str(NATIVE / "cpp" / f"{name}.cpp")
        try:
            objects = self.compiler.compile(
                [source], output_dir=self.build_temp, extra_postargs=[*flags, *own], depends=headers()
            )
        except CompileError:
            if not own:
                raise
            return self._compile_variant(name, [], flags)  # a compiler that does not know the flags
        return str(objects[0])


class ReproducibleSdist(sdist):
    """Write the same bytes for the same files, where SOURCE_DATE_EPOCH tells the time that all of them get."""

    def make_archive(self, base_name: str, format: str, **options: str | None) -> str:  # noqa: A002  its name there
        """Pack the folder without owners, in the order of names, as a .tar.gz."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, **options)

        def settled(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = int(epoch)
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        path = Path(f"{base_name}.tar.gz")
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            path.open("wb") as raw,
            gzip.GzipFile("", "wb", mtime=int(epoch), fileobj=raw) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(options["base_dir"], filter=settled)  # in the order of names
        return str(path)


def headers() -> list[str]:
    """Return the files whose change makes everything compile again."""
    return sorted(str(path) for path in (NATIVE / "cpp").glob("*.hpp"))


def extensions() -> list[Extension]:
    """Return the one extension, or nothing where Cython is missing."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        sys.stderr.write("gmil: Cython is missing, the compiled kernels are left out.\n")
        return []
    kernels = Extension(
        "gmil.engine.native._kernels",
        sources=[
            str(NATIVE / "_kernels.pyx"),
            *(str(NATIVE / "cpp" / f"{name}.cpp") for name in COMMON),
        ],
        include_dirs=[str(NATIVE)],
        depends=headers(),
        language="c++",
        py_limited_api=ABI3,
        define_macros=[("Py_LIMITED_API", "0x{:02X}{:02X}0000".format(*OLDEST_PYTHON))] if ABI3 else [],
    )
    found: list[Extension] = cythonize([kernels], build_dir="build/cython", language_level=3)
    for extension in found:  # said here, because cythonize makes new objects and forgets it
        extension.optional = True
    return found


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildKernels, "sdist": ReproducibleSdist},
    options={"bdist_wheel": {"py_limited_api": "cp{}{}".format(*OLDEST_PYTHON)}} if ABI3 else {},
)
