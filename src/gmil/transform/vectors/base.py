"""What transformers of bags to vectors share.

A bag becomes rows of some tables. Rows of two pieces of a bag can be joined, so that bags are read in blocks where they
do not fit into memory; the vectors follow from the joined tables.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gmil.bags.parts import blocks_of_bags
from gmil.base import BagEstimator
from gmil.compat import StrOptions, check_feature_names_in, checks_parameters
from gmil.engine import kmeans, resolve
from gmil.errors import BagValidationError
from gmil.fold_work import EACH_ALONE, Steps
from gmil.io.model_files.schema import Array, Count, Kind
from gmil.parameters import AT_LEAST_ONE, parameter, parameters
from gmil.sampling import make_generator, sample_rows
from gmil.scale import LazyBags
from gmil.transform.scaling import SCALINGS, is_fitted_on_columns, summarize_columns
from gmil.transform.space import SpaceMixin, dense, fit_scaling
from gmil.validation import check_bags, check_lazy_bags
from gmil.witnesses.effects import vectors_without

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.scale.passes import Join
    from gmil.transform.space import Space

_BLOCK_ENTRIES = 1 << 22
"""How many numbers are worked on at once, where bags are not larger: 32 MiB in double precision."""


class BagVectorizer(SpaceMixin, TransformerMixin, BagEstimator, ABC):
    """A transformer that makes one vector of every bag.

    A class defines ``_learn``, ``_tables``, how rows of tables are joined, ``_finish`` and ``_names``.
    """

    scale: str | None
    n_jobs: int | None
    backend: str

    _steps: ClassVar[Steps] = EACH_ALONE
    _joins: tuple[Join, ...]
    """What makes one row of the rows of two pieces of a bag, for every table.

    It indexes the first axis alone, so that rows of many bags, as columns of a matrix, can be joined at once.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"scale": [StrOptions(set(SCALINGS)), None]}

    @checks_parameters
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  vectors do not depend on labels
        """Learn from training bags what vectors are made with.

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
            The training bags; a 2-D array is read as bags of one instance each.
        y : ignored
            Vectors do not depend on labels.
        """
        bags = self._check(X, reset=True)
        self._keep_parameters()
        self._learn(bags, resolve(self.backend, self.n_jobs), make_generator(getattr(self, "random_state", 0)))
        return self

    def transform(self, X: Any) -> Any:
        """Return one vector for every bag, (n_bags, n_columns).

        Parameters
        ----------
        X : Bags, LazyBags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags. `LazyBags` are read once, in blocks.
        """
        check_is_fitted(self)
        return self._vectors_of(self._check(X, reset=False), resolve(self.backend, self.n_jobs))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of every column of the vectors.

        Parameters
        ----------
        input_features : array of str or None, default=None
            Names of the features of instances; by default those that ``fit`` has seen, else x0, x1, ...
        """
        check_is_fitted(self)
        return np.array(self._names(list(check_feature_names_in(self, input_features))), dtype=object)

    def _check(self, X: Any, *, reset: bool) -> Bags | LazyBags:
        check: Any = check_lazy_bags if isinstance(X, LazyBags) else check_bags
        bags: Bags | LazyBags = check(X, estimator=self, reset=reset)
        return bags

    def _vectors_of(self, bags: Bags | LazyBags, backend: Backend) -> Floats:
        if isinstance(bags, LazyBags):
            function = functools.partial(self._block_tables, backend=resolve(backend.name, 1))
            return self._finish(bags.reduce(function, self._joins, n_threads=backend.n_threads))
        return self._finish(self._block_tables(bags, backend))

    def _vectors_without(self, bags: Bags, backend: Backend) -> Iterator[tuple[Any, Floats]]:
        """Yield instances, and for each of them the vector of its bag without it; bags of one instance have none."""

        def tables(X: Instances, offsets: Integers) -> Sequence[Floats]:
            return self._tables(self.space_.apply(X), offsets, backend)

        return vectors_without(bags, tables, self._joins, self._finish)

    def _fit_vectors(self, bags: Bags, backend: Backend, generator: np.random.Generator) -> Floats:
        """Learn from training bags in memory, and return their vectors."""
        return self._finish(self._tables(self._learn(bags, backend, generator), bags.offsets, backend))

    def _key(self, *names: str) -> Hashable:
        """Return the values of parameters, by default of all, as the key of a step of training."""
        return tuple((name, repr(getattr(self, name))) for name in names or self._get_param_names())

    def _block_tables(self, block: Bags, backend: Backend) -> Sequence[Floats]:
        return self._tables(self.space_.apply(block.instances), block.offsets, backend)

    @abstractmethod
    def _learn(self, bags: Bags | LazyBags, backend: Backend, generator: np.random.Generator) -> Instances:
        """Set what a fitted transformer has; return the instances in its space, or a sample of bags on disk."""

    @abstractmethod
    def _tables(self, X: Instances, offsets: Integers, backend: Backend) -> Sequence[Floats]:
        """Return tables with one row per bag, for instances in the space."""

    @abstractmethod
    def _finish(self, tables: Sequence[Floats]) -> Floats:
        """Return the vectors that follow from whole rows of the tables."""

    @abstractmethod
    def _names(self, features: list[str]) -> list[str]:
        """Return the name of every column of the vectors."""

    def _fit_scaling(self, bags: Bags | LazyBags, backend: Backend) -> Space:
        """Return the scaling of all training instances."""
        if not isinstance(bags, LazyBags):
            return fit_scaling(bags.instances, self.scale)
        summary = None
        if is_fitted_on_columns(self.scale):
            (summary,) = summarize_columns(bags, [np.ones(len(bags), dtype=bool)], backend)
        return fit_scaling(summary, self.scale)

    def _sample(self, bags: Bags | LazyBags, parameter: str, generator: np.random.Generator) -> Integers | None:
        """Return which instances are learnt from, at most as many as a parameter says; None means all."""
        return sample_rows(bags, np.empty(0, dtype=np.int64), getattr(self, parameter), "uniform", generator)

    def _read_sample(self, bags: LazyBags, parameter: str, generator: np.random.Generator) -> Floats:
        """Return the instances that are learnt from, of bags on disk."""
        if getattr(self, parameter) is None:
            msg = (
                f"{parameter}=None needs all instances in memory, but X is read in blocks. Pass X.load(), or a number "
                f"as {parameter}."
            )
            raise BagValidationError(msg)
        rows = self._sample(bags, parameter, generator)
        return bags.take(np.arange(bags.n_instances) if rows is None else rows)


class CodebookVectorizer(BagVectorizer):
    """A transformer that compares instances with centres or a mixture, learnt from a sample of them without labels."""

    max_iter: int
    sample_size: int | None
    random_state: Any

    _size: ClassVar[str] = "n_clusters"
    """The name of the parameter that says how large the codebook or the mixture is."""

    _space_parameters: ClassVar[tuple[str, ...]] = ("scale",)
    """The names of the parameters that the space depends on."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"sample_size": [AT_LEAST_ONE, None]}

    def _learn(self, bags: Bags | LazyBags, backend: Backend, generator: np.random.Generator) -> Instances:
        if isinstance(bags, LazyBags):
            scaling = self._fit_scaling(bags, backend)
            sample = self._read_sample(bags, "sample_size", generator)
            self.space_, instances = self._fit_space(sample, scaling, generator)
            self._fit_codebook(self._enough(instances), backend, generator)
            return instances
        self.space_, instances = self._steps.once(
            ("space", self._key(*self._space_parameters)),
            lambda: self._fit_space(bags.instances, None, generator),
            generator,
        )
        rows = self._sample(bags, "sample_size", generator)
        self._fit_codebook(self._enough(instances if rows is None else instances[rows]), backend, generator)
        return instances

    def _fit_space(
        self,
        X: Instances,
        scaling: Space | None,
        generator: np.random.Generator,  # noqa: ARG002
    ) -> tuple[Space, Any]:
        """Return the space, fitted on instances where the scaling is not known, and the instances in it."""
        space = fit_scaling(X, self.scale) if scaling is None else scaling
        return space, space.apply(X)

    def _enough(self, sample: Instances) -> Instances:
        """Refuse too few instances for what is asked."""
        asked, n_samples = getattr(self, self._size), sample.shape[0]
        if asked > n_samples:
            msg = (
                f"{self._size}={asked} is above the number of instances to learn them from, n_samples = {n_samples}. "
                "Ask for fewer."
            )
            raise BagValidationError(msg)
        return sample

    @abstractmethod
    def _fit_codebook(self, sample: Instances, backend: Backend, generator: np.random.Generator) -> None:
        """Learn the codebook or the mixture from instances in the space."""


@parameters
class CentersVectorizer(CodebookVectorizer):
    """A transformer that compares instances with the centres of k-means."""

    n_clusters: int = parameter(default=8, kw_only=False)
    n_init: int = 1
    max_iter: int = 300
    sample_size: int | None = 10_000
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "cluster_centers_": Array("K", "d"),
        "n_iter_": Count(),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_clusters": [AT_LEAST_ONE], "n_init": [AT_LEAST_ONE]}

    def _fit_codebook(self, sample: Instances, backend: Backend, generator: np.random.Generator) -> None:
        found = kmeans(
            sample,
            self.n_clusters,
            backend=backend,
            generator=generator,
            n_init=self.n_init,
            max_iter=self.max_iter,
        )
        self.cluster_centers_, self.n_iter_ = found.centers, found.n_iter


# -------------------------------------------------------------------------------- tables


def blocks_of_rows(X: Any, offsets: Integers, n_columns: int) -> Iterator[tuple[Any, Integers]]:
    """Yield the instances of some whole bags and the offsets of these, block by block, in bounded memory.

    ``n_columns`` numbers are needed for every instance.
    """
    for block in blocks_of_bags(offsets, max(1, _BLOCK_ENTRIES // max(1, n_columns))):
        start, stop = offsets[block.start], offsets[block.stop]
        yield X[start:stop], offsets[block.start : block.stop + 1] - start


def dense_blocks(X: Any, offsets: Integers) -> Iterator[tuple[Floats, Integers]]:
    """Yield dense instances of some whole bags and the offsets of these, block by block."""
    return ((dense(block), cut) for block, cut in blocks_of_rows(X, offsets, X.shape[1]))


def with_sizes(means: Floats, offsets: Integers) -> Floats:
    """Return a table of means over bags with the sizes of the bags as its last column, for `join_means`."""
    return np.column_stack([means, np.diff(offsets).astype(means.dtype)])


def join_means(one: Floats, other: Floats) -> Floats:
    """Return the means of two pieces of a bag together; each is a row of `with_sizes`."""
    joined = one + other[-1] / (one[-1] + other[-1]) * (other - one)
    joined[-1] = one[-1] + other[-1]
    return joined
