"""Experiments as data: data sets x methods x columns x protocol, read from TOML into frozen dataclasses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gmil.errors import SpecificationError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

COLUMNS = ("paper", "tuned")
MISSING_STRATEGIES = ("error", "median", "drop")
MOST_SETTINGS = 30
"""The promise of the tuned column: no method may choose from more settings than another."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How everything in an experiment is measured.

    Parameters
    ----------
    folds : int
        Stratified folds of bags.
    repeats : int
        How often, each time with other folds and seeds.
    tuned_repeats : int, optional
        The same for tuned methods, which cost a hundred times more; None means ``repeats``.
    seed : int
        Repeat r has the seed ``seed + r``.
    inner_folds : int
        Folds inside the training bags in which tuned methods choose.
    max_settings : int
        Settings that a tuned method may choose from, 30 at most.
    """

    folds: int = 10
    repeats: int = 5
    tuned_repeats: int | None = None
    seed: int = 0
    inner_folds: int = 5
    max_settings: int = MOST_SETTINGS

    def __post_init__(self) -> None:
        least = {"folds": 2, "repeats": 1, "tuned_repeats": 1, "seed": 0, "inner_folds": 2, "max_settings": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if name == "tuned_repeats" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                msg = f"{name} in the protocol must be a whole number of at least {low}, got {value!r}."
                raise SpecificationError(msg)
        if self.max_settings > MOST_SETTINGS:
            msg = f"max_settings is at most {MOST_SETTINGS}, the same for every method, got {self.max_settings}."
            raise SpecificationError(msg)

    def repeats_of(self, column: str, asked: int | None = None) -> int:
        """Return how often jobs of a column are repeated, where a method asks for a number of repeats of its own.

        What is tuned is never repeated more often than the protocol says.

        >>> protocol = Protocol(repeats=5, tuned_repeats=1)
        >>> protocol.repeats_of("paper"), protocol.repeats_of("paper", 1000), protocol.repeats_of("tuned", 1000)
        (5, 1000, 1)
        """
        if column != "tuned":
            return self.repeats if asked is None else asked
        tuned = self.repeats if self.tuned_repeats is None else self.tuned_repeats
        return tuned if asked is None else min(tuned, asked)


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """One method of a table.

    Parameters
    ----------
    name : str
        As on the command line; a method that gmil does not have is no error, it has published figures only.
    label : str
        As printed. Entries are told apart by it: a method may stand in a table several times, with other parameters.
    columns : tuple of str
        Which of "paper" and "tuned" to measure.
    from_paper : bool
        Take the paper setting of every data set from the class, by its ``from_paper``.
    params : mapping
        Parameters of the paper setting on all data sets.
    per_dataset : mapping of mappings
        Parameters of the paper setting on single data sets; they override ``params``.
    quick : bool
        Whether a quick run measures it, or shows its published figures only because it takes too long.
    repeats : int, optional
        In place of the repeats of the protocol: fewer where a k-fold takes minutes, more where it takes milliseconds.
    variant : str
        In what the method that is measured is not the one that its name stands for; it is said beside the table.
    """

    name: str
    label: str
    columns: tuple[str, ...] = COLUMNS
    from_paper: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    per_dataset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    quick: bool = True
    repeats: int | None = None
    variant: str = ""

    def quickly(self, most_repeats: int) -> MethodEntry:
        """Return the entry of a quick run."""
        repeats = None if self.repeats is None or self.repeats > most_repeats else self.repeats
        return dataclasses.replace(self, columns=self.columns if self.quick else (), repeats=repeats)

    @property
    def has_paper_setting(self) -> bool:
        """Whether the specification says what was published; else the "paper" column has the defaults of the class."""
        return self.from_paper or bool(self.params) or bool(self.per_dataset)


@dataclass(frozen=True, slots=True)
class ParameterSweep:
    """One parameter of one method, varied.

    Parameters
    ----------
    name : str
        The column of its rows.
    method, parameter : str
        What is varied.
    values : tuple
        Its values; ``quick_values`` replace them in a quick run.
    title, axis : str
        For people.
    datasets : tuple of str
    params : mapping
        The other parameters, on all data sets; ``per_dataset`` overrides them.
    repeats : int, optional
        In place of the repeats of the protocol, where that has more.
    timed : bool
        Whether the time over the values is measured too.
    """

    name: str
    method: str
    parameter: str
    values: tuple[Any, ...]
    datasets: tuple[str, ...]
    title: str = ""
    axis: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    per_dataset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    quick_values: tuple[Any, ...] = ()
    repeats: int | None = None
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole experiment.

    Parameters
    ----------
    name, title : str
    datasets : tuple of str
        Names that `gmil.datasets.load` knows, or of ``files``, or of ``generated`` ones, or of data passed to `run`.
    optional_datasets : tuple of str
        Those that are measured where they are present and left out where they are not.
    methods : tuple of MethodEntry
    sweeps : tuple of ParameterSweep
    controls : bool
        Add the majority class and the bag size alone, which every accuracy must be compared with.
    protocol : Protocol
    quick : mapping
        The fields of the protocol that a quick run changes.
    files : mapping of mappings
        Data sets in files or folders: name to ``path`` and, called as the options of commands, what is where in it.
    generated : mapping of mappings
        Data sets made by `gmil.make_bags`, or with ``maker = "slides"`` by `gmil.make_slides`: name to parameters.
        ``random_state`` is 0 where it is not given.
    is_quick : bool
        Whether this is a quick run.
    missing : {"error", "median", "drop"}
        What is done about missing values, inside the folds: see `gmil.Impute`.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    optional_datasets: tuple[str, ...] = ()
    methods: tuple[MethodEntry, ...] = ()
    sweeps: tuple[ParameterSweep, ...] = ()
    controls: bool = False
    protocol: Protocol = field(default_factory=Protocol)
    quick: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    generated: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_quick: bool = False
    missing: str = "error"

    def quickly(self) -> Spec:
        """Return the quick variant: fewer repeats and settings, no optional data; its rows serve the full one."""
        protocol = dataclasses.replace(self.protocol, **self.quick)
        return dataclasses.replace(
            self,
            optional_datasets=(),
            methods=tuple(m.quickly(protocol.repeats) for m in self.methods),
            sweeps=tuple(dataclasses.replace(s, values=s.quick_values or s.values) for s in self.sweeps),
            protocol=protocol,
            is_quick=True,
        )

    def repeated(self, repeats: int) -> Spec:
        """Return the same with another number of repeats; tuned methods are never repeated more often than it says."""
        tuned = self.protocol.tuned_repeats
        tuned = None if tuned is None else min(tuned, repeats)
        return dataclasses.replace(
            self,
            methods=tuple(dataclasses.replace(m, repeats=None) for m in self.methods),
            sweeps=tuple(dataclasses.replace(s, repeats=None) for s in self.sweeps),
            protocol=dataclasses.replace(self.protocol, repeats=repeats, tuned_repeats=tuned),
        )

    def untuned(self) -> Spec:
        """Return the same without tuned columns, which take a hundred times as long as the others."""
        kept = [dataclasses.replace(m, columns=tuple(c for c in m.columns if c != "tuned")) for m in self.methods]
        return self.having(kept)

    def first_entries(self) -> tuple[MethodEntry, ...]:
        """Return the first entry of every method, which is the one that its published figures belong to."""
        found: dict[str, MethodEntry] = {}
        for entry in self.methods:
            found.setdefault(entry.name, entry)
        return tuple(found.values())

    def joined_by(self, methods: Iterable[MethodEntry]) -> Spec:
        """Return the same with further methods at its end, where it is a table of methods."""
        return self.having((*self.methods, *methods)) if self.methods else self

    def having(self, methods: Iterable[MethodEntry]) -> Spec:
        """Return the same with these methods."""
        return dataclasses.replace(self, methods=tuple(methods))

    def restricted(self, methods: Collection[str]) -> Spec:
        """Return the same with some of its methods; a name that it does not have is refused."""
        known = [m.name for m in self.methods] + [s.method for s in self.sweeps]
        for name in methods:
            if name not in known:
                there = ", ".join(dict.fromkeys(known))
                msg = f"{self.name} has no method {name!r}; it has {there}.{did_you_mean(name, known)}"
                raise SpecificationError(msg)
        return dataclasses.replace(
            self,
            methods=tuple(m for m in self.methods if m.name in methods),
            sweeps=tuple(s for s in self.sweeps if s.method in methods),
        )
