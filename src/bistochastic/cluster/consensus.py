"""Choices without labels: the partition that agrees most with the others."""

from typing import Any

import numpy as np

GRID = (5, 7, 10, 14, 20, 28, 40, 56)  # numbers of neighbors to choose from
MANY = 50_000  # points from which on the last of them is left out: it costs most


def grid(n: int, c: int) -> Any:
    """Return the numbers of neighbors to choose from.

    Up to the mean size of a cluster and twice the root of n; 40 of very many points.

    Parameters
    ----------
    n, c : int
        Number of points and of clusters.

    Returns
    -------
    list of int
        From a third of the largest on.
    """
    most = GRID[-1] if n < MANY else GRID[-2]
    largest = min(most, max(GRID[2], min(n / c, 2 * n**0.5)))
    return [k for k in GRID if largest / 3 <= k <= largest]


def medoid(partitions: Any) -> tuple[Any, Any]:
    """Find the partition with the largest mean adjusted Rand index to the others.

    Parameters
    ----------
    partitions : sequence of array of int of shape (n,)
        Labels, one array for each partition.

    Returns
    -------
    best : int
        Which one; of equals the one in the middle of the sequence.
    agreement : array of shape (m, m)
        The indices of all pairs.
    """
    from sklearn.metrics import adjusted_rand_score

    m = len(partitions)
    agreement = np.eye(m)
    for a in range(m):
        for b in range(a):
            index = adjusted_rand_score(partitions[a], partitions[b])
            agreement[a, b] = agreement[b, a] = index
    mean = (agreement.sum(axis=1) - 1) / max(1, m - 1) if m > 1 else np.ones(1)
    ties = np.flatnonzero(mean >= mean.max() - 1e-12)
    return int(ties[np.abs(ties - (m - 1) / 2).argmin()]), agreement


def steady(labels: Any, others: Any) -> Any:
    """Tell for each point how often other partitions find its cluster, and it there.

    Two clusters are the same if each has the largest overlap with the other.

    Parameters
    ----------
    labels : array of int of shape (n,)
        The partition.
    others : sequence of array of int of shape (n,)
        Other partitions.

    Returns
    -------
    array of shape (n,)
        Shares of the other partitions; ones if there are none.
    """
    from sklearn.metrics.cluster import contingency_matrix

    if not others:
        return np.ones(labels.size)
    found = np.zeros(labels.size)
    for other in others:
        counts = contingency_matrix(labels, other, sparse=True)
        there = np.asarray(counts.argmax(axis=1)).ravel()
        back = np.asarray(counts.argmax(axis=0)).ravel()
        same = back[there] == np.arange(there.size)
        found += same[labels] & (other == there[labels])
    return found / len(others)
