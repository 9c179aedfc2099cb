"""mi-SVM and MI-SVM: support vector machines that find the positive instances of positive bags as they learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from gmil.base import register, weighted_fit
from gmil.errors import BagValidationError
from gmil.methods.shared.tuning import COSTS, MachineSetting, all_of_bags, priced_settings, weighted_settings
from gmil.methods.svm.kernel_machine import KernelMachine, fit_on_gram
from gmil.methods.svm.problems import FeatureProblem
from gmil.methods.svm.training import thinned_rows, train_labels, train_linear_witnesses, train_witnesses, witness_costs
from gmil.parameters import AT_LEAST_ONE, parameter, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Floats, Instances, Integers
    from gmil.methods.shared.tuning import Round, Tuning
    from gmil.methods.svm.gram import Gram
    from gmil.methods.svm.kernels import Arrangement, Machine, Plane


MOST_LINEAR_INSTANCES = 20_000
"""Of more instances, so many stand for all while LIBLINEAR, whose time grows with their number alone, is tuned."""


@register(method="mi-svm-instance")
@parameters
class InstanceSVM(KernelMachine):
    """mi-SVM: an SVM that labels every instance; a positive bag has at least one positive instance (Andrews et al.).

    A machine is trained on all instances, those of positive bags labelled positive at first. Then the instances
    of positive bags take the labels that it gives them, where a bag keeps its best instance positive, and so on
    until no label changes. A bag is positive where an instance is.

    Parameters
    ----------
    C : float, default=10.0
        What a unit of slack costs.
    kernel : {"rbf", "linear"}, default="rbf"
        The kernel between instances.
    gamma : float or "median", default="median"
        The RBF kernel is exp(-gamma d^2); "median" is one over the median squared distance between training
        instances.
    max_iter : int, default=50
        Machines trained at most.
    tune : bool, default=False
        Choose C from 1, 10, 100 and gamma from 0.3, 1, 3 times ``gamma`` by accuracy on five folds of
        the training bags, drawn twice. Of more than 2000 instances, the choice is made on 2000: large bags
        are thinned.
    random_state : int, RandomState instance or None, default=None
        Seed of the instances that the median width is estimated on, and of the folds.

    Attributes
    ----------
    support_instances_ : array of shape (n_support, n_features)
        The instances that f needs, scaled; sparse ones as a dict of arrays. For a linear kernel one row, the weights.
    dual_coef_ : array of shape (n_support,)
        f(x) is the sum of these times the kernel between x and a support instance, plus ``intercept_``.
    intercept_ : float
    gamma_, C_ : float
    kernel_ : str
        The values in use.
    objectives_ : array of shape (n_iter,)
        Half the squared norm plus C times all slacks, after every machine; it never rises.
    stop_reason_ : {"converged", "cycle", "iterations"}
        Why training ended: labels stayed, an older labelling came back, or ``max_iter`` was reached.
    n_iter_ : int
        Machines trained.

    Notes
    -----
    Training holds one Gram matrix, 8 N^2 bytes for N instances, and solves up to ``max_iter`` machines on it.
    With a small C everything in positive bags may stay positive.

    References
    ----------
    Andrews, S., Tsochantaridis, I. and Hofmann, T., "Support Vector Machines for Multiple-Instance Learning",
    NIPS 2002.

    Examples
    --------
    >>> from gmil import InstanceSVM, make_bags
    >>> bags, y = make_bags(60, separation=8, random_state=0, return_X_y=True)
    >>> model = InstanceSVM(C=1).fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:])
    1.0
    >>> model.stop_reason_
    'converged'
    """

    C: float = parameter(default=10.0, kw_only=False)

    fit = weighted_fit
    _fit_machine = fit_on_gram

    def _untuned(self, gamma: float) -> MachineSetting:
        return MachineSetting(gamma, self.C, self.kernel)

    def _rounds(self, gamma: float) -> Sequence[Round[MachineSetting]]:  # noqa: ARG002
        return [priced_settings]

    def _keep_setting(self, setting: MachineSetting) -> None:
        super()._keep_setting(setting)
        self.C_ = setting.C

    def _train(self, gram: Gram, arrangement: Arrangement, setting: MachineSetting, backend: Backend) -> Machine:
        return train_labels(gram, arrangement.offsets, setting.C * arrangement.weights, self.max_iter, backend)


@register(method="mi-svm-witness")
@parameters
class WitnessSVM(KernelMachine):
    """MI-SVM: an SVM on one witness instance of every positive bag and all negative instances (Andrews et al.).

    A machine is trained on one witness per positive bag, its mean at first, against the instances of negative bags.
    Then the instance with the largest f becomes the witness of its bag, and so on until no witness changes. A bag is
    positive where its largest f is.

    Parameters
    ----------
    C : float, default=10.0
        What a unit of slack of a positive bag costs.
    kernel : {"rbf", "linear"}, default="rbf"
        The kernel between instances.
    gamma : float or "median", default="median"
        The RBF kernel is exp(-gamma d^2); "median" is one over the median squared distance between training
        instances.
    max_iter : int, default=50
        Machines trained at most.
    balance : bool, default=True
        Slack of a negative instance costs C times the number of positive bags over the number of negative
        instances, so that both classes weigh alike; False: it costs C.
    solver : {"libsvm", "liblinear"}, default="libsvm"
        "libsvm" works on a Gram matrix. "liblinear", for the linear kernel, works on the features, with squared
        slacks, and is the one for large data.
    max_negatives : int or None, default=50_000
        Where negative bags have more instances than this, that many of them are drawn, one of every bag at least.
        None: always all.
    tune : bool, default=False
        Choose by accuracy on five folds of the training bags, drawn twice: first both kernels, each with and without
        ``balance`` (those given win ties), with C = 10 and ``gamma``; then C from 1, 10, 100 and gamma from 0.3, 1, 3
        times ``gamma``. Of more than 2000 instances, 2000 stand for all in the choice: large bags are thinned, and
        what is left of a negative one costs what all of it would. "liblinear" keeps its kernel, draws the folds once,
        thins above 20 000 instances, and judges by the mean of the accuracies of both classes.
    random_state : int, RandomState instance or None, default=None
        Seed of the drawn negatives, of the instances that the median width is estimated on, and of the folds.

    Attributes
    ----------
    support_instances_ : array of shape (n_support, n_features)
        The instances that f needs, scaled; sparse ones as a dict of arrays. For a linear kernel one row, the weights.
    dual_coef_ : array of shape (n_support,)
        f(x) is the sum of these times the kernel between x and a support instance, plus ``intercept_``.
    intercept_ : float
    gamma_, C_ : float
    kernel_ : str
    balance_ : bool
        The values in use.
    objectives_ : array of shape (n_iter,)
        Half the squared norm plus the cost of all slacks, after every machine; it never rises.
    stop_reason_ : {"converged", "cycle", "iterations"}
        Why training ended: witnesses stayed, older ones came back, or ``max_iter`` was reached.
    n_iter_ : int
        Machines trained.

    Notes
    -----
    "libsvm" holds two Gram matrices, 8 N^2 bytes each for N instances: one without and one with the first witnesses,
    the means. "liblinear" takes about 24 bytes per number of the
    rows that it trains on: witnesses and (drawn) negatives.

    References
    ----------
    Andrews, S., Tsochantaridis, I. and Hofmann, T., "Support Vector Machines for Multiple-Instance Learning",
    NIPS 2002.

    Examples
    --------
    >>> from gmil import WitnessSVM, make_bags
    >>> bags, y = make_bags(60, separation=8, random_state=0, return_X_y=True)
    >>> model = WitnessSVM().fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:])
    1.0
    >>> model.score_instances(bags[:1]).shape == (len(bags[0]),)
    True
    """

    C: float = parameter(default=10.0, kw_only=False)
    balance: bool = parameter(default=True, rules=["boolean"])
    solver: str = parameter(default="libsvm", rules=[{"libsvm", "liblinear"}])
    max_negatives: int | None = parameter(default=50_000, rules=[AT_LEAST_ONE, None])

    _kept_parameters = ("kernel", "balance")

    fit = weighted_fit

    def as_chosen(self) -> WitnessSVM:
        """Return a copy that is not fitted, and has the settings in use as its parameters."""
        settings = {"C": self.C_, "kernel": self.kernel_, "gamma": self.gamma_, "balance": self.balance_}
        return clone(self).set_params(**settings, tune=False)

    def _tuning_repeats(self, n_bags: int) -> int:
        # "liblinear" is for large data, where one draw of folds tests many bags.
        return 1 if self.solver == "liblinear" else super()._tuning_repeats(n_bags)

    def _untuned(self, gamma: float) -> MachineSetting:
        return MachineSetting(gamma, self.C, self.kernel, self.balance)

    def _rounds(self, gamma: float) -> Sequence[Round[MachineSetting]]:
        start = MachineSetting(gamma, COSTS[0], self.kernel, self.balance)
        return [lambda _: weighted_settings(start), priced_settings]

    def _keep_setting(self, setting: MachineSetting) -> None:
        super()._keep_setting(setting)
        self.C_, self.balance_ = setting.C, setting.balance

    def _train(self, gram: Gram, arrangement: Arrangement, setting: MachineSetting, backend: Backend) -> Machine:
        return train_witnesses(gram, arrangement.offsets, _costs(arrangement, setting), self.max_iter, backend)

    def _fit_machine(self, instances: Instances, offsets: Integers, training: Training, tuning: Tuning) -> None:
        rows = thinned_rows(offsets, training.positive, self.max_negatives, training.generator)
        if rows is not None:
            instances, offsets = instances[rows], np.searchsorted(rows, offsets)
        if self.solver == "libsvm":
            fit_on_gram(self, instances, offsets, training, tuning)
            return
        if self.kernel != "linear":
            msg = f"solver='liblinear' works with kernel='linear' only, got kernel={self.kernel!r}."
            raise BagValidationError(msg)
        self._fit_linear(instances, offsets, training, tuning)

    def _fit_linear(self, instances: Instances, offsets: Integers, training: Training, tuning: Tuning) -> None:
        sample = tuning.sample(offsets, MOST_LINEAR_INSTANCES)
        problem = FeatureProblem(self._train_linear, lambda _: instances, sample, training)
        both = [MachineSetting(1.0, COSTS[0], "linear", balance) for balance in (self.balance, not self.balance)]
        rounds = [lambda _: both, priced_settings]
        # One event against all others is rare: by accuracy, a machine that never finds it would be a good one.
        setting = tuning.choose_in_rounds(rounds, self._untuned(1.0), problem.decide, classes_alike=True)
        self._keep_setting(setting)
        plane = problem._replace(sample=all_of_bags(offsets)).train(setting)
        self._keep_weights(plane.weights)
        self._keep_course(plane)

    def _train_linear(
        self, instances: Instances, arrangement: Arrangement, setting: MachineSetting, backend: Backend
    ) -> Plane:
        candidates, negatives = np.split(arrangement.rows, [arrangement.n_positive_rows])
        costs = _costs(arrangement, setting)
        return train_linear_witnesses(
            instances[candidates], arrangement.offsets, instances[negatives], costs, self.max_iter, backend
        )


def _costs(arrangement: Arrangement, setting: MachineSetting) -> Floats:
    return witness_costs(arrangement.bag_weights, arrangement.negative_counts, setting.C, setting.balance)
