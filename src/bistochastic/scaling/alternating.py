"""Algorithm 1: D1 and D2 in turn."""

from array_api_compat import array_namespace

from bistochastic.scaling.rows import worst


def alternating(S, u, m=1.0):
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
    tuple of (array of shape (n,), scalar)
        The diagonal of D = sqrt(D1 D2), and the largest error of the row sums of
        D1 S D2. The column sums of D1 S D2 are exact, so that the error of DSD is
        half of that to first order.
    """
    xp = array_namespace(u)
    d2 = u
    Sd2 = S.apply(d2)
    while True:
        d1 = m / Sd2  # line 3
        d2 = m / S.apply(d1)  # line 4; S is symmetric
        Sd2 = S.apply(d2)  # the next line 3 needs it; here it tells the row sums
        yield xp.sqrt(d1 * d2), worst(d1 * Sd2, m)  # line 6
