"""A maximum matching of rows and columns: the longest positive diagonal of Eq. (4).

Both functions are written in plain loops, to be compiled as they stand.
"""

from typing import Any

import numpy as np


def greedy_matching(indptr: Any, indices: Any, looped: Any) -> Any:
    """Match most rows of a symmetric pattern, in pairs, by the rule of Karp and Sipser.

    A row with a positive diagonal entry keeps its own column. The others pair up,
    those with one free neighbor left first, each with the neighbor that has the
    fewest left itself.

    Parameters
    ----------
    indptr, indices : arrays of int
        A symmetric pattern in compressed rows.
    looped : array of bool of shape (n,)
        The rows whose diagonal entry is positive.

    Returns
    -------
    array of int of shape (n,)
        The column matched with each row; -1 for none.
    """
    n = indptr.size - 1
    mate = np.full(n, -1, dtype=np.int64)
    free = np.empty(n, dtype=np.int64)  # neighbors left
    for i in range(n):
        free[i] = indptr[i + 1] - indptr[i]
    for i in range(n):
        if looped[i]:
            mate[i] = i
            for k in range(indptr[i], indptr[i + 1]):
                free[indices[k]] -= 1
    ready = np.empty(n, dtype=np.int64)  # rows with one neighbor left
    top = following = 0
    for i in range(n):
        if free[i] == 1 and mate[i] < 0:
            ready[top] = i
            top += 1
    while top > 0 or following < n:
        if top > 0:
            top -= 1
            i = ready[top]
        else:
            i = following
            following += 1
        if mate[i] >= 0:
            continue
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if mate[j] < 0 and (mate[i] < 0 or free[j] < free[mate[i]]):
                mate[i] = j
        if mate[i] < 0:
            continue
        mate[mate[i]] = i
        for row in (i, mate[i]):
            for k in range(indptr[row], indptr[row + 1]):
                j = indices[k]
                free[j] -= 1
                if free[j] == 1 and mate[j] < 0:
                    ready[top] = j
                    top += 1
    return mate


def maximum_matching(indptr: Any, indices: Any, start: Any) -> tuple[Any, Any]:
    """Match as many rows as possible with columns that they have entries in.

    The method of Hopcroft and Karp: shortest augmenting paths, all of one length at
    a time, at most about sqrt(n) lengths with work proportional to the entries each.
    SciPy's ``maximum_bipartite_matching`` (up to 1.17 at least) does not mark dead
    ends and takes exponential time on chain-like patterns, such as those of neighbor
    graphs and contact maps.

    Parameters
    ----------
    indptr, indices : arrays of int
        A square pattern in compressed rows.
    start : array of int of shape (n,)
        A matching to begin with: the column of each row, or -1.

    Returns
    -------
    column_of : array of int of shape (n,)
        The column matched with each row; -1 for none.
    reached : array of bool of shape (n,)
        The rows that an unmatched row reaches by alternating paths, itself included.
    """
    n = indptr.size - 1
    column_of = start.copy()
    row_of = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        if column_of[i] >= 0:
            row_of[column_of[i]] = i
    level = np.empty(n, dtype=np.int64)
    path = np.empty(n, dtype=np.int64)  # the queue, then the path
    arc = np.empty(n, dtype=indptr.dtype)  # the next entry to try in each row
    while True:
        tail = 0
        for i in range(n):
            level[i] = 0 if column_of[i] < 0 else -1
            arc[i] = indptr[i]
            if column_of[i] < 0:
                path[tail] = i
                tail += 1
        head, length = 0, n
        while head < tail and level[path[head]] <= length:
            i = path[head]
            head += 1
            for k in range(indptr[i], indptr[i + 1]):
                owner = row_of[indices[k]]
                if owner < 0:
                    length = level[i]
                elif level[owner] < 0:
                    level[owner] = level[i] + 1
                    path[tail] = owner
                    tail += 1
        if length == n:
            return column_of, level >= 0
        for first in range(n):
            if column_of[first] >= 0:
                continue
            depth = 0
            path[0] = first
            while depth >= 0:
                i = path[depth]
                if arc[i] == indptr[i + 1]:  # a dead end; never entered again
                    level[i] = -1
                    depth -= 1
                    continue
                owner = row_of[indices[arc[i]]]
                arc[i] += 1
                if owner < 0:  # a free column: every row of the path moves on
                    while depth >= 0:
                        i = path[depth]
                        column_of[i] = indices[arc[i] - 1]
                        row_of[column_of[i]] = i
                        level[i] = -1
                        depth -= 1
                elif level[owner] == level[i] + 1:
                    depth += 1
                    path[depth] = owner
