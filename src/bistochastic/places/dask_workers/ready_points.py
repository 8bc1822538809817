"""Samples of points on workers, and points made ready for distances there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bistochastic.neighbors.points import (
    SQUARED,
    Points,
    _check_distance,
    _unit_rows,
    check_apart,
    medians,
)
from bistochastic.places.dask_workers.search_tasks import Held, Tasks

if TYPE_CHECKING:
    from distributed import Client, Future

GATHERED = 20_000  # rows that are looked at in one place, at most


def sample(
    client: "Client",
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    number: int,
    seed: int = 0,
) -> np.ndarray:
    """Return some rows, chosen at random.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : list of Future
        Arrays, the blocks of rows of X.
    sizes : list of int
        How many rows each has.
    number : int
        How many rows; all if there are no more.
    seed : int, default=0
        Of the choice.

    Returns
    -------
    array of shape (number, d)
        The rows in the order of X.
    """
    tasks = Tasks(client)
    return np.concatenate(
        tasks.gather(sampled_rows(tasks, blocks, sizes, number, seed))
    )


def sampled_rows(
    tasks: Tasks,
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    number: int,
    seed: int,
) -> list["Future"]:
    """Return a sample, a future for each block that has a row in it."""
    n = int(np.sum(sizes))
    if n <= number:
        found = [block for block, size in zip(blocks, sizes, strict=True) if size]
        return found or list(blocks[:1])
    rows = np.random.default_rng(seed).choice(n, number, replace=False, shuffle=False)
    return picked_rows(tasks, blocks, sizes, np.sort(rows))


def picked_rows(
    tasks: Tasks,
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    rows: np.ndarray,
) -> list["Future"]:
    """Return rows of ascending numbers, a future for each block that has any."""
    starts = starts_of(sizes)
    ends = np.searchsorted(rows, [*starts, int(np.sum(sizes))])
    return [
        tasks(f"sample {b}", _rows, blocks[b], rows[ends[b] : ends[b + 1]] - starts[b])
        for b in range(len(blocks))
        if ends[b] < ends[b + 1]
    ]


def _rows(block: Any, rows: np.ndarray) -> np.ndarray:
    return (block.X if isinstance(block, Points) else block)[rows]


def starts_of(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the number of the first row of each block."""
    sizes = np.asarray(sizes, dtype=np.int64)
    return np.cumsum(sizes) - sizes


def centered(
    client: "Client",
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    metric: Any,
) -> list["Future"]:
    """Make the points ready for distances, as ``Points.of`` does, with one center.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : list of Future
        Arrays, the blocks of rows of X.
    sizes : list of int
        How many rows each has.
    metric : str or callable
        The metric.

    Returns
    -------
    list of Future
        Points of each block. The center is the median of 20,000 rows.
    """
    tasks, sizes = Tasks(client), np.asarray(sizes, dtype=np.int64)
    n, starts, center = int(sizes.sum()), starts_of(sizes), None
    if metric == "cosine":
        zero = tasks.gather(
            [tasks(f"zeros {b}", _zero_rows, x) for b, x in enumerate(blocks)]
        )
        found = np.concatenate(
            [start + rows for start, rows in zip(starts, zero, strict=True)]
        )
        if found.size:
            ones = np.ones((int(found[-1]) + 1, 1))
            ones[found] = 0.0
            _unit_rows(ones)  # refuses them by their numbers
    elif callable(metric):
        rows = np.unique([0, n // 2, n - 1])
        three = tasks.gather(picked_rows(tasks, blocks, sizes, rows))
        _check_distance(_Some(rows, np.concatenate(three), n), metric)
    elif metric in SQUARED:
        center = medians(sample(client, blocks, sizes, GATHERED))
    points = [
        tasks(f"center {b}", _made_ready, block, metric, center)
        for b, block in enumerate(blocks)
    ]
    if center is not None:
        tops = [tasks(f"largest {b}", largest_of, x) for b, x in enumerate(points)]
        check_apart(max(tasks.gather(tops)))
    return points


class _Some:
    """Some rows of an array, under their numbers there."""

    def __init__(self, rows: np.ndarray, X: np.ndarray, n: int) -> None:
        self.rows, self.X, self.shape = rows, X, (n, X.shape[1])

    def __getitem__(self, row: int) -> np.ndarray:
        return self.X[np.searchsorted(self.rows, row)]


def _zero_rows(block: np.ndarray) -> np.ndarray:
    return np.flatnonzero(~block.any(axis=1))


def _made_ready(block: np.ndarray, metric: Any, center: np.ndarray | None) -> Points:
    if center is not None:
        return Held(block - center, metric, center)
    if callable(metric) or not len(block):
        return Held(block, metric, 0.0)
    made = Points.of(block, metric)
    return Held(made.X, metric, made.center)


def largest_of(points: Points) -> float:
    """Return the largest coordinate, whatever its sign."""
    return float(np.abs(points.X).max(initial=0.0))
