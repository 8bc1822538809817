"""Beyond the paper: targets and costs that give better clusters."""

from typing import Any

from array_api_compat import array_namespace

from bistochastic.core.protocols import Graph

FAINT = 1e-9  # what every point keeps for itself, so that the mapping exists
SCALE = 7  # neighbor whose distance is the local scale


def triangles(S: Graph) -> Graph:
    r"""Weigh edges by the neighbors that their ends have in common.

    Returns the weights :math:`s_{ij} \sqrt{(S^2)_{ij}}` on the pattern of S, with a
    faint diagonal: edges that no third point supports all but vanish.

    Parameters
    ----------
    S : Graph
        Doubly stochastic graph.

    Returns
    -------
    Graph
        Symmetric weights, to be made doubly stochastic.
    """
    return S.supported().shifted(FAINT)


def unit_rows(F: Any) -> Any:
    """Divide the rows of an embedding by their lengths; rows of zeros stay.

    Inside a finished component their distances are 0 and across 2, whatever the sizes
    of the components.

    Parameters
    ----------
    F : array of shape (n, c)
        Embedding.

    Returns
    -------
    array of shape (n, c)
        Rows of length one.
    """
    xp = array_namespace(F)
    size = xp.sqrt(xp.sum(F * F, axis=1, keepdims=True))
    return F / xp.where(size > 0, size, xp.ones_like(size))


def nth_cost(m: Any, loops: bool) -> Any:
    """Return the cost of the seventh neighbor in rows of ascending costs.

    Parameters
    ----------
    m : array of shape (n, m)
        Costs in ascending order; infinite where there are fewer.
    loops : bool
        Whether the first is the point itself.

    Returns
    -------
    array of shape (n,)
        The cost, or that of the last neighbor there is.
    """
    xp = array_namespace(m)
    others = m[:, int(loops) :][:, :SCALE]
    return xp.max(xp.where(xp.isfinite(others), others, 0.0), axis=1)


def local_scales(costs: Any) -> Any:
    """Return positive scales, distances to the seventh neighbor.

    Parameters
    ----------
    costs : array of shape (n,)
        Squared distances; 0 where there are as many duplicates.

    Returns
    -------
    array of shape (n,)
        Their roots; the smallest positive one in place of zeros.
    """
    xp = array_namespace(costs)
    scales = xp.sqrt(costs)
    least = xp.min(xp.where(scales > 0, scales, xp.inf))
    least = xp.where(xp.isfinite(least), least, xp.ones_like(least))
    return xp.where(scales > 0, scales, least)


def dimension(m: Any, loops: bool) -> Any:
    """Return the inverse of the intrinsic dimension around each point.

    The likeliest value where neighbors fill the space evenly (Levina and Bickel); the
    inverses are what should be averaged (MacKay and Ghahramani).

    Parameters
    ----------
    m : array of shape (n, m)
        Squared distances in ascending order; infinite where there are fewer.
    loops : bool
        Whether the first is that to the point itself.

    Returns
    -------
    array of shape (n,)
        Mean logarithm of the farthest distance over the nearer ones; not a number where
        there are no two different ones.
    """
    xp = array_namespace(m)
    m = m[:, int(loops) :]
    proper = xp.isfinite(m) & (m > 0)
    farthest = xp.max(xp.where(proper, m, 0.0), axis=1, keepdims=True)
    nearer = proper & (m < farthest)
    ratios = xp.where(nearer, farthest, 1.0) / xp.where(nearer, m, 1.0)
    number = xp.sum(xp.astype(nearer, m.dtype), axis=1)
    return xp.sum(xp.log(ratios), axis=1) / xp.where(number > 0, 2 * number, xp.nan)


def rescaled(rows: Any, columns: Any, values: Any, scales: Any) -> Any:
    """Divide costs by the scales of both ends, and put them in order again."""
    xp = array_namespace(values)
    values = values / scales[rows][:, None] / scales[columns]
    order = xp.argsort(values, axis=1, stable=True)
    values = xp.take_along_axis(values, order, axis=1)
    return xp.take_along_axis(columns, order, axis=1), values


def halved_by(m: Any, alpha: Any) -> Any:
    """Divide the costs of each row by twice its alpha."""
    return m / (2 * alpha[:, None])
