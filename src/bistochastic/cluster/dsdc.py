"""DSDC: doubly stochastic distances, a sphere and k-means (He, Zhang 2023)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from bistochastic.api import marcus_mapping
from bistochastic.cluster.kmeans_based import Embedded
from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, SupportError, several
from bistochastic.core.parameters import (
    MILLION,
    Choice,
    Count,
    Fraction,
    check_distance,
    check_seed,
)
from bistochastic.core.quiet import silently
from bistochastic.core.run import Status
from bistochastic.neighbors.exact import squared_distances
from bistochastic.neighbors.points import Points
from bistochastic.places.given_pairs import distinct, of_distances, squares
from bistochastic.places.tables import DenseCosts

COORDINATES = ("euclidean", "l2", "sqeuclidean")
WRONG = 1e-6  # of the largest distance: a larger error is that of another sphere
SMALLEST = 1e-300
ROUNDING = 1e-12  # of the largest eigenvalue: what is left of zeros


class DSDC(Embedded):
    r"""Cluster points whose squared distances were made doubly stochastic.

    The Marcus mapping of the matrix A of squared distances,

    .. math:: B = U A U , \quad B 1 = 1 , \quad U \text{ diagonal} ,

    is again, up to a factor, one of squared distances, of points on a sphere. k-means
    clusters these. Not a graph: no components, no neighbors.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    embedding : {"auto", "sphere", "gram"}, default="auto"
        How the points on the sphere are found: "sphere" by the published least squares
        and a stereographic map, "gram" by the eigenvectors of the centered Gram matrix,
        the same up to scale. "auto" is "sphere" where its distances come out right: it
        takes at least three rows more than columns, and points that do not lie on a
        sphere already, or the least squares have many solutions, most of them wrong.
    metric : str or callable, default="euclidean"
        The distance, as `ANCMM` takes it, "affinity" left out. Others than Euclidean
        have no coordinates on a sphere: "gram", what is negative left out.
    n_init : int, default=1
        Starts of k-means, one as published.
    tol : float, default=1e-8
        Largest error of a row sum of B.
    random_state : int, RandomState or None, default=None
        Starts k-means; None is a fixed seed.
    verbose : int, default=0
        Whether to print a line for each stage.

    Attributes
    ----------
    labels_ : array of int of shape (n_samples,)
        The cluster of each point, numbered by first appearance.
    embedding_ : array of shape (n_samples, n_dimensions)
        Points whose squared distances are `factor_` times B.
    factor_ : float
        The factor.
    scaling_ : array of shape (n_samples,)
        The diagonal of U.
    route_ : {"sphere", "gram"}
        How the embedding was found.
    inertia_ : float
        Sum of the squared distances to the nearest centers.
    n_clusters_ : int
        Number of different labels.
    n_iter_ : int
        Iterations of k-means.
    history_ : list of dict
        A record of each stage: scaling, embedding, k-means.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if they are all strings.

    See Also
    --------
    marcus_mapping : The scaling alone.

    Notes
    -----
    Memory is that of two n x n arrays.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from bistochastic import DSDC
    >>> X, _ = make_blobs(90, centers=3, cluster_std=0.5, random_state=0)
    >>> model = DSDC(n_clusters=3, n_init=10, random_state=0).fit(X)
    >>> model.embedding_.shape
    (90, 3)
    """

    _stages = 3
    _limits = {  # noqa: RUF012
        "n_clusters": Count(1),
        "embedding": Choice("auto", "sphere", "gram"),
        "metric": check_distance,
        "n_init": Count(1, most=MILLION),
        "tol": Fraction(),
        "random_state": check_seed,
        "verbose": Count(0, True, False),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        embedding: str = "auto",
        metric: str | Callable[..., float] = "euclidean",
        n_init: int = 1,
        tol: float = 1e-08,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.embedding = embedding
        self.metric = metric
        self.n_init = n_init
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _embedded(self, X: Any, c: int, stages: Any) -> Any:
        n, d = X.shape
        flat = self.metric in COORDINATES and not is_sparse(X)
        if self.embedding == "sphere" and (not flat or n < d + 3):
            raise InputError(
                'embedding="sphere" needs dense points with metric="euclidean" and at '
                f'least three rows more than columns, not {n} x {d}; use "gram".'
            )
        sphere = self.embedding != "gram" and flat and n >= d + 3
        A, points = self._distances(X)
        if n == 1:
            learned = {"factor_": 1.0, "scaling_": np.ones(1), "route_": "gram"}
            return np.zeros((1, 1)), learned, []
        number = distinct(DenseCosts(A))
        if c > number:
            raise InputError(
                f"n_clusters={c}, but X has only {several(number, 'distinct point')}."
            )
        B, u, said = self._scaled(A, stages)
        if sphere:
            P, factor = on_sphere(points.X, u)
            error = np.abs(cdist(P, P, "sqeuclidean") / factor - B).max() / B.max()
            sphere = error < WRONG
        if self.embedding == "sphere" and not sphere:
            raise InputError(
                "The least squares for the sphere have no clear solution, as where the "
                'points lie on one already; use embedding="gram".'
            )
        if not sphere:
            P, factor = from_gram(B), 1.0
        route = "sphere" if sphere else "gram"
        stages.note("embedding", n_dimensions=P.shape[1])
        return P, {"factor_": factor, "scaling_": u, "route_": route}, said

    def _distances(self, X: Any) -> Any:
        """Return the squared distances, and the points if there are such."""
        if self.metric != "precomputed":
            points = Points.of(X, self.metric)
            return squared_distances(points), points
        self._check_all_pairs(X)
        of_distances(X, loops=True)  # refuses what is no distance
        return squares(X), None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.metric != "precomputed"
        return tags

    def _scaled(self, A: Any, stages: Any) -> Any:
        """Return the Marcus mapping of the squared distances."""
        try:
            with silently():  # said below
                done = marcus_mapping(A, tol=self.tol)
        except SupportError as error:
            raise InputError(
                "The matrix of squared distances has no doubly stochastic scaling: so "
                "many rows of X are the same that zeros fill it (Corollary 1). Drop "
                "duplicates."
            ) from error
        stages.note("scaling", n_products=done.n_products, residual=done.residual)
        said = []
        if done.status is not Status.CONVERGED:
            worst = f"off by {done.residual:.1e}, more than tol={self.tol:g}"
            said = [(ConvergenceWarning, f"The row sums of the distances are {worst}.")]
        return done.matrix, done.scaling, said


def on_sphere(X: Any, u: Any) -> tuple[Any, Any]:
    """Find points on a sphere whose squared distances are u_i |x_i - x_j|^2 u_j.

    The published way: least squares for the center and the radius of a sphere, and the
    inverse of a stereographic map.

    Parameters
    ----------
    X : array of shape (n, d)
        Points, n >= d + 3.
    u : array of shape (n,)
        The scaling.

    Returns
    -------
    points : array of shape (n, d + 1)
        Points.
    factor : float
        Their squared distances over the scaled ones.
    """
    n, d = X.shape
    r = (2.0 * n) ** -0.5
    M = np.concatenate([2.0 * X, 2.0 * r / u[:, None], -np.ones((n, 1))], axis=1)
    squared = np.sum(X * X, axis=1)
    size = np.abs(M).max(axis=0)
    size[size == 0] = 1.0
    found = np.linalg.lstsq(M / size, squared, rcond=None)[0] / size
    z, factor = found[:d], max((found[d] / (2.0 * r)) ** 2, SMALLEST)
    R = r * factor**0.5
    a = X - z
    length = np.sum(a * a, axis=1)
    t = 1.0 / (4.0 * R**2 + length)
    P = np.concatenate(
        [z + (4.0 * R**2 * t)[:, None] * a, (2.0 * R * t * length)[:, None]], axis=1
    )
    return P, float(factor)


def from_gram(B: Any) -> Any:
    """Find points whose squared distances are B, by the centered Gram matrix.

    Since rows of B sum to one, that is -(B - 11'/n) / 2. Negative eigenvalues, of what
    is no Euclidean distance or of rounding, are left out.

    Parameters
    ----------
    B : array of shape (n, n)
        Doubly stochastic squared distances.

    Returns
    -------
    array of shape (n, r)
        Points, the widest direction first.
    """
    values, vectors = eigh((1.0 / B.shape[0] - B) / 2.0)
    kept = values > ROUNDING * values[-1]
    P = vectors[:, kept] * np.sqrt(values[kept])
    P = P[:, ::-1]
    return P * np.where(P[np.abs(P).argmax(axis=0), range(P.shape[1])] < 0, -1.0, 1.0)
