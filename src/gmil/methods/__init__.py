"""The methods that the paper compares with, and strong simple references: one file for every family."""

from __future__ import annotations

from gmil.methods.baselines.single_instance import SingleInstance as SingleInstance
from gmil.methods.baselines.statistics import BagStatistics as BagStatistics
from gmil.methods.conformal.estimator import ConformalClassifier as ConformalClassifier
from gmil.methods.crf.estimator import MICRF as MICRF
from gmil.methods.deep.attention import ABMIL as ABMIL
from gmil.methods.deep.attention import CLAM as CLAM
from gmil.methods.deep.attention import DSMIL as DSMIL
from gmil.methods.deep.pooled import MeanMLP as MeanMLP
from gmil.methods.deep.pooled import MINet as MINet
from gmil.methods.deep.trans_mil import TransMIL as TransMIL
from gmil.methods.density.apr import APR as APR
from gmil.methods.density.diverse_density import DiverseDensity as DiverseDensity
from gmil.methods.density.emdd import EMDD as EMDD
from gmil.methods.embeddings.fisher import FisherVectorClassifier as FisherVectorClassifier
from gmil.methods.embeddings.miles import MILES as MILES
from gmil.methods.embeddings.vlad import VLADClassifier as VLADClassifier
from gmil.methods.ensemble.estimator import MILEnsemble as MILEnsemble
from gmil.methods.gaussian_process.estimator import GPMIL as GPMIL
from gmil.methods.kernels.graph_kernel import GraphKernelSVM as GraphKernelSVM
from gmil.methods.kernels.ppmm import PPMM as PPMM
from gmil.methods.kernels.set_kernels import SetKernelSVM as SetKernelSVM
from gmil.methods.neighbours.citation import CitationKNN as CitationKNN
from gmil.methods.svm.annealing import AnnealedSVM as AnnealedSVM
from gmil.methods.svm.estimators import InstanceSVM as InstanceSVM
from gmil.methods.svm.estimators import WitnessSVM as WitnessSVM
from gmil.methods.svm.mica import MICA as MICA
