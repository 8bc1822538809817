"""Support and total support: Definition 1, Theorem 1, Corollary 1, Eqs. (3)-(5)."""

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from bistochastic.core.errors import listed


def _none():
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class SupportReport:
    """Whether S has a doubly stochastic scaling, and what stands in its way.

    Attributes
    ----------
    kind : {"total", "partial", "none"}
        Total support (every positive entry lies on a positive diagonal), support
        only (some positive diagonal exists), or no positive diagonal at all.
    zero_rows : array of int
        Rows without a positive entry.
    unsupported : tuple of two arrays of int
        Row and column indices of the positive entries that no doubly stochastic
        matrix with this pattern can hold once the rows that cannot be scaled
        (`zero_rows`, `crowded`, `contested`) are set aside; with support, the
        entries that lie on no positive diagonal.
    crowded : array of int
        Rows, other than zero rows, of which there are more than columns that they
        have entries in, so that no positive diagonal passes through all of them.
    contested : array of int
        The columns that the crowded rows compete for.
    row_blocks, column_blocks : array of int of shape (n,), or None
        Entry (i, j) is supported if ``row_blocks[i] == column_blocks[j]``; None
        where a sufficient condition answered.
    """

    kind: str
    zero_rows: np.ndarray = field(default_factory=_none)
    unsupported: tuple[np.ndarray, np.ndarray] = field(
        default_factory=lambda: (_none(), _none())
    )
    crowded: np.ndarray = field(default_factory=_none)
    contested: np.ndarray = field(default_factory=_none)
    row_blocks: np.ndarray | None = field(default=None, repr=False)
    column_blocks: np.ndarray | None = field(default=None, repr=False)

    def __str__(self):
        """Say what was found, in sentences a person can act on."""
        if self.kind == "total":
            return (
                "S has total support: every positive entry lies on a positive "
                "diagonal, so S has a doubly stochastic scaling (Corollary 1)."
            )
        said = {
            "partial": "S has support but not total support (Definition 1).",
            "none": "S has no support: it has no positive diagonal (Definition 1).",
        }[self.kind]
        if self.zero_rows.size:
            said += f" {self.zero_rows.size} row(s) are zero: {listed(self.zero_rows)}."
        if self.crowded.size:
            said += (
                f" {self.crowded.size} row(s) ({listed(self.crowded)}) have positive "
                f"entries only in {self.contested.size} column(s) "
                f"({listed(self.contested)})."
            )
        if self.unsupported[0].size:
            pairs = [f"({i}, {j})" for i, j in zip(*self.unsupported, strict=True)]
            said += (
                f" {len(pairs)} positive entries cannot stay positive in a doubly "
                f"stochastic matrix: {listed(pairs)}."
            )
        return said


def analyse(pattern):
    """Find which entries of a symmetric pattern lie on a positive diagonal.

    Parameters
    ----------
    pattern : csr_array of shape (n, n)
        The positive entries; symmetric.

    Returns
    -------
    SupportReport
        The kind of support and what lacks it.

    Notes
    -----
    A positive main diagonal gives total support: Theorem 2, by the permutation of
    Eq. (5) that swaps i and j. So does a pattern in which every row holds more than
    half of the columns, since it keeps a perfect matching, by Hall's theorem, when
    the row and column of any entry are taken away. Otherwise the
    diagonals of Eq. (4) are the perfect matchings of the bipartite graph of rows
    and columns, and an entry lies on one of them exactly if its ends are in one
    strong component of the graph that a maximum matching directs (Dulmage and
    Mendelsohn). Only connected components with a zero on the diagonal are searched.
    """
    n = pattern.shape[0]
    looped = pattern.diagonal() > 0
    if looped.all() or 2 * np.diff(pattern.indptr).min() > n:
        return SupportReport("total")
    _, component = connected_components(pattern, directed=False)
    doubtful = np.zeros(n, dtype=bool)
    doubtful[component[~looped]] = True
    index = np.flatnonzero(doubtful[component])
    rows, columns, crowded, contested = _blocks(pattern[index][:, index])
    row_blocks = n + component  # larger than any block number of the searched part
    column_blocks = row_blocks.copy()
    row_blocks[index], column_blocks[index] = rows, columns
    return _report(pattern, row_blocks, column_blocks, index[crowded], index[contested])


def _report(pattern, row_blocks, column_blocks, crowded, contested):
    degree = np.diff(pattern.indptr)
    lost = np.repeat(row_blocks, degree) != column_blocks[pattern.indices]
    i = np.repeat(np.arange(pattern.shape[0]), degree)[lost]
    j = pattern.indices[lost].astype(np.intp)
    kind = "none" if crowded.size else "partial" if i.size else "total"
    return SupportReport(
        kind,
        zero_rows=crowded[degree[crowded] == 0],
        unsupported=(i, j),
        crowded=crowded[degree[crowded] > 0],
        contested=contested,
        row_blocks=row_blocks,
        column_blocks=column_blocks,
    )


def _blocks(pattern):
    """Number the fully indecomposable blocks; -1 and -2 where there is none."""
    n = pattern.shape[0]
    taken = maximum_bipartite_matching(pattern, perm_type="column")
    owner = np.full(n, -1)
    owner[taken[taken >= 0]] = np.flatnonzero(taken >= 0)
    crowded = _reached(pattern, owner, taken < 0)
    contested = np.unique(pattern[crowded].indices)
    inside = np.ones(n, dtype=bool)
    inside[crowded] = inside[contested] = False
    rows, columns = np.full(n, -1), np.full(n, -2)
    keep = np.flatnonzero(inside)
    if keep.size:
        # keep holds the owners of its own columns: sort these by their owners
        square = pattern[keep][:, taken[keep]]
        _, rows[keep] = connected_components(square, connection="strong")
        columns[taken[keep]] = rows[keep]
    return rows, columns, crowded, contested


def _reached(pattern, owner, start):
    """Follow alternating paths, row to column to its owner, from unmatched rows."""
    seen = start.copy()
    front = np.flatnonzero(start)
    while front.size:
        front = np.unique(owner[pattern[front].indices])
        front = front[~seen[front]]
        seen[front] = True
    return np.flatnonzero(seen)
