"""How far row sums are from what they should be."""

import math
from typing import Any

from array_api_compat import array_namespace


def worst(row_sums: Any, m: float = 1.0) -> Any:
    """Return the largest relative error of `row_sums` against the marginals `m`.

    Parameters
    ----------
    row_sums : array of shape (n,)
        Row sums of DSD or of a plan.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.

    Returns
    -------
    scalar array
        max |row_sums / m - 1|; not a number if any row sum is not.
    """
    xp = array_namespace(row_sums)
    ratio = row_sums / m
    return xp.maximum(xp.max(ratio) - 1.0, 1.0 - xp.min(ratio))


def worst_of(u: Any, row_sums: Any, m: float = 1.0) -> Any:
    """Return the largest error of the row sums of DSD; infinite where D is of no use.

    Towards marginals that are out of reach u grows for ever, until u_i u_j overflows.

    Parameters
    ----------
    u, row_sums : arrays of shape (n,)
        The diagonal of D, and u * (S u).
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.

    Returns
    -------
    scalar array
        The largest relative error.
    """
    xp = array_namespace(u)
    error, top = worst(row_sums, m), float(xp.finfo(u.dtype).max) ** 0.5
    return xp.where(xp.max(u) < top, error, xp.full_like(error, math.inf))
