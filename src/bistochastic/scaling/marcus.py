"""The Marcus mapping M(S) = DSD of Eq. (1), Theorem 2 and Eq. (17), by any method."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.core.errors import several
from bistochastic.core.protocols import Graph
from bistochastic.core.result import Result
from bistochastic.core.run import Run, Status, run
from bistochastic.scaling.alternating import alternating
from bistochastic.scaling.fixed_point import damped, damped_step, fixed_point
from bistochastic.scaling.newton import NEAR, newton
from bistochastic.scaling.residual import worst_of
from bistochastic.scaling.support import SupportReport

# method -> (iterates looked at by default, iterates without progress)
LIMITS = {
    "auto": (1000, 250),
    "newton": (1000, 250),
    "damped": (10_000, 100),
    "alternating": (10_000, 100),
    "fixed_point": (10_000, 100),
}
LOOKS = 3  # damped steps before the first judgment
FEW = 12  # damped steps that are fewer than a Newton run would need


@dataclass(frozen=True, eq=False, repr=False)
class MarcusResult(Result):
    """The doubly stochastic matrix M(S) = DSD, and how it was found.

    Attributes
    ----------
    matrix : same kind as S
        M(S): symmetric to the bit, zero where S is zero and nowhere else, unless the
        entry is below the smallest number of its type, 5e-324 for doubles. After
        pruning it is M of what was left of S, after regularizing M of S plus `shift`
        times the identity.
    scaling : array of shape (n,)
        The diagonal u of D, to multiply with: ``M = u[:, None] * S * u``, with what
        was left of S or the shifted S where it was pruned or regularized. Zero for
        rows in `dropped`.
    status : Status
        How the iteration ended; its value is a sentence.
    n_iter : int
        Number of iterates.
    n_products : int
        Products of S with a vector, every one counted.
    residual : float
        Largest relative error of the row sums of `matrix`, dropped rows aside; of a
        Dask array in single precision, before it was rounded.
    residuals : tuple of float
        The same for every iterate at which it was measured.
    support : SupportReport
        Why the mapping exists, or what stood in its way.
    dropped : array of int
        Rows left zero by ``unsupported="prune"``.
    shift : float
        What ``unsupported="regularize"`` added to the diagonal; 0.0 if nothing.

    Examples
    --------
    >>> from bistochastic import marcus_mapping
    >>> result = marcus_mapping([[2.0, 1.0], [1.0, 3.0]])
    >>> result.matrix.sum(axis=1).round(6)
    array([1., 1.])
    >>> result.converged
    True
    """

    matrix: Any
    scaling: Any
    status: Status
    n_iter: int
    n_products: int
    residual: float
    residuals: tuple[float, ...]
    support: SupportReport
    dropped: np.ndarray
    shift: float

    def __repr__(self) -> Any:
        return (
            f"MarcusResult({self._kind(self.matrix)}, "
            f"{self.status.name}, residual={self.residual:.1e}, n_iter={self.n_iter}, "
            f"n_products={self.n_products}, support={self.support.kind!r}, "
            f"{several(self.dropped.size, 'row')} dropped, shift={self.shift:.3g})"
        )

    def __str__(self) -> Any:
        """Say in sentences how it went."""
        products = several(self.n_products, "product")
        return self._told(f" after {products}", self.shift)


def marcus(
    S: Graph,
    u: Any = None,
    m: float = 1.0,
    *,
    method: str,
    tol: float,
    max_iter: int | None = None,
) -> Any:
    """Find the diagonal u of D with DSD 1 = m, Eq. (1).

    A start is a hint: where it does not lead to the solution, for it leaves the range
    or gets nowhere, ones are started from.

    Parameters
    ----------
    S : Graph
        Symmetric matrix with total support.
    u : array of shape (n,), optional
        Positive start; ones by default.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.
    method : {"auto", "newton", "damped", "alternating", "fixed_point"}
        Which iteration to run.
    tol : float
        Wanted relative error of the row sums.
    max_iter : int, optional
        Most iterates to look at; by default a number that fits the method.

    Returns
    -------
    Run
        The diagonal, how it ended, all iterates counted, and the residuals.
    """
    limit, patience = LIMITS[method]

    def begun(u: Any, limit: int) -> Any:
        steps = {
            "auto": lambda: auto(S, u, m, tol),
            "newton": lambda: newton(S, u, m, tol),
            "damped": lambda: damped(S, u, m),
            "alternating": lambda: alternating(S, u, m),
            "fixed_point": lambda: fixed_point(S, u, m),
        }[method]()
        return run(steps, tol=tol, max_iter=limit, patience=patience)

    done = begun(S.ones() if u is None else u, max_iter or limit)
    ended = done.status is Status.LIMIT and (max_iter or done.least < NEAR)
    if u is None or done.status is Status.CONVERGED or ended:
        return done
    left = limit if max_iter is None else max(1, max_iter - done.n_iter)
    again = begun(S.ones(), left)
    best = again if again.least <= done.least else done
    return Run(best.value, best.status, done.n_iter + again.n_iter, best.residuals)


def auto(S: Graph, u: Any, m: Any, tol: float) -> Iterator[Any]:
    """Yield damped iterates while these get there soon, then those of Newton.

    The damped map contracts by a constant factor in the end, so two residuals in
    a row tell how many steps are left. Newton needs about twenty products where it
    starts in sight of the solution, and the root of what the damped map needs.

    Parameters
    ----------
    S : Graph
        Symmetric matrix with total support.
    u : array of shape (n,)
        Positive start.
    m : array of shape (n,) or float
        Wanted row sums.
    tol : float
        Residual the caller wants.

    Yields
    ------
    tuple of (array of shape (n,), scalar)
        The iterate and the largest error of its row sums.
    """
    errors = []
    while True:
        r = u * S.apply(u)
        error = worst_of(u, r, m)
        yield u, error
        u = damped_step(u, r, m)
        errors.append(float(error))
        if len(errors) >= LOOKS and _left(errors, tol) > FEW:
            del r  # as large as u
            yield from newton(S, u, m, tol)


def _left(errors: Any, tol: float) -> Any:
    """Estimate how many more steps a linearly converging run needs."""
    last, error = errors[-2:]
    if not 0 < tol < error < last:
        return math.inf
    return math.log(tol / error) / math.log(error / last)
