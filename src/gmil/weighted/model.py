"""The fitted form of `WeightedGMIL`: views of a bag, and the weighted sum of their decisions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from gmil.engine.resident import as_array, beside, in_double, is_tensor, namespace
from gmil.transform.scaling import rounding_of, safe_units, tensor_summary
from gmil.weighted.ridge import center_kernel, fit_ridge
from gmil.weighted.views import bounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Integers
    from gmil.weighted.ridge import Centering


KERNELS = ("laplacian", "gaussian")
_SIGNS_AT_ONCE = 2_000_000
_STEEPNESS = 5.0
"""One over the distance, in standard deviations, from which on the slope of a Laplacian kernel is full."""


_LEAST_PART = 1e-3
"""The part of a usual deviation that counts as one where all training bags are alike."""


class View(NamedTuple):
    """A view: bags as standardised vectors, compared with points by a kernel, or weighted where there are none.

    Columns have the units of the training bags, each of which has a part in them: none can be many deviations from the
    mean. A new bag could, and so it counts as the extreme of the training bags where it is beyond them. A column in
    which all training bags are alike (a word that none has) is no exception: a new bag that differs there counts as one
    training bag would that differs from all others. Without this, left-out decisions, which prediction sets are made
    of, would be of another kind than those about new bags.
    """

    space: int
    kind: str
    shift: Floats | None  # (n_columns,)
    divisor: Floats | None  # (n_columns,)
    kernel: str
    points: Floats | None  # (n_points, n_columns); None for a linear vote
    width: float
    coefficients: Floats  # (n_points, n_problems), or (n_columns, n_problems) for a linear vote
    low: Floats | None = None  # (n_columns,): what entries count at least; None in models of 0.1.0
    high: Floats | None = None  # (n_columns,): and at most

    def standardised(self, features: Floats) -> Floats:
        """Return vectors of bags in the units of this view; sparse ones are left as they are."""
        if self.shift is None or self.divisor is None:
            return features
        columns = bounded(
            (features - beside(self.shift, features, wide=True)) / beside(self.divisor, features, wide=True)
        )
        if self.low is None or self.high is None:
            return columns
        return namespace(columns).clip(columns, beside(self.low, columns), beside(self.high, columns))

    def limited(self, columns: Floats) -> View:
        """Return the view with limits, from standardised training bags; of sparse ones without."""
        if self.shift is None:
            return self
        reduced = namespace(columns)
        low, high = (as_array(part) for part in (reduced.amin(columns, 0), reduced.amax(columns, 0)))
        beyond, differs = np.float32(np.sqrt(len(columns))), low < high
        return self._replace(low=np.where(differs, low, -beyond), high=np.where(differs, high, beyond))

    def beyond(self) -> View:
        """Return the view with limits half a range further out: values, unlike classes, go on beyond training bags."""
        if self.low is None or self.high is None:
            return self
        more = (self.high - self.low) / 2
        return self._replace(low=self.low - more, high=self.high + more)

    def standardised_entries(self, values: Floats, columns: Integers) -> Floats:
        """Return single entries of vectors of bags in the units of this view, in double precision."""
        if self.shift is not None and self.divisor is not None:
            values = bounded((values - self.shift[columns]) / self.divisor[columns])
            if self.low is not None and self.high is not None:
                values = np.clip(values, self.low[columns], self.high[columns])
        return values.astype(np.float64)

    def votes(self, features: Floats, backend: Backend) -> Floats:
        """Return the decisions of the view about bags, (n_bags, n_problems)."""
        columns = self.standardised(features)
        if self.points is None:
            return np.asarray(as_array(columns), dtype=np.float64) @ self.coefficients
        similarities = similarity(columns, self.points, self.kernel, self.width, backend)
        return as_array(similarities @ beside(self.coefficients, columns, wide=True))

    def gradients(self, features: Floats, backend: Backend) -> Floats:
        """Return how fast the decisions about bags change with their vectors, (n_bags, n_columns, n_problems)."""
        n_bags, n_columns = features.shape
        found = np.empty((n_bags, n_columns, self.coefficients.shape[1]))
        if self.points is None:
            found[:] = self.coefficients
        else:
            at_once = max(1, _SIGNS_AT_ONCE // (self.points.shape[0] * n_columns))
            for start in range(0, n_bags, at_once):
                rows = slice(start, start + at_once)
                found[rows] = self._kernel_gradients(features[rows], backend)
        return found if self.divisor is None else found / self.divisor[:, None]

    def _kernel_gradients(self, features: Floats, backend: Backend) -> Floats:
        """Return gradients over standardised columns."""
        columns, points = _dense(self.standardised(features)), _dense(cast("Floats", self.points))
        pull = (
            similarity(columns, points, self.kernel, self.width, backend)[:, :, None] * self.coefficients / self.width
        )
        if self.kernel == "gaussian":
            return 2 * (points.T @ pull - columns[:, :, None] * pull.sum(axis=1)[:, None, :])
        # A training bag is one of the points, where the kernel has a kink: rounding must not decide about its slope.
        signs = np.clip(_STEEPNESS * (points[None, :, :] - columns[:, None, :]), -1, 1)
        return np.asarray(np.swapaxes(signs, 1, 2) @ pull.astype(np.float32))


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float32)


def similarity(one: Floats, other: Floats, kernel: str, width: float, backend: Backend) -> Floats:
    """Return ``exp(-distance / width)`` in double precision; see `dissimilarity` for the distance."""
    return namespace(one).exp(in_double(dissimilarity(one, other, kernel, backend)) / -width)


def dissimilarity(one: Floats, other: Floats, kernel: str, backend: Backend) -> Floats:
    """Return sums of absolute differences ("laplacian") or squared distances ("gaussian") between rows."""
    if sp.issparse(one):
        metric = partial(euclidean_distances, squared=True) if kernel == "gaussian" else manhattan_distances
        return np.asarray(metric(_short_indices(one), _short_indices(other)))
    return backend.sq_distances(one, other) if kernel == "gaussian" else backend.l1_distances(one, other)


def _short_indices(rows: Any) -> Any:
    """Return the same sparse rows with the 32-bit indices that scikit-learn's distances need."""
    return sp.csr_array(
        (rows.data.astype(np.float64), rows.indices.astype(np.int32), rows.indptr.astype(np.int32)), shape=rows.shape
    )


class Candidate(NamedTuple):
    """A view fitted on training bags, before it is known how much its word counts."""

    view: View
    left_out: Floats  # (n_bags, n_problems)
    intercepts: Floats  # (n_problems,)
    penalties: Floats  # (n_problems,)
    trace: float
    cross_fitted: Floats | None = None  # as left_out, with penalties from bags of other folds; None: as left_out

    @property
    def unseen(self) -> Floats:
        """What is predicted of bags that nothing has seen, its penalty chosen without them, (n_bags, n_problems)."""
        return self.left_out if self.cross_fitted is None else self.cross_fitted


def fit_candidate(
    space: int,
    kind: str,
    features: Floats,
    kernel: str,
    targets: Floats,
    weights: Floats,
    groups: Integers | None,
    backend: Backend,
    folds: Sequence[Booleans] = (),
) -> Candidate:
    """Fit one view on training bags.

    Parameters
    ----------
    space : int
        The number of the scaling.
    kind : str
    features : array of shape (n_bags, n_columns)
    kernel : {"laplacian", "gaussian", "linear"}
        "linear" is a weight per column.
    targets : array of shape (n_bags, n_problems)
        1 and -1.
    weights : array of shape (n_bags,)
    groups : array of shape (n_bags,), optional
    backend : Backend
    folds : sequence of arrays of shape (n_bags,)
        Which bags each tests, see `fit_ridge`.
    """
    known = targets, weights, groups
    return fit_candidates(space, kind, features, (kernel,), *known, backend, folds)[0]


def fit_candidates(
    space: int,
    kind: str,
    features: Floats,
    kernels: Sequence[str],
    targets: Floats,
    weights: Floats,
    groups: Integers | None,
    backend: Backend,
    folds: Sequence[Booleans] = (),
) -> list[Candidate]:
    """Fit a view with each of several kernels, see `fit_candidate`."""
    view = View(space, kind, *column_units(features), "", None, 1.0, np.empty((0, 0)))
    columns = view.standardised(features)
    view = view.limited(columns)
    known = targets, weights, groups
    return [fit_kernel(view._replace(kernel=kernel), columns, *known, backend, folds) for kernel in kernels]


def fit_kernel(
    view: View,
    columns: Floats,
    targets: Floats,
    weights: Floats,
    groups: Integers | None,
    backend: Backend,
    folds: Sequence[Booleans],
) -> Candidate:
    """Fit a view whose units are known to standardised training bags; its width is in units of the median distance."""
    if view.kernel == "linear":
        values = np.asarray(columns, dtype=np.float64) @ np.asarray(columns, dtype=np.float64).T
    else:
        distances = dissimilarity(columns, columns, view.kernel, backend)
        width = view.width * median_width(distances)
        view = view._replace(points=columns, width=width)
        values = np.exp(distances / np.float32(-width))
    if groups is not None:
        # Bags that are alike, left out together, leave almost nothing to divide by: rounding would be all of it.
        values = values.astype(np.float64)
    centred, centering = center_kernel(values, weights)
    fit = fit_ridge(centred, targets, weights, groups, folds)
    coefficients, constants = uncentred(fit.coefficients, fit.intercepts, weights, centering)
    if view.kernel == "linear":
        coefficients = np.asarray(columns, dtype=np.float64).T @ coefficients
    view = view._replace(coefficients=coefficients)
    return Candidate(view, fit.left_out, constants, fit.penalties, centering.trace, fit.cross_fitted)


def uncentred(dual: Floats, intercepts: Floats, weights: Floats, centering: Centering) -> tuple[Floats, Floats]:
    """Return coefficients and constants that predict from a kernel as it is, not centred: centring is linear in it."""
    total = dual.sum(axis=0)
    shares = weights / weights.sum()
    coefficients = (dual - shares[:, None] * total) / centering.trace
    return coefficients, intercepts + (centering.grand_mean * total - centering.means @ dual) / centering.trace


def column_units(features: Floats) -> tuple[Floats | None, Floats | None]:
    """Return shift and divisor of the columns of a view; None for sparse vectors, which stay as they are.

    Where all bags are alike, the divisor is a small part of what it is elsewhere: a new bag that differs there by more
    than that (and more than by rounding) is beyond the limits of the view, see `View`.
    """
    if sp.issparse(features):
        return None, None
    if is_tensor(features):
        summary = tensor_summary(features)
        mean, deviation, low, high = summary.mean, np.sqrt(summary.variance), summary.low, summary.high
    else:
        mean, deviation = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
        low, high = features.min(axis=0), features.max(axis=0)
    shift, divisor = safe_units(mean, deviation, low, high)
    alike = low == high
    usual = float(np.median(divisor[~alike])) if not alike.all() else 1.0
    return shift, np.where(alike, np.maximum(_LEAST_PART * usual, rounding_of(low, high) / _LEAST_PART), divisor)


def median_width(distances: Floats) -> float:
    """Return the median distance between two different bags, or 1 where all are alike."""
    n = len(distances)
    # Without the diagonal every pair is there twice, which leaves the median as it is.
    pairs = distances.ravel()[1:].reshape(n - 1, n + 1)[:, :-1]
    width = float(np.median(pairs)) if n > 1 else 0.0
    return width if width > 0 else 1.0


def refit_on_points(
    candidate: Candidate,
    features: Floats,
    targets: Floats,
    weights: Floats,
    rows: Integers,
    backend: Backend,
    ratio: float,
) -> tuple[View, Floats]:
    """Fit a chosen view on many bags with a few of them as points, at a cost linear in the bags.

    Parameters
    ----------
    candidate : Candidate
        The view as it was chosen on a sample of the bags.
    features : array of shape (n_bags, n_columns)
    targets, weights : arrays
    rows : array of int
        The bags that become points.
    backend : Backend
    ratio : float
        How many times the weight of the sample all bags have: penalties grow with it.

    Returns
    -------
    View, and intercepts of shape (n_problems,)
    """
    view = candidate.view
    columns = view.standardised(features)
    shares = weights / weights.sum()
    if view.points is None:
        design: Floats = np.asarray(columns, dtype=np.float64)
        penalty_matrix: Floats = np.eye(columns.shape[1])
    else:
        points = columns[rows]
        design = similarity(columns, points, view.kernel, view.width, backend)
        penalty_matrix = similarity(points, points, view.kernel, view.width, backend)
        view = view._replace(points=points)
    means, goals = shares @ design, shares @ targets
    centred = design - means
    gram = (centred * weights[:, None]).T @ centred
    product = (centred * weights[:, None]).T @ (targets - goals)
    jitter = 1e-8 * np.trace(penalty_matrix) / len(penalty_matrix) * np.eye(len(penalty_matrix))
    columns_of = [
        np.linalg.solve(gram + penalty * ratio * candidate.trace * (penalty_matrix + jitter), product[:, i])
        for i, penalty in enumerate(candidate.penalties)
    ]
    coefficients = np.column_stack(columns_of)
    return view._replace(coefficients=coefficients), goals - means @ coefficients
