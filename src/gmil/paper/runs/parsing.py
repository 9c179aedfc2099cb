"""Reading specifications: every key is known or refused, and every refusal says which keys there are."""

from __future__ import annotations

import difflib
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.errors import SpecificationError
from gmil.paper.runs.specification import COLUMNS, MethodEntry, Protocol, Spec, Sweep

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_KINDS: dict[str, type] = {
    "title": str, "name": str, "label": str, "axis": str, "method": str, "parameter": str, "variant": str,
    "datasets": list, "optional_datasets": list, "columns": list, "values": list, "quick_values": list, "sweep": list,
    "params": dict, "per_dataset": dict, "protocol": dict, "generated": dict,
    "quick": bool, "controls": bool, "from_paper": bool, "timed": bool,
    "folds": int, "repeats": int, "tuned_repeats": int, "seed": int, "inner_folds": int, "max_settings": int,
}  # fmt: skip
_KINDS_OF_SPEC: dict[str, type] = {"method": list, "quick": dict}
_KIND_NAMES = {str: "text", list: "a list", dict: "a table", bool: "true or false", int: "a whole number"}
_SPEC_KEYS = {
    "title", "datasets", "optional_datasets", "method", "sweep", "controls", "protocol", "quick", "generated",
}  # fmt: skip
_PROTOCOL_KEYS = {"folds", "repeats", "tuned_repeats", "seed", "inner_folds", "max_settings"}
_METHOD_KEYS = {"name", "label", "columns", "from_paper", "params", "per_dataset", "quick", "repeats", "variant"}
_SWEEP_KEYS = {
    "name", "title", "axis", "method", "datasets", "params", "per_dataset", "parameter", "values", "quick_values",
    "repeats", "timed",
}  # fmt: skip


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
    elif Path(source).suffix == ".toml":
        name, text = Path(source).stem, Path(source).read_text(encoding="utf-8")
    else:
        msg = f"There is no experiment {str(source)!r}; there are {', '.join(spec_names())}, or name a .toml file."
        raise SpecificationError(msg)
    try:
        return parse_spec(tomllib.loads(text), name)
    except tomllib.TOMLDecodeError as error:
        msg = f"The experiment {name} is not TOML: {error}."
        raise SpecificationError(msg) from error


def parse_spec(document: Mapping[str, Any], name: str) -> Spec:
    """Turn the contents of a TOML file into an experiment; unknown keys and wrong kinds are refused."""
    _check(document, _SPEC_KEYS, name, required=("datasets",))
    quick = document.get("quick", {})
    _check(quick, _PROTOCOL_KEYS, f"{name}, [quick]")
    protocol = document.get("protocol", {})
    _check(protocol, _PROTOCOL_KEYS, f"{name}, [protocol]")
    spec = Spec(
        name=name,
        title=document.get("title", name),
        datasets=_texts(document["datasets"], f"datasets in {name}"),
        optional_datasets=_texts(document.get("optional_datasets", []), f"optional_datasets in {name}"),
        methods=tuple(_method(entry, name) for entry in _tables(document, "method", name, "label")),
        sweeps=tuple(_sweep(entry, name) for entry in _tables(document, "sweep", name, "name")),
        controls=document.get("controls", False),
        protocol=Protocol(**protocol),
        quick=dict(quick),
        generated=document.get("generated", {}),
    )
    spec.quickly()  # what [quick] says is checked now, and not in the middle of a run
    _refuse_stray_datasets(spec)
    return spec


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
    _check(entry, _METHOD_KEYS, where, required=("name",))
    columns = _texts(entry.get("columns", list(COLUMNS)), f"columns in {where}")
    for column in columns:
        if column not in COLUMNS:
            msg = f"{where}: there is no column {column!r}; the columns are {', '.join(COLUMNS)}."
            raise SpecificationError(msg)
    if entry.get("repeats", 1) < 1:
        msg = f"{where}: repeats must be at least 1, got {entry['repeats']}."
        raise SpecificationError(msg)
    return MethodEntry(
        name=entry["name"],
        label=entry.get("label", entry["name"]),
        columns=columns,
        from_paper=entry.get("from_paper", False),
        params=python_value(entry.get("params", {})),
        per_dataset=_per_dataset(entry, where),
        quick=entry.get("quick", True),
        repeats=entry.get("repeats"),
        variant=entry.get("variant", ""),
    )


def _sweep(entry: Mapping[str, Any], spec: str) -> Sweep:
    where = f"{spec}, sweep {entry.get('name', '?')}"
    _check(entry, _SWEEP_KEYS, where, required=("name", "method", "parameter", "values", "datasets"))
    if entry["name"] in COLUMNS:
        msg = f"{where}: {entry['name']!r} is a column of methods. Give the sweep another name."
        raise SpecificationError(msg)
    changed = {
        "datasets": _texts(entry["datasets"], f"datasets in {where}"),
        "values": tuple(python_value(entry["values"])),
        "quick_values": tuple(python_value(entry.get("quick_values", []))),
        "params": python_value(entry.get("params", {})),
        "per_dataset": _per_dataset(entry, where),
    }
    return Sweep(**{**entry, **changed})


def _per_dataset(entry: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    found = python_value(entry.get("per_dataset", {}))
    for dataset, params in found.items():
        if not isinstance(params, dict):
            msg = f"{where}: per_dataset.{dataset} must be a table of parameters, got {params!r}."
            raise SpecificationError(msg)
    return found


def _check(table: Any, known: set[str], where: str, required: tuple[str, ...] = ()) -> None:
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            msg = f"{where}: there is no key {key!r}; the keys are {', '.join(sorted(known))}.{hint}"
            raise SpecificationError(msg)
        kind = _KINDS_OF_SPEC.get(key, _KINDS[key]) if known is _SPEC_KEYS else _KINDS[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            msg = f"{where}: {key} must be {_KIND_NAMES[kind]}, got {value!r}."
            raise SpecificationError(msg)
    for key in required:
        if key not in table:
            msg = f"{where}: the key {key!r} is missing."
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


def _texts(value: list[Any], where: str) -> tuple[str, ...]:
    for item in value:
        if not isinstance(item, str):
            msg = f"{where} must be texts, got {item!r}."
            raise SpecificationError(msg)
    return tuple(value)


def _refuse_stray_datasets(spec: Spec) -> None:
    known = {*spec.datasets, *spec.optional_datasets}
    named = [(m.name, set(m.per_dataset)) for m in spec.methods]
    named += [(s.name, {*s.datasets, *s.per_dataset}) for s in spec.sweeps]
    named += [("[generated]", set(spec.generated))]
    for where, datasets in named:
        for stray in sorted(datasets - known):
            msg = f"{spec.name}: {where} names the data set {stray!r}, which is not in datasets: {sorted(known)}."
            raise SpecificationError(msg)
