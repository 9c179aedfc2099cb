"""Bags to vectors: transformers that make one row of numbers of every bag, for any classifier of scikit-learn.

``base`` says what they share: bags in memory or read in blocks, names of columns; every other module is one of them.
"""

from __future__ import annotations

from gmil.transform.vectors.base import BagVectorizer as BagVectorizer
from gmil.transform.vectors.distances import CodebookDistances
from gmil.transform.vectors.fisher import FisherVector
from gmil.transform.vectors.similarities import InstanceSimilarities
from gmil.transform.vectors.summaries import BagSummaries
from gmil.transform.vectors.vlad import VLAD

__all__ = ["VLAD", "BagSummaries", "CodebookDistances", "FisherVector", "InstanceSimilarities"]
