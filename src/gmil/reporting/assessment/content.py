"""What an assessment of predictions consists of: plain data, like the summary that it is a part of."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_SHOWN = 20
"""Groups of features in tables and plots."""
MOST_REPEATS = 25
"""Repeats that curves are means over: GMIL in Table 1 has a thousand."""


@dataclass(frozen=True)
class Figure:
    """One measure of predictions.

    Parameters
    ----------
    key : str
        Its name in the JSON of ``gmil cv`` or ``gmil score``.
    title : str
    value : float, optional
        None where it cannot be measured.
    interval : list of float, optional
        The limits of the 95 % confidence interval.
    percent : bool
        Whether it is shown in per cent.
    """

    key: str
    title: str
    value: float | None
    interval: list[float] | None = None
    percent: bool = True


@dataclass(frozen=True)
class Confusion:
    """How many bags of every label (rows) got every prediction (columns)."""

    classes: list[str]
    counts: list[list[int]]


@dataclass(frozen=True)
class LabelCounts:
    """Right and wrong predictions of one label, where a bag may have several."""

    label: str
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int


@dataclass(frozen=True)
class ClassCurves:
    """Two curves of one class against all others, means over folds; their areas are the means over folds.

    Parameters
    ----------
    label : str
    n_bags : int
        Of this class.
    roc : list of [false positive rate, true positive rate]
    precision_recall : list of [recall, precision]
    auc, average_precision : float
    """

    label: str
    n_bags: int
    roc: list[list[float]]
    precision_recall: list[list[float]]
    auc: float
    average_precision: float


@dataclass(frozen=True)
class ClassReliability:
    """How true the probabilities of a class are.

    Parameters
    ----------
    label : str
    points : list of [mean probability, share of bags of the class, number of bags]
        Of every tenth of the probabilities that has bags.
    gap : float
        The mean distance between probability and share.
    """

    label: str
    points: list[list[float]]
    gap: float


@dataclass(frozen=True)
class BagLine:
    """One bag of a short table; ``scores`` stand under ``score_columns`` of the assessment."""

    number: int
    name: str
    label: str
    predicted: str
    scores: list[float]
    n_wrong: int  # in how many repeats


@dataclass(frozen=True)
class FeatureGroup:
    """Features that correlate, and by how much a measure falls without them, with its 95 % interval."""

    features: list[str]
    fall: float
    low: float
    high: float


@dataclass(frozen=True)
class Importance:
    """Which features matter.

    Parameters
    ----------
    measure : str
        "AUC" or "accuracy".
    base : float
        The measure with all features.
    n_repeats : int
        How often the values of every group were exchanged between bags.
    correlation : float, optional
        The least rank correlation within a group; None where no group has two features.
    groups : list of FeatureGroup
        The largest fall first; tables and plots show the first `MOST_SHOWN`.
    """

    measure: str
    base: float
    n_repeats: int
    correlation: float | None
    groups: list[FeatureGroup]


@dataclass(frozen=True)
class Assessment:
    """Predictions held against labels.

    Parameters
    ----------
    title, text : str
        ``text`` tells which bags these are, and by which models they were predicted.
    n_bags, n_repeats, n_folds : int
        Every bag has a prediction in every repeat; of one model, there is one fold.
    figures : list of Figure
    confusion : Confusion, optional
        Of bags with one label each, counted over all repeats.
    labels : list of LabelCounts
        Of bags that may have several labels.
    curves : list of ClassCurves
        Of the positive of two classes, else of every class.
    without_curves : str
        Why there are none, or not all.
    reliability : list of ClassReliability
        Of the same classes, where there are probabilities.
    risk : list of [share of bags answered, share of wrong answers]
        The surest bags first; of bags with one label each.
    score_columns : list of str
        What is shown of single bags: "probability of 'yes'".
    wrong, unsure : list of BagLine
        The bags that the model is most wrong and least sure about.
    importance : Importance, optional
    without_importance : str
        Why it was not measured.
    explorer : int, optional
        The number, from 1, of the model in the summary whose explorer shows these bags.
    """

    title: str
    text: str
    n_bags: int
    n_repeats: int
    n_folds: int
    figures: list[Figure]
    confusion: Confusion | None = None
    labels: list[LabelCounts] = field(default_factory=list)
    curves: list[ClassCurves] = field(default_factory=list)
    without_curves: str = ""
    reliability: list[ClassReliability] = field(default_factory=list)
    risk: list[list[float]] = field(default_factory=list)
    score_columns: list[str] = field(default_factory=list)
    wrong: list[BagLine] = field(default_factory=list)
    unsure: list[BagLine] = field(default_factory=list)
    importance: Importance | None = None
    without_importance: str = ""
    explorer: int | None = None

    @property
    def bags(self) -> set[int]:
        """The numbers of the bags that are named."""
        return {line.number for line in (*self.wrong, *self.unsure)}
