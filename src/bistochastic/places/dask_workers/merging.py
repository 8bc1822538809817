"""Tables of candidates on workers and their mirror images, merged once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.places.dask_workers.block import Block, Exchange
from bistochastic.places.dask_workers.blocks import Blocks
from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.parts import Part
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
                (k, j): layout.submit("keys", k, keys_of, tables[k], places[k, j])
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


def keys_of(table: Table, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    S = rows_with(np.ones(size, dtype=np.int8), j, ends, (table.size, n))
    made = Block.whole(S, table.first)
    return Merged(made.S.indices, made.S.indptr, made.halo, own, mirror)


def rows_with(data: Any, columns: Any, ends: Any, shape: Any) -> Any:
    """Return compressed rows of given parts."""
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
    S = rows_with(data[kept], place[indices], ends, (rows, int(used.sum())))
    S.has_sorted_indices = False  # they are in the order of the whole matrix
    return Block(S, merged.halo[used[rows:]], table.first)
