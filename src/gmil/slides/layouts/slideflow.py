"""slideflow: ``SLIDE.pt`` with ``SLIDE.index.npz``, centres of tiles, and one ``bags_config.json`` for the folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gmil.safety.guard import parsing
from gmil.slides.arrays import Place
from gmil.slides.layouts.base import Layout, by_name, files_in, torch_in
from gmil.slides.names import slide_name
from gmil.slides.slide import Frame, Slide

if TYPE_CHECKING:
    from pathlib import Path

    from gmil.slides.layouts.base import Asked

_CONFIG = "bags_config.json"
_ANNOTATIONS = "annotations.csv"
_INDICES = (".index.npz", ".index.npy")


class Slideflow(Layout):
    """Tensors side by side with their indices."""

    title = "slideflow"

    @classmethod
    def of(cls, folder: Path, asked: Asked) -> Slideflow | None:
        """See `Layout.of`."""
        files = torch_in(folder)
        indices = [path for path in files_in(folder, (".npz", ".npy")) if path.name.endswith(_INDICES)]
        if not files or not (asked.forced or indices or (folder / _CONFIG).exists()):
            return None
        return cls(folder, by_name(files, map(slide_name, files)), asked, {"config": _config(folder / _CONFIG)})

    def slide(self, name: str) -> Slide:
        """See `Layout.slide`; without the size of tiles, which may need ``mpp``, coordinates stay centres."""
        path, config = self.files[name], self.context["config"]
        frame = Frame("px", self.asked.patch_size or self._tile_side()).of_centres()
        index = next((path.with_name(name + end) for end in _INDICES if path.with_name(name + end).exists()), None)
        extractor = config.get("extractor")
        encoder = extractor.get("class") if isinstance(extractor, dict) else extractor
        kept = {key: config[key] for key in ("tile_px", "tile_um", "normalizer") if config.get(key) is not None}
        kept |= {} if encoder is None else {"encoder": encoder}
        kept |= {} if frame.patch_size is not None else {"anchor": "centre"}
        return Slide.of(name, Place(str(path)), _index_place(index), frame=frame, provenance=kept)

    def _tile_side(self) -> float | None:
        """Return the side of a tile at level 0, where it is given in micrometres and ``mpp`` is known."""
        side = self.context["config"].get("tile_um")
        is_number = isinstance(side, (int, float)) and not isinstance(side, bool)
        return side / self.asked.mpp if is_number and self.asked.mpp is not None else None

    def labels_table(self) -> Path | None:
        """See `Layout.labels_table`."""
        own = self.folder / _ANNOTATIONS
        return own if own.exists() else super().labels_table()


def _index_place(index: Path | None) -> Place | None:
    if index is None:
        return None
    return Place(str(index), "arr_0" if index.suffix == ".npz" else "")


def _config(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    with parsing(path, "JSON"):
        found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}
