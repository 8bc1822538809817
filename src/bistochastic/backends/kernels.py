"""Compiled bodies of functions that stand as readable texts in the stage files.

`BODIES` maps a text to its body; each body takes the same arguments, with the CSR
holder in place of any graph, and gives the same result to rounding.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bistochastic.scaling import newton


def conjugate_gradients(
    S: Any, u: np.ndarray, r: np.ndarray, b: np.ndarray, accuracy: float, limit: int
) -> np.ndarray:
    """Solve the Newton system with two passes over the vectors a product."""
    matrix = S.native()
    x = np.zeros_like(b)
    scratch = [np.empty_like(b) for _ in range(3)]
    S.n_products += _conjugate_gradients(
        matrix.indptr, matrix.indices, matrix.data,
        u, r, b.copy(), accuracy, limit, x, *scratch,
    )  # fmt: skip
    return x


@njit(cache=True, nogil=True)
def _conjugate_gradients(  # type: ignore[no-untyped-def]
    indptr, indices, data, u, r, b, accuracy, limit, x, q, uq, Hq
):
    n = np.uint64(b.size)  # unsigned indices spare a test for negative ones
    size = 0.0
    for i in range(n):
        q[i] = b[i] / r[i]
        uq[i] = u[i] * q[i]
        size += b[i] * q[i]
    goal = accuracy**2 * size
    products = 0
    while products < limit:
        products += 1
        curvature = 0.0
        for i in range(n):
            total = 0.0
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
                total += data[k] * uq[np.uint64(indices[k])]
            Hq[i] = r[i] * q[i] + u[i] * total
            curvature += q[i] * Hq[i]
        if not curvature > 0:
            break
        step = size / curvature
        last, size = size, 0.0
        for i in range(n):
            x[i] += step * q[i]
            b[i] -= step * Hq[i]
            size += b[i] * b[i] / r[i]
        if not size > goal:
            break
        ratio = size / last
        for i in range(n):
            q[i] = b[i] / r[i] + ratio * q[i]
            uq[i] = u[i] * q[i]
    return products


BODIES: dict[Callable[..., Any], Callable[..., Any]] = {
    newton.conjugate_gradients: conjugate_gradients,
}
