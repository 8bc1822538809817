"""Checks of the parameters that users pass to functions."""

import math
from numbers import Integral, Real

import numpy as np

from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError, several

ASSIGNMENT = (
    "For a cheapest plan, the limit of large omega, see "
    "scipy.optimize.linear_sum_assignment."
)


def checked_omega(omega):
    """Return the weight of the cost as a float, if it is positive and finite."""
    try:
        value = float(omega) if isinstance(omega, Real) else math.nan
    except OverflowError:
        value = math.inf
    if not 0 < value < math.inf:
        said = f"omega={omega!r}: omega must be a positive, finite number."
        raise InputError(f"{said} {ASSIGNMENT}" if value == math.inf else said)
    return value


def checked_count(name, value, least=1):
    """Return a whole number as an int, if it is at least `least`."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and value >= least):
        raise InputError(f"{name}={value!r}: {name} must be a whole number >= {least}.")
    return int(value)


def checked_positive(name, value, words=""):
    """Return a number as a float, if it is positive and finite."""
    try:
        number = isinstance(value, Real) and not isinstance(value, bool)
        found = float(value) if number else math.nan
    except OverflowError:
        found = math.inf
    if not 0 < found < math.inf:
        raise InputError(
            f"{name}={value!r}: {name} must be {words}a positive, finite number."
        )
    return found


def check_limits(tol, max_iter):
    """Refuse a tolerance or a number of iterates that makes no sense."""
    if tol is not None and not (isinstance(tol, Real) and 0 < tol < 1):
        raise InputError(f"tol={tol!r}: tol must lie strictly between 0 and 1.")
    if max_iter is not None and not (isinstance(max_iter, Integral) and max_iter >= 1):
        raise InputError(
            f"max_iter={max_iter!r}: max_iter must be a whole number >= 1."
        )


def checked_marginals(values, n):
    """Return the wanted row sums, one number if they are equal, and whether."""
    m = np.ones(1) if values is None else positive(values, "marginals", n)
    equal = bool(np.all(m == m[0]))
    return (float(m[0]) if equal else m), equal


def positive(values, name, n, rows=slice(None)):
    """Return the entries `rows` of a vector of n numbers, if these are positive."""
    try:
        values = on_cpu(values)
    except (TypeError, ValueError):
        values = np.empty(())
    if values.shape != (n,) or values.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must be a vector of {n} positive numbers, one for each row of S."
        )
    values = values.astype(np.float64)
    part = values[rows]
    bad = ~((part > 0) & (part < np.inf))
    if bad.any():
        i = np.arange(n)[rows][bad][0]
        raise InputError(
            f"{name} must be positive and finite, but {name}[{i}] is {values[i]:.6g} "
            f"({several(int(bad.sum()), 'such entry', 'such entries')})."
        )
    return part
