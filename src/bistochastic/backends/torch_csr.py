"""A matrix held as a torch CSR tensor, on any device."""

from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import csr_array

from bistochastic.backends.csr import Csr, compiled
from bistochastic.core.protocols import Text


class TorchCsr:
    """Graph held as a torch CSR tensor; vectors are torch tensors beside it.

    Changes of the pattern (`cut`, `part`, `shifted`) go through the CPU.

    Parameters
    ----------
    S : torch.Tensor of shape (n, n)
        CSR layout, symmetric to the bit, sorted columns, positive floating point.
    """

    def __init__(self, S: torch.Tensor) -> None:
        self._S = S
        self.n: int = S.shape[0]
        self.n_products = 0

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

    def scaled(self, u: torch.Tensor) -> Self:
        """Return DSD; u_i u_j is formed first, so that mirrored entries agree."""
        values = u[self._rows()]
        values *= u[self._S.col_indices()]
        values *= self._S.values()
        return type(self)(
            torch.sparse_csr_tensor(
                self._S.crow_indices().clone(),
                self._S.col_indices().clone(),
                values,
                size=self._S.shape,
                check_invariants=False,
            )
        )

    def shifted(self, delta: float) -> Self:
        """Return S + delta I."""
        return self._like(Csr(self.pattern()).shifted(delta))

    def cut(self, rows: np.ndarray, columns: np.ndarray) -> Self:
        """Return S without the entries whose labels of row and column differ."""
        return self._like(Csr(self.pattern()).cut(rows, columns))

    def part(self, index: np.ndarray) -> Self:
        """Return the square submatrix of `index`."""
        return self._like(Csr(self.pattern()).part(index))

    def pattern(self) -> csr_array:
        """Return the matrix as a SciPy CSR array on the CPU."""
        return to_scipy(self._S)

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

    def _like(self, other: Csr) -> Self:
        return type(self)(from_scipy(other.native(), self._S))


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
