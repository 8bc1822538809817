"""Most of the nearest neighbors of very many points: trees, then descent.

Points in the same leaf of a random tree are near each other, and a neighbor of a
neighbor is likely to be a neighbor (Dong, Moses and Li, 2011). Lists of the nearest
known points start with the leaves of some trees and get better in rounds, in which each
point is offered what stands in the lists of those in its own list, and of those in
whose lists it stands. A tree takes about n log n steps and a round about n, whatever
the dimension is; an inverted file takes n^1.5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LEAF = 128  # points offered to one another
TREES, MOST = 8, 32  # trees grown at first, and at most
AXES = 8  # random directions that a tree divides
LOOKED = 20  # places of a list that a round looks at
BACK = 15  # lists in which a point stands that a round looks at
GAIN = 0.01  # of the recall: less than it is no reason for another round
SPARE = 3  # places of a list beyond those wanted
TILE = 1 << 22  # numbers made in one go


@dataclass(frozen=True, eq=False)
class Lists:
    """The nearest points known so far.

    Attributes
    ----------
    columns : array of int of shape (n, m)
        Their numbers, the nearest first; -1 where none is known.
    costs : array of shape (n, m)
        Their squared distances; infinite where none is known.
    fresh : array of bool of shape (n, m)
        Whether they came in the last round.
    """

    columns: np.ndarray
    costs: np.ndarray
    fresh: np.ndarray

    @classmethod
    def empty(cls, n: int, m: int, kind: Any) -> Any:
        """Return lists without a point."""
        numbers = np.int32 if n < 2**31 else np.int64
        return cls(
            np.full((n, m), -1, dtype=numbers),
            np.full((n, m), np.inf, dtype=kind),
            np.zeros((n, m), dtype=bool),
        )


def descent(
    x: Any,
    m: int,
    wanted: float,
    recall: Callable[..., Any],
    fast: Callable[..., Any] = lambda text: text,
) -> tuple[Any, Any]:
    """Find most of the m nearest other points of every point.

    Parameters
    ----------
    x : array of shape (n, d)
        Points.
    m : int
        How many.
    wanted : float
        Which recall is enough.
    recall : callable
        Tells the recall of columns.
    fast : callable, optional
        Returns the compiled body of a text.

    Returns
    -------
    columns : array of int of shape (n, m + 3)
        The nearest points known, and some more.
    float
        The recall.
    """
    n, d = x.shape
    rng = np.random.default_rng(0)
    width = min(m + SPARE, n - 1)
    lists, reached, grown = Lists.empty(n, width, x.dtype), 0.0, 0
    while grown < MOST:
        for _ in range(TREES):
            axes = np.linalg.qr(rng.standard_normal((d, min(d, AXES))))[0]
            order = leaves(x @ axes.astype(x.dtype))
            fast(offer_leaves)(x, order, max(LEAF, 2 * width), lists)
        grown += TREES
        before = -1.0  # a round after new trees, whatever these gained
        while True:
            reached = recall(lists.columns)
            if reached >= wanted:
                return lists.columns, reached
            if reached < before + GAIN:
                break
            before = reached
            lists = fast(offer_neighbors)(x, lists, fast(standing_in)(lists))
    return lists.columns, reached


def leaves(x: Any) -> Any:
    """Return the points in the order of the leaves of a tree.

    Parameters
    ----------
    x : array of shape (n, d)
        Points.

    Returns
    -------
    array of int of shape (n,)
        The order; neighbors mostly stand close by.
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(x, leafsize=64, compact_nodes=False, balanced_tree=False)
    return tree.indices


def offer_leaves(x: Any, order: Any, size: int, lists: Any) -> None:
    """Offer the points of each leaf to one another.

    Parameters
    ----------
    x : array of shape (n, d)
        Points.
    order : array of int of shape (n,)
        The points, leaf after leaf.
    size : int
        Points taken as a leaf; the last one overlaps that before it.
    lists : Lists
        What is known; changed.
    """
    n = x.shape[0]
    for start in range(0, n, size):
        rows = order[start : start + size]
        found = order[max(0, min(start, n - size)) : start + size]
        offered = np.broadcast_to(found, (rows.size, found.size))
        known = Lists(lists.columns[rows], lists.costs[rows], lists.fresh[rows])
        best = _best(x, rows, known, offered)
        lists.columns[rows], lists.costs[rows] = best.columns, best.costs
        lists.fresh[rows] = best.fresh


def standing_in(lists: Any) -> tuple[Any, Any]:
    """Find lists in which each point stands.

    Parameters
    ----------
    lists : Lists
        What is known.

    Returns
    -------
    columns : array of int of shape (n, BACK)
        The first points in whose lists each point stands; -1 where there are fewer.
    fresh : array of bool of shape (n, BACK)
        Whether it stands there since the last round.
    """
    n = lists.columns.shape[0]
    looked = lists.columns[:, :LOOKED]
    columns = np.full((n, BACK), -1, dtype=looked.dtype)
    fresh = np.zeros((n, BACK), dtype=bool)
    order = np.argsort(looked, axis=None, kind="stable")
    order = order[looked.ravel()[order] >= 0]
    to = looked.ravel()[order]
    place = np.arange(to.size) - np.searchsorted(to, to)
    kept = place < BACK
    to, place, order = to[kept], place[kept], order[kept]
    columns[to, place] = order // looked.shape[1]
    fresh[to, place] = lists.fresh[:, :LOOKED].ravel()[order]
    return columns, fresh


def offer_neighbors(x: Any, lists: Any, back: Any) -> Any:
    """Offer each point the neighbors of its neighbors.

    Two points that were offered to each other in an earlier round, both steps between
    them being old, are not offered again.

    Parameters
    ----------
    x : array of shape (n, d)
        Points.
    lists : Lists
        What is known.
    back : tuple of (array, array)
        What `standing_in` says of it.

    Returns
    -------
    Lists
        What is known then.
    """
    n, width = lists.columns.shape
    near = np.concatenate([lists.columns[:, :LOOKED], back[0]], axis=1)
    fresh = np.concatenate([lists.fresh[:, :LOOKED], back[1]], axis=1)
    made = Lists.empty(n, width, x.dtype)
    step = max(1, TILE // (near.shape[1] ** 2 * x.shape[1]))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        via = near[rows]
        offered = near[via].reshape(rows.size, -1)
        new = fresh[rows][:, :, None] | fresh[via]
        new &= (via >= 0)[:, :, None]
        offered = np.where(new.reshape(rows.size, -1), offered, -1)
        old = np.zeros((rows.size, width), dtype=bool)
        known = Lists(lists.columns[rows], lists.costs[rows], old)
        best = _best(x, rows, known, offered)
        made.columns[rows], made.costs[rows] = best.columns, best.costs
        made.fresh[rows] = best.fresh
    return made


def _best(x: Any, rows: Any, known: Any, offered: Any) -> Any:
    """Return the nearest of known and offered points, each once; fresh if offered."""
    width = known.columns.shape[1]
    gaps = x[rows][:, None, :] - x[offered]
    costs = np.einsum("ijk,ijk->ij", gaps, gaps)
    costs[(offered < 0) | (offered == rows[:, None])] = np.inf
    fresh = np.zeros((rows.size, width + offered.shape[1]), dtype=bool)
    fresh[:, :width], fresh[:, width:] = known.fresh, True
    columns = np.concatenate([known.columns, offered], axis=1)
    costs = np.concatenate([known.costs, costs], axis=1)
    order = np.argsort(columns, axis=1, kind="stable")  # what was known comes first
    columns, costs, fresh = (
        np.take_along_axis(part, order, axis=1) for part in (columns, costs, fresh)
    )
    costs[:, 1:][columns[:, 1:] == columns[:, :-1]] = np.inf
    order = np.argsort(costs, axis=1, kind="stable")[:, :width]
    columns, costs, fresh = (
        np.take_along_axis(part, order, axis=1) for part in (columns, costs, fresh)
    )
    columns[np.isinf(costs)] = -1
    return Lists(columns, costs, fresh & np.isfinite(costs))
