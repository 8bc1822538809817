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

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from bistochastic.core.protocols import Graph, Scores
from bistochastic.core.run import ROUNDING, Run, Status, run
from bistochastic.scaling.linear_systems import NewtonSystem
from bistochastic.scaling.newton import NEAR
from bistochastic.scaling.residual import worst

EASY = 4.0  # standard deviation of omega K from which Newton starts without help
FACTOR = 4.0  # from one omega on the path to the next
QUICK, TRIED = 3, 12  # iterates of an easy omega, and those tried after a leap
FARTHEST = 1e100  # leap
LOOSE = 0.1  # largest error of a row sum on the way
MOST = 200  # Newton steps for one omega
PATIENCE = 30  # steps without progress
WORK = 15_000  # products on the whole path
PASS, FACTORIZATION = 10, 150  # products that take about as long
MANY = 2_000  # rows from which on more products are allowed, in proportion
RIDGE = 1e-8  # of the diagonal, while row sums are off by one or more
LOOSEST, TIGHTEST = 0.1, 1e-12  # relative accuracy of the linear systems
SHORT, TIGHT = 0.25, 1e-6  # after a step so short, at least that accuracy
MOST_HALVINGS = 40
DECREASE = 0.1  # of the decrease that the slope promises


@dataclass
class Work:
    """What a path may still cost.

    Attributes
    ----------
    left : float
        In products of the plan with a vector.
    """

    left: float = math.inf

    def bounds(self, steps: Any) -> Iterator[Any]:
        """Yield the iterates of a run until the work is done, at least one."""
        for step in steps:
            yield step
            if self.left <= 0:
                return


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


def path(
    K: Scores, link: Any, omega: float, m: float = 1.0, *, tol: float, max_iter: int
) -> Any:
    """Find the potential by a path of growing omega, the last as asked for.

    For small omega the plan is spread out and Newton's method finds it from
    anywhere; for large omega it is nearly a matching, and only a start on the right
    scale leads there. Potentials grow in proportion to omega. Where one omega was
    easy the next is farther, as where the spread is that of a few entries that no plan
    can use; if that was too far, it goes on from there by small steps.

    The work of the whole path is bounded, whatever the number of steps.

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
        Most Newton steps for the last omega; more than MOST allow more work, too.

    Returns
    -------
    Run
        The potential a, how it ended, all steps counted, the last residuals.
    """
    xp = array_namespace(K.ones())
    spread = K.deviation()
    w = omega if omega * spread <= EASY else EASY / spread
    a = (1.0 - w * float(xp.min(K.highest()))) / 2 * K.ones()
    work = Work(WORK * max(1.0, K.n / MANY) * max(1.0, max_iter / MOST))
    known, leap, n_iter = (a, w), FACTOR, 0
    while w < omega:
        done = run(
            work.bounds(newton(K, link, w, a, m, LOOSE, work)),
            tol=LOOSE,
            max_iter=TRIED if leap > FACTOR else MOST,
            patience=PATIENCE,
        )
        n_iter += done.n_iter
        if leap > FACTOR and done.status is not Status.CONVERGED:
            (a, w), leap = known, FACTOR
        else:
            known = a, w = done.value, w
            easy = done.n_iter <= QUICK
            leap = min(leap**2, FARTHEST) if easy else FACTOR
        wider = max(min(omega, FACTOR * w), min(omega / FACTOR, leap * w))
        a = _moved(partial(_plan, K, link, wider, work), a, wider / w, m)
        w = wider
    steps = work.bounds(newton(K, link, w, a, m, tol, work))
    done = run(steps, tol=tol, max_iter=max_iter, patience=PATIENCE)
    return Run(done.value, done.status, n_iter + done.n_iter, done.residuals)


def _moved(plan: Any, a: Any, growth: Any, m: Any) -> Any:
    """Return the potential for a larger omega: grown with it, or as it was.

    Where the scores that count are still small beside the potential, it stays; after
    a leap that makes a difference.
    """
    if growth > FACTOR:
        grown, same = (plan(start)[1] for start in (growth * a, a))
        alive = bool(array_namespace(a).all(same > 0))
        if alive and not float(worst(grown, m)) < float(worst(same, m)):
            return a
    return growth * a


def newton(
    K: Scores,
    link: Any,
    omega: float,
    a: Any,
    m: float = 1.0,
    tol: float = 0.0,
    work: Any = None,
) -> Iterator[Any]:
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
    work : Work, optional
        What it costs is taken from there.

    Yields
    ------
    tuple of (array of shape (n,), scalar)
        The iterate and the largest error of its row sums.
    """
    ones, system = K.ones(), NewtonSystem()
    work = work or Work()
    plan = partial(_plan, K, link, omega, work)
    P, r = plan(a)
    step, stuck = 1.0, False
    while True:
        error = worst(r, m)
        yield a, error
        if stuck:  # all that follows would be the same
            continue
        size = float(error)
        if link.damped and not size < NEAR:
            a = link.damped(a, r, m)
            P, r = plan(a)
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
        work.left -= Z.n_products + FACTORIZATION * system.factorized
        last = step
        a, P, r, step = _search(plan, link, a, P, r, direction, m)
        stuck = last == step == 0.0


def _search(
    plan: Any, link: Any, a: Any, P: Any, r: Any, direction: Any, m: Any
) -> Any:
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
        there, sums = plan(trial)
        change = 0.5 * (float(link.mass(there, sums)) - mass) - step * pull
        nearer = float(xp.sum((sums - m) ** 2)) < distance
        falls = change <= DECREASE * step * slope + nearer * rounding
        if falls and bool(xp.all(sums > 0)):
            return trial, there, sums, step
        step /= 2
    return a, P, r, 0.0


def _plan(K: Any, link: Any, omega: float, work: Any, a: Any) -> Any:
    """Return the plan and its row sums."""
    K.n_products += 1
    work.left -= PASS
    P = link.plan(K, omega, a)
    return P, P.apply(K.ones())
