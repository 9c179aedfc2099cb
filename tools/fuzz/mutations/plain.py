"""Mutations of any bytes, whatever they mean."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tools.fuzz.mutations.hostile import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Mutate = Callable[[bytes, Generator], bytes]

_LONGEST_SECTION = 4096


def flip_bit(data: bytes, rng: Generator) -> bytes:
    """Flip one bit."""
    return _flipped(data, rng, 1)


def flip_bits(data: bytes, rng: Generator) -> bytes:
    """Flip up to 64 bits."""
    return _flipped(data, rng, int(rng.integers(2, 65)))


def _flipped(data: bytes, rng: Generator, n_bits: int) -> bytes:
    found = bytearray(data)
    for place in rng.integers(len(data), size=n_bits):
        found[place] ^= 1 << int(rng.integers(8))
    return bytes(found)


def edit_byte(data: bytes, rng: Generator) -> bytes:
    """Give one byte another value."""
    return edit_byte_at(data, int(rng.integers(len(data))), rng)


def edit_byte_at(data: bytes, place: int, rng: Generator) -> bytes:
    """Give the byte at ``place`` another value."""
    other = (data[place] + int(rng.integers(1, 256))) % 256
    return data[:place] + bytes([other]) + data[place + 1 :]


def edit_bytes(data: bytes, rng: Generator) -> bytes:
    """Write random bytes over a section."""
    begin, end = _section(data, rng)
    return data[:begin] + rng.bytes(end - begin) + data[end:]


def truncate(data: bytes, rng: Generator) -> bytes:
    """Cut off the end."""
    return data[: int(rng.integers(len(data)))]


def cut_tail(data: bytes, rng: Generator) -> bytes:
    """Cut off a few bytes."""
    return data[: -int(rng.integers(1, 17))]


def drop_section(data: bytes, rng: Generator) -> bytes:
    """Leave out a section."""
    begin, end = _section(data, rng)
    return data[:begin] + data[end:]


def repeat_section(data: bytes, rng: Generator) -> bytes:
    """Write a section several times."""
    begin, end = _section(data, rng)
    return data[:end] + data[begin:end] * int(rng.integers(1, 9)) + data[end:]


def zero_section(data: bytes, rng: Generator) -> bytes:
    """Write zeros or ones over a section."""
    begin, end = _section(data, rng)
    return data[:begin] + bytes([int(rng.choice([0, 255]))]) * (end - begin) + data[end:]


def swap_sections(data: bytes, rng: Generator) -> bytes:
    """Swap two sections that do not overlap."""
    a, b, c, d = sorted(int(place) for place in rng.integers(len(data) + 1, size=4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def insert(data: bytes, rng: Generator) -> bytes:
    """Put random bytes in between."""
    place = int(rng.integers(len(data) + 1))
    return data[:place] + rng.bytes(int(rng.integers(1, 65))) + data[place:]


def append(data: bytes, rng: Generator) -> bytes:
    """Put random bytes behind the end."""
    return data + rng.bytes(int(rng.integers(1, 1025)))


def lying_integer(data: bytes, rng: Generator) -> bytes:
    """Write a number that may be a size or an offset, four or eight bytes long, over the data."""
    size, kind = ((4, "I"), (8, "Q"))[int(rng.integers(2))]
    value = INTEGERS[int(rng.integers(len(INTEGERS)))] % 2 ** (8 * size)
    begin = int(rng.integers(max(1, len(data) // 4 - 1))) * 4
    order = "<>"[int(rng.integers(2))]
    return data[:begin] + struct.pack(order + kind, value) + data[begin + size :]


def _section(data: bytes, rng: Generator) -> tuple[int, int]:
    length = int(rng.integers(1, max(2, min(len(data), _LONGEST_SECTION))))
    begin = int(rng.integers(max(1, len(data) - length + 1)))
    return begin, begin + length


PLAIN: dict[str, Mutate] = {
    "flip bit": flip_bit,
    "flip bits": flip_bits,
    "edit byte": edit_byte,
    "edit bytes": edit_bytes,
    "truncate": truncate,
    "cut tail": cut_tail,
    "drop section": drop_section,
    "repeat section": repeat_section,
    "zero section": zero_section,
    "swap sections": swap_sections,
    "insert": insert,
    "append": append,
    "lying integer": lying_integer,
}
