"""The one door: looks at a type once, checks the numbers, picks the holder."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array
from scipy.sparse import csr_array, issparse

from bistochastic.backends.csr import Csr, mirrored
from bistochastic.backends.dense import Dense, on_cpu
from bistochastic.core.errors import (
    InputError,
    InputTypeError,
    NotSymmetricError,
    several,
)
from bistochastic.core.protocols import Graph

TILE = 512  # rows and columns compared with their mirror in one go
ROUNDING = {32: 1e-5, 64: 1e-10}  # tolerated asymmetry, by bits of the numbers
LARGEST = {32: 1e12, 64: 1e100}  # entries beyond it, or below 1/it, are rescaled


@dataclass(frozen=True)
class Held:
    """A checked matrix in its holder, and the way back to the caller's kind.

    Attributes
    ----------
    graph : Graph
        The holder.
    restore : callable
        Makes the caller's kind of matrix out of what `graph.native` gives.
    bits : {32, 64}
        Single or double: what the caller's numbers carry.
    unit : float
        The caller's S is the holder's times the square of `unit`.
    """

    graph: Graph
    restore: Callable[[Any], Any]
    bits: int
    unit: float


def hold(S):
    """Put a symmetric non-negative matrix of any kind into the holder that fits.

    Parameters
    ----------
    S : array-like, sparse matrix or array, data frame, or torch tensor
        Square, real, finite, non-negative, symmetric up to rounding. Not changed.

    Returns
    -------
    Held
        The holder and the way back.
    """
    if issparse(S):
        return _hold_sparse(S)
    if is_torch_array(S):
        return _hold_tensor(S)
    if hasattr(S, "columns") and hasattr(S, "index") and hasattr(S, "to_numpy"):
        return _hold_frame(S)
    if isinstance(S, np.matrix):
        raise InputTypeError("S is an np.matrix; pass np.asarray(S).")
    if isinstance(S, np.ma.MaskedArray):
        raise InputTypeError("S is masked; pass S.filled(0) if a gap means no edge.")
    return _hold_dense(S if is_array_api_obj(S) else _array(S), lambda M: M)


def _array(S):
    try:
        array = np.asarray(S)
    except ValueError:
        array = np.asarray(None)
    if array.ndim == 0:
        raise InputTypeError(
            f"S is a {type(S).__name__} that does not make a matrix; pass an array, a "
            "sparse matrix, a tensor or a list of rows of equal length."
        )
    return array


def _hold_frame(S):
    if not S.index.equals(S.columns):
        raise InputError(
            "The index and the columns of the data frame differ, but row i and column "
            "i of S must stand for the same point. Reorder it with "
            "S.loc[labels, labels]."
        )
    return _hold_dense(
        S.to_numpy(), lambda M: type(S)(M, index=S.index, columns=S.columns)
    )


def _hold_dense(S, restore):
    _check_shape(S.shape)
    xp = array_namespace(S)
    bits = _bits(S.dtype, xp)
    S = xp.astype(S, xp.float32 if bits == 32 else xp.float64, copy=False)
    if isinstance(S, np.ndarray) and not S.flags.forc:
        S = np.ascontiguousarray(S)  # other strides would be copied by every product
    hi = _check_range(S, xp, lambda k: divmod(k, S.shape[1]))
    i, j, worst = _asymmetry(S, xp)
    if worst > 0:
        if worst > ROUNDING[bits]:
            _refuse(i, j, float(S[i, j]), float(S[j, i]), ROUNDING[bits])
        S = S / 2 + S.T / 2
    unit = 1.0
    if hi > 0 and not 1 / LARGEST[bits] <= hi <= LARGEST[bits]:
        unit = _unit(float(xp.min(xp.where(S > 0, S, hi))), hi)
        S = S / unit / unit
    return Held(Dense(S), restore, bits, unit)


def _hold_sparse(S):
    _check_shape(S.shape)
    bits = _bits(S.dtype, np)
    held, unit = _checked_csr(S, bits)
    dtype = np.float32 if bits == 32 else np.float64
    return Held(Csr(held), lambda M: type(S)(M.astype(dtype, copy=False)), bits, unit)


def _hold_tensor(S):
    import torch

    if S.requires_grad:
        raise InputTypeError(
            "S requires gradients, and the mapping does not pass them on. Call it with "
            "S.detach()."
        )
    if S.layout is torch.strided:
        return _hold_dense(S, lambda M: M)
    if S.layout is not torch.sparse_csr:
        raise InputTypeError(
            f"S is a tensor of layout {S.layout}; dense and CSR tensors can be scaled. "
            "Convert it with S.to_sparse_csr()."
        )
    from bistochastic.backends.torch_csr import TorchCsr, from_scipy, to_scipy

    _check_shape(S.shape)
    bits = _bits(S.dtype, array_namespace(S))
    dtype = torch.float32 if bits == 32 else torch.float64
    S = S.to(torch.float64)
    held, unit = _checked_csr(to_scipy(S), bits)
    return Held(TorchCsr(from_scipy(held, S)), lambda M: M.to(dtype), bits, unit)


def _checked_csr(S, bits):
    """Return a canonical, symmetric CSR array of doubles, and its unit."""
    _check_structure(S)
    S = csr_array(S)  # shares what it can
    if S.dtype != np.float64:
        S = S.astype(np.float64)
    if not (S.has_canonical_format and S.data.all()):
        S = S.copy()
        S.sum_duplicates()
        S.eliminate_zeros()
    hi = _check_range(S.data, np, lambda k: _place(S, k)) if S.nnz else 0.0
    S = _symmetric_csr(S, bits)
    lo = float(S.data.min(initial=1.0))
    if S.nnz == 0 or (lo >= 1 / LARGEST[64] and hi <= LARGEST[64]):
        return S, 1.0
    unit = _unit(lo, hi)
    return S / unit / unit, unit


def _check_structure(S):
    """Refuse indices out of bounds, which a conversion or a product would trust."""
    try:
        if hasattr(S, "check_format"):
            S.check_format(full_check=True)
        elif S.format == "coo" and S.nnz:
            first, last = min(map(np.min, S.coords)), max(map(np.max, S.coords))
            if first < 0 or last >= S.shape[0]:
                raise ValueError("a coordinate lies outside its shape")
    except ValueError as error:
        raise InputError(f"S is not a valid sparse matrix: {error}.") from None


def _symmetric_csr(S, bits):
    if mirrored(S):
        return S
    T = csr_array(S.T)
    D = abs(S - T).tocoo()
    i, j = D.coords
    largest = np.sqrt(np.maximum(*((S.max(axis=a).toarray().ravel()) for a in (0, 1))))
    relative = D.data / largest[i] / largest[j]
    if relative.max(initial=0.0) > ROUNDING[bits]:
        k = int(relative.argmax())
        i, j = int(i[k]), int(j[k])
        _refuse(i, j, float(S[i, j]), float(S[j, i]), ROUNDING[bits])
    return csr_array(S / 2 + T / 2)


def _asymmetry(S, xp):
    """Find the entry that differs most from its mirror, relative to its rows."""
    n = S.shape[0]
    tiles = [slice(a, min(a + TILE, n)) for a in range(0, n, TILE)]
    worst, place, largest = 0.0, (0, 0), None
    for a, rows in enumerate(tiles):
        for columns in tiles[a:]:
            tile, mirror = S[rows, columns], S[columns, rows].T
            if bool(xp.all(tile == mirror)):
                continue
            if largest is None:
                largest = xp.sqrt(xp.maximum(xp.max(S, axis=0), xp.max(S, axis=1)))
            gap = xp.abs(tile - mirror)
            scale = largest[rows, None] * largest[None, columns]
            gap = gap / xp.where(gap > 0, scale, xp.ones_like(scale))
            if float(xp.max(gap)) > worst:
                worst = float(xp.max(gap))
                i, j = divmod(int(xp.argmax(xp.reshape(gap, (-1,)))), gap.shape[1])
                place = rows.start + i, columns.start + j
    return *place, worst


def _refuse(i, j, here, there, tolerated):
    one_sided = " If S holds one triangle only, complete it: triu(S) + triu(S, 1).T."
    raise NotSymmetricError(
        f"S is not symmetric: S[{i}, {j}] = {here:.6g} but S[{j}, {i}] = {there:.6g}, "
        f"a difference of {abs(here - there):.3g}; rounding is allowed {tolerated:g} "
        "of the largest entries of these rows. Theorem 2 needs S equal to its "
        "transpose. Symmetrize it with (S + S.T) / 2, Eq. (16)."
        + one_sided
        * (here == 0 or there == 0)
    )


def _check_shape(shape):
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"S has shape {tuple(shape)}; a square matrix of similarities is needed, "
            "one row and one column for each point."
        )
    if shape[0] == 0:
        raise InputError("S is empty; at least one point is needed.")


def _bits(dtype, xp):
    """Return 32 or 64 for an element type that can be scaled."""
    if xp.isdtype(dtype, ("bool", "integral")):
        return 64
    if xp.isdtype(dtype, "real floating"):
        return 32 if xp.finfo(dtype).bits <= 32 else 64
    raise InputTypeError(
        f"S has element type {dtype}; real numbers are needed. Convert it first, as in "
        "S.real or S.astype(float)."
    )


def _check_range(values, xp, place):
    """Return the largest entry, or say which entry is not a number >= 0."""
    lo, hi = float(xp.min(values)), float(xp.max(values))
    if lo >= 0 and hi < math.inf:
        return hi
    flat = on_cpu(values).ravel()
    for bad, what in (
        (~np.isfinite(flat), "not a finite number"),
        (flat < 0, "negative"),
    ):
        if bad.any():
            k = int(bad.argmax())
            i, j = place(k)
            raise InputError(
                f"S[{i}, {j}] = {flat[k]:.6g} is {what} "
                f"({several(int(bad.sum()), 'such entry', 'such entries')}). The "
                "Marcus mapping is defined for finite S >= 0 (Theorem 2); replace "
                "them, with 0 where there is no edge."
            )
    return hi


def _place(S, k):
    return int(np.searchsorted(S.indptr, k, side="right")) - 1, int(S.indices[k])


def _unit(lo, hi):
    """Return the power of two that puts the entries around 1."""
    return 2.0 ** round((math.log2(lo) + math.log2(hi)) / 4)
