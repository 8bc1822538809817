"""Compiled bodies on the entries of symmetric patterns: a step of the loop."""

from typing import Any

import numpy as np
from numba import njit, prange
from scipy.sparse import csr_array

from bistochastic.graph.simplex import TRACE
from bistochastic.places.host.compiler import loops

BANDS = 64  # pieces of work, each with an array of n numbers


def penalties(
    pattern: Any, values: np.ndarray, lam: float, F: np.ndarray
) -> np.ndarray:
    """Return m_ij + lam |f_i - f_j|^2 on a pattern, without copies of F."""
    out = np.empty_like(values)
    F = np.ascontiguousarray(F)
    _penalties(pattern.indptr, pattern.indices, values, float(lam), F, out)
    return out


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _penalties(indptr, indices, values, lam, F, out):  # type: ignore[no-untyped-def]
    c = np.uint64(F.shape[1])
    for i in prange(np.uint64(indptr.size - 1)):
        own = F[i]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            other = F[np.uint64(indices[k])]
            total = 0.0
            for q in range(c):
                gap = own[q] - other[q]
                total += gap * gap
            out[k] = values[k] + lam * total


def relaxed_rows(
    indptr: np.ndarray, m: np.ndarray, alphas: Any = None, *, alpha: Any = None
) -> np.ndarray:
    """Solve rows of Eq. (14), given entry by entry."""
    out = np.empty_like(m)
    alphas = np.full(indptr.size - 1, alpha, float) if alphas is None else alphas
    _relaxed(indptr, m, alphas, out)
    return out


@loops(parallel=True)
def _relaxed(indptr, m, alphas, out):  # type: ignore[no-untyped-def]
    for i in prange(alphas.size):
        start, end = indptr[i], indptr[i + 1]
        factor = -0.5 / alphas[i]
        for k in range(start, end):
            out[k] = factor * m[k]
        _project(out, start, end)


@njit(inline="always")
def _project(out, start, end):  # type: ignore[no-untyped-def]
    """Project a row on the simplex in its place, and drop traces.

    Entries that do not stay positive are dropped time and again (Michelot, 1986).
    """
    top = -np.inf
    for k in range(start, end):
        top = max(top, out[k])
    theta, before = -np.inf, end - start + 1
    while True:
        number, total = 0, 0.0
        for k in range(start, end):
            if out[k] - top > theta:
                total += out[k] - top
                number += 1
        if number >= before:  # rounding may bring one back
            break
        before, theta = number, (total - 1.0) / number
    least = -TRACE * theta  # the largest weight is that at the top
    for k in range(start, end):
        weight = out[k] - top - theta
        out[k] = weight if weight > least else 0.0


def aggregated_rows(
    indptr: np.ndarray,
    m: np.ndarray,
    sizes: np.ndarray,
    pairs: np.ndarray,
    *,
    alpha: float,
) -> np.ndarray:
    """Solve rows of Eq. (14) for aggregates, given entry by entry."""
    out = np.empty_like(m)
    _aggregated(indptr, m, sizes, pairs, -0.5 / alpha, out)
    return out


@loops(parallel=True)
def _aggregated(indptr, m, sizes, pairs, factor, out):  # type: ignore[no-untyped-def]
    for i in prange(sizes.size):
        start, end = indptr[i], indptr[i + 1]
        top = -np.inf
        for k in range(start, end):
            out[k] = factor * m[k]
            top = max(top, out[k])
        theta, before = -np.inf, end - start + 1
        while True:
            number, total, share = 0, 0.0, 0.0
            for k in range(start, end):
                if out[k] - top > theta:
                    total += (out[k] - top) * pairs[k]
                    share += pairs[k]
                    number += 1
            if number >= before:  # rounding may bring one back
                break
            before, theta = number, (total - sizes[i]) / share
        largest = 0.0
        for k in range(start, end):
            out[k] = max(out[k] - top - theta, 0.0) * pairs[k]
            largest = max(largest, out[k])
        for k in range(start, end):
            if out[k] <= TRACE * largest:
                out[k] = 0.0


def mirrored_mean(pattern: Any, values: np.ndarray) -> csr_array:
    """Return (S + S') / 2 of the positive weights on a pattern."""
    indptr, indices, mirror = pattern.indptr, pattern.indices, pattern.mirror
    ends = np.zeros_like(indptr)
    _count_means(indptr, values, mirror, ends)
    np.cumsum(ends, out=ends)
    data, columns = np.empty(ends[-1]), np.empty(ends[-1], dtype=indices.dtype)
    _fill_means(indptr, indices, values, mirror, ends, data, columns)
    return csr_array((data, columns, ends), shape=(pattern.n, pattern.n))


@loops(parallel=True)
def _count_means(indptr, values, mirror, ends):  # type: ignore[no-untyped-def]
    for i in prange(indptr.size - 1):
        number = 0
        for k in range(indptr[i], indptr[i + 1]):
            number += values[k] > 0 or values[mirror[k]] > 0
        ends[i + 1] = number


@loops(parallel=True)
def _fill_means(  # type: ignore[no-untyped-def]
    indptr, indices, values, mirror, ends, data, columns
):
    for i in prange(indptr.size - 1):
        to = ends[i]
        for k in range(indptr[i], indptr[i + 1]):
            own, other = values[k], values[mirror[k]]
            if own > 0 or other > 0:
                data[to] = max(own, 0.0) / 2 + max(other, 0.0) / 2
                columns[to] = indices[k]
                to += 1


def supported(S: csr_array) -> csr_array:
    """Return s_ij times the root of (S^2)_ij on the pattern of S."""
    square = np.empty_like(S.data)
    _squared(S.indptr, S.indices, S.data, square)
    return csr_array((square, S.indices, S.indptr), shape=S.shape)


@loops(parallel=True)
def _squared(indptr, indices, data, out):  # type: ignore[no-untyped-def]
    """Lay out a row, and meet it with the rows of its neighbors.

    Sums go by the order of columns from either end, so that mirrored entries agree.
    """
    n = indptr.size - 1
    step = max(1, (n + BANDS - 1) // BANDS)
    for band in prange(BANDS):
        held = np.zeros(n)
        for i in range(min(n, band * step), min(n, (band + 1) * step)):
            start, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            for k in range(start, end):
                held[np.uint64(indices[k])] = data[k]
            for k in range(start, end):
                j = np.uint64(indices[k])
                total = 0.0
                for e in range(
                    np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)])
                ):
                    total += held[np.uint64(indices[e])] * data[e]
                out[k] = data[k] * np.sqrt(total)
            for k in range(start, end):
                held[np.uint64(indices[k])] = 0.0


def mates(S: csr_array, sizes: Any, free: Any, cap: float) -> np.ndarray:
    """Return for each row that is free its heaviest free neighbor, or -1."""
    out = np.empty(S.shape[0], dtype=np.int64)
    _mates(S.indptr, S.indices, S.data, sizes, free, float(cap), out)
    return out


@loops(parallel=True)
def _mates(indptr, indices, data, sizes, free, cap, out):  # type: ignore[no-untyped-def]
    for i in prange(out.size):
        best, heaviest = -1, 0.0
        if free[i]:
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if j == i or not free[j] or sizes[i] + sizes[j] > cap:
                    continue
                weight = data[k] * (1.0 / sizes[i] + 1.0 / sizes[j])
                if weight > heaviest:
                    best, heaviest = j, weight
        out[i] = best


def gathered(S: csr_array, groups: np.ndarray, number: int) -> csr_array:
    """Return P' S P, the sums of entries between groups, in one pass for each row."""
    members = np.argsort(groups, kind="stable")
    starts = np.zeros(number + 1, dtype=np.int64)
    np.cumsum(np.bincount(groups, minlength=number), out=starts[1:])
    groups = groups.astype(np.int32)
    ends = np.zeros(number + 1, dtype=np.int64)
    given = S.indptr, S.indices, S.data, groups, members, starts
    _count_gathered(*given[:2], *given[3:], ends)
    np.cumsum(ends, out=ends)
    kind = np.int32 if ends[-1] < 2**31 else np.int64
    data, columns = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
    _fill_gathered(*given, ends, data, columns)
    parts = data, columns, ends.astype(kind)
    return csr_array(parts, shape=(number, number))


@loops(parallel=True)
def _count_gathered(  # type: ignore[no-untyped-def]
    indptr, indices, groups, members, starts, ends
):
    number = starts.size - 1
    step = max(1, (number + BANDS - 1) // BANDS)
    for band in prange(BANDS):
        seen = np.full(number, -1, np.int32)
        for g in range(min(number, band * step), min(number, (band + 1) * step)):
            count = 0
            for at in range(starts[g], starts[g + 1]):
                i = members[at]
                for k in range(indptr[i], indptr[i + 1]):
                    h = groups[indices[k]]
                    if seen[h] != g:
                        seen[h] = g
                        count += 1
            ends[g + 1] = count


@loops(parallel=True)
def _fill_gathered(  # type: ignore[no-untyped-def]
    indptr, indices, data, groups, members, starts, ends, out, columns
):
    number = starts.size - 1
    step = max(1, (number + BANDS - 1) // BANDS)
    for band in prange(BANDS):
        place = np.full(number, -1, np.int64)
        for g in range(min(number, band * step), min(number, (band + 1) * step)):
            first = to = ends[g]
            for at in range(starts[g], starts[g + 1]):
                i = members[at]
                for k in range(indptr[i], indptr[i + 1]):
                    h = groups[indices[k]]
                    if place[h] < first:
                        place[h] = to
                        columns[to] = h
                        out[to] = 0.0
                        to += 1
                    out[place[h]] += data[k]
