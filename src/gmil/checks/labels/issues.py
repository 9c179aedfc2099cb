"""`find_label_issues`: bags whose label left-out evidence contradicts, the most doubtful first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.finite import are_usable
from gmil.checks.labels.evidence import left_out_evidence
from gmil.checks.labels.noise import flag, suspect
from gmil.checks.near_duplicates import near_duplicates
from gmil.errors import BagValidationError
from gmil.model_selection.folds import check_seed
from gmil.transform.impute import Impute
from gmil.validation import check_bag_labels, check_bags, check_groups, indicator_of
from gmil.weighted import WeightedGMIL

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from numpy.typing import NDArray

    from gmil.bags import Bags
    from gmil.engine.arrays import Booleans, Floats, Integers

_MOST_INSTANCES = 3
_FEWEST_EXPLAINED = 20
"""So many of the most doubtful bags have their strongest instances named, flagged or not."""


@dataclass(frozen=True)
class LabelIssues:
    """What `find_label_issues` found, a value for every bag, in the order of the bags.

    Attributes
    ----------
    bag_ids : array of shape (n_bags,)
        Names, or numbers.
    labels, suggested : arrays of shape (n_bags,)
        The label given, and the class that left-out evidence is for.
    wrong : array of shape (n_bags,)
        The probability that the label is wrong.
    evidence : array of shape (n_bags,)
        Left-out log-odds of the label given against the best other class; below zero is against the label.
    flagged : array of shape (n_bags,)
        The labels to look at: of them, at most a share of ``fdr`` is expected to be right.
    strongest : dict of list of int
        For the most doubtful bags, the instances that are most of the suggested class, by their numbers in the bag.
    duplicates : list of (int, int)
        Bags that are nearly the same and have different labels.
    confused : list of (label, label, float)
        The label given, the class it may be, and the expected number of such bags, the most first.
    rate : float
        The expected share of wrong labels.
    fdr : float
        As it was asked for.

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> y = y.copy()
    >>> y[3] = 1 - y[3]
    >>> found = gmil.find_label_issues(bags, y, n_rounds=2)
    >>> int(found.order[0]), bool(found.flagged[3])
    (3, True)
    """

    bag_ids: NDArray[Any]
    labels: NDArray[Any]
    suggested: NDArray[Any]
    wrong: Floats
    evidence: Floats
    flagged: Booleans
    strongest: dict[int, list[int]]
    duplicates: list[tuple[int, int]]
    confused: list[tuple[Any, Any, float]]
    rate: float
    fdr: float

    @property
    def order(self) -> Integers:
        """Numbers of bags, the most doubtful label first."""
        return np.lexsort((self.evidence, -self.wrong))

    def to_table(self, most: int | None = None) -> pa.Table:
        """Return a row per bag, the most doubtful first; ``corrected`` is empty, for who corrects the labels.

        Parameters
        ----------
        most : int, optional
            So many rows at most.
        """
        import pyarrow as pa

        order = self.order[:most]
        columns = {name: getattr(self, name)[order].tolist() for name in ("bag_ids", "labels", "suggested")}
        return pa.table(
            {
                "bag": columns["bag_ids"],
                "label": columns["labels"],
                "suggested": columns["suggested"],
                "probability_wrong": self.wrong[order].round(4),
                "evidence": self.evidence[order].round(4),
                "flagged": self.flagged[order],
                "strongest_instances": [" ".join(map(str, self.strongest.get(int(i), []))) for i in order],
                "corrected": [""] * len(order),
            }
        )

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write `to_table`: fill in the column ``corrected``, and read it back with `gmil.apply_corrections`.

        Parameters
        ----------
        path : path
        """
        import pyarrow.csv

        from gmil.safety.atomic import replacing

        with replacing(path) as temporary:
            pyarrow.csv.write_csv(self.to_table(), temporary)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: what is flagged, duplicates and confused classes."""
        flagged = self.to_table(int(self.flagged.sum())).drop_columns(["corrected", "flagged"]).to_pylist()
        names = self.bag_ids.tolist()
        return {
            "n_flagged": int(self.flagged.sum()),
            "expected_share_wrong": self.rate,
            "fdr": self.fdr,
            "flagged": flagged,
            "duplicates": [[names[i], names[j]] for i, j in self.duplicates],
            "confused": [list(each) for each in self.confused],
        }

    def __str__(self) -> str:
        some = f", of which at most {self.fdr:.0%} are expected to be right" if self.flagged.any() else ""
        lines = [
            f"{int(self.flagged.sum())} of {len(self.labels)} labels flagged as wrong{some}; expected share of wrong "
            f"labels {self.rate:.1%}."
        ]
        lines += [
            f"bag {self.bag_ids[i]}: label {self.labels[i]}, suggested {self.suggested[i]} "
            f"(probability {self.wrong[i]:.2f})"
            for i in self.order[: int(self.flagged.sum())].tolist()
        ]
        return "\n".join(lines)


def find_label_issues(
    bags: Any,
    y: Any,
    *,
    groups: Any = None,
    fdr: float = 0.2,
    rate: float = 0.1,
    n_rounds: int = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> LabelIssues:
    """Rank bags by how strongly left-out evidence is against their label, and flag those that are probably wrong.

    Parameters
    ----------
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
    y : array of shape (n_bags,)
        Labels of two or more classes.
    groups : array of shape (n_bags,), optional
        Bags of one group (a patient, a site) are left out together: copies of a bag do not confirm its label.
    fdr : float, default=0.2
        The share of flagged labels that may be right (false discovery rate), by the probabilities of the noise model.
    rate : float, default=0.1
        The share of labels that may be wrong. Where evidence contradicts few labels, fewer are thought to be wrong. No
        data tell a wrong label from a bag that is truly unlike the others of its class, so this has to be assumed.
    n_rounds : int, default=5
        Models that evidence is averaged over. All but the first distrust labels that the evidence contradicts.
    random_state : int, default=0
    n_jobs : int, optional
        Threads of every model.

    Returns
    -------
    LabelIssues
        ``order``, ``wrong``, ``flagged``, ``suggested``, ``strongest``, ``duplicates``, ``confused``; ``to_csv``.

    Notes
    -----
    Every `gmil.WeightedGMIL` tells log-odds of bags that it left out. Two models of flipped labels turn them into
    probabilities of being wrong, and the smaller one counts: see ``docs/guide/wrong_labels.md``. What is flagged is to
    be looked at by a person. A bag that is truly unlike the others of its class looks the same as a wrong label.
    """
    for name, share in (("fdr", fdr), ("rate", rate)):
        if not 0 < share < 1:
            msg = f"must be above 0 and below 1, got {share}."
            raise BagValidationError(msg, parameter=name)
    if n_rounds < 1:
        msg = f"must be at least 1, got {n_rounds}."
        raise BagValidationError(msg, parameter="n_rounds")
    seed = check_seed(random_state, n_seeds=n_rounds)
    bags = check_bags(bags, allow_nan=True)
    if indicator_of(y) is not None:
        msg = f"must be one label per bag, got an indicator matrix of shape {np.shape(y)}. Pass one column at a time."
        raise BagValidationError(msg, parameter="y")
    classes, labels = check_bag_labels(y, bags, WeightedGMIL())
    numbers = check_groups(groups, len(bags), least=2)
    if not are_usable(bags.instances):
        bags = Impute().fit_transform(bags)
    evidence = left_out_evidence(bags, labels, numbers, n_rounds=n_rounds, rate=rate, seed=seed, n_jobs=n_jobs)
    found = suspect(evidence, labels, rate)
    suggested = _best_but(found.classes, labels)
    flagged = flag(found.wrong, fdr)
    order = np.argsort(-found.wrong, kind="stable")[: max(int(flagged.sum()), _FEWEST_EXPLAINED)]
    return LabelIssues(
        bag_ids=np.arange(len(bags)) if bags.bag_ids is None else np.asarray(bags.bag_ids),
        labels=classes[labels],
        suggested=classes[np.where(found.wrong > 0.5, suggested, labels)],
        wrong=found.wrong,
        evidence=_against_best(evidence, labels),
        flagged=flagged,
        strongest=_strongest(bags, labels, flagged, order, suggested, seed, n_jobs),
        duplicates=[(int(i), int(j)) for i, j in near_duplicates(bags) if labels[i] != labels[j]],
        confused=_confused(found.wrong, labels, suggested, classes),
        rate=float(found.wrong.mean()),
        fdr=fdr,
    )


def _best_but(probabilities: Floats, labels: Integers) -> Integers:
    """Return the most likely class but the label given."""
    others = probabilities.copy()
    others[np.arange(len(labels)), labels] = -1
    return np.asarray(others.argmax(axis=1))


def _against_best(evidence: Floats, labels: Integers) -> Floats:
    """Return the log-odds of the label given less those of the best other class."""
    if evidence.ndim == 1:
        return np.where(labels == 1, evidence, -evidence)
    rows = np.arange(len(labels))
    others = evidence.copy()
    others[rows, labels] = -np.inf
    return np.asarray(evidence[rows, labels] - others.max(axis=1))


def _strongest(
    bags: Bags,
    labels: Integers,
    flagged: Booleans,
    wanted: Integers,
    suggested: Integers,
    seed: int,
    n_jobs: int | None,
) -> dict[int, list[int]]:
    """Return, of some bags, the instances that are most of the suggested class, by a model without flagged bags."""
    kept = ~flagged if len(np.unique(labels[~flagged])) == len(np.unique(labels)) else np.ones(len(labels), dtype=bool)
    model = WeightedGMIL(random_state=seed, n_jobs=n_jobs).fit(bags[kept], labels[kept])
    some = bags[np.sort(wanted)]
    found = {}
    for number, scores in zip(np.sort(wanted).tolist(), some.split(model.score_instances(some)), strict=True):
        own = scores[:, suggested[number]] if scores.ndim == 2 else scores * (1 if suggested[number] == 1 else -1)
        found[number] = np.argsort(-own, kind="stable")[:_MOST_INSTANCES].tolist()
    return found


def _confused(
    wrong: Floats, labels: Integers, suggested: Integers, classes: NDArray[Any]
) -> list[tuple[Any, Any, float]]:
    """Return pairs of classes with the expected number of bags of the one that are of the other."""
    expected = np.zeros((len(classes), len(classes)))
    np.add.at(expected, (labels, suggested), wrong)
    names = classes.tolist()
    pairs = [(names[i], names[j], round(float(expected[i, j]), 2)) for i, j in zip(*np.nonzero(expected), strict=True)]
    return sorted(pairs, key=lambda pair: -pair[2])
