"""Models of single instances for values of bags: an instance has a value, and the weight that it has in its bag.

The value of a bag is the mean of the values of its instances, weighted by the exponentials of their gates. Gates that
are equal make it a plain mean; gates that grow with the value, a soft maximum; others pick the few instances that
tell. Both parts are linear in the features of an instance, or in its similarities to landmarks. A gate that is linear
in the features may rise or fall with the square of the value, too: where the instances that tell are spread along the
values, and the others are not, one far from the middle is more likely one that tells.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.engine.resident import as_array, beside, namespace
from gmil.io.model_files.schema import Array, Choice, Count, Items, Number, OrMissing, OrNone, Record
from gmil.targets.attention_fitting import fit_folds
from gmil.targets.losses import joint_weights, loss_of
from gmil.weighted.weighing import join_views
from gmil.weighted.witness import affine, columns_of, last_fold, scores_by_each
from gmil.weighted.witness_fitting import InstanceModels, design, draft_scorers
from gmil.witnesses.effects import joined_without

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.weighted.fitting import Learning
    from gmil.weighted.views import CentersInSpace, InSpaces
    from gmil.weighted.weighing import LeftOut
    from gmil.weighted.witness_fitting import Drafts

_WIDEST_GATE = 30.0

_SCORER = Record(
    {
        "space": Count(below="spaces"),
        "kernel": Choice("gaussian", "linear"),
        "gamma": Number(above=0),
        "coefficients": Array("n", 2, "P"),
        "intercepts": Array(2, "P"),
        "center": Array("P"),
        "spread": Array("P", above=0),
        "stacking": Array("P", at_least=0),
        "curvatures": OrMissing(Array("P")),
    },
    local=("n",),
)
ATTENTION = OrNone(Record({"scorers": Items(_SCORER, least=1), "base": Array("P", at_least=0), "shifts": Array("P")}))
"""What `AttentionModel.as_plain` returns."""


class Attention(NamedTuple):
    """A fitted model of instances, and what its value of a bag is worth."""

    space: int
    kernel: str
    gamma: float
    coefficients: Floats  # (n_columns, 2, n_problems): of gates, and of values
    intercepts: Floats  # (2, n_problems)
    center: Floats  # (n_problems,): the mean of the values of training bags
    spread: Floats  # (n_problems,): their deviation
    stacking: Floats  # (n_problems,): the weight of the standardised value in the prediction
    curvatures: Floats | None = None  # (n_problems,): of gates, over the square of values

    def scores(self, scaled: Instances, landmarks: Floats, backend: Backend) -> Floats:
        """Return the weight of every instance, and its value times that weight, (n_instances, 2, n_problems)."""
        return self.scores_of(columns_of(scaled, self.kernel, self.gamma, landmarks, backend))

    def scores_of(self, columns: Any) -> Floats:
        """Return the same from the columns of instances, see `columns_of`."""
        return weights_and_products(affine(columns, self.coefficients, self.intercepts), self.curvatures)


class AttentionDraft(NamedTuple):
    """A model before it is known what it is worth: fits without every inner fold, that to all bags last."""

    space: int
    kernel: str
    gamma: float
    coefficients: Floats  # (n_columns, 2, n_folds + 1, n_problems)
    intercepts: Floats  # (2, n_folds + 1, n_problems)
    curvatures: Floats  # (n_folds + 1, n_problems)

    @property
    def n_folds(self) -> int:
        """The number of inner folds."""
        return self.intercepts.shape[1] - 1

    def scores(self, scaled: Instances, landmarks: Floats, backend: Backend) -> Floats:
        """Return weights and weighted values by every fold, (n_instances, 2, n_folds + 1, n_problems)."""
        return self.scores_of(columns_of(scaled, self.kernel, self.gamma, landmarks, backend))

    def scores_of(self, columns: Any) -> Floats:
        """Return the same from the columns of instances."""
        return weights_and_products(affine(columns, self.coefficients, self.intercepts), self.curvatures)

    def pooled(self, largest: Floats, total: Floats, sizes: Integers, fold_of: Integers) -> Floats:  # noqa: ARG002
        """Return the value of every bag by the fit without it, (n_bags, n_problems)."""
        own = total[np.arange(len(sizes)), :, fold_of]
        return np.asarray(own[:, 1] / own[:, 0])

    def fitted(self, center: Floats, spread: Floats, stacking: Floats) -> Attention:
        """Return the fit to all bags, now that it is known what it is worth."""
        last = self.coefficients[:, :, -1], self.intercepts[:, -1]
        return Attention(self.space, self.kernel, self.gamma, *last, center, spread, stacking, self.curvatures[-1])


def weights_and_products(gates_and_values: Any, curvatures: Floats | None = None) -> Any:
    """Return the weights of instances, and their values times these, beside each other: sums over bags tell the rest.

    >>> sums = weights_and_products(np.array([[0.0, 1.0], [np.log(3), 5.0]])).sum(axis=0)
    >>> float(sums[1] / sums[0])
    4.0
    """
    gates, values = gates_and_values[:, 0], gates_and_values[:, 1]
    if curvatures is not None and curvatures.any():
        gates = gates + beside(curvatures, values, wide=True) * values**2
    weights = namespace(gates).exp(gates.clip(-_WIDEST_GATE, _WIDEST_GATE))
    return namespace(gates).stack([weights, weights * values], 1)


class AttentionModels(InstanceModels):
    """Fits models by attention, and weighs them by bags that were left out."""

    def draft(self, taken: InSpaces, learning: Learning, generator: np.random.Generator) -> Drafts | None:
        """Fit models to all bags and to all but each inner fold; None where no fold can be left out."""
        return draft_scorers(taken, learning, generator, _draft)

    def weigh(
        self, drafts: Drafts, pooled: list[Any], learning: Learning, left_out: LeftOut, known: Booleans
    ) -> tuple[AttentionModel, LeftOut]:
        """Return the models with their weights, and predictions of bags that were left out."""
        units = [_units(values[known]) for values in pooled]
        values = [(own - center) / spread for own, (center, spread) in zip(pooled, units, strict=True)]
        joined = join_views(left_out, values, learning, known, partial(_stack, learning))
        scorers = [
            d.fitted(*unit, worth) for d, unit, worth in zip(drafts.scorers, units, joined.stacking, strict=True)
        ]
        return AttentionModel(scorers, joined.base, joined.shifts), joined.left_out


class AttentionModel(NamedTuple):
    """Models of instances, stacked with the views of the bag."""

    scorers: list[Attention]
    base: Floats  # (n_problems,): the weight of the views
    shifts: Floats  # (n_problems,)

    @property
    def decides(self) -> bool:
        """Whether any model has a weight."""
        return any(scorer.stacking.any() for scorer in self.scorers)

    def scores(self, taken: InSpaces) -> Floats:
        """Return weights and weighted values of instances, (n_scorers, n_instances, 2, n_problems)."""
        return scores_by_each(self.scorers, taken, 2, len(self.base))

    def largest(self, taken: InSpaces) -> Floats:
        """Return the value of every bag by every model, (n_scorers, n_bags, n_problems)."""
        if not self.decides:
            return self.nothing(len(taken.bags))
        return _values(np.add.reduceat(self.scores(taken), taken.bags.offsets[:-1], axis=1))

    def pooled_of(self, tables: Mapping[tuple[int, str], Floats]) -> Floats:
        """Return what `largest` does, from the tables of a pass over bags in blocks."""
        return _values(np.stack([last_fold(tables[number, "total"], 3) for number in range(len(self.scorers))]))

    def nothing(self, n_bags: int) -> Floats:
        """Return values that add nothing to a prediction, (n_scorers, n_bags, n_problems)."""
        return np.stack([np.tile(scorer.center, (n_bags, 1)) for scorer in self.scorers])

    def stacked(self, decisions: Floats, largest: Floats) -> Floats:
        """Return predictions from those of the views, (n_bags, n_problems), and values of bags by every model."""
        return decisions * self.base + self.shifts + self.added(largest)

    def added(self, values: Floats) -> Floats:
        """Return what values by every model, (n_scorers, ..., n_problems), add to the prediction."""
        parts = [
            (own - scorer.center) / scorer.spread * scorer.stacking
            for scorer, own in zip(self.scorers, values, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))

    def effects(self, taken: InSpaces) -> Floats:
        """Return what the values of a bag add to its prediction, less that without each instance.

        Of a bag of one instance nothing is left, which adds nothing.
        """
        bags, scores = taken.bags, self.scores(taken)
        sums = np.repeat(np.add.reduceat(scores, bags.offsets[:-1], axis=1), bags.sizes, axis=1)
        without, several = self.nothing(bags.n_instances), bags.sizes > 1
        rest = np.repeat(several, bags.sizes)
        if rest.any():
            offsets = np.concatenate([[0], np.cumsum(bags.sizes[several])])
            own = scores[:, rest]
            left = [joined_without(rows.reshape(len(rows), -1), offsets, np.add) for rows in own]
            without[:, rest] = _values(np.reshape(left, own.shape))
        return self.added(_values(sums)) - self.added(without)

    def as_plain(self) -> dict[str, Any]:
        """Return dicts of arrays, which can be saved."""
        return {**self._asdict(), "scorers": [scorer._asdict() for scorer in self.scorers]}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> AttentionModel:
        """Rebuild from what `as_plain` returned."""
        return cls(**{**plain, "scorers": [Attention(**entry) for entry in plain["scorers"]]})


def _values(sums: Floats) -> Floats:
    """Return the values of bags from sums of weights and of weighted values, (n_scorers, n_bags, 2, n_problems)."""
    return np.asarray(sums[:, :, 1] / sums[:, :, 0])


def _draft(
    scaled: Instances,
    offsets: Integers,
    number: int,
    kernel: str,
    space: CentersInSpace,
    inside: list[Booleans],
    learning: Learning,
) -> tuple[AttentionDraft, Any]:
    """Fit one model to the bags inside, for each of several choices; return it with the columns of instances."""
    designed = design(scaled, kernel, space, learning.backend)
    # Gates over similarities to landmarks can take any shape: nothing is left for the square of values to tell.
    found = fit_folds(as_array(designed.features), offsets, inside, learning, curved=kernel == "linear")
    flat = designed.in_columns(found.coefficients.reshape(len(found.coefficients), -1))
    coefficients = np.asarray(flat.reshape(-1, *found.coefficients.shape[1:]))
    draft = AttentionDraft(number, kernel, designed.gamma, coefficients, found.intercepts, found.curvatures)
    return draft, designed.columns


# -------------------------------------------------------------------------------- weighing


def _units(values: Floats) -> tuple[Floats, Floats]:
    spread = values.std(axis=0)
    return values.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _stack(learning: Learning, table: Floats, problem: int, known: Booleans) -> Floats:
    """Return a weight for every column, none negative, and an intercept.

    The first column are the views. The others join them only where the log-likelihood rises by more than one for each,
    which is Akaike's criterion; else the views stay as they are.
    """
    columns, rows = table[known], np.flatnonzero(known)
    prior = np.eye(columns.shape[1])[0]
    errors = learning.goals[rows, problem] - columns[:, 0]
    loss = loss_of(learning, problem, rows, float(max(np.mean(errors**2), 1e-6)))
    together, value = joint_weights(columns, loss, prior)
    _, alone = joint_weights(columns[:, :1], loss, prior[:1])
    return together if alone - value > columns.shape[1] - 1 else np.append(prior, 0.0)
