"""The first graph alone, Eqs. (16)-(18), for other tools to work with."""

import warnings
from functools import partial
from typing import Any

import numpy as np

from bistochastic.core.errors import InputError
from bistochastic.core.parameters import (
    Count,
    canonical,
    check_jobs,
    check_metric,
    unmasked,
)
from bistochastic.core.quiet import quietly
from bistochastic.core.run import Status
from bistochastic.graph.simplex import first_weights
from bistochastic.neighbors.points import Points
from bistochastic.places.host.host import Host
from bistochastic.scaling.marcus import marcus

TOLERANCE = 1e-10


@quietly
def adaptive_neighbors_graph(
    X: Any,
    n_neighbors: int = 15,
    *,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
) -> Any:
    """Learn the doubly stochastic graph of adaptive neighbors, without clustering.

    Each point weighs its neighbors by Eq. (18); the graph is symmetrized, Eq. (16), and
    mapped, Eq. (17). For Leiden, UMAP, SpectralClustering and the like.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Points.
    n_neighbors : int, default=15
        Number of neighbors, the point itself included.
    metric : str or callable, default="euclidean"
        The distance; its square is the cost.
    n_jobs : int, optional
        Threads of the neighbor search.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        Symmetric to the bit, with rows that sum to one.

    Warns
    -----
    ConvergenceWarning
        If row sums are off by more than 1e-10.

    See Also
    --------
    ANCMM : Goes on from here to a graph that falls apart into clusters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bistochastic import adaptive_neighbors_graph
    >>> S = adaptive_neighbors_graph(load_iris().data, n_neighbors=10)
    >>> S.sum(axis=0).round(6).max()
    np.float64(1.0)
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_array

    Count(2)("n_neighbors", n_neighbors)
    check_jobs("n_jobs", n_jobs)
    check_metric("metric", metric, pairs=())
    X = check_array(
        unmasked(X), accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
    )
    k, n = int(n_neighbors), X.shape[0]
    if k >= n:
        raise InputError(
            f"n_neighbors={k} needs more than {k} points, since Eq. (19) looks at one "
            f"more, but there are {n}. Lower n_neighbors."
        )
    X = canonical(X)
    costs, _ = Host().candidates(Points.of(X, metric), k, True, "exact", n_jobs)
    S = costs.weigh(partial(first_weights, k=k)).symmetrized()
    done = marcus(S, method="auto", tol=TOLERANCE)
    if done.status is not Status.CONVERGED:
        warnings.warn(
            f"The row sums of the graph are off by {done.residual:.1e}, more than "
            f"{TOLERANCE:g}.",
            ConvergenceWarning,
            stacklevel=3,  # past the decorator
        )
    return S.scaled(done.value).entries(0.0)
