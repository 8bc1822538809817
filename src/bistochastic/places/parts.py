"""Parts of tables: the candidates of some rows, and their numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.core.errors import InputError

TILE = 1 << 19  # numbers made in one go


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a table.

    Attributes
    ----------
    rows : array of int of shape (r,)
        Which rows.
    columns : array of int of shape (r, m)
        The candidates of each, the cheapest first.
    values : array of shape (r, m)
        Their costs or weights; rows with fewer candidates end with infinite costs.
    pattern : Pattern or None
        The entries of the table and its mirror image, if it has all rows in order and
        no candidate twice.
    """

    rows: Any
    columns: Any
    values: Any
    pattern: Any = None


class Pattern:
    """Which entries a table of candidates and its mirror image have, found once.

    Attributes
    ----------
    columns : array of int of shape (n, m)
        The candidates of each row.
    once : bool
        Whether it is asked for once only, and need not be kept.
    """

    def __init__(self, columns: Any, *, once: bool = False) -> None:
        self.columns = columns
        self.once = once
        self._made: Any = None

    def made(self, build: Callable[[Any], Any]) -> Any:
        """Return what `build` makes of the columns, the first time it is asked for."""
        if self.once:
            return build(self.columns)
        if self._made is None:
            self._made = build(self.columns)
        return self._made


def parts(
    i: Any, j: Any, costs: Any, n: int, loops: bool = False, first: int = 0
) -> list[Part]:
    """Put sorted entries into tables, rows of similar length together.

    Parameters
    ----------
    i, j : array of int of shape (m,)
        Row and column of each entry, rows in order.
    costs : array of shape (m,)
        Their costs, those of a row in order.
    n : int
        Number of rows; every one needs an entry.
    loops : bool, default=False
        Whether the first entry of each row is the point itself, at cost 0.
    first : int, default=0
        The number that the first row has among the columns.

    Returns
    -------
    list of Part
        Tables whose width is at most twice that of their rows.
    """
    lengths = np.bincount(i, minlength=n)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    if lengths.min() == 0:
        row = int(lengths.argmin())
        raise InputError(
            f"Row {row} of X has no candidates. Give it a distance to some other "
            "point, or leave it out."
        )
    kind = np.int32 if n + first < 2**31 else np.int64
    made = []
    classes = np.ceil(np.log2(lengths)).astype(int)
    for size in np.unique(classes):
        rows = np.flatnonzero(classes == size)
        width = int(lengths[rows].max())
        places = starts[rows][:, None] + np.arange(width)
        inside = np.arange(width) < lengths[rows][:, None]
        places[~inside] = 0
        columns = np.where(inside, j[places], rows[:, None] + first)
        columns = columns.astype(kind)
        values = np.where(inside, costs[places], np.inf)
        if loops:
            values[:, 0] = 0.0
        made.append(Part(rows.astype(kind), columns, values))
    return made


def tiles(rows: int, width: int, size: int = TILE) -> list[slice]:
    """Cut rows of `width` numbers into slices of about `size` numbers."""
    size = max(1, size // max(1, width))
    return [slice(a, min(a + size, rows)) for a in range(0, rows, size)]


def affinity_parts(A: Any, loops: bool = True) -> list[Part]:
    """Put the entries of a graph, as costs -a_ij, into tables.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Graph; every row needs an entry.
    loops : bool, default=True
        Whether the diagonal counts.

    Returns
    -------
    list of Part
        Tables, the cheapest candidate of each row first.
    """
    n = A.shape[0]
    i = np.repeat(np.arange(n), np.diff(A.indptr))
    kept = np.ones(i.size, dtype=bool) if loops else i != A.indices
    i, j, costs = i[kept], A.indices[kept], -A.data[kept]
    order = np.lexsort((j, costs, i))
    return parts(i[order], j[order], costs[order], n)
