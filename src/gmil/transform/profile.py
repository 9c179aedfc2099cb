"""What features of training bags look like: ranges, and quantiles of the means of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gmil.bags.finite import are_usable
from gmil.engine import resolve
from gmil.io.model_files.schema import Array, Count, OrMissing, Record
from gmil.transform.vectors.summaries import summarize

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Floats

PROFILE = OrMissing(
    Record({"low": Array("d"), "high": Array("d"), "means": Array("d", "q"), "n_bags": Count(1)}, local=("q",))
)
_MOST_FEATURES = 2000
"""With more features no profile is kept: it would outweigh the model."""
_MOST_QUANTILES = 129


class Profile(NamedTuple):
    """Ranges of features over instances, and quantiles of their means over bags."""

    low: Floats  # (n_features,)
    high: Floats
    means: Floats  # (n_features, n_quantiles), at equal steps from the smallest mean to the largest
    n_bags: int

    @classmethod
    def of(cls, bags: Bags) -> Profile:
        """Look at bags; missing values are left out of ranges and are zero in means."""
        means = bag_means(bags)
        steps = np.linspace(0, 1, min(len(means), _MOST_QUANTILES))
        X: Any = bags.instances
        if sp.issparse(X):
            low, high = (np.asarray(end.toarray()).ravel() for end in (X.min(axis=0), X.max(axis=0)))
        else:
            low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        return cls(np.nan_to_num(low), np.nan_to_num(high), np.quantile(means, steps, axis=0).T.copy(), len(means))


def bag_means(bags: Bags) -> Floats:
    """Return the mean of every feature over every bag, (n_bags, n_features)."""
    X: Any = bags.instances
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
        X = X if are_usable(X) else np.nan_to_num(X)
    return summarize(X, bags.offsets, ("mean",), resolve("auto"))


def plain_profile(bags: Any) -> dict[str, Any] | None:
    """Return the profile of bags as a fitted model keeps it; None where there are too many features."""
    return Profile.of(bags)._asdict() if bags.n_features <= _MOST_FEATURES else None
