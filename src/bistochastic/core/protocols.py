"""The verbs: all that an algorithm may ask of an n x n matrix.

Vectors are arrays of an array-API namespace (NumPy, torch, ...). Matrices are
*holders* that answer these verbs; an algorithm never learns how they are stored.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

Text = TypeVar("Text", bound=Callable[..., Any])


class Graph(Protocol):
    """A symmetric non-negative matrix S, the weights of an undirected graph."""

    n: int
    n_products: int  # how often S has met a vector

    def ones(self) -> Any:
        """Return the vector of n ones, in the namespace of this holder's vectors."""

    def vector(self, values: Any) -> Any:
        """Return `values` as a vector of this holder's namespace, type and device."""

    def apply(self, v: Any) -> Any:
        """Return the product S v; `v` may have several columns."""

    def diagonal(self) -> Any:
        """Return the diagonal of S as a vector."""

    def scaled(self, u: Any) -> Self:
        """Return DSD with D = diag(u), symmetric to the bit."""

    def shifted(self, delta: float) -> Self:
        """Return S + delta I."""

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return S without the entries whose labels rows[i], columns[j] differ."""

    def part(self, index: Any) -> Self:
        """Return the square submatrix of the rows and columns in `index`."""

    def pattern(self) -> Any:
        """Return the positive entries as a SciPy CSR array on the CPU."""

    def entries(self, least: float) -> Any:
        """Return the entries above `least` as a SciPy CSR array on the CPU."""

    def log(self) -> "Scores":
        """Return log S on the pattern of S."""

    def indicator(self) -> "Graph":
        """Return ones where S is positive."""

    def sq_norm(self) -> float:
        """Return the sum of the squared entries."""

    def native(self) -> Any:
        """Return the matrix as its library knows it."""

    def fast(self, text: Text) -> Text:
        """Return this holder's own body of the function `text`, or `text` itself."""


class Scores(Protocol):
    """A symmetric real matrix K on a pattern; elsewhere it counts as -infinity."""

    n: int
    n_products: int  # how often K has met a vector

    def ones(self) -> Any:
        """Return the vector of n ones, in the namespace of this holder's vectors."""

    def vector(self, values: Any) -> Any:
        """Return `values` as a vector of this holder's namespace, type and device."""

    def apply(self, v: Any) -> Any:
        """Return the product K v over the pattern."""

    def cut(self, rows: Any, columns: Any) -> Self:
        """Return K without the entries whose labels rows[i], columns[j] differ."""

    def part(self, index: Any) -> Self:
        """Return the square submatrix of the rows and columns in `index`."""

    def looped(self) -> bool:
        """Tell whether the whole diagonal is on the pattern."""

    def highest(self) -> Any:
        """Return the largest entry of each row; every row must have one."""

    def spread(self) -> float:
        """Return the standard deviation of the entries on the pattern, roughly."""

    def dot(self, P: Any) -> float:
        """Return the sum of k_ij p_ij over the positive entries of a plan P."""

    def exponential(self, omega: float, a: Any) -> Graph:
        """Return exp(omega k_ij + a_i + a_j) on the pattern."""

    def clipped(self, omega: float, a: Any) -> Graph:
        """Return the positive part of omega k_ij + a_i + a_j."""

    def raised(self, a: Any) -> Self:
        """Return the positive part of k_ij + a_i + a_j, zeros kept on the pattern."""

    def native(self) -> Any:
        """Return the matrix as its library knows it."""
