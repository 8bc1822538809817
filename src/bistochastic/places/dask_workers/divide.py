"""Points moved so that neighbors mostly lie in the same block, by a tree of cuts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bistochastic.neighbors.exact import (
    FLAT,
)
from bistochastic.neighbors.inverted_file import (
    SEED,
)
from bistochastic.places.dask_workers.ready_points import (
    GATHERED,
    sampled_rows,
    starts_of,
)
from bistochastic.places.dask_workers.search_tasks import Tasks

if TYPE_CHECKING:
    from distributed import Client, Future
TURNS = 10  # of power iterations for the widest direction


# Redistribution


class Cut(NamedTuple):
    """A cut across the widest direction of points.

    Attributes
    ----------
    direction : array of shape (d,)
        The direction.
    at : float
        Points up to here lie on the left.
    left, right : Cut, optional
        Further cuts.
    parts : int
        How many parts lie on the left.
    """

    direction: np.ndarray
    at: float
    left: "Cut | None"
    right: "Cut | None"
    parts: int


def divided(
    client: "Client",
    blocks: Sequence["Future"],
    sizes: Sequence[int] | np.ndarray,
    parts: int,
) -> tuple[list["Future"], list["Future"], np.ndarray]:
    """Divide the rows into compact parts of similar size.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : list of Future
        Arrays, the blocks of rows of X.
    sizes : list of int
        How many rows each has.
    parts : int
        How many new blocks.

    Returns
    -------
    list of Future
        Arrays, the new blocks.
    list of Future
        The numbers that their rows had, int64, in ascending order.
    array of int64
        How many rows each has; perhaps none, where points are all the same.
    """
    tasks, starts = Tasks(client), starts_of(sizes)
    some = sampled_rows(tasks, blocks, sizes, GATHERED, SEED)
    tree = tasks("tree", _planted, some, parts)
    leaves = [tasks(f"leaf {b}", _routed, x, tree) for b, x in enumerate(blocks)]
    counts = np.array(
        tasks.gather(
            [
                tasks(f"count {b}", np.bincount, x, None, parts)
                for b, x in enumerate(leaves)
            ]
        )
    )
    rows, numbers = [], []
    for part in range(parts):
        pieces = [
            tasks(
                f"piece {b} {part}", _piece, blocks[b], leaves[b], part, int(starts[b])
            )
            for b in np.flatnonzero(counts[:, part]).tolist() or [0]
        ]
        both = tasks(f"assemble {part}", _assembled, pieces)
        rows.append(tasks(f"rows {part}", _item, both, 0))
        numbers.append(tasks(f"numbers {part}", _item, both, 1))
    return rows, numbers, counts.sum(axis=0)


def _planted(rows: list[np.ndarray], parts: int) -> tuple[Cut | None, float]:
    """Return cuts, and the number to divide rows by before."""
    x = np.concatenate(rows).astype(np.float64)
    top = float(np.abs(x).max(initial=0.0)) or 1.0
    return _grown(x / top, parts), top


def _grown(x: np.ndarray, parts: int) -> Cut | None:
    if parts == 1:
        return None
    direction, at = np.zeros(x.shape[1]), 0.0
    low = high = x
    if len(x) > 1:
        direction = _widest(x)
        along = x @ direction
        order = np.argsort(along, kind="stable")
        number = min(max(1, round(len(x) * (parts // 2) / parts)), len(x) - 1)
        at = float(along[order[number - 1]] / 2 + along[order[number]] / 2)
        low, high = x[order[:number]], x[order[number:]]
    less = parts // 2
    return Cut(direction, at, _grown(low, less), _grown(high, parts - less), less)


def _widest(x: np.ndarray) -> np.ndarray:
    """Return the direction in which points vary most, about.

    Of few columns it is that of a column, so that boxes around parts overlap little.
    """
    x = x - x.mean(axis=0)
    if x.shape[1] <= FLAT:
        return np.eye(x.shape[1])[np.argmax(np.einsum("ij,ij->j", x, x))]
    direction: np.ndarray = np.random.default_rng(SEED).standard_normal((x.shape[1],))
    for _ in range(TURNS):
        direction = (x @ direction) @ x
        direction = direction / (float(np.linalg.norm(direction)) or 1.0)
    return direction


def _routed(block: np.ndarray, tree: tuple[Cut | None, float]) -> np.ndarray:
    """Return the part in which each row lies."""
    cuts, top = tree
    leaves = np.zeros(len(block), dtype=np.int32)
    _route(block / top, np.arange(len(block)), cuts, 0, leaves)
    return leaves


def _route(
    x: np.ndarray, rows: np.ndarray, cut: Cut | None, first: int, leaves: np.ndarray
) -> None:
    if cut is None:
        leaves[rows] = first
        return
    left = x[rows] @ cut.direction <= cut.at
    _route(x, rows[left], cut.left, first, leaves)
    _route(x, rows[~left], cut.right, first + cut.parts, leaves)


def _piece(
    block: np.ndarray, leaves: np.ndarray, part: int, start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a block that lie in a part, and their numbers."""
    rows = np.flatnonzero(leaves == part)
    return block[rows], rows + start


def _assembled(
    pieces: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    rows, numbers = zip(*pieces, strict=True)
    return np.concatenate(rows), np.concatenate(numbers)


def _item(both: tuple[np.ndarray, np.ndarray], which: int) -> np.ndarray:
    return both[which]
