"""What the paper says about its density ratio and Diverse Density, checked: claims in numbers, maximisers measured."""

from __future__ import annotations

from gmil.experiments.theory.agreement import BASE, Setting, measure_agreement, settings_of, summarize
from gmil.experiments.theory.claims import COUNTER_EXAMPLES, CounterExample, Evidence
from gmil.experiments.theory.trials import Trial, run_trials

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
