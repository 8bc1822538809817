"""The step of F, by Ky Fan's theorem: Eqs. (9), (11) and (12)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy.linalg import LinAlgError, eigh

from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Graph
from bistochastic.core.run import Status, run
from bistochastic.graph.components import by_size
from bistochastic.spectrum.filtered import filtered

SMALL = 400  # points up to which a dense eigensolver is used
MEDIUM = 3000  # points up to which it is, where the filters take long
GUARD, GUARDED = 4, 5  # columns beyond those wanted, at least, and one for so many
DIGITS = 1e3  # of the smallest step of numbers: no error is less
FRESH = 2  # of them random, in case that the start has missed a vector
TOLERANCE = 1e-7  # of |S x - theta x|; errors of the values are its square
LARGE, LOOSE = 50_000, 1e-5  # points from which on that is enough, and singles do
HUGE, LOOSER = 500_000, 3e-4  # the same once more
REGULAR = 1e-6  # rows that sum to one within it are those of a doubly stochastic graph
PATIENCE, LIMIT = 12, 200  # filters, of a medium graph and of a large one


@dataclass(frozen=True, eq=False)
class Embedding:
    r"""The minimizer F of Eq. (11), and how it was found.

    Attributes
    ----------
    F : array of shape (n, c)
        Orthonormal columns; the first q are indicators of the known components.
    values : array of shape (c,)
        The c smallest eigenvalues of L = I - S, smallest first.
    status : Status
        How the solver ended.
    n_products : int
        Products of S with a vector.
    guards : array of shape (n, g), or None
        The solver's other columns, to start the next one from.
    """

    F: Any
    values: np.ndarray
    status: Status
    n_products: int
    guards: Any = None

    def times(self, factors: Any) -> "Embedding":
        """Return this with the rows of all vectors multiplied."""
        guards = None if self.guards is None else self.guards * factors
        return replace(self, F=self.F * factors, guards=guards)

    @property
    def trace(self) -> Any:
        """The sum of the eigenvalues, Tr(F' L F): both sides of Eq. (9)."""
        return float(np.sum(self.values))


def ky_fan(
    S: Graph,
    c: int,
    labels: Any,
    *,
    last: Any = None,
    tol: float | None = None,
    rng: np.random.Generator | None = None,
    sizes: Any = None,
) -> Any:
    r"""Find the F with orthonormal columns and the smallest Tr(F' L F), Eq. (11).

    By Ky Fan's theorem, Eq. (9), these are the eigenvectors of the c smallest
    eigenvalues of L = diag(S 1) - S; if S is doubly stochastic, L = I - S and they
    belong to the c largest eigenvalues of S. Any other S is given loops and divided by
    its largest row sum, which divides L. By Eq. (12) their trace is half the weighted
    sum of squared distances between the rows of F.

    Of aggregates with sizes w and S 1 = w, F has :math:`F' W F = I` instead, and
    :math:`W^{1/2} F` are eigenvectors of :math:`W^{-1/2} S W^{-1/2}`.

    The indicators of connected components are eigenvectors of the eigenvalue 0 and
    are put in first: no copy of it can be missed, and the solver looks for the rest
    only, orthogonal to them. If there are more components than c, the c largest
    of them are given (the choice is free: all have trace 0).

    Parameters
    ----------
    S : Graph
        Weights; no row of zeros.
    c : int
        Number of columns.
    labels : array of int of shape (n,)
        The connected components, as `components` gives them.
    last : Embedding, optional
        Of a similar graph, to start from.
    tol : float, optional
        Largest norm of S x - theta x; by default 1e-7, 1e-5 from 50,000 points on and
        3e-4 from 500,000 on. Singles reach no less than 1e-4.
    rng : numpy.random.Generator, optional
        Draws the other vectors of the block; by default one with a fixed seed.
    sizes : array of shape (n,), optional
        Numbers of points w, the row sums of S, if rows stand for aggregates.

    Returns
    -------
    Embedding
        F, the eigenvalues, and how it went.
    """
    if sizes is None:
        S, largest = _regular(S)
        return _found(S, largest, c, labels, last, tol, rng, S.ones())
    root = array_namespace(sizes).sqrt(sizes)
    last = last and last.times(root[:, None])
    found = _found(S.scaled(1.0 / root), 1.0, c, labels, last, tol, rng, root)
    return found.times(1.0 / root[:, None])


def _found(
    S: Graph,
    largest: float,
    c: int,
    labels: Any,
    last: Any,
    tol: float | None,
    rng: np.random.Generator | None,
    root: Any,
) -> Embedding:
    """Find F for an S whose eigenvectors of the eigenvalue 1 are parts of `root`."""
    before = S.n_products
    Q = _indicators(S, labels, c, root)
    rest = c - Q.shape[1]
    if rest == 0:
        return Embedding(Q, np.zeros(c), Status.CONVERGED, 0)
    xp = array_namespace(Q)
    block = min(rest + max(GUARD, rest // GUARDED), S.n - Q.shape[1])
    # where every product is waited for, a dense solver is the faster one for longer
    few = MEDIUM if S.fetched else SMALL
    if S.n <= few or 2 * block >= S.n:
        theta, X = _dense(S, Q, rest)
        values = largest * _values(Q, theta)
        return Embedding(xp.concat([Q, X], axis=1), values, Status.CONVERGED, 0)
    fresh, warm = 0, []
    if last is not None:
        kept = min(last.F.shape[1], rest)
        warm = [last.F[:, last.F.shape[1] - kept :]]
        if last.guards is not None and kept == rest:
            warm.append(last.guards[:, : block - rest - FRESH])
            fresh = block - sum(part.shape[1] for part in warm)
    unknown = block - sum(part.shape[1] for part in warm)
    noise = S.noise(rng or np.random.default_rng(0), unknown)
    X = xp.concat([*warm, noise], axis=1)
    limit = PATIENCE if S.n <= MEDIUM else LIMIT
    tol = tol or (TOLERANCE if S.n < LARGE else LOOSE if S.n < HUGE else LOOSER)
    tol = max(tol, DIGITS * xp.finfo(Q.dtype).eps)
    steps = filtered(S, X, Q, rest, aim=tol, fresh=fresh)
    del X  # blocks are large
    done = run(steps, tol=tol, max_iter=limit)
    (theta, X), status = done.value, done.status
    if S.n <= MEDIUM and status is not Status.CONVERGED:
        (theta, X), status = _dense(S, Q, rest), Status.CONVERGED
    F = xp.concat([Q, X[:, :rest]], axis=1)
    products = (S.n_products - before) * block
    values = largest * _values(Q, theta[:rest])
    return Embedding(F, values, status, products, X[:, rest:] * 1.0)


def smoothness(S: Graph, F: Any) -> float:
    r"""Return :math:`\sum_{ij} \|f_i - f_j\|^2 s_{ij}`, by Eq. (12) 2 Tr(F' L F).

    Parameters
    ----------
    S : Graph
        Graph, doubly stochastic or nearly so: L = diag(S 1) - S.
    F : array of shape (n, c)
        Any embedding.

    Returns
    -------
    float
        The sum.
    """
    xp = array_namespace(F)
    degree = S.apply(S.ones())
    rows = degree * xp.vecdot(F, F) - xp.vecdot(F, S.apply(F))
    return 2.0 * float(xp.sum(rows))


def _regular(S: Any) -> Any:
    """Return S with loops that make all row sums one, and what it was divided by."""
    degree = S.apply(S.ones())
    xp = array_namespace(degree)
    ends = xp.min(degree), xp.max(degree)
    least, largest = (float(end) for end in ends)  # one wait
    if least > 1.0 - REGULAR and largest < 1.0 + REGULAR:
        return S, 1.0
    if largest == 0:  # no edges
        return S.shifted(1.0), 1.0
    root = largest**-0.5
    return S.shifted(largest - degree).scaled(root * S.ones()), largest


def _indicators(S: Any, labels: Any, c: int, root: Any) -> Any:
    """Return the parts of `root` on one component each, of length one, at most c."""
    sizes = np.bincount(labels, on_cpu(root) ** 2)
    largest = np.argsort(-sizes, kind="stable")
    if sizes.size > c:
        largest = by_size(S, labels, sizes)[:c]
    column = np.full(len(sizes), -1)
    column[largest] = np.arange(len(largest))
    place = S.vector(column[labels])
    xp = array_namespace(place)
    numbers, lengths = (
        xp.asarray(row, dtype=place.dtype, device=device(place))[None, :]
        for row in (np.arange(len(largest)), sizes[largest] ** -0.5)
    )
    return xp.astype(place[:, None] == numbers, place.dtype) * lengths * root[:, None]


def _dense(S: Any, Q: Any, rest: Any) -> Any:
    """Return the largest pairs orthogonal to Q by a dense solver on the CPU."""
    A = S.entries(0.0).toarray()
    Q = on_cpu(Q)
    A -= 4.0 * (Q @ Q.T)  # sends the known ones to the other end
    n = A.shape[0]
    try:
        theta, X = eigh(A, subset_by_index=[n - rest, n - 1], check_finite=False)
    except LinAlgError:
        theta = np.empty(0)
    if theta.size < rest:  # of many equal ones LAPACK can lose some without a word
        theta, X = (part[..., -rest:] for part in np.linalg.eigh(A))
    return theta[::-1], S.vector(X[:, ::-1].copy())


def _values(Q: Any, theta: Any) -> Any:
    return np.concatenate([np.zeros(Q.shape[1]), 1.0 - on_cpu(theta)])
