"""A matrix held as a torch CSR tensor, on any device."""

from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import csr_array

from bistochastic.backends.csr import Csr, compiled
from bistochastic.core.arrays import on_cpu
from bistochastic.core.protocols import Text


class TorchCsr:
    """Graph or scores in a torch CSR tensor; vectors are torch tensors beside it.

    Changes of the pattern (`cut`, `part`, `shifted`) go through the CPU.

    Parameters
    ----------
    S : torch.Tensor of shape (n, n)
        CSR layout, symmetric to the bit, sorted columns, floating point; that of a
        graph positive.
    """

    def __init__(self, S: torch.Tensor) -> None:
        self._S = S
        self.n: int = S.shape[0]
        self.n_products = 0

    @classmethod
    def symmetrized(cls, i: Any, j: Any, values: torch.Tensor, n: int) -> Self:
        """Hold the mean of a matrix, given by its entries, and its transpose."""
        return cls(_summed(i, j, values / 2, n))

    @classmethod
    def averaged(cls, i: Any, j: Any, values: torch.Tensor, n: int) -> Self:
        """Hold scores given by entries on either side of the diagonal, or on both."""
        total = _summed(i, j, values, n)
        number = _summed(i, j, torch.ones_like(values), n)
        total.values().div_(number.values())
        return cls(total)

    def ones(self) -> torch.Tensor:
        """Return the vector of n ones."""
        return torch.ones(self.n, dtype=self._S.dtype, device=self._S.device)

    def vector(self, values: Any) -> torch.Tensor:
        """Return `values` in the type and on the device of the matrix."""
        return torch.asarray(values, dtype=self._S.dtype, device=self._S.device)

    def apply(self, v: torch.Tensor) -> torch.Tensor:
        """Return S v."""
        self.n_products += 1
        return self._S @ v

    def diagonal(self) -> torch.Tensor:
        """Return the diagonal."""
        rows, columns = self._rows(), self._S.col_indices()
        loops = rows == columns
        diagonal = torch.zeros(self.n, dtype=self._S.dtype, device=self._S.device)
        diagonal[rows[loops]] = self._S.values()[loops]
        return diagonal

    def scaled(self, u: torch.Tensor, *, reuse: bool = False) -> Self:
        """Return DSD; u_i u_j is formed first, so that mirrored entries agree."""
        values = u[self._rows()]
        values *= u[self._S.col_indices()]
        values *= self._S.values()
        return self._with(values)

    def shifted(self, delta: Any) -> Self:
        """Return S + delta I, or S + diag(delta)."""
        return self._like(Csr(self.pattern()).shifted(on_cpu(delta)))

    def cut(self, rows: np.ndarray, columns: np.ndarray) -> Self:
        """Return S without the entries whose labels of row and column differ."""
        return self._like(Csr(self.pattern()).cut(rows, columns))

    def part(self, index: np.ndarray) -> Self:
        """Return the square submatrix of `index`."""
        return self._like(Csr(self.pattern()).part(index))

    def joined(self, i: Any, j: Any, weights: Any) -> Self:
        """Return S with edges added."""
        return self._like(Csr(self.pattern()).joined(i, j, weights))

    def supported(self) -> Self:
        """Return s_ij times the root of (S^2)_ij on the pattern."""
        return self._like(Csr(self.pattern()).supported())

    def pattern(self) -> csr_array:
        """Return the matrix as a SciPy CSR array on the CPU."""
        return to_scipy(self._S)

    def entries(self, least: float) -> csr_array:
        """Return the entries above `least`."""
        return Csr(self.pattern()).entries(least)

    def log(self) -> Self:
        """Return log S on the pattern."""
        return self._with(torch.log(self._S.values()))

    def indicator(self) -> Self:
        """Return ones on the pattern."""
        return self._with(torch.ones_like(self._S.values()))

    def sq_norm(self, weights: torch.Tensor | None = None) -> float:
        """Return the sum of the squared entries, of row i times weights[i]."""
        squares = self._S.values() ** 2
        if weights is not None:
            squares *= weights[self._rows()]
        return float(torch.sum(squares))

    def dot(self, P: Self) -> float:
        """Return the sum of k_ij p_ij; patterns that differ meet on the CPU."""
        if self._S.values().shape == P._S.values().shape:
            return float(self._S.values() @ P._S.values())
        return Csr(self.pattern()).dot(Csr(P.pattern()))

    def looped(self) -> bool:
        """Tell whether the whole diagonal is stored."""
        return int(torch.sum(self._rows() == self._S.col_indices())) == self.n

    def highest(self) -> torch.Tensor:
        """Return the largest entry of each row."""
        lengths = self._S.crow_indices().diff()
        return torch.segment_reduce(self._S.values(), "max", lengths=lengths)

    def spread(self) -> float:
        """Return the standard deviation of the stored entries."""
        return float(torch.std(self._S.values(), correction=0))

    def exponential(self, omega: float, a: torch.Tensor) -> Self:
        """Return exp(omega k_ij + a_i + a_j)."""
        return self._with(torch.exp(self._plus(omega, a)))

    def clipped(self, omega: float, a: torch.Tensor) -> Self:
        """Return the positive entries of omega k_ij + a_i + a_j."""
        values = self._plus(omega, a)
        kept = values > 0
        crow = self._S.crow_indices()
        ends = torch.nn.functional.pad(torch.cumsum(kept, 0), (1, 0))[crow]
        columns = self._S.col_indices()[kept]
        return self._csr(ends.to(crow.dtype), columns, values[kept])

    def raised(self, a: torch.Tensor) -> Self:
        """Return the positive part of k_ij + a_i + a_j, zeros stored."""
        return self._with(torch.clip(self._plus(1.0, a), min=0.0))

    def _plus(self, omega: float, a: torch.Tensor) -> torch.Tensor:
        """Return omega k_ij + a_i + a_j; a_i + a_j is formed first, for symmetry."""
        return a[self._rows()] + a[self._S.col_indices()] + omega * self._S.values()

    def native(self) -> torch.Tensor:
        """Return the tensor."""
        return self._S

    def fast(self, text: Text) -> Text:
        """Return `text`, unless it works on patterns and a compiler pays."""
        return compiled(text, self._S.values().shape[0])

    def _rows(self) -> torch.Tensor:
        crow = self._S.crow_indices()
        numbers = torch.arange(self.n, device=crow.device)
        return torch.repeat_interleave(numbers, crow.diff())

    def _with(self, values: torch.Tensor) -> Self:
        return self._csr(self._S.crow_indices(), self._S.col_indices(), values)

    def _csr(
        self, crow: torch.Tensor, columns: torch.Tensor, values: torch.Tensor
    ) -> Self:
        return type(self)(
            torch.sparse_csr_tensor(
                crow, columns, values, size=self._S.shape, check_invariants=False
            )
        )

    def _like(self, other: Csr) -> Self:
        return type(self)(from_scipy(other.native(), self._S))


def _summed(i: Any, j: Any, values: torch.Tensor, n: int) -> torch.Tensor:
    """Return the sum of a matrix, given by its entries, and its transpose as CSR."""
    places = torch.stack([torch.cat([i, j]), torch.cat([j, i])])
    both = torch.cat([values, values])
    summed = torch.sparse_coo_tensor(places, both, (n, n), check_invariants=False)
    return summed.coalesce().to_sparse_csr()


def to_scipy(S: torch.Tensor) -> csr_array:
    """Return a torch CSR tensor as a SciPy CSR array, without a copy on the CPU."""
    parts = (S.values(), S.col_indices(), S.crow_indices())
    return csr_array(tuple(p.cpu().numpy() for p in parts), shape=(len(S), len(S)))


def from_scipy(S: csr_array, like: torch.Tensor) -> torch.Tensor:
    """Return a SciPy CSR array as a torch CSR tensor beside `like`."""
    index = like.crow_indices().dtype
    return torch.sparse_csr_tensor(
        torch.from_numpy(S.indptr).to(index),
        torch.from_numpy(S.indices).to(index),
        torch.from_numpy(S.data).to(like.dtype),
        size=S.shape,
        device=like.device,
        check_invariants=False,
    )
