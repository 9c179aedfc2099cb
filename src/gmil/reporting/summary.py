"""The one summary: plain data that HTML, Markdown and JSON are written from. Nothing here computes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gmil.checks import Finding
    from gmil.heatmaps.page import PageSlide
    from gmil.reporting.assessment.content import Assessment

Tone = Literal["", "good", "bad", "muted"]
_MOST_SEEDS = 20
"""How many seeds are written out one by one."""


@dataclass(frozen=True)
class Provenance:
    """The rows that a number comes from.

    Parameters
    ----------
    key : str
        What numbers refer to it by.
    dataset, method, setting : str
    seeds : list of int
        Of the repeats, in order.
    folds : int
    gmil : str
        The version that computed.
    versions : str
        Versions of what else the result may depend on.
    files : list of str
        Relative to the folder of the run.
    finished_at : str
    seconds : float, optional
        Of one whole cross-validation, where they are known.
    """

    key: str
    dataset: str
    method: str
    setting: str
    seeds: list[int]
    folds: int
    gmil: str
    versions: str
    files: list[str]
    finished_at: str
    seconds: float | None = None

    @property
    def seeds_text(self) -> str:
        """The seeds for people: many in a row are the first and the last."""
        first, last = self.seeds[:1], self.seeds[-1:]
        if len(self.seeds) > _MOST_SEEDS and self.seeds == list(range(first[0], last[0] + 1)):
            return f"{first[0]} to {last[0]}"
        return ", ".join(map(str, self.seeds))


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table.

    Parameters
    ----------
    text : str
    detail : str
        What belongs to the number: its interval.
    note : str
        What it is set against: the published value and the difference.
    source : str, optional
        The key of the rows behind it.
    tone : {"", "good", "bad", "muted"}
        How ``note`` is coloured.
    """

    text: str
    detail: str = ""
    note: str = ""
    source: str | None = None
    tone: Tone = ""


@dataclass(frozen=True)
class Table:
    """A table with a title above and an explanation below; the first column names the row."""

    key: str
    title: str
    header: list[str]
    rows: list[list[Cell]]
    text: str = ""


@dataclass(frozen=True)
class AccuracyPoint:
    """One method in one setting on one data set: an accuracy with its interval, and the seconds of one k-fold."""

    method: str
    label: str
    setting: str
    accuracy: float
    low: float
    high: float
    seconds: float
    source: str


@dataclass(frozen=True)
class AccuracyPanel:
    """Accuracy against time on one data set; ``floor`` is the accuracy of the majority class."""

    dataset: str
    title: str
    points: list[AccuracyPoint]
    floor: float | None


@dataclass(frozen=True)
class CurvePoint:
    """One value of a parameter; accuracies are shares, ``spread`` is one standard deviation over seeds."""

    value: float | None
    accuracy: float | None
    low: float | None
    high: float | None
    spread: float | None
    auc: float | None
    seconds: float | None
    source: str | None
    seconds_source: str | None
    seconds_range: list[float] | None = None  # over rounds


@dataclass(frozen=True)
class Curve:
    """Accuracy (and time) over one parameter."""

    name: str
    title: str
    axis: str
    dataset: str
    floor: float | None
    points: list[CurvePoint]


@dataclass(frozen=True)
class TimedPoint:
    """What learning from so many bags took, by the clock and of the processor."""

    bags: int
    instances: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class TimedLine:
    """Times of one method; ``stopped`` is the number of bags for which it has none."""

    label: str
    points: list[TimedPoint]
    stopped: int | None
    source: str | None


@dataclass(frozen=True)
class TimedFigure:
    """Times over the number of bags; the table with the same ``key`` has the numbers."""

    key: str
    title: str
    lines: list[TimedLine]


@dataclass(frozen=True)
class Trust:
    """Whether the data can be trusted: the warnings by name, and every check; ``text`` names seed and version."""

    warnings: str
    findings: list[Finding]
    text: str = ""


@dataclass(frozen=True)
class Bin:
    """One cluster: its shares of the instances of positive and of negative bags, and its score by Eq. 6."""

    number: int
    positive_count: float
    negative_count: float
    positive_share: float
    negative_share: float
    score: float
    in_positive: bool
    in_negative: bool


@dataclass(frozen=True)
class InstanceMap:
    """Instances and centres in the plane of their two principal components.

    Parameters
    ----------
    points : list of [x, y, positive, centre]
        ``positive``: 1 in positive bags, 0 in others, -1 where no label is known; ``centre`` is the nearest one.
    centers : list of [x, y, role, number]
        ``role``: "positive" in C+, "negative" in C-, "both", or "".
    share : float
        Of the variance that the plane shows.
    n_instances : int
        Of which ``points`` are a sample.
    """

    points: list[list[float]]
    centers: list[list[Any]]
    share: float
    n_instances: int


@dataclass(frozen=True)
class BagView:
    """One bag of the explorer; ``rows`` are instances under the columns of the explorer, the best score first."""

    number: int
    name: str
    label: str | None
    predicted: str
    decision: float | None
    n_instances: int
    rows: list[list[Any]]


@dataclass(frozen=True)
class Explorer:
    """Bags to explore.

    Parameters
    ----------
    columns : list of str
        "rank", "instance", "score", "centre", "distance", "x", "y" as far as they are known, then the info columns.
    n_info : int
        How many of the columns, at the end, are ``instance_info``.
    time : str, optional
        The column that is a time.
    score_text : str
        What a score means.
    rule : str
        Which bags and instances are here where they are not all.
    n_bags : int
        Of the data; ``bags`` may be fewer.
    maps : list of PageSlide
        Maps of the bags whose instances have ``x`` and ``y``, for the page alone.
    """

    columns: list[str]
    n_info: int
    time: str | None
    score_text: str
    rule: str
    n_bags: int
    bags: list[BagView]
    maps: list[PageSlide] = field(default_factory=list)


@dataclass(frozen=True)
class ViewWeight:
    """The weight of one view of `gmil.WeightedGMIL`."""

    name: str
    weight: float


@dataclass(frozen=True)
class ModelSummary:
    """What is inside a fitted model; parts that a model does not have are None or empty."""

    title: str
    model: str
    text: str
    positive: str
    bins: list[Bin] = field(default_factory=list)
    views: list[ViewWeight] = field(default_factory=list)
    map: InstanceMap | None = None
    explorer: Explorer | None = None


@dataclass(frozen=True)
class Summary:
    """The content of a report.

    Parameters
    ----------
    title, verdict : str
        ``verdict`` is one sentence.
    warning : str
        What a reader must know before anything else: figures are of training bags.
    protocol : str
        How it was measured.
    trust : Trust, optional
    assessments : list of Assessment
        Predictions held against labels.
    panels : list of AccuracyPanel
    tables : list of Table
    curves : list of Curve
    times : list of TimedFigure
    models : list of ModelSummary
    sources : list of Provenance
    published : list of str
        Where published figures come from.
    notes, failures : list of str
    environment : dict
        Versions and machine.
    """

    title: str
    verdict: str
    warning: str = ""
    protocol: str = ""
    trust: Trust | None = None
    assessments: list[Assessment] = field(default_factory=list)
    panels: list[AccuracyPanel] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    times: list[TimedFigure] = field(default_factory=list)
    models: list[ModelSummary] = field(default_factory=list)
    sources: list[Provenance] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as dicts and lists, without the maps: what they are made of is told of every bag."""
        return asdict(replace(self, models=[_without_maps(model) for model in self.models]))


def _without_maps(model: ModelSummary) -> ModelSummary:
    explorer = model.explorer
    return model if explorer is None else replace(model, explorer=replace(explorer, maps=[]))
