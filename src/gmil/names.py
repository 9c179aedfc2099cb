"""What gmil knows of itself before anything is imported: where every public name is defined, and its version."""

from __future__ import annotations

ESTIMATORS = {
    "gmil.greedy": ("GMIL", "GMILCV", "DensityRatio"),
    "gmil.methods": (
        "ABMIL",
        "APR",
        "CLAM",
        "DSMIL",
        "EMDD",
        "GPMIL",
        "MICA",
        "MICRF",
        "MILES",
        "PPMM",
        "AnnealedSVM",
        "BagStatistics",
        "CitationKNN",
        "ConformalClassifier",
        "DiverseDensity",
        "FisherVectorClassifier",
        "GraphKernelSVM",
        "InstanceSVM",
        "MILEnsemble",
        "MINet",
        "MeanMLP",
        "SetKernelSVM",
        "SingleInstance",
        "TransMIL",
        "VLADClassifier",
        "WitnessSVM",
    ),
    "gmil.pipeline": ("Pipeline",),
    "gmil.targets": (
        "BagCox",
        "BagRegressor",
        "ClusterRegressor",
        "PrimeInstanceRegressor",
        "SingleInstanceRegressor",
        "WeightedGMILOrdinal",
        "WeightedGMILRegressor",
        "WeightedGMILSurvival",
    ),
    "gmil.transform.impute": ("Impute",),
    "gmil.transform.per_instance": ("PerInstance",),
    "gmil.transform.vectors": ("VLAD", "BagSummaries", "CodebookDistances", "FisherVector", "InstanceSimilarities"),
    "gmil.weighted": ("WeightedGMIL",),
}
"""Modules with estimators, which register themselves when they are imported, and their classes."""

_OTHERS = {
    "gmil.bags": ("Bags",),
    "gmil.base": ("all_estimators",),
    "gmil.checks": (
        "DataCheck",
        "DriftCheck",
        "Finding",
        "LabelIssues",
        "apply_corrections",
        "check_data",
        "check_drift",
        "find_label_issues",
    ),
    "gmil.datasets": (
        "fetch_elephant",
        "fetch_fox",
        "fetch_tiger",
        "fetch_trec9",
        "fetch_ucf_crime",
        "load_musk1",
        "load_musk2",
        "make_bags",
        "make_slides",
    ),
    "gmil.errors": (
        "BackendUnavailableError",
        "BagValidationError",
        "DatasetError",
        "FormatError",
        "GmilError",
        "ModelFileError",
    ),
    "gmil.heatmaps": ("HeatMap", "heatmap"),
    "gmil.io.model_files": ("load",),
    "gmil.io.reading": ("read", "write"),
    "gmil.io.scanning": ("scan",),
    "gmil.model_selection.crossval": ("cross_validate",),
    "gmil.model_selection.result": ("CVResult",),
    "gmil.model_selection.survival": (
        "concordance",
        "integrated_brier_score",
        "kaplan_meier",
        "uno_concordance",
    ),
    "gmil.model_selection.target_result": ("TargetResult",),
    "gmil.paper.python_comparison": ("MethodComparison", "compare"),
    "gmil.pipeline": ("make_pipeline", "save"),
    "gmil.reporting": ("Report", "report"),
    "gmil.scale": ("LazyBags",),
    "gmil.targets": ("ValueExplanation",),
    "gmil.witnesses": ("Explanation", "Witness", "smooth_scores"),
}

HOMES = {name: module for table in (ESTIMATORS, _OTHERS) for module, names in table.items() for name in names}
"""The module of every public name."""
PACKAGES = (
    "checks",
    "conformal",
    "datasets",
    "engine",
    "heatmaps",
    "methods",
    "model_selection",
    "paper",
    "reporting",
    "transform",
    "video",
)
"""What ``dir(gmil)`` shows besides; every other module is reached in the same way."""


def version() -> str:
    """Return the version that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gmil")
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"
