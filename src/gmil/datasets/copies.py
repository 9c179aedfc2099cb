"""Which bags are copies of each other: the same instances, in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from gmil.bags import Bags
    from gmil.engine.arrays import Integers


def groups_of_copies(bags: Bags) -> Integers:
    """Return the number of every bag's group: bags with the same instances share one, all others have their own.

    Examples
    --------
    >>> import gmil
    >>> groups_of_copies(gmil.Bags.from_list([[[1.0], [2.0]], [[3.0]], [[2.0], [1.0]]])).tolist()
    [0, 1, 0]
    """
    first: dict[bytes, int] = {}
    groups = [first.setdefault(_content(bags, number), number) for number in range(len(bags))]
    return np.unique(groups, return_inverse=True)[1]


def _content(bags: Bags, number: int) -> bytes:
    part = bags.instances[bags.offsets[number] : bags.offsets[number + 1]]
    rows = part.toarray() if sp.issparse(part) else np.asarray(part)
    return rows[np.lexsort(rows.T)].tobytes()
