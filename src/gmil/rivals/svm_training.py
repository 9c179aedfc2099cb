"""Training of mi-SVM and MI-SVM: a machine, then the assignment that suits it best, until nothing changes.

Both steps can only lower the objective. Rows are arranged as `gmil.rivals.svm_kernels.Arrangement` says: those of
positive bags first, cut by ``offsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from gmil.rivals.svm_kernels import Machine, first_maxima, hinge, solve_svm, svm_objective

if TYPE_CHECKING:
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers


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


def train_labels(gram: Floats, offsets: Integers, C: float, max_iter: int, backend: Backend) -> Machine:
    """Train mi-SVM: every instance of a positive bag takes the label that the machine gives it.

    Parameters
    ----------
    gram : (n_rows, n_rows)
    offsets : (n_positive_bags + 1,)
    C : float
        What a unit of slack costs, of every instance alike.
    max_iter : int
    backend : Backend
    """
    costs = np.full(len(gram), C)
    labels = np.arange(len(gram)) < offsets[-1]
    met, objectives, reason = Assignments(labels), [], "iterations"
    for _ in range(max_iter):
        dual, intercept = solve_svm(gram, labels, costs)
        products = gram @ dual
        objectives.append(svm_objective(float(dual @ products), products + intercept, labels, costs))
        labels = relabel(products + intercept, offsets, backend)
        stop = met.stop_reason(labels)
        if stop is not None:
            reason = stop
            break
    return Machine(dual, intercept, np.array(objectives), reason)


def relabel(values: Floats, offsets: Integers, backend: Backend) -> Booleans:
    """Return which rows are positive: by the sign of f, and the best of a positive bag that has none.

    Under the rule that every positive bag has a positive instance, no other labels have less slack.
    """
    labels = values > 0
    labels[offsets[-1] :] = False
    labels[first_maxima(values[: offsets[-1]], offsets, backend)] = True
    return labels


# -------------------------------------------------------------------------------- MI-SVM


def witness_costs(n_positive: int, n_negative: int, C: float, balance: bool) -> Floats:
    """Return the cost of slack, of witnesses first; balanced, all negative instances cost what all witnesses cost."""
    each = C * n_positive / n_negative if balance else C
    return np.concatenate([np.full(n_positive, C), np.full(n_negative, each)])


def train_witnesses(
    gram: Floats, offsets: Integers, C: float, max_iter: int, balance: bool, backend: Backend
) -> Machine:
    """Train MI-SVM: one witness speaks for a positive bag, at first the mean of its images under the kernel.

    Parameters
    ----------
    gram : (n_rows, n_rows)
    offsets : (n_positive_bags + 1,)
    C : float
    max_iter : int
    balance : bool
    backend : Backend
    """
    n_bags, first_negative = len(offsets) - 1, int(offsets[-1])
    costs = witness_costs(n_bags, len(gram) - first_negative, C, balance)
    is_witness = np.arange(len(costs)) < n_bags
    mixture = bag_means(offsets, len(gram))
    system = np.empty((len(costs), len(costs)))
    system[n_bags:, n_bags:] = gram[first_negative:, first_negative:]
    met, objectives, reason = Assignments(np.empty(0)), [], "iterations"
    for _ in range(max_iter):
        _set_witnesses(system, mixture @ gram, mixture, first_negative)
        weights, intercept = solve_svm(system, is_witness, costs)
        products = system @ weights
        objectives.append(svm_objective(float(weights @ products), products + intercept, is_witness, costs))
        dual = mixture.T @ weights[:n_bags]
        dual[first_negative:] += weights[n_bags:]
        witnesses = first_maxima(gram[:first_negative] @ dual, offsets, backend)
        stop = met.stop_reason(witnesses)
        if stop is not None:
            reason = stop
            break
        mixture = one_of_each(witnesses, len(gram))
    return Machine(dual, intercept, np.array(objectives), reason)


def _set_witnesses(system: Floats, rows: Floats, mixture: Any, first_negative: int) -> None:
    """Write the kernel values of the witnesses, mixtures of rows of the Gram matrix, into the machine's matrix."""
    n_bags = len(rows)
    system[:n_bags, :n_bags] = (mixture @ rows.T).T
    system[:n_bags, n_bags:] = rows[:, first_negative:]
    system[n_bags:, :n_bags] = rows[:, first_negative:].T


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
    C: float,
    max_iter: int,
    balance: bool,
    backend: Backend,
) -> tuple[Floats, Machine]:
    """Train linear MI-SVM with squared slacks and no Gram matrix; return the weights of f and the machine.

    Parameters
    ----------
    candidates : (n_candidates, n_features)
        The instances of positive bags.
    offsets : (n_positive_bags + 1,)
    negatives : (n_negatives, n_features)
    C, max_iter, balance, backend
        As in `train_witnesses`.
    """
    n_bags = len(offsets) - 1
    costs = witness_costs(n_bags, negatives.shape[0], C, balance)
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
    return weights, Machine(np.ones(1), intercept, np.array(objectives), reason)


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
