"""A matrix in blocks of rows on Dask workers: one more holder of the verbs.

A block has the entries of its rows and knows the numbers of the rows elsewhere that
these entries point to, its *halo*. A product sends a block the entries of its halo and
nothing else. All blocks are made by tasks.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, vstack

from bistochastic.core import recurrence as plain
from bistochastic.core.protocols import Text
from bistochastic.places.dask_workers import block_tasks as tasks
from bistochastic.places.dask_workers.block import (
    Block,
    Exchange,
    exchanged,
    halo_of,
    made_and_taken,
)
from bistochastic.places.dask_workers.block_solvers import BODIES
from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.dask_workers.lazy import Program
from bistochastic.places.dask_workers.vectors import DEEP, BlockArray
from bistochastic.places.host.csr import Csr, compiled
from bistochastic.places.host.gathering import symmetric

DRAWN = 1 << 17  # rows up to which normal numbers are drawn by the caller


class Blocks:
    """Graph or scores in blocks of rows on workers.

    Vectors are `BlockArray`s beside them, or NumPy arrays with the caller. Nothing
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
            halos = self.layout.each("halo", halo_of, self.blocks)
            self._exchange = Exchange(self.layout, halos)
        return self._exchange

    def ones(self) -> Any:
        """Return the vector of n ones."""
        return self.layout.out(self.layout.full(1.0))

    def vector(self, values: Any) -> Any:
        """Return `values` as doubles, where vectors are."""
        if self.layout.caller:
            return np.asarray(values, dtype=np.float64)
        if isinstance(values, BlockArray):
            return values
        return self.layout.divided(np.asarray(values, dtype=np.float64))

    def noise(self, rng: np.random.Generator, columns: int) -> Any:
        """Return a block of normal numbers; that of many rows is drawn on workers."""
        layout = self.layout
        if self.n <= DRAWN:  # the same as on one machine
            return self.vector(rng.standard_normal((self.n, columns)))
        seed = int(rng.integers(2**62))
        blocks = layout.each(
            "noise",
            tasks.noise,
            list(layout.sizes),
            columns,
            seed,
            [*range(len(layout))],
        )
        return layout.out(BlockArray.held(layout, blocks, (columns,)))

    def apply(self, v: Any) -> Any:
        """Return S v."""
        self.n_products += 1
        v = self.layout.divided(v)
        if v.node.blocks is None and v.ndim == 1:
            return self.layout.out(self._apply_noted(v))
        blocks = self._each("product", tasks.multiplied, v)
        return self.layout.out(BlockArray.held(self.layout, blocks, v.tail))

    def _apply_noted(self, v: BlockArray) -> BlockArray:
        """Make a vector and multiply with it in the same tasks."""
        layout, program = self.layout, Program()
        at = program.place(v.node)
        if len(program) > DEEP:
            return BlockArray.held(layout, self._each("product", tasks.multiplied, v))
        steps, given = program.steps(), program.given
        made = [
            layout.submit(
                "product", k, tasks.made_and_multiplied, self.blocks[k], steps, at,
                len(given), *(blocks[k] for blocks in given),
                *(
                    layout.submit(
                        "piece", j, made_and_taken, steps, at, wanted,
                        *(blocks[j] for blocks in given),
                    )
                    for j, wanted in self.exchange.wanted[k]
                ),
            )
            for k in range(len(layout))
        ]  # fmt: skip
        v.node.settle(made, 0)
        out = BlockArray.held(layout, made)
        out.node.settle(made, 1)
        return out

    def recurrence(
        self, X: Any, Y: Any, center: float, terms: Any, accuracy: float
    ) -> Any:
        """Return the last of the blocks Z_k = a (S - center I) Z_(k-1) + c Z_(k-2)."""
        return self.fast(plain.recurrence)(self, X, Y, center, terms, accuracy)

    def diagonal(self) -> Any:
        """Return the diagonal."""
        return self._vector("diagonal", tasks.diagonal)

    def scaled(self, u: Any, *, reuse: bool = False) -> Self:
        """Return DSD; u_i u_j is formed first, so that mirrored entries agree."""
        return self._with(self._each("scaled", tasks.scaled, u))

    def shifted(self, delta: Any) -> Self:
        """Return S + delta I, or S + diag(delta)."""
        if np.ndim(delta) == 0:
            blocks = self.layout.each(
                "shifted", tasks.shifted, self.blocks, float(delta)
            )
        else:
            given = self.layout.divided(delta).blocks()
            blocks = self.layout.each("shifted", tasks.shifted, self.blocks, given)
        return self._with(blocks)

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return S without the entries whose labels of row and column differ."""
        here, there = (self.layout.divided(x) for x in (rows, columns))
        blocks = self._each("cut", tasks.cut, there, own=here.blocks())
        return type(self)(self.layout, blocks, self.exchange)

    def part(self, index: Any) -> Csr:
        """Return the square submatrix of `index`, with the caller."""
        return Csr(self.entries(-np.inf)).part(np.asarray(index))

    def mates(self, sizes: Any, free: Any, cap: float) -> np.ndarray:
        """Return for each row that is free its heaviest free neighbor, or -1."""
        both = np.stack([np.asarray(x, dtype=float) for x in (sizes, free)], axis=1)
        made = self._each("mates", tasks.mates, both, float(cap))
        return np.concatenate(self.layout.gather(made))

    def gathered(self, groups: Any, number: int) -> Csr:
        """Return the sums of entries between groups, with the caller."""
        made = self._each("gathered", tasks.gathered, np.asarray(groups), number)
        return Csr(symmetric(csr_array(sum(self.layout.gather(made)))))

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
            blocks[k] = layout.submit(
                "joined", k, tasks.joined, blocks[k], *given, self.n
            )
        return type(self)(layout, blocks)

    def supported(self) -> Self:
        """Return s_ij times the root of (S^2)_ij on the pattern."""
        layout = self.layout
        others = self.exchange.rows("rows", tasks.whole_rows, self.blocks)
        blocks = [
            layout.submit(
                "squared", k, tasks.supported, self.blocks[k], self.n, *others[k]
            )
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
        made = self.layout.each("fetched", tasks.fetched, self.blocks, least, self.n)
        rows = [part for part in self.layout.gather(made) if part.shape[0]]
        return csr_array(vstack(rows, format="csr"))

    def log(self) -> Self:
        """Return log S on the pattern."""
        return self._with(self.layout.each("log", tasks.logarithms, self.blocks))

    def indicator(self) -> Self:
        """Return ones on the pattern."""
        return self._with(self.layout.each("ones", tasks.ones, self.blocks))

    def sq_norm(self, weights: Any = None) -> float:
        """Return the sum of the squared entries, of row i times weights[i]."""
        given: list[Any] = []
        if weights is not None:
            given = [self.layout.divided(weights).blocks()]
        return float(self._sum("norm", tasks.sq_norm, self.blocks, *given))

    def dot(self, P: Any) -> float:
        """Return the sum of k_ij p_ij over the entries of P."""
        return float(self._sum("dot", tasks.dot, self.blocks, P.blocks, self.n))

    def looped(self) -> bool:
        """Tell whether the whole diagonal is stored."""
        return bool(self._sum("loops", tasks.loops, self.blocks) == self.n)

    def highest(self) -> Any:
        """Return the largest entry of each row."""
        return self._vector("highest", tasks.highest)

    def deviation(self) -> float:
        """Return the standard deviation of the stored entries."""
        number, total, squares = self._sum("moments", tasks.moments, self.blocks)
        mean = total / number
        return float(max(squares / number - mean**2, 0.0) ** 0.5)

    def exponential(self, omega: float, a: Any) -> Self:
        """Return exp(omega k_ij + a_i + a_j)."""
        return self._with(self._each("exponential", tasks.exponential, a, omega))

    def clipped(self, omega: float, a: Any, least: float = 0.0) -> Self:
        """Return the entries of omega k_ij + a_i + a_j above `least`."""
        blocks = self._each("clipped", tasks.clipped, a, omega, least)
        return type(self)(self.layout, blocks, self.exchange)

    def raised(self, a: Any) -> Self:
        """Return the positive part of k_ij + a_i + a_j, zeros stored."""
        return self._with(self._each("raised", tasks.raised, a))

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
        return self.layout.out(BlockArray.held(self.layout, blocks))

    def _sum(self, name: str, task: Callable[..., Any], *given: Any) -> Any:
        made = self.layout.gather(self.layout.each(name, task, *given))
        return np.sum(made, axis=0)
