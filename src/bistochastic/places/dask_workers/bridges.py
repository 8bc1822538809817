"""Bridges between components whose points lie on Dask workers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bistochastic.graph.bridges import Links, grouped
from bistochastic.neighbors.exact import nearest_to
from bistochastic.neighbors.points import Points
from bistochastic.places.dask_workers.block import beside, exchanged
from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.dask_workers.merging import Table
from bistochastic.places.dask_workers.tables import BlockCosts


@dataclass(frozen=True, eq=False)
class BlockPoints:
    """Points in blocks on workers.

    Attributes
    ----------
    layout : Layout
        Which lie where.
    blocks : list of Future
        `Points` of each block.
    """

    layout: Layout
    blocks: list[Any]

    def at(self, rows: Any) -> Points:
        """Return some of the points, fetched."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], self.layout.starts)
        some = [
            rows[order[a:b]] - start
            for a, b, start in zip(
                ends[:-1], ends[1:], self.layout.starts[:-1], strict=True
            )
        ]
        made = self.layout.gather(
            self.layout.each("points", Points.at, self.blocks, some)
        )
        X = np.concatenate([points.X for points in made])
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return Points(X[back], made[0].metric, made[0].center)

    def host(self) -> Points:
        """Return all points, fetched."""
        return self.at(np.arange(self.layout.n))


@dataclass(frozen=True, eq=False)
class BlockLinks(Links):
    """Finds the cheapest pair of points between parts, block by block.

    Attributes
    ----------
    costs : BlockCosts
        The candidates, in ascending order.
    """

    costs: BlockCosts | None = None

    @classmethod
    def of(cls, costs: BlockCosts, points: BlockPoints | None) -> "BlockLinks":
        """Look among the candidates first, then among all points."""
        return cls(costs.n, (), points, costs=costs)

    @property
    def _held(self) -> BlockCosts:
        assert self.costs is not None
        return self.costs

    @cached_property
    def twins(self) -> Any:
        """The group of each point if points at cost 0 form groups; None if none do."""
        layout = self._held.layout
        found = layout.gather(layout.each("twins", _twins, self._held.tables))
        i, j = (np.concatenate(ends) for ends in zip(*found, strict=True))
        return grouped(i, j, self.n)

    def within(self, index: np.ndarray) -> Links:
        """Return the links among some of the points only, fetched."""
        layout = self._held.layout
        place = np.full(self.n, -1)
        place[index] = np.arange(index.size)
        given = [place[rows] for rows in layout.slices()]
        made = layout.gather(layout.each("within", _within, self._held.tables, given))
        tables = []
        for rows, columns, costs in (table for part in made for table in part):
            columns = place[columns]
            costs = np.where(columns >= 0, costs, np.inf)
            tables.append((rows, np.maximum(columns, 0), costs))
        points = None if self.points is None else self.points.at(index)
        return Links(index.size, tables, points)

    def _outward(self, labels: np.ndarray, wanted: np.ndarray) -> Any:
        layout = self._held.layout
        exchange = self._held.pattern.exchange
        made = layout.gather(
            exchanged(
                exchange, "bridges", _outward, self._held.tables,
                layout.divided(labels), wanted,
            )
        )  # fmt: skip
        here, there, cost, asked = (
            np.concatenate(column) for column in zip(*made, strict=True)
        )
        return here, there, cost, np.sort(asked)

    def _looked_further(
        self, labels: Any, q: int, ends: Any, others: Any, prices: Any, asked: Any
    ) -> Any:
        """Search for points whose candidates all lie in their own part."""
        points, layout = self.points, self._held.layout
        held = layout.divided(labels).blocks()
        mine = np.searchsorted(asked, layout.starts)
        made = []
        for a in range(len(layout)):
            rows = asked[mine[a] : mine[a + 1]] - layout.starts[a]
            if not rows.size:
                continue
            some = layout.submit("asked", a, Points.at, points.blocks[a], rows)
            for b in np.flatnonzero(layout.sizes).tolist():
                made.append(
                    layout.submit(
                        "bridges", b, _nearest, some, rows + layout.starts[a],
                        labels[rows + layout.starts[a]], points.blocks[b], held[b],
                        int(layout.starts[b]),
                    )
                )  # fmt: skip
        for here, there, cost in layout.gather(made):
            ends, others = np.append(ends, here), np.append(others, there)
            prices = np.append(prices, cost)
        return self._cheapest(labels, q, ends, others, prices)


def _twins(table: Table) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = table.entries()
    i, j = rows + table.first, table.numbers()[columns]
    same = (table.flat() == 0) & (i != j)
    return i[same], j[same]


def _within(table: Table, place: np.ndarray) -> list[Any]:
    numbers, made = table.numbers(), []
    for part in table.parts:
        kept = place[part.rows] >= 0
        rows = place[part.rows[kept]]
        made.append((rows, numbers[part.columns[kept]], part.values[kept]))
    return made


def _outward(table: Table, wanted: np.ndarray, own: Any, *pieces: Any) -> Any:
    """Return the cheapest pair that leaves its part, for points that matter."""
    tables = [(part.rows, part.columns, part.values) for part in table.parts]
    if not table.size:
        none = np.empty(0, np.int64)
        return none, none, np.empty(0), none
    links = Links(table.size, tables)
    here, there, cost, asked = links._outward(beside(own, pieces), wanted)
    numbers = table.numbers()
    return numbers[here], numbers[there], cost, numbers[asked]


def _nearest(
    some: Points, rows: Any, parts: Any, points: Points, labels: Any, first: int
) -> Any:
    """Return for each part the nearest of points that lie in others."""
    found = []
    for part in np.unique(parts):
        rest = np.flatnonzero(labels != part)
        if not rest.size:
            continue
        mine = np.flatnonzero(parts == part)
        columns, costs = nearest_to(points.at(rest), some.X[mine], 1, n_jobs=1)
        here, there = rows[mine], rest[columns[:, 0]] + first
        best = np.lexsort((there, here, costs[:, 0]))[0]
        found.append((here[best], there[best], costs[best, 0]))
    kinds = np.int64, np.int64, np.float64
    return tuple(
        np.array([row[at] for row in found], dtype=kind)
        for at, kind in enumerate(kinds)
    )
