"""The grammar of ARFF: attributes, quoted values, dense and sparse rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gmil.errors import FormatError
from gmil.safety.guard import expect

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUOTED = r"""'([^'\\]*(?:\\.[^'\\]*)*)'|"([^"\\]*(?:\\.[^"\\]*)*)\""""
_BARE = r"""([^,'"\s][^,]*|)"""
_VALUE = re.compile(rf"\s*(?:(?:{_QUOTED})\s*|{_BARE})(,|$)", re.DOTALL)
_PAIR = re.compile(rf"\s*(\d+)\s+(?:(?:{_QUOTED})\s*|{_BARE})(,|$)", re.DOTALL)
_ATTRIBUTE = re.compile(rf"@attribute\s+(?:{_QUOTED}|([^\s{{]+))\s*(.*)", re.IGNORECASE | re.DOTALL)
_BLANK = re.compile(r"\s*\Z")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANINGS = {"n": "\n", "r": "\r", "t": "\t"}
_SIGNS = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'", '"': '\\"', "%": "\\%"})
_NEEDS_QUOTES = re.compile(r"[\s,'\"\\%{}?@]|^$")

Kind = Literal["number", "text", "nominal", "relational"]
_KINDS: dict[str, Kind] = {
    "numeric": "number",
    "real": "number",
    "integer": "number",
    "string": "text",
    "date": "text",
    "relational": "relational",
}


@dataclass(frozen=True)
class Attribute:
    """A column of an ARFF file; a relational one has columns of its own."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    inner: tuple[Attribute, ...] = ()

    @property
    def default(self) -> str | None:
        """What a sparse row leaves out: zero, or the first of the values."""
        return "0" if self.kind == "number" else (self.values[0] if self.values else "")


def read_header(lines: Iterator[tuple[int, str]]) -> list[Attribute]:
    """Read attributes up to ``@data`` and leave the rows."""
    attributes: list[Attribute] = []
    outer: list[tuple[str, list[Attribute]]] = []  # the relational attributes that are still open
    for number, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            if outer:
                msg = f"line {number}: the relational attribute {outer[-1][0]!r} has no @end"
                raise FormatError(msg)
            return attributes
        if word == "@attribute":
            attribute = _attribute(line, number)
            if attribute.kind == "relational":
                outer.append((attribute.name, attributes))
                attributes = []
            else:
                attributes.append(attribute)
        elif word == "@end" and outer:
            name, before = outer.pop()
            attributes = [*before, Attribute(name, "relational", inner=tuple(attributes))]
        else:
            expect(
                word == "@relation", f"line {number}: {line[:40]!r} is neither @relation, @attribute, @end nor @data"
            )
    msg = "it has no @data"
    raise FormatError(msg)


def _attribute(line: str, number: int) -> Attribute:
    match = _match(_ATTRIBUTE, line, 0, f"line {number}: this is no attribute with a name and a type:")
    name = _unquoted(match[1], match[2], match[3])
    kind = match[4].strip()
    if kind.startswith("{") and kind.endswith("}"):
        return Attribute(name, "nominal", tuple(v or "?" for v in split(kind[1:-1])))
    first = kind.split(None, 1)[0].lower() if kind else ""
    expect(first in _KINDS, f"line {number}: the attribute {name!r} has the unknown type {kind[:40]!r}")
    return Attribute(name, _KINDS[first])


def _match(pattern: re.Pattern[str], text: str, at: int, otherwise: str) -> re.Match[str]:
    match = pattern.match(text, at)
    if match is None:
        msg = f"{otherwise} {text[at : at + 40]!r}"
        raise FormatError(msg)
    return match


def split(row: str) -> list[str | None]:
    r"""Split a row at its commas; a bare question mark, a missing value, becomes None.

    >>> split("1.5, 'a, b', ?, 'it\\'s'")
    ['1.5', 'a, b', None, "it's"]
    """
    if "'" not in row and '"' not in row:
        return [None if cell == "?" else cell for cell in map(str.strip, row.split(","))]
    cells = []
    at = 0
    while True:
        match = _match(_VALUE, row, at, "a quote does not end, or something follows it:")
        cells.append(_cell(match[1], match[2], match[3]))
        if not match[4]:
            return cells
        at = match.end()


def split_sparse(row: str) -> dict[int, str | None]:
    """Take a sparse row, without its braces, apart into positions and values.

    >>> split_sparse("0 1.5, 7 'a b'")
    {0: '1.5', 7: 'a b'}
    """
    cells: dict[int, str | None] = {}
    at = 0
    while not _BLANK.match(row, at):
        match = _match(_PAIR, row, at, "a sparse row must hold pairs of a position and a value, got")
        cells[int(match[1])] = _cell(match[2], match[3], match[4])
        at = match.end()
    return cells


def _cell(single: str | None, double: str | None, bare: str | None) -> str | None:
    return None if bare is not None and bare.strip() == "?" else _unquoted(single, double, bare)


def _unquoted(single: str | None, double: str | None, bare: str | None) -> str:
    if bare is not None:
        return bare.strip()
    inside = single if single is not None else double or ""
    return _ESCAPE.sub(_meaning, inside) if "\\" in inside else inside


def _meaning(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _MEANINGS.get(sign, sign)


def quoted(text: str, *, always: bool = False) -> str:
    r"""Return a text as a value: in quotes, its signs escaped, where that is needed.

    >>> print(quoted("plain"), quoted("it's"))
    plain "it\'s"
    """
    if not always and not _NEEDS_QUOTES.search(text):
        return text
    return f'"{text.translate(_SIGNS)}"'
