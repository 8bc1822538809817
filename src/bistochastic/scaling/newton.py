"""Newton's method for the diagonal D of Theorem 2, in log u."""

from collections.abc import Iterator
from typing import Any

from array_api_compat import array_namespace

from bistochastic.core.protocols import Graph
from bistochastic.scaling.fixed_point import damped_step
from bistochastic.scaling.linear_systems import NewtonSystem
from bistochastic.scaling.residual import worst_of

NEAR = 0.9  # largest error of a row sum at which Newton steps begin
LONGEST = 20.0  # largest change of log u in one step
LOOSEST, TIGHTEST = 0.25, 1e-3  # relative accuracy of the linear systems
MOST_HALVINGS = 12


def newton(S: Graph, u: Any, m: float = 1.0, tol: float = 0.0) -> Iterator[Any]:
    r"""Yield the Newton iterates for the convex potential of the Marcus mapping.

    With :math:`u = e^f` the diagonal D of Theorem 2 minimizes

    .. math:: \varphi(f) = \tfrac12 \sum_{ij} s_{ij} e^{f_i + f_j} - \sum_i m_i f_i,

    whose gradient is :math:`r - m` with the row sums :math:`r = u \circ (S u)`, and
    whose Hessian is :math:`\mathrm{diag}(r) + \mathrm{diag}(u) S \mathrm{diag}(u)`.
    A line search keeps :math:`\varphi` falling; a damped step, which lowers it from
    anywhere, is taken while row sums are far off and where the search fails. So it
    converges from any start whenever S has total support.

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.
    u : array of shape (n,)
        Positive start.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.
    tol : float, default=0.0
        Residual the caller wants; the last linear system is solved no better.

    Yields
    ------
    tuple of (array of shape (n,), scalar)
        The iterate and the largest error of its row sums.
    """
    system = NewtonSystem()
    r = u * S.apply(u)
    judged = _judged(u, r, m)
    before = None
    while True:
        error, size = judged
        yield u, error
        if not float(error) < NEAR:
            u = damped_step(u, r, m)
            r = u * S.apply(u)
            judged = _judged(u, r, m)
            before = None
            continue
        size = float(size)
        shrunk = size / before if before else 1.0
        enough = 0.3 * tol / float(error) if float(error) > tol else LOOSEST
        accuracy = min(LOOSEST, max(0.9 * shrunk, TIGHTEST, enough))
        before = size
        direction = system.solve(S, u, r, m - r, accuracy)
        u, r, judged = _search(S, u, r, direction, m)


def _judged(u: Any, r: Any, m: Any) -> Any:
    """Return the largest error of row sums, and the sum of the squared ones."""
    return worst_of(u, r, m), array_namespace(r).sum((r - m) ** 2)


def _search(S: Any, u: Any, r: Any, direction: Any, m: Any) -> Any:
    """Halve the Newton step until the potential falls; damped step if it never does.

    No figure is looked at before all are asked for: on a cluster that is one wait.
    """
    xp = array_namespace(u)
    figures = (
        xp.sum(r),
        xp.sum((r - m) * direction),
        xp.sum(m * direction),
        xp.max(xp.abs(direction)),
    )
    step = 1.0
    for _ in range(MOST_HALVINGS):
        trial = xp.exp(step * direction)
        trial *= u
        sums = trial * S.apply(trial)
        grown, judged = xp.sum(sums - r), _judged(trial, sums, m)
        total, slope, pull, longest = (float(figure) for figure in figures)
        if step * longest > LONGEST:
            step = LONGEST / longest
            continue
        rounding = 2 * xp.finfo(u.dtype).eps * total
        change = 0.5 * float(grown) - step * pull
        if change <= 1e-4 * step * slope + rounding:
            return trial, sums, judged
        step /= 2
    u = damped_step(u, r, m)
    r = u * S.apply(u)
    return u, r, _judged(u, r, m)
