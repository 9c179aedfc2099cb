"""Where a row was computed: versions and machine, without names of people or hosts."""

from __future__ import annotations

import json
import platform
import sys
from functools import cache
from typing import Any

from joblib import cpu_count

from gmil.engine import resolve
from gmil.names import version
from gmil.paper.runs.fingerprints import package_version

_PACKAGES = ("numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    """Return the versions that results may depend on; of PyTorch, and its CUDA, where this process has used it."""
    found = {"gmil": version(), **_of_packages()}
    torch = sys.modules.get("torch")
    return found if torch is None else {**found, "torch": str(torch.__version__)}


@cache
def _of_packages() -> dict[str, str]:
    return {**{name: package_version(name) for name in _PACKAGES}, "python": platform.python_version()}


def machine() -> dict[str, Any]:
    """Return platform, usable cores, processor, the active backend, and the GPU where this process has used one."""
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_initialized()
    return {**_of_system(), "gpu": torch.cuda.get_device_name()} if torch and on_gpu else _of_system()


@cache
def _of_system() -> dict[str, Any]:
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": cpu_count(),
        "backend": resolve("auto").name,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123  there is no such path elsewhere
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def as_columns() -> dict[str, str]:
    """Return versions and machine as columns of rows, each one line of JSON."""
    return {name: json.dumps(facts, sort_keys=True) for name, facts in as_facts().items()}


def as_facts() -> dict[str, Any]:
    """Return versions and machine as they stand at the end of a summary."""
    return {"versions": versions(), "machine": machine()}
