"""What the paper says about its density ratio and Diverse Density, checked: claims in numbers, maximisers measured."""

from __future__ import annotations

from gmil.paper.theory.agreement import BASE, Setting, measure_agreement, settings_of, summarize
from gmil.paper.theory.claims import COUNTER_EXAMPLES, CounterExample, Evidence
from gmil.paper.theory.trials import Trial, run_trials

__all__ = [
    "BASE",
    "COUNTER_EXAMPLES",
    "CounterExample",
    "Evidence",
    "Setting",
    "Trial",
    "measure_agreement",
    "run_trials",
    "settings_of",
    "summarize",
]
