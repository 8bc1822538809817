"""Compiled bodies on tables of candidates and on arrays."""

from typing import Any

import numpy as np
from numba import njit, prange
from scipy.sparse import csr_array

from bistochastic.graph.simplex import SAME, TRACE
from bistochastic.places.host import dense, kernels_entries
from bistochastic.places.host.compiler import loops


def distances(F: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return |f_i - f_j|^2 for the candidates j of each row i, without a copy of F."""
    out = np.empty(columns.shape)
    _distances(np.ascontiguousarray(F), rows, columns, out)
    return out


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _distances(F, rows, columns, out):  # type: ignore[no-untyped-def]
    m, c = np.uint64(columns.shape[1]), np.uint64(F.shape[1])
    for r in prange(np.uint64(columns.shape[0])):
        i = np.uint64(rows[r])
        for k in range(m):
            j = np.uint64(columns[r, k])
            total = 0.0
            for q in range(c):
                gap = F[i, q] - F[j, q]
                total += gap * gap
            out[r, k] = total


def halves(pattern: Any, values: np.ndarray) -> csr_array:
    """Return (S + S') / 2 of the positive weights, by places that are known."""
    indptr, indices, own, mirror = pattern.made(_merged)
    weights = np.ascontiguousarray(values)
    n = len(indptr) - 1
    ends = np.zeros_like(indptr)
    _count_halves(indptr, indices, own, mirror, weights, ends)
    np.cumsum(ends, out=ends)
    data = np.empty(ends[-1])
    columns = np.empty(ends[-1], dtype=indices.dtype)
    _fill_halves(indptr, indices, own, mirror, weights, ends, columns, data)
    return csr_array((data, columns, ends), shape=(n, n))


def _merged(columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the pattern of a table and its mirror image in compressed rows.

    And for every entry its place in its row of the table, and that of its mirror image
    in the other row, or -1.
    """
    n, m = columns.shape
    order = np.argsort(columns, axis=1, kind="stable").astype(np.int32)
    starts = np.zeros(n + 1, dtype=np.int64)
    starts[1:] = np.cumsum(np.bincount(columns.ravel(), minlength=n))
    back = np.empty(n * m, dtype=np.int32 if n * m < 2**31 else np.int64)
    _transposed(columns, starts.copy(), back)
    ends = np.zeros(n + 1, dtype=np.int64)
    _count_merged(columns, order, starts, back, ends)
    np.cumsum(ends, out=ends)
    kind = np.int32 if ends[-1] < 2**31 else np.int64
    indices = np.empty(ends[-1], dtype=kind)
    narrow = np.int8 if m < 2**7 else np.int16 if m < 2**15 else np.int32
    own, mirror = (np.empty(ends[-1], dtype=narrow) for _ in range(2))
    _fill_merged(columns, order, starts, back, ends, indices, own, mirror)
    return ends.astype(kind), indices, own, mirror


@loops()
def _transposed(columns, places, back):  # type: ignore[no-untyped-def]
    n, m = columns.shape
    for i in range(n):
        for k in range(m):
            j = columns[i, k]
            back[places[j]] = i * m + k  # in the order of i
            places[j] += 1


@loops(parallel=True)
def _count_merged(columns, order, starts, back, ends):  # type: ignore[no-untyped-def]
    n, m = columns.shape
    for i in prange(n):
        a, b, number = 0, starts[i], 0
        while a < m or b < starts[i + 1]:
            here = columns[i, order[i, a]] if a < m else n
            there = back[b] // m if b < starts[i + 1] else n
            a += here <= there
            b += there <= here
            number += 1
        ends[i + 1] = number


@loops(parallel=True)
def _fill_merged(columns, order, starts, back, ends, indices, own, mirror):  # type: ignore[no-untyped-def]
    n, m = columns.shape
    for i in prange(n):
        a, b, place = 0, starts[i], ends[i]
        while a < m or b < starts[i + 1]:
            here = columns[i, order[i, a]] if a < m else n
            there = back[b] // m if b < starts[i + 1] else n
            indices[place] = min(here, there)
            own[place] = mirror[place] = -1
            if here <= there:
                own[place] = order[i, a]
                a += 1
            if there <= here:
                mirror[place] = back[b] % m
                b += 1
            place += 1


@njit(inline="always")
def _half(weights, i, j, own, mirror):  # type: ignore[no-untyped-def]
    here = max(weights[i, own], 0.0) if own >= 0 else 0.0
    there = max(weights[j, mirror], 0.0) if mirror >= 0 else 0.0
    return here / 2 + there / 2


@loops(parallel=True)
def _count_halves(indptr, indices, own, mirror, weights, ends):  # type: ignore[no-untyped-def]
    for i in prange(indptr.size - 1):
        number = 0
        for k in range(indptr[i], indptr[i + 1]):
            number += _half(weights, i, indices[k], own[k], mirror[k]) > 0.0
        ends[i + 1] = number


@loops(parallel=True)
def _fill_halves(indptr, indices, own, mirror, weights, ends, columns, data):  # type: ignore[no-untyped-def]
    for i in prange(indptr.size - 1):
        place = ends[i]
        for k in range(indptr[i], indptr[i + 1]):
            value = _half(weights, i, indices[k], own[k], mirror[k])
            if value > 0.0:
                columns[place], data[place] = indices[k], value
                place += 1


def dense_positives(
    K: np.ndarray, omega: float, a: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return omega k_ij + a_i + a_j above `least` as the parts of a CSR."""
    K = K if K.flags.c_contiguous else K.T  # symmetric
    ends = np.zeros(a.size + 1, dtype=np.int64)
    _count_dense(K, omega, a, least, ends)
    np.cumsum(ends, out=ends)
    if dense.FEW * ends[-1] > K.size:
        return None
    data, indices = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
    _dense_positives(K, omega, a, least, ends, data, indices)
    return data, indices, ends


@loops(parallel=True)
def _count_dense(K, omega, a, least, counts):  # type: ignore[no-untyped-def]
    for i in prange(a.size):
        count = 0
        for j in range(a.size):
            count += a[i] + a[j] + omega * K[i, j] > least
        counts[i + 1] = count


@loops(parallel=True)
def _dense_positives(  # type: ignore[no-untyped-def]
    K, omega, a, least, ends, out, columns
):
    for i in prange(a.size):
        to = ends[i]
        for j in range(a.size):
            value = a[i] + a[j] + omega * K[i, j]
            if value > least:
                out[to] = value
                columns[to] = j
                to += 1


def first_weights(m: np.ndarray, *, k: int) -> np.ndarray:
    """Return the rows of the first graph, Eq. (18), row by row."""
    out = np.empty(m.shape)
    _first_weights(m, int(k), out)
    return out


@loops(parallel=True)
def _first_weights(m, k, out):  # type: ignore[no-untyped-def]
    n, width = m.shape
    for i in prange(n):
        row = m[i]
        ascending = True
        for j in range(1, width):
            ascending &= row[j - 1] <= row[j]
        if not ascending:
            row = np.sort(row)
        last, total = row[k], 0.0
        for j in range(k):
            total += last - row[j]
        made, near = out[i], 0
        same = total <= SAME * last
        for j in range(width):
            near += m[i, j] <= last
        largest = 0.0
        for j in range(width):
            if same:
                made[j] = 1.0 / near if m[i, j] <= last else 0.0
            else:
                made[j] = (last - m[i, j]) / total if m[i, j] < last else 0.0
            largest = max(largest, made[j])
        for j in range(width):
            if made[j] <= TRACE * largest:
                made[j] = 0.0


def relaxed_rows(m: np.ndarray, alphas: Any = None, *, alpha: Any = None) -> np.ndarray:
    """Solve rows of Eq. (14), row by row."""
    alphas = np.full(m.shape[0], alpha, float) if alphas is None else alphas
    ends = np.arange(m.shape[0] + 1) * m.shape[1]
    flat = kernels_entries.relaxed_rows(ends, np.ascontiguousarray(m).ravel(), alphas)
    return flat.reshape(m.shape)


def moved(weights: np.ndarray, rows: Any, columns: Any, u: np.ndarray) -> float:
    """Return the squared norm of DSD - S, of the rows of a table."""
    sums = np.zeros(columns.shape[0])
    _moved(weights, rows, columns, u, sums)
    return float(sums.sum())


@loops(parallel=True)
def _moved(weights, rows, columns, u, sums):  # type: ignore[no-untyped-def]
    for i in prange(columns.shape[0]):
        total = 0.0
        for k in range(columns.shape[1]):
            gap = (u[rows[i]] * u[columns[i, k]] - 1.0) * weights[i, k]
            total += gap * gap
        sums[i] = total


def dot(
    costs: np.ndarray, weights: np.ndarray, rows: Any, columns: Any, u: np.ndarray
) -> float:
    """Return the sum of m_ij u_i s_ij u_j where s_ij > 0, of the rows of a table."""
    sums = np.zeros(columns.shape[0])
    _dot(costs, weights, rows, columns, u, sums)
    return float(sums.sum())


@loops(parallel=True)
def _dot(costs, weights, rows, columns, u, sums):  # type: ignore[no-untyped-def]
    for i in prange(columns.shape[0]):
        total = 0.0
        for k in range(columns.shape[1]):
            if weights[i, k] > 0:
                total += costs[i, k] * weights[i, k] * u[columns[i, k]]
        sums[i] = total * u[rows[i]]
