"""The card of a data set: where it is from, how large it is, what is wrong with copies of it, and how to fold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bundled", "fetched", "local"]
Task = Literal["classes", "values", "videos"]


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What is known about a data set; ``str(info)`` is a description to print.

    Parameters
    ----------
    name : str
        The name that `gmil.datasets.load` knows.
    title : str
    kind : {"bundled", "fetched", "local"}
        Whether it comes with gmil, is downloaded once, or must be put into the data folder by hand.
    n_bags, n_positive, n_instances, n_features : int
        ``n_positive`` is None where bags have values; videos are no bags yet, and have no instances and features.
    licence, citation, about : str
    filename : str
        The NPZ file, in the package or in the data folder; the folder of videos.
    url : str, optional
        Where the original is.
    sha256 : str, optional
        The SHA-256 of the file at ``url``.
    contents : str, optional
        The fingerprint of bags and labels: the same whatever file holds them.
    task : {"classes", "values", "videos"}
        What bags are labelled with; videos are files of which bags can be made.
    defects : str
        What is wrong with copies of the set elsewhere, and what a reader must know of this one.
    grouped : str
        Which bags belong together and must be in one fold; empty where nothing is known of any.
    has_copies : bool
        Whether bags are copies of each other, so that ``load`` gives groups.
    label_check : str
        How it is known that the labels are the right ones.
    """

    name: str
    title: str
    kind: Kind
    n_bags: int
    n_positive: int | None
    n_instances: int
    n_features: int
    licence: str
    citation: str
    about: str
    filename: str
    url: str | None = None
    sha256: str | None = None
    contents: str | None = None
    task: Task = "classes"
    defects: str = ""
    grouped: str = ""
    has_copies: bool = False
    label_check: str = ""

    @property
    def original(self) -> str | None:
        """The name of the file at ``url``."""
        return None if self.url is None else self.url.rsplit("/", 1)[-1]

    @property
    def folding(self) -> str:
        """How bags are to be divided into folds, in a sentence."""
        return self.grouped or "Bags are folded one by one; no copies or groups are known."

    def __str__(self) -> str:
        sizes = [f"Bags:      {self._bags()}"]
        if self.task != "videos":
            sizes += [f"Instances: {self.n_instances}", f"Features:  {self.n_features}"]
        lines = [
            f"{self.title} ({self.name})",
            "",
            self.about,
            "",
            *sizes,
            f"Licence:   {self.licence}",
            f"Source:    {self.url or 'no public address'}",
            f"Citation:  {self.citation}",
            f"Folds:     {self.folding}",
            f"Labels:    {self.label_check}",
            f"Defects:   {self.defects or 'none known.'}",
        ]
        return "\n".join(lines)

    def _bags(self) -> str:
        if self.n_positive is None:
            return f"{self.n_bags}, with values"
        what = " videos" if self.task == "videos" else ""
        return f"{self.n_bags}{what} ({self.n_positive} positive, {self.n_bags - self.n_positive} negative)"
