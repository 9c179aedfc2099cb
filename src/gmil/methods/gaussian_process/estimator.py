"""GP-MIL: a Gaussian process on instances, seen through the soft maximum of every bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit

from gmil.base import register
from gmil.engine import resolve
from gmil.engine.sparse_rows import filled_columns, in_all_columns
from gmil.errors import BagValidationError
from gmil.io.model_files.schema import Array, Count, Either, Kind, Number
from gmil.methods.gaussian_process.evidence import Fit, Settings, TrainingSet, fit_posterior, maximise_evidence
from gmil.methods.gaussian_process.gram import Kernel
from gmil.methods.gaussian_process.inducing import Basis, choose_basis, thin_bags
from gmil.methods.gaussian_process.prediction import BagMoments, Posterior
from gmil.methods.shared.columns import as_double
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.parameters import ABOVE_ZERO, AT_LEAST_ONE, NOT_NEGATIVE, parameter, parameters
from gmil.transform.widths import median_gamma

if TYPE_CHECKING:
    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances

_MOST_WITHOUT_INDUCING = 2000
_AUTOMATIC_INDUCING = 400


@register(method="gp-mil")
@parameters
class GPMIL(ScaledClassifier):
    """GP-MIL: a Gaussian process on instances, trained on labels of bags (Kim & De la Torre).

    Every instance has a hidden value f, smooth in its features: a Gaussian process with the covariance
    ``amplitude^2 exp(-d^2 / (2 length_scale^2)) + offset^2``. A bag has the soft maximum of its values,
    ``log(mean(exp(sharpness f))) / sharpness``, and is positive with the logistic function of that as its probability.
    The parameters of the covariance and the sharpness maximise the approximate evidence of the training labels: nothing
    is left to choose by cross-validation, and probabilities come with a variance.

    Parameters
    ----------
    optimize : bool, default=True
        Maximise the evidence over amplitude, offset, sharpness and length scale, from the values given; a weak prior
        keeps their logarithms within a few units of these. False: keep the values.
    ard : bool, default=False
        A length scale for every feature, found after one for all; a long one switches its feature off.
    amplitude : float, default=3.0
        How far values of instances vary, on the scale of log-odds.
    length_scale : float, array of shape (n_features,) or "median", default="median"
        How far apart instances are that vary independently. "median" is the median distance between two training
        instances, over the root of two. An array needs ``ard=True``.
    offset : float, default=1.0
        How far the level that all instances share may be from zero. At 0 it is fixed at zero.
    sharpness : float, default=1.0
        How much the soft maximum is a maximum: near 0 it is the mean of the bag, far above 1 its maximum.
    n_inducing : int, "auto" or None, default="auto"
        With more training instances than this, that many centres of k-means stand for them. "auto" uses 400 centres
        above 2000 instances. None: always all instances.
    sample_size : int or None, default=20_000
        With more training instances than this, the evidence is maximised on a sample of about that size, the same
        share of every bag. The posterior is that of all instances. None: no sample.
    max_iter : int, default=30
        Iterations of L-BFGS on the evidence at most.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of distances and of k-means.
    random_state : int, RandomState instance or None, default=None
        Seed of the inducing points, of the sample and of the instances that the median width is estimated on.

    Attributes
    ----------
    amplitude_, offset_, sharpness_ : float
        The values in use.
    length_scales_ : array of shape (1,) or (n_features,)
        The length scale, or one for every feature.
    log_evidence_ : float
        The logarithm of the approximate evidence, log p(y).
    basis_ : array of shape (n_basis, n_features)
        Distinct training instances or inducing points, scaled.
    weights_ : array of shape (n_basis,)
        The mean of f(x) is the sum of these times the covariance of x and a point of the basis.
    variance_root_ : array of shape (n_basis, min(n_basis, n_bags))
        What the training labels take from the covariance: k(x, basis) times this times its transpose times k(basis, z).
    n_iter_ : int
        Iterations of L-BFGS, at least 1.

    Notes
    -----
    Decisions are log-odds, with the variance of the soft maximum taken into account.

    The posterior is Gaussian around its mode, with the expected curvature of the likelihood. One evaluation of the
    evidence and its gradient takes some tens of products, O(N^2) each with all N distinct instances and O(N M) with M
    inducing points, beside O(M^3) and what is cubic in the number of bags; memory is that of some matrices N x N or
    N x M.

    References
    ----------
    Kim, M. and De la Torre, F., "Gaussian Processes Multiple Instance Learning", ICML 2010.

    Examples
    --------
    >>> from gmil import GPMIL, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = GPMIL(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.9
    True
    >>> model.predict_proba(bags[80:]).shape, model.predict_variance(bags[80:]).shape
    ((20, 2), (20,))
    """

    optimize: bool = parameter(default=True, rules=["boolean"])
    ard: bool = parameter(default=False, rules=["boolean"])
    amplitude: float = parameter(default=3.0, rules=[ABOVE_ZERO])
    length_scale: Any = parameter(default="median", rules=[ABOVE_ZERO, "array-like", {"median"}])
    offset: float = parameter(default=1.0, rules=[NOT_NEGATIVE])
    sharpness: float = parameter(default=1.0, rules=[ABOVE_ZERO])
    n_inducing: int | str | None = parameter(default="auto", rules=[AT_LEAST_ONE, {"auto"}, None])
    sample_size: int | None = parameter(default=20_000, rules=[AT_LEAST_ONE, None])
    max_iter: int = 30
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "amplitude_": Number(at_least=0),
        "offset_": Number(at_least=0),
        "sharpness_": Number(above=0),
        "length_scales_": Either(Array(1, above=0), Array("d", above=0)),
        "log_evidence_": Number(infinite=True),
        "basis_": Array("M", "d"),
        "weights_": Array("M"),
        "variance_root_": Array("M", "r"),
        "n_iter_": Count(),
    }

    _two_classes = True

    def _learn(self, training: Training) -> None:
        """Choose the covariance by its evidence and find the posterior of the instances."""
        bags, backend, generator = training.bags, training.backend, training.generator
        instances = as_double(self._fit_scaled(bags))
        # The basis is zero where all instances are, and with one length scale for all such columns say nothing.
        filled = None if self.ard or np.ndim(self.length_scale) else filled_columns(instances)
        instances = instances if filled is None else instances[:, filled]
        start = self._start(instances, backend, generator)
        basis = choose_basis(instances, self._most_points(bags.n_instances), backend, generator)
        data = TrainingSet(instances, bags.offsets, training.positive.astype(np.float64), basis)
        fit, self.n_iter_ = self._fit_evidence(data, start, backend, generator)
        self.amplitude_, self.offset_, self.length_scales_ = fit.settings.kernel
        self.sharpness_, self.log_evidence_ = fit.settings.sharpness, fit.log_evidence
        self.basis_, self.weights_, self.variance_root_ = Posterior.of(fit, fit.gram.basis)[2:]
        self.basis_ = in_all_columns(self.basis_, filled, bags.n_features)

    def _decide(self, X: Any) -> Floats:
        """Return the log-odds of every bag, (n_bags,), with the variance of its soft maximum taken into account."""
        return self._moments(X).log_odds

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of both classes for every bag, (n_bags, 2), averaged over the posterior.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        decisions = self.decision_function(X)
        return np.column_stack([expit(-decisions), expit(decisions)])

    def predict_variance(self, X: Any) -> Floats:
        """Return the variance of the soft maximum of every bag, (n_bags,): how unsure its log-odds are.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        """
        return self._moments(X).variances

    def score_instances(self, X: Any, *, return_std: bool = False) -> Any:
        """Return the mean of the value f of every instance given the training labels.

        Parameters
        ----------
        X : Bags, list of 2-D arrays, 3-D array, or 2-D array
            Bags of the same features as the training bags.
        return_std : bool
            Return the standard deviations too.

        Returns
        -------
        array of shape (n_instances,), or two of them
            Aligned with the instances of all bags, one bag after the other.
        """
        bags, instances = self._new_scaled(X)
        backend = resolve(self.backend, self.n_jobs)
        means, deviations = self._posterior().instances(as_double(instances), bags.offsets, backend, return_std)
        return (means, deviations) if return_std else means

    def _fit_evidence(
        self, data: TrainingSet, start: Settings, backend: Backend, generator: np.random.Generator
    ) -> tuple[Fit, int]:
        """Return the posterior under the best settings, and how many steps led to them."""
        if not self.optimize:
            return fit_posterior(data.merged(), start, backend), 1
        rows, offsets = thin_bags(data.offsets, self.sample_size, generator)
        basis = data.basis if data.basis.inducing else Basis(data.basis.points[rows], inducing=False)
        sample = data._replace(X=data.X[rows], offsets=offsets, basis=basis).merged()
        fit, n_steps = self._maximise(sample, start, backend)
        return (fit if len(rows) == data.X.shape[0] else fit_posterior(data.merged(), fit.settings, backend)), n_steps

    def _maximise(self, data: TrainingSet, start: Settings, backend: Backend) -> tuple[Fit, int]:
        """Maximise the evidence; with a length scale for every feature after one for all."""
        steps = 0
        if self.ard and np.ndim(self.length_scale) == 0:
            alike = start._replace(kernel=start.kernel._replace(length_scales=start.kernel.length_scales[:1]))
            fit, steps = maximise_evidence(data, alike, backend, self.max_iter)
            start = fit.settings.for_each(data.X.shape[1])
        fit, more_steps = maximise_evidence(data, start, backend, self.max_iter)
        return fit, steps + more_steps

    def _moments(self, X: Any) -> BagMoments:
        bags, instances = self._new_scaled(X)
        return self._posterior().bags(as_double(instances), bags.offsets, resolve(self.backend, self.n_jobs))

    def _posterior(self) -> Posterior:
        kernel = Kernel(self.amplitude_, self.offset_, self.length_scales_)
        return Posterior(kernel, self.sharpness_, self.basis_, self.weights_, self.variance_root_)

    def _most_points(self, n_instances: int) -> int | None:
        if not isinstance(self.n_inducing, str):
            return self.n_inducing
        return None if n_instances <= _MOST_WITHOUT_INDUCING else _AUTOMATIC_INDUCING

    def _start(self, instances: Instances, backend: Backend, generator: np.random.Generator) -> Settings:
        """Return the parameters as given, the length scale as one number or as one for every feature."""
        lengths: Any = self.length_scale
        if isinstance(lengths, str):
            lengths = np.sqrt(0.5 / median_gamma(instances, backend, generator))
        lengths, n_features = np.asarray(lengths, dtype=np.float64), instances.shape[1]
        if lengths.ndim > 0:
            self._check_lengths(lengths, n_features)
        start = Settings(Kernel(self.amplitude, self.offset, np.atleast_1d(lengths)), self.sharpness)
        return start.for_each(n_features) if self.ard else start

    def _check_lengths(self, lengths: Floats, n_features: int) -> None:
        if lengths.shape != (n_features,) or not (np.isfinite(lengths) & (lengths > 0)).all():
            msg = f"length_scale must be a positive number, or {n_features} of them, one for every feature."
            raise BagValidationError(msg)
        if not self.ard:
            msg = "length_scale has a value for every feature, but ard=False asks for one in all. Pass ard=True."
            raise BagValidationError(msg)
