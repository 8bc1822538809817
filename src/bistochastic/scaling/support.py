"""Support and total support: Definition 1, Theorem 1, Corollary 1, Eqs. (3)-(5)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bistochastic.core.errors import listed, several
from bistochastic.scaling.matching import greedy_matching, maximum_matching

_MANY = "positive entries"


def _none() -> Any:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False, repr=False)
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

    Examples
    --------
    >>> from bistochastic import support
    >>> report = support([[0.0, 0, 1], [0, 0, 1], [1, 1, 0]])  # Eq. (3)
    >>> report.kind, report.crowded.tolist(), report.contested.tolist()
    ('none', [0, 1], [2])
    """

    kind: str
    zero_rows: np.ndarray = field(default_factory=_none)
    unsupported: tuple[np.ndarray, np.ndarray] = field(
        default_factory=lambda: (_none(), _none())
    )
    crowded: np.ndarray = field(default_factory=_none)
    contested: np.ndarray = field(default_factory=_none)
    row_blocks: np.ndarray | None = None
    column_blocks: np.ndarray | None = None

    def __repr__(self) -> Any:
        return (
            f"SupportReport(kind={self.kind!r}, {self.zero_rows.size:,} zero rows, "
            f"{self.crowded.size:,} crowded rows, {self.unsupported[0].size:,} "
            "unsupported entries)"
        )

    def __str__(self) -> Any:
        """Say what was found, in sentences a person can act on."""
        if self.kind == "total":
            return (
                "S has total support: every positive entry lies on a positive "
                "diagonal, so S has a doubly stochastic scaling (Corollary 1)."
            )
        said = {
            "partial": "S has support but not total support (Definition 1).",
            "none": (
                "S has no support: there is no way to pick one positive entry in every "
                "row and column (Definition 1)."
            ),
        }[self.kind]
        if self.zero_rows.size:
            rows = several(self.zero_rows.size, "row is", "rows are")
            said += f" {rows} zero: {listed(self.zero_rows)}."
        if self.crowded.size:
            said += (
                f" {self.crowded.size:,} rows ({listed(self.crowded)}) have positive "
                f"entries only in {several(self.contested.size, 'column')} "
                f"({listed(self.contested)})."
            )
        if self.unsupported[0].size:
            pairs = (f"({i}, {j})" for i, j in zip(*self.unsupported, strict=True))
            said += (
                f" {several(self.unsupported[0].size, 'positive entry', _MANY)} cannot "
                f"stay positive in a doubly stochastic matrix: {listed(pairs)}."
            )
        return said


def analyze(pattern: Any, fast: Callable[..., Any] = lambda text: text) -> Any:
    """Find which entries of a symmetric pattern lie on a positive diagonal.

    Parameters
    ----------
    pattern : csr_array of shape (n, n)
        The positive entries; symmetric.
    fast : callable, optional
        Gives a faster body of a function, as the verb of that name does.

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
    Mendelsohn).
    """
    n = pattern.shape[0]
    degree = np.diff(pattern.indptr)
    looped = pattern.diagonal() > 0
    if looped.all() or 2 * degree.min() > n:
        return SupportReport("total")
    rows_and_columns = pattern.indptr, pattern.indices
    start = fast(greedy_matching)(*rows_and_columns, looped)
    column_of, reached = fast(maximum_matching)(*rows_and_columns, start)
    contested = np.zeros(n, dtype=bool)
    if reached.any():
        contested[pattern.indices[np.repeat(reached, degree)]] = True
    rows, columns = _blocks(pattern, column_of, ~(reached | contested))
    lost = np.repeat(rows, degree) != columns[pattern.indices]
    kind = "none" if reached.any() else "partial" if lost.any() else "total"
    return SupportReport(
        kind,
        zero_rows=np.flatnonzero(degree == 0),
        unsupported=(
            np.repeat(np.arange(n), degree)[lost],
            pattern.indices[lost].astype(np.intp),
        ),
        crowded=np.flatnonzero(reached & (degree > 0)),
        contested=np.flatnonzero(contested),
        row_blocks=rows,
        column_blocks=columns,
    )


def _blocks(pattern: Any, column_of: Any, inside: Any) -> Any:
    """Give numbers to the fully indecomposable blocks of rows and columns.

    Rows and columns that are not inside belong to no block: -1 and -2.
    """
    n = pattern.shape[0]
    owner = np.full(n, -1, dtype=pattern.indices.dtype)
    owner[column_of[inside]] = np.flatnonzero(inside)
    entries = pattern.data, owner[pattern.indices], pattern.indptr
    if not inside.all():
        kept = (entries[1] >= 0) & np.repeat(inside, np.diff(pattern.indptr))
        ends = np.concatenate([[0], np.cumsum(kept)])[pattern.indptr]
        entries = entries[0][kept], entries[1][kept], ends
    directed = csr_array(entries, shape=(n, n))
    _, block = connected_components(directed, connection="strong")
    rows = np.where(inside, block, -1)
    columns = np.where(owner >= 0, block[owner], -2)
    return rows, columns
