"""Support vector machines on kernels between bags: the normalised set kernel and the statistic kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import config_context

from gmil.bags import Bags
from gmil.base import grouped_fit, register
from gmil.engine import resolve
from gmil.engine.sparse_rows import sparse_extremes
from gmil.io.model_files.schema import Array, Kind, Number, Offsets, OrMissing, Rows
from gmil.methods.kernels.bag_kernels import (
    InstanceKernel,
    kernel_width,
    mean_kernels,
    own_kernels,
    own_kernels_without,
)
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.methods.shared.sparse_parts import from_parts, to_parts
from gmil.methods.shared.tuning import KernelSetting, Tuning, kernel_settings
from gmil.methods.svm.gram import solve_svm
from gmil.parameters import AT_LEAST_ONE, NOT_NEGATIVE, parameter, parameters
from gmil.transform.space import fitted_space
from gmil.transform.vectors.summaries import summaries_without, summarize
from gmil.witnesses.effects import spans_of_several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_GAMMA_FACTORS = (0.25, 1.0, 4.0, 16.0)
_C_FACTORS = (0.1, 1.0, 10.0)
_BLOCK_ENTRIES = 1 << 22


class Machine(NamedTuple):
    """Support vectors and their weights, for one problem of two classes or for every class against the others."""

    support: Integers  # (n_support,)
    weights: Floats  # (n_support, n_problems)
    intercepts: Floats  # (n_problems,)


@register(method="nsk", variants={"stk": {"kernel": "stk", "scale": "standard", "tune": False}})
@parameters
class SetKernelSVM(ScaledClassifier):
    """SVM on a kernel between bags: normalised set kernel (NSK) or statistic kernel (STK) (Gartner et al.).

    NSK compares two bags by the mean of a kernel over all pairs of their instances, which is the product of their
    means in the space of that kernel. STK compares the vectors of the smallest and largest value of every feature.
    On the command line they are ``nsk`` and ``stk``; the latter has ``scale="standard"`` and ``tune=False``.

    Parameters
    ----------
    kernel : {"nsk", "stk"}, default="nsk"
        The mean over pairs of instances, or the kernel on [min, max] of the bag.
    instance_kernel : {"rbf", "poly", "linear"}, default="rbf"
        exp(-gamma d^2), (gamma x.z + coef0)^degree, or x.z, between instances (with "stk" between [min, max]).
    gamma : float or "median", default="median"
        "median" is one over the median squared distance between two training instances (two vectors [min, max]).
    degree : int, default=2
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    normalization : {"length", "size"}, default="length"
        What the sum over pairs is divided by: the lengths of the two bags in the space of the kernel, so that every
        bag has length one and C means the same for bags that are tight and bags that are spread; or their sizes.
    C : float, default=10.0
        The price of a training error.
    scale : {None, "standard", "minmax", "l2", "standard+l2", "minmax+l2", "global"}, default="minmax"
        Scaling of the features (with "stk" of [min, max]), fitted on the training bags.
    tune : bool, default=True
        Choose gamma and C by 5-fold cross-validation inside the training bags: gamma times 1/4, 1, 4 or 16, C times
        1/10, 1 or 10. Where a class has a single bag, nothing is chosen.
    backend : {"auto", "numpy", "native", "torch", "torch:cpu", "torch:cuda"}, default="auto"
        The implementation of distances and of reductions over bags.
    random_state : int, RandomState instance or None, default=None
        Seed of the inner folds and, above 1000 training instances, of those that the median is taken over.

    Attributes
    ----------
    gamma_ : float
        The width in use.
    C_ : float
        The price in use.
    support_ : array of shape (n_support,)
        The positions of the training bags that decisions depend on.
    dual_coef_ : array of shape (n_support, 1) or (n_support, n_classes)
        Their weights.
    intercept_ : array of shape (1,) or (n_classes,)

    Notes
    -----
    NSK costs O(N^2 d) for N training instances, and a new bag of n instances O(n N d); STK is linear in N. Kernel
    values of instances are never held all at once. More than two classes are each set against the others.

    References
    ----------
    Gaertner, T., Flach, P., Kowalczyk, A. and Smola, A., "Multi-Instance Kernels", ICML 2002.

    Examples
    --------
    >>> from gmil import SetKernelSVM, make_bags
    >>> bags, y = make_bags(100, separation=8, random_state=0, return_X_y=True)
    >>> model = SetKernelSVM(random_state=0).fit(bags[:80], y[:80])
    >>> model.score(bags[80:], y[80:]) > 0.9
    True
    """

    kernel: str = parameter(default="nsk", rules=[{"nsk", "stk"}], kw_only=False)
    instance_kernel: str = parameter(default="rbf", rules=[{"rbf", "poly", "linear"}])
    gamma: float | str = "median"
    degree: int = parameter(default=2, rules=[AT_LEAST_ONE])
    coef0: float = parameter(default=1.0, rules=[NOT_NEGATIVE])
    normalization: str = parameter(default="length", rules=[{"size", "length"}])
    C: float = 10.0
    tune: bool = True
    n_jobs: int | None = None
    backend: str = "auto"
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "support_instances_": Rows("N", "s"),  # STK has two columns for every feature
        "space_": fitted_space("s"),
        "support_": Array("S", dtype="i", at_least=0),
        "support_offsets_": Offsets("S+1", "N"),
        "support_lengths_": Array("S", above=0),
        "dual_coef_": Array("S", "P"),
        "intercept_": Array("P"),
        "gamma_": Number(at_least=0),
        "C_": OrMissing(Number(above=0)),
    }

    _kept_parameters = ("kernel", "instance_kernel", "degree", "coef0", "normalization")

    fit = grouped_fit

    def _learn(self, training: Training) -> None:
        backend = training.backend
        bags = self._points(training.bags, backend)
        bags = self._means(bags.with_instances(self._fit_scaled(bags)), backend)
        gamma = kernel_width(self.gamma, bags.instances, backend, training.generator)
        best, kernel = self._choose(training._replace(bags=bags), gamma)
        self.gamma_, self.C_ = best.gamma, best.C
        lengths = self._lengths(kernel.diagonal())
        machine = fit_machine(self._normalized(kernel), training.labels, np.full(len(bags), self.C_))
        self.support_, self.dual_coef_, self.intercept_ = machine
        support = bags[machine.support]
        self.support_instances_, self.support_offsets_ = to_parts(support.instances), support.offsets
        self.support_lengths_ = lengths[machine.support]

    def _decide(self, X: Any) -> Floats:
        bags, backend = self._check_new(X), resolve(self.backend, self.n_jobs)
        return self._decide_points(self._points(bags, backend), backend)

    def _decide_points(self, bags: Bags, backend: Backend) -> Floats:
        """Return decisions about bags, or about what stands for them, before they are scaled."""
        bags = self._means(bags.with_instances(self._scaled(bags.instances)), backend)
        support, kernels = from_parts(self.support_instances_), [self._instance_kernel(self.gamma_)]
        kernel = mean_kernels(bags.instances, bags.offsets, support, self.support_offsets_, kernels, backend)[0]
        if self.normalization_ == "length":
            own = own_kernels(bags.instances, bags.offsets, kernels[0], backend)
            kernel /= np.outer(self._lengths(own), self.support_lengths_)
        return self._linear_decisions(kernel, self.dual_coef_, self.intercept_)

    def _decide_without(self, bags: Bags) -> Iterator[tuple[Any, Floats]]:
        backend = resolve(self.backend, self.n_jobs)
        if self.kernel_ == "stk":
            for rows, points in summaries_without(bags, ("min", "max"), backend):
                yield rows, self._decide_points(one_each(points), backend)
            return
        for rows in spans_of_several(bags):
            yield rows, self._decide_set_without(self._scaled(bags.instances[rows]), backend)

    def _decide_set_without(self, X: Instances, backend: Backend) -> Floats:
        """Return decisions about one scaled bag without each of its instances: sums over pairs less those of one."""
        kernel = self._instance_kernel(self.gamma_)
        sums = self._support_sums(X, kernel, backend)
        found = (sums.sum(axis=0) - sums) / (X.shape[0] - 1)
        if self.normalization_ == "length":
            found /= self._lengths(own_kernels_without(X, kernel, backend))[:, None]
        found += self.intercept_
        return found if len(self.classes_) > 2 else found[:, 0]

    def _support_sums(self, X: Instances, kernel: InstanceKernel, backend: Backend) -> Floats:
        """Return the weighted kernel of every instance with the support bags, (n_instances, n_problems)."""
        support, weights = from_parts(self.support_instances_), self.dual_coef_ / self.support_lengths_[:, None]
        parts = []
        for start in range(0, X.shape[0], rows := max(1, _BLOCK_ENTRIES // len(weights))):
            each = one_each(X[start : start + rows])
            means = mean_kernels(each.instances, each.offsets, support, self.support_offsets_, [kernel], backend)
            parts.append(means[0] @ weights)
        return np.concatenate(parts)

    def _decision_of_nothing(self) -> Floats:
        return self.intercept_

    def _points(self, bags: Bags, backend: Backend) -> Bags:
        """Return the bags, or for STK one instance [min, max] for each."""
        if self.kernel_ == "nsk":
            return bags
        if sp.issparse(bags.instances) and self._takes_sparse_points():
            return one_each(sparse_extremes(bags.instances, bags.offsets))
        return one_each(summarize(bags.instances, bags.offsets, ("min", "max"), backend))

    def _takes_sparse_points(self) -> bool:
        """Tell whether the kernel is one of distances alone, which do not see that the scaling moves no origin."""
        return self.instance_kernel_ == "rbf" and "+" not in (self.scale or "")

    def _means(self, bags: Bags, backend: Backend) -> Bags:
        """Return bags that have the same kernel: the mean instance says all about a bag where the kernel is linear."""
        if self.kernel_ == "stk" or self.instance_kernel_ != "linear":
            return bags
        return one_each(summarize(bags.instances, bags.offsets, ("mean",), backend))

    def _instance_kernel(self, gamma: float) -> InstanceKernel:
        return InstanceKernel(self.instance_kernel_, gamma, self.degree_, self.coef0_)

    def _lengths(self, own: Floats) -> Floats:
        """Return what kernel values are divided by, once for either bag, given the kernel of bags with themselves."""
        if self.normalization_ == "size":
            return np.ones(len(own))
        return np.sqrt(np.where(own > 0, own, 1))

    def _choose(self, training: Training, gamma: float) -> tuple[KernelSetting, Floats]:
        """Return the width and the price to use, and the kernel of that width between the training bags."""
        bags, labels, untuned = training.bags, training.labels, KernelSetting(gamma, self.C)
        tuning = Tuning.of(training, self.tune)
        widths, costs = _GAMMA_FACTORS if self.instance_kernel != "linear" else (1.0,), [self.C * f for f in _C_FACTORS]
        settings = kernel_settings(gamma, widths=widths, costs=costs) if tuning.folds else [untuned]
        gammas = list(dict.fromkeys(setting.gamma for setting in settings))
        found = mean_kernels(
            *(bags.instances, bags.offsets) * 2, [self._instance_kernel(each) for each in gammas], training.backend
        )
        kernels = dict(zip(gammas, found, strict=True))
        normalized = {each: self._normalized(kernel) for each, kernel in kernels.items()} if tuning.folds else {}

        def decide(setting: KernelSetting, test: Booleans) -> Floats:
            kernel = normalized[setting.gamma]
            machine = fit_machine(kernel, labels, np.where(test, 0.0, setting.C))
            return self._linear_decisions(kernel[np.ix_(test, machine.support)], machine.weights, machine.intercepts)

        best = tuning.choose(settings, untuned, decide)
        return best, kernels[best.gamma]

    def _normalized(self, kernel: Floats) -> Floats:
        lengths = self._lengths(kernel.diagonal())
        normalized = kernel / lengths[:, None]
        normalized /= lengths
        return normalized


def one_each(rows: Instances) -> Bags:
    """Return bags of one instance each."""
    return Bags(rows, np.arange(rows.shape[0] + 1))


def fit_machine(kernel: Floats, labels: Integers, costs: Floats) -> Machine:
    """Train on a kernel between training bags, (n_bags, n_bags); more than two classes are set against the others.

    ``costs``, (n_bags,), say what a unit of slack of each bag costs; bags that cost nothing take no part.
    """
    n_classes = int(labels.max()) + 1
    problems = [labels == number for number in (range(n_classes) if n_classes > 2 else [1])]
    # Everything is checked by now, and with small bags the checks would take longer than the training.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        duals, intercepts = zip(*(solve_svm(kernel, problem, costs) for problem in problems), strict=True)
    weights = np.column_stack(duals)
    support = np.flatnonzero(weights.any(axis=1))
    return Machine(support, weights[support], np.array(intercepts))
