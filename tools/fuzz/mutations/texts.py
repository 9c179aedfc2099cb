"""Mutations of text tables: CSV, TSV, C4.5 and ARFF."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tools.fuzz.mutations.hostile import FLOATS, INTEGERS, PATHS, TEXTS
from tools.fuzz.mutations.trees import pick

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Mutate = Callable[[bytes, Generator], bytes]
    Lines = list[str]

_CELL = re.compile(r"[^,\t{}\s]+")
_ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-8-sig", "cp500")
_SPELLINGS = ("nan", "NaN", "inf", "-inf", "?", "1e999", "0x10", "1_000", "1,5", "--1", "1e", "٣", "NULL", "TRUE", "")


def _on_lines(change: Callable[[Lines, Generator], None]) -> Mutate:
    def mutate(data: bytes, rng: Generator) -> bytes:
        lines = data.decode().splitlines(keepends=True)
        change(lines, rng)
        return "".join(lines).encode("utf-8", "surrogatepass")

    return mutate


def _at(lines: Lines, rng: Generator) -> int:
    return int(rng.integers(len(lines)))


def change_cell(lines: Lines, rng: Generator) -> None:
    """Write something else into a cell."""
    at = _at(lines, rng)
    cells = list(_CELL.finditer(lines[at]))
    if cells:
        cell = pick(cells, rng)
        value = str(pick((*_SPELLINGS, *_SPELLINGS, *TEXTS, *INTEGERS, *FLOATS, *PATHS), rng))
        lines[at] = lines[at][: cell.start()] + value + lines[at][cell.end() :]


def drop_line(lines: Lines, rng: Generator) -> None:
    """Leave out a line."""
    del lines[_at(lines, rng)]


def repeat_line(lines: Lines, rng: Generator) -> None:
    """Write a line again, many times."""
    at = _at(lines, rng)
    lines[at:at] = [lines[at]] * int(pick((1, 2, 5000), rng))


def swap_lines(lines: Lines, rng: Generator) -> None:
    """Swap two lines."""
    a, b = _at(lines, rng), _at(lines, rng)
    lines[a], lines[b] = lines[b], lines[a]


def join_lines(lines: Lines, rng: Generator) -> None:
    """Put two lines into one."""
    at = _at(lines, rng)
    lines[at] = lines[at].rstrip("\r\n")


def odd_character(lines: Lines, rng: Generator) -> None:
    """Put a quote, a delimiter, a null byte or the like somewhere."""
    at = _at(lines, rng)
    place = int(rng.integers(len(lines[at]) + 1))
    odd = pick(('"', "'", '"""', ",", "\t", ";", "\x00", "\r", "\n", "\\", "%", "{", "}", "@", "\x1a", "\ud800"), rng)
    lines[at] = lines[at][:place] + odd + lines[at][place:]


def long_line(lines: Lines, rng: Generator) -> None:
    """Write a very long line, or one of very many cells."""
    at = _at(lines, rng)
    lines[at] = lines[at].rstrip("\r\n") + pick(("x" * 2**20, ",1" * 50_000, "\t1" * 50_000, '"' * 9999), rng) + "\n"


def other_encoding(data: bytes, rng: Generator) -> bytes:
    """Write the text in another encoding."""
    return data.decode().encode(pick(_ENCODINGS, rng), "replace")


def lying_attribute(lines: Lines, rng: Generator) -> None:
    """Declare something else in the header of an ARFF file."""
    declared = [i for i, line in enumerate(lines) if line.lower().startswith("@attribute")]
    kinds: Any = (
        "numeric",
        "string",
        "relational",
        "date 'yyyy'",
        "{a,b}",
        "{" + ",".join(map(str, range(20_000))) + "}",
        "{",
        "{'a",
        "integer [0, 1]",
        "nonsense",
        "",
    )
    if declared:
        at = pick(declared, rng)
        name = pick((lines[at].split()[1], "'bag", "label", "x" * 5000, "''"), rng)
        lines[at] = f"@attribute {name} {pick(kinds, rng)}\n"


def deep_relations(lines: Lines, rng: Generator) -> None:
    """Declare relations within relations."""
    depth = int(pick((2, 50, 5000), rng))
    opening = [f"@attribute r{i} relational\n" for i in range(depth)]
    closing = [f"@end r{i}\n" for i in reversed(range(depth))]
    lines[1:1] = [*opening, "@attribute x numeric\n", *closing]


def sparse_row(lines: Lines, rng: Generator) -> None:
    """Write a row of single cells, whose places lie."""
    row = pick(
        ("{99999999999999 1}", "{-1 1}", "{0 1, 0 2}", "{1 1, 0 1}", "{a b}", "{0}", "{0 1", "{}", "{1 1e999}"), rng
    )
    lines[int(rng.integers(len(lines) // 2, len(lines)))] = row + "\n"


TABLE: dict[str, Mutate] = {
    "cell": _on_lines(change_cell),
    "line dropped": _on_lines(drop_line),
    "line repeated": _on_lines(repeat_line),
    "lines swapped": _on_lines(swap_lines),
    "lines joined": _on_lines(join_lines),
    "odd character": _on_lines(odd_character),
    "long line": _on_lines(long_line),
    "encoding": other_encoding,
}
ARFF: dict[str, Mutate] = {
    **TABLE,
    "attribute": _on_lines(lying_attribute),
    "relations": _on_lines(deep_relations),
    "sparse row": _on_lines(sparse_row),
}
