"""ERCAN: adaptive neighbors with an entropy (Wang, Ma, Nie, Li 2022)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from bistochastic.cluster.graphs import unmapped
from bistochastic.cluster.problem import of_data
from bistochastic.cluster.rank_constrained import RankConstrained
from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError
from bistochastic.core.parameters import (
    Choice,
    Count,
    Positive,
    check_device,
    check_distance,
    check_jobs,
    check_seed,
)
from bistochastic.core.protocols import Place
from bistochastic.graph.entropy import cheapest, entropic, negentropy
from bistochastic.graph.simplex import farthest

ETA = 1.05  # of the published demonstration with ten neighbors


class ERCAN(RankConstrained):
    r"""Cluster by a graph of adaptive neighbors with an entropy.

    Minimizes over rows that sum to one and have k entries, with the penalty of the rank
    constraint,

    .. math:: \sum_{ij} \|x_i - x_j\|^2 s_{ij} + \gamma \sum_{ij} s_{ij} \log s_{ij}
        + 2 \lambda \, Tr(F^T L_S F) ,

    where L is the Laplacian of (S + S') / 2; its connected components are the clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    n_neighbors : int, default=10
        Number of neighbors k that every row keeps, the point itself left out; more only
        where costs are tied.
    eta : float, optional
        Sets gamma to eta times the Frobenius norm of the squared distances over n; 1.05
        if neither is given.
    gamma : float, optional
        Weight of the entropy; only one of the two can be given.
    penalty : float, optional
        Lambda to start with, by default gamma.
    rate : float, default=2.0
        By which lambda grows or shrinks.
    strict : bool, default=False
        Whether a first graph with too many components is an error, as in the published
        code.
    metric : str or callable, default="euclidean"
        The distance, as `ANCMM` takes it, "affinity" left out.
    max_iter : int, default=41
        Most graphs to learn, the first one included: 40 updates, as published.
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
        The graph (S + S') / 2; its rows need not sum to one.
    embedding_ : array of shape (n_samples, n_clusters)
        The eigenvectors F that the graph was made with.
    n_components_ : int
        Number of connected components of the graph.
    n_clusters_ : int
        Number of different labels.
    n_neighbors_ : int
        The k that was used.
    gamma_ : float
        The weight of the entropy.
    penalty_ : float
        The lambda that the graph was made with; 0 for the first graph.
    history_ : list of dict
        A record of each step, as `ANCMM` keeps it; "objective_norm" is the term with
        the entropy.
    n_iter_ : int
        Number of graphs learned, the first one included.
    converged_ : bool
        Whether the graph has `n_clusters` components.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if they are all strings.

    See Also
    --------
    CAN : The same with a squared norm.

    Notes
    -----
    All pairs of points are candidates, in an array of n x n costs up to 4,096 points;
    above, the 4 k nearest stand for all.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from bistochastic import ERCAN
    >>> X, _ = make_blobs(150, centers=3, cluster_std=0.5, random_state=0)
    >>> ERCAN(n_clusters=3, eta=0.1).fit(X).n_components_
    3
    """

    _connected = "raise eta or gamma"
    _updates = True  # rows of the first graph have more than k entries
    _limits = {  # noqa: RUF012
        "n_clusters": Count(1),
        "n_neighbors": Count(1),
        "eta": Positive(None),
        "gamma": Positive(None),
        "penalty": Positive(None),
        "rate": Positive(),
        "strict": Choice(True, False),
        "metric": check_distance,
        "max_iter": Count(1),
        "n_jobs": check_jobs,
        "random_state": check_seed,
        "device": check_device,
        "verbose": Count(0, True, False),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        eta: float | None = None,
        gamma: float | None = None,
        penalty: float | None = None,
        rate: float = 2.0,
        strict: bool = False,
        metric: str | Callable[..., float] = "euclidean",
        max_iter: int = 41,
        n_jobs: int | None = None,
        random_state: Any = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.eta = eta
        self.gamma = gamma
        self.penalty = penalty
        self.rate = rate
        self.strict = strict
        self.metric = metric
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _check_together(self) -> None:
        if self.eta is not None and self.gamma is not None:
            raise InputError("Give eta or gamma, not both: eta sets gamma.")
        if not self.rate > 1:
            raise InputError(f"rate={self.rate}: lambda grows by it; it must be > 1.")

    def _problem(self, place: Place, X: Any, c: int) -> Any:
        self._check_all_pairs(X)
        problem = of_data(
            place,
            X,
            c,
            n_neighbors=self.n_neighbors,
            most=self.n_neighbors,
            candidates=None,
            alpha=None,
            metric=self.metric,
            loops=False,
            n_jobs=self.n_jobs,
        )
        return replace(problem, alpha=self._weight(place, problem))

    def _weight(self, place: Place, problem: Any) -> Any:
        """Return gamma."""
        if self.gamma is not None:
            return float(self.gamma)
        if problem.limited:
            norm = place.norm_of_costs(problem.points)
        else:
            rows = on_cpu(problem.costs.reduce(_norm))
            norm = float(_norm(rows[None, :])[0])
        if norm == 0:
            raise InputError("All points are the same; eta sets no gamma then.")
        eta = ETA if self.eta is None else float(self.eta)
        return eta * (norm / problem.costs.n)

    def _first(self, problem: Any) -> Any:
        rows = problem.costs.weigh(partial(_beside_itself, gamma=problem.alpha))
        return self._made(problem, rows)

    def _update(self, problem: Any) -> Any:
        def update(m: Any) -> Any:
            kept = m.weigh(partial(cheapest, k=problem.k))
            rows = kept.weigh(partial(entropic, gamma=problem.alpha))
            made = self._made(problem, rows)
            if problem.limited:
                dearest = kept.reduce(farthest)
                made = replace(made, open_rows=problem.beyond(dearest))
            return made

        return update

    def _made(self, problem: Any, rows: Any) -> Any:
        entropy = float(np.sum(on_cpu(rows.reduce(negentropy))))
        return unmapped(problem.costs, rows, problem.alpha * entropy)

    def _weights(self, costs: Any, k: int) -> Any:
        return entropic(cheapest(costs, min(k, costs.shape[1])), self.gamma_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.metric != "precomputed"
        return tags

    def _fitted(self, step: Any, place: Place, problem: Any, c: int) -> Any:
        learned = super()._fitted(step, place, problem, c)
        del learned["alpha_"]
        return learned | {"gamma_": problem.alpha}


def _norm(m: Any) -> Any:
    """Return the length of each row; large numbers do not overflow."""
    xp = array_namespace(m)
    m = xp.where(xp.isfinite(m), m, 0.0)
    top = xp.max(m, axis=1, keepdims=True)
    m = m / xp.where(top > 0, top, 1.0)
    return top[:, 0] * xp.sqrt(xp.sum(m * m, axis=1))


def _beside_itself(m: Any, gamma: Any) -> Any:
    """Return the shares of the others where the point itself, at cost 0, has one.

    Where it leaves nothing that a double can hold, those without it.
    """
    xp = array_namespace(m)
    weights = xp.exp(-m / gamma)
    total = xp.sum(weights, axis=1, keepdims=True)
    return xp.where(total > 0, weights / (1.0 + total), entropic(m, gamma))
