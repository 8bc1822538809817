"""A matrix held as one array of any array-API namespace."""

from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace, device
from scipy.sparse import csr_array

from bistochastic.core.arrays import in_range, on_cpu, scaled_by
from bistochastic.core.protocols import Text
from bistochastic.core.recurrence import recurrence
from bistochastic.places.host.csr import Csr, compiled
from bistochastic.places.parts import Part, affinity_parts

BLOCK = 1 << 22  # entries looked at in one go
FEW = 8


class Dense:
    """Graph or scores held as a two-dimensional array.

    Parameters
    ----------
    S : array of shape (n, n)
        Symmetric to the bit, floating point. As a graph finite and non-negative, as
        scores -infinity where there is no edge.
    """

    fetched = False

    def __init__(self, S: Any) -> None:
        self._S = S
        self._xp = array_namespace(S)
        self.n: int = S.shape[0]
        self.n_products = 0

    def ones(self) -> Any:
        """Return the vector of n ones."""
        return self._xp.ones(self.n, dtype=self._S.dtype, device=device(self._S))

    def vector(self, values: Any) -> Any:
        """Return `values` in the type and on the device of the matrix."""
        return self._xp.asarray(values, dtype=self._S.dtype, device=device(self._S))

    def noise(self, rng: np.random.Generator, columns: int) -> Any:
        """Return a block of normal numbers."""
        return self.vector(rng.standard_normal((self.n, columns)))

    def apply(self, v: Any) -> Any:
        """Return S v."""
        self.n_products += 1
        return self._S @ v

    def recurrence(
        self, X: Any, Y: Any, center: float, terms: Any, accuracy: float
    ) -> Any:
        """Return the last of the blocks Z_k = a (S - center I) Z_(k-1) + c Z_(k-2)."""
        return self.fast(recurrence)(self, X, Y, center, terms, accuracy)

    def diagonal(self) -> Any:
        """Return the diagonal."""
        return self._xp.linalg.diagonal(self._S)

    def scaled(self, u: Any, *, reuse: bool = False) -> Self:
        """Return DSD; u_i u_j is formed first, so that mirrored entries agree."""
        if not in_range(u):
            return type(self)(scaled_by(u[:, None], u[None, :], self._S))
        out = u[:, None] * u[None, :]
        out *= self._S
        return type(self)(out)

    def shifted(self, delta: Any) -> Self:
        """Return S + delta I, or S + diag(delta)."""
        eye = self._xp.eye(self.n, dtype=self._S.dtype, device=device(self._S))
        eye *= delta  # a vector goes along the rows, of which one entry is left
        eye += self._S
        return type(self)(eye)

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return S with zeros where the labels of row and column differ."""
        labels = [self._xp.asarray(x, device=device(self._S)) for x in (rows, columns)]
        kept = labels[0][:, None] == labels[1][None, :]
        return type(self)(
            self._xp.where(kept, self._S, self._xp.zeros_like(self._S[:1, :1]))
        )

    def part(self, index: Any) -> Self:
        """Return the square submatrix of `index`."""
        take = self._xp.asarray(index, device=device(self._S))
        rows = self._xp.take(self._S, take, axis=0)
        return type(self)(self._xp.take(rows, take, axis=1))

    def joined(self, i: Any, j: Any, weights: Any) -> Self:
        """Return S with edges added."""
        new = np.zeros((self.n, self.n))
        np.add.at(new, (i, j), weights)
        return type(self)(self._S + self.vector(new + new.T))

    def mates(self, sizes: Any, free: Any, cap: float) -> Any:
        """Return for each row that is free its heaviest free neighbor, or -1."""
        xp = self._xp
        loops = xp.eye(self.n, dtype=xp.bool, device=device(self._S))
        allowed = free[:, None] & free[None, :] & ~loops & (self._S > 0)
        allowed = allowed & (sizes[:, None] + sizes[None, :] <= cap)
        weights = self._S * (1.0 / sizes[:, None] + 1.0 / sizes[None, :])
        weights = xp.where(allowed, weights, xp.zeros_like(weights))
        best = xp.argmax(weights, axis=1)
        return xp.where(xp.any(allowed, axis=1), best, -xp.ones_like(best))

    def gathered(self, groups: Any, number: int) -> Self:
        """Return the sums of entries between groups."""
        xp, to = self._xp, {"device": device(self._S)}
        numbers = xp.arange(number, **to)[None, :]
        P = xp.astype(xp.asarray(groups, **to)[:, None] == numbers, self._S.dtype)
        made = P.T @ (self._S @ P)
        return type(self)(made / 2 + made.T / 2)

    def parts(self) -> list[Part]:
        """Return the entries as costs -s_ij, on the host."""
        return affinity_parts(self.entries(0.0))

    def supported(self) -> Self:
        """Return s_ij times the root of (S^2)_ij."""
        square = self._S @ self._S
        square = square / 2 + square.T / 2
        return type(self)(self._S * self._xp.sqrt(square))

    def pattern(self) -> csr_array:
        """Return the positive entries; a block of rows at a time is looked at."""
        size = max(1, BLOCK // self.n)
        columns, counts = [], [np.zeros(1, dtype=np.int64)]
        for start in range(0, self.n, size):
            stop = min(start + size, self.n)
            positive = on_cpu(self._S[start:stop, :] > 0)
            columns.append(np.nonzero(positive)[1].astype(np.int32))
            counts.append(positive.sum(axis=1))
        indices = np.concatenate(columns)
        indptr = np.cumsum(np.concatenate(counts))
        data = np.ones(indices.size, dtype=np.int8)
        return csr_array((data, indices, indptr), shape=(self.n, self.n))

    def entries(self, least: float) -> csr_array:
        """Return the entries above `least`."""
        S = on_cpu(self._S)
        rows, columns = np.nonzero(S > least)
        values = S[rows, columns].astype(np.float64)
        return csr_array((values, (rows, columns)), shape=(self.n, self.n))

    def log(self) -> Self:
        """Return log S, -infinity where S is zero."""
        with np.errstate(divide="ignore"):
            return type(self)(self._xp.log(self._S))

    def indicator(self) -> Self:
        """Return ones where S is positive."""
        return type(self)(self._xp.astype(self._S > 0, self._S.dtype))

    def sq_norm(self, weights: Any = None) -> float:
        """Return the sum of the squared entries, of row i times weights[i]."""
        if weights is not None:
            return float(self._xp.vecdot(weights, self._xp.vecdot(self._S, self._S)))
        flat = self._xp.reshape(self._S, (-1,))
        return float(self._xp.vecdot(flat, flat))

    def looped(self) -> bool:
        """Tell whether the diagonal is finite."""
        return bool(self._xp.all(self._xp.isfinite(self.diagonal())))

    def highest(self) -> Any:
        """Return the largest entry of each row."""
        return self._xp.max(self._S, axis=1)

    def deviation(self) -> float:
        """Return the standard deviation of the finite entries, of some 500 rows."""
        rows = self._S[:: self.n // 500 + 1, :]
        return float(self._xp.std(rows[self._xp.isfinite(rows)]))

    def dot(self, P: "Dense | Csr") -> float:
        """Return the sum of k_ij p_ij over the positive entries of P."""
        if isinstance(P, Csr):
            entries = P.native().tocoo()
            return float(np.sum(self._S[entries.coords] * entries.data))
        zero = self._xp.zeros_like(self._S[:1, :1])
        return float(self._xp.sum(P._S * self._xp.where(P._S > 0, self._S, zero)))

    def exponential(self, omega: float, a: Any) -> Self:
        """Return exp(omega k_ij + a_i + a_j)."""
        return type(self)(self._xp.exp(self._plus(omega, a)))

    def clipped(self, omega: float, a: Any, least: float = 0.0) -> "Self | Csr":
        """Return omega k_ij + a_i + a_j where that is above `least`.

        NumPy arrays give compressed rows where few entries are positive, as is usual
        near a solution.
        """
        if isinstance(self._S, np.ndarray):
            parts = self.fast(positives)(self._S, omega, a, least)
            if parts is not None:
                return Csr(csr_array(parts, shape=self._S.shape))
        if least == 0.0:
            return self.raised(a, omega)
        out = self._plus(omega, a)
        zero = self._xp.zeros_like(out[:1, :1])
        return type(self)(self._xp.where(out > least, out, zero))

    def raised(self, a: Any, omega: float = 1.0) -> Self:
        """Return the positive part of omega k_ij + a_i + a_j as an array."""
        return type(self)(self._xp.clip(self._plus(omega, a), 0.0, None))

    def _plus(self, omega: float, a: Any) -> Any:
        """Return omega k_ij + a_i + a_j; a_i + a_j is formed first, for symmetry."""
        out = a[:, None] + a[None, :]
        out += self._S if omega == 1.0 else omega * self._S
        return out

    def native(self) -> Any:
        """Return the array."""
        return self._S

    def fast(self, text: Text) -> Text:
        """Return a compiled body where there is one and the matrix is large."""
        doubles = isinstance(self._S, np.ndarray) and self._S.dtype == np.float64
        return compiled(text, self.n**2, "ON_ARRAYS" if doubles else None)


def positives(
    K: np.ndarray, omega: float, a: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return omega k_ij + a_i + a_j above `least` as the parts of a CSR.

    None if they are more than one in FEW, so that an array is the smaller.
    """
    out = a[:, None] + a[None, :] + omega * K
    kept = out > least
    ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    if FEW * ends[-1] > K.size:
        return None
    return out[kept], np.nonzero(kept)[1].astype(np.int32), ends
