"""PPMM: bags as mixtures of patterns, compared by a kernel whose exponent adapts to the labels."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gmil.base import grouped_fit, register
from gmil.engine import resolve
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Choice, Kind, Number, OrMissing, OrNone
from gmil.methods.kernels.ppmm_kernels import (
    EXPONENTS,
    Adapted,
    Book,
    Patterns,
    adapt,
    compositions,
    fit_kmeans,
    fit_mixture,
    powered,
)
from gmil.methods.shared.columns import as_double
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.methods.shared.tuning import COSTS, Tuning
from gmil.methods.svm.gram import solve_svm
from gmil.parameters import ABOVE_ZERO, AT_LEAST_ONE, parameter, parameters
from gmil.sampling import sample_rows
from gmil.transform.scaling import SCALINGS
from gmil.transform.space import dense, fit_scaling
from gmil.transform.vectors.base import join_means, with_sizes
from gmil.witnesses.effects import vectors_without

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_SIZES = (100, 30)
"""What ``tune=True`` chooses the number of patterns from."""

_SCALES = ("minmax", "standard")
"""What ``tune=True`` chooses the scaling from where it is "auto"."""


class _Setting(NamedTuple):
    scale: str | None
    n_patterns: int
    assignment: str
    C: float

    @property
    def book(self) -> tuple[str | None, int]:
        """What a clustering depends on."""
        return self.scale, self.n_patterns


@register(method="ppmm")
@parameters
class PPMM(ScaledClassifier):
    """PPMM: a kernel SVM on bags as compositions of patterns (Wang, Yang & Zha).

    Instances are clustered into patterns, and a bag becomes the shares of the patterns in it. The kernel between two
    bags is the sum over patterns of the product of their shares to the power p: below 1 rare patterns count as much as
    frequent ones, above 1 the frequent ones decide. p, and the best of several clusterings, are those whose kernel
    agrees best with the labels of the training bags. A support vector machine follows.

    Parameters
    ----------
    n_patterns : int or "auto", default="auto"
        "auto" is 100, or a quarter of the training instances where that is less.
    codebook : {"kmeans", "gmm"}, default="kmeans"
        How patterns are found: k-means, or the Gaussian mixture with diagonal covariances of the original, whose
        posteriors are all but hard with many features.
    assignment : {"soft", "hard"}, default="soft"
        Whether an instance is shared between patterns by its posterior, or goes to the most likely one.
    softness : float, default=0.5
        With k-means the posterior falls as exp(-d^2 / width); the width is this times the mean squared distance
        between instances and their nearest centre.
    exponent : float or "aligned", default="aligned"
        p. "aligned" takes the one of 0.1, 0.2, ..., 3 with the largest centred alignment between kernel and labels.
    n_init : int, default=5
        Clusterings to choose from, by centred alignment.
    C : float, default=10.0
        What a unit of slack costs.
    sample_size : int or None, default=10_000
        With more training instances than this, patterns are learnt on a sample. None: always all.
    scale : {"auto", None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="auto"
        Scaling of the features, fitted on the training instances, as in `gmil.GMIL`. "auto" is "minmax", or with
        ``tune`` the better of "minmax" and "standard".
    tune : bool, default=False
        Choose the scaling, ``n_patterns`` from 30 and 100, ``assignment``, and C from 1, 10, 100 by accuracy on five
        folds of the training bags, drawn twice.
    random_state : int, RandomState instance or None, default=None
        Seed of sampling, clusterings and folds.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_patterns, n_features)
        The patterns, in the scaled space.
    pattern_weights_ : array of shape (n_patterns,)
        The decision is the sum of these times the shares to the power p, at length one, plus ``intercept_``.
    intercept_ : float
    exponent_ : float
        p.
    alignment_ : float
        The centred alignment of the kernel with the labels of the training bags.
    scale_, assignment_, C_ : str, str and float
        The values in use.
    width_ : float
        Of the posterior with k-means.
    log_shares_, variances_ : arrays of shape (n_patterns,) and (n_patterns, n_features), or None
        The Gaussian mixture.

    Notes
    -----
    Training costs that of ``n_init`` clusterings; bags are small vectors afterwards.

    References
    ----------
    Wang, H.-Y., Yang, Q. and Zha, H., "Adaptive p-Posterior Mixture-Model Kernels for Multiple Instance Learning",
    ICML 2008.

    Examples
    --------
    >>> from gmil import PPMM, make_bags
    >>> bags, y = make_bags(80, separation=8, random_state=0, return_X_y=True)
    >>> model = PPMM(random_state=0).fit(bags[:60], y[:60])
    >>> model.score(bags[60:], y[60:]) > 0.8
    True
    """

    n_patterns: int | str = parameter(default="auto", rules=[AT_LEAST_ONE, {"auto"}], kw_only=False)
    codebook: str = parameter(default="kmeans", rules=[{"kmeans", "gmm"}])
    assignment: str = parameter(default="soft", rules=[{"soft", "hard"}])
    softness: float = parameter(default=0.5, rules=[ABOVE_ZERO])
    exponent: float | str = parameter(default="aligned", rules=[ABOVE_ZERO, {"aligned"}])
    n_init: int = parameter(default=5, rules=[AT_LEAST_ONE])
    C: float = 10.0
    sample_size: int | None = parameter(default=10_000, rules=[AT_LEAST_ONE, None])
    scale: str | None = parameter(default="auto", rules=[{"auto", *SCALINGS}, None])
    tune: bool = False
    n_jobs: int | None = None
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "cluster_centers_": Array("K", "d"),
        "pattern_weights_": Array("K"),
        "intercept_": Number(),
        "exponent_": Number(above=0),
        "alignment_": Number(),
        "scale_": Choice(*SCALINGS, None),
        "assignment_": Choice("soft", "hard"),
        "C_": OrMissing(Number(above=0)),
        "width_": Number(at_least=0),
        "log_shares_": OrNone(Array("K", infinite=True)),
        "variances_": OrNone(Array("K", "d", above=0)),
    }

    _two_classes = True
    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        tuning = Tuning.of(training, self.tune, repeats=2)
        settings = self._settings(training.bags.n_instances, tuned=bool(tuning.folds))
        books = self._books(training, settings)
        setting = self._choose(settings, books, tuning)
        chosen = books[setting.book]
        shares = chosen.shares[setting.assignment]
        adapted = self._adapt(shares, training.positive)
        features = powered(shares[adapted.restart], adapted.exponent)
        self.pattern_weights_, self.intercept_ = self._machine(features, training.positive, setting.C)
        self.space_ = chosen.space
        self.scale_, self.assignment_, self.C_ = setting.scale, setting.assignment, setting.C
        self.exponent_, self.alignment_ = adapted.exponent, adapted.alignment
        self.cluster_centers_, self.width_, self.log_shares_, self.variances_ = chosen.patterns[adapted.restart]

    def _books(self, training: Training, settings: list[_Setting]) -> dict[tuple[str | None, int], Book]:
        """Return the clusterings that the settings need, with the shares of their patterns in every bag."""
        bags, backend, generator = training.bags, training.backend, training.generator
        rows = sample_rows(bags, training.labels, self.sample_size, "uniform", generator)
        assignments = dict.fromkeys(setting.assignment for setting in settings)
        found = {}
        for scale, size in dict.fromkeys(setting.book for setting in settings):
            space = fit_scaling(bags.instances, scale)
            instances = as_double(space.apply(bags.instances))
            sample = instances if rows is None else instances[rows]
            patterns = [self._fit_patterns(sample, size, backend, generator) for _ in range(self.n_init)]
            shares = {
                how: [compositions(instances, bags.offsets, each, how, backend) for each in patterns]
                for how in assignments
            }
            found[scale, size] = Book(space, patterns, shares)
        return found

    def _settings(self, n_instances: int, *, tuned: bool) -> list[_Setting]:
        most = min(n_instances, self.sample_size or n_instances)
        if not isinstance(self.n_patterns, str) and self.n_patterns > most:
            msg = f"n_patterns={self.n_patterns} is above the number of instances to cluster, {most}. Ask for fewer."
            raise BagValidationError(msg)
        scales = _SCALES if self.scale == "auto" else (self.scale,)
        if tuned:
            sizes = dict.fromkeys(min(size, most) for size in _SIZES)
            return [_Setting(*values) for values in itertools.product(scales, sizes, ("soft", "hard"), COSTS)]
        automatic = min(100, max(1, most // 4))
        size = automatic if isinstance(self.n_patterns, str) else self.n_patterns
        return [_Setting(scales[0], size, self.assignment, self.C)]

    def _choose(self, settings: list[_Setting], books: dict[tuple[str | None, int], Book], tuning: Tuning) -> _Setting:
        known: dict[tuple[Any, ...], Adapted] = {}  # settings that differ in C share restart and exponent

        def decide(setting: _Setting, test: Booleans) -> Floats:
            shares, positive = books[setting.book].shares[setting.assignment], tuning.labels[~test] == 1
            key = (setting.book, setting.assignment, test.tobytes())
            if key not in known:
                known[key] = self._adapt([h[~test] for h in shares], positive)
            features = powered(shares[known[key].restart], known[key].exponent)
            weights, intercept = self._machine(features[~test], positive, setting.C)
            return np.asarray(features[test] @ weights + intercept)

        return tuning.choose(settings, settings[0], decide)

    def _fit_patterns(
        self, instances: Instances, size: int, backend: Backend, generator: np.random.Generator
    ) -> Patterns:
        if self.codebook == "kmeans":
            return fit_kmeans(instances, size, self.softness, backend, generator)
        return fit_mixture(dense(instances), size, backend, generator)

    def _adapt(self, shares: list[Floats], positive: Booleans) -> Adapted:
        """Choose restart and exponent."""
        return adapt(shares, positive, EXPONENTS if isinstance(self.exponent, str) else (self.exponent,))

    def _machine(self, features: Floats, positive: Booleans, C: float) -> tuple[Floats, float]:
        """Train on shares to a power, and return the weights of the patterns and the intercept."""
        dual, intercept = solve_svm(features @ features.T, positive, np.full(len(features), C))
        return features.T @ dual, intercept

    def _decide(self, X: Any) -> Floats:
        bags = self._check_new(X)
        return self._decide_shares(self._shares(bags.instances, bags.offsets))

    def _decide_without(self, bags: Bags) -> Iterator[tuple[Any, Floats]]:
        def tables(X: Instances, offsets: Integers) -> list[Floats]:
            return [with_sizes(self._shares(X, offsets), offsets)]

        for rows, shares in vectors_without(bags, tables, [join_means], lambda found: found[0][:, :-1]):
            yield rows, self._decide_shares(shares)

    def _decision_of_nothing(self) -> float:
        return self.intercept_

    def _shares(self, instances: Instances, offsets: Integers) -> Floats:
        """Return how much every bag is of every pattern, (n_bags, n_patterns)."""
        book = Patterns(self.cluster_centers_, self.width_, self.log_shares_, self.variances_)
        scaled = as_double(self._scaled(instances))
        return compositions(scaled, offsets, book, self.assignment_, resolve("auto", self.n_jobs))

    def _decide_shares(self, shares: Floats) -> Floats:
        return np.asarray(powered(shares, self.exponent_) @ self.pattern_weights_ + self.intercept_)
