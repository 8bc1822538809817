"""Exact neighbors: a row asks the blocks whose box is near enough."""

from typing import TYPE_CHECKING

import numpy as np

from bistochastic.neighbors.exact import (
    AFFORDED,
    LOST,
    _in_range,
    _one_by_one,
    _sizes,
    nearest_to,
)
from bistochastic.neighbors.points import (
    SQUARED,
    Points,
)
from bistochastic.places.dask_workers.block import on_device
from bistochastic.places.dask_workers.search_tasks import (
    SLACK,
    Answer,
    Asked,
    NearTable,
    PointBlocks,
    blank_like,
    costs_between,
    in_order,
    known_of,
    merged_with,
    no_neighbors,
    padded_to,
    points_at,
    rows_replaced,
    table_at,
)

if TYPE_CHECKING:
    from distributed import Future


# Exact


def exact_tables(data: PointBlocks, m: int, squared: bool) -> dict[int, "Future"]:
    """Find the nearest points, the point itself being one: a table of each block."""
    tasks, points = data.tasks, data.points
    width = min(m + 2, data.n)  # one more, to see whether the last is tied
    boxes = None
    if squared:
        sides = [tasks(f"box {b}", _box, points[b]) for b in range(len(points))]
        boxes = tasks("boxes", np.stack, sides)
    tables = {
        a: tasks(f"own {a}", _own, points[a], int(data.starts[a]), width)
        for a in data.full
    }
    asking = {a: points[a] for a in data.full}
    tables = _asked_around(data, asking, tables, boxes, width, slow=False)
    doubts = {a: tasks(f"check {a}", _doubts, points[a], tables[a], m) for a in tables}
    counts = dict(zip(doubts, tasks.gather(list(doubts.values())), strict=True))
    ties = sum(tied for tied, _ in counts.values()) * data.n <= AFFORDED
    again = [a for a, (tied, lost) in counts.items() if lost or (tied and ties)]
    if again:  # as one search does it: other sums, which round otherwise
        rows = {
            a: tasks(f"again {a}", _doubtful, points[a], tables[a], m, ties)
            for a in again
        }
        some = {a: tasks(f"rows {a}", points_at, points[a], rows[a]) for a in again}
        known = {a: tasks(f"known {a}", table_at, tables[a], rows[a]) for a in again}
        known = _asked_around(data, some, known, boxes, width, slow=True)
        for a in again:
            tables[a] = tasks(
                f"replace {a}", rows_replaced, tables[a], rows[a], known[a]
            )
    return tables


def _asked_around(
    data: PointBlocks,
    asking: dict[int, "Future"],
    tables: dict[int, "Future"],
    boxes: "Future | None",
    width: int,
    slow: bool,
) -> dict[int, "Future"]:
    """Ask all blocks within reach, one after the other.

    Parameters
    ----------
    data : PointBlocks
        The points.
    asking : dict of Future
        Points of some blocks, all or some of their rows.
    tables : dict of Future
        What is known of their neighbors.
    boxes : Future, optional
        The box of each block; None: all are within reach.
    width : int
        How many neighbors.
    slow : bool
        Whether to look at pairs one by one, and to forget what is known.

    Returns
    -------
    dict of Future
        Tables.
    """
    tasks, found = data.tasks, {}
    reached = [
        tasks(f"reach {a}", _reached, asking[a], tables[a], boxes, len(data.sizes))
        for a in asking
    ]
    for a, counts in zip(asking, tasks.gather(reached), strict=True):
        table = tasks(f"blank {a}", blank_like, tables[a]) if slow else tables[a]
        for b in np.argsort(-counts, kind="stable").tolist():
            if not counts[b] or not data.sizes[b] or (b == a and not slow):
                continue
            known = tables[a] if slow else table
            asked = tasks(f"ask {a} {b}", asked_by, asking[a], known, boxes, b)
            start, of = int(data.starts[b]), data.points[b]
            answer = tasks(f"search {a} {b}", answer_to, of, start, asked, width, slow)
            table = tasks(f"merge {a} {b}", merged_with, table, answer)
        found[a] = table
    return found


def _box(points: Points) -> np.ndarray:
    """Return the smallest and the largest coordinates."""
    low = points.X.min(axis=0, initial=np.inf)
    return np.stack([low, points.X.max(axis=0, initial=-np.inf)]).astype(np.float64)


def _own(points: Points, start: int, width: int) -> NearTable:
    """Return what a block finds in itself."""
    asked = Asked(np.arange(points.X.shape[0]), points.X)
    return padded_to(answer_to(points, start, asked, width, False).table, width)


def answer_to(
    points: Points, start: int, asked: Asked, width: int, slow: bool
) -> Answer:
    """Return the points of a block that are nearest to rows of another."""
    X, Y = points.X, asked.Y
    width = min(width, X.shape[0])
    if not len(Y):
        return Answer(asked.rows, no_neighbors(width))
    if slow:
        columns, costs = _one_by_one(points, Y, width)
        return Answer(
            asked.rows,
            NearTable(columns.astype(np.int64) + start, _in_range(costs, points)),
        )
    if points.metric in SQUARED and (there := on_device()) is not None:
        columns = there.nearest(points, Y, width)
        return Answer(
            asked.rows, known_of(points, start, Y, columns, columns >= 0, width)
        )
    columns, costs = nearest_to(points, Y, width, n_jobs=1)
    if points.metric in SQUARED:  # some were summed up in another order
        costs = costs_between(Y, X, columns)
    return Answer(asked.rows, in_order(columns.astype(np.int64) + start, costs, width))


def _reached(
    points: Points, table: NearTable, boxes: np.ndarray | None, blocks: int
) -> np.ndarray:
    """Return how many rows each block is within reach of."""
    return np.array([_near(points, table, boxes, b).size for b in range(blocks)])


def asked_by(
    points: Points, table: NearTable, boxes: np.ndarray | None, block: int
) -> Asked:
    """Return the rows that a block is within reach of."""
    rows = _near(points, table, boxes, block)
    return Asked(rows, points.X[rows])


def _near(
    points: Points, table: NearTable, boxes: np.ndarray | None, block: int
) -> np.ndarray:
    if boxes is None:
        return np.arange(points.X.shape[0])
    low, high = boxes[block]
    with np.errstate(over="ignore"):  # farther than all others
        gap = np.maximum(np.maximum(low - points.X, points.X - high), 0.0)
        return np.flatnonzero(
            np.einsum("ij,ij->i", gap, gap) <= SLACK * table.costs[:, -1]
        )


def _doubts(points: Points, table: NearTable, m: int) -> tuple[int, int]:
    """Return how many rows one search would do again: tied ones, others."""
    tied, lost = _doubted(points, table, m)
    return int(np.count_nonzero(tied)), int(np.count_nonzero(lost))


def _doubtful(points: Points, table: NearTable, m: int, ties: bool) -> np.ndarray:
    """Return the rows that one search would do again."""
    tied, lost = _doubted(points, table, m)
    return np.flatnonzero(tied | lost if ties else lost)


def _doubted(points: Points, table: NearTable, m: int) -> tuple[np.ndarray, np.ndarray]:
    last = table.costs[:, -1]
    tied = lost = np.zeros(len(last), dtype=bool)
    if table.costs.shape[1] > m + 1:
        tied = last == table.costs[:, m]
    if points.metric in SQUARED:
        lost = (last > 0) & (last < LOST * _sizes(points.X))
    return tied, lost
