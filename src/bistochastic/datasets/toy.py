"""Small data sets and graphs that are made, not loaded."""

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array


def planted_graph(
    n: int = 1000,
    n_clusters: int = 5,
    *,
    degree: int = 10,
    bridges: float = 0.05,
    bridge_weight: float = 1e-3,
    random_state: Any = 0,
) -> tuple[csr_array, Any]:
    """Make a weighted graph of clusters that hang together by weak bridges.

    Parameters
    ----------
    n : int, default=1000
        Number of points.
    n_clusters : int, default=5
        Number of clusters; points are dealt out in turn.
    degree : int, default=10
        Mean number of neighbors of a point inside its cluster.
    bridges : float, default=0.05
        Number of edges between clusters, per point.
    bridge_weight : float, default=1e-3
        Weight of such an edge; those inside lie between 0 and 1.
    random_state : int or numpy.random.Generator, default=0
        Seed.

    Returns
    -------
    S : csr_array of shape (n, n)
        Symmetric weights with a positive diagonal. Every point has its own scale
        between 1/10 and 10, so that row sums differ widely.
    labels : array of int of shape (n,)
        The cluster of each point.
    """
    rng = np.random.default_rng(random_state)
    labels = np.arange(n) % n_clusters
    size = n * degree // 2
    i = rng.integers(0, n, size)
    j = (i + n_clusters * rng.integers(0, n // n_clusters, size)) % n
    j = np.where(labels[i] == labels[j], j, i)  # where n_clusters does not divide n
    a, b = rng.integers(0, n, (2, int(bridges * n)))
    weight = np.concatenate([rng.random(size), np.full(a.size, bridge_weight)])
    ends = np.concatenate([i, a]), np.concatenate([j, b])
    W = coo_array((weight, ends), shape=(n, n)).tocsr()
    scale = diags_array(10.0 ** rng.uniform(-1, 1, n))
    S = csr_array(scale @ (W + W.T + diags_array(np.ones(n))) @ scale)
    return csr_array(S / 2 + S.T / 2), labels
