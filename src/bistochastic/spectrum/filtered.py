"""Largest eigenvalues of a doubly stochastic graph by filtered subspace iteration."""

import math
from collections.abc import Iterator
from typing import Any

from array_api_compat import array_namespace, device

from bistochastic.core.protocols import Graph

LOWEST = -0.98  # where the damped interval ends at least
DAMPING = 30.0, 1e7  # what one filter takes off the first unwanted vector, or more
UNKNOWN = 0.2  # an error from which on nothing is known, not even what is needed
SPARE = 10.0  # times what is needed
TINY = 1e-300
COLUMNS = 8  # whose errors are found in one go
DEGREES = 6, 80  # smallest and largest degree of a filter
SINGLES = 1e-5  # errors from which on the filter may run in singles
WIDEST = 1e5, 1e12  # how far it may pull columns apart, in singles and in doubles


def filtered(
    S: Graph, X: Any, Q: Any, wanted: int, *, aim: float = 0.0, fresh: int = 0
) -> Iterator[Any]:
    """Yield approximations of the largest eigenpairs of S orthogonal to Q.

    Each round orthonormalizes the block, takes the best approximations that it holds
    (Rayleigh and Ritz), and filters it by a Chebyshev polynomial that is small below
    the lowest of them. A block finds all copies of a multiple eigenvalue, and columns
    beyond those wanted find what the start did not know.

    Parameters
    ----------
    S : Graph
        Symmetric, with eigenvalues between -1 and 1.
    X : array of shape (n, b)
        Start; what goes beyond `wanted` columns should be random. Overwritten.
    Q : array of shape (n, q)
        Orthonormal eigenvectors that are known.
    wanted : int
        How many pairs are wanted, at most b.
    aim : float, default=0.0
        The error that is wanted: a filter is as long as it takes to get there.
    fresh : int, default=0
        How many columns of the start know nothing, and must not set the first filter.

    Yields
    ------
    tuple of ((values, vectors), scalar)
        All b pairs, the largest first, and the largest norm of S x - theta x among
        those wanted. It is no less than 1 until the block was filtered once, so that
        no start, however good it looks, hides a vector that it does not hold.
    """
    least = 1.0
    while True:
        X = _orthonormal(X, Q)
        SX = S.apply(X)
        theta, W, C = _ritz(X, SX, Q)
        X = X @ W  # one after the other: blocks are what takes memory
        SX = SX @ W
        QC = Q @ C
        X -= QC
        SX -= QC  # S Q = Q
        del QC
        error = max(_errors(X, SX, theta, wanted))
        yield (theta, X), max(error, least)
        least = 0.0
        cut = float(theta[max(wanted, theta.shape[0] - fresh) - 1])
        needed = SPARE * error / max(aim, TINY) if error < UNKNOWN else 0.0
        damping = min(max(needed, DAMPING[0]), DAMPING[1])
        widest = WIDEST[0] if aim >= SINGLES else WIDEST[1]
        ends = float(theta[wanted - 1]), float(theta[0])
        powers = math.log(damping), math.log(widest)
        degree, center, half = _filter(cut, *ends, *powers)
        X = polynomial(S, X, SX, center, half, degree, aim)
        fresh = 0


def _errors(X: Any, SX: Any, theta: Any, wanted: Any) -> Any:
    """Return the norms of S x - theta x, some columns at a time."""
    xp = array_namespace(X)
    errors = []
    for a in range(0, wanted, COLUMNS):
        some = slice(a, min(a + COLUMNS, wanted))
        R = SX[:, some] - X[:, some] * theta[None, some]
        errors.append(xp.max(xp.linalg.vector_norm(R, axis=0)))
    return [float(error) for error in errors]  # one wait


def _orthonormal(X: Any, Q: Any) -> Any:
    """Return a basis of X without its part in Q, orthonormal to half of the digits.

    X is overwritten.
    """
    xp = array_namespace(X)
    poor = xp.finfo(X.dtype).eps ** 0.5
    for _ in range(2):
        G, C = X.T @ X, Q.T @ X  # one pass over X
        X -= Q @ C
        rest = G - C.T @ C
        lost = xp.linalg.diagonal(rest) < poor * xp.linalg.diagonal(G)
        B = _whitening(rest, poor)
        X = xp.linalg.qr(X)[0] if B is None else X @ B
        if not bool(xp.any(lost)):  # else most of a column was in Q: once more
            break
    return X


def _whitening(G: Any, poor: Any) -> Any:
    """Return B with B' G B = I, or None where rounding hides it.

    Where the smallest eigenvalue is below `poor` times the largest digits are lost.

    Two products of tall blocks cost a fraction of a factorization.
    """
    xp = array_namespace(G)
    sizes = xp.linalg.diagonal(G)
    if not float(xp.min(sizes)) > 0:
        return None
    size = xp.sqrt(sizes)
    values, V = xp.linalg.eigh(G / size[:, None] / size[None, :])
    if not float(values[0]) > poor * float(values[-1]):
        return None
    return V / size[:, None] / xp.sqrt(values)[None, :]


def _ritz(X: Any, SX: Any, Q: Any) -> Any:
    """Return Ritz values of S, largest first, and how to make their vectors.

    X is orthonormal, and to Q, but for digits that small matrices make up for.

    Parameters
    ----------
    X, SX : array of shape (n, b)
        Basis, and its product.
    Q : array of shape (n, q)
        Eigenvectors of the eigenvalue 1.

    Returns
    -------
    tuple of (array of shape (b,), array of shape (b, b), array of shape (q, b))
        Values theta, and W and C: X W - Q C are the vectors.
    """
    xp = array_namespace(X)
    G, C, H = X.T @ X, Q.T @ X, X.T @ SX  # one pass over both
    within = C.T @ C
    B = _whitening(G - within, 0.0)
    H = H - within
    if B is None:  # infinite or not numbers, as the solver will say
        B = xp.eye(G.shape[0], dtype=X.dtype, device=device(X))
    theta, W = xp.linalg.eigh(B.T @ (H + H.T) @ B / 2)
    W = B @ xp.flip(W, axis=1)
    return xp.flip(theta), W, C @ W


def _filter(cut: Any, edge: Any, top: Any, damping: Any, widest: Any) -> Any:
    """Return degree, center and half width of a filter that is small on [-1, cut].

    `edge`, the lowest value wanted, and the logarithm of what is to be gained there set
    the degree. At `top`, the largest value, no more than `widest` may be gained: other
    columns would be what rounding made of it.
    """
    cut = max(cut, LOWEST)
    center, half = (cut - 1.0) / 2, (cut + 1.0) / 2
    growth, most = (
        math.acosh(max((value - center) / half, 1.0 + 1e-12)) for value in (edge, top)
    )
    degree = min(math.ceil(damping / growth), int(widest / most), DEGREES[1])
    return max(degree, DEGREES[0]), center, half


def polynomial(
    S: Graph, X: Any, SX: Any, center: float, half: float, degree: int, accuracy: float
) -> Any:
    """Return T((S - center I) / half) X with T the Chebyshev polynomial, T(1) being 1.

    Parameters
    ----------
    S : Graph
        Graph.
    X, SX : array of shape (n, b)
        Block, and its product; the product is overwritten.
    center, half : float
        Middle and half width of the interval where it is small.
    degree : int
        Its degree.
    accuracy : float
        Relative errors that do not matter.

    Returns
    -------
    array of shape (n, b)
        The block, in doubles.
    """
    sigma = first = half / (1.0 - center)
    SX -= center * X
    SX *= sigma / half
    terms = []
    for _ in range(degree - 1):
        after = 1.0 / (2.0 / first - sigma)
        terms.append((2.0 * after / half, -(sigma * after)))
        sigma = after
    return S.recurrence(X, SX, center, terms, accuracy)
