"""Costs and row weights in blocks of rows on workers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from bistochastic.places.dask_workers.block import Block, beside, exchanged
from bistochastic.places.dask_workers.blocks import Blocks
from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.dask_workers.merging import Pattern, Table, keys_of, rows_with
from bistochastic.places.dask_workers.vectors import BlockArray
from bistochastic.places.host.csr import using
from bistochastic.places.parts import Part, parts
from bistochastic.places.tables import TableCosts


class BlockCosts:
    """Costs, or weights, of few candidates a point, in blocks of rows on workers.

    Parameters
    ----------
    layout : Layout
        Which rows lie where.
    tables : list of Future
        The tables of the blocks.
    pattern : Pattern
        Which candidates they have.
    """

    def __init__(self, layout: Layout, tables: list[Any], pattern: Pattern) -> None:
        self.layout = layout
        self.tables = tables
        self.pattern = pattern
        self.n = layout.n

    @classmethod
    def of(cls, layout: Layout, columns: Any, values: Any) -> "BlockCosts":
        """Send a table that the caller has to the workers."""
        tables = [
            layout.submit("sent", k, _table, columns[rows], values[rows], rows.start)
            for k, rows in enumerate(layout.slices())
        ]
        return cls(layout, tables, Pattern(layout, tables))

    def vector(self, values: Any) -> Any:
        """Return `values` as doubles, where vectors are."""
        if self.layout.caller:
            return np.asarray(values, dtype=np.float64)
        return self.layout.divided(values)

    def plus(self, lam: float, F: Any) -> Self:
        """Return m_ij + lam |f_i - f_j|^2."""
        return self._with(self._local("distances", _plus, F, lam))

    def closest(self, m: int) -> Self:
        """Return the first m candidates of each row."""
        return self._again(self.layout.each("closest", _closest, self.tables, m))

    def table(self, m: int) -> Self:
        """Return the first m candidates of each row."""
        return self.closest(m)

    def weigh(
        self, rule: Callable[..., Any], *aligned: Any, beside: Sequence[Any] = ()
    ) -> Self:
        """Return what `rule` makes of the rows."""
        given = [self.layout.divided(a).blocks() for a in aligned]
        others = [other.tables for other in beside]
        task = partial(_weighed, rule, len(given))
        return self._with(
            self.layout.each("weights", task, self.tables, *given, *others)
        )

    def reduce(self, rule: Callable[..., Any], *aligned: Any) -> Any:
        """Return what `rule` makes of each row."""
        given = [self.layout.divided(a).blocks() for a in aligned]
        blocks = self.layout.each(
            "reduced", partial(_reduced, rule), self.tables, *given
        )
        return self.layout.out(BlockArray.held(self.layout, blocks))

    def remade(self, rule: Callable[..., Any], *along: Any) -> Self:
        """Return the table with columns and values that `rule` makes of each part."""
        (v,) = along
        return self._again(self._local("remade", partial(_remade, rule), v))

    def dot(self, rows: Self, u: Any = None) -> float:
        """Return the sum of m_ij s_ij, or m_ij u_i s_ij u_j, where s_ij > 0."""
        if u is None:
            return self._sum(self.layout.each("dot", _dot, self.tables, rows.tables))
        return self._sum(self._local("dot", _dot_scaled, u, own=rows.tables))

    def symmetrized(self) -> Blocks:
        """Return (S + S') / 2 of the positive weights."""
        return self.pattern.halves(self.tables)

    def moved(self, u: Any) -> float:
        """Return the squared norm of DSD - S."""
        return self._sum(self._local("moved", _moved, u))

    def sq_norm(self) -> float:
        """Return the sum of the squared weights."""
        return self._sum(self.layout.each("norm", _sq_norm, self.tables))

    def scores(self, alpha: float) -> Blocks:
        """Return -m_ij / (2 alpha) for candidates of either side."""
        layout = self.layout
        places, _ = self.pattern.merged()
        sent = {
            (k, j): layout.submit("scores", k, _scores_sent, self.tables[k], place)
            for (k, j), place in places.items()
        }
        blocks = [
            layout.submit(
                "scores", j, _scores, self.tables[j], alpha, self.n,
                *(sent[k, i] for k, i in places if i == j),
            )
            for j in range(len(layout))
        ]  # fmt: skip
        return Blocks(layout, blocks)

    def listed(self) -> list[tuple[Any, Any, Any]]:
        """Return rows, candidates and costs, fetched."""
        made = self.layout.gather(self.layout.each("listed", _listed, self.tables))
        return [part for parts in made for part in parts]

    def beside(self, A: Any) -> "BlockCosts":
        """Return the entries of a graph as costs -a_ij."""
        tables = A.parts()
        return type(self)(self.layout, tables, Pattern(self.layout, tables))

    def _local(
        self, name: str, task: Any, v: Any, *given: Any, own: Any = None
    ) -> list[Any]:
        exchange = self.pattern.exchange
        return exchanged(exchange, name, task, self.tables, v, *given, own=own)

    def _with(self, tables: list[Any]) -> Self:
        return type(self)(self.layout, tables, self.pattern)

    def _again(self, tables: list[Any]) -> Self:
        return type(self)(self.layout, tables, Pattern(self.layout, tables))

    def _sum(self, parts: list[Any]) -> float:
        return float(sum(self.layout.gather(parts)))


def _table(columns: np.ndarray, values: np.ndarray, first: int) -> Table:
    rows = np.arange(len(columns))
    return Table.of([Part(rows, columns, values)], first, len(columns))


def _plus(table: Table, lam: float, own: Any, *pieces: Any) -> Table:
    if not table.size:
        return table
    F = beside(own, pieces)
    with using(1, table.size):
        return _filled(table, table.costs().plus(lam, F))


def _filled(table: Table, costs: TableCosts) -> Table:
    return replace(table, parts=costs.parts if table.parts else ())


def _closest(table: Table, m: int) -> Table:
    made = table.costs().closest(m)
    numbers = table.numbers()
    parts = [replace(p, columns=numbers[p.columns]) for p in made.parts]
    return Table.of(parts, table.first, table.size)


def _weighed(rule: Any, aligned: int, table: Table, *given: Any) -> Table:
    if not table.size:
        return table
    vectors, others = given[:aligned], [t.costs() for t in given[aligned:]]
    return _filled(table, table.costs().weigh(rule, *vectors, beside=others))


def _reduced(rule: Any, table: Table, *vectors: Any) -> Any:
    return table.costs().reduce(rule, *vectors) if table.size else np.empty(0)


def _remade(rule: Any, table: Table, own: Any, *pieces: Any) -> Table:
    v, numbers, parts = beside(own, pieces), table.numbers(), []
    for part in table.parts:
        columns, values = rule(part.rows, part.columns, part.values, v)
        parts.append(Part(part.rows, numbers[columns], values))
    return Table.of(parts, table.first, table.size)


def _listed(table: Table) -> list[tuple[Any, Any, Any]]:
    numbers, first = table.numbers(), table.first
    return [(p.rows + first, numbers[p.columns], p.values) for p in table.parts]


def _dot(table: Table, rows: Table) -> float:
    return table.costs().dot(rows.costs())


def _dot_scaled(table: Table, rows: Table, own: Any, *pieces: Any) -> float:
    return table.costs().dot(rows.costs(), beside(own, pieces))


def _moved(table: Table, own: Any, *pieces: Any) -> float:
    return table.costs().moved(beside(own, pieces))


def _sq_norm(table: Table) -> float:
    return table.costs().sq_norm()


def _scores_sent(table: Table, places: np.ndarray) -> Any:
    values = table.flat()[places]
    known = np.isfinite(values)
    return *keys_of(table, places[known]), values[known]


def _scores(table: Table, alpha: float, n: int, *sent: Any) -> Block:
    """Add what both sides know, and divide by how many know it."""
    values = table.flat()
    known = np.isfinite(values)
    rows, columns = (x[known] for x in table.entries())
    i = np.concatenate([rows, *(there - table.first for there, _, _ in sent)])
    j = np.concatenate([table.numbers()[columns], *(here for _, here, _ in sent)])
    data = np.concatenate([values[known], *(v for _, _, v in sent)]) * (-0.5 / alpha)
    S = _rows_of(i, j, data + 1j, (table.size, n))
    S = rows_with(S.data.real / S.data.imag, S.indices, S.indptr, S.shape)
    return Block.whole(S, table.first)


def _rows_of(i: Any, j: Any, data: Any, shape: Any) -> Any:
    from scipy.sparse import csr_array

    S = csr_array((data, (i, j)), shape=shape)
    S.sum_duplicates()
    return S


def tables_of(S: Blocks) -> list[Any]:
    """Return the negative entries of a graph as tables, the heaviest of a row first."""
    return S.layout.each("tables", _table_of, S.blocks)


def _table_of(block: Block) -> Table:
    i, j, size = block.rows(), block.columns(), block.S.shape[0]
    if not size:
        return Table.of([], block.first, 0)
    order = np.lexsort((j, -block.S.data, i))
    some = i[order], j[order], -block.S.data[order]
    return Table.of(parts(*some, size, first=block.first), block.first, size)
