"""Methods by name, and ``gmil methods``: which there are, and the parameters of one."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import click

import gmil
from gmil.cli.console import print_table, say
from gmil.errors import BagValidationError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator


def method_named(text: str) -> str:
    """Return the name on the command line of a method: written so, as tables print it, or as the class is called.

    An own method, ``package.module:Class`` or the name of a plugin, is imported.

    >>> method_named("WeightedGMIL"), method_named("miGraph"), method_named("CitationKNN")
    ('weighted-gmil', 'mi-graph', 'citation-knn')
    """
    found = known_method(text)
    if found is None:
        known = sorted([*gmil.registry.methods(), *gmil.own_methods.plugin_names()])
        msg = f"There is no method {text!r}; the methods are {', '.join(known)}.{did_you_mean(text.casefold(), known)}"
        raise BagValidationError(msg)
    return found


def known_method(text: str) -> str | None:
    """Return the same, None where there is no such method."""
    known = gmil.registry.methods()
    if text in known:
        return text
    if ":" in text:
        return gmil.own_methods.import_method(text)
    pairs = list(_other_names(known))
    for written in (str, str.casefold):  # miGraph and MIGraph are two methods
        found = list(dict.fromkeys(method for name, method in pairs if written(name) == written(text)))
        if len(found) == 1:
            return found[0]
        if found:
            msg = f"{text!r} could be {' or '.join(found)}. Name one of them."
            raise BagValidationError(msg)
    return gmil.own_methods.load_plugin(text)


def _other_names(known: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield further names of methods: those on the command line in any case, those in tables, and of classes."""
    from gmil.paper.runs.parsing import load_spec

    yield from ((name, name) for name in known)
    yield from ((entry.label, entry.name) for entry in load_spec("table1").first_entries() if entry.name in known)
    yield from ((cls.__name__, name) for name, cls in known.items() if inspect.isclass(cls))


@click.command("methods")
@click.argument("name", required=False)
def list_methods(name: str | None) -> None:
    """List all methods, or the parameters of one.

    NAME is what --method takes: weighted-gmil, or WeightedGMIL as tables print it, or package.module:Class.
    """
    if name is None:
        _list()
        return
    method = method_named(name)
    made = gmil.own_methods.all_methods()[method]()
    described, package = type(made), "gmil" if method in gmil.registry.methods() else type(made).__module__
    where = f"In Python {package}.{described.__qualname__}; here --set NAME=VALUE."
    click.echo(f"{method}: {_summary(described)}\n{where}\n")
    defaults = made.get_params(deep=False)
    texts = _parameter_texts(_sections(described).get("Parameters", []))
    rows = [[key, repr(value), texts.get(key, "")] for key, value in defaults.items()]
    print_table(["parameter", "default", "what it is"], rows, text_columns=3)
    for title in ("Notes", "References"):
        lines = _sections(described).get(title)
        if lines:
            click.echo(f"\n{title}\n" + "\n".join(lines).strip())


def _list() -> None:
    """Print every method of gmil and of installed plugins; one that cannot be loaded is told, and left out."""
    for name in gmil.own_methods.plugin_names():
        try:
            gmil.own_methods.load_plugin(name)
        except BagValidationError as error:
            say(str(error))
    for method, make in sorted(gmil.own_methods.all_methods().items()):
        click.echo(f"{method}\t{_summary(type(make()))}")


def _summary(cls: Any) -> str:
    return _doc(cls).partition("\n")[0]


def _doc(cls: Any) -> str:
    """Return the docstring of a class, and not that of a base where it has none."""
    return inspect.cleandoc(cls.__doc__ or "")


def _sections(cls: Any) -> dict[str, list[str]]:
    """Return the sections of a numpydoc docstring, each as its lines."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", _doc(cls), flags=re.MULTILINE)
    return {title: text.rstrip().splitlines() for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def _parameter_texts(lines: list[str]) -> dict[str, str]:
    """Return the first sentence about every parameter; ``a, b : int`` are two."""
    blocks = re.split(r"^(\S.*)$", "\n".join(lines), flags=re.MULTILINE)
    found: dict[str, str] = {}
    for head, body in zip(blocks[1::2], blocks[2::2], strict=True):
        text = " ".join(body.split())
        sentence = re.split(r"(?<=\.)\s", text)[0].replace("``", "")
        found |= dict.fromkeys((name.strip() for name in head.partition(" :")[0].split(",")), sentence)
    return found
