"""The linear systems of Newton's method, by conjugate gradients or factorization."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse import csc_array, diags_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Graph

MOST_PRODUCTS = 1000  # in one run of conjugate gradients
SMALL = 2000  # rows up to which any fill is affordable
FEW_PRODUCTS = 300  # with so few rows: a factorization takes no longer
AFFORDABLE = 2e10  # operations that a factorization may take
FETCHED = 1_000_000  # rows of a graph on workers that may be factorized here
NOTHING = 1e-18  # an entry that its diagonal does not feel
REFINEMENTS = 3


class NewtonSystem:
    """Solver of (diag(r) + diag(u) S diag(u)) x = b for a run of similar systems.

    Conjugate gradients come first. Where the scaled matrix is nearly a matching its
    weak entries matter and make the system nearly singular, out of reach for them;
    but then it has few entries that count, and a factorization is cheap, as it is on
    chains and in the plane. A run in which they failed once goes on by factorization,
    where that is affordable.

    Attributes
    ----------
    factorized : bool
        Whether the last system was, or was tried to be.
    """

    def __init__(self) -> None:
        self.factorized = False
        self._hard = False
        self._affordable = True

    def solve(self, S: Graph, u: Any, r: Any, b: Any, accuracy: float) -> Any:
        """Return the solution, or the best that conjugate gradients came to.

        Parameters
        ----------
        S : Graph
            Symmetric non-negative matrix.
        u, r, b : arrays of shape (n,)
            Diagonal of the scaling, diagonal of the system, right-hand side.
        accuracy : float
            Wanted size of the residual, relative to `b`.

        Returns
        -------
        array of shape (n,)
            The solution x.
        """
        self.factorized = False
        if self._hard and (x := self._factorized(S, u, r, b)) is not None:
            return x
        before = S.n_products
        body = S.fast(conjugate_gradients)
        limit = FEW_PRODUCTS if S.n <= SMALL else MOST_PRODUCTS
        x = body(S, u, r, b + 0.0, accuracy, limit)
        self._hard = S.n_products - before >= limit
        if self._hard and (y := self._factorized(S, u, r, b)) is not None:
            return y
        return x

    def _factorized(self, S: Any, u: Any, r: Any, b: Any) -> Any:
        self.factorized = self.factorized or self._affordable
        x = factorized(S, u, r, b) if self._affordable else None
        self._affordable = x is not None  # if not, do not try again in this run
        return x


def conjugate_gradients(
    S: Graph, u: Any, r: Any, b: Any, accuracy: float, limit: int
) -> Any:
    """Solve (diag(r) + diag(u) S diag(u)) x = b, preconditioned by diag(r).

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.
    u : array of shape (n,)
        Diagonal of the scaling.
    r : array of shape (n,)
        Row sums of the scaled matrix.
    b : array of shape (n,)
        Right-hand side; may be overwritten.
    accuracy : float
        Wanted size of the residual, relative to `b`, in the norm of 1/r.
    limit : int
        Largest number of products.

    Returns
    -------
    array of shape (n,)
        The solution. The matrix is singular only along bipartite components, where
        the system stays consistent if both sides want the same total.
    """
    xp = array_namespace(b)
    x = xp.zeros_like(b)
    q = b / r
    size = float(xp.sum(b * q))
    goal = accuracy**2 * size
    for _ in range(limit):
        Hq = r * q + u * S.apply(u * q)
        curvature = float(xp.sum(q * Hq))
        if not curvature > 0:
            break
        step = size / curvature
        x = x + step * q
        b = b - step * Hq
        z = b / r
        size, last = float(xp.sum(b * z)), size
        if not size > goal:
            break
        q = z + (size / last) * q
    return x


def factorized(S: Graph, u: Any, r: Any, b: Any) -> Any:
    """Solve (diag(r) + diag(u) S diag(u)) x = b by a sparse factorization.

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.
    u, r, b : arrays of shape (n,)
        Diagonal of the scaling, diagonal of the system, right-hand side.

    Returns
    -------
    array of shape (n,), or None
        The solution; None where the factors could be too large.
    """
    if S.fetched and S.n > FETCHED:
        return None
    P = S.scaled(u).entries(NOTHING)
    if S.n > SMALL and _work(P) > AFFORDABLE:
        return None
    diagonal, right = (on_cpu(x).astype(float) for x in (r, b))
    H = csc_array(P + diags_array(diagonal))
    try:
        factors = splu(
            H,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # exactly singular
        return None
    x = factors.solve(right)
    for _ in range(REFINEMENTS):
        x += factors.solve(right - H @ x)
    return S.vector(x) if np.isfinite(x).all() else None


def _work(P: Any) -> Any:
    """Bound the operations of a factorization, by the envelope of one good order."""
    order = reverse_cuthill_mckee(P, symmetric_mode=True)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    rows = np.repeat(place, np.diff(P.indptr))
    first = np.arange(order.size)
    np.minimum.at(first, rows, place[P.indices])
    return float(np.sum((np.arange(order.size) - first).astype(float) ** 2))
