"""gmil learns from bags: labels belong to bags, scores are given to bags and to their instances."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from gmil.bags import Bags
from gmil.base import all_estimators
from gmil.datasets import (
    fetch_elephant,
    fetch_fox,
    fetch_tiger,
    fetch_trec9,
    fetch_ucf_crime,
    load_musk1,
    load_musk2,
    make_bags,
    read,
    scan,
    write,
)
from gmil.errors import (
    BackendUnavailableError,
    BagValidationError,
    DatasetError,
    FormatError,
    GmilError,
    ModelFileError,
)
from gmil.greedy import GMIL, GMILCV, DensityRatio
from gmil.io.model_files import load, register_late
from gmil.model_selection.crossval import cross_validate
from gmil.model_selection.result import CVResult
from gmil.pipeline import Pipeline, make_pipeline, save
from gmil.scale import LazyBags
from gmil.transform.impute import Impute
from gmil.transform.per_instance import PerInstance
from gmil.weighted import WeightedGMIL
from gmil.witnesses import Explanation, Witness, smooth_scores

if TYPE_CHECKING:
    from gmil.checks import DataCheck, Finding, check_data
    from gmil.methods import *  # noqa: F403
    from gmil.paper.python_comparison import MethodComparison, compare
    from gmil.reporting import Report, report
    from gmil.transform.vectors import *  # noqa: F403

try:
    __version__ = version("gmil")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "unknown"

_RIVALS = (
    "APR",
    "EMDD",
    "GPMIL",
    "MICA",
    "MICRF",
    "MILES",
    "PPMM",
    "AnnealedSVM",
    "BagStatistics",
    "CitationKNN",
    "DiverseDensity",
    "FisherVectorClassifier",
    "GraphKernelSVM",
    "InstanceSVM",
    "MILEnsemble",
    "SetKernelSVM",
    "SingleInstance",
    "VLADClassifier",
    "WitnessSVM",
)

_BAG_VECTORS = ("VLAD", "BagSummaries", "CodebookDistances", "FisherVector", "InstanceSimilarities")

__all__ = [
    "BackendUnavailableError",
    "BagValidationError",
    "Bags",
    "CVResult",
    "DataCheck",
    "DatasetError",
    "DensityRatio",
    "Explanation",
    "Finding",
    "FormatError",
    "GMIL",
    "GMILCV",
    "GmilError",
    "Impute",
    "LazyBags",
    "MethodComparison",
    "ModelFileError",
    "PerInstance",
    "Pipeline",
    "Report",
    "WeightedGMIL",
    "Witness",
    "all_estimators",
    "check_data",
    "compare",
    "cross_validate",
    "fetch_elephant",
    "fetch_fox",
    "fetch_tiger",
    "fetch_trec9",
    "fetch_ucf_crime",
    "load",
    "load_musk1",
    "load_musk2",
    "make_bags",
    "make_pipeline",
    "read",
    "report",
    "save",
    "scan",
    "smooth_scores",
    "write",
    *_BAG_VECTORS,
    *_RIVALS,
]

# Many users need none of these, and they would double the time that `import gmil` takes.
_LATE_MODULES = ("checks", "methods", "paper", "reporting")
_RENAMED_MODULES = {"experiments": "paper", "rivals": "methods"}
_LATE_NAMES = {
    "DataCheck": "gmil.checks",
    "Finding": "gmil.checks",
    "check_data": "gmil.checks",
    "MethodComparison": "gmil.paper.python_comparison",
    "compare": "gmil.paper.python_comparison",
    "Report": "gmil.reporting",
    "report": "gmil.reporting",
    **dict.fromkeys(_BAG_VECTORS, "gmil.transform.vectors"),
    **dict.fromkeys(_RIVALS, "gmil.methods"),
}
register_late("gmil.transform.vectors")
register_late("gmil.methods")


def __getattr__(name: str) -> Any:
    """Import what was put off when it is asked for."""
    if name in _RENAMED_MODULES:
        now = _RENAMED_MODULES[name]
        warnings.warn(f"gmil.{name} is now gmil.{now}.", FutureWarning, stacklevel=2)
        return import_module(f"gmil.{now}")
    if name in _LATE_MODULES:
        return import_module(f"gmil.{name}")
    if name not in _LATE_NAMES:
        msg = f"module 'gmil' has no attribute {name!r}"
        raise AttributeError(msg)
    found = globals()[name] = getattr(import_module(_LATE_NAMES[name]), name)
    return found


def __dir__() -> list[str]:
    """Return what users may use, and packages of gmil; nothing that this module only imports."""
    own = {name for name, thing in globals().items() if name.startswith("__") or f"gmil.{name}" in sys.modules}
    return sorted({*__all__, *own, *_LATE_MODULES})
