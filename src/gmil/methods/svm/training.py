"""Training of mi-SVM and MI-SVM: a machine, then the assignment that suits it best, until nothing changes.

Both steps can only lower the objective. Rows are arranged as `gmil.methods.svm.kernels.Arrangement` says: those of
positive bags first, cut by ``offsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from gmil.methods.svm.kernels import Machine, Plane, first_maxima, hinge, svm_objective

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers
    from gmil.engine.margins import Margins
    from gmil.methods.svm.gram import Gram


class Assignments:
    """The assignments met so far: it tells when to stop, and why."""

    def __init__(self, first: Any) -> None:
        self._last = first.tobytes()
        self._seen = {self._last}

    def stop_reason(self, assignment: Any) -> str | None:
        """Return "converged" for the last assignment once more, "cycle" for an older one, None for a new one."""
        key = assignment.tobytes()
        if key == self._last:
            return "converged"
        if key in self._seen:
            return "cycle"
        self._last = key
        self._seen.add(key)
        return None


# -------------------------------------------------------------------------------- mi-SVM


def train_labels(gram: Gram, offsets: Integers, costs: Floats, max_iter: int, backend: Backend) -> Machine:
    """Train mi-SVM: every instance of a positive bag takes the label that the machine gives it.

    Parameters
    ----------
    gram : Gram
        Of n_rows rows.
    offsets : (n_positive_bags + 1,)
    costs : (n_rows,)
        What a unit of slack of every instance costs.
    max_iter : int
    backend : Backend
    """
    labels = np.arange(len(gram)) < offsets[-1]
    met, objectives, reason = Assignments(labels), [], "iterations"
    start: Margins | None = None
    for _ in range(max_iter):
        start = found = gram.solve(labels, costs, backend, start)
        dual, values = found.dual[gram.rows], found.products[gram.rows] + found.intercept
        objectives.append(svm_objective(float(found.dual @ found.products), values, labels, costs))
        labels = relabel(values, offsets, backend)
        stop = met.stop_reason(labels)
        if stop is not None:
            reason = stop
            break
    return Machine(dual, found.intercept, np.array(objectives), reason)


def relabel(values: Floats, offsets: Integers, backend: Backend) -> Booleans:
    """Return which rows are positive: by the sign of f, and the best of a positive bag that has none.

    Under the rule that every positive bag has a positive instance, no other labels have less slack.
    """
    labels = values > 0
    labels[offsets[-1] :] = False
    labels[first_maxima(values[: offsets[-1]], offsets, backend)] = True
    return labels


# -------------------------------------------------------------------------------- MI-SVM


def witness_costs(bag_weights: Floats, negative_counts: Floats, C: float, balance: bool) -> Floats:
    """Return the cost of slack, of witnesses first; balanced, all negative instances cost what all witnesses cost.

    ``bag_weights`` says how often each positive bag counts, ``negative_counts`` how many negative instances each row
    stands for, so that a sample costs what all do.
    """
    each = C * bag_weights.sum() / negative_counts.sum() if balance else C
    return np.concatenate([C * bag_weights, each * negative_counts])


def train_witnesses(gram: Gram, offsets: Integers, costs: Floats, max_iter: int, backend: Backend) -> Machine:
    """Train MI-SVM: one witness represents a positive bag, at first the mean of its images under the kernel.

    Parameters
    ----------
    gram : Gram
        Of n_rows rows.
    offsets : (n_positive_bags + 1,)
    costs : (n_positive_bags + n_negative_rows,)
        As `witness_costs` returns them.
    max_iter : int
    backend : Backend
    """
    n_bags, n_inside, n_rows = len(offsets) - 1, int(offsets[-1]), len(gram)
    by_witness, by_negative = np.split(costs, [n_bags])
    means = bag_means(offsets, n_rows)
    gram = gram.with_mixtures(means)
    witnesses: Integers = np.arange(n_rows, n_rows + n_bags)
    met, objectives, reason = Assignments(witnesses), [], "iterations"
    start: Margins | None = None
    for _ in range(max_iter):
        placed, is_witness = np.zeros(len(gram)), np.zeros(len(gram), dtype=bool)
        placed[n_inside:n_rows], placed[witnesses], is_witness[witnesses] = by_negative, by_witness, True
        start = found = gram.solve(is_witness, placed, backend, start)
        dual, products = found.dual, found.products  # the matrix has no other rows
        objectives.append(svm_objective(float(dual @ products), products + found.intercept, is_witness, placed))
        witnesses = first_maxima(products[:n_inside], offsets, backend)
        stop = met.stop_reason(witnesses)
        if stop is not None:
            reason = stop
            break
    return Machine(dual[:n_rows] + means.T @ dual[n_rows:], found.intercept, np.array(objectives), reason)


def bag_means(offsets: Integers, n_rows: int) -> Any:
    """Return the sparse matrix that averages the rows of every bag, (n_bags, n_rows)."""
    sizes = np.diff(offsets)
    entries = np.repeat(1 / sizes, sizes)
    return sp.csr_array((entries, np.arange(offsets[-1]), offsets), shape=(len(sizes), n_rows))


def one_of_each(rows: Integers, n_rows: int) -> Any:
    """Return the sparse matrix that picks one row for every bag, (n_bags, n_rows)."""
    return sp.csr_array((np.ones(len(rows)), rows, np.arange(len(rows) + 1)), shape=(len(rows), n_rows))


def train_linear_witnesses(
    candidates: Instances,
    offsets: Integers,
    negatives: Instances,
    costs: Floats,
    max_iter: int,
    backend: Backend,
) -> Plane:
    """Train linear MI-SVM with squared slacks and no Gram matrix.

    Parameters
    ----------
    candidates : (n_candidates, n_features)
        The instances of positive bags.
    offsets : (n_positive_bags + 1,)
    negatives : (n_negatives, n_features)
    costs, max_iter, backend
        As in `train_witnesses`.
    """
    n_bags = len(offsets) - 1
    is_witness = np.arange(len(costs)) < n_bags
    rows = _stack(bag_means(offsets, int(offsets[-1])) @ candidates, negatives)
    met, objectives, reason = Assignments(np.empty(0)), [], "iterations"
    for _ in range(max_iter):
        found = LinearSVC(C=1.0, dual=False, tol=1e-5).fit(rows, is_witness, sample_weight=costs)
        weights, intercept = found.coef_[0], float(found.intercept_[0])
        objectives.append(_squared_objective(weights, intercept, rows, is_witness, costs))
        # In the type of the candidates, so that no second copy of them is made.
        chosen = first_maxima(np.asarray(candidates @ weights.astype(candidates.dtype)), offsets, backend)
        stop = met.stop_reason(chosen)
        if stop is not None:
            reason = stop
            break
        rows = _replace_witnesses(rows, candidates[chosen])
    return Plane(weights, intercept, np.array(objectives), reason)


def _stack(witnesses: Any, negatives: Instances) -> Any:
    if sp.issparse(negatives):
        rows = sp.csr_array(sp.vstack([witnesses, negatives], format="csr"), dtype=np.float64)
        # liblinear takes no longer indices, which mixing rows leaves behind.
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        return rows
    return np.concatenate([witnesses, negatives], dtype=np.float64)


def _replace_witnesses(rows: Any, witnesses: Any) -> Any:
    """Put new witnesses first; a dense matrix, which may be large, is written in place."""
    n_bags = witnesses.shape[0]
    if sp.issparse(rows):
        return _stack(witnesses, rows[n_bags:])
    rows[:n_bags] = witnesses
    return rows


def thinned_rows(
    offsets: Integers, positive: Booleans, max_negatives: int | None, generator: np.random.Generator
) -> Integers | None:
    """Return the rows to train on, ascending: all of positive bags, ``max_negatives`` drawn ones of negative bags.

    Every negative bag keeps one row at least. None: there are not more than that, and all rows are used.
    """
    starts, sizes = offsets[:-1], np.diff(offsets)
    if max_negatives is None or sizes[~positive].sum() <= max_negatives:
        return None
    in_positive = np.repeat(positive, sizes)
    one_each = (starts + generator.integers(sizes))[~positive]
    others = np.setdiff1d(np.flatnonzero(~in_positive), one_each)
    drawn = generator.choice(others, max(0, max_negatives - len(one_each)), replace=False)
    return np.sort(np.concatenate([np.flatnonzero(in_positive), one_each, drawn]))


def _squared_objective(weights: Floats, intercept: float, rows: Any, positive: Booleans, costs: Floats) -> float:
    """Return what liblinear minimises: the intercept is a weight like the others."""
    values = rows @ weights + intercept
    slacks = hinge(np.where(positive, values, -values))
    return float((weights @ weights + intercept**2) / 2 + costs @ slacks**2)
