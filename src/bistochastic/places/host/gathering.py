"""Heaviest neighbors and sums over groups, of compressed rows and of tables."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array


def mates(S: csr_array, sizes: Any, free: Any, cap: float) -> np.ndarray:
    """Return for each row that is free its heaviest free neighbor, or -1.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Symmetric weights; every row has an entry.
    sizes : array of shape (n,)
        Points w of each row; an edge weighs s_ij (1 / w_i + 1 / w_j).
    free : array of bool of shape (n,)
        Which rows may be joined.
    cap : float
        Most points of both together.

    Returns
    -------
    array of int of shape (n,)
        Columns, of equal weights the first.
    """
    n = S.shape[0]
    i, j = np.repeat(np.arange(n), np.diff(S.indptr)), S.indices
    allowed = (i != j) & free[i] & free[j] & (sizes[i] + sizes[j] <= cap)
    weights = np.where(allowed, S.data * (1.0 / sizes[i] + 1.0 / sizes[j]), 0.0)
    best = np.maximum.reduceat(weights, S.indptr[:-1])
    hit = allowed & (weights == best[i])
    first = np.minimum.reduceat(np.where(hit, j, n), S.indptr[:-1])
    return np.where(first < n, first, -1).astype(np.int64)


def gathered(S: csr_array, groups: np.ndarray, number: int) -> csr_array:
    """Return P' S P, the sums of entries between groups.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Any matrix.
    groups : array of int of shape (n,)
        The group of each row and column.
    number : int
        How many groups there are.

    Returns
    -------
    csr_array of shape (number, number)
        Columns of a row in any order.
    """
    P = indicators(groups, number)
    return csr_array(csr_array(P.T) @ (S @ P))


def indicators(groups: np.ndarray, number: int) -> csr_array:
    """Return P, whose columns are the indicators of the groups."""
    n = groups.size
    return csr_array((np.ones(n), groups, np.arange(n + 1)), shape=(n, number))


def symmetric(S: csr_array) -> csr_array:
    """Return the mean of a matrix and its transpose, canonical."""
    T = csr_array(S.T)
    S = csr_array(T.T)  # as S, with columns in order
    if np.array_equal(S.indptr, T.indptr) and np.array_equal(S.indices, T.indices):
        return csr_array(((S.data + T.data) / 2, S.indices, S.indptr), shape=S.shape)
    return csr_array((S + T) / 2)
