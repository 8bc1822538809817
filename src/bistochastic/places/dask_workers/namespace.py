"""The array-API namespace of arrays in blocks."""

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bistochastic.places.dask_workers.lazy import Node
from bistochastic.places.dask_workers.vectors import (
    BlockArray,
    Computed,
    Figure,
    Small,
    known_value,
    noted,
)


def _sum_of(block: np.ndarray) -> Any:
    return block.sum(axis=0)


def _total(block: np.ndarray) -> Any:
    return block.sum()


def _max_of(block: np.ndarray) -> Any:
    return block.max(axis=0, initial=-np.inf)


def _largest(block: np.ndarray) -> Any:
    return block.max(initial=-np.inf)


def _least(block: np.ndarray) -> Any:
    return block.min(initial=np.inf)


def _all(block: np.ndarray) -> Any:
    return bool(block.all())


def _any(block: np.ndarray) -> Any:
    return bool(block.any())


def _squares(block: np.ndarray) -> Any:
    return np.einsum("ij,ij->j", block, block)


def _highest(parts: list[Any]) -> Any:
    return np.max(parts, axis=0)


def _lowest(parts: list[Any]) -> Any:
    return np.min(parts, axis=0)


class _Linalg:
    """The linear algebra that texts use: of small matrices, but for norms."""

    def vector_norm(self, x: Any, axis: int | None = None) -> Any:
        """Return the lengths of columns."""
        if isinstance(x, BlockArray):
            assert axis == 0
            return Small(x.layout, Node(_squares, (x.node,)), _length)
        return np.linalg.norm(known_value(x), axis=axis)

    def eigh(self, x: Any) -> Any:
        """Return eigenvalues and eigenvectors of a small matrix."""
        return np.linalg.eigh(known_value(x))

    def diagonal(self, x: Any) -> Any:
        """Return the diagonal of a small matrix."""
        return np.diagonal(known_value(x))

    def qr(self, X: BlockArray) -> Any:
        """Return an orthonormal basis of the columns: of blocks, then of these."""
        layout = X.layout
        both = layout.each("qr", _qr, X.blocks())
        tops = layout.gather(layout.each("qr", operator.getitem, both, 1))
        Q, R = np.linalg.qr(np.concatenate(tops))
        ends = np.cumsum([0, *(len(top) for top in tops)])
        some = [Q[a:b] for a, b in pairwise(ends)]
        blocks = layout.each("qr", _first_times, both, some)
        return BlockArray.held(layout, blocks, X.tail, X.dtype), R

    def svd(self, X: BlockArray, full_matrices: bool = False) -> Any:
        """Return singular values and vectors of a block of few columns."""
        Q, R = self.qr(X)
        U, s, V = np.linalg.svd(R, full_matrices=full_matrices)
        return Q @ U, s, V


def _qr(block: np.ndarray) -> Any:
    return np.linalg.qr(block)


def _first_times(both: Any, part: np.ndarray) -> np.ndarray:
    return both[0] @ part


def _length(parts: list[Any]) -> Any:
    return np.sqrt(np.sum(parts, axis=0))


class Namespace:
    """The functions of an array library that texts call on vectors.

    Arrays in blocks are answered here, small ones by NumPy.
    """

    linalg = _Linalg()
    inf, nan, newaxis = np.inf, np.nan, None
    float32, float64, int64, bool = np.float32, np.float64, np.int64, np.bool

    def __getattr__(self, name: str) -> Any:
        of_numpy = getattr(np, name)
        if not callable(of_numpy) or isinstance(of_numpy, type):
            return of_numpy

        def on_rows(*args: Any, **options: Any) -> Any:
            if any(isinstance(x, BlockArray) for x in args):
                return noted(of_numpy, *args, **options)
            if any(isinstance(x, Figure) for x in args):
                return Computed(of_numpy, args, options)
            return of_numpy(*args, **options)

        return on_rows

    def sum(self, x: Any, axis: int | None = None, keepdims: Any = False) -> Any:
        """Return the sum of all, of columns, or of each row."""
        return self._reduced(x, axis, keepdims, np.sum, _total, _sum_of, sum)

    def mean(self, x: Any, axis: int) -> Any:
        """Return the means of columns."""
        return self.sum(x, axis=axis) / x.shape[axis]

    def max(self, x: Any, axis: int | None = None, keepdims: Any = False) -> Any:
        """Return the largest of all, of columns, or of each row."""
        return self._reduced(x, axis, keepdims, np.max, _largest, _max_of, _highest)

    def min(self, x: Any, axis: int | None = None, keepdims: Any = False) -> Any:
        """Return the smallest of all, or of each row."""
        return self._reduced(x, axis, keepdims, np.min, _least, None, _lowest)

    def all(self, x: Any, axis: int | None = None) -> Any:
        """Tell whether all are true."""
        return self._reduced(x, axis, False, np.all, _all, None, np.all)

    def any(self, x: Any, axis: int | None = None) -> Any:
        """Tell whether one is true."""
        return self._reduced(x, axis, False, np.any, _any, None, np.any)

    def _reduced(
        self, x: Any, axis: Any, keepdims: Any, of_numpy: Any,
        whole: Any, columns: Any, joined: Any,
    ) -> Any:  # fmt: skip
        if not isinstance(x, BlockArray):
            options = {"axis": axis} | ({"keepdims": True} if keepdims else {})
            if isinstance(x, Figure):
                return Computed(of_numpy, (x,), options)
            return of_numpy(x, **options)
        if axis in (1, -1):
            return noted(
                of_numpy, x, axis=1, **({"keepdims": True} if keepdims else {})
            )
        op = whole if axis is None else columns
        return Small(x.layout, Node(op, (x.node,)), joined)

    def concat(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Put columns side by side."""
        if not any(isinstance(x, BlockArray) for x in arrays):
            return np.concatenate(arrays, axis=axis)
        assert axis == 1
        return noted(_beside, *arrays)

    def astype(self, x: Any, dtype: Any, copy: Any = True) -> Any:
        """Return the array with other numbers."""
        if isinstance(x, BlockArray):
            return noted(_as, x, dtype=dtype)
        return np.asarray(x).astype(dtype)

    def vecdot(self, x: Any, y: Any, axis: int = -1) -> Any:
        """Return the products of rows."""
        return noted(_row_products, x, y)

    def clip(self, x: Any, low: Any = None, high: Any = None, **ends: Any) -> Any:
        """Return numbers between two ends."""
        low, high = ends.get("min", low), ends.get("max", high)
        if isinstance(x, BlockArray):
            return noted(_clipped, x, low, high)
        return np.clip(known_value(x), low, high)

    def asarray(self, x: Any, dtype: Any = None, device: Any = None) -> Any:
        """Return an array as it is, or by NumPy."""
        return (
            x if isinstance(x, BlockArray) else np.asarray(known_value(x), dtype=dtype)
        )


def _beside(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, axis=1)


def _as(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x.astype(dtype)


def _row_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", x, y)


def _clipped(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
    return np.clip(x, low, high)


NAMESPACE = Namespace()
