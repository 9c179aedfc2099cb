"""Cohorts of slides made to order: embeddings of patches with known tumour regions, in files as tools write them."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.datasets.slide_files import LAYOUTS, write_cohort
from gmil.errors import BagValidationError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from sklearn.utils import Bunch

    from gmil.engine.arrays import Booleans, Floats, Integers

PATCH_SIDE = 512
"""The side of a patch at level 0, in pixels."""
_TISSUES = 8
_ZONES = 12
_SITES = 5
_STAINS = 4
_LOOKALIKE_SHARE = 0.05
_DIRECTIONS, _REST = 96, 0.3
"""Wide embeddings vary along few directions; the standard deviation along all others."""
_TISSUE_SPREAD, _SITE_SPREAD, _SLIDE_SPREAD = 2.0, 0.5, 0.5


class MadeSlide(NamedTuple):
    """A slide: its patches, where they lie, and which of them are tumour."""

    name: str
    patient: str
    site: str
    label: int
    features: NDArray[Any]  # (n_patches, n_features)
    corners: Integers  # (n_patches, 2), level-0 pixels, top-left
    tumour: Booleans  # (n_patches,)


class _World(NamedTuple):
    """What all slides share; rows are directions in the space of embeddings."""

    spread: Floats  # (n_directions, n_features): embeddings vary along these, and little along others
    tissues: Floats  # (n_tissues, n_features)
    stains: Floats  # (n_stains, n_features)
    tumour: Floats  # (n_features,), of length 1
    lookalike: Floats  # (n_features,), of length 1: half of it lies along the tumour


class _Patient(NamedTuple):
    """A patient, and the numbers of the slides."""

    name: str
    site: int
    label: int
    slides: range


def make_slides(
    folder: str | os.PathLike[str],
    *,
    layout: str = "trident",
    n_slides: int = 60,
    n_patches: int | tuple[int, int] = (200, 400),
    n_features: int = 64,
    tumour_share: float = 0.02,
    positive_share: float = 0.5,
    most_slides_per_patient: int = 3,
    separation: float = 5.0,
    dtype: str = "float16",
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Bunch:
    """Write a cohort of slides with known tumour patches, in the layout of a tool.

    A slide is a piece of tissue on a lattice, with zones of several kinds of tissue. A slide of a positive patient has
    one compact tumour: its patches form one region, each next to another one. All slides have patches that resemble the
    tumour, in a direction of their own, and a stain of their own and of their site, which moves all patches, along the
    tumour too. So the mean of a slide does not give its label away. As those of encoders do, wide embeddings vary along
    a part of all directions, here 96.

    Parameters
    ----------
    folder : path
        The folder to write; one that exists is refused.
    layout : {"trident", "clam", "stamp", "slideflow", "nnmil", "torchmil", "mil_baseline"}
        As which tool. The tables are those of the tool, or ``labels.csv`` (case_id, slide_id, label, site).
        ``patch_labels.csv`` has the truth: slide, x, y, tumour.
    n_slides : int
        The number of slides.
    n_patches : int or (int, int)
        Patches of a slide, or the fewest and the most.
    n_features : int
        The width of embeddings.
    tumour_share : float in (0, 1)
        The share of tumour patches in positive slides; there is at least one.
    positive_share : float in [0, 1]
        The share of patients that are positive.
    most_slides_per_patient : int
        A patient has one slide up to so many.
    separation : float
        The distance of tumour from other patches, in standard deviations along its direction.
    dtype : {"float16", "float32", "float64"}
        The type of embeddings in the files.
    random_state : int
        The seed; a slide does not depend on how many there are.
    progress : callable, optional
        Called with the number of slides written and of all.

    Returns
    -------
    made : Bunch
        ``folder``, ``labels`` (what to pass to `gmil.read` as ``labels``), ``bag``, ``label`` and ``group`` (columns),
        ``patch_labels`` (path) and ``layout``.

    See Also
    --------
    gmil.read : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import gmil
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = gmil.make_slides(Path(folder) / "slides", n_slides=4, n_features=8)
    ...     found = gmil.read(made.folder, labels=made.labels, bag=made.bag, label=made.label, group=made.group)
    >>> found.bags.shape, found.bags.instance_info.column_names, found.layout
    ((4, 8), ['x', 'y', 'patch_size', 'unit'], 'TRIDENT')
    """
    _check(layout, n_slides, n_features, tumour_share, positive_share, most_slides_per_patient, separation, dtype)
    fewest, most = _range(n_patches)
    patients = list(_patients(n_slides, positive_share, most_slides_per_patient, random_state))
    world = _make_world(n_features, np.random.default_rng([random_state, 1]))
    sites = np.random.default_rng([random_state, 3]).standard_normal((_SITES, _STAINS))

    def slides() -> Iterator[MadeSlide]:
        for patient in patients:
            for place, number in enumerate(patient.slides):
                generator = np.random.default_rng([random_state, 2, number])
                size = int(generator.integers(fewest, most + 1))
                n_tumour = max(1, round(tumour_share * size)) if patient.label else 0
                cells, tumour, zones = _tissue(size, n_tumour, generator)
                stain = _SITE_SPREAD * sites[patient.site] + _SLIDE_SPREAD * generator.standard_normal(_STAINS)
                X = _embeddings(world, zones, tumour, stain, separation, generator)
                name = f"{patient.name}-DX{place + 1}"
                yield MadeSlide(
                    name,
                    patient.name,
                    f"site{patient.site}",
                    patient.label,
                    X.astype(dtype),
                    PATCH_SIDE * cells,
                    tumour,
                )
                if progress is not None:
                    progress(number + 1, n_slides)

    return write_cohort(folder, layout, slides())


def _patients(n_slides: int, positive_share: float, most: int, seed: int) -> Iterator[_Patient]:
    generator = np.random.default_rng([seed, 0])
    counts: list[int] = []
    while sum(counts) < n_slides:
        counts.append(min(int(generator.integers(1, most + 1)), n_slides - sum(counts)))
    labels = generator.permutation(np.arange(len(counts)) < round(positive_share * len(counts)))
    first = 0
    for number, count in enumerate(counts):
        site = int(generator.integers(_SITES))
        yield _Patient(f"case{number:04d}", site, int(labels[number]), range(first, first + count))
        first += count


def _make_world(n_features: int, generator: np.random.Generator) -> _World:
    n_needed = _TISSUES + _STAINS + 2
    directions = generator.standard_normal((max(n_needed, min(_DIRECTIONS, n_features)), n_features))
    if len(directions) <= n_features:
        directions = np.linalg.qr(directions.T)[0].T
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    tissues, (tumour, other) = directions[:_TISSUES], directions[n_needed - 2 : n_needed]
    stains = np.vstack([tumour, directions[_TISSUES + 1 : n_needed - 2]])  # a stain may look like tumour
    return _World(directions, tissues, stains, tumour, 0.5 * tumour + np.sqrt(0.75) * other)


def _tissue(size: int, n_tumour: int, generator: np.random.Generator) -> tuple[Integers, Booleans, Integers]:
    """Return cells of a lattice, row by row, which of them are tumour, and the kind of tissue of each."""
    side = int(np.ceil(np.sqrt(size) * 1.4)) + 2
    ys, xs = np.mgrid[:side, :side]
    centre = side / 2
    angle = np.arctan2(ys - centre, xs - centre)
    waves = generator.uniform(0, 0.15, 3)[:, None, None] * np.cos(
        np.arange(2, 5)[:, None, None] * angle + generator.uniform(0, 2 * np.pi, 3)[:, None, None]
    )
    distance = np.hypot(xs - centre, ys - centre) / (1 + waves.sum(axis=0))
    inside = np.sort(np.argsort(distance, axis=None, kind="stable")[:size])
    cells = np.column_stack([inside % side, inside // side])
    tumour = np.zeros(size, dtype=bool)
    tumour[_region(cells, n_tumour, generator)] = True
    corners = cells[generator.integers(size, size=_ZONES)]
    nearest = np.argmin(((cells[:, None] - corners) ** 2).sum(axis=2), axis=1)
    return cells, tumour, generator.integers(_TISSUES, size=_ZONES)[nearest]


def _region(cells: Integers, n: int, generator: np.random.Generator) -> list[int]:
    """Return cells that grow from one: always the neighbour, on four sides, that is nearest to the first."""
    place = {(int(x), int(y)): number for number, (x, y) in enumerate(cells)}
    if n == 0:
        return []
    first = tuple(int(value) for value in cells[generator.integers(len(cells))])
    found: list[int] = []
    waiting = [(0, first)]
    seen = {first}
    while waiting and len(found) < n:
        _, (x, y) = heapq.heappop(waiting)
        found.append(place[x, y])
        for cell in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
            if cell in place and cell not in seen:
                seen.add(cell)
                heapq.heappush(waiting, ((cell[0] - first[0]) ** 2 + (cell[1] - first[1]) ** 2, cell))
    return found


def _embeddings(
    world: _World, zones: Integers, tumour: Booleans, stain: Floats, separation: float, generator: np.random.Generator
) -> NDArray[np.float32]:
    size, n_features = len(zones), len(world.tumour)
    X = generator.standard_normal((size, n_features), dtype=np.float32)
    X *= np.float32(_REST)
    X += generator.standard_normal((size, len(world.spread)), dtype=np.float32) @ world.spread.astype(np.float32)
    X += (_TISSUE_SPREAD * world.tissues).astype(np.float32)[zones]
    X += (stain @ world.stains).astype(np.float32)
    X[tumour] += (separation * world.tumour).astype(np.float32)
    alike = ~tumour & (generator.random(size) < _LOOKALIKE_SHARE)
    X[alike] += (separation * world.lookalike).astype(np.float32)
    return X


def _range(n_patches: int | tuple[int, int]) -> tuple[int, int]:
    pair = (n_patches, n_patches) if isinstance(n_patches, (int, np.integer)) else tuple(n_patches)
    if len(pair) != 2 or not 1 <= pair[0] <= pair[1]:
        msg = f"must be a number >= 1, or a fewest and a most, got {n_patches!r}."
        raise BagValidationError(msg, parameter="n_patches")
    return int(pair[0]), int(pair[1])


def _check(
    layout: str,
    n_slides: int,
    n_features: int,
    tumour: float,
    positive: float,
    most: int,
    separation: float,
    dtype: str,
) -> None:
    rules = {
        "layout": (layout in LAYOUTS, f"be one of {', '.join(LAYOUTS)}", layout),
        "n_slides": (n_slides >= 1, "be at least 1", n_slides),
        "n_features": (n_features >= 1, "be at least 1", n_features),
        "tumour_share": (0 < tumour < 1, "lie between 0 and 1", tumour),
        "positive_share": (0 <= positive <= 1, "lie between 0 and 1", positive),
        "most_slides_per_patient": (most >= 1, "be at least 1", most),
        "separation": (0 <= separation < 1000, "lie between 0 and 1000", separation),
        "dtype": (dtype in ("float16", "float32", "float64"), "be float16, float32 or float64", dtype),
    }
    for name, (holds, rule, value) in rules.items():
        if not holds:
            msg = f"must {rule}, got {value!r}."
            raise BagValidationError(msg, parameter=name)
