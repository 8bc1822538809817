"""CSR tensors: built of entries, checked, brought from SciPy and back."""

import warnings
from importlib.util import find_spec
from typing import Any

import torch
from scipy.sparse import csr_array

with warnings.catch_warnings():  # torch says once that the layout is new
    warnings.simplefilter("ignore")
    _ONE = torch.eye(1).to_sparse_csr()
    torch.sparse_csr_tensor(
        _ONE.crow_indices(), _ONE.col_indices(), _ONE.values(), check_invariants=False
    )


def bodies(S: torch.Tensor) -> Any:
    """Return the compiled bodies for the device of a tensor, or None."""
    if S.device.type != "cuda" or find_spec("triton") is None:
        return None
    from bistochastic.places.torch_device import triton_kernels

    return triton_kernels


def rows_of(S: torch.Tensor) -> torch.Tensor:
    """Return the row of each entry of a CSR tensor."""
    crow = S.crow_indices()
    kind, device = S.col_indices().dtype, crow.device
    numbers = torch.arange(len(crow) - 1, dtype=kind, device=device)
    size = S.values().shape[0]
    return torch.repeat_interleave(numbers, crow.diff(), output_size=size)


def merged(columns: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the pattern of a table and its mirror image in compressed rows.

    Parameters
    ----------
    columns : tensor of int of shape (n, m)
        The candidates of each row, none twice.

    Returns
    -------
    crow, columns : tensor of int
        The pattern.
    own, mirror : tensor of int
        For each entry its place in the table, and that of its mirror image; one past
        the last where it has none.
    """
    n, m = columns.shape
    i = torch.arange(n, device=columns.device).repeat_interleave(m)
    j = columns.reshape(-1).to(torch.int64)
    key, order = torch.sort(torch.cat([i * n + j, j * n + i]), stable=True)
    del i, j
    new = torch.ones_like(key, dtype=torch.bool)
    new[1:] = key[1:] != key[:-1]
    place = torch.cumsum(new, 0) - 1
    key = key[new]
    kind = torch.int32 if n * m < 2**31 else torch.int64
    places = []
    for first in (0, n * m):
        here = (order >= first) & (order < first + n * m)
        known = torch.full((len(key),), n * m, dtype=kind, device=key.device)
        known[place[here]] = (order[here] - first).to(kind)
        places.append(known)
    crow, found = _compressed(key, n, n)
    return crow, found, *places


def summed_entries(i: Any, j: Any, values: torch.Tensor, n: int) -> torch.Tensor:
    """Return the sum of a matrix, given by its entries, and its transpose as CSR."""
    i, j = i.to(torch.int64), j.to(torch.int64)
    key, order = torch.sort(torch.cat([i * n + j, j * n + i]), stable=True)
    both = torch.cat([values, values])[order]
    key, place = torch.unique_consecutive(key, return_inverse=True)
    total = torch.zeros(len(key), dtype=values.dtype, device=values.device)
    return csr_of_keys(key, total.index_add_(0, place, both), (n, n))


def csr_of_keys(key: torch.Tensor, values: torch.Tensor, size: Any) -> torch.Tensor:
    """Return the CSR tensor of entries given by row times width plus column."""
    crow, columns = _compressed(key, *size)
    return torch.sparse_csr_tensor(
        crow, columns, values, size=size, check_invariants=False
    )


def _compressed(
    key: torch.Tensor, n: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return crow and columns, in 32 bits where these are enough."""
    starts = torch.arange(n + 1, device=key.device) * width
    kind = torch.int32 if max(len(key), n, width) < 2**31 else torch.int64
    crow = torch.searchsorted(key, starts)
    return crow.to(kind), (key % width).to(kind)


def chosen_entries(
    crow: torch.Tensor, columns: torch.Tensor, values: Any, kept: Any, size: Any
) -> torch.Tensor:
    """Return the CSR tensor of those entries that are kept."""
    ends = torch.nn.functional.pad(torch.cumsum(kept, 0), (1, 0))[crow]
    return torch.sparse_csr_tensor(
        ends.to(crow.dtype), columns[kept], values[kept], size=size,
        check_invariants=False,
    )  # fmt: skip


def canonical(S: torch.Tensor, *, signed: bool, largest: float) -> bool:
    """Tell whether a CSR tensor can be used as it is, without a look from the CPU.

    Parameters
    ----------
    S : torch.Tensor of shape (n, n)
        CSR, doubles.
    signed : bool
        Whether any real numbers will do; if not, positive ones.
    largest : float
        Beyond it, or below its inverse, entries have to be rescaled.

    Returns
    -------
    bool
        Whether indices are sorted and in range, entries too, and S symmetric to the
        bit. Always False where there are no compiled bodies.
    """
    kernels = bodies(S)
    crow, columns, values = S.crow_indices(), S.col_indices(), S.values()
    n, size = S.shape[0], values.shape[0]
    if kernels is None or size == 0:
        return False
    ends = (
        int(crow[0]) == 0 and int(crow[-1]) == size and bool((crow.diff() >= 0).all())
    )
    low, high = torch.aminmax(columns)
    if not (ends and int(low) >= 0 and int(high) < n):
        return False
    rising = columns[1:] > columns[:-1]
    begins = crow[(crow > 0) & (crow < size)].to(torch.int64)
    rising[begins - 1] = True  # a row may begin anywhere
    least, most = (float(x) for x in torch.aminmax(values))  # NaN if there is one
    if signed:
        proper = -largest <= least and most <= largest
    else:
        proper = 1 / largest <= least and most <= largest
    return proper and bool(rising.all()) and kernels.mirrored(S)


def indexed(S: torch.Tensor, kind: torch.dtype | None = None) -> torch.Tensor:
    """Return a CSR tensor with indices of a type; by default the smallest."""
    crow, columns, values = S.crow_indices(), S.col_indices(), S.values()
    if kind is None:
        small = max(values.shape[0], S.shape[0]) < 2**31
        kind = torch.int32 if small else torch.int64
    if kind is crow.dtype:
        return S
    return torch.sparse_csr_tensor(
        crow.to(kind), columns.to(kind), values, size=S.shape, check_invariants=False
    )


def to_scipy(S: torch.Tensor) -> csr_array:
    """Return a torch CSR tensor as a SciPy CSR array, without a copy on the CPU."""
    parts = (S.values(), S.col_indices(), S.crow_indices())
    return csr_array(tuple(p.cpu().numpy() for p in parts), shape=(len(S), len(S)))


def from_scipy(
    S: csr_array, device: torch.device, kind: torch.dtype, index: Any = None
) -> torch.Tensor:
    """Return a SciPy CSR array as a torch CSR tensor on a device."""
    if index is None:
        index = torch.int32 if max(S.nnz, S.shape[0]) < 2**31 else torch.int64
    return torch.sparse_csr_tensor(
        torch.from_numpy(S.indptr).to(index),
        torch.from_numpy(S.indices).to(index),
        torch.from_numpy(S.data).to(kind),
        size=S.shape,
        device=device,
        check_invariants=False,
    )
