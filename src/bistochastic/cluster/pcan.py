"""PCAN: adaptive neighbors in a projection that is learned (Nie, Wang, Huang 2014)."""

from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bistochastic.cluster.can import CAN
from bistochastic.cluster.candidates import ALL
from bistochastic.cluster.rank_constrained import RankConstrained
from bistochastic.core.arrays import is_sparse, on_cpu, times
from bistochastic.core.errors import InputError, InputTypeError
from bistochastic.core.parameters import Choice, Count
from bistochastic.core.protocols import Graph, Place
from bistochastic.core.quiet import quietly

SETTLED = 5  # steps after which the nearest are looked for in the projection
RANK = 1e-10  # of the largest singular value: directions without spread


class PCAN(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CAN):
    r"""Cluster by adaptive neighbors in a projection that is learned with the graph.

    Minimizes over rows that sum to one and over projections W,

    .. math:: \sum_{ij} \|W^T x_i - W^T x_j\|^2 s_{ij} + \alpha \|S\|_F^2
        + 2 \lambda \, Tr(F^T L_S F) , \quad W^T X^T H X W = I ,

    with the centering matrix H. In turn: the rows of the graph, its eigenvectors F, and
    W, whose columns have unit length, as published.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    n_components : int, optional
        Number of columns of W; c - 1 by default, but at least 1 and at most the rank of
        the centered data.
    n_neighbors : int, default=15
        Number of neighbors k in the first graph, the point itself left out.
    alpha : "mean" or float, default="mean"
        Weight of the squared norm, as in `CAN`.
    candidates : {"global", "local"}, default="global"
        Which points may get a weight: all, the point itself included, or the k nearest,
        after five steps those in the projection.
    penalty : float, optional
        Lambda to start with; by default alpha.
    strict : bool, default=False
        Whether a first graph with too many components is an error.
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
    projection_ : array of shape (n_features, n_components)
        W as it was learned from the graph.
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
    CAN : The same without a projection.

    Notes
    -----
    The published code takes eigenvectors of a matrix that is not symmetric after
    replacing it by the larger of its two halves. Here the symmetric problem that the
    objective leads to is solved, in the range of the centered data, so that more
    columns than rows do no harm.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> from bistochastic import PCAN
    >>> X = minmax_scale(load_wine().data)
    >>> PCAN(n_clusters=3).fit_transform(X).shape
    (178, 2)
    """

    metric = "euclidean"
    _limits = {  # noqa: RUF012
        **{name: check for name, check in CAN._limits.items() if name != "metric"},
        "n_components": Count(1, None),
        "candidates": Choice("global", "local"),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        n_neighbors: int = 15,
        alpha: float | str = "mean",
        candidates: str = "global",
        penalty: float | None = None,
        strict: bool = False,
        max_iter: int = 31,
        n_jobs: int | None = None,
        random_state: Any = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.candidates = candidates
        self.penalty = penalty
        self.strict = strict
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @quietly
    def transform(self, X: Any) -> Any:
        """Project points.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Points.

        Returns
        -------
        array of shape (n_new, n_components)
            X W.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from bistochastic import PCAN
        >>> X = load_iris().data
        >>> PCAN(3).fit(X).transform(X).shape
        (150, 2)
        """
        check_is_fitted(self, "labels_")
        return times(self._validated(X), self.projection_)

    def _problem(self, place: Place, X: Any, c: int) -> Any:
        nearest = self._nearest(place, X, c, ordered=False)
        wanted = max(1, c - 1) if self.n_components is None else int(self.n_components)
        costs = Projected(place, X, wanted, nearest, self.candidates)
        return replace(nearest, costs=costs)

    def _start(self, problem: Any) -> Any:
        return RankConstrained._start(self, problem)

    def _update(self, problem: Any) -> Any:
        projected, make = problem.costs, super()._making()

        def update(m: int) -> Any:
            rows = problem.weights(m)
            made = make.mapped(problem, projected.costs, rows)
            projected.learn(made.S)
            return made

        return update

    def _first(self, problem: Any) -> Any:
        first = super()._first(problem)
        problem.costs.learn(first.S, first=True)
        return first

    def _fitted(self, step: Any, place: Place, problem: Any, c: int) -> Any:
        W = problem.costs.projection(step.graph.S)
        moved = replace(problem, points=problem.costs.points(W))
        return super()._fitted(step, place, moved, c) | {"projection_": W}

    def _placed(self, X: Any) -> Any:
        return super()._placed(times(X, self.projection_))

    def _place_of(self, X: Any) -> Any:
        _check_dense(X)
        return super()._place_of(X)

    def _validated(self, X: Any) -> Any:
        _check_dense(X)
        return super()._validated(X)

    @property
    def _n_features_out(self) -> Any:
        return self.projection_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _check_dense(X: Any) -> None:
    if is_sparse(X):
        raise InputTypeError(
            "Sparse data was passed, but PCAN learns a projection of all columns: "
            "pass X.toarray()."
        )


class Projected:
    """The costs of points in a projection that follows the graph.

    Parameters
    ----------
    place : Place
        Where the points are.
    X : data of the place
        Points.
    wanted : int
        Number of columns of the projection.
    nearest : Problem
        The k nearest of each point, before any projection.
    candidates : {"global", "local"}
        All points or the nearest.
    """

    def __init__(
        self, place: Place, X: Any, wanted: int, nearest: Any, candidates: str
    ) -> None:
        if candidates == "global" and X.shape[0] > ALL:
            raise InputError(
                f'candidates="global" holds all pairs of {X.shape[0]:,} points; at '
                f'most {ALL:,} are allowed. Use "local".'
            )
        self._place, self.n = place, X.shape[0]
        self._X = place.vectors(X)
        xp = array_namespace(self._X)
        centered = self._X - xp.mean(self._X, axis=0)
        U, s, V = xp.linalg.svd(centered, full_matrices=False)
        s, V = on_cpu(s), on_cpu(V)
        rank = max(1, int(np.sum(s > RANK * s[0])))
        self._U, self._V, self._s = U[:, :rank], V[:rank].T, s[:rank].copy()
        self._s[self._s == 0] = 1.0  # all points are the same
        self._wanted = min(wanted, rank)
        self._nearest = nearest
        self._candidates = candidates
        self._steps = 0

    def plus(self, lam: float, F: Any) -> Any:
        """Return the costs in the projection with the penalty."""
        return self.costs.plus(lam, F)

    def points(self, W: Any) -> Any:
        """Return the points in a projection."""
        P = self._place.of_vectors(times(self._X, _beside(W, self._X)))
        return self._place.points(P, "euclidean")

    def learn(self, S: Any, first: bool = False) -> None:
        """Learn the projection from a graph, and with it the costs."""
        W = self.projection(S, scaled=not first)
        k = self._nearest.k
        if self._candidates == "global":
            self.costs = self._place.all_pairs(self.points(W), True)
        elif self._steps >= SETTLED:
            costs, _ = self._place.candidates(self.points(W), k, False, "exact", None)
            self.costs = costs.closest(k)
        else:
            P = times(self._X, _beside(W, self._X))
            self.costs = self._nearest.costs.remade(_between, P)
        self._steps += 1

    def projection(self, S: Graph, scaled: bool = True) -> Any:
        """Return the W with the smallest trace of W' X' L X W.

        Parameters
        ----------
        S : Graph
            Weights.
        scaled : bool, default=True
            Whether W' X' H X W = I is asked for; the first is asked for W' W = I.

        Returns
        -------
        array of shape (d, m)
            Columns of unit length.
        """
        degree = S.apply(S.ones())
        Z = self._U if scaled else self._U * _beside(self._s, self._U)
        M = on_cpu(Z.T @ (degree[:, None] * Z - S.apply(Z)))
        _, Q = eigh((M + M.T) / 2, subset_by_index=[0, self._wanted - 1])
        W = self._V @ (Q / self._s[:, None] if scaled else Q)
        W = W / np.sqrt(np.sum(W * W, axis=0))
        return W * np.where(W[np.abs(W).argmax(axis=0), range(W.shape[1])] < 0, -1, 1)


def _beside(small: Any, V: Any) -> Any:
    """Return a small matrix in the type and on the device of a block."""
    xp = array_namespace(V)
    return xp.asarray(small, dtype=V.dtype, device=device(V))


def _between(rows: Any, columns: Any, values: Any, P: Any) -> Any:
    """Return the costs of the same candidates in a projection."""
    gap = P[columns] - P[rows][:, None, :]
    return columns, array_namespace(P).sum(gap * gap, axis=2)
