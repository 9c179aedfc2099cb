"""The paper's experiments: what was published and what is measured.

`run` does an experiment that is described by data, continues one that was killed, and returns every fold as a row.
"""

from __future__ import annotations

from gmil.paper.runs.parsing import load_spec, parse_spec, spec_names
from gmil.paper.runs.results import Results
from gmil.paper.runs.runner import run
from gmil.paper.runs.specification import MethodEntry, ParameterSweep, Protocol, Spec
from gmil.paper.runs.timing import Timings, measure
from gmil.paper.statistics import (
    Comparison,
    Friedman,
    accuracy_interval,
    average_ranks,
    compare,
    compare_with_best,
    critical_difference,
    friedman,
    holm,
)
from gmil.paper.tables.published import published, published_accuracy, published_seconds

__all__ = [
    "Comparison",
    "Friedman",
    "MethodEntry",
    "ParameterSweep",
    "Protocol",
    "Results",
    "Spec",
    "Timings",
    "accuracy_interval",
    "average_ranks",
    "compare",
    "compare_with_best",
    "critical_difference",
    "friedman",
    "holm",
    "load_spec",
    "measure",
    "parse_spec",
    "published",
    "published_accuracy",
    "published_seconds",
    "run",
    "spec_names",
]
