"""Connected components of a graph: Theorem 3, the clusters."""

from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Graph


def components(S: Graph) -> tuple[Any, Any]:
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


def search(S: Graph) -> Any:
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


def numbered(labels: Any) -> Any:
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
    if not 0 <= labels.min(initial=0) <= labels.max(initial=0) <= labels.size:
        labels = np.unique(labels, return_inverse=True)[1]
    first = np.full(labels.max(initial=0) + 1, labels.size)
    first[labels[::-1]] = np.arange(labels.size)[::-1]  # the last one stays
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size)
    return rank[labels]


def by_size(S: Graph, labels: Any, sizes: Any, factors: Any = 1.0) -> Any:
    """Return the numbers of components, the largest first.

    Of equally large ones first that whose largest weights add up to least, so that no
    order of the points decides.

    Parameters
    ----------
    S : Graph
        The graph.
    labels : array of int of shape (n,)
        The component of each point.
    sizes : array of int of shape (q,)
        How large each counts; its number of points, or 0.
    factors : array of shape (n,), optional
        By what the largest weight of each point is multiplied.

    Returns
    -------
    array of int of shape (q,)
        The numbers.
    """
    if np.unique(sizes).size == sizes.size:
        return np.argsort(-sizes)
    held = np.bincount(labels, factors * on_cpu(S.highest()), minlength=sizes.size)
    return np.lexsort((held, -sizes))
