"""Corollary 2 as printed, and its damped form, the degree iteration of Eq. (2)."""

from collections.abc import Iterator
from typing import Any

from array_api_compat import array_namespace

from bistochastic.core.protocols import Graph
from bistochastic.scaling.residual import worst_of


def fixed_point(S: Graph, u: Any, m: float = 1.0) -> Iterator[Any]:
    r"""Yield the iterates :math:`u \leftarrow 1 / (S u)` of Corollary 2.

    The corollary supposes that they converge. In general they do not: on each
    connected component they end in a 2-cycle :math:`a u^*, u^* / a`, with its own
    constant a in every component (and on each side of a bipartite one).

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.
    u : array of shape (n,)
        Positive start.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.

    Yields
    ------
    tuple of (array of shape (n,), scalar)
        The iterate and the largest error of its row sums.
    """
    while True:
        v = S.apply(u)
        yield u, worst_of(u, u * v, m)
        u = m / v


def damped(S: Graph, u: Any, m: float = 1.0) -> Iterator[Any]:
    r"""Yield the iterates :math:`u \leftarrow \sqrt{u / (S u)}`.

    This is the degree iteration :math:`K \leftarrow D^{-1/2} K D^{-1/2}`,
    :math:`D = \mathrm{diag}(K 1)`, Eq. (2), of Zass and Shashua (2005), kept as a
    vector: with :math:`K = \mathrm{diag}(u) S \mathrm{diag}(u)` both steps are the
    same. It is also the geometric mean of u and the next iterate of Corollary 2,
    which cancels the constants that make that one cycle. Every step lowers the
    potential of `newton`, so it converges whenever S has total support, by
    :math:`(1 - \lambda_{\min}) / 2` a step, whatever crowds at the top of the
    spectrum.

    Parameters
    ----------
    S : Graph
        Symmetric non-negative matrix.
    u : array of shape (n,)
        Positive start.
    m : array of shape (n,) or float, default=1.0
        Wanted row sums.

    Yields
    ------
    tuple of (array of shape (n,), scalar)
        The iterate and the largest error of its row sums.
    """
    while True:
        r = u * S.apply(u)
        yield u, worst_of(u, r, m)
        u = damped_step(u, r, m)


def damped_step(u: Any, r: Any, m: Any) -> Any:
    """Return sqrt(m u / (S u)), as u / sqrt(r / m): u / (S u) may overflow.

    Parameters
    ----------
    u, r : arrays of shape (n,)
        The iterate and its row sums u * (S u).
    m : array of shape (n,) or float
        Wanted row sums.

    Returns
    -------
    array of shape (n,)
        The next iterate.
    """
    return u / array_namespace(u).sqrt(r / m)
