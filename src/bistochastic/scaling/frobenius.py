r"""The nearest doubly stochastic matrix: Eq. (13) exactly; Zass and Shashua (2006).

Eq. (13) asks for the symmetric doubly stochastic S with the smallest
:math:`\sum_{ij} m_{ij} s_{ij} + \alpha \|S\|_F^2`. Completing the square makes that the
S nearest to :math:`K = -M / (2 \alpha)`, the problem that Zass and Shashua (2006) pose
for a kernel K.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from bistochastic.core.errors import InputError, several
from bistochastic.core.protocols import Graph, Scores
from bistochastic.core.result import Result
from bistochastic.core.run import Status, run
from bistochastic.scaling.dual import Link, path
from bistochastic.scaling.linear_systems import NewtonSystem
from bistochastic.scaling.residual import worst
from bistochastic.scaling.support import SupportReport

MOST = {"newton": 200, "alternating": 10_000}  # iterates, by method
LEAST, LOOKED = 1_000, 6e9  # iterates of the latter; entries that may be looked at
WHOLE = 2.0**53  # beyond it doubles are even numbers, and no sum of them is one
ACCURACY = 1e-10  # of the projection on the row sums, where it takes a linear system


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionResult(Result):
    r"""The doubly stochastic matrix nearest to K, and how it was found.

    Attributes
    ----------
    matrix : same kind as K
        F: symmetric to the bit, non-negative; of a sparse K it holds the positive
        entries only.
    potential : array of shape (n,)
        The multipliers a of the row sums, with which the nearest matrix is
        :math:`f_{ij} = \max(k_{ij} + a_i + a_j, 0)`.
    status : Status
        How the iteration ended; its value is a sentence.
    n_iter : int
        Number of iterates, those on the way to the scale of K included.
    n_products : int
        Products of a matrix with a vector.
    residual : float
        Largest error of the row sums of `matrix`, dropped rows aside.
    residuals : tuple of float
        The same for every iterate (with "newton", on the scale of K).
    gap : float
        How far the conditions of Karush, Kuhn and Tucker are from holding:
        :math:`\tfrac12 \|F - K\|^2` less its lower bound, the value of the dual problem
        at `potential`. For a doubly stochastic F, :math:`\|F - F^*\|^2 \le 2` gap; by
        what the row sums are off it can be below zero. Not a number if they did not
        reach the tolerance.
    support : SupportReport
        The support of the pattern of K; it need not be total.
    dropped : array of int
        Rows left zero by ``unsupported="prune"``; their potential is -infinity.

    Examples
    --------
    >>> from bistochastic import project_doubly_stochastic
    >>> result = project_doubly_stochastic([[2.0, 1.0], [1.0, 3.0]])
    >>> result.matrix.sum(axis=1).round(6)
    array([1., 1.])
    >>> bool(abs(result.gap) < 1e-9)  # the certificate
    True
    """

    matrix: Any
    potential: Any
    status: Status
    n_iter: int
    n_products: int
    residual: float
    residuals: tuple[float, ...]
    gap: float
    support: SupportReport
    dropped: np.ndarray

    def __repr__(self) -> Any:
        return (
            f"ProjectionResult({self._kind(self.matrix)}, "
            f"{self.status.name}, residual={self.residual:.1e}, gap={self.gap:.1e}, "
            f"n_iter={self.n_iter})"
        )

    def __str__(self) -> Any:
        """Say in sentences how it went."""
        iterates = several(self.n_iter, "iterate")
        return self._told(f", duality gap {self.gap:.1e}, after {iterates}")


QUADRATIC = Link(
    plan=lambda K, omega, a: K.clipped(omega, a),
    mass=lambda F, r: F.sq_norm() / 2,
    slopes=lambda F: F.indicator(),
)


def nearest(K: Scores, *, tol: float, max_iter: int = MOST["newton"]) -> Any:
    r"""Find the potential of the matrix nearest to K, by semismooth Newton steps.

    The conditions of Karush, Kuhn and Tucker say
    :math:`f_{ij} = \max(k_{ij} + a_i + a_j, 0)` with :math:`F 1 = 1`.

    Parameters
    ----------
    K : Scores
        Symmetric matrix on a pattern that has support.
    tol : float
        Wanted error of the row sums.
    max_iter : int, default=200
        Most Newton steps on the scale of K.

    Returns
    -------
    Run
        The potential a, how it ended, and the residuals.

    Notes
    -----
    With the largest entry h_i of a row, some :math:`|a_i| \ge |h_i| / 2`: no entry may
    be above one, and one of the row must be positive. So the size of the h_i bounds
    what the row sums can be exact to. Entries far below them, which no plan uses, do no
    harm.
    """
    xp = array_namespace(K.ones())
    highest = K.highest()
    largest = float(xp.max(xp.abs(highest)))
    if largest > WHOLE:
        raise InputError(
            f"The largest entry of a row of K is {largest:.3g} in size, beside which "
            "row sums of one are lost in rounding. Divide K by a number first."
        )
    return path(K, QUADRATIC, 1.0, tol=tol, max_iter=max_iter)


def published(K: Scores, *, tol: float, max_iter: int | None = None) -> Any:
    """Run the iteration of Zass and Shashua (2006).

    Parameters
    ----------
    K : Scores
        Symmetric matrix on a pattern that has support.
    tol : float
        Wanted error of the row sums.
    max_iter : int, optional
        Most iterates; by default 10,000, but fewer, down to 1,000, where these would
        look at more than 6e9 entries.

    Returns
    -------
    Run
        The iterate, how it ended, and the residuals.
    """
    if max_iter is None:
        ones = K.ones()
        entries = K.exponential(0.0, 0 * ones).apply(ones)
        number = float(array_namespace(entries).sum(entries))
        max_iter = int(min(MOST["alternating"], max(LEAST, LOOKED / number)))
    return run(alternating(K), tol=tol, max_iter=max_iter)


def alternating(K: Scores) -> Iterator[Any]:
    r"""Yield the iterates of Zass and Shashua (2006).

    In turn, F is projected on the matrices with row sums one, which on a full
    pattern is :math:`F \leftarrow (I - J) F (I - J) + J` with :math:`J = 1 1' / n`, and
    on the non-negative ones, :math:`F \leftarrow \max(F, 0)`. That ends in *a* doubly
    stochastic matrix, not in the nearest: alternating projections have that property
    for subspaces, and the second set is a cone (Dykstra's correction is missing).

    Parameters
    ----------
    K : Scores
        Symmetric matrix on a pattern that has support.

    Yields
    ------
    tuple of (Scores, scalar)
        The iterate, non-negative, and the largest error of its row sums.
    """
    ones = K.ones()
    Z = K.exponential(0.0, 0 * ones)  # ones on the pattern
    size = Z.apply(ones)
    system = NewtonSystem()
    F, r = K, K.apply(ones)
    while True:
        Z.n_products = 0
        b = system.solve(Z, ones, size, 1.0 - r, ACCURACY)
        F = F.raised(b)
        r = F.apply(ones)
        K.n_products += Z.n_products + 1
        yield F, worst(r)


def duality_gap(F: Graph, K: Scores, a: Any) -> float:
    r"""Return how much farther F is from K than the dual problem at a allows.

    Parameters
    ----------
    F : Graph
        Doubly stochastic matrix on the pattern of K.
    K : Scores
        The matrix to be near to.
    a : array of shape (n,)
        Potential.

    Returns
    -------
    float
        :math:`\tfrac12 \|F - K\|^2 - g(a)` with the lower bound
        :math:`g(a) = \tfrac12 \|K\|^2 - \tfrac12 \|F(a)\|^2 + 2 \sum_i a_i`, where
        F(a) is the positive part of :math:`k_{ij} + a_i + a_j`.
    """
    xp = array_namespace(a)
    bound = K.clipped(1.0, a).sq_norm() / 2 - 2 * float(xp.sum(a))
    return F.sq_norm() / 2 - K.dot(F) + bound
