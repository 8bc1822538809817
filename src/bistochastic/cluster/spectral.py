"""Spectral clustering on doubly stochastic graphs (Zass, Shashua 2005, 2006)."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bistochastic.api import NORMALIZATIONS, marcus_mapping
from bistochastic.cluster.kmeans_based import Embedded
from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import InputError, several
from bistochastic.core.parameters import (
    MILLION,
    Choice,
    Count,
    Fraction,
    Positive,
    check_jobs,
    check_seed,
)
from bistochastic.core.quiet import silently
from bistochastic.core.run import Status
from bistochastic.graph.components import components
from bistochastic.graph.refine import local_scales
from bistochastic.graph.simplex import first_weights
from bistochastic.neighbors.exact import squared_distances
from bistochastic.neighbors.points import Points
from bistochastic.places.host.host import Host
from bistochastic.places.matrices import Wanted, hold
from bistochastic.scaling.feasibility import scalable, support
from bistochastic.spectrum.ky_fan import ky_fan


class DoublyStochasticSpectral(Embedded):
    r"""Cluster by the eigenvectors of a doubly stochastic graph, and k-means.

    The graph S is made of the affinities K, and F minimizes

    .. math:: Tr(F^T (I - S) F) , \quad F^T F = I .

    All degrees are one: ratio cut and normalized cut are the same.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    affinity : str, default="gaussian"
        K. "gaussian": exp(-gamma d^2) for all pairs. "self_tuning": exp(-d^2 / (s_i
        s_j)) with the distance s_i to the last of the neighbors. "adaptive": the sparse
        graph of adaptive neighbors, Eq. (18). "precomputed": X itself.
    normalization : str, default="marcus"
        How S is made of K, as `DoublyStochasticScaler` does it: "marcus",
        "zass_shashua_2005", "frobenius" or "zass_shashua_2006".
    n_neighbors : int, default=10
        Neighbors of a point: for the local scales itself left out, in the adaptive
        graph included.
    gamma : float, optional
        For "gaussian"; by default one over the median squared distance.
    n_init : int, default=10
        Starts of k-means.
    tol : float, default=1e-8
        Largest error of a row sum of S.
    n_jobs : int, optional
        Threads of the neighbor search.
    random_state : int, RandomState or None, default=None
        Starts the eigensolver and k-means; None is a fixed seed.
    verbose : int, default=0
        Whether to print a line for each stage.

    Attributes
    ----------
    labels_ : array of int of shape (n_samples,)
        The cluster of each point, numbered by first appearance.
    affinity_matrix_ : array or csr_array of shape (n_samples, n_samples)
        The doubly stochastic graph S.
    embedding_ : array of shape (n_samples, n_clusters)
        F.
    eigenvalues_ : array of shape (n_clusters,)
        The smallest eigenvalues of I - S.
    n_components_ : int
        Number of connected components of the graph; it need not be `n_clusters`.
    inertia_ : float
        Sum of the squared distances to the nearest centers.
    n_clusters_ : int
        Number of different labels.
    n_iter_ : int
        Iterations of k-means.
    history_ : list of dict
        A record of each stage: affinity, scaling, embedding, k-means.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if they are all strings.

    See Also
    --------
    DoublyStochasticScaler : The normalization alone, for a pipeline.
    ANCMM : Learns a graph that needs no k-means.
    sklearn.cluster.SpectralClustering : The same without the normalization.

    Notes
    -----
    Connected components are found by a search, not by eigenvalues, so that no copy of
    the eigenvalue 0 is missed. Memory is that of a few n x n arrays, except with sparse
    affinities.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from bistochastic import DoublyStochasticSpectral
    >>> X, _ = make_blobs(90, centers=3, cluster_std=0.5, random_state=0)
    >>> model = DoublyStochasticSpectral(n_clusters=3).fit(X)
    >>> model.affinity_matrix_.sum(axis=0).round(6).max()
    np.float64(1.0)
    """

    _stages = 4
    _limits = {  # noqa: RUF012
        "n_clusters": Count(1),
        "affinity": Choice("gaussian", "self_tuning", "adaptive", "precomputed"),
        "normalization": Choice(*NORMALIZATIONS),
        "n_neighbors": Count(2),
        "gamma": Positive(None),
        "n_init": Count(1, most=MILLION),
        "tol": Fraction(),
        "n_jobs": check_jobs,
        "random_state": check_seed,
        "verbose": Count(0, True, False),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: str = "gaussian",
        normalization: str = "marcus",
        n_neighbors: int = 10,
        gamma: float | None = None,
        n_init: int = 10,
        tol: float = 1e-08,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.normalization = normalization
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.n_init = n_init
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def metric(self) -> Any:
        """What X holds, as the other clusterers call it."""
        return "affinity" if self.affinity == "precomputed" else "euclidean"

    def _embedded(self, X: Any, c: int, stages: Any) -> Any:
        K = self._affinities(X)
        stages.note("affinity", largest=K.max())
        S, said = self._normalized(K, stages)
        graph = hold(S, Wanted("S")).graph
        number, labels = components(graph)
        found = ky_fan(graph, c, labels, rng=self._generator())
        if found.status is not Status.CONVERGED:
            said.append((ConvergenceWarning, "The eigensolver did not converge."))
        if number > c:
            text = (
                f"The graph has {several(number, 'component')}, more than "
                f"n_clusters={c}, so that the smallest are thrown together. More "
                "neighbors, or a smaller gamma, connect them; ANCMM joins them by "
                "distance."
            )
            said.append((UserWarning, text))
        stages.note("embedding", n_components=number, n_products=found.n_products)
        learned = {
            "affinity_matrix_": S,
            "eigenvalues_": found.values,
            "n_components_": number,
        }
        return on_cpu(found.F), learned, said

    def _affinities(self, X: Any) -> Any:
        """Return K."""
        if self.affinity == "precomputed":
            return X
        n, k = X.shape[0], int(self.n_neighbors)
        if n == 1:
            return np.ones((1, 1))
        if k >= n and self.affinity != "gaussian":
            raise InputError(
                f"n_neighbors={k} needs more than {k} points, but there are {n}. Lower "
                "n_neighbors."
            )
        points = Points.of(X, "euclidean")
        if self.affinity == "adaptive":
            found, _ = Host().candidates(points, k, True, "exact", self.n_jobs)
            rows = found.weigh(partial(first_weights, k=k))
            return rows.symmetrized().native()
        D = squared_distances(points)
        if self.affinity == "self_tuning":
            s = local_scales(np.partition(D, k, axis=1)[:, k])
            return np.exp(-D / s[:, None] / s[None, :])
        middle = float(np.median(D[np.triu_indices(n, 1)])) or float(D.max()) or 1.0
        gamma = 1.0 / middle if self.gamma is None else float(self.gamma)
        return np.exp(-gamma * D)

    def _normalized(self, K: Any, stages: Any) -> Any:
        """Return the doubly stochastic matrix."""
        function, method = NORMALIZATIONS[self.normalization]
        said = []
        graph = hold(K, Wanted("K")).graph
        # of the others, a sparse K has to have some plan on its pattern
        exists = function is not marcus_mapping and (
            not is_sparse(K) or support(graph).kind != "none"
        )
        ready = None if exists else scalable(graph, "regularize")
        if ready is not None and ready.shift:
            text = (
                "The affinities have no total support (Corollary 1), so that "
                f"{ready.shift:.3g} was added to their diagonal."
            )
            said.append((UserWarning, text))
            K = ready.graph.native()
        with silently():  # said below
            done = function(K, method=method, tol=self.tol)
        stages.note("scaling", n_iter=done.n_iter, residual=done.residual)
        if done.status is not Status.CONVERGED:
            worst = f"off by {done.residual:.1e}, more than tol={self.tol:g}"
            said.append((ConvergenceWarning, f"The row sums of the graph are {worst}."))
        return done.matrix, said
