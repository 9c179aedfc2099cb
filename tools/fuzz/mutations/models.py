"""Mutations of model files: a safetensors file whose metadata hold a JSON document and a checksum."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safetensors.numpy import load
from tools.fuzz.mutations.documents import DOCUMENTS, tidy
from tools.fuzz.mutations.headers import HEADERS, METADATA
from tools.fuzz.mutations.plain import PLAIN
from tools.fuzz.mutations.safetensors_files import Tensor, joined, pack, parse, split
from tools.fuzz.mutations.tensors import TENSORS
from tools.fuzz.mutations.trees import TREES, pick, to_text

from gmil.io import model_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    Mutate = Callable[[bytes, Generator], bytes]

_DOCUMENT, _CHECKSUM = "gmil", "sha256"
_TIDY = 0.7


@dataclass
class ModelFile:
    """What a model file holds; ``root`` is a list of the document alone."""

    root: list[Any]
    tensors: dict[str, Tensor]
    metadata: dict[str, str]

    @classmethod
    def parse(cls, data: bytes) -> ModelFile:
        """Take a file apart that is as it should be."""
        tensors, metadata = parse(data)
        return cls([json.loads(metadata[_DOCUMENT])], tensors, metadata)


def sign(tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write the checksum of what is there now, where this gmil has one and the file had one."""
    checksum = getattr(model_files, "checksum", None)
    if checksum is not None and _CHECKSUM in metadata:
        arrays = {name: tensor.array() for name, tensor in tensors.items()}
        metadata[_CHECKSUM] = checksum(metadata[_DOCUMENT], arrays)


def _finish(tensors: dict[str, Tensor], metadata: dict[str, str], signed: bool) -> bytes:
    if signed:
        sign(tensors, metadata)
    return pack(tensors, metadata)


def _on_document(edit: Any, signed: bool) -> Mutate:
    """Return a mutation of the document; a signed one keeps the format version."""

    def mutate(data: bytes, rng: Generator) -> bytes:
        file = ModelFile.parse(data)
        version = file.root[0]["version"]
        edit(file.root, rng)
        if signed and isinstance(file.root[0], dict):
            file.root[0]["version"] = version
        if signed and rng.random() < _TIDY:
            tidy(file.root, file.tensors)
        file.metadata[_DOCUMENT] = to_text(file.root)
        return _finish(file.tensors, file.metadata, signed)

    return mutate


def _on_both(edit: Any, signed: bool) -> Mutate:
    """Return a mutation that changes the document and the tensors together."""

    def mutate(data: bytes, rng: Generator) -> bytes:
        file = ModelFile.parse(data)
        edit(file.root, file.tensors, rng)
        file.metadata[_DOCUMENT] = to_text(file.root)
        return _finish(file.tensors, file.metadata, signed)

    return mutate


def _on_tensors(edit: Any, signed: bool) -> Mutate:
    def mutate(data: bytes, rng: Generator) -> bytes:
        file = ModelFile.parse(data)
        edit(file.tensors, rng)
        if signed and rng.random() < _TIDY:
            tidy(file.root, file.tensors)
            file.metadata[_DOCUMENT] = to_text(file.root)
        return _finish(file.tensors, file.metadata, signed)

    return mutate


def _on_document_text(data: bytes, rng: Generator) -> bytes:
    """Change bytes of the document, under a right checksum."""
    tensors, metadata = parse(data)
    text = pick(PLAIN.values(), rng)(metadata[_DOCUMENT].encode(), rng)
    metadata[_DOCUMENT] = text.decode("utf-8", "replace")
    return _finish(tensors, metadata, signed=True)


def _on_header(change: Mutate) -> Mutate:
    """Return a mutation of the header under the checksum of what the file then holds, if it holds anything."""

    def mutate(data: bytes, rng: Generator) -> bytes:
        changed = change(data, rng)
        try:
            arrays = load(changed)
            header, blob = split(changed)
            tensors = {name: Tensor.of(array) for name, array in arrays.items()}
            sign(tensors, header["__metadata__"])
        except Exception:  # whatever the header became, nobody could sign it
            return changed
        return joined(header, blob)

    return mutate


def _with_document(edit: Any, signed: bool) -> Mutate:
    return (_on_both if edit.__code__.co_argcount == 3 else _on_document)(edit, signed)


def _all(signed: bool) -> dict[str, Mutate]:
    return {
        **{name: _on_document(edit, signed) for name, edit in TREES.items()},
        **{name: _with_document(edit, signed) for name, edit in DOCUMENTS.items()},
        **{name: _on_tensors(edit, signed) for name, edit in TENSORS.items()},
        **{name: _on_header(change) if signed else change for name, change in HEADERS.items()},
    }


SIGNED = {**_all(signed=True), "document bytes": _on_document_text}
UNSIGNED = {**_all(signed=False), **METADATA}
