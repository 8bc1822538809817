"""Compiled bodies on compressed rows: products, recurrences, systems, patterns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from bistochastic.core.arrays import in_range
from bistochastic.places.host import csr
from bistochastic.places.host.compiler import loops


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


@loops(parallel=True, fastmath={"reassoc", "contract"})
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


LINE = 64  # bytes of a cache line
SINGLE = 1e-5  # relative errors that singles do not make


def recurrence(
    S: Any,
    X: np.ndarray,
    Y: np.ndarray,
    center: float,
    terms: Sequence[tuple[float, float]],
    accuracy: float = 0.0,
) -> np.ndarray:
    """Return the last block of a recurrence: two blocks, one pass for each term."""
    matrix = S.native()
    kind = np.float32 if accuracy >= SINGLE else np.float64
    data = matrix.data.astype(kind, copy=False)
    width = X.shape[1]
    X, Y = _block(X, kind), _block(Y, kind)
    S.n_products += len(terms)
    for a, c in terms:
        factors = kind(a), kind(-a * center), kind(c)
        _three_term(matrix.indptr, matrix.indices, data, X, Y, *factors)
        X, Y = Y, X
    return np.ascontiguousarray(Y[:, :width], dtype=np.float64)


def _block(X: np.ndarray, kind: Any) -> np.ndarray:
    """Copy X into rows that begin where cache lines do, or inside as few as can be."""
    n, m = X.shape
    width = -(-m // 8) * 8
    size = n * width * np.dtype(kind).itemsize
    held = np.empty(size + LINE, dtype=np.uint8)
    start = -held.ctypes.data % LINE
    block = held[start : start + size].view(kind).reshape(n, width)
    block[:, :m], block[:, m:] = X, 0.0
    return block


def three_term(S: Any, X: np.ndarray, Y: np.ndarray, a: Any, b: Any, c: Any) -> None:
    """Put a S Y + b Y + c X in the place of X, in one pass."""
    _three_term(S.indptr, S.indices, S.data, X, Y, a, b, c)


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _three_term(indptr, indices, data, X, Y, a, b, c):  # type: ignore[no-untyped-def]
    m = np.uint64(Y.shape[1])
    for i in prange(np.uint64(X.shape[0])):
        x, y = X[i], Y[i]  # the result takes the place of X
        for q in range(m):
            x[q] = b * y[q] + c * x[q]
        _add_rows(indptr, indices, data, a, i, Y, x)


@njit(inline="always")
def _add_rows(indptr, indices, data, a, i, Y, out):  # type: ignore[no-untyped-def]
    k, end = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    m = np.uint64(Y.shape[1])
    while k + four <= end:  # four at a time: the sums are read and written less often
        w, y = a * data[k], Y[np.uint64(indices[k])]
        v, z = a * data[k + one], Y[np.uint64(indices[k + one])]
        t, r = a * data[k + two], Y[np.uint64(indices[k + two])]
        u, s = a * data[k + three], Y[np.uint64(indices[k + three])]
        for q in range(m):
            out[q] += w * y[q] + v * z[q] + t * r[q] + u * s[q]
        k += four
    while k < end:
        w, y = a * data[k], Y[np.uint64(indices[k])]
        for q in range(m):
            out[q] += w * y[q]
        k += one


def product(S: Any, v: np.ndarray) -> np.ndarray:
    """Return S v by all threads."""
    out = np.empty((S.shape[0], *v.shape[1:]), dtype=v.dtype)
    if v.ndim > 1:
        _products(S.indptr, S.indices, S.data, np.ascontiguousarray(v), out)
        return out
    _product(S.indptr, S.indices, S.data, v, out)
    return out


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _product(indptr, indices, data, v, out):  # type: ignore[no-untyped-def]
    for i in prange(np.uint64(out.size)):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            total += data[k] * v[np.uint64(indices[k])]
        out[i] = total


@loops(parallel=True, fastmath={"reassoc", "contract"})
def _products(indptr, indices, data, V, out):  # type: ignore[no-untyped-def]
    for i in prange(np.uint64(out.shape[0])):
        sums = out[i]
        sums[:] = 0.0
        _add_rows(indptr, indices, data, data.dtype.type(1), i, V, sums)


def weights(S: Any, u: np.ndarray, reuse: bool = False) -> np.ndarray:
    """Return the entries (u_i u_j) s_ij of DSD in the order of S, or in their place."""
    if not in_range(u):
        return csr.weights(S, u)
    out = S.data if reuse else np.empty_like(S.data)
    _weights(S.indptr, S.indices, S.data, u, out)
    return out


@loops(parallel=True)
def _weights(indptr, indices, data, u, out):  # type: ignore[no-untyped-def]
    for i in prange(np.uint64(indptr.size - 1)):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            out[k] = u[i] * u[np.uint64(indices[k])] * data[k]


def search(S: Any) -> np.ndarray:
    """Return the component of each point by union and find, without a transpose."""
    pattern = S.pattern()
    labels = np.empty(pattern.shape[0], dtype=np.int64)
    _search(pattern.indptr, pattern.indices, labels)
    return labels


@loops()
def _search(indptr, indices, labels):  # type: ignore[no-untyped-def]
    n = labels.size
    parent = np.arange(n)
    for i in range(n):
        a = i
        while parent[a] != a:  # halve the paths
            parent[a] = parent[parent[a]]
            a = parent[a]
        for k in range(indptr[i], indptr[i + 1]):
            b = int(indices[k])
            if b >= i:  # the mirror image of this edge does it
                continue
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            if a < b:
                parent[b] = a
            elif b < a:
                parent[a] = b
                a = b
    number = 0
    for i in range(n):  # a root is the first of its component
        if parent[i] == i:
            labels[i] = number
            number += 1
        else:
            labels[i] = labels[parent[i]]


def exponents(K: Any, omega: float, a: np.ndarray) -> np.ndarray:
    """Return exp(omega k_ij + a_i + a_j) in the order of K."""
    out = np.empty_like(K.data)
    _exponents(K.indptr, K.indices, K.data, omega, a, out)
    return out


@loops(parallel=True)
def _exponents(indptr, indices, data, omega, a, out):  # type: ignore[no-untyped-def]
    for i in prange(np.uint64(a.size)):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            out[k] = np.exp(a[i] + a[np.uint64(indices[k])] + omega * data[k])


def positives(
    K: Any, omega: float, a: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return omega k_ij + a_i + a_j above `least` as the parts of a CSR."""
    ends = np.zeros_like(K.indptr)
    _count_positives(K.indptr, K.indices, K.data, omega, a, least, ends)
    np.cumsum(ends, out=ends)
    data, indices = np.empty(ends[-1]), np.empty(ends[-1], dtype=K.indices.dtype)
    _positives(K.indptr, K.indices, K.data, omega, a, least, ends, data, indices)
    return data, indices, ends


@loops(parallel=True)
def _count_positives(  # type: ignore[no-untyped-def]
    indptr, indices, data, omega, a, least, counts
):
    for i in prange(np.uint64(a.size)):
        count = 0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            count += a[i] + a[np.uint64(indices[k])] + omega * data[k] > least
        counts[i + np.uint64(1)] = count


@loops(parallel=True)
def _positives(  # type: ignore[no-untyped-def]
    indptr, indices, data, omega, a, least, ends, out, columns
):
    for i in prange(np.uint64(a.size)):
        to = np.uint64(ends[i])
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            value = a[i] + a[np.uint64(indices[k])] + omega * data[k]
            if value > least:
                out[to] = value
                columns[to] = indices[k]
                to += np.uint64(1)


@loops()
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
