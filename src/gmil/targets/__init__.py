"""More than classes: values, ordered grades and times to an event, by stacked views and by references."""

from __future__ import annotations

from gmil.targets.cluster_regression import ClusterRegressor
from gmil.targets.cox import BagCox
from gmil.targets.explanation import ValueExplanation
from gmil.targets.ordinal import WeightedGMILOrdinal
from gmil.targets.prime_instance import PrimeInstanceRegressor
from gmil.targets.references import BagRegressor, SingleInstanceRegressor
from gmil.targets.regression import WeightedGMILRegressor
from gmil.targets.survival import WeightedGMILSurvival

__all__ = [
    "BagCox",
    "BagRegressor",
    "ClusterRegressor",
    "PrimeInstanceRegressor",
    "SingleInstanceRegressor",
    "ValueExplanation",
    "WeightedGMILOrdinal",
    "WeightedGMILRegressor",
    "WeightedGMILSurvival",
]
