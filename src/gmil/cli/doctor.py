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
_EXTRAS = ("pandas", "polars", "av")


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Show versions, the active backend, threads, BLAS and where data is kept."""
    found = examine()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    flat = {**{k: v for k, v in found.items() if k != "versions"}, **found["versions"]}
    print_table(["", "value"], [[name, str(value)] for name, value in flat.items()])


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


def blas_libraries() -> list[str]:
    """Return the BLAS libraries that NumPy and SciPy loaded, with their threads."""
    from threadpoolctl import threadpool_info

    return [
        f"{pool['internal_api']} {pool.get('version') or ''}, {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
