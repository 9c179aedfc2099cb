"""How many clusters and centres, and the settings that the paper prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gmil.errors import BagValidationError
from gmil.transform.embedding import MOST_LANDMARKS

if TYPE_CHECKING:
    from gmil.engine.arrays import Booleans

_IN_ALL: dict[str, Any] = {"epsilon": 1e-6, "init": "plain-k-means++"}
"""A "small positive constant" that the paper does not print, and the k-means++ that it cites."""
_COREL: dict[str, Any] = {"n_clusters": 20, "n_positive": 4, "n_negative": 4, "scale": "l2"}
_PAPER: dict[str, dict[str, Any]] = {
    # On raw features every bag is farther than 0.082 from every centre.
    "musk1": {"n_clusters": 10, "n_positive": 2, "n_negative": 0, "threshold": 0.082, "scale": "global"},
    "musk2": {"n_clusters": 22, "n_positive": 2, "n_negative": 2},
    "elephant": _COREL,
    "fox": _COREL,
    "tiger": _COREL,
    "med11": {"n_clusters": 50, "n_positive": 3, "n_negative": 9},
}


class CodebookSize(NamedTuple):
    """K, p and q."""

    n_clusters: int
    n_positive: int
    n_negative: int


def paper_setting(name: str) -> dict[str, Any]:
    """Return the parameters of one of the paper's experiments."""
    if name not in _PAPER:
        msg = f"The paper has no experiment {name!r}; it has {', '.join(_PAPER)}."
        raise ValueError(msg)
    return {**_IN_ALL, **_PAPER[name]}


def codebook_size(parameters: Any, n_instances: int, n_features: int, positive: Booleans) -> CodebookSize:
    """Return K, p and q under the parameters of `gmil.GMIL`; ``n_instances`` train it."""
    asked, n_positive, n_negative = parameters.n_clusters, parameters.n_positive, parameters.n_negative
    if not isinstance(parameters.init, str):
        asked = check_initial_centers(parameters.init, asked, n_features)
    clustered = n_clustered(n_instances, parameters.sample_size, parameters.clustering)
    return choose_codebook_size(asked, n_positive, n_negative, n_instances, clustered, positive)


def n_clustered(n_instances: int, sample_size: int | None, clustering: str) -> int:
    """Return how many of the training instances are clustered."""
    most = min(n_instances, sample_size or n_instances)
    return most if clustering == "k-means" else min(most, MOST_LANDMARKS)


def choose_codebook_size(
    n_clusters: int | str,
    n_positive: int | str,
    n_negative: int | str,
    n_instances: int,
    n_clustered: int,
    positive: Booleans,
) -> CodebookSize:
    """Resolve "auto" by the paper's rules and refuse numbers above what the data allow.

    Larger data, larger K; p and q alike for balanced bags, more negative centres where most bags are negative.
    With several classes the share of negative bags is the mean over classes.

    Parameters
    ----------
    n_clusters, n_positive, n_negative : int or "auto"
    n_instances : int
        Training instances in all.
    n_clustered : int
        Those of them that are clustered.
    positive : array of shape (n_bags, n_problems)
    """
    if isinstance(n_clusters, str):
        n_clusters = int(np.clip(round(2.5 * np.log(n_instances)), 1, n_clustered))
    elif n_clusters > n_clustered:
        msg = (
            f"n_clusters={n_clusters} is above the number of instances to cluster, {n_clustered}. "
            "Ask for fewer clusters, or raise sample_size if there are more instances."
        )
        raise BagValidationError(msg)
    if isinstance(n_positive, str):
        share = n_clusters / 16 if _mostly_negative(positive) else n_clusters / 5
        n_positive = min(max(1, round(share)), n_clusters)
    n_positive = _at_most("n_positive", n_positive, n_clusters)
    if isinstance(n_negative, str):
        n_negative = min(3 * n_positive if _mostly_negative(positive) else n_positive, n_clusters)
    return CodebookSize(n_clusters, n_positive, _at_most("n_negative", n_negative, n_clusters))


def _mostly_negative(positive: Booleans) -> bool:
    return bool(1 - positive.mean() > 0.6)


def _at_most(name: str, asked: int, n_clusters: int) -> int:
    if asked > n_clusters:
        msg = f"{name}={asked} is above the number of clusters, {n_clusters}. Ask for fewer, or raise n_clusters."
        raise BagValidationError(msg)
    return int(asked)


def check_initial_centers(init: Any, n_clusters: int | str, n_features: int) -> int:
    """Return the number of initial centres; centres that do not fit the data are refused."""
    shape = np.shape(init)
    if len(shape) != 2 or shape[0] == 0 or shape[1] != n_features:
        msg = f"init must be an array of centres with {n_features} features each, got shape {shape}."
        raise BagValidationError(msg)
    if not np.isfinite(np.asarray(init, dtype=np.float64)).all():
        msg = "init must hold finite numbers, got NaN or infinity."
        raise BagValidationError(msg)
    if not isinstance(n_clusters, str) and n_clusters != shape[0]:
        msg = f"init has {shape[0]} centres, but n_clusters is {n_clusters}. Pass n_clusters='auto' or {shape[0]}."
        raise BagValidationError(msg)
    return int(shape[0])
