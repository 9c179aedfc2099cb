"""What kind of bags a set has: the properties by which methods win or lose."""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS = {
    "text": "sparse features, such as counts of words",
    "few_witnesses": "dense, less than a tenth of the instances of a positive bag are witnesses",
    "large_bags": "dense, more than 30 instances a bag, witnesses not known to be few",
    "wide": "dense, at least as many features as bags",
    "narrow": "dense, more bags than features",
}
"""Kinds of bags, in the order in which they are asked for."""
FEW_WITNESSES, LARGE_BAG = 0.1, 30


def traits_of(shared: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a set from what is on record of it.

    Parameters
    ----------
    shared : dict
        ``y``, ``sizes``, ``n_features``, ``sparse`` and, where known, ``instance_y``.
    """
    sizes, y = np.asarray(shared["sizes"]), np.asarray(shared["y"])
    traits = {
        "n_bags": len(y),
        "positive_share": float(y.mean()),
        "median_size": float(np.median(sizes)),
        "n_instances": int(sizes.sum()),
        "n_features": int(shared["n_features"]),
        "sparse": bool(shared["sparse"]),
        "witness_rate": witness_rate(y, sizes, shared["instance_y"]),
    }
    return {**traits, "kind": kind_of(traits)}


def witness_rate(y: Any, sizes: Any, instance_y: Any) -> float | None:
    """Return the mean share of witnesses among the known instances of positive bags; None where none is known."""
    if instance_y is None:
        return None
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    known = np.add.reduceat((np.asarray(instance_y) >= 0).astype(np.int64), starts)
    positive = np.add.reduceat((np.asarray(instance_y) == 1).astype(np.int64), starts)
    asked = (np.asarray(y) == 1) & (known > 0)
    return float(np.mean(positive[asked] / known[asked])) if asked.any() else None


def kind_of(traits: dict[str, Any]) -> str:
    """Return the kind of bags: the first of `KINDS` that holds."""
    rate = traits["witness_rate"]
    if traits["sparse"]:
        return "text"
    if rate is not None and rate < FEW_WITNESSES:
        return "few_witnesses"
    if traits["median_size"] > LARGE_BAG:
        return "large_bags"
    return "wide" if traits["n_features"] >= traits["n_bags"] else "narrow"
