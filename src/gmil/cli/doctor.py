"""``gmil doctor``: what runs here, and how."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

import gmil
from gmil.cli.console import print_table
from gmil.cli.options import json_option

_PACKAGES = ("gmil", "numpy", "scipy", "scikit-learn", "pyarrow", "narwhals", "safetensors", "skops")
_EXTRAS = ("pandas", "polars", "dask", "distributed", "av")


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Show versions, the active backend, threads, BLAS and where data is kept."""
    found = examine()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    print_table(["", "value"], [[name, as_text(value)] for name, value in flat(found).items()], text_columns=2)


def examine() -> dict[str, Any]:
    """Return everything that ``gmil doctor`` shows."""
    from gmil.engine.threads import usable_cores

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "backend": gmil.engine.resolve("auto").name,
        "backends": gmil.engine.available_backends(),
        "native": gmil.engine.describe_native(),
        "torch": gmil.engine.describe_torch(),
        "cores": usable_cores(),
        "blas": blas_libraries(),
        "data_home": str(gmil.datasets.data_home()),
        "versions": {name: _version(name) for name in (*_PACKAGES, *_EXTRAS)},
    }


def flat(found: dict[str, Any]) -> dict[str, Any]:
    """Return one value a line; a part of something is named with it, but for the versions of packages.

    >>> flat({"cores": 2, "native": {"simd": "avx2"}, "versions": {"numpy": "2.0"}})
    {'cores': 2, 'native, simd': 'avx2', 'numpy': '2.0'}
    """
    lines: dict[str, Any] = {}
    for name, value in found.items():
        parts = value if isinstance(value, dict) else {"": value}
        lines |= {
            (part if name == "versions" else ", ".join(filter(None, [name, part]))): parts[part] for part in parts
        }
    return lines


def as_text(value: Any) -> str:
    """Return a value as people read it.

    >>> as_text(True), as_text(["a", "b"]), as_text([]), as_text(None)
    ('yes', 'a, b', 'none', 'none')
    """
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def blas_libraries() -> list[str]:
    """Return the BLAS libraries that NumPy and SciPy loaded, with their threads."""
    from threadpoolctl import threadpool_info

    return [
        f"{pool['internal_api']} {pool.get('version') or ''} (threads: {pool['num_threads']})"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
