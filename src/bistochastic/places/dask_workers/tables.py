"""Costs and row weights in blocks of rows on Dask workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from bistochastic.places.dask_workers.block import Block, Exchange, beside, exchanged
from bistochastic.places.dask_workers.blocks import Blocks
from bistochastic.places.dask_workers.vectors import Layout, Spread
from bistochastic.places.host.csr import using
from bistochastic.places.parts import Part, parts
from bistochastic.places.tables import TableCosts


@dataclass(frozen=True, eq=False)
class Table:
    """The candidates of some rows.

    Attributes
    ----------
    parts : tuple of Part
        Rows counted from the first of the block; columns are places in its rows, then
        its halo.
    halo : array of int
        The numbers of the candidates elsewhere, ascending.
    first, size : int
        The number of the first row, and how many there are.
    """

    parts: tuple[Part, ...]
    halo: np.ndarray
    first: int
    size: int

    def __sizeof__(self) -> int:  # so that Dask knows what it would move
        parts = ((x.rows, x.columns, x.values) for x in self.parts)
        return int(self.halo.nbytes + sum(y.nbytes for x in parts for y in x))

    @classmethod
    def of(cls, parts: Sequence[Part], first: int, size: int) -> "Table":
        """Make a table of candidates given by their numbers."""
        every = [np.asarray(part.columns, dtype=np.int64) for part in parts]
        none = np.empty(0, dtype=np.int64)
        flat = np.concatenate([none, *(columns.ravel() for columns in every)])
        own = (flat >= first) & (flat < first + size)
        halo = np.unique(flat[~own]).astype(np.int64)
        made = []
        for part, columns in zip(parts, every, strict=True):
            inside = (columns >= first) & (columns < first + size)
            place = np.where(
                inside, columns - first, size + np.searchsorted(halo, columns)
            )
            kind = np.int32 if size + halo.size < 2**31 else np.int64
            made.append(Part(part.rows, place.astype(kind), part.values))
        return cls(tuple(made), halo, first, size)

    def costs(self) -> TableCosts:
        """Return what the parts are on one machine."""
        parts = self.parts or (
            Part(np.empty(0, int), np.empty((0, 1), int), np.empty((0, 1))),
        )
        return TableCosts(parts, self.size)

    def numbers(self) -> np.ndarray:
        """Return the numbers of the places that columns are."""
        own = np.arange(self.first, self.first + self.size)
        return np.concatenate([own, self.halo])

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return row and place of column of each entry, part by part."""
        rows = [np.repeat(p.rows, p.columns.shape[1]) for p in self.parts]
        columns = [p.columns.ravel() for p in self.parts]
        return tuple(  # type: ignore[return-value]
            np.concatenate([np.empty(0, np.int64), *x]) for x in (rows, columns)
        )

    def flat(self) -> np.ndarray:
        """Return the values in the order of the entries."""
        return np.concatenate([np.empty(0), *(p.values.ravel() for p in self.parts)])


@dataclass(frozen=True, eq=False)
class Merged:
    """Where the entries of a block of (S + S') / 2 come from.

    Attributes
    ----------
    indices, ends : array of int
        Columns of the entries, and the ends of rows, as in a `Block`.
    halo : array of int
        Of that block.
    own, mirror : array of int
        For each entry its place among those of the table, and among those that other
        tables send; one past the last where there is none.
    """

    indices: np.ndarray
    ends: np.ndarray
    halo: np.ndarray
    own: np.ndarray
    mirror: np.ndarray

    def __sizeof__(self) -> int:
        arrays = self.indices, self.ends, self.halo, self.own, self.mirror
        return sum(array.nbytes for array in arrays)


class Pattern:
    """What is the same for all tables with the same candidates, found once."""

    def __init__(self, layout: Layout, tables: list[Any]) -> None:
        self.layout = layout
        halos = layout.each("halo", _halo, tables)
        self.exchange = Exchange(layout, halos)
        self._tables = tables
        self._merged: Any = None

    def merged(self) -> Any:
        """Return which entries go where, and the patterns that they make."""
        if self._merged is None:
            layout, tables = self.layout, self._tables
            pairs = self._pairs()
            places = {
                (k, j): layout.submit(
                    "places", k, _places, tables[k], *_ends(layout, j)
                )
                for k, j in pairs
            }
            keys = {
                (k, j): layout.submit("keys", k, _keys, tables[k], places[k, j])
                for k, j in pairs
            }
            merged = [
                layout.submit(
                    "merged", j, _merge, tables[j], layout.n,
                    *(keys[k, i] for k, i in pairs if i == j),
                )
                for j in range(len(layout))
            ]  # fmt: skip
            self._merged = places, merged
            self._tables = []
        return self._merged

    def _pairs(self) -> list[tuple[int, int]]:
        """Return which block has candidates in which, itself always."""
        near = self.exchange.counts + np.eye(len(self.layout), dtype=int)
        return [(int(k), int(j)) for k, j in zip(*np.nonzero(near), strict=True)]

    def halves(self, tables: list[Any]) -> Blocks:
        """Return (S + S') / 2 of the positive weights."""
        layout = self.layout
        places, merged = self.merged()
        sent = {
            pair: layout.submit("weights", pair[0], _sent, tables[pair[0]], place)
            for pair, place in places.items()
        }
        blocks = [
            layout.submit(
                "halves", j, _halves, merged[j], tables[j],
                *(sent[k, i] for k, i in places if i == j),
            )
            for j in range(len(layout))
        ]  # fmt: skip
        return Blocks(layout, blocks)


def _ends(layout: Layout, j: int) -> tuple[int, int]:
    return int(layout.starts[j]), int(layout.starts[j + 1])


def _halo(table: Table) -> np.ndarray:
    return table.halo


def _places(table: Table, first: int, last: int) -> np.ndarray:
    """Return the candidates whose numbers lie between two."""
    numbers = table.numbers()[table.entries()[1]]
    known = np.isfinite(table.flat())
    return np.flatnonzero(known & (numbers >= first) & (numbers < last))


def _keys(table: Table, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of column and row of some entries: the mirror image."""
    rows, columns = (x[places] for x in table.entries())
    return table.numbers()[columns], rows + table.first


def _sent(table: Table, places: np.ndarray) -> np.ndarray:
    return table.flat()[places]


def _merge(table: Table, n: int, *mirrored: Any) -> Merged:
    known = np.flatnonzero(np.isfinite(table.flat()))
    rows, columns = (x[known] for x in table.entries())
    places, number = table.flat().size, rows.size
    key = np.concatenate(
        [
            rows * n + table.numbers()[columns],
            *((here - table.first) * n + there for here, there in mirrored),
        ]
    )
    del rows, columns
    order = np.argsort(key, kind="stable")
    key = key[order]
    new = np.ones(key.size, dtype=bool)
    new[1:] = key[1:] != key[:-1]
    key = key[new]
    size, both = key.size, order.size
    kind = np.int32 if max(places, both) < 2**31 else np.int64
    place = np.cumsum(new, dtype=kind) - 1
    own = np.full(size, places, dtype=kind)
    mirror = np.full(size, both - number, dtype=kind)
    here = order < number
    own[place[here]] = known[order[here]]
    mirror[place[~here]] = order[~here] - number
    i, j = np.divmod(key, n)
    ends = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=table.size))])
    del key, order, place, here, i
    S = _rows(np.ones(size, dtype=np.int8), j, ends, (table.size, n))
    made = Block.whole(S, table.first)
    return Merged(made.S.indices, made.S.indptr, made.halo, own, mirror)


def _rows(data: Any, columns: Any, ends: Any, shape: Any) -> Any:
    from scipy.sparse import csr_array

    return csr_array((data, columns, ends), shape=shape)


def _halves(merged: Merged, table: Table, *sent: np.ndarray) -> Block:
    own, mirror = (np.concatenate([*part, [0.0]]) for part in ([table.flat()], sent))
    for values in (own, mirror):
        np.maximum(values, 0.0, out=values)
        values /= 2
    data = own[merged.own]
    data += mirror[merged.mirror]
    kept = data > 0
    rows = len(merged.ends) - 1
    indices = merged.indices[kept]
    used = np.zeros(rows + merged.halo.size, dtype=bool)
    used[:rows] = True
    used[indices] = True
    place = (np.cumsum(used) - 1).astype(indices.dtype)
    ends = np.concatenate([[0], np.cumsum(kept)])[merged.ends].astype(merged.ends.dtype)
    S = _rows(data[kept], place[indices], ends, (rows, int(used.sum())))
    S.has_sorted_indices = False  # they are in the order of the whole matrix
    return Block(S, merged.halo[used[rows:]], table.first)


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
        return self.layout.spread(values)

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
        given = [self.layout.spread(a).blocks() for a in aligned]
        others = [other.tables for other in beside]
        task = partial(_weighed, rule, len(given))
        return self._with(
            self.layout.each("weights", task, self.tables, *given, *others)
        )

    def reduce(self, rule: Callable[..., Any], *aligned: Any) -> Any:
        """Return what `rule` makes of each row."""
        given = [self.layout.spread(a).blocks() for a in aligned]
        blocks = self.layout.each(
            "reduced", partial(_reduced, rule), self.tables, *given
        )
        return self.layout.out(Spread.held(self.layout, blocks))

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

    def beside(self, tables: list[Any]) -> "BlockCosts":
        """Return other costs of the same points, made by `Blocks.parts`."""
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
    return *_keys(table, places[known]), values[known]


def _scores(table: Table, alpha: float, n: int, *sent: Any) -> Block:
    """Add what both sides know, and divide by how many know it."""
    values = table.flat()
    known = np.isfinite(values)
    rows, columns = (x[known] for x in table.entries())
    i = np.concatenate([rows, *(there - table.first for there, _, _ in sent)])
    j = np.concatenate([table.numbers()[columns], *(here for _, here, _ in sent)])
    data = np.concatenate([values[known], *(v for _, _, v in sent)]) * (-0.5 / alpha)
    S = _rows_of(i, j, data + 1j, (table.size, n))
    S = _rows(S.data.real / S.data.imag, S.indices, S.indptr, S.shape)
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
