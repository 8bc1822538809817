"""Exact neighbors and squared distances, with every digit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy.spatial.distance import cdist

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import InputError
from bistochastic.core.jobs import workers
from bistochastic.neighbors.points import SQUARED

NEAR = 1e-6  # of |x|^2 + |y|^2: a shorter distance is computed again, by differences
LOST = 1e-8  # of |x|^2: if the m-th neighbor is nearer, the search is done again
AFFORDED = 1 << 29  # pairs that are looked at one by one to order ties
LARGEST = 1 << 27  # entries of a sparse X that may be made dense for that
ROWS = 1 << 16  # rows measured in one go
MOMENTS = 2000  # columns up to which sums over points tell a norm over pairs
FLAT = 6  # columns up to which a tree is the fastest search
ASKED = 500  # rows that a thread asks a tree for, at least
LARGE = 1e150  # coordinates above it have squares that overflow


def norm_of_costs(points: Any) -> float:
    """Return the Frobenius norm of the squared distances of all pairs.

    Parameters
    ----------
    points : Points
        The points; by coordinates, arrays of any namespace.

    Returns
    -------
    float
        The root of the sum of d_ij^2 over all i and j.
    """
    X = points.X
    if points.metric not in SQUARED or is_sparse(X) or X.shape[1] > MOMENTS:
        return _norm_by_chunks(points)
    xp = array_namespace(X)
    mean = xp.mean(X, axis=0)
    top = float(xp.max(xp.abs(X - mean)))
    return norm_of_moments(X.shape[0], top, moments(X, mean, top or 1.0))


def moments(X: Any, mean: Any, top: float) -> Any:
    """Return the sums over points that the norm of all squared distances is made of.

    Parameters
    ----------
    X : array of shape (m, d)
        Some points.
    mean : array of shape (d,)
        The mean of all.
    top : float
        Unit of length, so that fourth powers do not overflow.

    Returns
    -------
    tuple of (array, array, array of shape (d, d))
        Sums of |y|^2, |y|^4 and y y' for y = (x - mean) / top.
    """
    xp = array_namespace(X)
    Y = xp.astype((X - mean) / top, xp.float64)
    squares = xp.vecdot(Y, Y)
    return xp.sum(squares), xp.vecdot(squares, squares), Y.T @ Y


def norm_of_moments(n: int, top: float, sums: Any) -> float:
    """Return the root of the sum of |y_i - y_j|^4, the mean of y being zero.

    Parameters
    ----------
    n : int
        Number of points.
    top : float
        Unit of length.
    sums : tuple
        What `moments` gives for all of them.

    Returns
    -------
    float
        The Frobenius norm of the squared distances.
    """
    second, fourth, gram = (np.asarray(on_cpu(part), float) for part in sums)
    total = 2 * n * fourth + 2 * second**2 + 4 * np.sum(gram**2)
    return float(top**2 * np.sqrt(total))


def _norm_by_chunks(points: Any) -> Any:
    """Return the same for any metric, some rows at a time."""
    from sklearn.metrics import pairwise_distances_chunked

    metric = "euclidean" if points.metric in SQUARED else points.metric
    chunks = pairwise_distances_chunked(points.X, metric=metric)
    norms = []
    for D in chunks:
        top = D.max() or 1.0  # so that fourth powers do not overflow
        norms.append(top**2 * np.linalg.norm((D / top) ** 2))
    top = max(norms) or 1.0
    return float(top * np.linalg.norm(np.array(norms) / top))


def squared_distances(points: Any) -> Any:
    """Return the squared distances of all pairs, Eq. (6).

    Parameters
    ----------
    points : Points
        The points.

    Returns
    -------
    array of shape (n, n)
        Symmetric, with a diagonal of zeros; duplicates are at 0 exactly.
    """
    from sklearn.metrics import euclidean_distances, pairwise_distances

    X = points.X
    if points.metric not in SQUARED:
        D = pairwise_distances(X, metric=points.metric)
        D = (D / 2 + D.T / 2) ** 2
    else:
        with np.errstate(all="ignore"):
            D = euclidean_distances(X, squared=True)
        sizes = _sizes(X)
        i, j = np.nonzero(D <= NEAR * (sizes[:, None] + sizes[None, :]))
        i, j = i[i < j], j[i < j]
        D[i, j] = D[j, i] = _between(X, i, X, j)
        D = D / 2 + D.T / 2
    np.fill_diagonal(D, 0.0)
    return _in_range(D, points)


def nearest(
    points: Any,
    m: int,
    *,
    n_jobs: int | None = None,
    fast: Callable[..., Any] = lambda text: text,
) -> tuple[Any, Any]:
    """Find the m nearest other points of every point.

    Parameters
    ----------
    points : Points
        The points, more than m of them.
    m : int
        How many.
    n_jobs : int, optional
        Threads, as scikit-learn counts them.
    fast : callable, optional
        Returns the compiled body of a text.

    Returns
    -------
    columns : array of int of shape (n, m)
        The neighbors, the nearest first, ties by number; the point itself is left out.
    costs : array of shape (n, m)
        Their squared distances.
    """
    n = points.X.shape[0]
    columns, costs = nearest_to(points, points.X, m + 1, n_jobs=n_jobs, fast=fast)
    own = columns == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # more than m duplicates pushed it out
    return columns[~own].reshape(n, m), costs[~own].reshape(n, m)


def nearest_to(
    points: Any,
    Y: Any,
    m: int,
    *,
    n_jobs: int | None = None,
    brute: bool = False,
    fast: Callable[..., Any] = lambda text: text,
) -> tuple[Any, Any]:
    """Find the m points nearest to each row of Y.

    Parameters
    ----------
    points : Points
        The points, at least m of them.
    Y : array or sparse matrix of shape (n_new, d)
        Rows made ready by ``points.like``.
    m : int
        How many.
    n_jobs : int, optional
        Threads, as scikit-learn counts them.
    brute : bool, default=False
        Whether to compare with all points, which pays for few rows of Y.
    fast : callable, optional
        Returns the compiled body of a text.

    Returns
    -------
    columns : array of int of shape (n_new, m)
        The neighbors, the nearest first, ties by number.
    costs : array of shape (n_new, m)
        Their squared distances.
    """
    X, by_coordinates = points.X, points.metric in SQUARED
    width = min(m + 1, X.shape[0])  # one more, to see whether the last is tied
    distances, columns = _searched(points, Y, width, n_jobs, brute)
    lost = np.zeros(Y.shape[0], dtype=bool)
    if by_coordinates:  # again by differences: the search loses digits
        columns, costs = (ranked if is_sparse(X) else fast(ranked))(Y, X, columns)
        last = costs[:, -1]
        lost = (last > 0) & (last < LOST * _sizes(Y))
    else:
        columns, costs = _in_order(columns, distances**2)
    tied = costs[:, -1] == costs[:, m - 1] if width > m else np.zeros_like(lost)
    if np.count_nonzero(tied) * X.shape[0] > AFFORDED:
        tied = np.zeros_like(lost)
    columns, costs = columns[:, :m], costs[:, :m]
    if (lost | tied).any():
        again = np.flatnonzero(lost | tied)
        columns[again], costs[again] = _one_by_one(points, Y[again], m)
    kind = np.int32 if X.shape[0] < 2**31 else np.int64
    return columns.astype(kind), _in_range(costs, points)


def _searched(
    points: Any, Y: Any, width: int, n_jobs: int | None, brute: bool
) -> tuple[Any, Any]:
    """Return the distances and numbers of nearest points, as a search finds them."""
    from sklearn.neighbors import NearestNeighbors

    X, metric = points.X, points.metric
    by_coordinates = metric in SQUARED
    if by_coordinates and not is_sparse(X) and X.shape[1] <= FLAT and not brute:
        threads = workers(-1 if n_jobs is None else n_jobs)
        distances, columns = _by_tree(X, Y, width, threads)
        return _in_range(distances, points), columns
    if n_jobs is not None and abs(X).max() > LARGE:
        n_jobs = 1  # NumPy would warn in other threads, whatever is set in this one
    search = NearestNeighbors(
        n_neighbors=width,
        metric="euclidean" if by_coordinates else metric,
        algorithm="brute" if brute or callable(metric) else "auto",  # or by triangles
        n_jobs=None if n_jobs is None else workers(n_jobs),
    )
    return search.fit(X).kneighbors(Y)


def _by_tree(X: Any, Y: Any, width: Any, threads: Any) -> Any:
    """Find the nearest of few dimensions by a tree.

    SciPy's own threads go on after an interrupt, with arrays that are gone, and end the
    process. These are waited for.
    """
    from scipy.spatial import cKDTree

    tree, ranks = cKDTree(X), range(1, width + 1)
    if threads == 1 or Y.shape[0] < 2 * ASKED:
        return tree.query(Y, ranks)
    distances = np.empty((Y.shape[0], width))
    columns = np.empty((Y.shape[0], width), dtype=np.intp)

    def ask(rows: Any) -> None:
        distances[rows], columns[rows] = tree.query(Y[rows], ranks)

    step = max(ASKED, -(-Y.shape[0] // (4 * threads)))
    parts = [slice(a, a + step) for a in range(0, Y.shape[0], step)]
    pool = ThreadPoolExecutor(threads)
    try:
        list(pool.map(ask, parts))
    finally:
        pool.shutdown(cancel_futures=True)
    return distances, columns


def measured(
    points: Any, columns: Any, m: int, fast: Callable[..., Any] = lambda text: text
) -> tuple[Any, Any]:
    """Measure the distances of given neighbors, and keep the nearest in order.

    Parameters
    ----------
    points : Points
        The points, by coordinates.
    columns : array of int of shape (n, w)
        Neighbors of each point.
    m : int
        How many to keep, at most w.
    fast : callable, optional
        Returns the compiled body of a text.

    Returns
    -------
    columns : array of int of shape (n, m)
        The nearest of them, the nearest first, ties by number.
    costs : array of shape (n, m)
        Their squared distances, in double precision.
    """
    n, body = columns.shape[0], fast(ranked)
    kept, costs = np.empty((n, m), dtype=columns.dtype), np.empty((n, m))
    for a in range(0, n, ROWS):
        tile = slice(a, a + ROWS)
        found, near = body(points.X[tile], points.X, columns[tile])
        kept[tile], costs[tile] = found[:, :m], near[:, :m]
    return kept, _in_range(costs, points)


def ranked(Y: Any, X: Any, columns: Any) -> tuple[Any, Any]:
    """Measure the squared distances of some points to others, and put them in order.

    Parameters
    ----------
    Y : array or sparse matrix of shape (n_rows, d)
        Some points.
    X : array or sparse matrix of shape (n, d)
        All points.
    columns : array of int of shape (n_rows, m)
        The others of each.

    Returns
    -------
    columns : array of int of shape (n_rows, m)
        The nearest first, ties by number.
    costs : array of shape (n_rows, m)
        Squared distances, in double precision.
    """
    rows = np.repeat(np.arange(Y.shape[0]), columns.shape[1])
    costs = _between(Y, rows, X, columns.ravel()).reshape(columns.shape)
    return _in_order(columns, costs)


def _in_order(columns: Any, costs: Any) -> tuple[Any, Any]:
    order = np.lexsort((columns, costs), axis=1)
    columns = np.take_along_axis(columns, order, axis=1)
    return columns, np.take_along_axis(costs, order, axis=1)


def between(points: Any, rows: Any, columns: Any) -> Any:
    """Return the squared distances of some points to others, one row for each.

    Parameters
    ----------
    points : Points
        The points, by coordinates.
    rows : array of int of shape (n_rows,)
        Some of them.
    columns : array of int of shape (n_rows, m)
        The others.

    Returns
    -------
    array of shape (n_rows, m)
        Squared distances.
    """
    rows = np.repeat(rows, columns.shape[1])
    found = _between(points.X, rows, points.X, columns.ravel())
    return found.reshape(columns.shape)


def _sizes(X: Any) -> Any:
    from sklearn.utils.extmath import row_norms

    return row_norms(X, squared=True)


def _one_by_one(points: Any, Y: Any, m: int, size: Any = 1 << 21) -> Any:
    """Find the m points nearest to each row of Y slowly: no rounding, ties in order."""
    from sklearn.metrics import pairwise_distances

    X, by_coordinates = points.X, points.metric in SQUARED
    columns = np.empty((Y.shape[0], m), dtype=np.intp)
    costs = np.empty((Y.shape[0], m))
    step = max(1, size // X.shape[0])
    dense = is_sparse(X) and by_coordinates
    if dense and X.shape[0] * X.shape[1] > LARGEST:
        raise InputError(
            "The rows of X are so long, beside their distances, that no digits of the "
            "distances are left. Subtract a common row, or scale the columns."
        )
    whole = X.toarray() if dense else X
    for a in range(0, Y.shape[0], step):
        tile = Y[a : a + step]
        if by_coordinates:
            D = cdist(tile.toarray() if dense else tile, whole, "sqeuclidean")
        else:
            D = pairwise_distances(tile, whole, metric=points.metric) ** 2
        last = np.partition(D, m - 1, axis=1)[:, m - 1 : m]
        i, j = np.nonzero(~(D > last))  # those tied with the last one, too
        order = np.lexsort((j, D[i, j], i))
        i, j = i[order], j[order]
        kept = np.arange(i.size) - np.searchsorted(i, i) < m
        columns[a : a + step] = j[kept].reshape(-1, m)
        costs[a : a + step] = D[i[kept], j[kept]].reshape(-1, m)
    return columns, costs


def _between(Y: Any, i: Any, X: Any, j: Any, size: Any = 1 << 21) -> Any:
    """Return |y_i - x_j|^2 for pairs of rows, by differences, a tile at a time."""
    out = np.empty(i.size)
    step = max(1, size // X.shape[1])
    for a in range(0, i.size, step):
        here, there = Y[i[a : a + step]], X[j[a : a + step]]
        if is_sparse(here):
            gap = here - there
            out[a : a + step] = np.asarray(gap.power(2).sum(axis=1)).ravel()
        else:
            gap = np.subtract(here, there, dtype=np.float64)
            out[a : a + step] = np.einsum("ij,ij->i", gap, gap)
    return out


def _in_range(costs: Any, points: Any) -> Any:
    if np.isfinite(costs).all():
        return costs
    if points.metric in SQUARED:
        raise InputError(
            "Squared distances overflow: the points lie too far apart for doubles. "
            "Divide the columns of X by a number first."
        )
    raise InputError(
        f"metric={points.metric!r} gives distances that are not finite, or whose "
        "squares are not. Scale X, or leave out the rows that it cannot compare."
    )
