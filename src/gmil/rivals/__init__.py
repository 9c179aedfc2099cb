"""The methods that the paper compares with, and strong simple references: one file for every family."""

from __future__ import annotations

from gmil.rivals.annealing import AnnealedSVM
from gmil.rivals.apr import APR
from gmil.rivals.citation import CitationKNN
from gmil.rivals.crf import MICRF
from gmil.rivals.diverse_density import DiverseDensity
from gmil.rivals.emdd import EMDD
from gmil.rivals.encodings import VLADClassifier
from gmil.rivals.ensemble import MILEnsemble
from gmil.rivals.fisher import FisherVectorClassifier
from gmil.rivals.gaussian_process import GPMIL
from gmil.rivals.graph_kernel import GraphKernelSVM
from gmil.rivals.mica import MICA
from gmil.rivals.miles import MILES
from gmil.rivals.ppmm import PPMM
from gmil.rivals.set_kernels import SetKernelSVM
from gmil.rivals.single_instance import SingleInstance
from gmil.rivals.statistics import BagStatistics
from gmil.rivals.svm import InstanceSVM, WitnessSVM

__all__ = [
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
]
