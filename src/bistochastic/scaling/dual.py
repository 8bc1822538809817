r"""One potential for regularized transport: Newton's method on the dual problem.

The symmetric doubly stochastic P that maximizes :math:`\omega \langle K, P \rangle`
minus a separable convex function of its entries has the form

.. math:: p_{ij} = \varphi(\omega k_{ij} + a_i + a_j), \qquad P 1 = 1,

and its potential a minimizes the convex function

.. math::
    \psi(a) = \tfrac12 \sum_{ij} \Phi(\omega k_{ij} + a_i + a_j) - \sum_i m_i a_i,
    \qquad \Phi' = \varphi,

over the pairs ij of the pattern of K. Entropy gives :math:`\varphi = \exp` (transport,
Eq. (26)), the squared norm :math:`\varphi(t) = \max(t, 0)` (projection).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from bistochastic.core.protocols import Graph, Scores
from bistochastic.core.run import ROUNDING, Run, run
from bistochastic.scaling.newton import NEAR
from bistochastic.scaling.rows import worst
from bistochastic.scaling.systems import NewtonSystem

EASY = 4.0  # standard deviation of omega K from which Newton starts without help
FACTOR = 4.0  # from one omega on the path to the next
LOOSE = 0.1  # largest error of a row sum on the way
STEPS = 200  # most Newton steps for one omega on the way
RIDGE = 1e-8  # of the diagonal, while row sums are off by one or more
LOOSEST, TIGHTEST = 0.1, 1e-12  # relative accuracy of the linear systems
SHORT, TIGHT = 0.25, 1e-6  # after a step so short, at least that accuracy
MOST_HALVINGS = 40
DECREASE = 0.1  # of the decrease that the slope promises


@dataclass(frozen=True)
class Link:
    """The function phi that makes a plan out of scores and potentials.

    Attributes
    ----------
    plan : callable
        Takes (K, omega, a), returns the graph of phi(omega k_ij + a_i + a_j).
    mass : callable
        Takes the plan and its row sums, returns the sum of Phi over the pattern.
    slopes : callable
        Takes the plan, returns the graph of the derivatives of phi.
    damped : callable, optional
        Takes (a, r, m) with the row sums r, returns a potential that lowers psi: for
        links so curved that Newton's method is lost while row sums are far off.
    """

    plan: Callable[[Scores, float, Any], Graph]
    mass: Callable[[Graph, Any], Any]
    slopes: Callable[[Graph], Graph]
    damped: Callable[[Any, Any, Any], Any] | None = None


def path(K, link, omega, m=1.0, *, tol, max_iter):
    """Find the potential by a path of growing omega, the last as asked for.

    For small omega the plan is spread out and Newton's method finds it from
    anywhere; for large omega it is nearly a matching, and only a start on the right
    scale leads there. Potentials grow in proportion to omega.

    Parameters
    ----------
    K : Scores
        Symmetric scores on a pattern that has support.
    link : Link
        How scores become a plan.
    omega : float
        Weight of the scores.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.
    tol : float
        Wanted relative error of the row sums.
    max_iter : int
        Most Newton steps for the last omega.

    Returns
    -------
    Run
        The potential a, how it ended, all steps counted, the last residuals.
    """
    xp = array_namespace(K.ones())
    spread = K.spread()
    w = omega if omega * spread <= EASY else EASY / spread
    a = (1.0 - w * float(xp.min(K.highest()))) / 2 * K.ones()
    n_iter = 0
    while w < omega:
        done = run(newton(K, link, w, a, m, LOOSE), tol=LOOSE, max_iter=STEPS)
        n_iter += done.n_iter
        wider = min(omega, FACTOR * w)
        a, w = done.value * (wider / w), wider
    done = run(newton(K, link, w, a, m, tol), tol=tol, max_iter=max_iter)
    return Run(done.value, done.status, n_iter + done.n_iter, done.residuals)


def newton(K, link, omega, a, m=1.0, tol=0.0):
    """Yield the Newton iterates for the potential a.

    The gradient of psi is r - m with the row sums r of the plan; its generalized
    Hessian is diag(Z 1) + Z with the slopes Z. A line search keeps psi falling and
    every row alive.

    Parameters
    ----------
    K : Scores
        Symmetric scores on a pattern.
    link : Link
        How scores become a plan.
    omega : float
        Weight of the scores.
    a : array of shape (n,)
        Start at which no row of the plan is zero.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.
    tol : float, default=0.0
        Residual the caller wants; the last linear system is solved no better.

    Yields
    ------
    tuple of (array of shape (n,), scalar)
        The iterate and the largest error of its row sums.
    """
    ones, system = K.ones(), NewtonSystem()
    P, r = _plan(K, link, omega, a)
    step = 1.0
    while True:
        error = worst(r, m)
        yield a, error
        size = float(error)
        if link.damped and not size < NEAR:
            a = link.damped(a, r, m)
            P, r = _plan(K, link, omega, a)
            continue
        Z = link.slopes(P)
        Z.n_products = 0
        ridge = max(RIDGE * min(1.0, size), ROUNDING)
        diagonal = Z.apply(ones) * (1.0 + ridge)
        accuracy = min(LOOSEST, max(0.01 * size, 0.3 * tol / size, TIGHTEST))
        if step < SHORT:
            accuracy = min(accuracy, TIGHT)
        direction = system.solve(Z, ones, diagonal, m - r, accuracy)
        K.n_products += Z.n_products
        a, P, r, step = _search(K, link, omega, a, P, r, direction, m)


def _search(K, link, omega, a, P, r, direction, m):
    """Halve the Newton step until psi falls and no row is zero; return it too."""
    xp = array_namespace(a)
    size = float(xp.sum(r)) * (1.0 + float(xp.max(xp.abs(a))))
    rounding = 4 * xp.finfo(a.dtype).eps * size
    slope = float(xp.sum((r - m) * direction))
    pull = float(xp.sum(m * direction))
    distance = float(xp.sum((r - m) ** 2))
    mass = float(link.mass(P, r))
    step = 1.0
    for _ in range(MOST_HALVINGS):
        trial = a + step * direction
        plan, sums = _plan(K, link, omega, trial)
        change = 0.5 * (float(link.mass(plan, sums)) - mass) - step * pull
        nearer = float(xp.sum((sums - m) ** 2)) < distance
        falls = change <= DECREASE * step * slope + nearer * rounding
        if falls and bool(xp.all(sums > 0)):
            return trial, plan, sums, step
        step /= 2
    return a, P, r, 0.0


def _plan(K, link, omega, a):
    """Return the plan and its row sums."""
    K.n_products += 1
    P = link.plan(K, omega, a)
    return P, P.apply(K.ones())
