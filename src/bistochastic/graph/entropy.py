"""Rows with an entropy in place of the squared norm, as ERCAN has them."""

from typing import Any

from array_api_compat import array_namespace


def entropic(m: Any, gamma: float) -> Any:
    r"""Solve each row with an entropy: shares that fall off with the cost.

    The minimizer of :math:`\sum_j m_{ij} s_{ij} + \gamma \sum_j s_{ij} \log s_{ij}` on
    the simplex is :math:`s_{ij} \propto \exp(-m_{ij} / \gamma)`.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs; infinity gives 0. Every row needs one that is finite.
    gamma : float
        Positive weight of the entropy.

    Returns
    -------
    array of shape (n, m)
        Rows that sum to one.
    """
    xp = array_namespace(m)
    least = xp.min(m, axis=1, keepdims=True)  # so that not all of a row vanish
    weights = xp.exp((least - m) / gamma)
    return weights / xp.sum(weights, axis=1, keepdims=True)


def cheapest(m: Any, k: int) -> Any:
    """Leave the k cheapest candidates of each row, and those as cheap as the k-th.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs.
    k : int
        Number of candidates.

    Returns
    -------
    array of shape (n, m)
        The costs; the others are infinite.
    """
    xp = array_namespace(m)
    limit = xp.sort(m, axis=1)[:, k - 1 : k]
    return xp.where(m <= limit, m, xp.inf)


def negentropy(s: Any) -> Any:
    """Return the sum of s log s of each row.

    Parameters
    ----------
    s : array of shape (n, m)
        Weights; zeros count nothing.

    Returns
    -------
    array of shape (n,)
        The sums.
    """
    xp = array_namespace(s)
    return xp.sum(s * xp.log(xp.where(s > 0, s, 1.0)), axis=1)
