"""Mutations of JSON: types, numbers, names, nesting.

A tree is held in a list of one, so that its root is a place like any other. Nesting deeper than Python can write is
a mark in the tree, and becomes brackets in the text.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

from tools.fuzz.mutations.hostile import FLOATS, HEX_FLOATS, INTEGERS, PATHS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator

    Place = tuple[Any, Any]
    Grow = Callable[[list[Any], Generator], None]

_OTHER_TYPES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    "",
    "text",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    {"list": []},
    {"dict": {}},
)
_DEPTHS = (50, 500, 5000, 100_000)
_BRACKETS = (
    ("[", "]"),
    ('{"a":', "}"),
    ('{"list":[', "]}"),
    ('{"dict":{"a":', "}}"),
    ('{"model":{"class":"GMIL","params":{},"fitted":{"a_":', "}}}"),
)
_MARK = re.compile(r'"<nest (\d) (\d+)>"')


def places(tree: Any) -> Iterator[Place]:
    """Return every place of a tree as its container and the key in it."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(entries):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from places(value)


def pick(items: Any, rng: Generator) -> Any:
    """Return one of several things, or None of none."""
    items = list(items)
    return items[int(rng.integers(len(items)))] if items else None


def to_text(root: list[Any]) -> str:
    """Write a tree as JSON, its marks as brackets."""
    return _MARK.sub(_brackets, json.dumps(root[0]))


def _brackets(mark: re.Match[str]) -> str:
    opening, closing = _BRACKETS[int(mark[1])]
    depth = int(mark[2])
    return opening * depth + "null" + closing * depth


def swap_type(root: list[Any], rng: Generator) -> None:
    """Put a value of another type somewhere."""
    container, key = pick(places(root), rng)
    container[key] = copy.deepcopy(pick(_OTHER_TYPES, rng))


def change_number(root: list[Any], rng: Generator) -> None:
    """Put a number there that is too large, negative, infinite or none at all."""
    numbers = [(c, k) for c, k in places(root) if _is_number(c[k])]
    if not numbers:
        return
    container, key = pick(numbers, rng)
    if key == "float" and isinstance(container, dict):
        container[key] = pick(HEX_FLOATS, rng)
    else:
        container[key] = pick((*INTEGERS, *FLOATS), rng)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith(("0x", "-0x"))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def change_text(root: list[Any], rng: Generator) -> None:
    """Put another text there: a path, a very long one, one from elsewhere in the tree."""
    texts = [(c, k) for c, k in places(root) if isinstance(c[k], str)]
    if texts:
        container, key = pick(texts, rng)
        other, name = pick(texts, rng)
        container[key] = pick((*PATHS, *TEXTS, *([other[name]] * 10)), rng)


def drop_entry(root: list[Any], rng: Generator) -> None:
    """Leave out an entry."""
    container, key = pick(places(root), rng)
    if container is not root:
        del container[key]


def rename_key(root: list[Any], rng: Generator) -> None:
    """Give an entry another name."""
    entries = [(c, k) for c, k in places(root) if isinstance(c, dict)]
    if entries:
        container, key = pick(entries, rng)
        names = ("__class__", "__dict__", "predict", "fit", "a_", "n_features_in_", key + "_", "class", "params", "")
        container[pick(names, rng)] = container.pop(key)


def swap_entries(root: list[Any], rng: Generator) -> None:
    """Swap two entries that do not hold each other."""
    (first, a), (second, b) = pick(places(root), rng), pick(places(root), rng)
    left, right = copy.deepcopy(first[a]), copy.deepcopy(second[b])
    second[b] = left
    if a in (first if isinstance(first, dict) else range(len(first))):
        first[a] = right


def repeat_entry(root: list[Any], rng: Generator) -> None:
    """Write an entry of a list many times."""
    lists = [(c, k) for c, k in places(root) if isinstance(c[k], list) and c[k]]
    if lists:
        container, key = pick(lists, rng)
        container[key] = container[key] + [pick(container[key], rng)] * int(pick((1, 10, 1000, 20_000), rng))


def nest(root: list[Any], rng: Generator) -> None:
    """Put something very deep somewhere."""
    container, key = pick(places(root), rng)
    container[key] = f"<nest {int(rng.integers(len(_BRACKETS)))} {pick(_DEPTHS, rng)}>"


TREES: dict[str, Grow] = {
    "json type": swap_type,
    "json number": change_number,
    "json text": change_text,
    "json entry dropped": drop_entry,
    "json key": rename_key,
    "json entries swapped": swap_entries,
    "json entry repeated": repeat_entry,
    "json nesting": nest,
}
