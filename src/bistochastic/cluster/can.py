"""CAN: clustering with adaptive neighbors (Nie, Wang, Huang 2014)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bistochastic.cluster.graphs import GraphMaker
from bistochastic.cluster.problem import at, of_data
from bistochastic.cluster.rank_constrained import RankConstrained
from bistochastic.core.errors import DegenerateError
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


class CAN(RankConstrained):
    r"""Cluster by a graph of adaptive neighbors that falls apart into the clusters.

    Minimizes over rows that sum to one, with the penalty of the rank constraint,

    .. math:: \sum_{ij} \|x_i - x_j\|^2 s_{ij} + \alpha \|S\|_F^2
        + 2 \lambda \, Tr(F^T L_S F) ,

    where L is the Laplacian of (S + S') / 2; its connected components are the clusters.
    `ANCMM` adds the point itself as a neighbor and the Marcus mapping.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    n_neighbors : int, default=15
        Number of neighbors k, the point itself left out.
    alpha : "mean" or float, default="mean"
        Weight of the squared norm, r in the published code: the mean of the largest
        values that give each row k neighbors, or a number.
    candidates : {"local", "global"}, default="local"
        Which points may get a weight as lambda grows: the k nearest, or all, the point
        itself included, as published.
    penalty : float, optional
        Lambda to start with; by default that mean, whatever alpha is.
    strict : bool, default=False
        Whether a first graph with too many components is an error, as in the published
        code. Otherwise a warning says so, and they are the clusters.
    metric : str or callable, default="euclidean"
        The distance, as `ANCMM` takes it, "affinity" left out.
    max_iter : int, default=31
        Most graphs to learn, the first one included: 30 updates, as published.
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
    alpha_ : array of shape (n_samples,)
        The alpha of each row.
    penalty_ : float
        The lambda that the graph was made with; 0 for the first graph.
    history_ : list of dict
        A record of each step, as `ANCMM` keeps it.
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
    ANCMM : The same with a doubly stochastic graph, and exactly c components.
    PCAN : The same with a projection that is learned.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> from bistochastic import CAN
    >>> from bistochastic.metrics import clustering_accuracy
    >>> X, y = load_wine(return_X_y=True)
    >>> model = CAN(n_clusters=3, n_neighbors=30).fit(minmax_scale(X))
    >>> round(clustering_accuracy(y, model.labels_), 3)
    0.972
    """

    _limits = {  # noqa: RUF012
        "n_clusters": Count(1),
        "n_neighbors": Count(1),
        "alpha": Positive("mean"),
        "candidates": Choice("local", "global"),
        "penalty": Positive(None),
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
        n_neighbors: int = 15,
        alpha: float | str = "mean",
        candidates: str = "local",
        penalty: float | None = None,
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
        self.alpha = alpha
        self.candidates = candidates
        self.penalty = penalty
        self.strict = strict
        self.metric = metric
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _problem(self, place: Place, X: Any, c: int) -> Any:
        nearest = self._nearest(place, X, c)
        if self.candidates == "local":
            return nearest
        everyone = self._nearest(place, X, c, candidates=None, own=1)
        return replace(nearest, costs=everyone.costs, limited=everyone.limited)

    def _nearest(
        self,
        place: Place,
        X: Any,
        c: int,
        candidates: int | str | None = "auto",
        own: int = 0,
        ordered: bool = True,
    ) -> Any:
        """Return the problem for the k nearest of each point, and `own` for itself."""
        return of_data(
            place,
            X,
            c,
            n_neighbors=int(self.n_neighbors) + own,
            most=int(self.n_neighbors) + own,
            candidates=candidates,
            alpha=self.alpha,
            metric=self.metric,
            loops=bool(own),
            n_jobs=self.n_jobs,
            ordered=ordered,
        )

    def _start(self, problem: Any) -> Any:
        if self.penalty is None:
            with suppress(DegenerateError):  # then alpha was given
                problem = at(problem, problem.k, "mean", int(self.n_clusters))
        return super()._start(problem)

    def _making(self) -> Any:
        """Return what makes graphs: rows and no mapping."""
        return GraphMaker(False, "marcus", "auto", 1e-8, affine=False, mapping=False)

    def _first(self, problem: Any) -> Any:
        return self._making().first(problem)

    def _update(self, problem: Any) -> Any:
        return self._making().update(problem)
