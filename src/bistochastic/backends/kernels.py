"""Compiled bodies of functions that stand as readable texts elsewhere.

A body takes the arguments of its text, with the CSR holder in place of any graph, and
gives the same result to rounding; it may overwrite what the text says.

Threads wait asleep. With OpenMP's usual wait in a busy loop, one other busy process on
two cores made these bodies three times slower than a single thread; asleep, they are as
fast as that, and on an idle machine nearly twice as fast.
"""

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, prange

from bistochastic.backends import csr, dense
from bistochastic.scaling import matching, systems
from bistochastic.spectrum import filtered


def conjugate_gradients(
    S: Any, u: np.ndarray, r: np.ndarray, b: np.ndarray, accuracy: float, limit: int
) -> np.ndarray:
    """Solve the Newton system, with one pass over the vectors for each product."""
    matrix = S.native()
    x, q, uq, Hq = (np.empty_like(b) for _ in range(4))
    S.n_products += _conjugate_gradients(
        matrix.indptr, matrix.indices, matrix.data,
        u, r, b, accuracy, limit, x, q, uq, Hq,
    )  # fmt: skip
    return x


@njit(parallel=True, cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _conjugate_gradients(  # type: ignore[no-untyped-def]
    indptr, indices, data, u, r, b, accuracy, limit, x, q, uq, Hq
):
    n = np.uint64(b.size)  # unsigned indices spare a test for negative ones
    size = 0.0
    for i in prange(n):
        x[i] = 0.0
        q[i] = b[i] / r[i]
        uq[i] = u[i] * q[i]
        size += b[i] * q[i]
    goal = accuracy**2 * size
    products = 0
    while products < limit:
        products += 1
        curvature = cross = square = 0.0
        for i in prange(n):
            total = 0.0
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
                total += data[k] * uq[np.uint64(indices[k])]
            Hq[i] = r[i] * q[i] + u[i] * total
            curvature += q[i] * Hq[i]
            cross += b[i] * Hq[i] / r[i]
            square += Hq[i] * Hq[i] / r[i]
        if not curvature > 0:
            break
        step = size / curvature
        # the next size, known in advance, lets one pass do what follows
        ratio = max(0.0, 1.0 + (step * square - 2.0 * cross) * step / size)
        size = 0.0
        for i in prange(n):
            x[i] += step * q[i]
            b[i] -= step * Hq[i]
            z = b[i] / r[i]
            size += b[i] * z
            q[i] = z + ratio * q[i]
            uq[i] = u[i] * q[i]
        if not size > goal:
            break
    return products


def three_term(
    S: Any, X: np.ndarray, Y: np.ndarray, a: float, b: float, c: float
) -> np.ndarray:
    """Return a S Y + b Y + c X in one pass over the entries and the vectors."""
    S.n_products += 1
    matrix = S.native()
    X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
    out = np.empty_like(Y)
    _three_term(matrix.indptr, matrix.indices, matrix.data, X, Y, a, b, c, out)
    return out


@njit(parallel=True, cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _three_term(indptr, indices, data, X, Y, a, b, c, out):  # type: ignore[no-untyped-def]
    n, m = np.uint64(Y.shape[0]), np.uint64(Y.shape[1])
    for i in prange(n):
        for q in range(m):
            out[i, q] = b * Y[i, q] + c * X[i, q]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j, w = np.uint64(indices[k]), a * data[k]
            for q in range(m):
                out[i, q] += w * Y[j, q]


def product(S: Any, v: np.ndarray) -> np.ndarray:
    """Return S v by all threads."""
    if v.ndim > 1:
        v = np.ascontiguousarray(v)
        out = np.empty_like(v)
        _products(S.indptr, S.indices, S.data, v, out)
        return out
    out = np.empty_like(v)
    _product(S.indptr, S.indices, S.data, v, out)
    return out


@njit(parallel=True, cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _product(indptr, indices, data, v, out):  # type: ignore[no-untyped-def]
    for i in prange(np.uint64(v.size)):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            total += data[k] * v[np.uint64(indices[k])]
        out[i] = total


@njit(parallel=True, cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _products(indptr, indices, data, V, out):  # type: ignore[no-untyped-def]
    n, m = np.uint64(V.shape[0]), np.uint64(V.shape[1])
    for i in prange(n):
        for q in range(m):
            out[i, q] = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j, w = np.uint64(indices[k]), data[k]
            for q in range(m):
                out[i, q] += w * V[j, q]


def weights(S: Any, u: np.ndarray) -> np.ndarray:
    """Return the entries (u_i u_j) s_ij of DSD in the order of S."""
    out = np.empty_like(S.data)
    _weights(S.indptr, S.indices, S.data, u, out)
    return out


@njit(parallel=True, cache=True, nogil=True)
def _weights(indptr, indices, data, u, out):  # type: ignore[no-untyped-def]
    for i in prange(np.uint64(u.size)):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            out[k] = u[i] * u[np.uint64(indices[k])] * data[k]


def exponents(K: Any, omega: float, a: np.ndarray) -> np.ndarray:
    """Return exp(omega k_ij + a_i + a_j) in the order of K."""
    out = np.empty_like(K.data)
    _exponents(K.indptr, K.indices, K.data, omega, a, out)
    return out


@njit(parallel=True, cache=True, nogil=True)
def _exponents(indptr, indices, data, omega, a, out):  # type: ignore[no-untyped-def]
    for i in prange(np.uint64(a.size)):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            out[k] = np.exp(a[i] + a[np.uint64(indices[k])] + omega * data[k])


def positives(
    K: Any, omega: float, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the positive entries of omega k_ij + a_i + a_j as the parts of a CSR."""
    ends = np.zeros_like(K.indptr)
    _count_positives(K.indptr, K.indices, K.data, omega, a, ends)
    np.cumsum(ends, out=ends)
    data, indices = np.empty(ends[-1]), np.empty(ends[-1], dtype=K.indices.dtype)
    _positives(K.indptr, K.indices, K.data, omega, a, ends, data, indices)
    return data, indices, ends


@njit(parallel=True, cache=True, nogil=True)
def _count_positives(  # type: ignore[no-untyped-def]
    indptr, indices, data, omega, a, counts
):
    for i in prange(np.uint64(a.size)):
        count = 0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            count += a[i] + a[np.uint64(indices[k])] + omega * data[k] > 0
        counts[i + np.uint64(1)] = count


@njit(parallel=True, cache=True, nogil=True)
def _positives(  # type: ignore[no-untyped-def]
    indptr, indices, data, omega, a, ends, out, columns
):
    for i in prange(np.uint64(a.size)):
        to = np.uint64(ends[i])
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            value = a[i] + a[np.uint64(indices[k])] + omega * data[k]
            if value > 0:
                out[to] = value
                columns[to] = indices[k]
                to += np.uint64(1)


def dense_positives(
    K: np.ndarray, omega: float, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the positive entries of omega k_ij + a_i + a_j as the parts of a CSR."""
    K = K if K.flags.c_contiguous else K.T  # symmetric
    ends = np.zeros(a.size + 1, dtype=np.int64)
    _count_dense(K, omega, a, ends)
    np.cumsum(ends, out=ends)
    if dense.FEW * ends[-1] > K.size:
        return None
    data, indices = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
    _dense_positives(K, omega, a, ends, data, indices)
    return data, indices, ends


@njit(parallel=True, cache=True, nogil=True)
def _count_dense(K, omega, a, counts):  # type: ignore[no-untyped-def]
    for i in prange(a.size):
        count = 0
        for j in range(a.size):
            count += a[i] + a[j] + omega * K[i, j] > 0
        counts[i + 1] = count


@njit(parallel=True, cache=True, nogil=True)
def _dense_positives(  # type: ignore[no-untyped-def]
    K, omega, a, ends, out, columns
):
    for i in prange(a.size):
        to = ends[i]
        for j in range(a.size):
            value = a[i] + a[j] + omega * K[i, j]
            if value > 0:
                out[to] = value
                columns[to] = j
                to += 1


@njit(cache=True, nogil=True)
def mirrored(indptr, indices, data):  # type: ignore[no-untyped-def]
    """Tell whether a canonical CSR matrix equals its transpose to the bit.

    Rows are read in order, so the mirror images of their entries turn up in order in
    every other row: one cursor a row finds them without a transpose.
    """
    cursor = indptr.copy()
    for i in range(np.uint64(indptr.size - 1)):
        start, end = np.uint64(cursor[i]), np.uint64(indptr[i + np.uint64(1)])
        if start < end and np.uint64(indices[start]) < i:
            return False
        for k in range(start, end):
            j = np.uint64(indices[k])
            if j == i:
                continue
            twin = np.uint64(cursor[j])
            if (
                twin == np.uint64(indptr[j + np.uint64(1)])
                or np.uint64(indices[twin]) != i
                or data[twin] != data[k]
            ):
                return False
            cursor[j] += 1
    return True


def _openmp() -> bool:
    """Load OpenMP with threads that sleep while they wait; tell whether it is there."""
    policy = os.environ.get("OMP_WAIT_POLICY")
    os.environ["OMP_WAIT_POLICY"] = policy or "PASSIVE"  # read once, when it loads
    try:
        importlib.import_module("numba.np.ufunc.omppool")
    except ImportError:
        return False
    finally:
        if policy is None:
            del os.environ["OMP_WAIT_POLICY"]
    return True


Bodies = dict[Callable[..., Any], Callable[..., Any]]
ON_PATTERNS: Bodies = {
    text: njit(cache=True, nogil=True)(text)
    for text in (matching.greedy_matching, matching.maximum_matching)
}
ON_ROWS: Bodies = {
    csr.product: product,
    csr.weights: weights,
    csr.exponents: exponents,
    csr.positives: positives,
    systems.conjugate_gradients: conjugate_gradients,
    filtered.three_term: three_term,
}
ON_ARRAYS: Bodies = {dense.positives: dense_positives}


def _without_threads() -> None:
    ON_ROWS.clear()
    ON_ARRAYS.clear()


if not _openmp():  # Numba's own pool ends the process when two threads call it
    _without_threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_without_threads)  # OpenMP dies with the fork
