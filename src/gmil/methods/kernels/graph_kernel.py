"""miGraph and MIGraph: support vector machines on kernels between bags that are read as graphs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gmil.base import register, weighted_fit
from gmil.engine import resolve
from gmil.engine.rbf import Points, own_rbf_sums, rbf_expansion
from gmil.io.model_files.schema import Array, Count, Kind, Number, OrMissing, Rows
from gmil.methods.kernels.bag_kernels import kernel_width
from gmil.methods.kernels.graph_training import (
    all_nodes,
    clique_nodes,
    clique_weights_without,
    edges_without,
    graph_edges,
    graph_kernel,
    lengths,
    no_edges,
    within_bags,
)
from gmil.methods.shared.columns import as_double
from gmil.methods.shared.scaled import ScaledClassifier
from gmil.methods.shared.sparse_parts import from_parts, to_parts
from gmil.methods.shared.tuning import WIDTHS, KernelSetting, Tuning, kernel_settings
from gmil.methods.svm.gram import Gram
from gmil.methods.svm.kernels import rows_of
from gmil.parameters import AT_LEAST_ONE, PARAMETERS, parameter, parameters
from gmil.witnesses.effects import spans_of_several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gmil.bags import Bags
    from gmil.base import Training
    from gmil.engine import Backend
    from gmil.engine.arrays import Booleans, Floats, Instances, Integers

_log = logging.getLogger(__name__)


@register(method="mi-graph", variants={"mi-graph-explicit": {"graphs": "explicit"}})
@parameters
class GraphKernelSVM(ScaledClassifier):
    """miGraph and MIGraph: an SVM on a graph kernel between bags (Zhou, Sun & Li).

    Two instances of a bag are neighbours where they are nearer than the mean of all its pairs. miGraph
    (``graphs="implicit"``) sums an RBF kernel over the pairs of instances of two bags, where each instance weighs one
    over its number of neighbours, so that a crowd of similar instances counts once. MIGraph (``graphs="explicit"``)
    makes neighbours the edges of a graph, and adds an RBF kernel over the pairs of edges, each described by the degrees
    of its ends and its share in their weight, to that over the pairs of instances. Kernels are normalised, to one for a
    bag with itself. On the command line they are ``mi-graph`` and ``mi-graph-explicit``.

    Parameters
    ----------
    graphs : {"implicit", "explicit"}, default="implicit"
        miGraph or MIGraph.
    C : float, default=10.0
        What a unit of slack costs.
    gamma : float or "median", default="median"
        The RBF kernel between instances is exp(-gamma d^2); "median" is one over the median squared distance between
        training instances.
    edge_gamma : float or "median", default="median"
        The same between edges, with ``graphs="explicit"``.
    max_edges : int or None, default=200
        Edges of a bag at most, with ``graphs="explicit"``. Of more, so many are taken evenly along the edges in
        order of length, each with the weight that makes up for those left out; ``n_thinned_bags_`` and the log tell
        so. A bag of 1000 instances has a quarter of a million edges, and every edge meets every other. None: no bound.
    normalize : {"each", "sum"}, default="each"
        With ``graphs="explicit"``: "each" normalises the kernel over instances and that over edges before it adds
        them; "sum" adds them as they are, as printed, and edges, which grow as the square of the instances, drown the
        instances of large bags. It was chosen knowing results on Musk1, Musk2 and Tiger.
    tune : bool, default=False
        Choose C from 1, 10, 100 and gamma from 0.3, 1, 3 times ``gamma`` by accuracy on five folds of
        the training bags, drawn twice.
    random_state : int, RandomState instance or None, default=None
        Seed of the instances that the median width is estimated on, and of the folds.

    Attributes
    ----------
    support_instances_ : array of shape (n_instances_of_support_bags, n_features)
        The instances of the bags that the decision needs, scaled; sparse ones as a dict of arrays.
    dual_coef_ : array of shape (n_instances_of_support_bags,)
        Their coefficients: those of their bag, times their weight in it.
    support_edges_ : array of shape (n_edges_of_support_bags, 4)
    edge_coef_ : array of shape (n_edges_of_support_bags,)
        The same for edges; empty with ``graphs="implicit"``.
    intercept_ : float
    gamma_, edge_gamma_, C_ : float
        The values in use.
    n_thinned_bags_ : int
        Training bags with more than ``max_edges`` edges.

    Notes
    -----
    Training costs O(N^2 d) for N instances, and with ``graphs="explicit"`` as much again for edges, at most
    ``max_edges`` for every bag. No matrix of all pairs of instances is held.

    References
    ----------
    Zhou, Z.-H., Sun, Y.-Y. and Li, Y.-F., "Multi-Instance Learning by Treating Instances As Non-I.I.D. Samples",
    ICML 2009.

    Examples
    --------
    >>> from gmil import GraphKernelSVM, make_bags
    >>> bags, y = make_bags(60, separation=8, random_state=0, return_X_y=True)
    >>> model = GraphKernelSVM().fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:]) > 0.9
    True
    """

    graphs: str = parameter(default="implicit", rules=[{"implicit", "explicit"}], kw_only=False)
    C: float = 10.0
    gamma: float | str = "median"
    edge_gamma: float | str = parameter(default="median", rules=PARAMETERS["gamma"])
    max_edges: int | None = parameter(default=200, rules=[AT_LEAST_ONE, None])
    normalize: str = parameter(default="each", rules=[{"each", "sum"}])
    tune: bool = False
    n_jobs: int | None = None
    random_state: Any = None

    _fitted_attributes: ClassVar[dict[str, Kind]] = {
        "support_instances_": Rows("S", "d"),
        "dual_coef_": Array("S"),
        "support_edges_": Rows("E", 4),
        "edge_coef_": Array("E"),
        "gamma_": Number(at_least=0),
        "edge_gamma_": Number(at_least=0),
        "intercept_": Number(),
        "n_thinned_bags_": Count(),
        "C_": OrMissing(Number(above=0)),
    }

    _two_classes = True
    _kept_parameters = ("graphs", "max_edges", "normalize")

    fit = weighted_fit

    def _learn(self, training: Training) -> None:
        tuning = Tuning.of(training, self.tune, repeats=2)
        bags, backend, generator = training.bags, training.backend, training.generator
        nodes, edges, self.n_thinned_bags_ = self._graphs(as_double(self._fit_scaled(bags)), bags.offsets, backend)
        of_nodes, of_edges = (np.repeat(training.weights, np.diff(points.offsets)) for points in (nodes, edges))
        gamma = kernel_width(self.gamma, nodes.features, backend, generator, of_nodes)
        self.edge_gamma_ = kernel_width(self.edge_gamma, edges.features, backend, generator, of_edges)
        if self.n_thinned_bags_:
            _log.info(
                "%d of %d bags have more edges than max_edges=%s; so many were taken evenly along them.",
                self.n_thinned_bags_,
                len(bags),
                self.max_edges,
            )
        gammas = [gamma * width for width in WIDTHS] if tuning.folds else [gamma]
        node_sums = dict(zip(gammas, backend.rbf_sums(nodes, nodes, gammas), strict=True))
        edge_sums = backend.rbf_sums(edges, edges, [self.edge_gamma_])[0]
        kernels = {each: graph_kernel(sums, edge_sums, self.normalize) for each, sums in node_sums.items()}

        def decide(setting: KernelSetting, test: Booleans) -> Floats:
            known = Gram(kernels[setting.gamma], np.flatnonzero(~test))
            found = known.solve(training.positive[~test], setting.C * training.weights[~test], backend)
            return found.products[test] + found.intercept

        setting = tuning.choose(kernel_settings(gamma), KernelSetting(gamma, self.C), decide)
        self.gamma_, self.C_ = setting.gamma, setting.C
        found = Gram(kernels[self.gamma_]).solve(training.positive, self.C_ * training.weights, backend)
        by_bag, self.intercept_ = found.dual, found.intercept
        by_nodes, by_edges = lengths(np.diag(node_sums[self.gamma_]), np.diag(edge_sums), self.normalize)
        self.support_instances_, self.dual_coef_ = _support(nodes, by_bag / by_nodes)
        self.support_edges_, self.edge_coef_ = _support(edges, by_bag / by_edges)

    def _graphs(self, instances: Instances, offsets: Integers, backend: Backend) -> tuple[Points, Points, int]:
        """Return the nodes and the edges of bags, and how many bags have more edges than were taken."""
        if self.graphs_ == "explicit":
            edges, n_thinned = graph_edges(within_bags(instances, offsets, backend), self.max_edges_)
            return all_nodes(instances, offsets), edges, n_thinned
        return clique_nodes(instances, offsets, backend), no_edges(len(offsets) - 1), 0

    def _decide(self, X: Any) -> Floats:
        bags, instances = self._new_scaled(X)
        backend = resolve("auto", self.n_jobs)
        nodes, edges, _ = self._graphs(as_double(instances), bags.offsets, backend)
        node_sums = rbf_expansion(nodes, from_parts(self.support_instances_), self.dual_coef_, self.gamma_, backend)
        return self._decide_sums(node_sums, own_rbf_sums(nodes, self.gamma_, backend), edges, backend)

    def _decide_sums(self, node_sums: Floats, own_nodes: Floats, edges: Points, backend: Backend) -> Floats:
        """Return decisions, given sums over the nodes of bags, with support and with themselves, and their edges."""
        edge_sums = rbf_expansion(edges, from_parts(self.support_edges_), self.edge_coef_, self.edge_gamma_, backend)
        own_edges = own_rbf_sums(edges, self.edge_gamma_, backend)
        by_nodes, by_edges = lengths(own_nodes, own_edges, self.normalize_)
        return np.asarray(node_sums / by_nodes + edge_sums / by_edges + self.intercept_)

    def _decide_without(self, bags: Bags) -> Iterator[tuple[slice, Floats]]:
        backend = resolve("auto", self.n_jobs)
        for rows in spans_of_several(bags):
            yield rows, self._decide_graph_without(as_double(self._scaled(bags.instances[rows])), backend)

    def _decide_graph_without(self, X: Instances, backend: Backend) -> Floats:
        """Return decisions about one scaled bag without each of its instances; kernel values are computed once."""
        size = X.shape[0]
        (apart,) = within_bags(X, np.array([0, size]), backend)
        is_explicit = self.graphs_ == "explicit"
        weights = 1 - np.eye(size) if is_explicit else clique_weights_without(apart)
        edges = edges_without(apart, self.max_edges_) if is_explicit else no_edges(size)
        each = all_nodes(X, np.arange(size + 1))
        values = rbf_expansion(each, from_parts(self.support_instances_), self.dual_coef_, self.gamma_, backend)
        own = np.einsum("ij,ij->i", weights @ np.exp(-self.gamma_ * apart**2), weights)
        return self._decide_sums(weights @ values, own, edges, backend)

    def _decision_of_nothing(self) -> float:
        return self.intercept_


def _support(points: Points, by_bag: Floats) -> tuple[Any, Floats]:
    """Return the points of the bags that the decision needs, and their coefficients."""
    rows = rows_of(points.offsets, np.flatnonzero(by_bag))
    return to_parts(points.features[rows]), (np.repeat(by_bag, np.diff(points.offsets)) * points.weights)[rows]
