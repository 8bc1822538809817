"""Choices without labels: the partition that agrees most with the others."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

GRID = (5, 7, 10, 14, 20, 28, 40, 56)  # numbers of neighbors to choose from
FULL = 4  # cells of a table of common points, for each point, up to which it is full
MANY, VERY_MANY = (50_000, 28), (200_000, 20)  # from so many points on, the largest


def grid(n: int, c: int) -> list[int]:
    """Return the numbers of neighbors to choose from.

    Up to the mean size of a cluster and twice the root of n. Of very many points fewer
    are enough, since more pairs lie along every border.

    Parameters
    ----------
    n, c : int
        Number of points and of clusters.

    Returns
    -------
    list of int
        From a third of the largest on; of very many points, from a half.
    """
    largest = min(GRID[-1], max(GRID[2], min(n / c, 2 * n**0.5)))
    least = largest / 3
    for number, most in (MANY, VERY_MANY):
        if n >= number and largest >= most:
            largest, least = most, most / 2
    return [k for k in GRID if least <= k <= largest]


def medoid(partitions: Any, sizes: Any = None) -> tuple[Any, Any]:
    """Find the partition with the largest mean adjusted Rand index to the others.

    Parameters
    ----------
    partitions : sequence of array of int of shape (n,)
        Labels, one array for each partition.
    sizes : array of shape (n,), optional
        How many points each row stands for; one by default.

    Returns
    -------
    best : int
        Which one; of equals the one in the middle of the sequence.
    agreement : array of shape (m, m)
        The indices of all pairs.
    """
    m = len(partitions)
    agreement = np.eye(m)
    for a in range(m):
        for b in range(a):
            index = rand_index(partitions[a], partitions[b], sizes)
            agreement[a, b] = agreement[b, a] = index
    mean = (agreement.sum(axis=1) - 1) / max(1, m - 1) if m > 1 else np.ones(1)
    ties = np.flatnonzero(mean >= mean.max() - 1e-12)
    return int(ties[np.abs(ties - (m - 1) / 2).argmin()]), agreement


def counts(labels: Any, other: Any, sizes: Any = None) -> Any:
    """Count the points that two partitions have in common, cluster by cluster.

    Parameters
    ----------
    labels, other : array of int of shape (n,)
        Labels from 0 on.
    sizes : array of shape (n,), optional
        How many points each row stands for; one by default.

    Returns
    -------
    csr_array of shape (q, r)
        A row for each label, a column for each label of the other partition.
    """
    q, r = int(labels.max()) + 1, int(other.max()) + 1
    keys = labels * np.int64(r) + other
    if q * r <= FULL * labels.size:
        found = np.bincount(keys, sizes, minlength=q * r)
        return csr_array(found.reshape(q, r).astype(np.float64))
    keys, place = np.unique(keys, return_inverse=True)
    found = np.bincount(place, sizes).astype(np.float64)
    return csr_array((found, (keys // r, keys % r)), shape=(q, r))


def rand_index(labels: Any, other: Any, sizes: Any = None) -> float:
    """Return the adjusted Rand index of two partitions.

    Parameters
    ----------
    labels, other : array of int of shape (n,)
        Labels from 0 on.
    sizes : array of shape (n,), optional
        How many points each row stands for; one by default.

    Returns
    -------
    float
        1 if they are the same, about 0 if one says nothing of the other.
    """
    table = counts(labels, other, sizes)
    both, here, there = (
        float(np.sum(x * (x - 1)) / 2)
        for x in (table.data, table.sum(axis=1), table.sum(axis=0))
    )
    n = float(table.sum())
    by_chance = here * there / (n * (n - 1) / 2) if n > 1 else 0.0
    most = (here + there) / 2
    return 1.0 if most == by_chance else (both - by_chance) / (most - by_chance)


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
    if not others:
        return np.ones(labels.size)
    found = np.zeros(labels.size)
    for other in others:
        table = counts(labels, other)
        there, back = (np.asarray(table.argmax(axis=a)).ravel() for a in (1, 0))
        same = back[there] == np.arange(there.size)
        found += same[labels] & (other == there[labels])
    return found / len(others)
