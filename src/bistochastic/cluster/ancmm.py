"""ANCMM, Algorithm 2: doubly stochastic adaptive neighbors, and its rule for lambda."""

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse import csr_array, eye_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bistochastic.backends.csr import Csr
from bistochastic.candidates import distinct, fewest, of_affinities
from bistochastic.cluster.base import PAIRS, GraphClusterer, Watch, check_metric
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
from bistochastic.core.errors import InputError, check_choice, several
from bistochastic.core.protocols import Costs
from bistochastic.core.run import run
from bistochastic.graph.objective import Objective, approximation
from bistochastic.graph.simplex import (
    k_nearest,
    largest_alpha,
    reach,
    relaxed,
    without_traces,
)
from bistochastic.input import Wanted, hold
from bistochastic.neighbors import Points
from bistochastic.parameters import check_limits, checked_count, checked_positive
from bistochastic.scaling.existence import scalable, support
from bistochastic.scaling.marcus import LIMITS
from bistochastic.spectrum.ky_fan import ky_fan

NEIGHBORS = 15  # "auto"
UPDATES = ("marcus", "exact")
LAZY = "lazy"
FARTHEST = 1e12  # how far a given alpha may be from that of Eq. (19), by a factor


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
    graph, F, lam = first, None, 0.0
    while True:
        number, labels = components(graph.S)  # Theorem 3
        value = objective(graph, alpha, lam, F)
        yield Step(graph, F, lam, number, labels, value), abs(number - c)
        if F is None or number <= c:  # kept while there are too many
            F = ky_fan(graph.S, c, labels, start=F, rng=rng).F  # line 3, Eq. (11)
        lam = penalty.start if lam == 0 else penalty.after(lam, number, c)
        graph = update(costs.plus(lam, F))  # lines 4-6


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


@dataclass(frozen=True, eq=False)
class Problem:
    """What a run needs of the data.

    Attributes
    ----------
    all_costs : Costs
        At least k + 1 candidates of each point, for Eqs. (18) and (19).
    costs : Costs
        The candidates of the loop.
    k : int
        Number of neighbors.
    alpha : float or array of shape (n,)
        Weight of the squared norm.
    points : Points or None
        The points, if the data are such.
    limited : int
        How many candidates stand for all; 0 if all are there, or not wanted.
    given : Learned or None
        The first graph, if the data are a graph.
    """

    all_costs: Costs
    costs: Costs
    k: int
    alpha: Any
    points: Any = None
    limited: int = 0
    given: Learned | None = None

    @property
    def mean_alpha(self):
        """The mean of alpha over the rows."""
        return float(np.mean(on_cpu(self.alpha)))

    def weights(self, m):
        """Return the rows of the relaxed problem for costs m, Eqs. (14), (15)."""
        if np.ndim(self.alpha):
            return m.weigh(partial(_relaxed), self.alpha)
        return m.weigh(partial(_relaxed, alpha=self.alpha))

    def open_rows(self, m):
        """Count rows in which a candidate that was left out could have a weight."""
        farthest = self.costs.reduce(partial(_farthest))
        if np.ndim(self.alpha):
            limit = m.reduce(lambda rows, a: reach(rows, a[:, None]), self.alpha)
        else:
            limit = m.reduce(partial(reach, alpha=self.alpha))
        return int(np.count_nonzero(on_cpu(limit > farthest)))


class ANCMM(GraphClusterer):
    r"""Cluster by a doubly stochastic graph that falls apart into the clusters.

    Algorithm 2 of "Doubly Stochastic Adaptive Neighbors Clustering via the Marcus
    Mapping": learns a sparse, symmetric, doubly stochastic S with a small

    .. math:: \sum_{ij} \|x_i - x_j\|^2 s_{ij} + \alpha \|S\|_F^2
        \quad \text{with} \quad rank(L_S) = n - c ,

    Eq. (8), so that its connected components are the clusters (Theorem 3). No k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    n_neighbors : int or "auto", default="auto"
        Number of neighbors k of a point in the first graph; it sets alpha by Eq. (19).
        It counts the point itself if that is a neighbor. "auto" is 15, or what fewer
        points allow.
    alpha : {"mean", "row"} or float, default="mean"
        Weight of the squared norm: the mean over the rows of the largest alpha that
        gives k neighbors, Eq. (19), that of each row, or a number. It stays as the
        plain distances set it while lambda moves.
    candidates : int, "auto" or None, default="auto"
        Which points may become neighbors: that many nearest, "auto" the k nearest,
        None all, as the paper has it. Of more than 4,096 points, 4 k nearest stand for
        all; a warning says if others could have had a weight.
    penalty : float, optional
        First lambda; by default alpha.
    self_neighbor : bool or "lazy", default=True
        Whether a point is its own neighbor, so that the mapping exists (Theorem 2).
        With False, (1 / k) I is added, with a warning, where total support is lost;
        with "lazy" it is always added.
    graph_update : {"marcus", "exact"}, default="marcus"
        How a graph is made of the costs: by the relaxed problem and the mapping, or by
        the exact solution of the coupled problem, Eq. (13).
    scaling : str, default="auto"
        Method of `marcus_mapping`; "alternating" is Algorithm 1. Where a published
        method does not get there in 1,000 passes, "auto" goes on: the mapping is
        unique.
    metric : str or callable, default="euclidean"
        Distance whose square is the cost. "cosine" has cost 2 (1 - cos).
        "precomputed": X holds distances, to be squared; a sparse X lists the
        candidates of each point, as KNeighborsTransformer makes it: a stored zero is a
        duplicate, what is not stored is no candidate. "affinity": X is a graph;
        M(X) is the first graph and what the rows stay near to.
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
        The doubly stochastic graph.
    scaling_ : array of shape (n_samples,)
        The diagonal of D, Eq. (17); with ``graph_update="exact"`` the potential of
        Eq. (13).
    embedding_ : array of shape (n_samples, n_clusters)
        The F that the graph was made with, Eq. (11).
    n_components_ : int
        Number of components of the graph.
    n_clusters_ : int
        Number of clusters, those in `labels_`.
    n_neighbors_ : int or None
        The k that was used; None for affinities.
    alpha_ : array of shape (n_samples,)
        The alpha of each row.
    penalty_ : float
        The lambda that the graph was made with; 0 if the first graph was right.
    history_ : list of dict
        For each step: penalty, number and sizes of the components, the objective of
        Eq. (10) and its parts, error of the row sums, products, the epsilon of Eq. (23)
        relative to the squared norm, what was added to the diagonal, seconds.
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

    The distances are those of X as it is: scale the columns first.

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
    def paper(cls, n_clusters, n_neighbors):
        """Make the estimator that runs Algorithm 2 as the paper prints it.

        All points are candidates, alpha is the mean of Eq. (19), lambda starts at
        alpha, and the mapping is Algorithm 1.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        n_neighbors : int
            Number of neighbors, the point itself included.

        Returns
        -------
        ANCMM
            The estimator, not fitted.
        """
        return cls(
            n_clusters,
            n_neighbors=n_neighbors,
            candidates=None,
            scaling="alternating",
        )

    def approximation(self, X):
        """Measure how near the mapping comes to the exact solution, Eqs. (20)-(23).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of `fit`.

        Returns
        -------
        Approximation
            The epsilon of Eq. (23), what is left of the conditions of Karush, Kuhn and
            Tucker, and the gap to the exact solution of Eq. (13), all at `penalty_` and
            `embedding_`.
        """
        check_is_fitted(self, "labels_")
        X = self._validated(X, reset=False)
        if X.shape[0] != self.labels_.size:
            raise InputError(
                f"X has {X.shape[0]} rows, but `fit` saw {self.labels_.size}; the "
                "approximation is that of the fitted graph."
            )
        if self._by_row:
            raise InputError(
                'alpha="row" has no symmetric problem to compare with: Eq. (13) has '
                "one alpha."
            )
        problem = self._problem(X)
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
        checked_count("n_clusters", self.n_clusters)
        for name, value in (
            ("n_neighbors", self.n_neighbors),
            ("candidates", 1 if self.candidates is None else self.candidates),
        ):
            if not (isinstance(value, str) and value == "auto"):
                checked_count(name, value)
        if not (isinstance(self.alpha, str) and self.alpha in ("mean", "row")):
            checked_positive("alpha", self.alpha, '"mean", "row" or ')
        if self.penalty is not None:
            checked_positive("penalty", self.penalty, "None or ")
        loops = self.self_neighbor
        if not (isinstance(loops, bool) or (isinstance(loops, str) and loops == LAZY)):
            raise InputError(
                f"self_neighbor={loops!r}: self_neighbor must be True, False or "
                f'"{LAZY}".'
            )
        check_choice("graph_update", self.graph_update, UPDATES)
        check_choice("scaling", self.scaling, LIMITS)
        check_metric(self.metric)
        checked_count("max_iter", self.max_iter)
        check_limits(0 if self.tol is None else self.tol, None)
        if not isinstance(self.verbose, bool):
            checked_count("verbose", self.verbose, 0)
        if self.n_jobs is not None and not (
            isinstance(self.n_jobs, Integral) and self.n_jobs != 0
        ):
            raise InputError(
                f"n_jobs={self.n_jobs!r}: n_jobs must be None or a whole number other "
                "than 0; -1 means all processors."
            )
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise InputError(f"random_state: {error}.") from None
        if self.graph_update == "exact" and self._by_row:
            raise InputError(
                'graph_update="exact" solves the symmetric problem of Eq. (13), which '
                'has one alpha; alpha="row" goes with graph_update="marcus".'
            )
        if self.metric == "affinity" and self.alpha != "mean":
            raise InputError(
                f'alpha={self.alpha!r}: with metric="affinity" alpha is fixed, so that '
                "the graph itself solves Eq. (14); only lambda matters. Leave it out."
            )

    @property
    def _by_row(self):
        return isinstance(self.alpha, str) and self.alpha == "row"

    def _learn(self, X):
        n, c = X.shape[0], int(self.n_clusters)
        if c > n:
            raise InputError(
                f"n_clusters={c} is larger than the number of points, n_samples={n}."
            )
        max_iter = int(self.max_iter) if c > 1 else 1  # a penalty does not join
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
        learned = self._fitted(done.value, problem)
        learned |= {"history_": watch.history, "n_iter_": done.n_iter}
        return learned, self._remarks(done.value, watch.history, problem)

    def _problem(self, X):
        """Return what a run needs of the data."""
        loops = self.self_neighbor is True
        if self.metric == "affinity":
            return self._affinity_problem(X, loops)
        k = self._neighbors(*fewest(X, loops=loops, pairs=self.metric in PAIRS), loops)
        wanted = k if self.candidates == "auto" else self.candidates
        wanted = wanted if wanted is None else int(wanted)
        if wanted is not None and wanted < k:
            raise InputError(
                f"candidates={wanted} is less than n_neighbors={k}; every neighbor is "
                "a candidate."
            )
        found, points = self._candidates(X, k, wanted, loops)
        self._check_distinct(found.costs, loops)
        return Problem(
            all_costs=found.costs,
            costs=found.costs if wanted is None else found.costs.closest(wanted),
            k=k,
            alpha=self._alpha(found.costs, k),
            points=points,
            limited=found.limited,
        )

    def _alpha(self, costs, k):
        """Return alpha by the plain distances, Eq. (19)."""
        largest = on_cpu(costs.reduce(partial(largest_alpha, k=k)))
        proper = largest > 0  # not so among duplicates
        if not isinstance(self.alpha, str):
            return self._checked(float(self.alpha), largest)
        if not proper.any():
            if int(self.n_clusters) in (1, largest.size):
                return 1.0  # not used
            raise InputError(
                f"The {k + 1} nearest candidates of every point cost the same, as "
                "duplicates do, so that Eq. (19) gives alpha = 0. Raise "
                f"n_neighbors={k}, drop duplicates, or pass a number as alpha."
            )
        mean = float(largest[proper].mean())
        if not self._by_row:
            return mean
        return costs.vector(np.where(proper, largest, mean))

    def _checked(self, alpha, largest):
        """Return a number given for alpha if it is of any use beside Eq. (19)."""
        mean = float(largest.mean())
        if mean and not 1 / FARTHEST < alpha / mean < FARTHEST:
            raise InputError(
                f"alpha={alpha:g} is out of all proportion to the distances: Eq. (19) "
                f"gives {mean:.3g}."
            )
        return alpha

    def _lambda(self, problem):
        """Return the first lambda."""
        mean = problem.mean_alpha
        start = mean if self.penalty is None else float(self.penalty)
        if not 1 / FARTHEST**2 < start / mean < FARTHEST**2:
            raise InputError(
                f"penalty={start:g} is out of all proportion to alpha, {mean:.3g}, "
                "where lambda starts by default."
            )
        return start

    def _affinity_problem(self, X, loops):
        held = hold(X, Wanted("X"))
        ready = scalable(held.graph, "regularize")
        done = self._scale(ready.graph)
        A = ready.graph.scaled(done.value)
        entries = A.entries(0.0)
        products = ready.graph.n_products
        graph = Learned(
            A, done.value, -A.sq_norm(), done.residual, products, shift=ready.shift
        )
        costs = of_affinities(entries, loops=loops).costs
        k = max(1, round(entries.nnz / A.n))
        return Problem(costs, costs, k, 0.5, given=graph)

    def _neighbors(self, available, row, loops):
        """Return k, which needs k + 1 candidates of every point."""
        own = ", itself included" if loops else ""
        least = f"point {row} has {several(available, 'candidate')}{own}"
        k = self.n_neighbors
        if isinstance(k, str):
            k = min(NEIGHBORS, available - 1)
            if k < 1 or (k == 1 and loops and available > 2):
                raise InputError(
                    f"Too few candidates: {least}, and Eq. (19) takes one more than "
                    "there are neighbors. Add points, or entries to their rows."
                )
        elif loops and k == 1:
            raise InputError(
                "n_neighbors=1 counts the point itself and leaves it no neighbor. Pass "
                "2 or more, or self_neighbor=False."
            )
        k = int(k)
        if k >= available:
            raise InputError(
                f"n_neighbors={k} needs more than {k} candidates of every point, since "
                f"Eq. (19) looks at one more, but {least}. Lower n_neighbors, or add "
                "points."
            )
        return k

    def _check_distinct(self, costs, loops):
        twins = costs.reduce(lambda m: (m == 0).sum(axis=1)) > loops
        if int(self.n_clusters) > twins.size - np.count_nonzero(twins):
            number = distinct(costs)
            if int(self.n_clusters) > number:
                raise InputError(
                    f"n_clusters={self.n_clusters}, but X has only "
                    f"{several(number, 'distinct row')}; points at distance 0 cannot "
                    "be told apart."
                )

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
        loops = self.self_neighbor is True

        def update(m):
            if self.graph_update == "exact":
                made = coupled(m, problem.alpha, loops=loops, shift=shift, tol=self.tol)
            else:
                rows = problem.weights(m)
                made = mapped(m, rows, loop=self._loop(problem), scale=self._scale)
            if problem.limited:
                made = replace(made, open_rows=problem.open_rows(m))
            return made

        return update

    def _loop(self, problem):
        """Return the function that says what to add to the diagonal of a graph."""

        def loop(S):
            if self.self_neighbor is True:
                return 0.0
            lost = self.self_neighbor == LAZY or support(S).kind != "total"
            return 1.0 / problem.k if lost else 0.0

        return loop

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
        F, c = step.F, int(self.n_clusters)
        if F is None:
            F = ky_fan(graph.S, c, labels, rng=self._generator()).F
        if c == 1:
            labels = np.zeros_like(labels)
        ones = np.ones(labels.size)
        affine = self.metric == "affinity"
        return {
            "labels_": labels,
            "affinity_matrix_": graph.S.entries(0.0),
            "scaling_": on_cpu(graph.u),
            "embedding_": on_cpu(F),
            "n_components_": step.number,
            "n_clusters_": int(labels.max()) + 1,
            "n_neighbors_": None if affine else problem.k,
            "alpha_": on_cpu(problem.alpha) * ones,
            "penalty_": step.lam,
            "converged_": step.number == c and graph.residual <= self.tol,
            "_points": problem.points,
            "_n_others": problem.k - (self.self_neighbor is True),
        }

    def _remarks(self, step, history, problem):
        """Return the warnings that a user should read."""
        remarks = []
        if step.number != int(self.n_clusters):
            remarks.append((ConvergenceWarning, self._missed(step, history)))
        if step.graph.residual > self.tol:
            remarks.append(
                (
                    ConvergenceWarning,
                    f"The row sums of the graph are off by {step.graph.residual:.1e}, "
                    f"more than tol={self.tol:g}.",
                )
            )
        shifted = sum(record["shift"] > 0 for record in history)
        if shifted and self.self_neighbor is False:
            remarks.append(
                (
                    UserWarning,
                    f"{several(shifted, 'graph')} of {len(history)} had no total "
                    "support (Corollary 1), so that (1 / n_neighbors) I was added. "
                    "self_neighbor=True makes sure of it (Theorem 2).",
                )
            )
        worst = max(record["open_rows"] for record in history)
        if problem.limited and worst:
            remarks.append(
                (
                    UserWarning,
                    f"The {problem.limited} nearest candidates stood for all points, "
                    f"and in up to {several(worst, 'row')} of a step others could have "
                    "had a weight. candidates=m makes the table wider.",
                )
            )
        return remarks

    def _missed(self, step, history):
        """Say that the number of components is another one, and what to do."""
        c = int(self.n_clusters)
        said = (
            f"The graph has {several(step.number, 'component')}, not n_clusters={c}, "
            f"after {several(len(history), 'step')}."
        )
        numbers = [record["n_components"] for record in history]
        if numbers[0] > c and self.metric == "affinity":
            return f"{said} The graph that was given has {numbers[0]} already."
        if numbers[0] > c:
            return (
                f"{said} The first graph had {numbers[0]} already, and a penalty does "
                "not join them; more neighbors do: raise n_neighbors."
            )
        if min(numbers[1:], default=0) > c:
            return f"{said} Start with a smaller penalty, or raise max_iter."
        if max(numbers) < c:
            said = f"{said} Raise max_iter, or start with a larger penalty."
            if self.self_neighbor is not True and 2 * c > step.labels.size:
                said += (
                    " Without self_neighbor=True a component has two points or more."
                )
            return said
        return (
            f"{said} Lambda jumps over it; another n_neighbors or alpha may reach it."
        )


def _singletons(n, alpha):
    """Return the one step of a fit in which every point is a cluster of its own."""
    graph = Learned(Csr(csr_array(eye_array(n))), np.ones(n), 0.0, 0.0, 0)
    value = Objective(0.0, float(np.sum(alpha * np.ones(n))), 0.0)
    return Step(graph, np.eye(n), 0.0, n, np.arange(n), value)


def _relaxed(m, alpha):
    """Solve rows of Eq. (14); alpha is a number or one for each row."""
    return without_traces(relaxed(m, alpha[:, None] if np.ndim(alpha) else alpha))


def _farthest(m):
    xp = array_namespace(m)
    return xp.max(xp.where(xp.isfinite(m), m, -xp.ones_like(m)), axis=1)
