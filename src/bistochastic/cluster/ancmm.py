"""ANCMM, Algorithm 2: doubly stochastic adaptive neighbors, and its rule for lambda."""

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral

import numpy as np
from scipy.sparse import csr_array, eye_array
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bistochastic.backends.csr import Csr
from bistochastic.cluster.base import PAIRS, GraphClusterer, Watch, check_metric
from bistochastic.cluster.problem import Problem, of_data, of_graph
from bistochastic.cluster.remarks import remarks
from bistochastic.cluster.steps import (
    Learned,
    Step,
    coupled,
    diagonal_of,
    mapped,
    objective,
)
from bistochastic.components import components
from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError
from bistochastic.core.run import Status, run
from bistochastic.graph.objective import Objective, approximation
from bistochastic.graph.simplex import k_nearest
from bistochastic.neighbors import Points
from bistochastic.parameters import (
    Choice,
    Count,
    Fraction,
    Positive,
    check_jobs,
    check_seed,
)
from bistochastic.scaling.existence import support
from bistochastic.scaling.marcus import LIMITS
from bistochastic.spectrum.ky_fan import Embedding, ky_fan

LAZY = "lazy"
EXTREME = 1e24  # how far a given lambda may be from alpha, by a factor


def ancmm(costs, c, first, update, *, alpha, penalty, rng=None):
    """Yield the steps of Algorithm 2, one for each pass of its while loop.

    Parameters
    ----------
    costs : Costs
        Plain costs of the candidates.
    c : int
        Wanted number of components.
    first : Learned
        The first graph, line 1.
    update : callable
        Makes a graph (Learned) of costs, lines 4-6.
    alpha : float or array of shape (n,)
        Weight of the squared norm, for the objective.
    penalty : Penalty
        The rule for lambda.
    rng : numpy.random.Generator, optional
        Starts the eigensolver.

    Yields
    ------
    tuple of (Step, int)
        The step, and by how many its components differ from c.
    """
    graph, found, lam = first, None, 0.0
    while True:
        number, labels = components(graph.S)  # Theorem 3
        value = objective(graph, alpha, lam, found and found.F)
        yield Step(graph, found, lam, number, labels, value), abs(number - c)
        lam = penalty.after(lam, number, c) if found else penalty.start
        if not found or number <= c:  # kept while there are too many
            start = found and found.F
            found = ky_fan(graph.S, c, labels, start=start, rng=rng)  # line 3, Eq. (11)
        graph = update(costs.plus(lam, found.F))  # lines 4-6


@dataclass(frozen=True)
class Penalty:
    """The paper's rule for lambda: doubled or halved, by Theorem 3.

    As printed it halves lambda unless the rank is too large, hence also where it is
    right; here it rests there.

    Attributes
    ----------
    start : float
        The first lambda.
    """

    start: float

    def after(self, lam, number, c):
        """Return lambda for the next step, by the number of components."""
        if number < c:  # the rank of L is larger than n - c
            return 2.0 * lam
        return lam / 2.0 if number > c else lam


class ANCMM(GraphClusterer):
    r"""Cluster by a doubly stochastic graph that falls apart into the clusters.

    Algorithm 2 of "Doubly Stochastic Adaptive Neighbors Clustering via the Marcus
    Mapping": learns a sparse, symmetric, doubly stochastic S with a small

    .. math:: \sum_{ij} \|x_i - x_j\|^2 s_{ij} + \alpha \|S\|_F^2
        \quad \text{with} \quad rank(L_S) = n - c ,

    Eq. (8), so that its connected components are the clusters (Theorem 3). No k-means.
    A penalty lambda on the c smallest eigenvalues of the Laplacian is doubled until the
    graph falls apart, and halved where there are too many parts.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    n_neighbors : int or "auto", default="auto"
        Number of neighbors k of a point in the first graph, the point itself included
        if it counts as a neighbor. "auto" is 15, or what fewer candidates allow. Few
        neighbors make a graph that falls apart into crumbs, many one that joins
        clusters; noisy data want more.
    alpha : {"mean", "row"} or float, default="mean"
        Weight of the squared norm; the larger, the more neighbors get a weight. For
        each row Eq. (19) has the largest alpha that gives k neighbors: "mean" takes the
        mean of these, "row" lets each row have its own, so that points in sparse
        regions are not cut off. Or a number. It does not change while lambda does.
    candidates : int, "auto" or None, default="auto"
        Which points may become neighbors as lambda grows: that many nearest, the point
        itself included if it counts; "auto" the k nearest; None all, as in the paper.
        With None and more than 4,096 points, 4 k nearest stand for all, which gives the
        same graphs unless a warning says so.
    penalty : float, optional
        Lambda to start with; by default alpha, or its mean.
    self_neighbor : bool or "lazy", default=True
        Whether a point is its own neighbor. With True the Marcus mapping exists for
        sure (Theorem 2). With False, I / k is added to a graph for which it does not,
        and a warning says so (the exact update raises a SupportError); with "lazy" it
        is added to every graph.
    graph_update : {"marcus", "exact"}, default="marcus"
        How a graph is made of the costs: row by row and then mapped, Eqs. (14)-(17), or
        by the exact solution of the problem that this stands for, Eq. (13).
    scaling : {"auto", "newton", "damped", "alternating", "fixed_point"}, default="auto"
        Method of `marcus_mapping`; "alternating" is Algorithm 1 of the paper. Where a
        published method does not get there in 1,000 passes, "auto" goes on: the mapping
        is unique.
    metric : str or callable, default="euclidean"
        The distance; its square is the cost ("sqeuclidean" is the same as "euclidean").
        "cosine" has cost 2 (1 - cos). "precomputed": X holds distances, not squared; a
        sparse X lists the candidates of each point, as KNeighborsTransformer makes it:
        a stored zero is a duplicate, what is not stored is no candidate. "affinity": X
        is a graph of similarities; M(X) is the first graph and what the rows stay near
        to, and `n_neighbors` and `candidates` are not used.
    max_iter : int, default=50
        Most graphs to learn, the first one included.
    tol : float, default=1e-8
        Largest error of a row sum of the graph.
    n_jobs : int, optional
        Threads of the neighbor search.
    random_state : int, RandomState or None, default=None
        Starts the eigensolver; None is a fixed seed.
    verbose : int, default=0
        Whether to print a line for each step.

    Attributes
    ----------
    labels_ : array of int of shape (n_samples,)
        The cluster of each point, numbered by first appearance.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        The doubly stochastic graph: of all steps the first whose number of components
        is nearest to `n_clusters`.
    scaling_ : array of shape (n_samples,)
        The diagonal of D that made it doubly stochastic, Eq. (17); with
        ``graph_update="exact"`` the potential a of Eq. (13).
    embedding_ : array of shape (n_samples, n_clusters)
        The eigenvectors F that the graph was made with, Eq. (11); if it is the first
        graph, its own.
    n_components_ : int
        Number of connected components of the graph.
    n_clusters_ : int
        Number of different labels: `n_components_`, but 1 if one cluster was asked for.
    n_neighbors_ : int or None
        The k that was used; None for affinities.
    alpha_ : array of shape (n_samples,)
        The alpha of each row.
    penalty_ : float
        The lambda that the graph was made with; 0 for the first graph.
    history_ : list of dict
        A record of each step, to put into a data frame: "penalty" (lambda),
        "n_components", "sizes" of these, "objective" of Eq. (10) and its terms
        "objective_distance", "objective_norm" and "objective_penalty", "residual"
        (error of the row sums), "n_products" of the scaling, "embedding_products" and
        "embedding_converged" of the eigensolver, "epsilon" of Eq. (23) relative to the
        squared norm of the rows, "shift" (what was added to the diagonal),
        "open_rows" (rows to which a candidate that was left out could matter),
        "seconds", and "kept", whether the step is the result.
    n_iter_ : int
        Number of graphs learned, the first one included.
    converged_ : bool
        Whether the graph has `n_clusters` components and its row sums are right.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, if they are all strings.

    See Also
    --------
    marcus_mapping : The mapping alone.
    sklearn.cluster.SpectralClustering : An embedding of a fixed graph, and k-means.

    Notes
    -----
    The paper's rule for lambda may end with another number of components; a warning
    says so then.

    The distances are those of X as it is: scale the columns first. A component may be a
    single point: with the paper's rule, crumbs count as clusters.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> from bistochastic import ANCMM
    >>> X, y = load_wine(return_X_y=True)
    >>> model = ANCMM.paper(n_clusters=3, n_neighbors=30).fit(minmax_scale(X))
    >>> model.n_components_
    3
    >>> from bistochastic.metrics import clustering_accuracy
    >>> round(clustering_accuracy(y, model.labels_), 3)
    0.983
    """

    _limits = {  # noqa: RUF012
        "n_clusters": Count(1),
        "n_neighbors": Count(1, "auto"),
        "alpha": Positive("mean", "row"),
        "candidates": Count(1, "auto", None),
        "penalty": Positive(None),
        "self_neighbor": Choice(True, False, LAZY),
        "graph_update": Choice("marcus", "exact"),
        "scaling": Choice(*LIMITS),
        "metric": check_metric,
        "max_iter": Count(1),
        "tol": Fraction(),
        "n_jobs": check_jobs,
        "random_state": check_seed,
        "verbose": Count(0, True, False),
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_neighbors="auto",
        alpha="mean",
        candidates="auto",
        penalty=None,
        self_neighbor=True,
        graph_update="marcus",
        scaling="auto",
        metric="euclidean",
        max_iter=50,
        tol=1e-8,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.candidates = candidates
        self.penalty = penalty
        self.self_neighbor = self_neighbor
        self.graph_update = graph_update
        self.scaling = scaling
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_clusters, n_neighbors, **options):
        """Make the estimator that runs Algorithm 2 as the paper prints it.

        All points are candidates, alpha is the mean of Eq. (19), lambda starts at
        alpha, and the mapping is Algorithm 1. Two liberties: where Algorithm 1 takes
        more than 1,000 passes, a faster method ends its work, and of more than 4,096
        points, 4 k candidates each stand for all; neither changes the graphs, or a
        warning says so.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        n_neighbors : int
            Number of neighbors, the point itself included.
        **options : object
            Other parameters, such as `verbose` or `metric`.

        Returns
        -------
        ANCMM
            The estimator, not fitted.
        """
        printed = {"candidates": None, "scaling": "alternating"}
        return cls(n_clusters, n_neighbors=n_neighbors, **printed | options)

    def approximation(self, X):
        """Measure how near the mapping comes to the exact solution, Eqs. (20)-(23).

        Both are made of the costs at `penalty_` and `embedding_`, whichever of the two
        the fitted graph is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of `fit`.

        Returns
        -------
        Approximation
            The epsilon of Eq. (23), what is left of the conditions of Karush, Kuhn and
            Tucker, and the gap to the exact solution of Eq. (13).
        """
        check_is_fitted(self, "labels_")
        X = self._validated(X, reset=False)
        if X.shape[0] != self.labels_.size:
            raise InputError(
                f"X has {X.shape[0]} rows, but `fit` saw {self.labels_.size}; the "
                "approximation is that of the fitted graph."
            )
        if self.alpha == "row":
            raise InputError(
                'alpha="row" has no symmetric problem to compare with: Eq. (13) has '
                "one alpha."
            )
        problem = self._problem(X)
        if not np.allclose(problem.alpha, self.alpha_, rtol=1e-6, atol=0.0):
            raise InputError(
                "X is not the data of `fit`: Eq. (19) gives another alpha."
            )
        m = problem.costs.plus(self.penalty_, self.embedding_)
        rows = problem.weights(m)
        made = mapped(m, rows, loop=self._loop(problem), scale=self._scale)
        if made.shift:
            raise InputError(
                "(1 / n_neighbors) I was added to the graph, where Eq. (13) allows no "
                "weight; self_neighbor=True makes the two comparable."
            )
        return approximation(m, problem.alpha, rows, made.u, made.S)

    def _check(self):
        super()._check()
        if self.graph_update == "exact" and self.alpha == "row":
            raise InputError(
                'graph_update="exact" solves the symmetric problem of Eq. (13), which '
                'has one alpha; alpha="row" goes with graph_update="marcus".'
            )
        if self.metric == "affinity" and self.alpha != "mean":
            raise InputError(
                f'alpha={self.alpha!r}: with metric="affinity" alpha is fixed, so that '
                "the graph itself solves Eq. (14); only lambda matters. Leave it out."
            )

    def _learn(self, X):
        n, c = X.shape[0], int(self.n_clusters)
        if c > n:
            raise InputError(
                f"n_clusters={c} is larger than the number of points, n_samples={n}."
            )
        max_iter = int(self.max_iter)
        watch = Watch(self, X)
        watch.begin(max_iter)
        if n == 1:
            points = None if self.metric in PAIRS else Points.of(X, self.metric)
            problem = Problem(None, None, 1, 1.0, points)
        else:
            problem = self._problem(X)
        if c == n:
            steps = iter([(_singletons(n, problem.alpha), 0)])
        else:
            steps = ancmm(
                problem.costs,
                c,
                self._first(problem),
                self._update(problem),
                alpha=problem.alpha,
                penalty=Penalty(self._lambda(problem)),
                rng=self._generator(),
            )
        watched = watch.over(steps, lambda step: self._fitted(step, problem))
        done = run(watched, tol=0, max_iter=max_iter, patience=max_iter + 2)
        watch.end()
        step, history = done.value, watch.history
        best = int(np.argmin([abs(h["n_components"] - c) for h in history]))
        for number, record in enumerate(history):
            record["kept"] = number == best
        learned = self._fitted(step, problem)
        learned |= {"history_": history, "n_iter_": done.n_iter}
        return learned, remarks(self, step, history, problem.limited)

    def _problem(self, X):
        loops = self.self_neighbor is True
        if self.metric == "affinity":
            return of_graph(X, self._scale, loops=loops)
        return of_data(
            X,
            int(self.n_clusters),
            n_neighbors=self.n_neighbors,
            candidates=self.candidates,
            alpha=self.alpha,
            metric=self.metric,
            loops=loops,
            n_jobs=self.n_jobs,
        )

    def _lambda(self, problem):
        """Return the first lambda."""
        mean = problem.mean_alpha
        start = mean if self.penalty is None else float(self.penalty)
        if not 1 / EXTREME < start / mean < EXTREME:
            raise InputError(
                f"penalty={start:g} is out of all proportion to alpha, {mean:.3g}, "
                "where lambda starts by default."
            )
        return start

    def _first(self, problem):
        """Learn the first graph, line 1: Eq. (18), symmetrized and mapped."""
        if problem.given is not None:
            return problem.given
        m = problem.all_costs
        rows = m.weigh(partial(k_nearest, k=problem.k))
        return mapped(m, rows, loop=self._loop(problem), scale=self._scale)

    def _update(self, problem):
        """Return the function that makes a graph of costs, lines 4-6."""
        shift = 1 / problem.k if self.self_neighbor == LAZY else 0.0
        exact, loops = self.graph_update == "exact", self._all_loops

        def update(m):
            if exact:
                made = coupled(m, problem.alpha, loops=loops, shift=shift, tol=self.tol)
            else:
                rows = problem.weights(m)
                made = mapped(m, rows, loop=self._loop(problem), scale=self._scale)
            if problem.limited:
                left_out = problem.open_rows(m, made.u if exact else None)
                made = replace(made, open_rows=left_out)
            return made

        return update

    def _loop(self, problem):
        """Return the function that says what to add to the diagonal of a graph."""

        def loop(S):
            if self._all_loops:
                return 0.0
            lost = self.self_neighbor == LAZY or support(S).kind != "total"
            return 1.0 / problem.k if lost else 0.0

        return loop

    @property
    def _all_loops(self):
        """Whether every point is its own candidate; a given graph may have no loops."""
        return self.self_neighbor is True and self.metric != "affinity"

    def _scale(self, S):
        return diagonal_of(S, method=self.scaling, tol=self.tol)

    def _generator(self):
        """Return the generator that starts the eigensolver; None is a fixed seed."""
        seed = self.random_state
        if not (seed is None or isinstance(seed, Integral)):
            seed = check_random_state(seed).randint(2**31 - 1)
        return np.random.default_rng(seed or 0)

    def _fitted(self, step, problem):
        """Return the attributes of an estimator that stops with this step."""
        graph, labels = step.graph, step.labels
        found, c = step.found, int(self.n_clusters)
        if found is None:
            found = ky_fan(graph.S, c, labels, rng=self._generator())
        if c == 1:
            labels = np.zeros_like(labels)
        ones = np.ones(labels.size)
        affine = self.metric == "affinity"
        return {
            "labels_": labels,
            "affinity_matrix_": graph.S.entries(0.0),
            "scaling_": on_cpu(graph.u),
            "embedding_": on_cpu(found.F),
            "n_components_": step.number,
            "n_clusters_": int(labels.max()) + 1,
            "n_neighbors_": None if affine else problem.k,
            "alpha_": on_cpu(problem.alpha) * ones,
            "penalty_": step.lam,
            "converged_": step.number == c and graph.residual <= self.tol,
            "_points": problem.points,
            "_n_others": problem.k - (self.self_neighbor is True),
        }


def _singletons(n, alpha):
    """Return the one step of a fit in which every point is a cluster of its own."""
    graph = Learned(Csr(csr_array(eye_array(n))), np.ones(n), 0.0, 0.0, 0)
    value = Objective(0.0, float(np.sum(alpha * np.ones(n))), 0.0)
    found = Embedding(np.eye(n), np.zeros(n), Status.CONVERGED, 0)
    return Step(graph, found, 0.0, n, np.arange(n), value)
