"""The linear program of MICA: the plane between points of positive bags and negative instances.

It has a row for every point and every negative instance. Of thousands of negative instances most are far beyond the
margin, where they cost nothing, or far on its wrong side, where their slacks are as good as one sum. So rows that are
alike in this are left out or added up, and the program has only the others one by one. Leaving rows out and adding them
up can only lower the costs: as soon as every row is where it was taken to be, the solution is that of the whole.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from gmil.errors import GmilError
from gmil.methods.svm.kernels import hinge

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_SOLVERS = (("highs", False), ("highs-ds", True), ("highs-ipm", True))
"""Methods of `scipy.optimize.linprog`, and whether to simplify first. Dense rows have nothing to simplify, and looking
for it takes half the time; but now and then the simplex method gets lost, and the next one does not."""

MOST_ALONE = 3000
"""Up to so many negative instances each has a row of its own."""

_STAY_ALONE = 1000
"""Of more, so many that are near the margin keep their rows."""
_AT_ONCE = 500
"""So many that are not where they were taken to be get rows of their own at once, the farthest off first."""
_MOST_ROUNDS = 50
"""After so many programs, no row is given up any more."""

_MOST_ENTRIES = 1 << 25
"""The compiled simplex method, which knows nothing of zeros, takes programs of up to so many numbers, 256 MiB."""

_GAP = 1e-7
"""How far a compiled solution may be from what duality proves, and from its constraints, relative to their size."""

TOLERANCE = 1e-6
"""Below the feasibility tolerance of the solver nothing counts as violated, or as beyond the margin."""

_ROUNDING = 1e-9


class SlackCosts(NamedTuple):
    """What a unit of slack costs, next to the 1-norm of the weights."""

    points: Floats  # (n_points,), of the point of every positive bag
    negatives: Floats  # (n_negatives,), of every negative instance


class Separation(NamedTuple):
    """A plane: points should be one above the threshold, negatives one below."""

    weights: Floats  # (n_features,)
    threshold: float

    def margins(self, negatives: Instances) -> Floats:
        """Return how far negatives are below the threshold, (n_negatives,)."""
        return self.threshold - np.asarray(negatives @ self.weights)


def solve_plane(
    points: Any, negatives: Instances, costs: SlackCosts, backend: Backend, guess: Separation | None = None
) -> Separation:
    """Solve for the plane between points of positive bags and all negatives.

    Parameters
    ----------
    points : (n_points, n_features)
    negatives : (n_negatives, n_features)
    costs : SlackCosts
    backend : Backend
    guess : Separation
        A plane that is perhaps near. It saves time; what the solution costs does not depend on it.
    """
    if not costs.negatives.all():
        charged = costs.negatives > 0
        negatives, costs = negatives[charged], costs._replace(negatives=costs.negatives[charged])
    if negatives.shape[0] <= MOST_ALONE:
        return _solve_grouped(points, negatives, costs, np.arange(negatives.shape[0]), backend).plane
    start = _plane_of_sample(points, negatives, costs, backend) if guess is None else guess
    groups, least = _first_groups(start.margins(negatives)), 0.0
    for n_rounds in itertools.count():
        found = _solve_grouped(points, negatives, costs, groups, backend)
        seen = _Seen.of(groups, found, found.plane.margins(negatives))
        if not seen.misplaced.any():
            break
        # Rows that are given up or pooled keep their shares, so that costs never fall; where they rise, no partition
        # comes back.
        rises = found.cost > least * (1 + _ROUNDING) and n_rounds < _MOST_ROUNDS
        groups, least = seen.regrouped() if rises else seen.divided(), max(least, found.cost)
    return found.plane


def _plane_of_sample(points: Any, negatives: Instances, costs: SlackCosts, backend: Backend) -> Separation:
    """Return the plane of negatives that stand for all."""
    rows = np.unique(np.linspace(0, negatives.shape[0] - 1, _STAY_ALONE).astype(np.int64))
    share = costs.negatives[rows].sum() / costs.negatives.sum()
    return solve_plane(points, negatives[rows], costs._replace(negatives=costs.negatives[rows] / share), backend)


# -------------------------------------------------------------------------------- rows that are added up


class _Grouped(NamedTuple):
    """The solution of a program in which groups of negatives have one row each."""

    plane: Separation
    shares: Floats  # (n_negatives,), of the cost of each its dual share, from 0 to 1
    cost: float


def _solve_grouped(
    points: Any, negatives: Instances, costs: SlackCosts, groups: Integers, backend: Backend
) -> _Grouped:
    """Solve with one row for every group, the mean of its negatives, whose slack costs what all of theirs does.

    ``groups`` has the number of the group of every negative, or -1 where it is left out.
    """
    n_points, inside = points.shape[0], np.flatnonzero(groups >= 0)
    totals = np.bincount(groups[inside], costs.negatives[inside])
    entries = costs.negatives[inside] / totals[groups[inside]], (groups[inside], inside)
    means = sp.csr_array(entries, shape=(len(totals), len(groups))) @ negatives
    is_sparse = sp.issparse(negatives)
    rows = sp.csr_array(sp.vstack([sp.csr_array(points), -means])) if is_sparse else np.concatenate([points, -means])
    sides = np.repeat([1.0, -1.0], [n_points, len(totals)])
    prices, dual = solve_program(rows, sides, np.concatenate([costs.points, totals]), backend)
    shares = np.zeros(len(groups))
    shares[inside] = (dual[n_points:] / totals)[groups[inside]]
    return _Grouped(Separation(prices[:-1], -float(prices[-1])), shares, float(dual.sum()))


def _first_groups(margins: Floats) -> Integers:
    """Return groups by a plane: those near the margin alone, those on its wrong side as one, the others left out."""
    groups = np.where(margins < 1, 0, -1)
    near = _nearest(margins, _STAY_ALONE)
    groups[near] = 1 + np.arange(len(near))
    return _numbered(groups)


class _Seen(NamedTuple):
    """Where negatives are, as seen from the plane that was found, (n_negatives,) each."""

    groups: Integers
    margins: Floats
    without: Booleans  # whether it has no share
    whole: Booleans  # whether its share is all that its slack costs
    alone: Booleans  # whether it has a row of its own
    misplaced: Booleans  # whether it is on the other side of the margin than it was taken to be

    @classmethod
    def of(cls, groups: Integers, found: _Grouped, margins: Floats) -> _Seen:
        """Compare margins with what the program took them to be."""
        without, whole = found.shares <= _ROUNDING, found.shares >= 1 - _ROUNDING
        wrong, beyond = margins < 1 - TOLERANCE, margins > 1 + TOLERANCE
        alone = (groups >= 0) & (np.bincount(groups[groups >= 0])[groups] == 1)
        misplaced = ~alone & np.where(without, wrong, np.where(whole, beyond, wrong | beyond))
        return cls(groups, margins, without, whole, alone, misplaced)

    def divided(self) -> Integers:
        """Return groups in which those that are most misplaced are alone; the others stay."""
        groups = self.groups.copy()
        _set_alone(groups, self.margins, np.flatnonzero(self.misplaced))
        return _numbered(groups)

    def regrouped(self) -> Integers:
        """Return groups of equal shares, and of one side where they are misplaced.

        Negatives with all of their share are one group, those without are left out, but for those near the margin that
        have been alone.
        """
        kept = np.flatnonzero(self.alone)
        stays = np.zeros(len(self.groups), dtype=bool)
        stays[kept[_nearest(self.margins[kept], _STAY_ALONE)]] = True
        rest = ~stays & ~self.misplaced
        groups, pool = self.groups.copy(), self.groups.max() + 1
        groups[rest & self.without] = -1
        groups[rest & self.whole] = pool
        between = ~stays & ~self.without & ~self.whole
        beyond = between & (self.margins > 1)
        groups[beyond] += pool + 1  # every group in two
        for side in (self.misplaced & self.without, self.misplaced & self.whole):
            groups[side] = groups.max() + 1
            _set_alone(groups, self.margins, np.flatnonzero(side))
        return _numbered(groups)


def _nearest(margins: Floats, most: int) -> Integers:
    return np.argsort(np.abs(margins - 1), kind="stable")[:most]


def _set_alone(groups: Integers, margins: Floats, rows: Integers) -> None:
    """Put those of the rows that are farthest off into groups of their own."""
    farthest = rows[np.argsort(-np.abs(margins[rows] - 1), kind="stable")[:_AT_ONCE]]
    groups[farthest] = groups.max() + 1 + np.arange(len(farthest))


def _numbered(groups: Integers) -> Integers:
    """Return groups numbered from zero; -1 stays."""
    found = np.unique(np.append(groups, -1), return_inverse=True)[1][:-1]
    return np.asarray(found - 1)


# -------------------------------------------------------------------------------- one program


def solve_program(rows: Instances, sides: Floats, most: Floats, backend: Backend) -> tuple[Floats, Floats]:
    """Solve a program of few rows, whose slack costs ``most``, (n_rows,).

    Returns prices, those of the columns and, last, the threshold with its sign changed, and shares, those of the dual:
    one for every row, at most what its slack costs. The shares of both sides sum to the same, their sum is as large as
    can be, and no column of the weighted sum of rows is beyond 1. The dual takes a fraction of the time.
    """
    if sp.issparse(rows):
        return _solve_filled(rows, sides, most, backend)
    found = solve_compiled(rows, sides, most, backend)
    return _solve_by_scipy(rows, sides, most) if found is None else found


def _solve_filled(rows: Any, sides: Floats, most: Floats, backend: Backend) -> tuple[Floats, Floats]:
    """Solve a program of sparse rows on the columns that some row fills: the others have no weight."""
    filled = np.unique(np.append(rows.indices, 0))  # one at least
    kept = rows[:, filled]
    if np.prod(kept.shape) <= _MOST_ENTRIES:
        found, shares = solve_program(kept.toarray(), sides, most, backend)
    else:
        found, shares = _solve_by_scipy(kept, sides, most)
    prices = np.zeros(rows.shape[1] + 1)
    prices[filled], prices[-1] = found[:-1], found[-1]
    return prices, shares


def solve_compiled(rows: Floats, sides: Floats, most: Floats, backend: Backend) -> tuple[Floats, Floats] | None:
    """Solve a program by the compiled simplex method.

    None where the backend has no such kernel, where the program is not for it, or where its solution is not proven.
    """
    kernel = getattr(backend, "margin_program", None)
    n_rows, n_columns = rows.shape[0], rows.shape[1] + 1
    if kernel is None or n_rows * n_columns > _MOST_ENTRIES:
        return None
    rows = np.column_stack([rows, sides])
    found = kernel(rows, most)
    if found is None:
        return None
    prices, shares = found
    excess = np.abs(shares @ rows) - np.append(np.ones(n_columns - 1), 0)
    outside = max(float((-shares).max()), float((shares - most).max()), float(excess.max()))
    objective = np.abs(prices[:-1]).sum() + most @ hinge(rows @ prices)
    # No plane costs less than shares that keep to their constraints add up to.
    proven = outside <= _GAP and abs(objective - shares.sum()) <= _GAP * max(1.0, objective)
    return (prices, shares) if proven else None


def _solve_by_scipy(rows: Instances, sides: Floats, most: Floats) -> tuple[Floats, Floats]:
    n_rows, n_features = rows.shape
    differences = sp.csc_array(sp.csr_array(rows).T)
    program = {
        "c": -np.ones(n_rows),
        "A_ub": sp.vstack([differences, -differences]),
        "b_ub": np.ones(2 * n_features),
        "A_eq": sides[None, :],
        "b_eq": [0],
        "bounds": np.column_stack([np.zeros(n_rows), most]),
    }
    for method, presolve in _SOLVERS:
        found = linprog(**program, method=method, options={"presolve": presolve})
        if found.x is not None:
            break
    else:
        msg = f"The linear program of MICA was not solved: {found.message} Scale the features, or change nu."
        raise GmilError(msg)
    above, below = np.split(found.ineqlin.marginals, 2)
    return np.append(below - above, -float(found.eqlin.marginals[0])), found.x
