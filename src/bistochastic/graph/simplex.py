"""The rows of the relaxed problem in closed form: Eqs. (15), (18) and (19).

Each works on the rows of an array of costs m_ij, one row for each point and one column
for each candidate; infinity stands for no candidate.
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

TRACE = 1e-12  # of the largest weight of a row: below it there is no edge
SAME = 1e-12  # of the largest cost of a row: below it all k + 1 nearest are duplicates


def simplex(v: Any) -> Any:
    r"""Project each row on the simplex, Eq. (15).

    The minimizer of :math:`\|s - v\|^2` over :math:`s \ge 0`, :math:`\sum_j s_j = 1` is
    :math:`s_j = \max(v_j - \theta, 0)`; sorting finds :math:`\theta`.

    Parameters
    ----------
    v : array of shape (n, m)
        Any numbers; -infinity gives 0. Every row needs one that is finite.

    Returns
    -------
    array of shape (n, m)
        Rows that sum to one.
    """
    xp = array_namespace(v)
    v = v - xp.max(v, axis=1, keepdims=True)  # so that large numbers keep their digits
    u = xp.sort(v, axis=1, descending=True)
    finite = xp.isfinite(u)
    sums = running(xp.where(finite, u, xp.zeros_like(u)))
    size = xp.arange(1, u.shape[1] + 1, dtype=u.dtype, device=device(u))
    theta = (sums - 1.0) / size[None, :]
    kept = xp.sum(xp.astype(u > theta, xp.int64), axis=1, keepdims=True)
    theta = xp.take_along_axis(theta, kept - 1, axis=1)
    return xp.clip(v - theta, 0.0, None)


def running(v: Any) -> Any:
    """Return the sums of the first entries of each row: of one, of two, ...

    Along the first axis of the transpose, which is the fast one on devices.
    """
    return array_namespace(v).cumulative_sum(v.T, axis=0).T


def weighted_simplex(v: Any, w: Any) -> Any:
    r"""Minimize :math:`\sum_j w_j s_j^2 / 2 - v_j s_j` over each row of the simplex.

    The minimizer is :math:`s_j = \max(v_j - \theta, 0) / w_j`; with weights of one, the
    projection of Eq. (15). CLR's reweighted rows are such.

    Parameters
    ----------
    v : array of shape (n, m)
        Any numbers; -infinity gives 0. Every row needs one that is finite.
    w : array of shape (n, m)
        Positive weights.

    Returns
    -------
    array of shape (n, m)
        Rows that sum to one.
    """
    xp = array_namespace(v)
    v = v - xp.max(v, axis=1, keepdims=True)
    order = xp.argsort(v, axis=1, descending=True, stable=True)
    u = xp.take_along_axis(v, order, axis=1)
    shares = 1.0 / xp.take_along_axis(w, order, axis=1)
    sums = running(xp.where(xp.isfinite(u), u, 0.0) * shares)
    theta = (sums - 1.0) / running(shares)
    kept = xp.sum(xp.astype(u > theta, xp.int64), axis=1, keepdims=True)
    theta = xp.take_along_axis(theta, kept - 1, axis=1)
    return xp.clip(v - theta, 0.0, None) / w


def simplex_of_entries(rows: Any, values: Any, n: int) -> Any:
    """Project each row on the simplex, Eq. (15), the rows given entry by entry.

    The entries that stay positive are found by dropping, time and again, those that
    do not (Michelot, 1986).

    Parameters
    ----------
    rows : array of int of shape (m,)
        The row of each entry.
    values : array of shape (m,)
        The entries v.
    n : int
        Number of rows; some may have no entries.

    Returns
    -------
    array of shape (m,)
        The projected entries.
    """
    top = np.full(n, -np.inf)
    np.maximum.at(top, rows, values)
    values = values - top[rows]  # so that large entries keep their digits
    kept = np.ones(values.shape, dtype=bool)
    while True:
        size = np.maximum(np.bincount(rows[kept], minlength=n), 1)
        total = np.bincount(rows[kept], values[kept], minlength=n)
        b = (1.0 - total) / size
        smaller = kept & (values + b[rows] > 0)
        if np.array_equal(smaller, kept):
            return np.maximum(values + b[rows], 0.0)
        kept = smaller


def relaxed(m: Any, alpha: Any) -> Any:
    r"""Solve each row of the relaxed problem, Eqs. (14) and (15).

    The minimizer of :math:`\sum_j m_{ij} s_{ij} + \alpha \|s_i\|^2` on the simplex is
    the projection of :math:`-m_i / (2 \alpha)`.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs.
    alpha : float or array of shape (n, 1)
        Positive weight of the squared norm.

    Returns
    -------
    array of shape (n, m)
        Rows that sum to one.
    """
    return simplex(-m / (2.0 * alpha))


def largest_alpha(m: Any, k: int) -> Any:
    r"""Return for each row the largest alpha that gives k neighbors, Eq. (19).

    .. math::
        \tfrac k2 m_{ik} - \tfrac12 \sum_{j \le k} m_{ij} < \alpha_i \le
        \tfrac k2 m_{i, k+1} - \tfrac12 \sum_{j \le k} m_{ij},

    the costs in ascending order. Zero if all k + 1 smallest are the same, to rounding.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs, at least k + 1 finite ones in each row.
    k : int
        Number of neighbors.

    Returns
    -------
    array of shape (n,)
        The upper end of the range.
    """
    xp = array_namespace(m)
    nearest = xp.sort(m, axis=1)[:, : k + 1]
    total = xp.sum(nearest[:, k:] - nearest[:, :k], axis=1)  # 2 alpha
    same = total <= SAME * nearest[:, k]
    return xp.where(same, xp.zeros_like(total), total / 2)


def k_nearest(m: Any, k: int) -> Any:
    r"""Return the rows with k neighbors at the largest alpha, Eq. (18).

    .. math:: s_{ij} = \left( \phi - \frac{m_{ij}}{2 \alpha_i} \right)_+
        = \frac{m_{i, k+1} - m_{ij}}{2 \alpha_i} \quad (j \le k)

    A k-th neighbor as far as the next one gets weight 0, so that fewer than k may be
    left. Where all k + 1 nearest are duplicates, they share alike.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs, at least k + 1 finite ones in each row.
    k : int
        Number of neighbors.

    Returns
    -------
    array of shape (n, m)
        Rows that sum to one.
    """
    xp = array_namespace(m)
    nearest = xp.sort(m, axis=1)[:, : k + 1]
    next_one = nearest[:, k:]
    total = xp.sum(next_one - nearest[:, :k], axis=1, keepdims=True)  # 2 alpha
    same = total <= SAME * next_one
    weights = xp.clip(next_one - m, 0.0, None) / xp.where(
        same, xp.ones_like(total), total
    )
    near = xp.astype(m <= next_one, m.dtype)
    alike = near / xp.sum(near, axis=1, keepdims=True)
    return xp.where(same, alike, weights)


def reach(m: Any, alpha: Any) -> Any:
    r"""Return for each row the cost below which a candidate gets weight, Eq. (18).

    The threshold is :math:`2 \alpha \phi`, which is :math:`m_{ij} + 2 \alpha s_{ij}`
    for any positive :math:`s_{ij}`. A candidate that was left out changes nothing if
    its cost is no less than that.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs.
    alpha : float or array of shape (n, 1)
        Positive weight of the squared norm.

    Returns
    -------
    array of shape (n,)
        The threshold of each row.
    """
    xp = array_namespace(m)
    s = relaxed(m, alpha)
    return xp.max(xp.where(s > 0, m + 2.0 * alpha * s, -xp.ones_like(m)), axis=1)


def without_traces(s: Any) -> Any:
    """Set weights below 1e-12 of the largest of their row to zero.

    What rounding leaves over would count as an edge, and join components.

    Parameters
    ----------
    s : array of shape (n, m)
        Weights.

    Returns
    -------
    array of shape (n, m)
        The others.
    """
    xp = array_namespace(s)
    least = TRACE * xp.max(s, axis=1, keepdims=True)
    return xp.where(s > least, s, xp.zeros_like(s))


def first_weights(m: Any, k: int) -> Any:
    """Return the rows of the first graph: Eq. (18) without what rounding leaves over.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs, at least k + 1 finite ones in each row.
    k : int
        Number of neighbors.

    Returns
    -------
    array of shape (n, m)
        Weights.
    """
    return without_traces(k_nearest(m, k))


def relaxed_rows(m: Any, alpha: Any) -> Any:
    """Solve rows of Eq. (14), without what rounding left of zeros.

    Parameters
    ----------
    m : array of shape (n_rows, n_candidates)
        Costs.
    alpha : float or array of shape (n_rows,)
        Weight of the squared norm, for all rows or for each.

    Returns
    -------
    array of shape (n_rows, n_candidates)
        Weights.
    """
    return without_traces(relaxed(m, alpha[:, None] if np.ndim(alpha) else alpha))


def aggregated_rows(m: Any, sizes: Any, pairs: Any, alpha: Any) -> Any:
    r"""Solve rows of Eq. (14) for aggregates of points, without traces.

    The row of an aggregate of w points sums to w, and an entry that stands for e pairs
    of points, each with an equal share, has the squared norm :math:`s^2 / e`. The
    minimizer of :math:`\sum_j m_{ij} s_{ij} + \alpha s_{ij}^2 / e_{ij}` is w times that
    of a weighted simplex. With w = 1 and e = 1, `relaxed_rows`.

    Parameters
    ----------
    m : array of shape (n_rows, n_candidates)
        Costs of a pair of points.
    sizes : array of shape (n_rows,)
        Numbers of points w of the aggregates.
    pairs : array of shape (n_rows, n_candidates)
        Numbers of pairs e that entries stand for, positive.
    alpha : float
        Weight of the squared norm.

    Returns
    -------
    array of shape (n_rows, n_candidates)
        Weights, rows sum to `sizes`.
    """
    w = sizes[:, None]
    return without_traces(w * weighted_simplex(-m / (2.0 * alpha), w / pairs))


def reach_of_rows(m: Any, alpha: Any) -> Any:
    """Return the limit of costs of each row, by an alpha of each."""
    return reach(m, alpha[:, None])


def farthest(m: Any) -> Any:
    """Return the largest finite cost of each row."""
    xp = array_namespace(m)
    return xp.max(xp.where(xp.isfinite(m), m, -xp.ones_like(m)), axis=1)


def free(m: Any) -> Any:
    """Count the candidates of each row that cost nothing."""
    xp = array_namespace(m)
    return xp.sum(xp.astype(m == 0, m.dtype), axis=1)
