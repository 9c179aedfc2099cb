"""How all plots look: one style, colours that everybody can tell apart, saved as PNG and SVG."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmil.safety.atomic import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: distinct under every common colour vision, and in grey.
BLUE, VERMILION, GREEN, ORANGE, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#6B7280"
INK, PALE = "#1F2937", "#E5E7EB"
DATASET_TITLES = {
    "musk1": "Musk1",
    "musk2": "Musk2",
    "elephant": "Elephant",
    "fox": "Fox",
    "tiger": "Tiger",
    "ucf-crime": "UCF-Crime",
    "med11": "generated, size of MED11",
}

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9CA3AF",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gmil",  # the same plot is the same file
}


@contextlib.contextmanager
def figure(width: float, height: float, **grid: Any) -> Iterator[tuple[Figure, Any]]:
    """Yield a figure in the style of all plots and its axes; no window, no global state."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn, drawn.subplots(squeeze=False, **grid)


def save(drawn: Figure, stem: str | os.PathLike[str]) -> list[Path]:
    """Write ``<stem>.png`` and ``<stem>.svg``; return their paths."""
    paths = [Path(f"{stem}.png"), Path(f"{stem}.svg")]
    for path in paths:
        with replacing(path) as temporary:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            drawn.savefig(temporary, dpi=160, metadata=metadata)
    return paths


def shrink(path: Path, colours: int = 48) -> None:
    """Write a PNG again with a palette of few colours, a quarter of its size: plots have hardly more."""
    from PIL import Image

    with Image.open(path) as image:
        small = image.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    with replacing(path) as temporary:
        small.save(temporary, format="PNG", optimize=True)


def dataset_title(name: str) -> str:
    """Return a data set as it is written in titles."""
    return DATASET_TITLES.get(name, name)


def caption(drawn: Figure, title: str, text: str) -> None:
    """Put a title above a figure and a line of explanation below it."""
    drawn.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    drawn.supxlabel(text, x=0.01, ha="left", fontsize=8, color=GREY)


def bare(axes: Axes, *, grid: str) -> None:
    """Keep the grid lines of one axis only."""
    axes.grid(visible=False, axis="y" if grid == "x" else "x")
    axes.tick_params(length=0)
