"""Connected components of a graph: Theorem 3, the clusters."""

import numpy as np
from scipy.sparse.csgraph import connected_components


def components(S):
    """Count the connected components of a graph by a search, never by eigenvalues.

    Theorem 3: rank(L) = n - c for the Laplacian L of S exactly if there are c of them.

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.

    Returns
    -------
    number : int
        How many there are.
    labels : array of int of shape (n,)
        The component of each point, numbered by first appearance.
    """
    labels = S.fast(search)(S)
    return int(labels.max()) + 1, labels


def search(S):
    """Return the component of each point, numbered by first appearance.

    Parameters
    ----------
    S : Graph
        Symmetric; every stored entry is an edge.

    Returns
    -------
    array of int of shape (n,)
        The components.
    """
    return numbered(connected_components(S.pattern(), directed=False)[1])


def numbered(labels):
    """Return labels numbered by first appearance.

    Parameters
    ----------
    labels : array of int of shape (n,)
        Any numbers.

    Returns
    -------
    array of int of shape (n,)
        0, 1, ... in the order in which they turn up.
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse]
