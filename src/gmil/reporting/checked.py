"""Checks as a page: of data, of their labels, and of new bags against a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.paper.runs.environment import versions
from gmil.reporting.assessment.assess import bag_name
from gmil.reporting.result import Report
from gmil.reporting.summary import Cell, Summary, Table, Trust

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.checks import DataCheck, DriftCheck, LabelIssues

_MOST_ROWS = 50
_MOST_INFO = 3
"""Columns of ``instance_info`` that are shown of an instance."""
_FEWEST_BAGS = 0.5
"""Confused classes with fewer expected bags are not shown."""


def check_report(found: DataCheck, title: str, bags: Bags, issues: LabelIssues | None = None) -> Report:
    """Return a page of a check of data, with the labels to look at where these were searched for.

    Parameters
    ----------
    found : DataCheck
    title : str
    bags : Bags
    issues : LabelIssues, optional
    """
    return Report(
        Summary(
            title=title,
            verdict=f"Verdict: {found.verdict}.",
            trust=Trust(found.warnings(), found.findings),
            tables=[] if issues is None else issue_tables(issues, bags),
            environment=versions(),
        )
    )


def issue_tables(issues: LabelIssues, bags: Bags) -> list[Table]:
    """Return tables of the labels to look at, of copies with different labels, and of confused classes."""
    return [table for table in (_issue_table(issues, bags), _copies_table(issues), _confused_table(issues)) if table]


def _issue_table(issues: LabelIssues, bags: Bags) -> Table:
    shown = [number for number in issues.order.tolist() if number in issues.strongest][:_MOST_ROWS]
    rows = [
        [
            Cell(str(issues.bag_ids[i])),
            Cell(str(issues.labels[i])),
            Cell(str(issues.suggested[i]) if issues.wrong[i] > 0.5 else "–"),
            Cell(f"{issues.wrong[i]:.3f}"),
            Cell(f"{issues.evidence[i]:.2f}".replace("-", "−")),
            Cell("flagged" if issues.flagged[i] else "", tone="bad" if issues.flagged[i] else ""),
            Cell("; ".join(_instance(bags, i, number) for number in issues.strongest[i])),
        ]
        for i in shown
    ]
    text = (
        f"{int(issues.flagged.sum())} of {len(issues.labels)} labels flagged, of which at most {issues.fdr:.0%} are "
        "expected to be right. Evidence: left-out log-odds of the label given against the best other class. The "
        "strongest instances are those that are most of the suggested class. A bag that is truly unlike the others of "
        "its class cannot be told from a wrong label: look before you correct."
    )
    header = ["bag", "label", "suggested", "probability that it is wrong", "evidence", "", "strongest instances"]
    return Table("labels", "Labels that may be wrong", header, rows, text)


def _instance(bags: Bags, bag: int, number: int) -> str:
    """Return the number of an instance in its bag, and what is known of it."""
    info = bags.instance_info
    if info is None:
        return str(number)
    row = info.slice(int(bags.offsets[bag]) + number, 1).to_pylist()[0]
    known = ", ".join(f"{name} {value}" for name, value in list(row.items())[:_MOST_INFO])
    return f"{number} ({known})"


def _copies_table(issues: LabelIssues) -> Table | None:
    if not issues.duplicates:
        return None
    both = [[(issues.bag_ids[i], issues.labels[i]) for i in pair] for pair in issues.duplicates[:_MOST_ROWS]]
    rows = [[Cell(str(text)) for bag in pair for text in bag] for pair in both]
    text = "At least one label of each pair is wrong, or the features do not tell the classes apart."
    return Table("copies", "Nearly the same bags with different labels", ["bag", "label", "bag", "label"], rows, text)


def _confused_table(issues: LabelIssues) -> Table | None:
    rows = [[Cell(str(a)), Cell(str(b)), Cell(f"{n:.1f}")] for a, b, n in issues.confused if n >= _FEWEST_BAGS]
    if not rows:
        return None
    text = "Sums of the probabilities that a label is wrong."
    return Table("confused", "Confused classes", ["label given", "may be", "expected bags"], rows, text)


_HEADER = ["feature", "out of range", "distance", "p-value"]
_OF_FEATURES = (
    "Bags with values out of the training range; distance between means of bags (Kolmogorov-Smirnov), and its "
    "p-value, adjusted for the number of features (Holm)."
)
_OF_BAGS = (
    "The share of training bags that are at least as far away from the others. Of bags like these, one in twenty is at "
    "0.05 or below."
)


def drift_report(found: DriftCheck, title: str, bags: Any) -> Report:
    """Return a page of new bags against those that a model learnt from.

    Parameters
    ----------
    found : DriftCheck
    title : str
    bags : Bags
        The new ones.
    """
    shown = found.features[:_MOST_ROWS]
    texts = [[r["name"], f"{r['outside']:.2%}", f"{r['distance']:.3f}", f"{r['p_value']:.2g}"] for r in shown]
    features = [[Cell(text) for text in row] for row in texts]
    order = found.familiarity.argsort(kind="stable")[:_MOST_ROWS].tolist()
    unlike = [[Cell(bag_name(bags, i)), Cell(f"{found.familiarity[i]:.3f}")] for i in order]
    return Report(
        Summary(
            title=title,
            verdict=f"Verdict: {found.verdict}.",
            trust=Trust(found.warnings(), found.findings),
            tables=[
                Table("features", "Features", _HEADER, features, _OF_FEATURES),
                Table("unlike", "Bags, the most unlike first", ["bag", "familiarity"], unlike, _OF_BAGS),
            ],
            environment=versions(),
        )
    )
