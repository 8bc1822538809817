"""How the weight of points in the first graph is shared among the clusters."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array


def shared(made: Any, problem: Any, maker: Any, labels: Any) -> Any:
    """Let an estimator find the shares of clusters when they are first asked for."""
    later = made.get("_later", {}) | {
        "_memberships": lambda: (
            own_shares(labels) if labels.max() == 0 else shares(problem, maker, labels)
        )
    }
    return made | {"_later": later}


def shares(problem: Any, maker: Any, labels: Any) -> Any:
    """Return how the weight of points in the first graph spreads over clusters.

    Parameters
    ----------
    problem : Problem
        What the first graph is made of.
    maker : GraphMaker
        Makes it.
    labels : array of int of shape (n,)
        Clusters.

    Returns
    -------
    csr_array of shape (n, n_labels)
        Rows sum to one. A point without neighbors is all its own cluster's.
    """
    own = own_shares(labels)
    if problem.costs is None:
        return own
    order, spot = problem.order, problem.spot
    S = maker.first(problem).S.entries(0.0)
    S = csr_array(S - diags_array(S.diagonal()))
    found = csr_array(S @ (own if order is None else own[order]))
    found = found if spot is None else found[spot]
    total = found.sum(axis=1)
    found.data /= np.repeat(total, np.diff(found.indptr))  # its inverse may be inf
    return csr_array(found + diags_array((total <= 0) * 1.0) @ own)


def own_shares(labels: Any) -> Any:
    """Return shares of points that are all their own clusters'."""
    return csr_array((np.ones(labels.size), (np.arange(labels.size), labels)))


def row_sums(X: Any) -> Any:
    """Return the sums of the rows of a square matrix, by which it is known again."""
    return np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
