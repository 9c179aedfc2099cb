"""Reliability: are probabilities true? The share of positives against the probability given, in tenths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gmil.reporting.plots.charts import Axis, Kind, Series, line_chart
from gmil.reporting.plots.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike

    from gmil.engine.arrays import Floats

_TENTHS = 10
_SHAPES = ("circle", "square", "diamond", "up", "right")


@dataclass(frozen=True)
class Reliability:
    """Probabilities and what came true, summed over tenths: sums of several data sets add up.

    Parameters
    ----------
    counts : array of shape (10,)
        How many predictions are in every tenth, [0, 0.1), [0.1, 0.2), ..., [0.9, 1].
    probabilities, positives : arrays of shape (10,)
        The sum of their probabilities, and how many of them are positive.
    """

    counts: Floats
    probabilities: Floats
    positives: Floats

    @classmethod
    def of(cls, probabilities: ArrayLike, positive: ArrayLike) -> Reliability:
        """Sort predictions into tenths.

        Parameters
        ----------
        probabilities : array of shape (n,)
            Of bags, or of instances.
        positive : array of shape (n,)
            Whether each is positive.

        Examples
        --------
        >>> Reliability.of([0.11, 0.13, 0.9], [True, False, True]).points()
        [(0.12, 0.5, 2), (0.9, 1.0, 1)]
        """
        given, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(positive, dtype=np.float64)
        tenth = np.clip(np.floor(given * _TENTHS), 0, _TENTHS - 1).astype(np.int64)
        counts, sums, positives = (
            np.bincount(tenth, weights, minlength=_TENTHS).astype(np.float64)
            for weights in (np.ones(len(given)), given, truth)
        )
        return cls(counts, sums, positives)

    @classmethod
    def joined(cls, parts: Iterable[Reliability]) -> Reliability:
        """Add several up, each prediction with the same weight."""
        some = list(parts)
        names = ("counts", "probabilities", "positives")
        return cls(*(np.sum([getattr(part, name) for part in some], axis=0) for name in names))

    def points(self) -> list[tuple[float, float, int]]:
        """Return mean probability, share of positives and number of predictions of every tenth that has any."""
        return [
            (float(given / n), float(seen / n), int(n))
            for n, given, seen in zip(self.counts, self.probabilities, self.positives, strict=True)
            if n
        ]

    def gap(self) -> float:
        """Return the mean distance between probability and share, over predictions (expected calibration error)."""
        return float(np.abs(np.subtract(self.probabilities, self.positives)).sum() / np.sum(self.counts))

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as lists; ``Reliability(**sums)`` is the way back."""
        return {name: np.asarray(values).tolist() for name, values in vars(self).items()}


def reliability_figure(curves: Mapping[str, Reliability], title: str, what: str = "bags") -> Figure:
    """Draw one line for every data set: the share of positives among ``what`` against the probability given."""
    kinds = [Kind(name, i, _SHAPES[i % len(_SHAPES)]) for i, name in enumerate(curves)]
    series = [_series(curve, kind, what) for curve, kind in zip(curves.values(), kinds, strict=True)]
    calibrated = Kind("calibrated", 7, line="line dashed", size=0.5)
    axes = Axis("predicted probability", 0, 1), Axis(f"share of positive {what}", -0.02, 1.02)
    diagonal = Series([(0, 0), (1, 1)], calibrated)
    chart = line_chart("Reliability", [diagonal, *series], *axes, width=460, height=460)
    return Figure(title, "", [("", chart)], legend=[*kinds, calibrated])


def _series(curve: Reliability, kind: Kind, what: str) -> Series:
    points = curve.points()
    hints = [f"{kind.label}: {given:.3f} given, {seen:.3f} true, {n} {what}" for given, seen, n in points]
    return Series([(given, seen) for given, seen, _ in points], kind, hints=hints)
