"""From given distances or affinities to the costs of candidates."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse import csr_array

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, NotSymmetricError
from bistochastic.core.protocols import Costs
from bistochastic.graph.components import components
from bistochastic.places.parts import affinity_parts, parts
from bistochastic.places.tables import DenseCosts, TableCosts

ZERO = 1e-6  # of the largest distance: what a diagonal of zeros may be off


def of_distances(D: Any, *, loops: bool) -> Any:
    """Take a square array of distances; they are squared.

    Parameters
    ----------
    D : array of shape (n, n)
        Symmetric, finite, non-negative, with a diagonal of zeros.
    loops : bool
        Whether a point is its own candidate.

    Returns
    -------
    DenseCosts
        All pairs.
    """
    largest = D.max(initial=0.0)
    worst = np.abs(D - D.T)
    if worst.max(initial=0.0) > ZERO * largest:
        i, j = divmod(int(worst.argmax()), D.shape[0])
        raise NotSymmetricError(
            f"The distances are not symmetric: X[{i}, {j}] = {D[i, j]:.6g} but "
            f"X[{j}, {i}] = {D[j, i]:.6g}. Eq. (6) needs a distance; pass "
            "(X + X.T) / 2, or a sparse matrix if the rows list the candidates of each "
            "point."
        )
    if np.abs(np.diagonal(D)).max() > ZERO * largest:
        i = int(np.abs(np.diagonal(D)).argmax())
        raise InputError(
            f"X[{i}, {i}] = {D[i, i]:.6g}, but the distance of a point to itself is 0. "
            'If X holds similarities, use metric="affinity".'
        )
    made = squares(D)
    return all_pairs(made, loops)


def squares(D: Any) -> Any:
    """Return the squared distances of a checked array, with a diagonal of zeros."""
    made = squared(D / 2 + D.T / 2)
    np.fill_diagonal(made, 0.0)
    return made


def of_table(D: Any, *, loops: bool) -> Any:
    """Take a sparse matrix of distances: row i lists the candidates of i.

    Parameters
    ----------
    D : sparse matrix of shape (n, n)
        Distances, as KNeighborsTransformer makes them: a stored zero is a duplicate,
        what is not stored is no candidate. They are squared.
    loops : bool
        Whether a point is its own candidate.

    Returns
    -------
    TableCosts
        A table.
    """
    n = D.shape[0]
    D = csr_array(D)
    if not D.has_canonical_format:
        D = D.copy()
        D.sum_duplicates()
    rows = np.repeat(np.arange(n), np.diff(D.indptr))
    others = rows != D.indices
    stored = D.data[others]
    if stored.size and stored.min() == stored.max() > 0:
        raise InputError(
            f"All stored distances are {stored[0]:g}. If they only say who is whose "
            'neighbor, pass distances (mode="distance"), or the graph with '
            'metric="affinity".'
        )
    i, j, costs = rows[others], D.indices[others], squared(D.data[others])
    if loops:
        i, j = np.concatenate([np.arange(n), i]), np.concatenate([np.arange(n), j])
        costs = np.concatenate([np.full(n, -1.0), costs])  # first of all
    order = np.lexsort((j, costs, i))
    return TableCosts(parts(i[order], j[order], costs[order], n, loops), n)


def of_affinities(A: Any, *, loops: bool) -> Any:
    """Take a doubly stochastic graph: the costs whose rows, at first, are its own.

    With :math:`d_{ij} = -a_{ij}` on the pattern of A and alpha = 1/2, the solution of
    Eq. (14) without the penalty is :math:`s_i = a_i`.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Doubly stochastic.
    loops : bool
        Whether a point may keep its weight for itself.

    Returns
    -------
    TableCosts
        A table.
    """
    return TableCosts(affinity_parts(A, loops), A.shape[0])


def fewest(X: Any, *, loops: bool, pairs: bool) -> tuple[Any, Any]:
    """Find the point with the fewest candidates.

    Parameters
    ----------
    X : array or sparse matrix
        Points, or distances.
    loops : bool
        Whether a point is its own candidate.
    pairs : bool
        Whether X holds distances.

    Returns
    -------
    number : int
        How many it has, itself included if it counts.
    row : int
        Which one.
    """
    n = X.shape[0]
    if not (pairs and is_sparse(X)):
        return n - 1 + loops, 0
    X = csr_array(X)
    rows = np.repeat(np.arange(n), np.diff(X.indptr))
    others = np.bincount(rows[X.indices != rows], minlength=n)
    row = int(others.argmin())
    return int(others[row]) + loops, row


def distinct(costs: Costs) -> int:
    """Return how many points there are if duplicates, at cost 0, count once.

    Parameters
    ----------
    costs : Costs
        Costs of candidates.

    Returns
    -------
    int
        The number.
    """
    return components(costs.weigh(_equal).symmetrized())[0]


def _equal(m: Any) -> Any:
    return array_namespace(m).astype(m == 0, m.dtype)


def all_pairs(D: Any, loops: bool) -> Any:
    """Return squared distances of all pairs as costs; D is overwritten.

    Parameters
    ----------
    D : array of shape (n, n)
        Squared distances.
    loops : bool
        Whether a point is its own candidate, at cost 0.

    Returns
    -------
    DenseCosts
        All pairs.
    """
    if not loops:
        np.fill_diagonal(D, np.inf)
    return DenseCosts(D)


def squared(distances: Any) -> Any:
    """Return the squares of distances, or say that they overflow."""
    with np.errstate(over="ignore"):
        squares = distances**2
    if distances.size and distances.max() > 0 == squares.max():
        raise InputError(
            "The distances are so small that their squares vanish. Multiply X by a "
            "number first."
        )
    if not np.isfinite(squares).all():
        raise InputError(
            "The distances are so large that their squares overflow. Divide X by a "
            "number first."
        )
    return squares
