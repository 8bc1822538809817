"""Costs and weights on the pattern of a graph, in compressed rows."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from bistochastic.places.host.csr import Csr, chosen, compiled
from bistochastic.places.parts import Part, affinity_parts, tiles


class GraphPattern:
    """The entries of a symmetric matrix in compressed rows.

    Parameters
    ----------
    indptr, indices : array of int
        As of a canonical CSR array whose pattern is symmetric.
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        self.indptr = indptr
        self.indices = indices
        self.n = indptr.size - 1

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry."""
        numbers = np.arange(self.n, dtype=self.indices.dtype)
        return np.repeat(numbers, np.diff(self.indptr))

    @cached_property
    def mirror(self) -> np.ndarray:
        """The place of the mirror image of each entry."""
        places = np.arange(self.indices.size, dtype=self.indptr.dtype)
        return csr_array(self.matrix(places).T).data

    @cached_property
    def classes(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Rows of similar length, the places of their entries, and which there are."""
        lengths = np.diff(self.indptr)
        made = []
        sizes = np.ceil(np.log2(np.maximum(lengths, 1))).astype(int)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            at = np.arange(int(lengths[rows].max()))
            inside = at < lengths[rows][:, None]
            places = np.where(inside, self.indptr[rows][:, None] + at, 0)
            made.append((rows, places, inside))
        return made

    def matrix(self, values: np.ndarray) -> csr_array:
        """Return the values as a CSR array."""
        return csr_array((values, self.indices, self.indptr), shape=(self.n, self.n))


class PatternCosts:
    """Costs, or weights, on the symmetric pattern of a graph.

    Every entry knows its mirror image, so that no pattern is ever merged.

    Parameters
    ----------
    pattern : GraphPattern
        The entries.
    values : array of shape (m,)
        Their costs or weights.
    """

    def __init__(self, pattern: GraphPattern, values: np.ndarray) -> None:
        self.pattern = pattern
        self.values = values
        self.n = pattern.n

    @classmethod
    def of(cls, A: csr_array) -> Self:
        """Take the entries of a graph as costs -a_ij; with alpha = 1/2 rows are A's."""
        return cls(GraphPattern(A.indptr, A.indices), -A.data)

    def vector(self, values: Any) -> np.ndarray:
        """Return `values` as doubles."""
        return np.asarray(values, dtype=np.float64)

    def plus(self, lam: float, F: np.ndarray) -> Self:
        """Return m_ij + lam |f_i - f_j|^2."""
        body = compiled(penalties, self.values.size, "ON_TABLES")
        return self._with(body(self.pattern, self.values, lam, F))

    def closest(self, m: int) -> Any:
        """Return the m cheapest candidates of each row."""
        return self.table(m)

    def table(self, m: int) -> Any:
        """Return the m cheapest candidates of each row as a table."""
        from bistochastic.places.tables import TableCosts

        return TableCosts(self._parts(), self.n).closest(m)

    def listed(self) -> list[tuple[Any, Any, Any]]:
        """Return rows, candidates and costs, rows of similar length together."""
        return [(part.rows, part.columns, part.values) for part in self._parts()]

    def beside(self, A: Any) -> Self:
        """Return the costs of another graph."""
        return type(self).of(A.entries(0.0))

    def weigh(
        self, rule: Callable[..., Any], *aligned: Any, beside: Sequence[Any] = ()
    ) -> Self:
        """Return what `rule` makes of the rows."""
        text = rule.func if isinstance(rule, partial) else rule
        body = compiled(text, self.values.size, "ON_ENTRIES")
        if body is not text:
            options = rule.keywords if isinstance(rule, partial) else {}
            others = [other.values for other in beside]
            made = body(self.pattern.indptr, self.values, *aligned, *others, **options)
            return self._with(made)
        made = np.empty_like(self.values)
        for found, places, inside in self._ruled(rule, aligned, beside):
            made[places[inside]] = found[inside]
        return self._with(made)

    def reduce(self, rule: Callable[..., Any], *aligned: Any) -> np.ndarray:
        """Return what `rule` makes of each row."""
        made = [found for found, *_ in self._ruled(rule, aligned)]
        order = np.concatenate([rows for rows, *_ in self.pattern.classes])
        out = np.empty(self.n)
        out[order] = np.concatenate(made)
        return out

    def dot(self, rows: Self, u: np.ndarray | None = None) -> float:
        """Return the sum of m_ij s_ij, or m_ij u_i s_ij u_j, where s_ij > 0."""
        terms = np.where(rows.values > 0, self.values, 0.0) * rows.values
        if u is None:
            return float(np.sum(terms))
        return float(u @ (self.pattern.matrix(terms) @ u))

    def scores(self, alpha: float) -> Csr:
        """Return -m_ij / (2 alpha) for candidates of either side."""
        finite = np.isfinite(self.values)
        i, j = self.pattern.rows[finite], self.pattern.indices[finite]
        return Csr.averaged(i, j, self.values[finite] * (-0.5 / alpha), self.n)

    def symmetrized(self) -> Csr:
        """Return (S + S') / 2 of the positive weights."""
        body = compiled(mirrored_mean, self.values.size, "ON_TABLES")
        return Csr(body(self.pattern, self.values))

    def moved(self, u: np.ndarray) -> float:
        """Return the squared norm of DSD - S."""
        gap = u[self.pattern.rows]
        gap *= u[self.pattern.indices]
        gap -= 1.0
        gap *= self.values
        return float(gap @ gap)

    def sq_norm(self) -> float:
        """Return the sum of the squared weights."""
        return float(self.values @ self.values)

    def _parts(self) -> list[Part]:
        return affinity_parts(self.pattern.matrix(-self.values))

    def _ruled(self, rule: Any, aligned: Any, beside: Any = ()) -> Any:
        """Yield what a rule makes of tables of rows, their places, which there are."""
        for rows, places, inside in self.pattern.classes:
            made = []
            for tile in tiles(places.shape[0], places.shape[1]):
                costs = np.where(inside[tile], self.values[places[tile]], np.inf)
                others = (
                    np.where(inside[tile], other.values[places[tile]], 1.0)
                    for other in beside
                )
                made.append(rule(costs, *(a[rows[tile]] for a in aligned), *others))
            yield np.concatenate(made), places, inside

    def _with(self, values: np.ndarray) -> Self:
        return type(self)(self.pattern, values)


def penalties(
    pattern: GraphPattern, values: np.ndarray, lam: float, F: np.ndarray
) -> np.ndarray:
    """Return m_ij + lam |f_i - f_j|^2 on a pattern."""
    made = np.empty_like(values)
    for tile in tiles(values.size, F.shape[1]):
        gap = F[pattern.rows[tile]] - F[pattern.indices[tile]]
        gap *= gap
        made[tile] = values[tile] + lam * gap.sum(axis=1)
    return made


def mirrored_mean(pattern: GraphPattern, values: np.ndarray) -> csr_array:
    """Return (S + S') / 2 of the positive weights on a pattern."""
    positive = np.where(values > 0, values, 0.0)
    halves = positive / 2 + positive[pattern.mirror] / 2
    shape = pattern.n, pattern.n
    return csr_array(chosen(pattern.matrix(halves), halves, halves > 0), shape=shape)
