"""Where a row was computed: versions and machine, without names of people or hosts."""

from __future__ import annotations

import json
import platform
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from joblib import cpu_count

from gmil.engine import resolve
from gmil.names import version
from gmil.paper.runs.fingerprints import package_version

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_PACKAGES = ("numpy", "scipy", "scikit-learn")


@cache
def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    found = {"gmil": version(), **{name: package_version(name) for name in _PACKAGES}}
    return {**found, "python": platform.python_version()}


@cache
def machine() -> dict[str, Any]:
    """Return platform, usable cores, processor and the active backend."""
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": cpu_count(),
        "backend": resolve("auto").name,
    }


def uses_torch(estimator: BaseEstimator) -> bool:
    """Tell whether an estimator computes with PyTorch: a network, or one whose backend it is."""
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    if any(base.__module__.startswith("gmil.methods.deep.") for step in steps for base in type(step).__mro__):
        return True
    return any(str(v).startswith("torch") for k, v in estimator.get_params().items() if k.endswith("backend"))


def _with_torch(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts with the version of PyTorch, and the GPU where this process has used one."""
    torch = sys.modules.get("torch")
    if torch is None:
        return facts
    found = {**facts, "versions": {**facts["versions"], "torch": str(torch.__version__)}}
    if torch.cuda.is_initialized():
        found["machine"] = {**facts["machine"], "gpu": torch.cuda.get_device_name()}
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123  there is no such path elsewhere
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def as_columns(estimator: BaseEstimator | None = None) -> dict[str, str]:
    """Return versions and machine as columns of the rows of an estimator, each one line of JSON."""
    facts = as_facts()
    if estimator is not None and uses_torch(estimator):
        facts = _with_torch(facts)
    return {name: json.dumps(of, sort_keys=True) for name, of in facts.items()}


def as_facts() -> dict[str, Any]:
    """Return versions and machine as they stand at the end of a summary."""
    return {"versions": versions(), "machine": machine()}
