"""The methods that the paper compares with, and strong simple references: one file for every family."""

from __future__ import annotations

from gmil.rivals.annealing import AnnealedSVM as AnnealedSVM
from gmil.rivals.apr import APR as APR
from gmil.rivals.citation import CitationKNN as CitationKNN
from gmil.rivals.crf import MICRF as MICRF
from gmil.rivals.diverse_density import DiverseDensity as DiverseDensity
from gmil.rivals.emdd import EMDD as EMDD
from gmil.rivals.encodings import VLADClassifier as VLADClassifier
from gmil.rivals.ensemble import MILEnsemble as MILEnsemble
from gmil.rivals.fisher import FisherVectorClassifier as FisherVectorClassifier
from gmil.rivals.gaussian_process import GPMIL as GPMIL
from gmil.rivals.graph_kernel import GraphKernelSVM as GraphKernelSVM
from gmil.rivals.mica import MICA as MICA
from gmil.rivals.miles import MILES as MILES
from gmil.rivals.ppmm import PPMM as PPMM
from gmil.rivals.set_kernels import SetKernelSVM as SetKernelSVM
from gmil.rivals.single_instance import SingleInstance as SingleInstance
from gmil.rivals.statistics import BagStatistics as BagStatistics
from gmil.rivals.svm import InstanceSVM as InstanceSVM
from gmil.rivals.svm import WitnessSVM as WitnessSVM
