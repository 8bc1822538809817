"""The Marcus mapping M(S) = DSD of Eq. (1), Theorem 2 and Eq. (17), by any method."""

import math

from bistochastic.core.run import run
from bistochastic.scaling.alternating import alternating
from bistochastic.scaling.fixed_point import damped, damped_step, fixed_point
from bistochastic.scaling.newton import newton
from bistochastic.scaling.rows import worst

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


def marcus(S, u, m=1.0, *, method, tol, max_iter=None):
    """Find the diagonal u of D with DSD 1 = m, Eq. (1).

    Parameters
    ----------
    S : Graph
        Symmetric matrix with total support.
    u : array of shape (n,)
        Positive start.
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
        The diagonal, how it ended, and the residuals.
    """
    limit, patience = LIMITS[method]
    steps = {
        "auto": lambda: auto(S, u, m, tol),
        "newton": lambda: newton(S, u, m, tol),
        "damped": lambda: damped(S, u, m),
        "alternating": lambda: alternating(S, u, m),
        "fixed_point": lambda: fixed_point(S, u, m),
    }[method]()
    return run(steps, tol=tol, max_iter=max_iter or limit, patience=patience)


def auto(S, u, m, tol):
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
        v = S.apply(u)
        error = worst(u * v, m)
        yield u, error
        u = damped_step(u, v, m)
        errors.append(float(error))
        if len(errors) >= LOOKS and _left(errors, tol) > FEW:
            del v  # as large as u
            yield from newton(S, u, m, tol)


def _left(errors, tol):
    """Estimate how many more steps a linearly converging run needs."""
    last, error = errors[-2:]
    if not 0 < tol < error < last:
        return math.inf
    return math.log(tol / error) / math.log(error / last)
