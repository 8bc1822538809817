"""Nearest neighbors of points that lie in blocks of rows on the workers of Dask.

A task about the rows of one block asks another block: the rows that need it, and only
those, go to where that block lies, and what is found comes back and is merged. All of
it is tasks, so that what is lost with a worker is computed again. An exact search asks
the blocks whose box is not farther from a row than what the row has found. An
approximate one puts the points of each block into lists around centers; a row asks the
blocks that hold the lists with the nearest centers, as many lists as the exact
neighbors of a sample ask for.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bistochastic.neighbors.choose import (
    wanted_recall,
)
from bistochastic.neighbors.points import (
    SQUARED,
    Points,
)
from bistochastic.places.dask_workers.ready_points import starts_of
from bistochastic.places.dask_workers.search_exact import exact_tables
from bistochastic.places.dask_workers.search_lists import approximate_tables
from bistochastic.places.dask_workers.search_tasks import (
    NearTable,
    PointBlocks,
    Tasks,
    no_neighbors,
)

if TYPE_CHECKING:
    from distributed import Client, Future


def neighbors(
    client: "Client",
    points: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    m: int,
    how: Any = "auto",
    dear: float = 0.0,
) -> tuple[list["Future"], float]:
    """Find the m nearest other points of every point, or most of them.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    points : list of Future
        Points of each block, made by ``centered``; more than m of them.
    sizes : list of int
        How many rows each block has.
    m : int
        How many.
    how : {"auto", "exact"} or float, default="auto"
        A number is the wanted recall of an approximate search. "auto": as
        ``search.neighbors_of`` does it.
    dear : float, default=0.0
        The n^2 d up to which "auto" is exact, however many points there are.

    Returns
    -------
    list of Future
        For each block the numbers of the neighbors in all of X, the nearest first, ties
        by number, int64, and their squared distances; both of shape (rows, m).
    float
        Which share of the true neighbors these are, on a sample; 1 if exact.
    """
    tasks, sizes = Tasks(client), np.asarray(sizes, dtype=np.int64)
    first = int(np.flatnonzero(sizes)[0])
    metric, d = tasks.gather([tasks("kind", _kind, points[first])])[0]
    data = PointBlocks(tasks, list(points), sizes, starts_of(sizes), metric, d)
    squared = metric in SQUARED
    wanted = wanted_recall(how, data.n, d, squared, dear=dear)
    if wanted == 1.0:
        tables, recall = exact_tables(data, m, squared), 1.0
    else:
        tables, recall = approximate_tables(data, m, wanted)
    found = [
        tasks(f"neighbors {a}", _finished, tables[a], int(data.starts[a]), m)
        if a in tables
        else tasks(f"neighbors {a}", no_neighbors, m)
        for a in range(len(points))
    ]
    return found, recall


def _kind(points: Points) -> tuple[Any, int]:
    return points.metric, points.X.shape[1]


def _finished(table: NearTable, start: int, m: int) -> NearTable:
    """Leave out the point itself; where it was not found, the last."""
    rows = len(table.columns)
    columns, costs = table.columns[:, : m + 1], table.costs[:, : m + 1]
    own = columns == np.arange(start, start + rows)[:, None]
    own[~own.any(axis=1), -1] = True
    return NearTable(columns[~own].reshape(rows, m), costs[~own].reshape(rows, m))
