"""A matrix in blocks of rows on Dask workers: one more holder of the verbs.

A block has the entries of its rows and knows the numbers of the rows elsewhere that
these entries point to, its *halo*. A product sends a block the entries of its halo and
nothing else. All blocks are made by tasks.
"""

import math
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from bistochastic.core import recurrence as plain
from bistochastic.core.arrays import in_range, scaled_by
from bistochastic.core.protocols import Text
from bistochastic.graph import components
from bistochastic.places.dask_workers.vectors import (
    DEEP,
    Layout,
    Program,
    Spread,
    Steps,
    one_of,
)
from bistochastic.places.host import csr
from bistochastic.places.host.csr import Csr, compiled, using
from bistochastic.scaling import linear_systems as systems

DRAWN = 1 << 17  # rows up to which normal numbers are drawn by the caller
SINGLE = 1e-5  # relative errors that singles do not make
KNOWN = 1e-6  # of a size, down to which changes tell it
AT_ONCE, GAIN = 6, 4.0  # products before a first wait, at most; what one may gain
SCRATCH: dict[int, np.ndarray] = {}  # memory of each thread, until a fit ends
SQUARE = 20_000  # rows whose products with S are made in one go, by entries a row


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
        made = _csr(S.data, place.astype(np.int32), S.indptr, rows + halo.size)
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
        return replace(self, S=_csr(data, S.indices, S.indptr, S.shape[1]))

    def kept(self, kept: np.ndarray) -> "Block":
        """Return some of the entries."""
        S = self.S
        ends = np.concatenate([[0], np.cumsum(kept)])[S.indptr]
        made = _csr(S.data[kept], S.indices[kept], ends, S.shape[1])
        return replace(self, S=made)


def _csr(data: Any, indices: Any, indptr: Any, width: int) -> csr_array:
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

    def pieces(self, v: Spread) -> list[list[Any]]:
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


class Blocks:
    """Graph or scores in blocks of rows on workers.

    Vectors are `Spread` arrays beside them, or NumPy arrays with the caller. Nothing
    leaves the workers but what is asked for: `pattern` and `entries`, which fetch the
    matrix, and the labels of components.

    Parameters
    ----------
    layout : Layout
        Which rows lie where.
    blocks : list of Future
        The blocks.
    exchange : Exchange, optional
        What they need of one another, if it is known.
    labels : array of int of shape (n,), optional
        The connected components, if they are known.
    """

    fetched = True

    def __init__(
        self,
        layout: Layout,
        blocks: list[Any],
        exchange: Exchange | None = None,
        labels: np.ndarray | None = None,
    ) -> None:
        self.layout = layout
        self.blocks = blocks
        self._exchange = exchange
        self.labels = labels
        self.n = layout.n
        self.n_products = 0

    @classmethod
    def of(cls, layout: Layout, S: csr_array) -> "Blocks":
        """Send a matrix that the caller has to the workers."""
        blocks = [
            layout.submit("sent", k, Block.whole, S[rows], rows.start)
            for k, rows in enumerate(layout.slices())
        ]
        return cls(layout, blocks)

    @property
    def exchange(self) -> Exchange:
        """What blocks need of one another."""
        if self._exchange is None:
            halos = self.layout.each("halo", _halo, self.blocks)
            self._exchange = Exchange(self.layout, halos)
        return self._exchange

    def ones(self) -> Any:
        """Return the vector of n ones."""
        return self.layout.out(self.layout.full(1.0))

    def vector(self, values: Any) -> Any:
        """Return `values` as doubles, where vectors are."""
        if self.layout.caller:
            return np.asarray(values, dtype=np.float64)
        if isinstance(values, Spread):
            return values
        return self.layout.spread(np.asarray(values, dtype=np.float64))

    def noise(self, rng: np.random.Generator, columns: int) -> Any:
        """Return a block of normal numbers; that of many rows is drawn on workers."""
        layout = self.layout
        if self.n <= DRAWN:  # the same as on one machine
            return self.vector(rng.standard_normal((self.n, columns)))
        seed = int(rng.integers(2**62))
        blocks = layout.each(
            "noise", _noise, list(layout.sizes), columns, seed, [*range(len(layout))]
        )
        return layout.out(Spread.held(layout, blocks, (columns,)))

    def apply(self, v: Any) -> Any:
        """Return S v."""
        self.n_products += 1
        v = self.layout.spread(v)
        if v.node.blocks is None and v.ndim == 1:
            return self.layout.out(self._apply_noted(v))
        blocks = self._each("product", multiplied, v)
        return self.layout.out(Spread.held(self.layout, blocks, v.tail))

    def _apply_noted(self, v: Spread) -> Spread:
        """Make a vector and multiply with it in the same tasks."""
        layout, program = self.layout, Program()
        at = program.place(v.node)
        if len(program) > DEEP:
            return Spread.held(layout, self._each("product", multiplied, v))
        steps, given = program.steps(), program.given
        made = [
            layout.submit(
                "product", k, _made_and_multiplied, self.blocks[k], steps, at,
                len(given), *(blocks[k] for blocks in given),
                *(
                    layout.submit(
                        "piece", j, _made_and_taken, steps, at, wanted,
                        *(blocks[j] for blocks in given),
                    )
                    for j, wanted in self.exchange.wanted[k]
                ),
            )
            for k in range(len(layout))
        ]  # fmt: skip
        v.node.settle(made, 0)
        out = Spread.held(layout, made)
        out.node.settle(made, 1)
        return out

    def recurrence(
        self, X: Any, Y: Any, center: float, terms: Any, accuracy: float
    ) -> Any:
        """Return the last of the blocks Z_k = a (S - center I) Z_(k-1) + c Z_(k-2)."""
        return self.fast(plain.recurrence)(self, X, Y, center, terms, accuracy)

    def diagonal(self) -> Any:
        """Return the diagonal."""
        return self._vector("diagonal", _diagonal)

    def scaled(self, u: Any, *, reuse: bool = False) -> Self:
        """Return DSD; u_i u_j is formed first, so that mirrored entries agree."""
        return self._with(self._each("scaled", _scaled, u))

    def shifted(self, delta: Any) -> Self:
        """Return S + delta I, or S + diag(delta)."""
        if np.ndim(delta) == 0:
            blocks = self.layout.each("shifted", _shifted, self.blocks, float(delta))
        else:
            given = self.layout.spread(delta).blocks()
            blocks = self.layout.each("shifted", _shifted, self.blocks, given)
        return self._with(blocks)

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return S without the entries whose labels of row and column differ."""
        here, there = (self.layout.spread(x) for x in (rows, columns))
        blocks = self._each("cut", _cut, there, own=here.blocks())
        return type(self)(self.layout, blocks, self.exchange)

    def part(self, index: Any) -> Csr:
        """Return the square submatrix of `index`, with the caller."""
        return Csr(self.entries(-np.inf)).part(np.asarray(index))

    def joined(self, i: Any, j: Any, weights: Any) -> Self:
        """Return S with edges added."""
        layout = self.layout
        i, j = (np.concatenate(ends) for ends in ((i, j), (j, i)))
        weights = np.tile(np.asarray(weights), 2)
        owner = np.searchsorted(layout.starts, i, side="right") - 1
        blocks = list(self.blocks)
        for k in np.unique(owner).tolist():
            some = owner == k
            given = i[some] - layout.starts[k], j[some], weights[some]
            blocks[k] = layout.submit("joined", k, _joined, blocks[k], *given, self.n)
        return type(self)(layout, blocks)

    def supported(self) -> Self:
        """Return s_ij times the root of (S^2)_ij on the pattern."""
        layout = self.layout
        others = self.exchange.rows("rows", _whole_rows, self.blocks)
        blocks = [
            layout.submit("squared", k, _supported, self.blocks[k], self.n, *others[k])
            for k in range(len(layout))
        ]
        return type(self)(layout, blocks, self.exchange)

    def parts(self) -> Any:
        """Return the negative entries as tables on workers."""
        from bistochastic.places.dask_workers.tables import tables_of

        return tables_of(self)

    def pattern(self) -> csr_array:
        """Return the matrix, fetched."""
        return self.entries(-np.inf)

    def entries(self, least: float) -> csr_array:
        """Return the entries above `least`, fetched."""
        made = self.layout.each("fetched", _fetched, self.blocks, least, self.n)
        rows = [part for part in self.layout.gather(made) if part.shape[0]]
        return csr_array(vstack(rows, format="csr"))

    def log(self) -> Self:
        """Return log S on the pattern."""
        return self._with(self.layout.each("log", _log, self.blocks))

    def indicator(self) -> Self:
        """Return ones on the pattern."""
        return self._with(self.layout.each("ones", _ones, self.blocks))

    def sq_norm(self, weights: Any = None) -> float:
        """Return the sum of the squared entries, of row i times weights[i]."""
        given: list[Any] = []
        if weights is not None:
            given = [self.layout.spread(weights).blocks()]
        return float(self._sum("norm", _sq_norm, self.blocks, *given))

    def dot(self, P: Any) -> float:
        """Return the sum of k_ij p_ij over the entries of P."""
        return float(self._sum("dot", _dot, self.blocks, P.blocks, self.n))

    def looped(self) -> bool:
        """Tell whether the whole diagonal is stored."""
        return bool(self._sum("loops", _loops, self.blocks) == self.n)

    def highest(self) -> Any:
        """Return the largest entry of each row."""
        return self._vector("highest", _highest)

    def spread(self) -> float:
        """Return the standard deviation of the stored entries."""
        number, total, squares = self._sum("spread", _moments, self.blocks)
        mean = total / number
        return float(max(squares / number - mean**2, 0.0) ** 0.5)

    def exponential(self, omega: float, a: Any) -> Self:
        """Return exp(omega k_ij + a_i + a_j)."""
        return self._with(self._each("exponential", _exponential, a, omega))

    def clipped(self, omega: float, a: Any, least: float = 0.0) -> Self:
        """Return the entries of omega k_ij + a_i + a_j above `least`."""
        blocks = self._each("clipped", _clipped, a, omega, least)
        return type(self)(self.layout, blocks, self.exchange)

    def raised(self, a: Any) -> Self:
        """Return the positive part of k_ij + a_i + a_j, zeros stored."""
        return self._with(self._each("raised", _raised, a))

    def native(self) -> Self:
        """Return the holder itself: no library knows such matrices."""
        return self

    def fast(self, text: Text) -> Text:
        """Return the body for blocks where there is one."""
        return BODIES.get(text) or compiled(text, self.n)

    def _with(self, blocks: list[Any]) -> Self:
        return type(self)(self.layout, blocks, self._exchange, self.labels)

    def _each(
        self, name: str, task: Callable[..., Any], v: Any, *given: Any, own: Any = None
    ) -> list[Any]:
        """Start a task for each block with what it needs of a vector."""
        return exchanged(self.exchange, name, task, self.blocks, v, *given, own=own)

    def _vector(self, name: str, task: Callable[..., Any]) -> Any:
        blocks = self.layout.each(name, task, self.blocks)
        return self.layout.out(Spread.held(self.layout, blocks))

    def _sum(self, name: str, task: Callable[..., Any], *given: Any) -> Any:
        made = self.layout.gather(self.layout.each(name, task, *given))
        return np.sum(made, axis=0)


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
    pieces = exchange.pieces(layout.spread(v))
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


def _halo(block: Block) -> np.ndarray:
    return block.halo


def _noise(rows: int, columns: int, seed: int, number: int) -> np.ndarray:
    rng = np.random.default_rng([seed, number])
    return rng.standard_normal((rows, columns))


def _made_and_taken(steps: Steps, at: int, rows: np.ndarray, *given: Any) -> Any:
    return one_of(steps, at, *given)[rows]


def _made_and_multiplied(
    block: Block, steps: Steps, at: int, number: int, *given: Any
) -> list[np.ndarray]:
    own = one_of(steps, at, *given[:number])
    return [own, multiplied(block, own, *given[number:])]


def multiplied(block: Block, own: np.ndarray, *pieces: np.ndarray) -> np.ndarray:
    """Return the rows of S v."""
    v = beside(own, pieces)
    if (there := on_device()) is not None:
        return there.multiplied(block, v)
    with using(1, block.S.shape[0]):  # other tasks run beside it
        return compiled(csr.product, block.S.nnz, "ON_ROWS")(block.S, v)


def _diagonal(block: Block) -> np.ndarray:
    out = np.zeros(block.S.shape[0])
    rows = block.rows()
    loops = rows == block.S.indices
    out[rows[loops]] = block.S.data[loops]
    return out


def _scaled(block: Block, own: np.ndarray, *pieces: np.ndarray) -> Block:
    u = beside(own, pieces)
    data = np.repeat(own, np.diff(block.S.indptr))
    if u.size and not in_range(u):
        return block.with_data(scaled_by(data, u[block.S.indices], block.S.data))
    data *= u[block.S.indices]
    data *= block.S.data
    return block.with_data(data)


def _shifted(block: Block, delta: Any) -> Block:
    rows = block.rows()
    loops = rows == block.S.indices
    size = block.S.shape[0]
    delta = delta * np.ones(size)
    if np.count_nonzero(loops) == size:
        data = block.S.data.copy()
        data[loops] += delta
        return block.with_data(data)
    every = np.arange(size)
    i, j = np.concatenate([rows, every]), np.concatenate([block.S.indices, every])
    # in the order of the whole matrix
    place = np.concatenate([every + block.first, block.halo])
    order = np.lexsort((place[j], i))
    both = np.concatenate([block.S.data, delta])[order]
    i, j = i[order], j[order]
    new = np.ones(i.size, dtype=bool)
    new[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    data = np.add.reduceat(both, np.flatnonzero(new)) if size else both
    ends = np.concatenate([[0], np.cumsum(np.bincount(i[new], minlength=size))])
    return replace(block, S=_csr(data, j[new], ends, block.S.shape[1]))


def _cut(block: Block, rows: np.ndarray, own: np.ndarray, *pieces: np.ndarray) -> Block:
    columns = beside(own, pieces)
    return block.kept(rows[block.rows()] == columns[block.S.indices])


def _joined(block: Block, i: Any, j: Any, weights: Any, n: int) -> Block:
    i = np.concatenate([block.rows(), i])
    j = np.concatenate([block.columns(), j])
    data = np.concatenate([block.S.data, weights])
    return Block.of(i, j, data, block.first, (block.S.shape[0], n))


def _whole_rows(block: Block, wanted: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return entries, columns and ends of some rows, numbered as in the matrix."""
    S = block.S[wanted]
    rows = np.arange(block.first, block.first + block.S.shape[0])
    columns = np.concatenate([rows, block.halo])
    return S.data, columns[S.indices], S.indptr


def _supported(block: Block, n: int, *others: Any) -> Block:
    """Weigh entries by the root of S^2: rows of S times the rows that they point to.

    Terms are added in the order of the whole matrix, on both sides of the diagonal.
    """
    S, width = block.S, block.S.shape[1]
    below = [S]
    first = block.first
    for data, columns, indptr in others:
        own = (columns >= first) & (columns < first + S.shape[0])
        at = np.searchsorted(block.halo, columns)
        at = np.minimum(at, max(block.halo.size - 1, 0))
        known = own | ((block.halo[at] == columns) if block.halo.size else False)
        place = np.where(own, columns - first, S.shape[0] + at)
        ends = np.concatenate([[0], np.cumsum(known)])[indptr]
        below.append(_csr(data[known], place[known], ends, width))
    local = csr_array(vstack(below, format="csr"))
    made = np.empty(S.nnz)
    step = max(1, SQUARE * max(1, S.shape[0]) // max(1, S.nnz))
    for a in range(0, S.shape[0], step):
        rows = S[a : a + step]
        square = csr_array(rows @ local)
        square.sort_indices()
        i = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        key = np.repeat(np.arange(rows.shape[0]), np.diff(square.indptr))
        key = key * width + square.indices
        wanted = i * width + rows.indices
        at = np.minimum(np.searchsorted(key, wanted), max(key.size - 1, 0))
        found = np.where(key[at] == wanted, square.data[at], 0.0) if key.size else 0.0
        made[S.indptr[a] : S.indptr[min(a + step, S.shape[0])]] = found
    data = S.data * np.sqrt(made)
    return block.with_data(data).kept(data > 0)


def _fetched(block: Block, least: float, n: int) -> csr_array:
    kept = block.kept(block.S.data > least)
    made = (kept.S.data, kept.columns(), kept.S.indptr)
    return csr_array(made, shape=(block.S.shape[0], n))


def _log(block: Block) -> Block:
    return block.with_data(np.log(block.S.data))


def _ones(block: Block) -> Block:
    return block.with_data(np.ones_like(block.S.data))


def _sq_norm(block: Block, weights: Any = None) -> float:
    data = block.S.data
    if weights is None:
        return float(data @ data)
    return float(np.sum(data**2 * weights[block.rows()]))


def _dot(block: Block, other: Block, n: int) -> float:
    here, there = (_fetched(x, -np.inf, n) for x in (block, other))
    return float(here.multiply(there).sum())


def _loops(block: Block) -> int:
    return int(np.count_nonzero(block.rows() == block.S.indices))


def _highest(block: Block) -> np.ndarray:
    if block.S.shape[0] == 0:
        return np.empty(0)
    return np.maximum.reduceat(block.S.data, block.S.indptr[:-1])


def _moments(block: Block) -> np.ndarray:
    data = block.S.data
    return np.array([data.size, data.sum(), data @ data])


def _sums(block: Block, omega: float, own: Any, pieces: Any) -> np.ndarray:
    a = beside(own, pieces)
    out = np.repeat(own, np.diff(block.S.indptr))
    out += a[block.S.indices]
    out += omega * block.S.data
    return out


def _exponential(block: Block, omega: float, own: Any, *pieces: Any) -> Block:
    return block.with_data(np.exp(_sums(block, omega, own, pieces)))


def _clipped(block: Block, omega: float, least: float, own: Any, *pieces: Any) -> Block:
    data = _sums(block, omega, own, pieces)
    return block.with_data(data).kept(data > least)


def _raised(block: Block, own: Any, *pieces: Any) -> Block:
    return block.with_data(np.maximum(_sums(block, 1.0, own, pieces), 0.0))


def search(S: Blocks) -> np.ndarray:
    """Return the component of each point: of blocks first, then across.

    Each block finds the components of its rows and halo; which of them are the same is
    found by the caller from pairs of numbers, one for each two that touch.
    """
    if S.labels is not None:
        return S.labels
    layout = S.layout
    found = layout.each("components", _inside, S.blocks)
    own = layout.each("components", _first_of, found)
    labels = Spread.held(layout, own, (), np.int32)
    pairs = exchanged(S.exchange, "components", _touching, found, labels)
    numbers = layout.each("components", _number, found)
    touched, numbers, parts = layout.gather([pairs, numbers, own])
    starts = np.concatenate([[0], np.cumsum(numbers)])
    here, there = [np.empty(0, int)], [np.empty(0, int)]
    for k, touching in enumerate(touched):
        owners = np.flatnonzero(S.exchange.counts[k])
        for (mine, theirs), j in zip(touching, owners, strict=True):
            here.append(starts[k] + mine)
            there.append(starts[j] + theirs)
    both = np.concatenate(here), np.concatenate(there)
    size = (int(starts[-1]),) * 2
    joined = csr_array((np.ones(both[0].size), both), shape=size)
    whole = connected_components(joined, directed=False)[1]
    placed = zip(parts, starts[:-1], strict=True)
    S.labels = components.numbered(
        np.concatenate([whole[start + part] for part, start in placed])
    )
    return S.labels


def _inside(block: Block) -> Any:
    rows, width = block.S.shape
    ends = np.concatenate([block.S.indptr, np.full(width - rows, block.S.nnz)])
    square = csr_array((block.S.data, block.S.indices, ends), shape=(width, width))
    number, labels = connected_components(square, directed=False)
    return number, labels[:rows], labels[rows:]


def _first_of(found: Any) -> np.ndarray:
    return np.asarray(found[1])


def _number(found: Any) -> int:
    return int(found[0])


def _touching(found: Any, own: np.ndarray, *pieces: np.ndarray) -> Any:
    """Return pairs of components, here and in the block of the halo."""
    made, at = [], 0
    for piece in pieces:
        both = np.stack([found[2][at : at + piece.size], piece])
        made.append(np.unique(both, axis=1).astype(np.int64))
        at += piece.size
    return made


def recurrence(
    S: Blocks,
    X: Any,
    Y: Any,
    center: float,
    terms: Sequence[tuple[float, float]],
    accuracy: float = 0.0,
) -> Any:
    """Return the last block of a recurrence; workers meet once for each term."""
    layout = S.layout
    kind = np.float32 if accuracy >= SINGLE else np.float64
    blocks = S.blocks
    if kind is np.float32:
        blocks = layout.each("singles", _singles, S.blocks)
    X, Y = layout.spread(X), layout.spread(Y)
    xp = X.__array_namespace__()
    X, Y = xp.astype(X, kind), xp.astype(Y, kind)
    S.n_products += len(terms)
    for a, c in terms:
        factors = kind(a), kind(-a * center), kind(c)
        made = exchanged(
            S.exchange, "filter", _three_term, blocks, Y, factors, own=X.blocks()
        )
        X, Y = Y, Spread.held(layout, made, X.tail, kind)
    return layout.out(xp.astype(Y, np.float64))


def _singles(block: Block) -> Block:
    return block.with_data(block.S.data.astype(np.float32))


def _three_term(
    block: Block, terms: Any, X: np.ndarray, own: np.ndarray, *pieces: np.ndarray
) -> np.ndarray:
    """Return a S Y + b Y + c X."""
    Y = beside(own, pieces)
    if (there := on_device()) is not None:
        return there.three_term(block, X, Y, terms)
    out = np.array(X, order="C")
    with using(1, block.S.shape[0]):
        compiled(csr.three_term, block.S.nnz, "ON_ROWS")(block.S, out, Y, *terms)
    return out


def conjugate_gradients(
    S: Blocks, u: Any, r: Any, b: Any, accuracy: float, limit: int
) -> Any:
    """Solve the Newton system; blocks are waited for as seldom as can be."""
    layout = S.layout
    u, r, b = (layout.spread(x) for x in (u, r, b))
    caller, layout.caller = layout.caller, False
    try:
        x = _solved(S, u, r, b, accuracy, limit)
    finally:
        layout.caller = caller
    return layout.out(x)


def _solved(S: Blocks, u: Any, r: Any, b: Any, accuracy: float, limit: int) -> Any:
    xp = u.__array_namespace__()
    number = min(AT_ONCE, max(1, round(-math.log(accuracy) / math.log(GAIN))), limit)
    x, z, q, size, top = _at_once(S, u, r, b / r, accuracy, number)
    goal = accuracy**2 * top
    for _ in range(number, limit):
        if not size > goal:
            break
        Hq = q + u * S.apply(u * q) / r  # divided by r, as z and q are
        curvature, cross, square = (xp.sum(r * y) for y in (q * Hq, z * Hq, Hq * Hq))
        if not float(curvature) > 0:
            break
        step = size / float(curvature)
        # the next size, known in advance, spares another wait
        change = (step * float(square) - 2.0 * float(cross)) * step
        x = x + step * q
        z = z - step * Hq
        last, size = size, max(0.0, size + change)
        if size < KNOWN * top:  # what is left of it is rounding
            size = top = float(xp.sum(r * z * z))
        q = z + (size / last) * q
    return x


def _at_once(S: Blocks, u: Any, r: Any, z: Any, accuracy: float, number: int) -> Any:
    """Take the first steps of conjugate gradients after one wait.

    All that they make are sums of z, P z, P^2 z, ..., where P is diag(u / r) S diag(u):
    if the products of these are known, numbers do to tell how to sum them.

    Returns
    -------
    tuple of (Spread, Spread, Spread, float, float)
        Solution, what is left of z, next direction, and the squared sizes of what is
        left and of z.
    """
    powers = [z]
    for _ in range(number):
        powers.append(u * S.apply(u * powers[-1]) / r)
    G = np.asarray(_gram(powers, r))
    x = np.zeros(number + 1)
    z = q = np.eye(number + 1)[0]
    size = top = float(G[0, 0])
    goal = accuracy**2 * top
    for _ in range(number):
        Hq = q + np.roll(q, 1)
        curvature = float(q @ G @ Hq)
        if not curvature > 0:
            size = 0.0
            break
        step = size / curvature
        x = x + step * q
        z = z - step * Hq
        last, size = size, float(z @ G @ z)
        if not size > goal:
            break
        q = z + (size / last) * q
    return *(_summed(of, powers) for of in (x, z, q)), size, top


def _gram(vectors: list[Any], r: Any) -> Any:
    """Return the sums of v_i r w_i over all pairs of vectors, not yet looked at."""
    V = r.__array_namespace__().concat([v[:, None] for v in vectors], axis=1)
    return V.T @ (V * r[:, None])


def _summed(weights: np.ndarray, vectors: list[Any]) -> Any:
    return sum(float(a) * v for a, v in zip(weights, vectors, strict=True))


BODIES: dict[Callable[..., Any], Any] = {
    components.search: search,
    plain.recurrence: recurrence,
    systems.conjugate_gradients: conjugate_gradients,
}
