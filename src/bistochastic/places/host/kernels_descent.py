"""Compiled bodies of searches for nearest neighbors."""

from typing import Any

import numpy as np
from numba import njit, prange

from bistochastic.neighbors import descent
from bistochastic.places.host.compiler import loops


def offer_leaves(x: np.ndarray, order: np.ndarray, size: int, lists: Any) -> None:
    """Offer the points of each leaf to one another, by all threads."""
    _offer_leaves(x, order, size, lists.columns, lists.costs, lists.fresh)


@njit(inline="always")
def _between(here, there):  # type: ignore[no-untyped-def]
    total = here.dtype.type(0)
    for q in range(here.size):
        gap = here[q] - there[q]
        total += gap * gap
    return total


@njit(inline="always")
def _offer(columns, costs, fresh, last, j, cost):  # type: ignore[no-untyped-def]
    if not cost < costs[last]:
        return
    for k in range(last + 1):
        if columns[k] == j:
            return
    k = last
    while k > 0 and costs[k - 1] > cost:
        columns[k], costs[k] = columns[k - 1], costs[k - 1]
        fresh[k] = fresh[k - 1]
        k -= 1
    columns[k], costs[k], fresh[k] = j, cost, True


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _offer_leaves(x, order, size, columns, costs, fresh):  # type: ignore[no-untyped-def]
    n, last = x.shape[0], columns.shape[1] - 1
    for leaf in prange((n + size - 1) // size):
        end = min(n, (leaf + 1) * size)
        for a in range(leaf * size, end):
            i = order[a]
            here, known, near, new = x[i], columns[i], costs[i], fresh[i]
            for b in range(max(0, end - size), end):
                j = order[b]
                if i != j:
                    _offer(known, near, new, last, j, _between(here, x[np.uint64(j)]))


def standing_in(lists: Any) -> tuple[np.ndarray, np.ndarray]:
    """Find lists in which each point stands, in one pass over all."""
    columns = np.full((len(lists.columns), descent.BACK), -1, lists.columns.dtype)
    fresh = np.zeros(columns.shape, dtype=bool)
    looked = lists.columns[:, : descent.LOOKED]
    _standing_in(looked, lists.fresh, columns, fresh)
    return columns, fresh


@loops()
def _standing_in(looked, fresh, back, back_fresh):  # type: ignore[no-untyped-def]
    n, most = back.shape
    count = np.zeros(n, dtype=np.int32)
    for i in range(n):
        for k in range(looked.shape[1]):
            j = looked[i, k]
            if j >= 0 and count[j] < most:
                back[j, count[j]], back_fresh[j, count[j]] = i, fresh[i, k]
                count[j] += 1


def offer_neighbors(x: np.ndarray, lists: Any, back: Any) -> Any:
    """Offer each point the neighbors of its neighbors, by all threads."""
    columns, costs = lists.columns.copy(), lists.costs.copy()
    new = np.zeros_like(lists.fresh)
    looked = min(descent.LOOKED, columns.shape[1])
    _offer_neighbors(
        x, looked, lists.columns, lists.fresh, back[0], back[1], columns, costs, new
    )
    return descent.Lists(columns, costs, new)


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _offer_neighbors(  # type: ignore[no-untyped-def]
    x, looked, columns, fresh, back, back_fresh, out, costs, new
):
    last = columns.shape[1] - 1
    for i in prange(x.shape[0]):
        here, known, near, since = x[i], out[i], costs[i], new[i]
        for a in range(looked + back.shape[1]):
            if a < looked:
                p, first = columns[i, a], fresh[i, a]
            else:
                p, first = back[i, a - looked], back_fresh[i, a - looked]
            if p < 0:
                continue
            for b in range(looked):
                if first or fresh[p, b]:
                    j = columns[p, b]
                    if j != i and j >= 0:
                        cost = _between(here, x[np.uint64(j)])
                        _offer(known, near, since, last, j, cost)
            for b in range(back.shape[1]):
                if first or back_fresh[p, b]:
                    j = back[p, b]
                    if j != i and j >= 0:
                        cost = _between(here, x[np.uint64(j)])
                        _offer(known, near, since, last, j, cost)


def ranked(
    Y: np.ndarray, X: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Measure squared distances and put them in order, by all threads."""
    columns, costs = columns.copy(), np.empty(columns.shape)
    _ranked(np.ascontiguousarray(Y), np.ascontiguousarray(X), columns, costs)
    return columns, costs


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _ranked(Y, X, columns, costs):  # type: ignore[no-untyped-def]
    d = X.shape[1]
    for i in prange(Y.shape[0]):
        here, found, near = Y[i], columns[i], costs[i]
        for k in range(found.size):
            j = found[k]
            there, total = X[np.uint64(j)], 0.0
            for q in range(d):
                gap = np.float64(here[q]) - np.float64(there[q])
                total += gap * gap
            place = k  # nearly in order before
            while place > 0 and (
                near[place - 1] > total
                or (near[place - 1] == total and found[place - 1] > j)
            ):
                near[place], found[place] = near[place - 1], found[place - 1]
                place -= 1
            near[place], found[place] = total, j
