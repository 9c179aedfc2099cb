"""How ``tune=True`` should choose kernel and balance: rules compared on generated bags, with MI-SVM.

``python benchmarks/inner_choice.py [--seeds 100,101,102] [--test-bags 500]``

All rules choose on the same inner folds, and share what is trained there. Of each regime of `gmil.make_bags` some bags
are for training, and 500 others for the test.
"""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import gmil
from gmil.methods.shared import tuning
from gmil.methods.shared.tuning import MachineSetting, OnlyIfClear, priced_settings, weighted_settings, weighting_rounds

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.methods.shared.tuning import Round
    from gmil.methods.svm.gram import Gram
    from gmil.methods.svm.kernels import Arrangement, Machine

REGIMES: dict[str, dict[str, Any]] = {
    "noisy labels": {"n_bags": 180, "bag_size": (4, 10), "separation": 2.0, "label_noise": 0.1},
    "four concepts": {"n_bags": 180, "bag_size": (4, 10), "separation": 3.0, "n_concepts": 4},
    "large bags": {"n_bags": 90, "bag_size": (4, 40), "separation": 3.0, "witness_rate": 0.05},
    "few bags": {"n_bags": 80, "bag_size": (3, 9), "separation": 3.0, "label_noise": 0.1},
    "few positive": {
        "n_bags": 120,
        "bag_size": (4, 12),
        "separation": 3.0,
        "positive_share": 0.3,
        "label_noise": 0.05,
    },
    "many features": {"n_bags": 160, "n_features": 60, "bag_size": (4, 10), "separation": 4.0},
}
RULES = {
    "no tuning": 1.0,
    "C and gamma alone": 1.0,
    "best of four": 1.0,
    "best of four, one error": 1.0,
    "one change, one error": 1.0,
    "one change, two errors": 2.0,
}
"""Names, and how many standard errors a gain must exceed where the rule asks for that."""


def rounds_of(rule: str, start: MachineSetting) -> list[Round[MachineSetting]]:
    """Return the rounds of a rule."""
    four = weighted_settings(start)
    first: dict[str, list[Round[MachineSetting]]] = {
        "C and gamma alone": [lambda _: [start]],
        "best of four": [lambda _: four],
        "best of four, one error": [OnlyIfClear(lambda _: four)],
    }
    return [*first.get(rule, weighting_rounds(start)), priced_settings]


class Chooser(gmil.WitnessSVM):
    """MI-SVM whose kernel and balance one of the rules chooses."""

    rule: ClassVar[str]
    trained: ClassVar[dict[Any, Machine]] = {}

    def _rounds(self, gamma: float) -> list[Round[MachineSetting]]:
        return rounds_of(self.rule, MachineSetting(gamma, 10.0, self.kernel, self.balance))

    def _train(self, gram: Gram, arrangement: Arrangement, setting: MachineSetting, backend: Backend) -> Machine:
        key = setting, arrangement.rows.tobytes()
        if key not in self.trained:
            self.trained[key] = super()._train(gram, arrangement, setting, backend)
        return self.trained[key]


def accuracies(regime: dict[str, Any], seed: int, n_test: int) -> list[float]:
    """Return the accuracy on the test bags in per cent, rule by rule."""
    n_train = regime["n_bags"]
    bags, y = gmil.make_bags(**{**regime, "n_bags": n_train + n_test}, random_state=seed, return_X_y=True)
    order = np.random.default_rng(seed).permutation(n_train + n_test)
    train, test = np.sort(order[:n_train]), np.sort(order[n_train:])
    Chooser.trained.clear()
    found = []
    for rule, errors in RULES.items():
        Chooser.rule, tuning.CLEAR = rule, errors
        model = Chooser(tune=rule != "no tuning", random_state=seed).fit(bags[train], y[train])
        found.append(100 * model.score(bags[test], y[test]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[100, 101, 102])
    parser.add_argument("--test-bags", type=int, default=500)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| regime | {' | '.join(RULES)} |\n|{'---|' * (len(RULES) + 1)}")
    means = []
    for name, regime in REGIMES.items():
        means.append(np.mean([accuracies(regime, seed, chosen.test_bags) for seed in chosen.seeds], axis=0))
        print(f"| {name} | {' | '.join(f'{mean:.1f}' for mean in means[-1])} |", flush=True)
    print(f"| mean | {' | '.join(f'{mean:.1f}' for mean in np.mean(means, axis=0))} |")


if __name__ == "__main__":
    main()
