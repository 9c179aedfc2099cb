"""Mutations of zip archives: ``.npz`` files, and the skops archives inside model files."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import numpy as np
from tools.fuzz.mutations import npy
from tools.fuzz.mutations.hostile import CANARY, CLASSES, INTEGERS, MODULES, OUTSIDE, PATHS, PICKLES
from tools.fuzz.mutations.plain import PLAIN
from tools.fuzz.mutations.trees import TREES, pick, places, to_text
from tools.fuzz.mutations.zips import DEFLATED, STORED, Member, bomb, unzip, zipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Edit = Callable[[list[Member], Generator], None]

_SCHEMA = "schema.json"


def change_array(members: list[Member], rng: Generator) -> None:
    """Change an array, with a right CRC."""
    arrays = [member for member in members if member.name.endswith(".npy")]
    if arrays:
        member = pick(arrays, rng)
        member.data = npy.mutate_npy(member.data, rng)


def change_bytes(members: list[Member], rng: Generator) -> None:
    """Change bytes of a member, with a right CRC."""
    member = pick(members, rng)
    if member.data:
        member.data = pick(PLAIN.values(), rng)(member.data, rng)


def swap_members(members: list[Member], rng: Generator) -> None:
    """Swap the contents of two members."""
    first, second = pick(members, rng), pick(members, rng)
    first.data, second.data = second.data, first.data


def drop_member(members: list[Member], rng: Generator) -> None:
    """Leave out a member."""
    members.remove(pick(members, rng))


def repeat_member(members: list[Member], rng: Generator) -> None:
    """Write a member many times under one name."""
    members.extend([pick(members, rng)] * int(pick((1, 3, 1000), rng)))


def rename_member(members: list[Member], rng: Generator) -> None:
    """Give a member a name that leads elsewhere."""
    member = pick(members, rng)
    member.name = pick((*PATHS, *(f"{path}.npy" for path in PATHS), pick(members, rng).name), rng)


def link_member(members: list[Member], rng: Generator) -> None:
    """Make a member a symbolic link to a place outside."""
    member = pick(members, rng)
    member.attributes = (stat.S_IFLNK | 0o777) << 16
    member.data = pick((OUTSIDE, "/etc/passwd", "../.."), rng).encode()


def lying_sizes(members: list[Member], rng: Generator) -> None:
    """Lie about sizes, checksum, method or encryption."""
    member = pick(members, rng)
    field = pick(("size", "compressed_size", "crc", "method", "flags"), rng)
    value = pick(INTEGERS, rng) % 2**32
    setattr(member, field, value % 2**16 if field in {"method", "flags"} else value)


def change_method(members: list[Member], rng: Generator) -> None:
    """Store what was compressed, or the reverse, and say the other."""
    member = pick(members, rng)
    member.compressed = member.data if member.method == DEFLATED else None
    member.method = DEFLATED if member.method == STORED else STORED


def inflate(members: list[Member], rng: Generator) -> None:
    """Replace a member by one that unpacks to hundreds of megabytes."""
    at = int(rng.integers(len(members)))
    shape = pick(((32 * 2**20,), (8 * 2**20, 4)), rng)
    header = npy.header_of({"descr": "'<f8'", "fortran_order": "False", "shape": repr(shape)})
    members[at] = bomb(members[at].name, header, 256)


def claim_everything(members: list[Member], rng: Generator) -> None:
    """Replace a member by an array that claims terabytes."""
    header = npy.header_of({"descr": "'<f8'", "fortran_order": "False", "shape": repr((2**40,))})
    member = pick(members, rng)
    member.data = header + bytes(64)
    member.size = pick((None, 2**32 - 1), rng)


def long_texts(members: list[Member], rng: Generator) -> None:
    """Replace a member by texts, of which every one takes the room of the longest."""
    member = pick(members, rng)
    member.data = npy.to_bytes(np.array(["a", "b" * int(pick((10, 100_000), rng))]))


def lying_types(members: list[Member], rng: Generator) -> None:
    """Name another class, module or loader in the schema of a skops archive."""
    schema = next((member for member in members if member.name == _SCHEMA), None)
    if schema is None:
        return
    tree = [json.loads(schema.data)]
    container, key = pick([(c, k) for c, k in places(tree) if k in {"__class__", "__module__", "__loader__"}], rng)
    if rng.random() < 0.3:
        container["__module__"], container["__class__"] = CANARY, pick(("Canary", "trip"), rng)
    else:
        container[key] = pick(MODULES if key == "__module__" else CLASSES, rng)
    schema.data = json.dumps(tree[0]).encode()


def change_schema(members: list[Member], rng: Generator) -> None:
    """Change the schema of a skops archive as any JSON."""
    schema = next((member for member in members if member.name == _SCHEMA), None)
    if schema is not None:
        tree = [json.loads(schema.data)]
        pick(TREES.values(), rng)(tree, rng)
        schema.data = to_text(tree).encode("utf-8", "surrogatepass")


def add_pickle(members: list[Member], rng: Generator) -> None:
    """Add or replace a member by a pickle."""
    name = pick((pick(members, rng).name, "payload.pkl", "__reduce__"), rng)
    members[:] = [member for member in members if member.name != name]
    members.append(Member(name, pick(PICKLES, rng)))


_EDITS: dict[str, Edit] = {
    "zip array": change_array,
    "zip bytes": change_bytes,
    "zip members swapped": swap_members,
    "zip member dropped": drop_member,
    "zip member repeated": repeat_member,
    "zip path": rename_member,
    "zip link": link_member,
    "zip sizes": lying_sizes,
    "zip method": change_method,
    "zip bomb": inflate,
    "zip terabytes": claim_everything,
    "zip long texts": long_texts,
    "zip pickle": add_pickle,
}
_SKOPS_EDITS: dict[str, Edit] = {**_EDITS, "skops types": lying_types, "skops schema": change_schema}


def _on_archive(edit: Edit) -> Callable[[bytes, Generator], bytes]:
    def mutate(data: bytes, rng: Generator) -> bytes:
        members = unzip(data)
        edit(members, rng)
        return zipped(members)

    return mutate


def mutate_skops(data: bytes, rng: Generator) -> bytes:
    """Change a skops archive in one of many ways: half of them the types and values that it names."""
    chance = rng.random()
    if chance < 0.25:
        edit: Any = lying_types
    elif chance < 0.5:
        edit = change_schema
    elif chance < 0.75:
        edit = change_array
    else:
        edit = pick(_SKOPS_EDITS.values(), rng)
    return _on_archive(edit)(data, rng)


NPZ = {name: _on_archive(edit) for name, edit in _EDITS.items()}
NPY_FILE = {"npy": npy.mutate_npy, "npy header": npy.lying_header, "npy pickle": npy.pickled}
