"""Graphs that users have in Dask: checked, held, and given back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix, issparse

from bistochastic.core.errors import InputError, InputTypeError
from bistochastic.places.dask_workers.block import Block
from bistochastic.places.dask_workers.blocks import Blocks
from bistochastic.places.dask_workers.inputs import as_declared
from bistochastic.places.dask_workers.layout import Layout
from bistochastic.places.dask_workers.vectors import BlockArray
from bistochastic.places.dask_workers.workers import DaskWorkers

KINDS = (np.ndarray, csr_array, csr_matrix, csc_array, csc_matrix)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a look at some rows of a matrix tells.

    Attributes
    ----------
    rows : int
        How many.
    low, high : float
        Smallest and largest entry.
    bad : int
        How many entries are of no use.
    first : tuple of (int, int, float) or None
        The first of them: row, column and value.
    """

    rows: int
    low: float
    high: float
    bad: int
    first: tuple[int, int, float] | None


@dataclass(frozen=True, eq=False)
class Read:
    """A square matrix in rows on workers, not yet checked for symmetry.

    Attributes
    ----------
    layout : Layout
        Which rows lie where.
    rows : list of Future
        CSR arrays with all columns.
    seen : list of Seen
        What they are like.
    dtype : numpy.dtype
        The numbers that the user has.
    kind : type
        What the user's blocks are.
    columns : tuple of int
        The user's chunks of columns.
    """

    layout: Layout
    rows: list[Any]
    seen: list[Seen]
    dtype: Any
    kind: type
    columns: tuple[int, ...]


def read(S: Any, name: str, *, signed: bool) -> Read:
    """Start to load a Dask array of dense or sparse chunks.

    Parameters
    ----------
    S : dask.array.Array of shape (n, n)
        The matrix; chunks are NumPy arrays or SciPy sparse ones.
    name : str
        What it is called in messages.
    signed : bool
        Whether any real numbers will do, stored zeros being part of the pattern.

    Returns
    -------
    Read
        The rows, and what they are like.
    """
    import dask.array as da

    cluster = DaskWorkers.active()
    if not isinstance(S, da.Array):
        raise InputTypeError(
            f"{name} is a Dask {type(S).__name__}; a Dask array is needed, of dense or "
            "sparse chunks."
        )
    if S.ndim != 2:
        raise InputError(_shape(name, S.shape))
    S, columns = as_declared(S, name), S.chunks[1]
    if S.numblocks[1] > 1:
        if not isinstance(S._meta, np.ndarray):
            raise InputError(
                f"The chunks of {name} are sparse and do not have whole rows; make "
                "them of blocks of rows."
            )
        S = S.rechunk({1: -1})
    given, layout = cluster.loaded(S)
    rows = layout.each("read", _read, given, name, signed)
    seen = layout.gather(layout.each("read", _seen, rows, signed))
    kinds = set(layout.gather(layout.each("read", type, given)))
    layout = cluster.layout([each.rows for each in seen])
    if layout.n != S.shape[1]:
        raise InputError(_shape(name, (layout.n, S.shape[1])))
    return Read(layout, rows, seen, S.dtype, _kind(kinds), columns)


def _kind(kinds: set[type]) -> type:
    """Return what blocks are, if they are all of one kind that Dask can slice."""
    (kind, *others) = kinds
    known = issubclass(kind, KINDS) or hasattr(kind, "from_scipy_sparse")
    return kind if known and not others else csr_array


def _shape(name: str, shape: Any) -> str:
    return (
        f"{name} has shape {shape}; a square matrix of similarities is needed, one row "
        "and one column for each point."
    )


def symmetric(found: Read, allowed: float, unit: float) -> Any:
    """Hold the matrix, or tell which entry differs most from its mirror.

    Parameters
    ----------
    found : Read
        The matrix.
    allowed : float
        Tolerated asymmetry, relative to the largest entries of both rows.
    unit : float
        What entries are divided by, twice.

    Returns
    -------
    Blocks, or tuple of (int, int, float, float)
        The holder; or row, column, entry and its mirror.
    """
    layout = found.layout
    ends = [slice.stop for slice in layout.slices()]
    starts = [slice.start for slice in layout.slices()]
    bounds = np.array([0, *ends])
    touched = layout.gather(layout.each("mirror", _touched, found.rows, bounds))
    mirrored = []
    for j in range(len(layout)):
        near = [k for k in range(len(layout)) if touched[k][j]]
        pieces = [
            layout.submit("mirror", k, _piece, found.rows[k], starts[j], ends[j])
            for k in near
        ]
        shape, offsets = (layout.sizes[j], layout.n), [starts[k] for k in near]
        mirrored.append(layout.submit("mirror", j, _stacked, shape, offsets, *pieces))
    same = layout.gather(layout.each("mirror", _equal, found.rows, mirrored))
    rows = found.rows
    if not all(same):
        tops = layout.each("mirror", _tops, rows, mirrored)
        top = np.concatenate(layout.gather(tops))
        gaps = layout.gather(layout.each("mirror", _worst, rows, mirrored, starts, top))
        gap, *where = max(gaps, key=lambda each: each[0])
        if gap > allowed:
            return tuple(where)
        rows = layout.each("mirror", _mean, rows, mirrored)
    blocks = layout.each("held", _block, rows, starts, unit)
    return Blocks(layout, blocks)


def given_back(S: Blocks, dtype: Any, like: Read) -> Any:
    """Return a graph as a Dask array of the user's kind; nothing is fetched."""
    import dask.array as da
    from dask import delayed

    layout, kind = S.layout, like.kind
    rows = layout.each("given", _whole, S.blocks, S.n, dtype, kind)
    meta = _of_kind(csr_array((0, 0), dtype=dtype), kind)
    chunks = [
        da.from_delayed(delayed(row), shape=(size, S.n), dtype=dtype, meta=meta)
        for row, size in zip(rows, layout.sizes, strict=True)
    ]
    made = da.concatenate(chunks, allow_unknown_chunksizes=True)
    return made.rechunk({1: like.columns}) if len(like.columns) > 1 else made


def given_back_vector(v: Any, layout: Layout) -> Any:
    """Return a vector as a Dask array in the chunks of the graph."""
    import dask.array as da
    from dask import delayed

    if not isinstance(v, BlockArray):
        return da.from_array(np.asarray(v), chunks=(layout.sizes,))
    chunks = [
        da.from_delayed(delayed(block), shape=(size,), dtype=v.dtype)
        for block, size in zip(v.blocks(), layout.sizes, strict=True)
    ]
    return da.concatenate(chunks)


def _read(block: Any, name: str, signed: bool) -> csr_array:
    if hasattr(block, "to_scipy_sparse"):
        block = block.to_scipy_sparse()
    sparse, dense = bool(issparse(block)), isinstance(block, np.ndarray)
    if not (sparse or dense):
        raise InputTypeError(
            f"The chunks of {name} are of {type(block).__name__}; a graph has NumPy or "
            "SciPy sparse ones. Convert them, as by map_blocks."
        )
    if signed and dense:
        return _every_entry(block)
    S = csr_array(block, dtype=np.float64)
    if not S.has_canonical_format:
        S = S.copy()
        S.sum_duplicates()
    if not signed and not S.data.all():
        S = S.copy()
        S.eliminate_zeros()
    return S


def _every_entry(block: np.ndarray) -> csr_array:
    """Return a dense block with its zeros: they are part of the pattern."""
    m, n = block.shape
    columns, ends = np.tile(np.arange(n), m), np.arange(m + 1) * n
    data = np.ravel(block).astype(np.float64)
    return csr_array((data, columns, ends), shape=block.shape)


def _seen(S: csr_array, signed: bool) -> Seen:
    bad = ~np.isfinite(S.data)
    if not signed:
        bad |= S.data < 0
    first = None
    if bad.any():
        at = int(bad.argmax())
        row = int(np.searchsorted(S.indptr, at, side="right")) - 1
        first = row, int(S.indices[at]), float(S.data[at])
    low, high = S.data.min(initial=np.inf), S.data.max(initial=-np.inf)
    return Seen(S.shape[0], float(low), float(high), int(bad.sum()), first)


def _piece(S: csr_array, first: int, last: int) -> csr_array:
    return csr_array(S[:, first:last].T)


def _touched(S: csr_array, bounds: np.ndarray) -> np.ndarray:
    """Tell which blocks of columns have entries."""
    owner = np.searchsorted(bounds, np.unique(S.indices), side="right") - 1
    made: np.ndarray = np.zeros(len(bounds) - 1, dtype=bool)
    made[owner] = True
    return made


def _stacked(
    shape: tuple[int, int], offsets: list[int], *pieces: csr_array
) -> csr_array:
    """Put pieces of rows side by side, each where its columns begin."""
    parts = [piece.tocoo() for piece in pieces]
    none = np.empty(0, dtype=np.int64)
    i = np.concatenate([none, *(part.coords[0] for part in parts)])
    j = np.concatenate(
        [none, *(at + part.coords[1] for at, part in zip(offsets, parts, strict=True))]
    )
    data = np.concatenate([np.empty(0), *(part.data for part in parts)])
    made = csr_array((data, (i, j)), shape=shape)
    made.sort_indices()
    return made


def _equal(S: csr_array, T: csr_array) -> bool:
    return all(
        np.array_equal(getattr(S, part), getattr(T, part))
        for part in ("indptr", "indices", "data")
    )


def _tops(S: csr_array, T: csr_array) -> np.ndarray:
    return np.maximum(*(abs(M).max(axis=1).toarray().ravel() for M in (S, T)))


def _worst(S: csr_array, T: csr_array, first: int, top: np.ndarray) -> Any:
    D = abs(S - T).tocoo()
    if not D.nnz:
        return 0.0, 0, 0, 0.0, 0.0
    i, j = D.coords
    relative = D.data / np.sqrt(top[i + first]) / np.sqrt(top[j])
    at = int(relative.argmax())
    i, j = int(i[at]), int(j[at])
    return float(relative[at]), i + first, j, float(S[i, j]), float(T[i, j])


def _mean(S: csr_array, T: csr_array) -> csr_array:
    here, there = (
        csr_array((M.data / 2 + 1j, M.indices, M.indptr), shape=S.shape) for M in (S, T)
    )
    return csr_array((here + there).real)  # imaginary parts keep sums of zero


def _block(S: csr_array, first: int, unit: float) -> Block:
    return Block.whole(S if unit == 1.0 else csr_array(S / unit / unit), first)


def _whole(block: Block, n: int, dtype: Any, kind: type) -> Any:
    data = block.S.data.astype(dtype)
    shape = (block.S.shape[0], n)
    return _of_kind(csr_array((data, block.columns(), block.S.indptr), shape), kind)


def _of_kind(S: csr_array, kind: Any) -> Any:
    """Return rows as the kind of array that the user has."""
    if issubclass(kind, np.ndarray):
        return S.toarray()
    if hasattr(kind, "from_scipy_sparse"):
        return kind.from_scipy_sparse(S)
    return kind(S)
