"""CLR: the constrained Laplacian rank (Nie, Wang, Jordan, Huang 2016)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse import csr_array, diags_array

from bistochastic.cluster.candidates import ALL
from bistochastic.cluster.graphs import unmapped
from bistochastic.cluster.n_clusters import guessed
from bistochastic.cluster.problem import Problem, of_data
from bistochastic.cluster.rank_constrained import RankConstrained
from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError
from bistochastic.core.parameters import (
    Choice,
    Count,
    Positive,
    check_device,
    check_jobs,
    check_metric,
    check_seed,
)
from bistochastic.core.protocols import Place
from bistochastic.graph.simplex import first_weights, weighted_simplex, without_traces
from bistochastic.places.given_pairs import of_affinities
from bistochastic.places.tables import DenseCosts

UNUSUAL = 10  # mean row sums beyond it are said
TINY = 2.0**-52  # keeps the weights of L1 finite


class CLR(RankConstrained):
    r"""Cluster by the nearest graph that falls apart into the clusters.

    Minimizes over rows that sum to one, with the penalty of the rank constraint,

    .. math:: \|S - A\|_F^2 + 2 \lambda \, Tr(F^T L_S F)
        \quad \text{or} \quad \|S - A\|_1 + 2 \lambda \, Tr(F^T L_S F)

    for a given graph A, or one made of points, where L is the Laplacian of (S + S') /
    2; its connected components are the clusters.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters c. "auto" guesses it by the gaps between the eigenvalues of
        the Laplacian of A, as the published code does.
    n_neighbors : int, default=5
        Number of neighbors k in the graph that is made of points, the point itself left
        out; row by row as in Eq. (18).
    norm : {"l2", "l1"}, default="l2"
        How the distance to A is measured. "l1" is solved by reweighted squares, once in
        each step.
    candidates : {"local", "global"}, default="local"
        Which entries may become positive: those of A, or all.
    penalty : float, default=0.1
        Lambda to start with. It supposes that rows of A sum to about one.
    strict : bool, default=False
        Whether a graph with too many components is an error, as in the published code.
    metric : str or callable, default="euclidean"
        The distance, as `ANCMM` takes it. "affinity": X is the graph A, row by row, and
        need not be symmetric; its diagonal is left out, and a point without any other
        entry keeps its weight for itself.
    max_iter : int, default=31
        Most graphs to learn, A included: 30 updates, as published.
    n_jobs : int, optional
        Threads of the neighbor search.
    random_state : int, RandomState or None, default=None
        Starts the eigensolver; None is a fixed seed.
    device : str or torch.device, optional
        Where to run, as `ANCMM` takes it; by default where X lies.
    verbose : int, default=0
        Whether to print a line for each step.

    Attributes
    ----------
    labels_ : array of int of shape (n_samples,)
        The cluster of each point, numbered by first appearance.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        The graph (S + S') / 2; its rows need not sum to one. If A has `n_clusters`
        components already, (A + A') / 2.
    embedding_ : array of shape (n_samples, n_clusters)
        The eigenvectors F that the graph was made with.
    n_components_ : int
        Number of connected components of the graph.
    n_clusters_ : int
        Number of different labels.
    n_neighbors_ : int
        The k that was used; of a given graph the mean number of entries in a row.
    penalty_ : float
        The lambda that the graph was made with; 0 for the first graph.
    history_ : list of dict
        A record of each step, as `ANCMM` keeps it; "objective_distance" and
        "objective_norm" add up to the distance to A.
    n_iter_ : int
        Number of graphs, A included.
    converged_ : bool
        Whether the graph has `n_clusters` components.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if they are all strings.

    See Also
    --------
    ANCMM : With ``metric="affinity"``, the same for a doubly stochastic graph.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from bistochastic import CLR
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> model = CLR(n_clusters=2, n_neighbors=10).fit(X)
    >>> bool((model.labels_ == model.labels_[0]).sum() == 100)
    True
    """

    _limits = {  # noqa: RUF012
        "n_clusters": Count(1, "auto"),
        "n_neighbors": Count(1),
        "norm": Choice("l2", "l1"),
        "candidates": Choice("local", "global"),
        "penalty": Positive(),
        "strict": Choice(True, False),
        "metric": check_metric,
        "max_iter": Count(1),
        "n_jobs": check_jobs,
        "random_state": check_seed,
        "device": check_device,
        "verbose": Count(0, True, False),
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        n_neighbors: int = 5,
        norm: str = "l2",
        candidates: str = "local",
        penalty: float = 0.1,
        strict: bool = False,
        metric: str | Callable[..., float] = "euclidean",
        max_iter: int = 31,
        n_jobs: int | None = None,
        random_state: Any = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.norm = norm
        self.candidates = candidates
        self.penalty = penalty
        self.strict = strict
        self.metric = metric
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _number(self, X: Any, place: Place) -> Any:
        if not isinstance(self.n_clusters, str):
            return super()._number(X, place)
        return guessed(self._first(self._problem(place, X, 1)).S)

    def _problem(self, place: Place, X: Any, c: int) -> Any:
        """Return costs -2 a_ij: with alpha = 1, rows of Eq. (14) are nearest to A."""
        if self.metric == "affinity":
            A = _without_loops(csr_array(X))
            costs = place.costs(of_affinities(A, loops=True)).weigh(_twice)
            made = Problem(costs, costs, max(1, round(A.nnz / A.shape[0])), 1.0)
        else:
            found = of_data(
                place,
                X,
                c,
                n_neighbors=self.n_neighbors,
                most=self.n_neighbors,
                candidates="auto",
                alpha=None,
                metric=self.metric,
                loops=False,
                n_jobs=self.n_jobs,
            )
            rows = found.all_costs.weigh(partial(first_weights, k=found.k))
            costs = rows.weigh(_nearness)
            made = replace(found, all_costs=costs, costs=costs, alpha=1.0)
        if self.candidates == "local":
            return made
        if made.costs.n > ALL:
            raise InputError(
                f'candidates="global" holds all pairs of {made.costs.n:,} points; at '
                f'most {ALL:,} are allowed. Use "local".'
            )
        return replace(made, costs=place.costs(DenseCosts(_dense(costs))))

    def _first(self, problem: Any) -> Any:
        rows = problem.costs.weigh(_affinities)
        return self._made(problem, rows, problem.costs)

    def _update(self, problem: Any) -> Any:
        last = None

        def update(m: Any) -> Any:
            nonlocal last
            if self.norm == "l2":
                last = problem.weights(m)
            else:
                known = [problem.costs] if last is None else [problem.costs, last]
                last = m.weigh(_reweighted, beside=known)
            return self._made(problem, last, problem.costs)

        return update

    def _made(self, problem: Any, rows: Any, costs: Any) -> Any:
        gaps = rows.weigh(_gaps, beside=[costs])
        if self.norm == "l1":
            made = unmapped(costs, rows, 0.0)
            return replace(made, distance=float(np.sum(on_cpu(gaps.reduce(_total)))))
        made = unmapped(costs, rows, rows.sq_norm())
        return replace(made, distance=gaps.sq_norm() - rows.sq_norm())

    def _remarks(self, problem: Any) -> Any:
        if self.metric != "affinity":
            return []
        rows = problem.costs.weigh(_affinities)
        mean = float(np.mean(on_cpu(rows.reduce(_total))))
        if 1 / UNUSUAL < mean < UNUSUAL:
            return []
        text = (
            f"The rows of the graph sum to {mean:.3g} on average. The penalty supposes "
            "about one: divide the graph by that."
        )
        return [(UserWarning, text)]

    def _fitted(self, step: Any, place: Place, problem: Any, c: int) -> Any:
        learned = super()._fitted(step, place, problem, c)
        del learned["alpha_"]
        return learned


def _without_loops(A: Any) -> Any:
    """Leave out the diagonal, but for points that have nothing else: they get one."""
    A = csr_array(A - diags_array(A.diagonal()))
    A.eliminate_zeros()
    alone = np.diff(A.indptr) == 0
    return csr_array(A + diags_array(alone.astype(float)))


def _twice(m: Any) -> Any:
    """Return costs -2 a for costs -a."""
    return 2.0 * m


def _nearness(weights: Any) -> Any:
    """Return costs -2 a for weights a, on those that are positive."""
    xp = array_namespace(weights)
    return xp.where(weights > 0, -2.0 * weights, xp.inf)


def _affinities(m: Any) -> Any:
    """Return the weights a of costs -2 a."""
    xp = array_namespace(m)
    return xp.where(xp.isfinite(m), -0.5 * m, 0.0)


def _gaps(s: Any, m: Any) -> Any:
    """Return |s - a| for costs -2 a."""
    return abs(s - _affinities(m))


def _total(m: Any) -> Any:
    return array_namespace(m).sum(m, axis=1)


def _reweighted(m: Any, plain: Any, s: Any = None) -> Any:
    r"""Solve rows of :math:`\sum_j w_j (s_j - a_j)^2 / 2 + \lambda g_j s_j / 2`.

    With w = 1 / (2 |s - a|) for the last s that stands for the distance in L1; first
    all are one.
    """
    xp = array_namespace(m)
    a = _affinities(plain)
    w = xp.ones_like(a)
    if s is not None:
        w = 0.5 / xp.sqrt((s - a) ** 2 + TINY)
    penalty = m - xp.where(xp.isfinite(plain), plain, 0.0)
    return without_traces(weighted_simplex(w * a - penalty / 2, w))


def _dense(costs: Any) -> Any:
    """Return the costs of all pairs, those of no candidates 0."""
    made = np.zeros((costs.n, costs.n))
    for part in costs.listed():
        given: Any = (x if x is None else on_cpu(x) for x in part)
        rows, columns, values = given
        columns = np.arange(costs.n)[None, :] if columns is None else columns
        finite = np.where(np.isfinite(values), values, 0.0)
        np.add.at(made, (rows[:, None], columns), finite)
    return made
