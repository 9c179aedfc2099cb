"""Bags made to order, with known witnesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from gmil.bags import Bags
from gmil.datasets.synthetic_targets import Wish, valued_bags
from gmil.errors import BagValidationError
from gmil.target_checks import TARGETS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gmil.engine.arrays import Floats, Integers

_DESCR = """Bags made by gmil.datasets.make_bags

Background instances lie around the origin, the witnesses of a concept around its centre, both with the
same spread. A positive bag holds witnesses of one concept of its class, a negative bag holds none."""


def make_bags(
    n_bags: int = 100,
    *,
    n_features: int = 10,
    bag_size: int | tuple[int, int] = (5, 15),
    witness_rate: float = 0.2,
    positive_share: float = 0.5,
    n_classes: int | None = None,
    n_concepts: int = 1,
    separation: float = 4.0,
    noise: float = 1.0,
    label_noise: float = 0.0,
    target: str = "classes",
    target_noise: float = 0.1,
    censoring: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = False,
) -> Any:
    """Generate synthetic bags whose positive instances (witnesses) are known.

    Background instances are drawn around the origin. Every concept has a centre at the distance
    ``separation`` from the origin; a witness of the concept is drawn around that centre. Both are normal with
    the standard deviation ``noise`` in every feature. A bag of class 0 (negative) holds background only; a
    bag of another class holds background and ``max(1, round(witness_rate * size))`` witnesses of one
    concept of its class, at random places.

    With another ``target`` every bag holds witnesses of one concept, and where they lie around its centre tells the
    value of the bag: they move by two for a deviation of the value.

    Parameters
    ----------
    n_bags : int
        The number of bags.
    n_features : int
        The number of features.
    bag_size : int or (int, int)
        The size of every bag, or the smallest and the largest; sizes between are equally likely.
    witness_rate : float in (0, 1]
        The share of witnesses in a positive bag; there is at least one.
    positive_share : float in [0, 1]
        The share of bags that are positive: exactly ``round(positive_share * n_bags)`` are.
    n_classes : int, optional
        2 by default, for negative and positive bags; with more, the positive bags are dealt out evenly to the
        classes 1, 2, ..., each with concepts of its own. With ``target="ordinal"`` the number of grades, 5 by default.
    n_concepts : int
        The number of concepts of every positive class.
    separation : float
        The distance of every concept from the background. Up to ``n_features`` concepts are orthogonal.
    noise : float
        The standard deviation of every feature around its centre.
    label_noise : float in [0, 1]
        The share of bags, exactly ``round(label_noise * n_bags)``, whose label in ``y`` is replaced by
        another one; ``clean_y`` has the true labels.
    target : {"classes", "regression", "ordinal", "survival"}
        What ``y`` holds: classes; values of mean 0 and deviation 1, told by how far witnesses are from the centre of
        their concept along a direction at a right angle to it; such values cut into grades 0, 1, ... of equally many
        bags; or events and times, a structured array, whose hazard is exp(risk), the risk being the largest of all
        instances along the concept, standardised over bags.
    target_noise : float
        The standard deviation of what is added to values that witnesses tell; not for classes and times.
    censoring : float in [0, 1)
        The share of times, about, at which follow-up ends before the event.
    random_state : int, RandomState or None
        Makes the result repeatable.
    return_X_y : bool
        Return ``(bags, y)`` only.

    Returns
    -------
    Bunch or (Bags, array)
        ``bags``; ``y`` (n_bags,); ``instance_y`` (n_instances,), 0 for background and the class of the bag
        for a witness; ``clean_y`` (n_bags,); ``concepts`` (n_instances,), the concept of a witness and -1 for
        background; ``centers`` (number of concepts, n_features); ``DESCR``; ``name``. With another target
        ``concept`` and ``direction``, (n_features,), of all witnesses; ``clean_y`` has values without noise; of
        times ``risk`` (n_bags,), ``instance_risk`` (n_instances,) and ``event_time`` (n_bags,), also where censored.

    Examples
    --------
    >>> from gmil.datasets import make_bags
    >>> made = make_bags(6, n_features=2, bag_size=10, witness_rate=0.3, random_state=0)
    >>> made.bags
    Bags(n_bags=6, n_instances=60, n_features=2, float64)
    >>> int(made.y.sum()), int(made.instance_y.sum())
    (3, 9)
    """
    _check_counts(1, n_bags=n_bags, n_features=n_features, n_concepts=n_concepts)
    _expect(target in TARGETS, "target", f"be one of {list(TARGETS)}", target)
    n_classes = (5 if target == "ordinal" else 2) if n_classes is None else n_classes
    _check_counts(2, n_classes=n_classes)
    _expect(0 <= censoring < 1, "censoring", "be at least 0 and below 1", censoring)
    for name, share in (("positive_share", positive_share), ("label_noise", label_noise)):
        _expect(0 <= share <= 1, name, "lie between 0 and 1", share)
    _expect(0 < witness_rate <= 1, "witness_rate", "be above 0 and at most 1", witness_rate)
    for name, amount in (("separation", separation), ("noise", noise), ("target_noise", target_noise)):
        _expect(0 <= amount < np.inf, name, "be a finite number >= 0", amount)
    smallest, largest = _size_range(bag_size)
    rng = check_random_state(random_state)
    sizes = rng.randint(smallest, largest + 1, size=n_bags)
    if target != "classes":
        wish = Wish(target, n_classes, separation, noise, target_noise, censoring)
        made = valued_bags(sizes, witness_rate, n_features, wish, rng)
        return (made.bags, made.y) if return_X_y else made
    labels = _bag_classes(n_bags, positive_share, n_classes, rng)
    concepts = _witness_concepts(sizes, labels, witness_rate, n_concepts, rng)
    centers = separation * _directions((n_classes - 1) * n_concepts, n_features, rng)
    around = np.vstack([centers, np.zeros(n_features)])[concepts]  # row -1 is the background
    instances = around + noise * rng.standard_normal(around.shape)
    bags = Bags(instances, np.concatenate([[0], np.cumsum(sizes)]))
    y = _with_label_noise(labels, label_noise, n_classes, rng)
    if return_X_y:
        return bags, y
    return Bunch(
        bags=bags,
        y=y,
        instance_y=np.where(concepts < 0, 0, concepts // n_concepts + 1),
        clean_y=labels,
        concepts=concepts,
        centers=centers,
        DESCR=_DESCR,
        name="make_bags",
    )


def _bag_classes(n_bags: int, positive_share: float, n_classes: int, rng: np.random.RandomState) -> Integers:
    n_positive = round(positive_share * n_bags)
    labels = np.zeros(n_bags, dtype=np.int64)
    labels[:n_positive] = np.arange(n_positive) % (n_classes - 1) + 1
    return rng.permutation(labels)


def _witness_concepts(
    sizes: Integers, labels: Integers, rate: float, n_concepts: int, rng: np.random.RandomState
) -> Integers:
    """Return the concept of every instance, -1 for background."""
    parts = []
    for size, label in zip(sizes, labels, strict=True):
        part = np.full(size, -1, dtype=np.int64)
        if label > 0:
            n_witnesses = max(1, round(rate * int(size)))
            part[:n_witnesses] = (label - 1) * n_concepts + rng.randint(n_concepts)
        parts.append(rng.permutation(part))
    return np.concatenate(parts)


def _directions(n_directions: int, n_features: int, rng: np.random.RandomState) -> Floats:
    """Return unit vectors, orthogonal as long as the space has room: (n_directions, n_features)."""
    random = rng.standard_normal((n_directions, n_features))
    if n_directions <= n_features:
        orthogonal, _ = np.linalg.qr(random.T)
        return np.asarray(orthogonal.T)
    return np.asarray(random / np.linalg.norm(random, axis=1, keepdims=True))


def _with_label_noise(labels: Integers, share: float, n_classes: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    y = labels.astype(np.int64)
    wrong = rng.choice(len(y), size=round(share * len(y)), replace=False)
    y[wrong] = (y[wrong] + rng.randint(1, n_classes, size=len(wrong))) % n_classes
    return y


def _size_range(bag_size: int | tuple[int, int]) -> tuple[int, int]:
    pair = (bag_size, bag_size) if isinstance(bag_size, (int, np.integer)) else tuple(bag_size)
    fits = len(pair) == 2 and 1 <= pair[0] <= pair[1]
    _expect(fits, "bag_size", "be a size >= 1, or a smallest and a largest one", bag_size)
    return int(pair[0]), int(pair[1])


def _check_counts(least: int, **counts: Any) -> None:
    for name, count in counts.items():
        fits = isinstance(count, (int, np.integer)) and count >= least
        _expect(fits, name, f"be an integer >= {least}", count)


def _expect(holds: object, name: str, rule: str, value: Any) -> None:
    if not holds:
        msg = f"must {rule}, got {value!r}."
        raise BagValidationError(msg, parameter=name)
