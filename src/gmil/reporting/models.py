"""`gmil.report`: a fitted model and bags as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmil.reporting.result import Report
from gmil.reporting.summary import Summary

if TYPE_CHECKING:
    from gmil.reporting.judging import Judged


def report(model: Any, bags: Any, y: Any = None, *, label: Any = None, title: str | None = None) -> Report:
    """Report the decisions of a fitted model about bags, and the instances behind them.

    The report has the two histograms and codebooks of `gmil.GMIL`, the views of `gmil.WeightedGMIL`, a map of the
    instances with the centres, and an explorer: for every bag its instances ranked by score, with their
    ``instance_info`` and the centre that each answered to; along a time axis where a column of ``instance_info`` is a
    time. Other classifiers of bags are shown as far as they have scores for instances.

    Parameters
    ----------
    model : fitted classifier of bags
        Pipelines and searches are looked into.
    bags : Bags, list of 2-D arrays, 3-D array, or 2-D array
    y : array of shape (n_bags,), optional
        Labels, where they are known.
    label : label, optional
        The class to look at; by default the positive one of two, else the commonest.
    title : str, optional

    Returns
    -------
    Report
        Shows itself in a notebook; ``save("report.html")``, ``to_html()``, ``to_markdown()``, ``to_json()``.

    Examples
    --------
    >>> import gmil
    >>> bags, y = gmil.load_musk1(return_X_y=True)
    >>> model = gmil.GMIL.from_paper("musk1", random_state=0).fit(bags[10:], y[10:])
    >>> gmil.report(model, bags[:10], y[:10]).summary.looks[0].bins[0].in_positive
    True
    """
    from gmil.paper.runs.environment import versions
    from gmil.reporting.inside import look_inside

    look, judged = look_inside(model, bags, y, label=label)
    summary = Summary(
        title=title or f"{type(model).__name__} on {len(judged.predicted)} bags",
        verdict=verdict(type(model).__name__, judged),
        looks=[look],
        environment=versions(),
    )
    return Report(summary)


def verdict(name: str, judged: Judged) -> str:
    """Return in one sentence what a model says about bags."""
    n = len(judged.predicted)
    said = sum(words == judged.label for words in judged.predicted)
    sentence = f"{name} calls {said} of {n} bags {judged.label!r}"
    if judged.n_right is None or judged.given is None:
        return f"{sentence}; no labels were given to compare with."
    majority = max(judged.given.count(words) for words in set(judged.given)) / n
    return (
        f"{sentence}; {judged.n_right} of {n} predictions ({100 * judged.n_right / n:.1f} %) agree with the labels "
        f"given, and naming the largest class would be right for {100 * majority:.1f} %."
    )
