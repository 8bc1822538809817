"""A maximum matching of rows and columns: the longest positive diagonal of Eq. (4)."""

import numpy as np


def maximum_matching(indptr, indices):
    """Match as many rows as possible with columns that they have entries in.

    The method of Hopcroft and Karp: shortest augmenting paths, all of one length at
    a time, at most about sqrt(n) lengths with work proportional to the entries each.
    SciPy's ``maximum_bipartite_matching`` (up to 1.17 at least) does not mark dead
    ends and takes exponential time on chain-like patterns, such as those of neighbor
    graphs and contact maps. Written in plain loops, for the compiler as well.

    Parameters
    ----------
    indptr, indices : arrays of int
        A square pattern in compressed rows.

    Returns
    -------
    column_of : array of int of shape (n,)
        The column matched with each row; -1 for none.
    reached : array of bool of shape (n,)
        The rows that an unmatched row reaches by alternating paths, itself included.
    """
    n = indptr.size - 1
    column_of = np.full(n, -1, dtype=np.int64)
    row_of = np.full(n, -1, dtype=np.int64)
    for loops in (True, False):  # a greedy start: own column first, then any free one
        for i in range(n):
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if column_of[i] < 0 and row_of[j] < 0 and (j == i or not loops):
                    row_of[j] = i
                    column_of[i] = j
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
        for start in range(n):
            if column_of[start] >= 0:
                continue
            depth = 0
            path[0] = start
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
