"""Names of slides: suffixes that are none of their own, and what a name that is not there might mean."""

from __future__ import annotations

import difflib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_SUFFIXES = (
    ".ome.tiff", ".ome.tif", ".ome.zarr", ".index.npz", ".index.npy", "_patches.h5",
    ".svs", ".tif", ".tiff", ".ndpi", ".vsi", ".scn", ".mrxs", ".bif", ".czi", ".dcm", ".svslide", ".isyntax",
    ".h5", ".hdf5", ".pt", ".pth", ".npy", ".npz", "_patches",
)  # fmt: skip
"""Those of slides and of features, compound ones first. Other dots belong to the name, as in barcodes of TCGA."""


def without_suffix(name: str) -> str:
    """Return a name without the suffix of a slide or of features; other dots stay.

    >>> without_suffix("TCGA-AA-0001-01Z-00-DX1.6a1b.svs")
    'TCGA-AA-0001-01Z-00-DX1.6a1b'
    >>> without_suffix("0012.ome.tif")
    '0012'
    """
    found = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix) and len(name) > len(suffix)), "")
    return name[: len(name) - len(found)] if found else name


def slide_name(path: Path) -> str:
    """Return the name of a slide from a file of its features, whose own last suffix is dropped."""
    return path.name.removesuffix(path.suffix).removesuffix("_patches")


def resolved(text: str, known: Collection[str]) -> str | None:
    """Return the slide that a table names: as it stands, or without a suffix; None where there is none such."""
    if text in known:
        return text
    bare = without_suffix(text)
    if bare in known:
        return bare
    last = without_suffix(PurePosixPath(text.replace("\\", "/")).name)
    return last if "/" in text.replace("\\", "/") and last in known else None


def near_miss(text: str, known: Collection[str]) -> str | None:
    """Return what a name that is not there might mean, and how it differs; None where nothing is near."""
    for tell, form in _FORMS.items():
        alike = next((name for name in known if form(name) == form(text)), None)
        if alike is not None:
            return f"{text!r} and {alike!r} differ {tell}"
    longer = next((name for name in sorted(known) if name.startswith((f"{text}.", f"{text}_", f"{text}-"))), None)
    if longer is not None:
        return f"{longer!r} begins with {text!r}"
    close = difflib.get_close_matches(text, list(known), n=1, cutoff=0.8)
    return f"{text!r} is near {close[0]!r}" if close else None


def _number(text: str) -> str:
    bare = text.removesuffix(".0")
    return str(int(bare)) if bare.isdecimal() else text


_FORMS: dict[str, Callable[[str], str]] = {
    "in spaces": str.strip,
    "in upper and lower case": lambda text: text.strip().casefold(),
    "in zeros: read ids as texts": _number,
}
