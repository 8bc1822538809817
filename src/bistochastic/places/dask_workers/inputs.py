"""Dask collections that people pass: arrays, looked at block by block."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.core.errors import InputError, InputTypeError
from bistochastic.places.dask_workers.layout import Layout

REAL = "fiub"  # kinds of NumPy's numbers that can be used


@dataclass(frozen=True, eq=False)
class Rows:
    """Points in blocks on workers, checked.

    Attributes
    ----------
    layout : Layout
        Which rows lie where.
    blocks : list of Future
        Arrays of doubles.
    d : int
        Number of columns.
    """

    layout: Layout
    blocks: list[Any]
    d: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.layout.n, self.d


def stacked(*blocks: np.ndarray) -> np.ndarray:
    """Return blocks one below the other."""
    return np.concatenate(blocks)


def dask_array(X: Any) -> Any:
    """Return a Dask array."""
    import dask.array as da

    if isinstance(X, da.Array):
        return X
    if hasattr(X, "to_dask_array"):  # a data frame
        return X.to_dask_array()
    if hasattr(X, "chunks"):
        return da.from_array(X, chunks=X.chunks)
    raise InputTypeError(
        f"X is a Dask {type(X).__name__}; Dask arrays and data frames can be used. A "
        "bag is one after to_dataframe()."
    )


def as_declared(X: Any, name: str, *kinds: Any) -> Any:
    """Return a Dask array whose blocks are looked at when they are read.

    Parameters
    ----------
    X : dask.array.Array
        Two columns of chunks or more are allowed, and unknown numbers of rows.
    name : str
        What it is called in messages.
    *kinds : type
        What blocks may be; by default anything but masked.

    Returns
    -------
    dask.array.Array
        The same; a block of another kind, element type or shape than X says raises.
    """
    _check_kind(X._meta, name, kinds)
    return X.map_blocks(_as_declared, name, kinds, dtype=X.dtype, meta=X._meta)


def _as_declared(block: Any, name: str, kinds: Any, block_info: Any = None) -> Any:
    _check_kind(block, name, kinds)
    told = block_info[None]
    shape, declared = np.shape(block), told["chunk-shape"]
    known = [
        size if np.isnan(wanted) else wanted
        for size, wanted in zip(shape, declared, strict=False)
    ]
    if len(shape) != len(declared) or list(shape) != known:
        raise InputError(
            f"Block {told['chunk-location']} of {name} has shape {shape}, but the "
            f"chunks of {name} say {declared}. Make the two agree, as by `chunks` of "
            "map_blocks or `shape` of from_delayed."
        )
    dtype = getattr(block, "dtype", told["dtype"])
    if told["dtype"].kind in REAL and dtype.kind not in REAL:
        raise InputTypeError(
            f"Block {told['chunk-location']} of {name} has element type {dtype}, "
            f"and real numbers are needed; {name} says {told['dtype']}."
        )
    return block


def _check_kind(block: Any, name: str, kinds: Any) -> None:
    """Refuse blocks of kinds that would lose something."""
    if isinstance(block, np.ma.MaskedArray):
        raise InputTypeError(
            f"The chunks of {name} are masked. Fill them, as by da.ma.filled."
        )
    if kinds and not isinstance(block, kinds):
        raise InputTypeError(
            f"The chunks of {name} are of {type(block).__name__}; points are dense. "
            "Make NumPy arrays of them, as by map_blocks."
        )


def as_doubles(block: Any) -> np.ndarray:
    """Return points as doubles in rows."""
    return np.ascontiguousarray(block, dtype=np.float64)


def looked_at(block: np.ndarray) -> tuple[int, Any]:
    """Return the number of rows, and where the first is that is not a number."""
    bad = np.argwhere(~np.isfinite(block))
    if not bad.size:
        return len(block), None
    i, j = bad[0]
    return len(block), (int(i), int(j), float(block[i, j]))
