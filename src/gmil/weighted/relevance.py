"""Further views for values: wide kernels, and kernels in which a column counts as much as it tells.

In a wide kernel a function is nearly a polynomial: it carries over to bags that are far from all others.
How much a column tells is how fast a first prediction changes along it (the diagonal of the average gradient outer
product, Radhakrishnan et al. 2024). Columns are multiplied with that, so that features without a part in the value do
not make all bags look alike. It depends on what is to be predicted: bags are left out by folds, not in closed form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gmil.engine import is_torch, resolve
from gmil.engine.resident import as_array
from gmil.weighted.model import KERNELS, Candidate, dissimilarity, fit_kernel, median_width, similarity, uncentred
from gmil.weighted.ridge import center_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats
    from gmil.weighted.fitting import Learning

_RELEVANT = {"mean": KERNELS, "moments": ("gaussian",)}
"""The views that are taken with relevant columns, and their kernels."""
_WIDE, _WIDEST = 4.0, 64.0
"""Widths of kernels on relevant and on all columns, in units of the median distance."""
_STEPS = 2
_LEAST = 1e-3
"""The least that a column counts, beside a usual one."""


class _Problem(NamedTuple):
    """What is to be predicted of bags, each a row of standardised columns."""

    columns: Floats  # (n_bags, n_columns)
    targets: Floats  # (n_bags, n_problems)
    weights: Floats  # (n_bags,)
    backend: Backend

    def some(self, rows: Booleans) -> _Problem:
        return self._replace(columns=self.columns[rows], targets=self.targets[rows], weights=self.weights[rows])

    def times(self, factors: Floats) -> _Problem:
        return self._replace(columns=(self.columns * factors).astype(np.float32))


class _Fit(NamedTuple):
    """A kernel ridge regression with penalties that are known."""

    kernel: str
    width: float
    values: Floats  # (n_bags, n_bags): the kernel
    coefficients: Floats  # (n_bags, n_problems)
    constants: Floats  # (n_problems,)

    @classmethod
    def of(cls, problem: _Problem, kernel: str, width: float, penalties: Floats) -> _Fit:
        """Fit to bags; the width is in units of the median distance, penalties are per bag."""
        distances = dissimilarity(problem.columns, problem.columns, kernel, problem.backend)
        width *= median_width(distances)
        values = np.exp(distances / np.float32(-width))
        centred, centering = center_kernel(values, problem.weights)
        goals = problem.weights @ problem.targets / problem.weights.sum()
        ridge = np.outer(penalties, problem.weights.sum() / problem.weights).astype(values.dtype)
        dual = [
            cho_solve(cho_factor(centred + np.diag(own), overwrite_a=True), column)
            for own, column in zip(ridge, (problem.targets - goals).T, strict=True)
        ]
        return cls(kernel, width, values, *uncentred(np.column_stack(dual), goals, problem.weights, centering))

    def predict(self, problem: _Problem, new: _Problem) -> Floats:
        """Return predictions of new bags from those that it was fitted to, (n_new, n_problems)."""
        near = similarity(new.columns, problem.columns, self.kernel, self.width, problem.backend)
        return np.asarray(near @ self.coefficients + self.constants)

    def slopes(self, problem: _Problem) -> Floats:
        """Return the root mean square of the slopes along columns, over bags and problems; of a Gaussian kernel."""
        columns, total = problem.columns, np.zeros(problem.columns.shape[1])
        for own in self.coefficients.T.astype(np.float32):
            slopes = self.values @ (own[:, None] * columns) - columns * (self.values @ own)[:, None]
            total += np.square(slopes).mean(axis=0)
        return np.asarray(np.sqrt(total))


def further_views(found: Sequence[Candidate], learning: Learning, folds: Sequence[Booleans]) -> list[Candidate]:
    """Return a wide view of means, and relevant ones of means and deviations, where these are among the views.

    Parameters
    ----------
    found : sequence of Candidate
        Views of training bags.
    learning : Learning
    folds : sequence of arrays of shape (n_bags,)
        Which bags each tests; relevance is found on the others. Without any there are no relevant views.
    """
    bases: dict[str, Candidate] = {}
    for fit in found:
        if fit.view.kernel == "gaussian" and fit.view.kind in _RELEVANT and fit.view.shift is not None:
            bases.setdefault(fit.view.kind, fit)  # under the first scaling
    return [view for base in bases.values() for view in _further(base, learning, folds)]


def _further(base: Candidate, learning: Learning, folds: Sequence[Booleans]) -> list[Candidate]:
    """Return wide and relevant views from one with a Gaussian kernel."""
    columns = np.asarray(as_array(cast("Floats", base.view.points)))
    # Products and decompositions of a few hundred bags, one after the other: on the host, wherever the others ran.
    backend = resolve("auto" if is_torch(learning.backend.name) else learning.backend.name, 1)
    problem = _Problem(columns, learning.goals, learning.weights, backend)
    known = learning.goals, learning.weights, learning.groups, backend, folds
    wide = base.view._replace(width=_WIDEST)
    found = [fit_kernel(wide, columns, *known)] if base.view.kind == "mean" else []
    if not folds:
        return found
    penalties = base.penalties / learning.weights.sum()
    factors, others = _relevance(problem, penalties), [_relevance(problem.some(~test), penalties) for test in folds]
    own = problem.times(factors).columns
    view = base.view._replace(divisor=cast("Floats", base.view.divisor) / factors, width=_WIDE).limited(own)
    for kernel in _RELEVANT[base.view.kind]:
        fit = fit_kernel(view._replace(kernel=kernel), own, *known)
        left_out = fit.left_out.copy()
        for test, by in zip(folds, others, strict=True):
            left_out[test] = _without(problem.times(by), test, fit)
        found.append(fit._replace(left_out=left_out, cross_fitted=None))
    return found


def _without(problem: _Problem, test: Booleans, candidate: Candidate) -> Floats:
    """Return predictions of the bags of a fold by a fit to the others, with the penalties of all."""
    rest = problem.some(~test)
    fit = _Fit.of(rest, candidate.view.kernel, _WIDE, candidate.penalties / problem.weights.sum())
    return fit.predict(rest, problem.some(test))


def _relevance(problem: _Problem, penalties: Floats) -> Floats:
    """Return what to multiply columns with, (n_columns,), one in the root mean square."""
    factors = np.ones(problem.columns.shape[1])
    for _ in range(_STEPS):
        own = problem.times(factors)
        factors = factors * _Fit.of(own, "gaussian", 1.0, penalties).slopes(own)
        size = float(np.sqrt(np.mean(factors**2)))
        if not size > 0:
            return np.ones_like(factors)
        factors = np.maximum(factors / size, _LEAST)
    return factors
