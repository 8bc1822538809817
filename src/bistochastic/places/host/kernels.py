"""Compiled bodies of functions that stand as readable texts elsewhere.

A body takes the arguments of its text, with the CSR holder in place of any graph, and
gives the same result to rounding; it may overwrite what the text says.

Threads wait asleep. With OpenMP's usual wait in a busy loop, one other busy process on
two cores made these bodies three times slower than a single thread; asleep, they are as
fast as that, and on an idle machine nearly twice as fast.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import config, get_num_threads, njit, prange, set_num_threads
from scipy.sparse import csr_array

from bistochastic.core import recurrence as recurrence_text
from bistochastic.core.arrays import in_range
from bistochastic.graph import components
from bistochastic.neighbors import descent
from bistochastic.places import tables as costs
from bistochastic.places.host import csr, dense
from bistochastic.places.host.compiler import loops
from bistochastic.scaling import linear_systems as systems
from bistochastic.scaling import matching


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


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let the bodies use so many threads, at most those that there are."""
    before = get_num_threads()
    most = int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    set_num_threads(max(1, min(number, most)))
    try:
        yield
    finally:
        set_num_threads(before)


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
    text: loops()(text)
    for text in (matching.greedy_matching, matching.maximum_matching)
}
ON_ROWS: Bodies = {
    csr.product: product,
    csr.weights: weights,
    csr.three_term: three_term,
    csr.exponents: exponents,
    csr.positives: positives,
    systems.conjugate_gradients: conjugate_gradients,
    recurrence_text.recurrence: recurrence,
    components.search: search,
}
ON_TABLES: Bodies = {
    costs.distances: distances,
    csr.halves: halves,
    descent.offer_leaves: offer_leaves,
    descent.offer_neighbors: offer_neighbors,
    descent.standing_in: standing_in,
}
ON_ARRAYS: Bodies = {dense.positives: dense_positives}


def _without_threads() -> None:
    ON_ROWS.clear()
    ON_TABLES.clear()
    ON_ARRAYS.clear()


if not _openmp():  # Numba's own pool ends the process when two threads call it
    _without_threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_without_threads)  # OpenMP dies with the fork
