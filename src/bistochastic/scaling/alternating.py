"""Algorithm 1: D1 and D2 in turn."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from array_api_compat import array_namespace

from bistochastic.core.protocols import Graph
from bistochastic.scaling.residual import worst_of

LOOK = 10  # passes from one look at the row sums to the next


def alternating(S: Graph, u: Any, m: float = 1.0) -> Iterator[Any]:
    """Yield the diagonals of Algorithm 1, one per pass of its while loop.

    The pair converges whenever S has support, at the rate of the second largest
    absolute eigenvalue of M(S). That is slow just on the graphs that clustering
    makes, whose eigenvalues crowd at 1; see `damped`.

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.
    u : array of shape (n,)
        Positive start of D2; ones in the paper.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.

    Yields
    ------
    tuple of (array of shape (n,), scalar or None)
        The diagonal of D = sqrt(D1 D2) and the largest error of the row sums of DSD.
        To know these takes a product that the algorithm has no use for, so they are
        measured at the first pass and at every tenth. (The row sums of D1 S D2 cost
        nothing, but on clustered graphs they can be right while those of DSD are not.)
    """
    xp = array_namespace(u)
    d2 = u
    for t in count():
        d1 = m / S.apply(d2)  # line 3
        d2 = m / S.apply(d1)  # line 4; S is symmetric
        u = xp.sqrt(d1 * d2)  # line 6
        yield u, None if t % LOOK else worst_of(u, u * S.apply(u), m)
