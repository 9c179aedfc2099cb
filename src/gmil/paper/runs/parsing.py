"""Reading specifications: every key is known or refused, and every refusal says which keys there are."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.errors import SpecificationError, did_you_mean
from gmil.paper.runs.specification import COLUMNS, MISSING_STRATEGIES, MethodEntry, ParameterSweep, Protocol, Spec
from gmil.safety.guard import not_utf8, opening

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

_KINDS: dict[str, tuple[type, str]] = {
    "str": (str, "text"),
    "int": (int, "a whole number"),
    "bool": (bool, "true or false"),
    "tuple": (list, "a list"),
    "Mapping": (dict, "a table"),
    "Protocol": (dict, "a table"),
}
"""The first word of the annotation of a field, to what TOML must have there, and how that is called."""
_KEYS = {"methods": "method", "sweeps": "sweep"}
_NOT_KEYS: dict[type, tuple[str, ...]] = {Spec: ("name", "is_quick")}
_HAVE_DEFAULTS = ("title", "label")
_TEXTS = ("datasets", "optional_datasets", "columns")


def spec_names() -> list[str]:
    """Return the names of the experiments that come with gmil.

    >>> spec_names()
    ['figure7', 'table1', 'table2']
    """
    folder = files("gmil.paper.runs").joinpath("specs")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_spec(source: str | os.PathLike[str]) -> Spec:
    """Read an experiment: one that comes with gmil, by name, or a TOML file.

    >>> load_spec("table1").datasets
    ('musk1', 'musk2', 'elephant', 'fox', 'tiger')
    """
    if str(source) in spec_names():
        name = str(source)
        text = files("gmil.paper.runs").joinpath("specs", f"{name}.toml").read_text(encoding="utf-8")
        return parse_spec(tomllib.loads(text), name)
    if Path(source).suffix == ".toml":
        return parse_spec(read_toml(Path(source)), Path(source).stem, Path(source).parent)
    msg = f"There is no experiment {str(source)!r}; there are {', '.join(spec_names())}, or name a .toml file."
    raise SpecificationError(msg)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; one that is not there, or is something else, is named."""
    with opening(path):
        content = path.read_bytes()
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except tomllib.TOMLDecodeError as error:
        msg = f"{path} is not TOML: {error}."
        raise SpecificationError(msg) from error


def as_spec(spec: Spec | str | os.PathLike[str]) -> Spec:
    """Return an experiment that is passed as such, by name or as a file."""
    return spec if isinstance(spec, Spec) else load_spec(spec)


def parse_spec(document: Mapping[str, Any], name: str, folder: Path = Path()) -> Spec:
    """Turn the contents of a TOML file into an experiment; unknown keys and wrong kinds are refused.

    Parameters
    ----------
    document : dict
    name : str
    folder : Path
        Where paths of data begin: the folder of the TOML file.
    """
    values = _values(document, Spec, name)
    for part in ("quick", "protocol"):
        _values(document.get(part, {}), Protocol, f"{name}, [{part}]")
    values |= {
        "methods": tuple(_method(entry, name) for entry in _tables(document, "method", name, "label")),
        "sweeps": tuple(_sweep(entry, name) for entry in _tables(document, "sweep", name, "name")),
        "protocol": Protocol(**document.get("protocol", {})),
    }
    spec = Spec(**{"name": name, "title": name, **values})
    spec.quickly()  # what [quick] says is checked now, and not in the middle of a run
    if spec.missing not in MISSING_STRATEGIES:
        msg = f"{name}: missing must be one of {', '.join(MISSING_STRATEGIES)}, got {spec.missing!r}."
        raise SpecificationError(msg)
    _refuse_stray_datasets(spec)
    return _with_sources(spec, folder)


def python_value(value: Any) -> Any:
    """Return a value of a TOML file with None for "none", which TOML cannot say.

    >>> python_value({"scale": ["none", "l2"]})
    {'scale': [None, 'l2']}
    """
    if isinstance(value, dict):
        return {key: python_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [python_value(item) for item in value]
    return None if value == "none" else value


def _method(entry: Mapping[str, Any], spec: str) -> MethodEntry:
    where = f"{spec}, method {entry.get('name', '?')}"
    made = MethodEntry(**{"label": entry.get("name"), **_values(entry, MethodEntry, where)})
    for column in made.columns:
        if column not in COLUMNS:
            msg = f"{where}: there is no column {column!r}; the columns are {', '.join(COLUMNS)}."
            raise SpecificationError(msg)
    if made.repeats is not None and made.repeats < 1:
        msg = f"{where}: repeats must be at least 1, got {made.repeats}."
        raise SpecificationError(msg)
    return made


def _sweep(entry: Mapping[str, Any], spec: str) -> ParameterSweep:
    where = f"{spec}, sweep {entry.get('name', '?')}"
    made = ParameterSweep(**_values(entry, ParameterSweep, where))
    if made.name in COLUMNS:
        msg = f"{where}: {made.name!r} is a column of methods. Give the sweep another name."
        raise SpecificationError(msg)
    return made


def _values(table: Mapping[str, Any], record: type, where: str) -> dict[str, Any]:
    """Return the values of a table for the fields of a record: every key must be one of them, and of its kind."""
    fields = {_KEYS.get(f.name, f.name): f for f in dataclasses.fields(record)}
    known = {key: field for key, field in fields.items() if key not in _NOT_KEYS.get(record, ())}
    refuse_unknown_keys(table, known, where)
    for key, value in table.items():
        kind, words = _KINDS[re.split(r"\W", str(known[key].type))[0]]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            msg = f"{where}: {key} must be {words}, got {value!r}."
            raise SpecificationError(msg)
        _refuse_others(key, value, where)
    for key, field in known.items():
        needed = field.default is field.default_factory is dataclasses.MISSING and key not in _HAVE_DEFAULTS
        if needed and key not in table:
            msg = f"{where}: the key {key!r} is missing."
            raise SpecificationError(msg)
    named = {key for key in table if key in _TEXTS or isinstance(table[key], str)}  # "none" may be a name
    found = {known[key].name: value if key in named else python_value(value) for key, value in table.items()}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}


def refuse_unknown_keys(table: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse a key that there is not, with those that there are."""
    known = sorted(known)
    for key in table:
        if key not in known:
            keys = ", ".join(known)
            msg = f"{where}: there is no key {key!r}; the keys are {keys}.{did_you_mean(key, known)}"
            raise SpecificationError(msg)


def _refuse_others(key: str, value: Any, where: str) -> None:
    """Refuse lists of names that hold something else, and parameters for or of a data set that are no table."""
    for item in value if key in _TEXTS else ():
        if not isinstance(item, str):
            msg = f"{key} in {where} must be texts, got {item!r}."
            raise SpecificationError(msg)
    for dataset, params in value.items() if key in ("per_dataset", "generated", "files") else ():
        if not isinstance(params, dict):
            msg = f"{where}: {key}.{dataset} must be a table of parameters, got {params!r}."
            raise SpecificationError(msg)


def _tables(document: Mapping[str, Any], key: str, where: str, unique: str) -> list[dict[str, Any]]:
    """Return the tables of a list, which differ in what is called ``unique`` (where there is none, the name)."""
    entries: list[Any] = document.get(key, [])
    for entry in entries:
        if not isinstance(entry, dict):
            msg = f"{where}: every {key} must be a table, [[{key}]], got {entry!r}."
            raise SpecificationError(msg)
    names = [entry.get(unique, entry.get("name")) for entry in entries]
    for name in names:
        if names.count(name) > 1:
            msg = f"{where}: the {key} {name!r} is there {names.count(name)} times. The {unique}s must differ."
            raise SpecificationError(msg)
    return entries


def _refuse_stray_datasets(spec: Spec) -> None:
    known = {*spec.datasets, *spec.optional_datasets}
    named = [(m.name, set(m.per_dataset)) for m in spec.methods]
    named += [(s.name, {*s.datasets, *s.per_dataset}) for s in spec.sweeps]
    named += [("[files]", set(spec.files)), ("[generated]", set(spec.generated))]
    for where, datasets in named:
        for stray in sorted(datasets - known):
            msg = f"{spec.name}: {where} names the data set {stray!r}, which is not in datasets: {sorted(known)}."
            raise SpecificationError(msg)


def _with_sources(spec: Spec, folder: Path) -> Spec:
    """Return an experiment whose paths begin at a folder; what is wrong about data in files, or made, is refused."""
    if not (spec.files or spec.generated):
        return spec
    from gmil.datasets import dataset_names  # most experiments have none
    from gmil.paper.runs.data import check_generated
    from gmil.paper.runs.files import check_file

    for name, how in spec.generated.items():
        check_generated(name, how)
    for name, how in spec.files.items():
        check_file(name, how)
        if name in spec.generated:
            msg = f"{spec.name} has both [files.{name}] and [generated.{name}]. Leave out one of them."
            raise SpecificationError(msg)
        if name in dataset_names():
            msg = f"{spec.name}: [files.{name}] has the name of a set that gmil knows. Call your set something else."
            raise SpecificationError(msg)
    return dataclasses.replace(spec, files={name: {**how, "folder": folder} for name, how in spec.files.items()})
