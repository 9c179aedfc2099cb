"""Which method for where: a sentence on the instance scores of a method, from docs/results/instances.md.

`gmil compare --instances` quotes the sentences of the methods that it compares, beside the figures on the data at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

WHERE = {
    "weighted-gmil": "tells witnesses within bags (Newsgroups .953, Birds .731) and compares them over bags "
    "(AUC .921 and .970).",
    "single-instance": "gives scores that are comparable over bags (Birds: AUC .854, generated bags above .98), "
    "weak where witnesses are few among many features (Newsgroups: .733, within bags .721).",
}
"""Method name to a sentence without its subject; figures are pooled AUC, and mean AUC within bags where it says so."""


def notes_on_where(labels: Mapping[str, str]) -> list[str]:
    """Return a sentence for every compared method that was measured on labels of instances.

    Parameters
    ----------
    labels : mapping
        The names of methods, and what each is called in the table.
    """
    return [f"{label}, for where: {WHERE[name]}" for name, label in labels.items() if name in WHERE]
