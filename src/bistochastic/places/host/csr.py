"""A matrix held as a SciPy CSR array of doubles."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, cast

import numpy as np
from scipy.sparse import csr_array, diags_array, vstack

from bistochastic.core.arrays import in_range, scaled_by
from bistochastic.core.jobs import workers
from bistochastic.core.protocols import Text
from bistochastic.core.recurrence import recurrence
from bistochastic.places.host.gathering import gathered, mates, symmetric
from bistochastic.places.parts import Part, affinity_parts

SQUARE = 20_000  # rows whose products with S are made in one go, by entries a row
MANY = 2_000  # rows that may have as many entries
COMPILED = 20_000  # entries from which on compiled bodies pay for their compiler


class Csr:
    """Graph or scores in compressed rows; vectors are NumPy arrays of doubles.

    Parameters
    ----------
    S : csr_array of shape (n, n)
        Symmetric to the bit, sorted indices, no duplicates, doubles; those of a
        graph positive.
    """

    def __init__(self, S: csr_array) -> None:
        self._S = S
        self.n: int = S.shape[0]
        self.n_products = 0

    fetched = False

    @classmethod
    def symmetrized(cls, i: Any, j: Any, values: Any, n: int) -> Self:
        """Hold the mean of a matrix, given by its entries, and its transpose."""
        W = csr_array((values / 2, (i, j)), shape=(n, n))
        return cls(csr_array(W + csr_array(W.T)))

    @classmethod
    def averaged(cls, i: Any, j: Any, values: Any, n: int) -> Self:
        """Hold scores given by entries on either side of the diagonal, or on both."""
        W = csr_array((values + 1j, (i, j)), shape=(n, n))  # 1j counts the entries
        W = csr_array(W + csr_array(W.T))
        data = W.data.real / W.data.imag
        return cls(csr_array((data, W.indices, W.indptr), shape=(n, n)))

    @classmethod
    def halves(cls, pattern: Any, values: np.ndarray) -> Self:
        """Hold (S + S') / 2 of the positive weights in a table."""
        return cls(compiled(halves, values.size, "ON_TABLES")(pattern, values))

    def ones(self) -> np.ndarray:
        """Return the vector of n ones."""
        return np.ones(self.n)

    def vector(self, values: Any) -> np.ndarray:
        """Return `values` as doubles."""
        return np.asarray(values, dtype=np.float64)

    def noise(self, rng: np.random.Generator, columns: int) -> np.ndarray:
        """Return a block of normal numbers."""
        return self.vector(rng.standard_normal((self.n, columns)))

    def apply(self, v: np.ndarray) -> np.ndarray:
        """Return S v."""
        self.n_products += 1
        return self.fast(product)(self._S, v)

    def recurrence(
        self, X: Any, Y: Any, center: float, terms: Any, accuracy: float
    ) -> Any:
        """Return the last of the blocks Z_k = a (S - center I) Z_(k-1) + c Z_(k-2)."""
        return self.fast(recurrence)(self, X, Y, center, terms, accuracy)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal."""
        return self._S.diagonal()

    def scaled(self, u: np.ndarray, *, reuse: bool = False) -> Self:
        """Return DSD; u_i u_j is formed first, so that mirrored entries agree."""
        return self._with(self.fast(weights)(self._S, u, reuse))

    def shifted(self, delta: Any) -> Self:
        """Return S + delta I, or S + diag(delta)."""
        loops = diags_array(delta * np.ones(self.n), format="csr")
        return type(self)(csr_array(self._S + loops))

    def cut(self, rows: np.ndarray, columns: np.ndarray) -> Self:
        """Return S without the entries whose labels of row and column differ."""
        degree = np.diff(self._S.indptr)
        kept = np.repeat(rows, degree) == columns[self._S.indices]
        return self._like(*chosen(self._S, self._S.data, kept))

    def part(self, index: np.ndarray) -> Self:
        """Return the square submatrix of `index`."""
        S = self._S[index]
        if len(index) < self.n:
            return type(self)(csr_array(S[:, index]))
        place = np.empty(self.n, dtype=S.indices.dtype)  # all, in another order
        place[index] = np.arange(self.n)
        S.indices = place[S.indices]
        S.has_sorted_indices = False
        S.sort_indices()
        return type(self)(S)

    def joined(self, i: Any, j: Any, weights: Any) -> Self:
        """Return S with edges added."""
        B = csr_array((np.asarray(weights), (i, j)), shape=self._S.shape)
        return type(self)(csr_array(self._S + (B + B.T)))

    def mates(self, sizes: Any, free: Any, cap: float) -> np.ndarray:
        """Return for each row that is free its heaviest free neighbor, or -1."""
        return self.fast(mates)(self._S, sizes, free, cap)

    def gathered(self, groups: np.ndarray, number: int) -> Self:
        """Return the sums of entries between groups, symmetric to the bit."""
        return type(self)(symmetric(self.fast(gathered)(self._S, groups, number)))

    def parts(self) -> list[Part]:
        """Return the entries as costs -s_ij, the cheapest of each row first."""
        return affinity_parts(self.entries(0.0))

    def supported(self) -> Self:
        """Return s_ij times the root of (S^2)_ij on the pattern."""
        return type(self)(self.fast(supported)(self._S))

    def pattern(self) -> csr_array:
        """Return the matrix itself: its stored entries are the positive ones."""
        return self._S

    def entries(self, least: float) -> csr_array:
        """Return the entries above `least`; without a copy if all are."""
        kept = self._S.data > least
        if kept.all():
            return self._S
        return self._like(*chosen(self._S, self._S.data, kept)).native()

    def log(self) -> Self:
        """Return log S on the pattern."""
        return self._with(np.log(self._S.data))

    def indicator(self) -> Self:
        """Return ones on the pattern."""
        return self._with(np.ones_like(self._S.data))

    def sq_norm(self, weights: np.ndarray | None = None) -> float:
        """Return the sum of the squared entries, of row i times weights[i]."""
        data = self._S.data
        if weights is None:
            return float(data @ data)
        return float(np.sum(data**2 * np.repeat(weights, np.diff(self._S.indptr))))

    def dot(self, P: Any) -> float:
        """Return the sum of k_ij p_ij over the entries of P."""
        if not isinstance(P, Csr):
            return P.dot(self)
        return float(self._S.multiply(P._S).sum())

    def looped(self) -> bool:
        """Tell whether the whole diagonal is stored."""
        rows = np.repeat(np.arange(self.n), np.diff(self._S.indptr))
        return np.count_nonzero(rows == self._S.indices) == self.n

    def highest(self) -> np.ndarray:
        """Return the largest entry of each row."""
        return np.maximum.reduceat(self._S.data, self._S.indptr[:-1])

    def deviation(self) -> float:
        """Return the standard deviation of the stored entries."""
        return float(np.std(self._S.data))

    def exponential(self, omega: float, a: np.ndarray) -> Self:
        """Return exp(omega k_ij + a_i + a_j)."""
        return self._with(self.fast(exponents)(self._S, omega, a))

    def clipped(self, omega: float, a: np.ndarray, least: float = 0.0) -> Self:
        """Return the entries of omega k_ij + a_i + a_j above `least`."""
        return self._like(*self.fast(positives)(self._S, omega, a, least))

    def raised(self, a: np.ndarray) -> Self:
        """Return the positive part of k_ij + a_i + a_j, zeros stored."""
        return self._with(np.maximum(sums(self._S, 1.0, a), 0.0))

    def native(self) -> csr_array:
        """Return the CSR array."""
        return self._S

    def fast(self, text: Text) -> Text:
        """Return a compiled body where there is one and the matrix is large."""
        return compiled(text, self._S.nnz, "ON_ROWS")

    def _with(self, data: np.ndarray) -> Self:
        return self._like(data, self._S.indices, self._S.indptr)

    def _like(self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Self:
        return type(self)(csr_array((data, indices, indptr), shape=self._S.shape))


def halves(pattern: Any, values: np.ndarray) -> csr_array:
    """Return (S + S') / 2 of the positive weights in a table."""
    i, k = np.nonzero(values > 0)
    j = pattern.columns[i, k]
    return Csr.symmetrized(i, j, values[i, k], values.shape[0]).native()


def product(S: csr_array, v: np.ndarray) -> np.ndarray:
    """Return S v."""
    return S @ v


def three_term(
    S: csr_array, X: np.ndarray, Y: np.ndarray, a: Any, b: Any, c: Any
) -> None:
    """Put a S Y + b Y + c X in the place of X, whose rows are the first of Y."""
    X *= c
    X += b * Y[: X.shape[0]]
    X += a * (S @ Y)


def weights(S: csr_array, u: np.ndarray, reuse: bool = False) -> np.ndarray:
    """Return the entries (u_i u_j) s_ij of DSD in the order of S, or in their place."""
    out = np.repeat(u, np.diff(S.indptr))
    if not in_range(u):
        return np.asarray(scaled_by(out, u[S.indices], S.data))
    out *= u[S.indices]
    out *= S.data
    return out


def supported(S: csr_array) -> csr_array:
    """Return s_ij times the root of (S^2)_ij on the pattern, by blocks of rows."""
    n, made = S.shape[0], []
    step = max(1, SQUARE * n // max(1, S.nnz))
    for a in range(0, n, step):
        rows = S[a : a + step]
        ones = csr_array(
            (np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape
        )
        made.append(csr_array((rows @ S).multiply(ones)))
    square = csr_array(vstack(made, format="csr"))
    square = (square + square.T) / 2  # to the bit
    return csr_array(S.multiply(square.sqrt()))


def sums(K: csr_array, omega: float, a: np.ndarray) -> np.ndarray:
    """Return omega k_ij + a_i + a_j in the order of K."""
    out = np.repeat(a, np.diff(K.indptr))
    out += a[K.indices]
    out += omega * K.data
    return out


def exponents(K: csr_array, omega: float, a: np.ndarray) -> np.ndarray:
    """Return exp(omega k_ij + a_i + a_j) in the order of K."""
    return np.exp(sums(K, omega, a))


def positives(
    K: csr_array, omega: float, a: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return omega k_ij + a_i + a_j above `least` as the parts of a CSR."""
    data = sums(K, omega, a)
    return chosen(K, data, data > least)


def chosen(
    K: csr_array, data: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the parts of a CSR with those of the entries `data` that are kept."""
    ends = np.concatenate([[0], np.cumsum(kept)])[K.indptr]
    return data[kept], K.indices[kept], ends.astype(K.indptr.dtype)


def compiled(text: Text, entries: int, bodies: str | None = None) -> Text:
    """Return the compiled body of `text` if there is one and it pays."""
    if entries < COMPILED:
        return text
    from bistochastic.places.host import kernels

    body = kernels.ON_PATTERNS.get(text)
    if bodies is not None:
        body = getattr(kernels, bodies).get(text, body)
    return cast(Text, body or text)


@contextmanager
def using(n_jobs: int | None, rows: int) -> Iterator[None]:
    """Let compiled bodies use so many threads, as scikit-learn counts them.

    Fewer rows than `MANY` have none, and need not load a compiler.
    """
    if n_jobs is None or rows < MANY:
        yield
        return
    from bistochastic.places.host import kernels

    with kernels.threads(workers(n_jobs)):
        yield


def mirrored(S: csr_array) -> bool:
    """Tell whether a canonical CSR array equals its transpose to the bit."""
    if S.nnz >= COMPILED:
        from bistochastic.places.host import kernels_rows

        return kernels_rows.mirrored(S.indptr, S.indices, S.data)
    T = csr_array(S.T)
    return all(
        np.array_equal(getattr(S, part), getattr(T, part))
        for part in ("indptr", "indices", "data")
    )
