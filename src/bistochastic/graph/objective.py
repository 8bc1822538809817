r"""The problems, and how near the mapping comes: Eqs. (6)-(8), (10), (14), (20)-(23).

With costs :math:`d_{ij} = \|x_i - x_j\|^2`, all problems of the paper minimize parts of

.. math:: \sum_{ij} d_{ij} s_{ij} + \alpha \|S\|_F^2 + 2 \lambda \, Tr(F^\top L_S F) .

Eq. (6) is the first two terms over rows that sum to one, Eq. (7) over symmetric doubly
stochastic S, Eq. (8) over those with c components. Eq. (10) has all three; with F fixed
it is Eq. (13), whose relaxation to rows is Eq. (14).
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from bistochastic.core.errors import InputError
from bistochastic.core.protocols import Costs, Graph, Rows
from bistochastic.core.run import Status
from bistochastic.graph.simplex import relaxed
from bistochastic.scaling.frobenius import nearest


@dataclass(frozen=True)
class Objective:
    r"""The value of Eq. (10), term by term.

    Attributes
    ----------
    distance : float
        :math:`\sum_{ij} d_{ij} s_{ij}`.
    norm : float
        :math:`\alpha \|S\|_F^2`, or :math:`\sum_i \alpha_i \|s_i\|^2`.
    penalty : float
        :math:`2 \lambda \, Tr(F^\top L_S F)`, by Eq. (12) the sum of
        :math:`\lambda \|f_i - f_j\|^2 s_{ij}`.
    """

    distance: float
    norm: float
    penalty: float

    @property
    def graph(self) -> Any:
        """The value of Eqs. (6)-(8)."""
        return self.distance + self.norm

    @property
    def total(self) -> Any:
        """The value of Eq. (10), and of Eqs. (13) and (14)."""
        return self.graph + self.penalty


@dataclass(frozen=True)
class Approximation:
    r"""How near the mapping comes to the exact solution of Eq. (13).

    Attributes
    ----------
    epsilon : float
        :math:`\|D S_r D - S_r\|_F^2`, the bound of Eq. (23).
    relative_epsilon : float
        The same divided by :math:`\|S_r\|_F^2`.
    row_kkt : float
        Largest violation of Eqs. (20), (21) by the solution of the rows: rounding.
    kkt : float
        What is left of Eq. (20) if :math:`D S_r D` stands in place of :math:`S_r`: the
        Frobenius norm over the positive entries. It is
        :math:`2 \alpha \sqrt{\epsilon}`.
    exact : float
        The smallest value of Eq. (13); this and what follows is not a number if the
        solver of the exact problem did not converge.
    gap : float
        By how much the value at the mapped graph is larger.
    distance : float
        :math:`\|S - S^*\|_F` from the mapped graph to the exact solution. As the
        problem is a projection, this is also how far S is from solving the conditions
        of Karush, Kuhn and Tucker.
    relative_distance : float
        The same divided by :math:`\|S^*\|_F`.
    """

    epsilon: float
    relative_epsilon: float
    row_kkt: float
    kkt: float
    exact: float
    gap: float
    distance: float
    relative_distance: float


def epsilon(rows: Rows, u: Any) -> float:
    r"""Return the bound :math:`\|D S_r D - S_r\|_F^2` of Eq. (23), by Eq. (22).

    Parameters
    ----------
    rows : Rows
        The solution :math:`S_r` of the relaxed problem.
    u : array of shape (n,)
        The diagonal of D.

    Returns
    -------
    float
        The bound on how far the mapping moves the graph, squared.
    """
    return rows.moved(u)


def stationarity(m: int, alpha: float) -> Any:
    r"""Return how far each row of Eq. (14) is from its conditions, Eqs. (20), (21).

    There are multipliers with :math:`m_{ij} + 2 \alpha s_{ij} + \gamma_i = 0` where
    :math:`s_{ij} > 0`, and no less than 0 elsewhere, which the paper leaves out.
    Eq. (21) says the same of the columns of the transpose.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs.
    alpha : float
        Weight of the squared norm.

    Returns
    -------
    array of shape (n,)
        The largest violation in each row.
    """
    xp = array_namespace(m)
    s = relaxed(m, alpha)
    slack = m + 2.0 * alpha * s
    positive = s > 0
    high = xp.max(xp.where(positive, slack, xp.full_like(m, -xp.inf)), axis=1)
    return high - xp.min(slack, axis=1)


def approximation(
    m: Costs, alpha: float, rows: Rows, u: Any, S: Graph, *, tol: float = 1e-10
) -> Any:
    """Compare the mapped graph with the exact solution of Eq. (13).

    Parameters
    ----------
    m : Costs
        Costs of the step.
    alpha : float
        Weight of the squared norm.
    rows : Rows
        The solution of the relaxed problem, Eq. (14).
    u : array of shape (n,)
        The diagonal of D.
    S : Graph
        The mapped graph.
    tol : float, default=1e-10
        Row sums of the exact solution.

    Returns
    -------
    Approximation
        What was measured.
    """
    K = m.scores(alpha)
    exact = _solved(K, tol)
    least = value = away = whole = math.nan
    if exact is not None:
        least, value = (alpha * (G.sq_norm() - 2 * K.dot(G)) for G in (exact, S))
        whole = exact.sq_norm() ** 0.5
        away = max(S.sq_norm() + whole**2 - 2.0 * S.dot(exact), 0.0) ** 0.5
    bound = epsilon(rows, u)
    violations = m.reduce(partial(stationarity, alpha=alpha))
    return Approximation(
        epsilon=bound,
        relative_epsilon=_relative(bound, rows.sq_norm()),
        row_kkt=float(array_namespace(violations).max(violations)),
        kkt=2.0 * alpha * bound**0.5,
        exact=least,
        gap=value - least,
        distance=away,
        relative_distance=_relative(away, whole),
    )


def _solved(K: Any, tol: float) -> Any:
    """Return the exact solution; None if it is not found, or no double holds it."""
    try:
        done = nearest(K, tol=tol)
    except InputError:  # costs beside which row sums of one are lost
        return None
    converged = done.status is Status.CONVERGED
    return K.clipped(1.0, done.value) if converged else None


def _relative(size: Any, whole: Any) -> Any:
    """Return a share; not a number of nothing, as where the solver found no weight."""
    return size / whole if whole > 0 else math.nan
