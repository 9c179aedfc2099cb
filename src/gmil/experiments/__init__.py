"""The paper's experiments: what was published and what is measured.

`run` does an experiment that is described by data, continues one that was killed, and returns every fold as a row.
"""

from __future__ import annotations

from gmil.experiments.parsing import load_spec, parse_spec, spec_names
from gmil.experiments.published import published, published_accuracy, published_seconds
from gmil.experiments.results import Results
from gmil.experiments.runner import run
from gmil.experiments.specification import MethodEntry, Protocol, Spec, Sweep
from gmil.experiments.statistics import (
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
from gmil.experiments.timing import Timings, measure

__all__ = [
    "Comparison",
    "Friedman",
    "MethodEntry",
    "Protocol",
    "Results",
    "Spec",
    "Sweep",
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
