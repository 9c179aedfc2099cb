"""gmil learns from bags: labels belong to bags, scores are given to bags and to their instances."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from gmil.bags import Bags
from gmil.base import all_estimators
from gmil.classifiers import GMIL, GMILCV, DensityRatio, Explanation, WeightedGMIL
from gmil.cv_result import CVResult
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
from gmil.experiments.trust import DataCheck, Finding, check_data
from gmil.model_selection import cross_validate
from gmil.persistence import load
from gmil.preprocessing import PerInstance
from gmil.reporting import Report, report
from gmil.rivals import *  # noqa: F403  one list of names, kept where the classes are
from gmil.rivals import __all__ as _rivals
from gmil.scale import LazyBags

try:
    __version__ = version("gmil")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "unknown"

__all__ = [
    "GMIL",
    "GMILCV",
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
    "GmilError",
    "LazyBags",
    "ModelFileError",
    "PerInstance",
    "Report",
    "WeightedGMIL",
    "all_estimators",
    "check_data",
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
    "read",
    "report",
    "scan",
    "write",
    *_rivals,
]
