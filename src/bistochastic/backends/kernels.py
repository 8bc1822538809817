"""Compiled bodies of functions that stand as readable texts elsewhere.

A body takes the arguments of its text and gives the same result to rounding; it may
overwrite what the text says. None starts threads, so that calls from threads, from
forked processes and beside other work are safe.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bistochastic.backends import csr
from bistochastic.scaling import matching, newton

compiled = njit(cache=True, nogil=True)
summing = njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})


@summing
def bent(Sq, u, r, q):  # type: ignore[no-untyped-def]
    """Return Hq and q'Hq; Hq takes the place of Sq."""
    curvature = 0.0
    for i in range(q.size):
        Sq[i] = r[i] * q[i] + u[i] * Sq[i]
        curvature += q[i] * Sq[i]
    return Sq, curvature


@summing
def advanced(x, b, q, Hq, w, step):  # type: ignore[no-untyped-def]
    """Go one step along q, in place; z takes the place of Hq."""
    size = 0.0
    for i in range(x.size):
        x[i] += step * q[i]
        b[i] -= step * Hq[i]
        Hq[i] = w[i] * b[i]
        size += b[i] * Hq[i]
    return x, b, Hq, size


@summing
def turned(z, q, u, ratio):  # type: ignore[no-untyped-def]
    """Return the next direction, in place, and u * q in the place of z."""
    for i in range(q.size):
        q[i] = z[i] + ratio * q[i]
        z[i] = u[i] * q[i]
    return q, z


def weights(S: Any, u: np.ndarray) -> np.ndarray:
    """Return the entries (u_i u_j) s_ij of DSD in the order of S."""
    out = np.empty_like(S.data)
    _weights(S.indptr, S.indices, S.data, u, out)
    return out


@compiled
def _weights(indptr, indices, data, u, out):  # type: ignore[no-untyped-def]
    for i in range(u.size):
        for k in range(indptr[i], indptr[i + 1]):
            out[k] = u[i] * u[indices[k]] * data[k]


@compiled
def mirrored(indptr, indices, data):  # type: ignore[no-untyped-def]
    """Tell whether a canonical CSR matrix equals its transpose to the bit.

    Rows are read in order, so the mirror images of their entries turn up in order in
    every other row: one cursor a row finds them without a transpose.
    """
    cursor = indptr.copy()
    for i in range(np.uint64(indptr.size - 1)):  # unsigned: no test for negative
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


Bodies = dict[Callable[..., Any], Callable[..., Any]]
ON_PATTERNS: Bodies = {
    matching.greedy_matching: compiled(matching.greedy_matching),
    matching.maximum_matching: compiled(matching.maximum_matching),
}
ON_VECTORS: Bodies = {  # of NumPy doubles
    newton.bent: bent,
    newton.advanced: advanced,
    newton.turned: turned,
    csr.weights: weights,
}
