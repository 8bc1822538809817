"""Costs and row weights: one array for all pairs, or a table of candidates."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array
from scipy.sparse import csr_array

from bistochastic.core.arrays import on_cpu
from bistochastic.places.host.csr import Csr, compiled
from bistochastic.places.host.dense import FEW, Dense
from bistochastic.places.host.pattern_costs import PatternCosts
from bistochastic.places.parts import TILE, Part, Pattern, tiles


class DenseCosts:
    """Costs of all pairs, or weights, in one array of any namespace.

    Parameters
    ----------
    M : array of shape (n, n)
        Costs, infinite where j is no candidate of i; or weights.
    """

    def __init__(self, M: Any) -> None:
        self._M = M
        self._xp = array_namespace(M)
        self.n: int = M.shape[0]
        self._graph = table_graph(M)

    def vector(self, values: Any) -> Any:
        """Return `values` in the type and on the device of the costs."""
        return self._xp.asarray(values, dtype=self._M.dtype, device=device(self._M))

    def plus(self, lam: float, F: Any) -> Self:
        """Return m_ij + lam |f_i - f_j|^2."""
        sizes = self._xp.vecdot(F, F)
        out = F @ F.T
        out *= -2.0
        out += sizes[:, None]
        out += sizes[None, :]
        out = self._xp.clip(out, 0.0, None)
        out *= lam
        out += self._M
        loops = self._xp.eye(self.n, dtype=self._xp.bool, device=device(self._M))
        return type(self)(self._xp.where(loops, self._M, out))

    def closest(self, m: int) -> Self:
        """Return the m cheapest candidates of each row, the point itself first."""
        xp = self._xp

        def keep(costs: Any, rows: Any) -> Any:
            places = xp.arange(self.n, device=device(costs))
            loops = (places[None, :] == rows[:, None]) & xp.isfinite(costs)
            order = xp.argsort(xp.where(loops, -xp.ones_like(costs), costs), axis=1)
            kept = xp.argsort(order, axis=1) < m
            return xp.where(kept, costs, xp.full_like(costs, xp.inf))

        return self.weigh(keep, xp.arange(self.n, device=device(self._M)))

    def weigh(
        self, rule: Callable[..., Any], *aligned: Any, beside: Sequence[Any] = ()
    ) -> Self:
        """Return what `rule` makes of the rows, a tile of them at a time."""
        return type(self)(self.reduce(rule, *aligned, *(other._M for other in beside)))

    def reduce(self, rule: Callable[..., Any], *aligned: Any) -> Any:
        """Return what `rule` makes of each row."""
        return self._xp.concat(
            [
                rule(self._M[tile, :], *(other[tile, ...] for other in aligned))
                for tile in tiles(self.n, self.n)
            ]
        )

    def native(self) -> Any:
        """Return the array."""
        return self._M

    def beside(self, A: Any) -> Any:
        """Return the entries of a graph as costs -a_ij."""
        return self.table(1).beside(A)

    def listed(self) -> list[tuple[Any, Any, Any]]:
        """Return rows, candidates (None for all in order) and costs, on the CPU."""
        return [(np.arange(self.n), None, on_cpu(self._M))]

    def table(self, m: int) -> "TableCosts":
        """Return the m cheapest candidates of each row as a table, loops first."""
        xp, M = self._xp, self._M
        rows = xp.arange(self.n, device=device(M))
        loops = (rows[:, None] == rows[None, :]) & xp.isfinite(M)
        ranked = xp.where(loops, -xp.ones_like(M), M)
        columns = xp.argsort(ranked, axis=1, stable=True)[:, :m]
        values = xp.take_along_axis(M, columns, axis=1)
        return TableCosts([Part(rows, columns, values)], self.n, self._graph)

    def dot(self, rows: Self, u: Any = None) -> float:
        """Return the sum of m_ij s_ij, or m_ij u_i s_ij u_j, where s_ij > 0."""
        kept = self._xp.where(rows._M > 0, self._M, self._xp.zeros_like(self._M))
        kept *= rows._M
        return float(self._xp.sum(kept) if u is None else u @ (kept @ u))

    def scores(self, alpha: float) -> Dense:
        """Return -m_ij / (2 alpha), symmetric where one side has no candidate."""
        xp = self._xp
        least = xp.minimum(self._M, self._M.T)
        both = xp.isfinite(self._M) & xp.isfinite(self._M.T)
        mean = xp.where(both, self._M / 2 + self._M.T / 2, least)
        return Dense(mean * (-0.5 / alpha))

    def symmetrized(self) -> Dense | Csr:
        """Return (S + S') / 2, of NumPy arrays in compressed rows if it is sparse."""
        S = self._M / 2 + self._M.T / 2
        if isinstance(S, np.ndarray) and FEW * np.count_nonzero(S) < S.size:
            return Csr(csr_array(S))
        return Dense(S)

    def moved(self, u: Any) -> float:
        """Return the squared norm of DSD - S."""
        gap = u[:, None] * u[None, :]
        gap -= 1.0
        gap *= self._M
        return float(self._xp.sum(gap * gap))

    def sq_norm(self) -> float:
        """Return the sum of the squared weights."""
        return float(self._xp.sum(self._M * self._M))


def table_graph(values: Any) -> Any:
    """Return the holder of graphs that are made of tables of such arrays."""
    if is_torch_array(values):
        from bistochastic.places.torch_device.csr import TorchCsr

        return TorchCsr
    return Csr


class TableCosts:
    """Costs, or weights, of few candidates a point, in parts of equal width.

    Never n x n: rows with many more candidates than others make a part of their own.

    Parameters
    ----------
    parts : sequence of Part
        NumPy or torch arrays; every row stands in one part.
    n : int
        Number of points.
    graph : type
        The holder of what is symmetrized; it has the class methods `symmetrized` and
        `averaged` of `Csr`, and `halves` if parts have patterns.
    tile : int, optional
        How many numbers are made in one go.
    """

    def __init__(
        self, parts: Sequence[Part], n: int, graph: Any = Csr, tile: int = TILE
    ) -> None:
        self.parts = tuple(parts)
        self.n = n
        self._graph = graph
        self._tile = tile
        self._xp = array_namespace(self.parts[0].values)

    def vector(self, values: Any) -> Any:
        """Return `values` in the type and on the device of the costs."""
        first = self.parts[0].values
        return self._xp.asarray(values, dtype=first.dtype, device=device(first))

    def plus(self, lam: float, F: Any) -> Self:
        """Return m_ij + lam |f_i - f_j|^2, by tiles of rows."""
        return self._each(
            lambda part: part.values + lam * self._distances(F, part.rows, part.columns)
        )

    def closest(self, m: int) -> Self:
        """Return the first m candidates of each row."""
        return self._with(
            self._narrow(part, m) if m < part.columns.shape[1] else part
            for part in self.parts
        )

    @staticmethod
    def _narrow(part: Part, m: int) -> Part:
        columns = part.columns[:, :m]
        pattern = None if part.pattern is None else Pattern(columns)
        return Part(part.rows, columns, part.values[:, :m], pattern)

    def listed(self) -> list[tuple[Any, Any, Any]]:
        """Return rows, candidates and costs of each part."""
        return [(part.rows, part.columns, part.values) for part in self.parts]

    def table(self, m: int) -> Self:
        """Return the first m candidates of each row."""
        return self.closest(m)

    def weigh(
        self, rule: Callable[..., Any], *aligned: Any, beside: Sequence[Any] = ()
    ) -> Self:
        """Return what `rule` makes of the rows, a tile of them at a time."""
        text = rule.func if isinstance(rule, partial) else rule
        body = self._body(text, "ON_TABLE_ROWS")
        if body is not text and not beside:
            options = rule.keywords if isinstance(rule, partial) else {}
            return self._each(
                lambda part: body(
                    part.values, *(a[part.rows] for a in aligned), **options
                )
            )
        tables = zip(self.parts, *(other.parts for other in beside), strict=True)
        return self._with(
            replace(part, values=self._by_tiles(rule, part, aligned, others))
            for part, *others in tables
        )

    def reduce(self, rule: Callable[..., Any], *aligned: Any) -> Any:
        """Return what `rule` makes of each row."""
        xp = self._xp
        made = [self._by_tiles(rule, part, aligned) for part in self.parts]
        order = xp.argsort(xp.concat([part.rows for part in self.parts]))
        return xp.concat(made)[order]

    def dot(self, rows: Self, u: Any = None) -> float:
        """Return the sum of m_ij s_ij, or m_ij u_i s_ij u_j, where s_ij > 0."""
        xp = self._xp

        def rule(costs: Any, weights: Any, scales: Any = 1.0) -> Any:
            return xp.where(weights > 0, costs, 0.0) * weights * scales

        if u is None or not isinstance(u, np.ndarray):
            return self._summed(rule, rows, u=u)
        body = self._body(dot)
        return sum(
            body(part.values, other.values, part.rows, part.columns, u)
            for part, other in zip(self.parts, rows.parts, strict=True)
        )

    def scores(self, alpha: float) -> Any:
        """Return -m_ij / (2 alpha) for candidates of either side."""
        i, j, values = self._entries(self._xp.isfinite)
        return self._graph.averaged(i, j, values * (-0.5 / alpha), self.n)

    def symmetrized(self) -> Any:
        """Return (S + S') / 2 of the positive weights."""
        part = self.parts[0]
        if len(self.parts) == 1 and part.pattern is not None:
            return self._graph.halves(part.pattern, part.values)
        return self._graph.symmetrized(*self._entries(lambda w: w > 0), self.n)

    def moved(self, u: Any) -> float:
        """Return the squared norm of DSD - S."""
        if not isinstance(u, np.ndarray):
            return self._summed(lambda weights, uu: ((uu - 1.0) * weights) ** 2, u=u)
        body = self._body(moved)
        return sum(body(part.values, part.rows, part.columns, u) for part in self.parts)

    def sq_norm(self) -> float:
        """Return the sum of the squared weights."""
        return self._summed(lambda values: values**2)

    def remade(self, rule: Callable[..., Any], *along: Any) -> Self:
        """Return the table with columns and values that `rule` makes of each part.

        It may pick from the vectors `along` by rows and columns.
        """
        parts = []
        for part in self.parts:
            columns, values = rule(part.rows, part.columns, part.values, *along)
            pattern = None if part.pattern is None else Pattern(columns, once=True)
            parts.append(Part(part.rows, columns, values, pattern))
        return self._with(parts)

    def beside(self, A: Any) -> Any:
        """Return the entries of a graph as costs -a_ij, on its pattern if it has one.

        Else in tables, of NumPy arrays or such as these.
        """
        first, xp = self.parts[0].values, self._xp
        if isinstance(A, Csr) and isinstance(first, np.ndarray):
            return PatternCosts.of(A.entries(0.0))
        to = {"device": device(first)}
        return self._with(
            Part(
                xp.asarray(part.rows, **to),
                xp.asarray(part.columns, **to),
                xp.asarray(part.values, dtype=first.dtype, **to),
            )
            for part in A.parts()
        )

    def _body(self, text: Any, bodies: str = "ON_TABLES") -> Any:
        """Return the compiled body of a text for tables of NumPy arrays."""
        if not isinstance(self.parts[0].values, np.ndarray):
            return text
        size = sum(part.values.size for part in self.parts)
        return compiled(text, size, bodies)

    def _summed(self, rule: Callable[..., Any], *others: Self, u: Any = None) -> float:
        """Return the sum of what `rule` makes of values, and of u_i u_j, by tiles."""
        total = 0.0
        for parts in zip(self.parts, *(other.parts for other in others), strict=True):
            first = parts[0]
            rows, width = first.values.shape
            for tile in tiles(rows, width, self._tile):
                given = [part.values[tile] for part in parts]
                if u is not None:
                    given.append(u[first.rows[tile]][:, None] * u[first.columns[tile]])
                total += float(self._xp.sum(rule(*given)))
        return total

    def _by_tiles(
        self, rule: Callable[..., Any], part: Part, aligned: Any, others: Any = ()
    ) -> Any:
        width = part.values.shape[1]
        return self._xp.concat(
            [
                rule(
                    part.values[tile],
                    *(a[part.rows[tile]] for a in aligned),
                    *(other.values[tile] for other in others),
                )
                for tile in tiles(part.values.shape[0], width, self._tile)
            ]
        )

    def _distances(self, F: Any, rows: Any, columns: Any) -> Any:
        """Return |f_i - f_j|^2 for the candidates j of each row i."""
        if isinstance(F, np.ndarray):
            body = compiled(distances, columns.size, "ON_TABLES")
            return body(F, rows, columns)
        body = distances
        if hasattr(self._graph, "on_tables"):
            body = self._graph.on_tables(distances, F)
        return body(F, rows, columns, self._tile)

    def _entries(self, kept: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
        """Return row, column and value of the entries that `kept` accepts."""
        xp = self._xp
        found = []
        for part in self.parts:
            which = kept(part.values)
            rows = xp.broadcast_to(part.rows[:, None], part.columns.shape)
            found.append((rows[which], part.columns[which], part.values[which]))
        i, j, values = (xp.concat(column) for column in zip(*found, strict=True))
        return i, j, values

    def _each(self, values: Callable[[Part], Any]) -> Self:
        return self._with(replace(part, values=values(part)) for part in self.parts)

    def _with(self, parts: Any) -> Self:
        return type(self)(tuple(parts), self.n, self._graph, self._tile)


def distances(F: Any, rows: Any, columns: Any, size: int = TILE) -> Any:
    """Return |f_i - f_j|^2 for the candidates j of each row i, by tiles of rows."""
    xp = array_namespace(F)
    made = []
    for tile in tiles(columns.shape[0], columns.shape[1] * F.shape[1], size):
        gap = F[columns[tile]] - F[rows[tile]][:, None, :]
        gap *= gap
        made.append(xp.sum(gap, axis=2))
    return xp.concat(made)


def dot(costs: Any, weights: Any, rows: Any, columns: Any, u: Any) -> float:
    """Return the sum of m_ij u_i s_ij u_j where s_ij > 0, of the rows of a table."""
    return sum(
        float(
            np.sum(
                np.where(weights[tile] > 0, costs[tile], 0.0)
                * weights[tile]
                * (u[rows[tile]][:, None] * u[columns[tile]])
            )
        )
        for tile in tiles(columns.shape[0], columns.shape[1])
    )


def moved(weights: Any, rows: Any, columns: Any, u: Any) -> float:
    """Return the squared norm of DSD - S, of the rows of a table."""
    return sum(
        float(
            np.sum(
                ((u[rows[tile]][:, None] * u[columns[tile]] - 1.0) * weights[tile]) ** 2
            )
        )
        for tile in tiles(columns.shape[0], columns.shape[1])
    )
