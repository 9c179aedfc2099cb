"""A benchmark as data: sets x methods x protocol, as of an experiment of the paper, with a budget for every cell."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.checks.controls import BENCHMARK_CONTROLS
from gmil.datasets import dataset_names
from gmil.errors import SpecificationError, did_you_mean
from gmil.model_selection.target_crossval import target_of
from gmil.own_methods import load_plugin
from gmil.paper.runs.jobs import known_methods, make_estimator
from gmil.paper.runs.parsing import parse_spec, read_toml, refuse_unknown_keys
from gmil.paper.runs.specification import MethodEntry

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping

    from gmil.paper.runs.specification import Spec

SETTINGS = {"paper": "default", "tuned": "tuned"}
"""The columns of an experiment of the paper, and what they are here: no method has a setting for a set."""

_SET_KEYS = ("datasets", "files", "generated", "missing", "chose_defaults")
_KEYS = ("title", "reference", "controls", *_SET_KEYS, "protocol", "budget", "method")
_METHOD_KEYS = ("name", "label", "columns", "params", "repeats")
_PAPER_KEYS = ("sweep", "optional_datasets", "quick")
_PAPER_METHOD_KEYS = ("per_dataset", "from_paper", "quick", "variant")
_MOST_FOLDS, _MOST_SEED = 127, 2**31 - 1
"""What records hold: the number of a fold in a byte, a seed in four."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one cell may cost; a k-fold is one repeat.

    Parameters
    ----------
    once_minutes : float
        CPU minutes of a k-fold above which a cell is not repeated.
    most_minutes : float
        CPU minutes of a k-fold above which it is stopped: the cell is empty, with its reason.
    most_gib : float
        Memory, beyond that of data and libraries, above which it is stopped.
    """

    once_minutes: float = 5.0
    most_minutes: float = 30.0
    most_gib: float = 8.0

    def __post_init__(self) -> None:
        for name in ("once_minutes", "most_minutes", "most_gib"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                msg = f"{name} in the budget must be a number above 0, got {value!r}."
                raise SpecificationError(msg)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A whole benchmark.

    Parameters
    ----------
    spec : Spec
        Sets, methods and protocol; controls are methods among others.
    reference : str
        The method that all others are compared with.
    chose_defaults : tuple of str
        Sets on which some default was settled: they are marked, and ranks are also given without them.
    budget : Budget
    """

    spec: Spec
    reference: str
    chose_defaults: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)

    def restricted(self, methods: Collection[str] | None, sets: Collection[str] | None) -> Benchmark:
        """Return the same with some methods, and on some sets; unknown names are refused."""
        spec = self.spec if methods is None else self.spec.restricted(methods)
        for name in sets or ():
            if name not in spec.datasets:
                hint = did_you_mean(name, spec.datasets)
                msg = f"{spec.name} has no set {name!r}; it has {', '.join(spec.datasets)}.{hint}"
                raise SpecificationError(msg)
        kept = spec.datasets if sets is None else tuple(name for name in spec.datasets if name in sets)
        return dataclasses.replace(self, spec=dataclasses.replace(spec, datasets=kept))

    @property
    def labels(self) -> dict[str, str]:
        """Names of methods and controls, and what they are called."""
        return {entry.name: entry.label for entry in self.spec.methods}


def load_benchmark(path: str | os.PathLike[str]) -> Benchmark:
    """Read a benchmark from a TOML file; unknown keys and wrong kinds are refused."""
    path = Path(path)
    return parse_benchmark(read_toml(path), path.stem, path.parent)


def parse_benchmark(document: Mapping[str, Any], name: str, folder: Path = Path()) -> Benchmark:
    """Turn the contents of a TOML file into a benchmark.

    Parameters
    ----------
    document : dict
    name : str
    folder : Path
        Where paths of data begin: the folder of the TOML file.
    """
    document = dict(document)
    _refuse_other_keys(document, name)
    controls = _names(document.pop("controls", []), "controls", name, known=BENCHMARK_CONTROLS)
    chose, reference = document.pop("chose_defaults", []), document.pop("reference", None)
    budget, entries = document.pop("budget", {}), document.get("method", [])
    document["method"] = [_with_columns(entry) for entry in entries] if isinstance(entries, list) else entries
    spec = parse_spec(document, name, folder)
    chose = _names(chose, "chose_defaults", name, known=spec.datasets)
    _refuse_unknown_sets(spec)
    for entry in spec.methods:
        check_method(entry.name, name)
        if entry.name in known_methods():
            make_estimator(entry.name, entry.params)  # a wrong parameter is refused now, and not after hours
    added = [MethodEntry(c, BENCHMARK_CONTROLS[c][0], columns=("paper",)) for c in controls]
    spec = spec.having((*spec.methods, *added))
    methods = [entry.name for entry in spec.methods]
    if reference not in methods:
        hint = did_you_mean(str(reference), methods)
        msg = f"{name}: reference must be one of its methods, got {reference!r}.{hint}"
        raise SpecificationError(msg)
    _refuse_repeated("set", list(spec.datasets), name)
    _check_protocol(spec)
    return Benchmark(spec, reference, chose, _budget(budget, name))


def _refuse_other_keys(document: Mapping[str, Any], name: str) -> None:
    """Refuse unknown keys, and what only experiments of the paper have: settings of single sets, sweeps, quick runs."""
    entries = document.get("method", [])
    tables = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    names = [entry.get("name") for entry in tables]
    _refuse_repeated("method", [method for method in names if isinstance(method, str)], name)
    where = [(key, name) for key in _PAPER_KEYS if key in document]
    where += [
        (k, f"{name}, method {entry.get('name', '?')}") for entry in tables for k in _PAPER_METHOD_KEYS if k in entry
    ]
    for key, place in where:
        msg = f"{place}: a benchmark has no {key!r}: a method has the same setting on all sets. Leave it out."
        raise SpecificationError(msg)
    refuse_unknown_keys(document, _KEYS, name)
    for entry in tables:
        refuse_unknown_keys(entry, _METHOD_KEYS, f"{name}, method {entry.get('name', '?')}")
        for column in entry["columns"] if isinstance(entry.get("columns"), list) else ():
            if isinstance(column, str) and column not in SETTINGS.values():
                settings = ", ".join(SETTINGS.values())
                msg = f"{name}, method {entry.get('name', '?')}: there is no column {column!r}; there are {settings}."
                raise SpecificationError(msg)


def _check_protocol(spec: Spec) -> None:
    """Refuse what records cannot hold, before anything is measured."""
    protocol = spec.protocol
    most = max([protocol.repeats, *(entry.repeats or 1 for entry in spec.methods)])
    if protocol.folds > _MOST_FOLDS:
        msg = f"{spec.name}: folds in the protocol must be at most {_MOST_FOLDS}, got {protocol.folds}."
        raise SpecificationError(msg)
    if protocol.seed + most > _MOST_SEED:
        seed = protocol.seed
        msg = f"{spec.name}: the seed in the protocol, and those of repeats, must be below {_MOST_SEED}, got {seed}."
        raise SpecificationError(msg)


def _with_columns(entry: Any) -> Any:
    """Return a method whose settings have the names of the paper's columns; what is wrong is left to who parses it."""
    if not isinstance(entry, dict) or not isinstance(entry.get("columns"), list):
        return entry
    columns = {setting: column for column, setting in SETTINGS.items()}
    return {**entry, "columns": [columns.get(n, n) if isinstance(n, str) else n for n in entry["columns"]]}


def check_method(name: str, where: str) -> None:
    """Refuse a method that there is not, or that does not predict classes.

    A plugin is loaded, as somebody has installed it. An own method, ``package.module:Class``, is not: a module is
    imported only where the command line names it, and `gmil.benchmark.run` tells where none has.
    """
    if name not in known_methods() and ":" not in name and load_plugin(name) is None:
        known = sorted(method for method in known_methods() if method not in BENCHMARK_CONTROLS)
        hint = did_you_mean(name, known) or " Your own: package.module:Class."
        msg = f"{where}: there is no method {name!r}; there are {', '.join(known)}.{hint}"
        raise SpecificationError(msg)
    if name in known_methods() and (target := target_of(known_methods()[name]())) != "classes":
        msg = f"{where}: a benchmark compares methods for two classes, but {name!r} is for {target}. Leave it out."
        raise SpecificationError(msg)


def _refuse_unknown_sets(spec: Spec) -> None:
    """Refuse a set that gmil does not know; one that is known may be elsewhere, and has its name for itself."""
    for name in spec.datasets:
        if name not in {*dataset_names(), *spec.files, *spec.generated}:
            key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else f'"{name}"'
            own = f" Yours: a table [files.{key}] with its path. Or make it: [generated.{key}]."
            hint = did_you_mean(name, dataset_names()) or own
            msg = f"{spec.name}: there is no set {name!r}; there are {', '.join(dataset_names())}.{hint}"
            raise SpecificationError(msg)


def _names(given: Any, key: str, where: str, known: Collection[str]) -> tuple[str, ...]:
    if not isinstance(given, list):
        msg = f"{where}: {key} must be a list, got {given!r}."
        raise SpecificationError(msg)
    for item in given:
        if not isinstance(item, str) or item not in known:
            hint = did_you_mean(str(item), known)
            msg = f"{where}: there is no {item!r} for {key}; there are {', '.join(known)}.{hint}"
            raise SpecificationError(msg)
    return tuple(given)


def _budget(table: Any, where: str) -> Budget:
    known = [f.name for f in dataclasses.fields(Budget)]
    if not isinstance(table, dict):
        msg = f"{where}: budget must be a table, [budget], got {table!r}."
        raise SpecificationError(msg)
    refuse_unknown_keys(table, known, f"{where}, [budget]")
    return Budget(**table)


def _refuse_repeated(kind: str, names: list[str], where: str) -> None:
    """Refuse a method, whose records are one file, or a set that is there twice."""
    for name in names:
        if names.count(name) > 1:
            msg = f"{where}: the {kind} {name!r} is there {names.count(name)} times. Name it once."
            raise SpecificationError(msg)
