"""Kernels on plain arrays: distances, assignment, k-means, reductions over bags.

The engine knows nothing of estimators or :class:`gmil.Bags`. ``reference`` is the specification, written in
NumPy; every faster path is tested against it.
"""

from __future__ import annotations

from gmil.engine.backends import (
    BACKENDS,
    Backend,
    available_backends,
    describe_native,
    describe_torch,
    is_torch,
    resolve,
    why_not,
)
from gmil.engine.distances import closeness, column_sizes, distances, sq_differences, sq_differences_of
from gmil.engine.kmeans import GramResult, KMeansResult, gram_kmeans, gram_matrix, kmeans, kmeans_subsets
from gmil.engine.threads import n_threads, one_blas_thread

__all__ = [
    "BACKENDS",
    "Backend",
    "GramResult",
    "KMeansResult",
    "available_backends",
    "closeness",
    "column_sizes",
    "describe_native",
    "describe_torch",
    "distances",
    "gram_kmeans",
    "gram_matrix",
    "is_torch",
    "kmeans",
    "kmeans_subsets",
    "n_threads",
    "one_blas_thread",
    "resolve",
    "sq_differences",
    "sq_differences_of",
    "why_not",
]
