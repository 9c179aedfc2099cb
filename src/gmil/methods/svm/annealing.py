"""MI-SVM and mi-SVM by deterministic annealing: AW-SVM, AL-SVM and ALP-SVM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, ClassVar

from gmil.base import register, weighted_fit
from gmil.compat import Interval
from gmil.io.model_files.schema import Array, Kind, Number
from gmil.methods.shared.tuning import COSTS, MachineSetting, weighting_rounds
from gmil.methods.svm.annealing_training import Annealing, train_annealed
from gmil.methods.svm.kernel_machine import KernelMachine, fit_on_gram
from gmil.parameters import parameter, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.methods.shared.tuning import Round
    from gmil.methods.svm.gram import Gram
    from gmil.methods.svm.kernels import Arrangement, Machine


SHARES = (0.5, 0.8, 0.2)
"""What ``tune=True`` chooses the positive share from; of equally accurate settings the first wins."""


@dataclass(frozen=True)
class AnnealedSetting(MachineSetting):
    """What `MachineSetting` says and, for "labels-prior", the share of a positive bag that is positive."""

    positive_share: float = 0.5


@register(method="annealed-svm")
@parameters
class AnnealedSVM(KernelMachine):
    """MI-SVM and mi-SVM by deterministic annealing, which avoids poor local optima (Gehler and Chapelle).

    Which instances of positive bags are positive is a matter of probabilities. At a high temperature all are alike;
    as it falls, the machine and the probabilities are found in turns, until the probabilities are zeros and ones.
    Labels begin from the machine on the labels of the bags.

    Parameters
    ----------
    objective : {"witness", "labels", "labels-prior"}, default="witness"
        AW-SVM: one instance of a positive bag is its witness, as in `WitnessSVM`. AL-SVM: every instance has a
        label, at least one of a positive bag is positive, as in `InstanceSVM`; it tends to label whole bags. ALP-SVM:
        every instance has a label, and ``positive_share`` of a positive bag are positive.
    kernel : {"rbf", "linear"}, default="rbf"
        The kernel between instances.
    gamma : float or "median", default="median"
        The RBF kernel is exp(-gamma d^2); "median" is one over the median squared distance between training
        instances.
    max_iter : int, default=5
        Machines trained at most at one temperature above zero.
    C : float, default=10.0
        What a unit of slack costs.
    balance : bool, default=True
        With "witness": slack of a negative instance costs C times the number of positive bags over the number of
        negative instances, so that both classes weigh alike; False: it costs C.
    positive_share : float, default=0.5
        With "labels-prior": the share of a positive bag that is positive; one instance at least.
    cooling : float, default=1.5
        What the temperature is divided by, from 10 C to C / 100, before it is zero.
    tune : bool, default=False
        Choose by accuracy on five folds of the training bags. With "witness": first kernel and ``balance``, with C =
        10; then C from 1, 10, 100. The given kernel and ``balance`` stay unless a change of one of them gains more than
        one standard error; then a change of both is tried too. With "labels" C, and with "labels-prior" also
        ``positive_share`` from 0.2, 0.5, 0.8. Of more than 2000 instances, 2000 stand for all in the choice: large bags
        are thinned; with "witness" what is left of a negative one costs what all of it would. While settings are
        compared, every machine begins where the last one ended, which takes less time.
    random_state : int, RandomState instance or None, default=None
        Seed of the instances that the median width is estimated on, and of the folds.

    Attributes
    ----------
    support_instances_ : array of shape (n_support, n_features)
        The instances that f needs, scaled; sparse ones as a dict of arrays. For a linear kernel one row, the weights.
    dual_coef_ : array of shape (n_support,)
        f(x) is the sum of these times the kernel between x and a support instance, plus ``intercept_``.
    intercept_ : float
    gamma_, C_, positive_share_ : float
    kernel_ : str
    balance_ : bool
        The values in use.
    temperatures_, objectives_ : arrays of shape (n_iter,)
        The temperature of every machine, and half the squared norm plus the expected cost of all slacks less the
        temperature times the entropy of the assignment; it never rises at one temperature.
    stop_reason_ : {"converged", "cycle", "iterations"}
        How training ended at the temperature zero: the assignment stayed, an older one came back, or neither did.
    n_iter_ : int
        Machines trained.

    Notes
    -----
    Training holds one Gram matrix, 8 N^2 bytes for N instances, and with labels a second one in which the instances of
    positive bags stand twice; it solves some eighty machines. Lower objectives are not always lower errors on new bags.
    Changes of rounding may lead to another optimum, most often with labels.

    References
    ----------
    Gehler, P. and Chapelle, O., "Deterministic Annealing for Multiple-Instance Learning", AISTATS 2007.

    Examples
    --------
    >>> from gmil import AnnealedSVM, make_bags
    >>> bags, y = make_bags(60, separation=8, random_state=0, return_X_y=True)
    >>> model = AnnealedSVM().fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:])
    1.0
    """

    objective: str = parameter(default="witness", rules=[{"witness", "labels", "labels-prior"}], kw_only=False)
    C: float = 10.0
    balance: bool = parameter(default=True, rules=["boolean"])
    positive_share: float = parameter(default=0.5, rules=[Interval(Real, 0, 1, closed="right")])
    cooling: float = parameter(default=1.5, rules=[Interval(Real, 1, None, closed="neither")])
    max_iter: int = 5

    _kept_parameters = ("kernel", "balance")

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "positive_share_": Number(at_least=0, at_most=1),
        "temperatures_": Array("T", at_least=0, infinite=True),
    }

    fit = weighted_fit
    _fit_machine = fit_on_gram

    def _tuning_repeats(self, n_bags: int) -> int:  # noqa: ARG002
        return 1

    def _untuned(self, gamma: float) -> AnnealedSetting:
        return AnnealedSetting(gamma, self.C, self.kernel, self.balance, self.positive_share)

    def _rounds(self, gamma: float) -> Sequence[Round[AnnealedSetting]]:
        # A fit solves many machines already: the width stays.
        start = replace(self._untuned(gamma), C=COSTS[0])
        if self.objective == "witness":
            return [*weighting_rounds(start), lambda best: [replace(best, C=C) for C in COSTS]]
        shares = SHARES if self.objective == "labels-prior" else (self.positive_share,)
        return [lambda _: [replace(start, C=C, positive_share=share) for share in shares for C in COSTS]]

    def _keep_setting(self, setting: AnnealedSetting) -> None:
        super()._keep_setting(setting)
        self.C_, self.balance_, self.positive_share_ = setting.C, setting.balance, setting.positive_share

    def _train(self, gram: Gram, arrangement: Arrangement, setting: AnnealedSetting, backend: Backend) -> Machine:
        annealing = Annealing(
            self.objective,
            setting.C,
            setting.balance,
            setting.positive_share,
            self.cooling,
            self.max_iter,
            arrangement.negative_counts,
            arrangement.weights,
        )
        machine, self.temperatures_ = train_annealed(gram, arrangement.offsets, annealing, backend)
        return machine
