"""`SlideSource`: patches of slides as rows on disk; a part is a slide, and a bag has one or several."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.bags.tables import float_type
from gmil.errors import BagValidationError, FormatError, count_of
from gmil.slides.arrays import read_rows, take_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from gmil.engine.arrays import Floats, Integers
    from gmil.slides.slide import Slide

METADATA = "gmil.slides."
"""What keys of provenance begin with, in the metadata of ``instance_info``."""


@dataclass(frozen=True)
class SlideSource:
    """Slides one after the other; no file stays open, so that parts may be read by threads and by other processes.

    Half precision is kept on disk and as it is read; a piece becomes single precision when it is handed out.
    """

    slides: tuple[Slide, ...]
    edges: Integers
    n_features: int
    dtype: np.dtype[Any]
    layout: str
    by_patient: bool = False

    @classmethod
    def of(cls, slides: Sequence[Slide], layout: str, *, by_patient: bool) -> SlideSource:
        """Put slides of one width and one encoder together."""
        first = slides[0]
        for slide in slides:
            _refuse_other(first, slide)
        edges = np.concatenate([[0], np.cumsum([slide.n_patches for slide in slides])]).astype(np.int64)
        dtype = float_type(np.result_type(*(slide.dtype for slide in slides)))
        return cls(tuple(slides), edges, first.n_features, dtype, layout, by_patient)

    def read(self, part: int, rows: int) -> Iterator[Floats]:
        """See `gmil.scale.passes.Source.read`."""
        for piece in read_rows(self.slides[part].features, rows):
            if piece.shape[1] != self.n_features:
                raise self._other_width(part, piece.shape[1])
            yield np.ascontiguousarray(piece, dtype=self.dtype)

    def take(self, part: int, wanted: Integers, rows: int) -> Floats:
        """Return some patches of a slide, given in ascending order; no others are widened."""
        found = take_rows(self.slides[part].features, wanted, rows)
        if found.shape[1] != self.n_features:
            raise self._other_width(part, found.shape[1])
        return found.astype(self.dtype, copy=False)

    def _other_width(self, part: int, width: int) -> FormatError:
        has = count_of(width, "feature")
        msg = f"{self.place(part)} has {has} where {self.n_features} were found before. Scan it again."
        return FormatError(msg)

    def place(self, part: int) -> str:
        """See `gmil.scale.passes.Source.place`."""
        return str(self.slides[part].features)

    @property
    def has_info(self) -> bool:
        """Whether anything is known about single patches."""
        return self.by_patient or any(slide.coordinates is not None for slide in self.slides)

    def take_info(self, rows: Integers) -> pa.Table:
        """Return coordinates of some patches, rows of the source in any order; other slides are not opened."""
        import pyarrow as pa

        number = np.searchsorted(self.edges, rows, side="right") - 1
        corners = np.empty((len(rows), 2))
        for part in np.unique(number).tolist():
            mine = number == part
            corners[mine] = self.slides[part].corners()[rows[mine] - self.edges[part]]
        frames = [slide.frame for slide in self.slides]
        sizes = np.array([np.nan if frame.patch_size is None else frame.patch_size for frame in frames])
        columns = {
            "x": pa.array(corners[:, 0], from_pandas=True),
            "y": pa.array(corners[:, 1], from_pandas=True),
            "patch_size": pa.array(sizes[number], from_pandas=True),
            "unit": _repeated([frame.unit for frame in frames], number),
        }
        if self.by_patient:
            columns["slide"] = _repeated([slide.name for slide in self.slides], number)
        return pa.table(columns).replace_schema_metadata(self.metadata())

    def metadata(self) -> dict[bytes, bytes]:
        """Return where slides come from, as JSON: a value where all agree, else one for every slide."""
        found: dict[str, Any] = {"layout": self.layout}
        for key in sorted({key for slide in self.slides for key in slide.provenance}):
            values = {slide.name: slide.provenance.get(key) for slide in self.slides}
            texts = {json.dumps(value, sort_keys=True) for value in values.values()}
            found[key] = next(iter(values.values())) if len(texts) == 1 else values
        return {f"{METADATA}{key}".encode(): json.dumps(value).encode() for key, value in found.items()}


def _repeated(values: list[str], number: Integers) -> pa.DictionaryArray:
    """Return texts by their numbers; every text is kept once."""
    import pyarrow as pa

    names = list(dict.fromkeys(values))
    code = np.array([names.index(value) for value in values], dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(code[number]), pa.array(names))


def _refuse_other(first: Slide, slide: Slide) -> None:
    if slide.n_features != first.n_features:
        msg = (
            f"{slide.features} has {count_of(slide.n_features, 'feature')}, but {first.features} has "
            f"{first.n_features}: of two "
            "encoders. Keep one encoder in a folder."
        )
        raise BagValidationError(msg)
    own, other = slide.provenance.get("encoder"), first.provenance.get("encoder")
    if own != other:
        msg = (
            f"{slide.features} was made by the encoder {own!r}, but {first.features} by {other!r}. Keep one encoder in "
            "a folder."
        )
        raise BagValidationError(msg)
