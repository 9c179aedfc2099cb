"""gmil learns from bags: labels belong to bags, scores are given to bags and to their instances."""
# ruff: noqa: F403

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from gmil.names import HOMES, PACKAGES, version

if TYPE_CHECKING:  # for editors and type checkers; at run time every name comes from `__getattr__`
    from typing import Any

    from gmil import checks as checks
    from gmil import conformal as conformal
    from gmil import datasets as datasets
    from gmil import engine as engine
    from gmil import heatmaps as heatmaps
    from gmil import methods as methods
    from gmil import model_selection as model_selection
    from gmil import own_methods as own_methods
    from gmil import paper as paper
    from gmil import registry as registry
    from gmil import reporting as reporting
    from gmil import transform as transform
    from gmil import video as video
    from gmil.bags import *
    from gmil.base import all_estimators as all_estimators
    from gmil.checks import *
    from gmil.datasets import fetch_elephant as fetch_elephant
    from gmil.datasets import fetch_fox as fetch_fox
    from gmil.datasets import fetch_tiger as fetch_tiger
    from gmil.datasets import fetch_trec9 as fetch_trec9
    from gmil.datasets import fetch_ucf_crime as fetch_ucf_crime
    from gmil.datasets import load_musk1 as load_musk1
    from gmil.datasets import load_musk2 as load_musk2
    from gmil.datasets import make_bags as make_bags
    from gmil.datasets import make_slides as make_slides
    from gmil.errors import BackendUnavailableError as BackendUnavailableError
    from gmil.errors import BagValidationError as BagValidationError
    from gmil.errors import DatasetError as DatasetError
    from gmil.errors import FormatError as FormatError
    from gmil.errors import GmilError as GmilError
    from gmil.errors import ModelFileError as ModelFileError
    from gmil.greedy import *
    from gmil.heatmaps import HeatMap as HeatMap
    from gmil.heatmaps import heatmap as heatmap
    from gmil.io.model_files import load as load
    from gmil.io.reading import read as read
    from gmil.io.reading import write as write
    from gmil.io.scanning import scan as scan
    from gmil.methods import *
    from gmil.model_selection.crossval import cross_validate as cross_validate
    from gmil.model_selection.result import CVResult as CVResult
    from gmil.model_selection.survival import concordance as concordance
    from gmil.model_selection.survival import integrated_brier_score as integrated_brier_score
    from gmil.model_selection.survival import kaplan_meier as kaplan_meier
    from gmil.model_selection.survival import uno_concordance as uno_concordance
    from gmil.model_selection.target_result import TargetResult as TargetResult
    from gmil.paper.python_comparison import MethodComparison as MethodComparison
    from gmil.paper.python_comparison import compare as compare
    from gmil.pipeline import Pipeline as Pipeline
    from gmil.pipeline import make_pipeline as make_pipeline
    from gmil.pipeline import save as save
    from gmil.reporting import *
    from gmil.scale import *
    from gmil.targets import *
    from gmil.transform.impute import Impute as Impute
    from gmil.transform.per_instance import PerInstance as PerInstance
    from gmil.transform.vectors import *
    from gmil.weighted import *
    from gmil.witnesses import *

    __version__: str
else:  # a list that is computed tells type checkers nothing
    __all__ = sorted(HOMES)

_RENAMED = {"experiments": "paper", "rivals": "methods"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: a public name, or a module of gmil."""
    if name == "__version__":
        found: Any = version()
    elif name in HOMES:
        found = getattr(import_module(HOMES[name]), name)
    else:
        return _module(name)
    globals()[name] = found
    return found


def _module(name: str) -> Any:
    from importlib.util import find_spec

    if name in _RENAMED:
        warnings.warn(f"gmil.{name} is now gmil.{_RENAMED[name]}.", FutureWarning, stacklevel=3)
        name = _RENAMED[name]
    if name.startswith("_") or find_spec(f"gmil.{name}") is None:  # to import gmil.__main__ would run the command
        msg = f"module 'gmil' has no attribute {name!r}"
        raise AttributeError(msg)
    return import_module(f"gmil.{name}")


def __dir__() -> list[str]:
    """Return what users may use, and nothing that this module only needs."""
    own = [name for name in globals() if name.startswith("__")]
    return sorted({*HOMES, *PACKAGES, *own, "__version__"})
