"""The verbs of graphs on one block: what workers run."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from bistochastic.core.arrays import in_range, scaled_by
from bistochastic.places.dask_workers.block import Block, beside, on_device, rows_of
from bistochastic.places.dask_workers.lazy import Steps, one_of
from bistochastic.places.host import csr
from bistochastic.places.host.csr import compiled, using

SQUARE = 20_000  # rows whose products with S are made in one go, by entries a row


def noise(rows: int, columns: int, seed: int, number: int) -> np.ndarray:
    """Return normal numbers for one block."""
    rng = np.random.default_rng([seed, number])
    return rng.standard_normal((rows, columns))


def made_and_multiplied(
    block: Block, steps: Steps, at: int, number: int, *given: Any
) -> list[np.ndarray]:
    """Make rows of a vector, and their product."""
    own = one_of(steps, at, *given[:number])
    return [own, multiplied(block, own, *given[number:])]


def multiplied(block: Block, own: np.ndarray, *pieces: np.ndarray) -> np.ndarray:
    """Return the rows of S v."""
    v = beside(own, pieces)
    if (there := on_device()) is not None:
        return there.multiplied(block, v)
    with using(1, block.S.shape[0]):  # other tasks run beside it
        return compiled(csr.product, block.S.nnz, "ON_ROWS")(block.S, v)


def diagonal(block: Block) -> np.ndarray:
    """Return the diagonal."""
    out = np.zeros(block.S.shape[0])
    rows = block.rows()
    loops = rows == block.S.indices
    out[rows[loops]] = block.S.data[loops]
    return out


def scaled(block: Block, own: np.ndarray, *pieces: np.ndarray) -> Block:
    """Return DSD."""
    u = beside(own, pieces)
    data = np.repeat(own, np.diff(block.S.indptr))
    if u.size and not in_range(u):
        return block.with_data(scaled_by(data, u[block.S.indices], block.S.data))
    data *= u[block.S.indices]
    data *= block.S.data
    return block.with_data(data)


def shifted(block: Block, delta: Any) -> Block:
    """Return S + diag(delta)."""
    rows = block.rows()
    loops = rows == block.S.indices
    size = block.S.shape[0]
    delta = delta * np.ones(size)
    if np.count_nonzero(loops) == size:
        data = block.S.data.copy()
        data[loops] += delta
        return block.with_data(data)
    every = np.arange(size)
    i, j = np.concatenate([rows, every]), np.concatenate([block.S.indices, every])
    # in the order of the whole matrix
    place = np.concatenate([every + block.first, block.halo])
    order = np.lexsort((place[j], i))
    both = np.concatenate([block.S.data, delta])[order]
    i, j = i[order], j[order]
    new = np.ones(i.size, dtype=bool)
    new[1:] = (i[1:] != i[:-1]) | (j[1:] != j[:-1])
    data = np.add.reduceat(both, np.flatnonzero(new)) if size else both
    ends = np.concatenate([[0], np.cumsum(np.bincount(i[new], minlength=size))])
    return replace(block, S=rows_of(data, j[new], ends, block.S.shape[1]))


def cut(block: Block, rows: np.ndarray, own: np.ndarray, *pieces: np.ndarray) -> Block:
    """Return the entries whose labels of row and column agree."""
    columns = beside(own, pieces)
    return block.kept(rows[block.rows()] == columns[block.S.indices])


def mates(block: Block, cap: float, own: np.ndarray, *pieces: np.ndarray) -> np.ndarray:
    """Return the heaviest free neighbor of each row that is free, or -1.

    Vectors have two columns: sizes, and whether a row is free.
    """
    sizes, free = beside(own, pieces).T
    i, j, columns = block.rows(), block.S.indices, block.columns()
    allowed = (i != j) & (free[i] > 0) & (free[j] > 0) & (sizes[i] + sizes[j] <= cap)
    i, j, columns = i[allowed], j[allowed], columns[allowed]
    weights = block.S.data[allowed] * (1.0 / sizes[i] + 1.0 / sizes[j])
    order = np.lexsort((columns, -weights, i))
    rows, first = np.unique(i[order], return_index=True)
    best = np.full(block.S.shape[0], -1, dtype=np.int64)
    best[rows] = columns[order][first]
    return best


def gathered(
    block: Block, number: int, own: np.ndarray, *pieces: np.ndarray
) -> csr_array:
    """Return the sums of the entries of some rows between groups."""
    groups = beside(own, pieces).astype(np.int64)
    ends = groups[block.rows()], groups[block.S.indices]
    return csr_array((block.S.data, ends), shape=(number, number))


def joined(block: Block, i: Any, j: Any, weights: Any, n: int) -> Block:
    """Return the block with edges added."""
    i = np.concatenate([block.rows(), i])
    j = np.concatenate([block.columns(), j])
    data = np.concatenate([block.S.data, weights])
    return Block.of(i, j, data, block.first, (block.S.shape[0], n))


def whole_rows(block: Block, wanted: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return entries, columns and ends of some rows, numbered as in the matrix."""
    S = block.S[wanted]
    rows = np.arange(block.first, block.first + block.S.shape[0])
    columns = np.concatenate([rows, block.halo])
    return S.data, columns[S.indices], S.indptr


def supported(block: Block, n: int, *others: Any) -> Block:
    """Weigh entries by the root of S^2: rows of S times the rows that they point to.

    Terms are added in the order of the whole matrix, on both sides of the diagonal.
    """
    S, width = block.S, block.S.shape[1]
    below = [S]
    first = block.first
    for data, columns, indptr in others:
        own = (columns >= first) & (columns < first + S.shape[0])
        at = np.searchsorted(block.halo, columns)
        at = np.minimum(at, max(block.halo.size - 1, 0))
        known = own | ((block.halo[at] == columns) if block.halo.size else False)
        place = np.where(own, columns - first, S.shape[0] + at)
        ends = np.concatenate([[0], np.cumsum(known)])[indptr]
        below.append(rows_of(data[known], place[known], ends, width))
    local = csr_array(vstack(below, format="csr"))
    made = np.empty(S.nnz)
    step = max(1, SQUARE * max(1, S.shape[0]) // max(1, S.nnz))
    for a in range(0, S.shape[0], step):
        rows = S[a : a + step]
        square = csr_array(rows @ local)
        square.sort_indices()
        i = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        key = np.repeat(np.arange(rows.shape[0]), np.diff(square.indptr))
        key = key * width + square.indices
        wanted = i * width + rows.indices
        at = np.minimum(np.searchsorted(key, wanted), max(key.size - 1, 0))
        found = np.where(key[at] == wanted, square.data[at], 0.0) if key.size else 0.0
        made[S.indptr[a] : S.indptr[min(a + step, S.shape[0])]] = found
    data = S.data * np.sqrt(made)
    return block.with_data(data).kept(data > 0)


def fetched(block: Block, least: float, n: int) -> csr_array:
    """Return the entries above a bound, in the columns of the whole matrix."""
    kept = block.kept(block.S.data > least)
    made = (kept.S.data, kept.columns(), kept.S.indptr)
    return csr_array(made, shape=(block.S.shape[0], n))


def logarithms(block: Block) -> Block:
    """Return log S."""
    return block.with_data(np.log(block.S.data))


def ones(block: Block) -> Block:
    """Return ones where S is positive."""
    return block.with_data(np.ones_like(block.S.data))


def sq_norm(block: Block, weights: Any = None) -> float:
    """Return the sum of the squared entries, of each row times a weight."""
    data = block.S.data
    if weights is None:
        return float(data @ data)
    return float(np.sum(data**2 * weights[block.rows()]))


def dot(block: Block, other: Block, n: int) -> float:
    """Return the sum of products with the entries of another block."""
    here, there = (fetched(x, -np.inf, n) for x in (block, other))
    return float(here.multiply(there).sum())


def loops(block: Block) -> int:
    """Count the entries on the diagonal."""
    return int(np.count_nonzero(block.rows() == block.S.indices))


def highest(block: Block) -> np.ndarray:
    """Return the largest entry of each row."""
    if block.S.shape[0] == 0:
        return np.empty(0)
    return np.maximum.reduceat(block.S.data, block.S.indptr[:-1])


def moments(block: Block) -> np.ndarray:
    """Return the number, sum and sum of squares of the entries."""
    data = block.S.data
    return np.array([data.size, data.sum(), data @ data])


def _sums(block: Block, omega: float, own: Any, pieces: Any) -> np.ndarray:
    a = beside(own, pieces)
    out = np.repeat(own, np.diff(block.S.indptr))
    out += a[block.S.indices]
    out += omega * block.S.data
    return out


def exponential(block: Block, omega: float, own: Any, *pieces: Any) -> Block:
    """Return exp(omega k_ij + a_i + a_j)."""
    return block.with_data(np.exp(_sums(block, omega, own, pieces)))


def clipped(block: Block, omega: float, least: float, own: Any, *pieces: Any) -> Block:
    """Return omega k_ij + a_i + a_j above a bound."""
    data = _sums(block, omega, own, pieces)
    return block.with_data(data).kept(data > least)


def raised(block: Block, own: Any, *pieces: Any) -> Block:
    """Return the positive part of k_ij + a_i + a_j, zeros stored."""
    return block.with_data(np.maximum(_sums(block, 1.0, own, pieces), 0.0))


def groups_inside(block: Block) -> Any:
    """Return the connected groups of rows inside a block."""
    rows, width = block.S.shape
    ends = np.concatenate([block.S.indptr, np.full(width - rows, block.S.nnz)])
    square = csr_array((block.S.data, block.S.indices, ends), shape=(width, width))
    number, labels = connected_components(square, directed=False)
    return number, labels[:rows], labels[rows:]


def first_of_groups(found: Any) -> np.ndarray:
    """Return the first row of each group."""
    return np.asarray(found[1])


def n_groups(found: Any) -> int:
    """Return how many groups there are."""
    return int(found[0])


def touching(found: Any, own: np.ndarray, *pieces: np.ndarray) -> Any:
    """Return pairs of components, here and in the block of the halo."""
    made, at = [], 0
    for piece in pieces:
        both = np.stack([found[2][at : at + piece.size], piece])
        made.append(np.unique(both, axis=1).astype(np.int64))
        at += piece.size
    return made


def singles(block: Block) -> Block:
    """Return the block in singles."""
    return block.with_data(block.S.data.astype(np.float32))


def three_term(
    block: Block, terms: Any, X: np.ndarray, own: np.ndarray, *pieces: np.ndarray
) -> np.ndarray:
    """Return a S Y + b Y + c X."""
    Y = beside(own, pieces)
    if (there := on_device()) is not None:
        return there.three_term(block, X, Y, terms)
    out = np.array(X, order="C")
    with using(1, block.S.shape[0]):
        compiled(csr.three_term, block.S.nnz, "ON_ROWS")(block.S, out, Y, *terms)
    return out
