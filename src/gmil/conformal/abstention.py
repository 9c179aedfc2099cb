"""A label of its own for bags that a model does not decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Booleans


def abstain_label(classes: NDArray[Any]) -> Any:
    """Return the label of bags that are not decided: "unsure" among strings, -1 among numbers and truth values.

    Where that is a class, an underscore is added, or the smallest class less one is taken.

    >>> abstain_label(np.array([0, 1])), abstain_label(np.array([-1, 1])), abstain_label(np.array(["no", "yes"]))
    (-1, -2, 'unsure')
    """
    known = set(classes.tolist())
    if any(isinstance(label, str) for label in known):
        label = "unsure"
        while label in known:
            label += "_"
        return label
    return -1 if -1 not in known else min(known) - 1


def single_labels(sets: Booleans, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the one class of every set, (n_bags,), and `abstain_label` where a set has none or several."""
    unsure = abstain_label(classes)
    one = sets.sum(axis=1) == 1
    named = classes.tolist()
    found = [named[column] if is_one else unsure for column, is_one in zip(sets.argmax(axis=1), one, strict=True)]
    return np.array(found, dtype=object if classes.dtype == object else None)
