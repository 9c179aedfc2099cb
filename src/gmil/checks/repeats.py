"""Duplicate bags and instances: leaks from training folds into test folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from gmil.checks.findings import Finding
from gmil.errors import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.bags import Bags
    from gmil.engine.arrays import Instances, Integers

MANY = 0.05
"""Above this share of bags, repeated instances are a reason to doubt results."""


def repeat_findings(bags: Bags, labels: Integers, groups: Integers | None) -> list[Finding]:
    """Find identical bags, and for identical instances in several bags, labels or groups."""
    rows = row_numbers(bags.instances)
    owner = bags.segment_ids
    findings = [_bag_finding(rows, bags, labels, groups), _instance_finding(rows, owner, labels)]
    if groups is not None:
        findings.append(_group_finding(rows, owner, groups))
    return findings


def row_numbers(X: Instances) -> Integers:
    """Return a number for every row, equal where rows are equal, (n_rows,): hashes of 64 bits, numbered."""
    hashes = np.fromiter((hash(key) for key in _row_keys(X)), dtype=np.int64, count=X.shape[0])
    return np.unique(hashes, return_inverse=True)[1]


def _row_keys(X: Any) -> Iterator[bytes]:
    if not sp.issparse(X):
        return ((row + 0).tobytes() for row in X)  # + 0: minus zero is zero
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends)


def _several(rows: Integers, kinds: Integers) -> Any:
    """Tell for every row whether equal rows are of more than one kind, (n_rows,)."""
    pairs = np.unique(np.column_stack([rows, kinds]), axis=0)
    return np.bincount(pairs[:, 0])[rows] > 1


def same_bags(rows: Integers, bags: Bags) -> Integers:
    """Return a number for every bag, equal where bags hold the same instances, (n_bags,), given these of rows."""
    parts = (np.sort(rows[a:b]).tobytes() for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True))
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(part, len(known)) for part in parts])


def _bag_finding(rows: Integers, bags: Bags, labels: Integers, groups: Integers | None) -> Finding:
    name = "identical bags"
    same = same_bags(rows, bags)
    repeated = np.bincount(same)[same] > 1
    count = int(repeated.sum())
    if count == 0:
        return Finding(name, "ok", 0.0, "No two bags hold the same instances.")
    text = f"{count_of(count, 'bag holds', 'bags hold')} the same instances as another bag"
    contradicting = int(_several(same, labels).sum())
    if contradicting:
        text += f", {contradicting} of them under another label"
    if groups is not None and not _several(same, groups).any():
        return Finding(name, "note", float(count), f"{text}, always in one group, so that no fold leaks into another.")
    return Finding(
        name, "warning", float(count), f"{text}: training folds leak into test folds. Drop these bags, or group them."
    )


def _instance_finding(rows: Integers, owner: Integers, labels: Integers) -> Finding:
    name = "instances in several bags"
    shared = _several(rows, owner)
    if not shared.any():
        return Finding(name, "ok", 0.0, "No instance is in two bags.")
    n_bags = len(np.unique(owner[shared]))
    share = n_bags / len(labels)
    across = int((shared & _several(rows, labels[owner])).sum())
    these = count_of(int(shared.sum()), "instance is", "instances are")
    text = (
        f"{these} also in another bag, in {n_bags} of {len(labels)} bags; {across} of them "
        "are in bags of different labels. If such bags have one source, pass groups."
    )
    return Finding(name, "warning" if share > MANY else "note", share, text)


def _group_finding(rows: Integers, owner: Integers, groups: Integers) -> Finding:
    name = "instances in several groups"
    shared = _several(rows, groups[owner])
    count = int(shared.sum())
    if count == 0:
        return Finding(name, "ok", 0.0, "No instance is in two groups.")
    these = count_of(count, "instance is", "instances are")
    text = f"{these} also in another group: folds leak into each other in spite of the groups."
    return Finding(name, "warning", float(count), text)
