"""What the tasks of a search pass to one another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from bistochastic.core.quiet import Quiet
from bistochastic.neighbors.exact import (
    _between,
)
from bistochastic.neighbors.points import (
    Points,
)

if TYPE_CHECKING:
    from distributed import Client, Future
SLACK = 1 + 1e-9  # of a cost, for rounding


class Held(Points):
    """Points that tell Dask how large they are."""

    def __sizeof__(self) -> int:
        """Return bytes."""
        return int(self.X.nbytes) + 64


class NearTable(NamedTuple):
    """The nearest points known so far.

    Attributes
    ----------
    columns : array of int64 of shape (rows, width)
        Their numbers, the nearest first, ties by number; -1 where none is known.
    costs : array of shape (rows, width)
        Their squared distances; infinite where none is known.
    """

    columns: np.ndarray
    costs: np.ndarray


class Asked(NamedTuple):
    """Rows of a block that ask another block.

    Attributes
    ----------
    rows : array of int
        Their numbers within their block.
    Y : array of shape (rows, d)
        Their coordinates.
    lists : array of int of shape (rows, probes), optional
        The lists to look at, within the other block; -1 is none.
    bounds : array of shape (rows,), optional
        Costs beyond which nothing is wanted.
    """

    rows: np.ndarray
    Y: np.ndarray
    lists: np.ndarray | None = None
    bounds: np.ndarray | None = None


class Answer(NamedTuple):
    """What a block found for some rows of another.

    Attributes
    ----------
    rows : array of int
        Their numbers within their block.
    table : NearTable
        What was found.
    """

    rows: np.ndarray
    table: NearTable


@dataclass(frozen=True)
class Tasks:
    """Submits tasks under names that the dashboard groups.

    Parameters
    ----------
    client : distributed.Client
        Where to.
    """

    client: "Client"

    def __call__(
        self, name: str, function: Callable[..., Any], *arguments: Any
    ) -> "Future":
        """Submit one task.

        Parameters
        ----------
        name : str
            What it does, and perhaps for which blocks, as in "merge 1 2".
        function : callable
            What to call.
        *arguments : object
            What with; futures stand for their results.

        Returns
        -------
        Future
            Of the result.
        """
        verb, *blocks = name.split()
        key = "-".join(["bistochastic", verb, uuid4().hex, *blocks])
        return self.client.submit(Quiet(function), *arguments, key=key, pure=False)

    def gather(self, futures: Sequence["Future"]) -> list[Any]:
        """Return small results."""
        return list(self.client.gather(list(futures)))


@dataclass(frozen=True, eq=False)
class PointBlocks:
    """Points in blocks.

    Attributes
    ----------
    tasks : Tasks
        Submits tasks.
    points : list of Future
        Points of each block.
    sizes : array of int
        How many rows each block has.
    starts : array of int
        The number of the first row of each block.
    metric : str or callable
        The metric.
    d : int
        Columns.
    """

    tasks: Tasks
    points: list["Future"]
    sizes: np.ndarray
    starts: np.ndarray
    metric: Any
    d: int

    @property
    def n(self) -> int:
        """How many points there are."""
        return int(self.sizes.sum())

    @property
    def full(self) -> list[int]:
        """The blocks that have rows."""
        return [int(b) for b in np.flatnonzero(self.sizes)]


def no_neighbors(m: int) -> NearTable:
    """Return the table of a block without rows."""
    return NearTable(np.empty((0, m), dtype=np.int64), np.empty((0, m)))


def padded_to(table: NearTable, width: int) -> NearTable:
    """Return a table of a given width."""
    more = ((0, 0), (0, width - table.columns.shape[1]))
    return NearTable(
        np.pad(table.columns, more, constant_values=-1),
        np.pad(table.costs, more, constant_values=np.inf),
    )


def blank_like(table: NearTable) -> NearTable:
    """Return a table in which nothing is known yet."""
    return NearTable(np.full_like(table.columns, -1), np.full_like(table.costs, np.inf))


def costs_between(Y: np.ndarray, X: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return squared distances, by differences in doubles."""
    rows = np.repeat(np.arange(len(Y)), columns.shape[1])
    return _between(Y, rows, X, columns.ravel()).reshape(columns.shape)


def in_order(columns: np.ndarray, costs: np.ndarray, width: int) -> NearTable:
    """Return the nearest, the nearest first, ties by number."""
    order = np.lexsort((columns, costs), axis=1)[:, :width]
    return NearTable(
        np.take_along_axis(columns, order, axis=1),
        np.take_along_axis(costs, order, axis=1),
    )


def merged_with(table: NearTable, answer: Answer) -> NearTable:
    """Return the nearest of what is known and what was found."""
    rows, more = answer
    if not rows.size:
        return table
    best = in_order(
        np.concatenate([table.columns[rows], more.columns], axis=1),
        np.concatenate([table.costs[rows], more.costs], axis=1),
        table.columns.shape[1],
    )
    return rows_replaced(table, rows, best)


def rows_replaced(table: NearTable, rows: np.ndarray, better: NearTable) -> NearTable:
    """Return a table with better rows in some places."""
    columns, costs = table.columns.copy(), table.costs.copy()
    columns[rows], costs[rows] = better
    return NearTable(columns, costs)


def points_at(points: Points, rows: np.ndarray) -> Points:
    """Return some of the points."""
    return points.at(rows)


def table_at(table: NearTable, rows: np.ndarray) -> NearTable:
    """Return some rows of a table."""
    return NearTable(table.columns[rows], table.costs[rows])


def known_of(
    points: Points,
    start: int,
    Y: np.ndarray,
    columns: np.ndarray,
    wanted: np.ndarray,
    width: int,
) -> NearTable:
    """Return a table of those points of a block that are wanted."""
    costs = np.full(columns.shape, np.inf)
    costs[wanted] = _between(Y, np.nonzero(wanted)[0], points.X, columns[wanted])
    return in_order(np.where(wanted, columns + start, -1), costs, width)
