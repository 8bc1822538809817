"""One block of rows of a graph, and what blocks exchange."""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.dask_workers.lazy import Steps, one_of
from bistochastic.places.dask_workers.vectors import BlockArray

SCRATCH: dict[int, np.ndarray] = {}  # memory of each thread, until a fit ends


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a matrix.

    Attributes
    ----------
    S : csr_array of shape (rows, rows + halo)
        Entries: first the columns of the rows themselves, then those of the halo. In
        each row they are in the order of the whole matrix, so that sums are the same.
    halo : array of int
        The numbers of the other columns, ascending.
    first : int
        The number of the first row.
    """

    S: csr_array
    halo: np.ndarray
    first: int

    def __sizeof__(self) -> int:  # so that Dask knows what it would move
        S = self.S
        arrays = S.data, S.indices, S.indptr, self.halo
        return sum(int(array.nbytes) for array in arrays)

    @classmethod
    def of(cls, i: Any, j: Any, data: Any, first: int, shape: Any) -> "Block":
        """Make a block of entries; those for the same place are added."""
        S = csr_array((data, (i, j)), shape=shape)
        S.sum_duplicates()
        return cls.whole(S, first)

    @classmethod
    def whole(cls, S: csr_array, first: int) -> "Block":
        """Make a block of rows with all columns, in order."""
        rows, columns = S.shape[0], S.indices.astype(np.int64)
        own = (columns >= first) & (columns < first + rows)
        halo = np.unique(columns[~own])
        place = np.where(own, columns - first, rows + np.searchsorted(halo, columns))
        made = rows_of(S.data, place.astype(np.int32), S.indptr, rows + halo.size)
        return cls(made, halo, first)

    def columns(self) -> np.ndarray:
        """Return the columns of the entries in the whole matrix."""
        rows = np.arange(self.first, self.first + self.S.shape[0])
        return np.concatenate([rows, self.halo])[self.S.indices]

    def rows(self) -> np.ndarray:
        """Return the row of each entry, counted from the first of the block."""
        return np.repeat(np.arange(self.S.shape[0]), np.diff(self.S.indptr))

    def with_data(self, data: np.ndarray) -> "Block":
        """Return other entries at the same places."""
        S = self.S
        return replace(self, S=rows_of(data, S.indices, S.indptr, S.shape[1]))

    def kept(self, kept: np.ndarray) -> "Block":
        """Return some of the entries."""
        S = self.S
        ends = np.concatenate([[0], np.cumsum(kept)])[S.indptr]
        made = rows_of(S.data[kept], S.indices[kept], ends, S.shape[1])
        return replace(self, S=made)


def rows_of(data: Any, indices: Any, indptr: Any, width: int) -> csr_array:
    """Return rows whose columns are in the order of the whole matrix."""
    made = csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
    made.has_sorted_indices = False  # they are in the order of the whole matrix
    return made


class Exchange:
    """Which rows of vectors the blocks need of one another.

    Parameters
    ----------
    layout : Layout
        The blocks.
    halos : list of Future
        The numbers of the rows that each block needs, ascending.
    """

    def __init__(self, layout: Layout, halos: list[Any]) -> None:
        self.layout = layout
        counts = layout.each("halo", _counts, halos, layout.starts)
        self.counts = np.array(layout.gather(counts)).reshape(len(layout), len(layout))
        ends = np.concatenate(
            [np.zeros((len(layout), 1), int), np.cumsum(self.counts, axis=1)], axis=1
        )
        self.wanted = [
            [
                (
                    j,
                    layout.submit(
                        "halo", j, _taken, halos[k], *ends[k, j : j + 2], start
                    ),
                )
                for j, start in enumerate(layout.starts[:-1])
                if self.counts[k, j]
            ]
            for k in range(len(layout))
        ]

    @property
    def sent(self) -> int:
        """How many entries a product sends from block to block."""
        return int(self.counts.sum())

    def pieces(self, v: BlockArray) -> list[list[Any]]:
        """Return what each block needs of a vector: its own rows, then the halo's."""
        blocks = v.blocks()
        return [
            [
                blocks[k],
                *(
                    self.layout.submit("piece", j, np.take, blocks[j], wanted, 0)
                    for j, wanted in self.wanted[k]
                ),
            ]
            for k in range(len(self.layout))
        ]

    def rows(self, name: str, task: Callable[..., Any], blocks: list[Any]) -> Any:
        """Return what `task` makes of the rows of blocks that others need."""
        return [
            [
                self.layout.submit(name, j, task, blocks[j], wanted)
                for j, wanted in self.wanted[k]
            ]
            for k in range(len(self.layout))
        ]


def _counts(halo: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.diff(np.searchsorted(halo, starts))


def _taken(halo: np.ndarray, a: int, b: int, first: int) -> np.ndarray:
    return halo[a:b] - first


def exchanged(
    exchange: Exchange,
    name: str,
    task: Callable[..., Any],
    blocks: list[Any],
    v: Any,
    *given: Any,
    own: list[Any] | None = None,
) -> list[Any]:
    """Start a task for each block with its rows of a vector, and those of its halo."""
    layout = exchange.layout
    pieces = exchange.pieces(layout.divided(v))
    return [
        layout.submit(
            name, k, task, blocks[k], *given, *([own[k]] if own else []), *pieces[k]
        )
        for k in range(len(layout))
    ]


def on_device() -> Any:
    """Return what computes on the device of the running task; None if it has none."""
    module = sys.modules.get("bistochastic.places.dask_workers.worker_device")
    return module if module is not None and module.place() is not None else None


def beside(own: np.ndarray, pieces: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the rows of a vector that a block needs, in the order of its columns.

    They are valid until the next call in the same thread: new memory for each product
    would cost as much as the product, where workers give all of it back.
    """
    if not pieces:
        return np.ascontiguousarray(own)
    rows = len(own) + sum(map(len, pieces))
    shape = rows, *own.shape[1:]
    size = int(np.prod(shape)) * own.itemsize
    held = SCRATCH.get(threading.get_ident())
    if held is None or held.nbytes < size:
        held = SCRATCH[threading.get_ident()] = np.empty(size, dtype=np.uint8)
    out = held[:size].view(own.dtype).reshape(shape)
    return np.concatenate([own, *pieces], out=out)


def halo_of(block: Block) -> np.ndarray:
    """Return the numbers of the rows elsewhere that a block needs."""
    return block.halo


def made_and_taken(steps: Steps, at: int, rows: np.ndarray, *given: Any) -> Any:
    """Make rows of a vector, and pick some."""
    return one_of(steps, at, *given)[rows]
