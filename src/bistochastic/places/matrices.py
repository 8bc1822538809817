"""The one door: looks at a type once, checks the numbers, picks the holder."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array
from scipy.sparse import csr_array

from bistochastic.core.arrays import is_sparse, on_cpu
from bistochastic.core.errors import (
    InputError,
    InputTypeError,
    NotSymmetricError,
    several,
)
from bistochastic.core.protocols import Graph
from bistochastic.places import is_collection
from bistochastic.places.host.csr import Csr, mirrored
from bistochastic.places.host.dense import Dense

TILE = 512  # rows and columns compared with their mirror in one go
ROUNDING = {32: 1e-5, 64: 1e-10}  # tolerated asymmetry, by bits of the numbers
FARTHEST = 2000  # from the smallest to the largest entry, in powers of two
LARGEST = {32: 1e12, 64: 1e100}  # entries beyond it, or below 1/it, are rescaled


@dataclass(frozen=True)
class Wanted:
    """What a caller expects of its matrix.

    Attributes
    ----------
    name : str
        What it is called in messages.
    signed : bool
        Whether any real numbers will do, stored zeros being part of the pattern; if
        not, non-negative ones are wanted and zeros mean no edge.
    double : bool
        Whether to compute in double whatever the caller's numbers carry.
    """

    name: str = "S"
    signed: bool = False
    double: bool = False


DEFAULT = Wanted()


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
    vector : callable
        Makes the caller's kind of vector out of the holder's.
    elsewhere : bool
        Whether the caller's matrix lies on other machines.
    """

    graph: Graph
    restore: Callable[[Any], Any]
    bits: int
    unit: float
    vector: Callable[[Any], Any] = lambda v: v
    elsewhere: bool = False


def hold(S: Any, wanted: Any = DEFAULT) -> Any:
    """Put a symmetric matrix of any kind into the holder that fits.

    Parameters
    ----------
    S : array-like, sparse matrix or array, data frame, torch tensor or Dask array
        Square, real, finite, symmetric up to rounding. Not changed.
    wanted : Wanted, optional
        What the caller expects; by default non-negative numbers.

    Returns
    -------
    Held
        The holder and the way back.
    """
    name = wanted.name
    if is_sparse(S):
        return _hold_sparse(S, wanted)
    if is_torch_array(S):
        return _hold_tensor(S, wanted)
    if is_collection(S):
        return _hold_distributed(S, wanted)
    if hasattr(S, "columns") and hasattr(S, "index") and hasattr(S, "to_numpy"):
        return _hold_frame(S, wanted)
    if isinstance(S, np.matrix):
        raise InputTypeError(f"{name} is an np.matrix; pass np.asarray({name}).")
    if isinstance(S, np.ma.MaskedArray):
        raise InputTypeError(
            f"{name} is masked; pass {name}.filled(0) if a gap means no edge."
        )
    array = S if is_array_api_obj(S) else _array(S, name)
    return _hold_dense(array, wanted, lambda M: M)


def _array(S: Any, name: str) -> Any:
    try:
        array = np.asarray(S)
    except ValueError:
        array = np.asarray(None)
    if array.ndim == 0:
        raise InputTypeError(
            f"{name} is a {type(S).__name__} that does not make a matrix; pass an "
            "array, a sparse matrix, a tensor or a list of rows of equal length."
        )
    return array


def _hold_frame(S: Any, wanted: Any) -> Any:
    if not S.index.equals(S.columns):
        name = wanted.name
        raise InputError(
            "The index and the columns of the data frame differ, but row i and column "
            f"i of {name} must stand for the same point. Reorder it with "
            f"{name}.loc[labels, labels]."
        )
    return _hold_dense(
        S.to_numpy(), wanted, lambda M: type(S)(M, index=S.index, columns=S.columns)
    )


def _hold_dense(S: Any, wanted: Any, restore: Any) -> Any:
    _check_shape(S.shape, wanted.name)
    xp = array_namespace(S)
    bits = _bits(S.dtype, xp, wanted.name)
    given = xp.float32 if bits == 32 else xp.float64
    S = xp.astype(S, xp.float64 if wanted.double else given, copy=False)
    if isinstance(S, np.ndarray) and not S.flags.forc:
        S = np.ascontiguousarray(S)  # other strides would be copied by every product
    hi = _check_range(S, xp, lambda k: divmod(k, S.shape[1]), wanted)
    i, j, worst = _asymmetry(S, xp)
    if worst > 0:
        if worst > ROUNDING[bits]:
            _refuse(i, j, float(S[i, j]), float(S[j, i]), ROUNDING[bits], wanted)
        S = S / 2 + S.T / 2
    unit = 1.0
    if not wanted.signed and hi > 0 and not 1 / LARGEST[bits] <= hi <= LARGEST[bits]:
        unit = _unit(float(xp.min(xp.where(S > 0, S, hi))), hi)
        S = S / unit / unit

    def back(M: Any) -> Any:
        M = M.toarray() if is_sparse(M) else M
        return restore(xp.astype(M, given, copy=False))

    return Held(Dense(S), back, bits, unit)


def _hold_sparse(S: Any, wanted: Any) -> Any:
    _check_shape(S.shape, wanted.name)
    bits = _bits(S.dtype, np, wanted.name)
    held, unit = _checked_csr(S, bits, wanted)
    dtype = np.float32 if bits == 32 else np.float64

    def restore(M: Any) -> Any:
        shared = np.may_share_memory(M.indices, held.indices)
        return type(S)((M.copy() if shared else M).astype(dtype, copy=False))

    return Held(Csr(held), restore, bits, unit)


def _hold_tensor(S: Any, wanted: Any) -> Any:
    import torch

    name = wanted.name
    if S.requires_grad:
        raise InputTypeError(
            f"{name} requires gradients, and they are not passed on. Call it with "
            f"{name}.detach()."
        )
    if S.layout is torch.strided:
        return _hold_dense(S, wanted, lambda M: M)
    if S.layout is not torch.sparse_csr:
        raise InputTypeError(
            f"{name} is a tensor of layout {S.layout}; dense and CSR tensors can be "
            f"used. Convert it with {name}.to_sparse_csr()."
        )
    return _hold_csr_tensor(S, wanted)


def _hold_csr_tensor(S: Any, wanted: Any) -> Any:
    import torch

    from bistochastic.places.torch_device.build import (
        canonical,
        from_scipy,
        indexed,
        to_scipy,
    )
    from bistochastic.places.torch_device.csr import TorchCsr

    _check_shape(S.shape, wanted.name)
    bits = _bits(S.dtype, array_namespace(S), wanted.name)
    dtype = torch.float32 if bits == 32 else torch.float64
    index = S.crow_indices().dtype
    S = S.to(torch.float64)
    if canonical(S, signed=wanted.signed, largest=LARGEST[64]):
        held, unit = indexed(S), 1.0
    else:  # what is wrong is found, or mended, on the CPU
        held, unit = _checked_csr(to_scipy(S), bits, wanted)
        held = from_scipy(held, S.device, S.dtype)

    def restore(M: Any) -> Any:
        made = indexed(M.to(dtype), index)
        shared = made.col_indices().data_ptr() in (
            part.col_indices().data_ptr() for part in (S, held)
        )
        return made.clone() if shared else made

    return Held(TorchCsr(held), restore, bits, unit)


def _hold_distributed(S: Any, wanted: Any) -> Any:
    from bistochastic.places.dask_workers.given_graphs import (
        given_back,
        given_back_vector,
        read,
        symmetric,
    )

    found = read(S, wanted.name, signed=wanted.signed)
    layout = found.layout
    if layout.n == 0:
        _check_shape((0, 0), wanted.name)
    bits = _bits(found.dtype, np, wanted.name)
    number = sum(seen.bad for seen in found.seen)
    for start, seen in zip(layout.starts, found.seen, strict=False):
        if seen.first is not None:
            i, j, value = seen.first
            what = "negative" if np.isfinite(value) else "not a finite number"
            _refuse_entry((start + i, j), value, what, number, wanted)
    lo = min(seen.low for seen in found.seen)
    hi = max(seen.high for seen in found.seen)
    if wanted.signed:
        _check_size(max(-lo, hi), wanted)
    within = 1 / LARGEST[64] <= lo and hi <= LARGEST[64]
    unit = 1.0 if wanted.signed or hi < lo or within else _unit(lo, hi)
    graph = symmetric(found, ROUNDING[bits], unit)
    if isinstance(graph, tuple):
        i, j, here, there = graph
        _refuse(i, j, here, there, ROUNDING[bits], wanted)
    dtype = np.float32 if bits == 32 else np.float64
    return Held(
        graph,
        lambda M: given_back(M, dtype, found),
        bits,
        unit,
        lambda v: given_back_vector(v, layout),
        elsewhere=True,
    )


def _checked_csr(S: Any, bits: Any, wanted: Any) -> Any:
    """Return a canonical, symmetric CSR array of doubles, and its unit."""
    _check_structure(S, wanted.name)
    S = csr_array(S)  # shares what it can
    if S.dtype != np.float64:
        S = S.astype(np.float64)
    if not (S.has_canonical_format and (wanted.signed or S.data.all())):
        S = S.copy()
        S.sum_duplicates()
        if not wanted.signed:
            S.eliminate_zeros()
    hi = _check_range(S.data, np, lambda k: _place(S, k), wanted) if S.nnz else 0.0
    S = _symmetric_csr(S, bits, wanted)
    lo = float(S.data.min(initial=1.0))
    if wanted.signed or S.nnz == 0 or (lo >= 1 / LARGEST[64] and hi <= LARGEST[64]):
        return S, 1.0
    unit = _unit(lo, hi)
    return S / unit / unit, unit


def _check_structure(S: Any, name: str) -> None:
    """Refuse indices out of bounds, which a conversion or a product would trust."""
    try:
        if hasattr(S, "check_format"):
            S.check_format(full_check=True)
        elif S.format == "coo" and S.nnz:
            first, last = min(map(np.min, S.coords)), max(map(np.max, S.coords))
            if first < 0 or last >= S.shape[0]:
                raise ValueError("a coordinate lies outside its shape")
    except ValueError as error:
        raise InputError(f"{name} is not a valid sparse matrix: {error}.") from None


def _symmetric_csr(S: Any, bits: Any, wanted: Any) -> Any:
    if mirrored(S):
        return S
    T = csr_array(S.T)
    D = abs(S - T).tocoo()
    i, j = D.coords
    A = abs(S)
    largest = np.sqrt(np.maximum(*((A.max(axis=a).toarray().ravel()) for a in (0, 1))))
    relative = D.data / largest[i] / largest[j]
    if relative.max(initial=0.0) > ROUNDING[bits]:
        k = int(relative.argmax())
        i, j = int(i[k]), int(j[k])
        _refuse(i, j, float(S[i, j]), float(S[j, i]), ROUNDING[bits], wanted)
    halves = (
        csr_array((M.data / 2 + 1j, M.indices, M.indptr), shape=S.shape) for M in (S, T)
    )
    return sum(
        halves, start=0
    ).real  # the imaginary parts keep entries that add up to zero


def _asymmetry(S: Any, xp: Any) -> Any:
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
                A = xp.abs(S)
                largest = xp.sqrt(xp.maximum(xp.max(A, axis=0), xp.max(A, axis=1)))
            gap = xp.abs(tile - mirror)
            scale = largest[rows, None] * largest[None, columns]
            gap = gap / xp.where(gap > 0, scale, xp.ones_like(scale))
            if float(xp.max(gap)) > worst:
                worst = float(xp.max(gap))
                i, j = divmod(int(xp.argmax(xp.reshape(gap, (-1,)))), gap.shape[1])
                place = rows.start + i, columns.start + j
    return *place, worst


def _refuse(
    i: int, j: int, here: float, there: float, tolerated: float, wanted: Any
) -> None:
    S = wanted.name
    needs = f"{S} must equal" if wanted.signed else f"Theorem 2 needs {S} equal to"
    said = (
        f"{S} is not symmetric: {S}[{i}, {j}] = {here:.6g} but {S}[{j}, {i}] = "
        f"{there:.6g}, a difference of {abs(here - there):.3g}; rounding is allowed "
        f"{tolerated:g} of the largest entries of these rows. {needs} its transpose. "
        f"Symmetrize it with ({S} + {S}.T) / 2, Eq. (16)."
    )
    if here == 0 or there == 0:
        said += (
            f" If {S} holds one triangle only, complete it: triu({S}) + triu({S}, 1).T."
        )
    raise NotSymmetricError(said)


def _check_shape(shape: Any, name: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"{name} has shape {tuple(shape)}; a square matrix of similarities is "
            "needed, one row and one column for each point."
        )
    if shape[0] == 0:
        raise InputError(f"{name} is empty; at least one point is needed.")


def _bits(dtype: Any, xp: Any, name: str) -> Any:
    """Return 32 or 64 for an element type that can be used."""
    if xp.isdtype(dtype, ("bool", "integral")):
        return 64
    if xp.isdtype(dtype, "real floating"):
        return 32 if xp.finfo(dtype).bits <= 32 else 64
    raise InputTypeError(
        f"{name} has element type {dtype}; real numbers are needed. Convert it first, "
        f"as in {name}.real or {name}.astype(float)."
    )


def _check_range(values: Any, xp: Any, place: Any, wanted: Any) -> Any:
    """Return the largest entry, or say which entry is not a number that will do."""
    lo, hi = float(xp.min(values)), float(xp.max(values))
    if -math.inf < lo and hi < math.inf and (wanted.signed or lo >= 0):
        if wanted.signed:
            _check_size(max(-lo, hi), wanted)
        return hi
    flat = on_cpu(values).ravel()
    for bad, what in (
        (~np.isfinite(flat), "not a finite number"),
        ((flat < 0) & (not wanted.signed), "negative"),
    ):
        if bad.any():
            k = int(bad.argmax())
            _refuse_entry(place(k), flat[k], what, int(bad.sum()), wanted)
    return hi


def _check_size(size: Any, wanted: Any) -> None:
    if size > LARGEST[64]:
        raise InputError(
            f"{wanted.name} has entries of size {size:.3g}, beside which row sums of "
            "one are lost in rounding. Divide it by a number first; entries that must "
            "stay zero are left out of a sparse matrix."
        )


def _refuse_entry(place: Any, value: Any, what: Any, number: Any, wanted: Any) -> None:
    cure = (
        "Replace them; entries that must stay zero are left out of a sparse matrix."
        if wanted.signed
        else "The Marcus mapping is defined for finite S >= 0 (Theorem 2); replace "
        "them, with 0 where there is no edge."
    )
    i, j = place
    raise InputError(
        f"{wanted.name}[{i}, {j}] = {value:.6g} is {what} "
        f"({several(number, 'such entry', 'such entries')}). {cure}"
    )


def _place(S: Any, k: int) -> Any:
    return int(np.searchsorted(S.indptr, k, side="right")) - 1, int(S.indices[k])


def _unit(lo: Any, hi: Any) -> Any:
    """Return the power of two that puts the entries around 1."""
    if math.log2(hi) - math.log2(lo) > FARTHEST:
        raise InputError(
            f"The entries run from {lo:.3g} to {hi:.3g}, too far apart for doubles."
        )
    return 2.0 ** round((math.log2(lo) + math.log2(hi)) / 4)
