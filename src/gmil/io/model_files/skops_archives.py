"""Models of scikit-learn as skops archives: read with skops' list of trusted types, in bounded memory.

An archive is a ZIP file of arrays and one JSON document. skops stores it uncompressed, so one that is compressed, or
that claims more bytes than it has, was not written by us.
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.errors import ModelFileError, listed
from gmil.io.model_files.damage import DamageError, expect
from gmil.io.model_files.sklearn_models import check_sklearn_model

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

# NumPy types and sparse arrays are data; skops leaves it to us to say so. SimpleImputer holds the one, SVC the other.
_TRUSTED = ["numpy.dtype", "scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"]
_MOST_MEMBERS = 10_000
_MOST_SCHEMA = 2 << 20
"""Bytes of the JSON in an archive: skops makes objects of it that take many times its text."""

_MOST_INFLATION = 5
"""How many times its size in the file a sparse array may have in memory: only these are compressed."""


def to_archive(model: BaseEstimator, what: str) -> bytes:
    """Return the archive of a model; one that `from_archive` would not read is refused."""
    import skops.io

    data: bytes = skops.io.dumps(model)
    untrusted = _untrusted_types(data)
    if untrusted:
        msg = f"{what} cannot be saved: it holds types that are not known to be safe to load, {listed(untrusted)}."
        raise ModelFileError(msg)
    try:
        _check_archive(data)
        check_sklearn_model(model)
    except DamageError as error:
        msg = f"{what} cannot be saved: {error}."
        raise ModelFileError(msg) from error
    return data


def from_archive(tensor: NDArray[Any]) -> Any:
    """Return the model of an archive, checked."""
    import skops.io

    data = tensor.tobytes()
    try:
        _check_archive(data)
        untrusted = _untrusted_types(data)
        if not untrusted:
            model = skops.io.loads(data, trusted=_TRUSTED)
            check_sklearn_model(model)
            return model
    except Exception as error:  # what a damaged archive raises is up to the libraries that read it
        msg = f"The scikit-learn model in the file is damaged: {type(error).__name__} ({error}). Save the model again."
        raise ModelFileError(msg) from error
    msg = f"The file holds types that are not known to be safe and are not loaded: {listed(untrusted)}."
    raise ModelFileError(msg)


def _untrusted_types(data: bytes) -> list[str]:
    """Return the types in a skops archive that are neither trusted by skops nor by us, by name."""
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=data)) - set(_TRUSTED))


def _check_archive(data: bytes) -> None:
    """Refuse an archive that would take much more memory than it has bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        names = {member.filename for member in members}
        fits = len(names) == len(members) <= _MOST_MEMBERS
        expect(fits, f"its archive has {len(members)} members, {len(names)} of them different")
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        fits = stored and sum(member.file_size for member in members) <= len(data)
        expect(fits, "its archive is compressed, or has more bytes inside than outside")
        for member in members:
            _check_member(member.filename, archive.read(member))


def _check_member(name: str, content: bytes) -> None:
    if name.endswith(".npy"):
        _check_array(name, content)
    elif name.endswith(".npz"):
        _check_sparse(name, content)
    elif name == "schema.json":
        expect(len(content) <= _MOST_SCHEMA, f"its description has {len(content)} bytes, more than {_MOST_SCHEMA}")
    else:  # the bytes of a bytes object
        expect(name.endswith(".bin"), f"its archive holds {name!r}, which is no array")


def _check_sparse(name: str, content: bytes) -> None:
    """Refuse a sparse array, compressed as SciPy saves it, that inflates too much."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        fits = len(members) <= 10 and total <= _MOST_INFLATION * len(content) + (4 << 20)
        expect(fits, f"the sparse array {name!r} would take {total} bytes")
        for member in members:
            _check_array(f"{name}/{member.filename}", archive.read(member))


def _check_array(name: str, content: bytes) -> None:
    """Refuse an array whose shape is not that of its bytes."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    fits = math.prod(shape) * dtype.itemsize == len(content) - file.tell()
    is_true = fits and dtype.itemsize > 0 and not dtype.hasobject
    expect(is_true, f"the array {name!r} is not of the shape that it claims")
