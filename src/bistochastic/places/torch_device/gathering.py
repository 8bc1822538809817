"""Heaviest neighbors and sums over groups, of CSR tensors."""

import torch

from bistochastic.places.torch_device.build import csr_of_keys, rows_of


def mates(
    S: torch.Tensor, sizes: torch.Tensor, free: torch.Tensor, cap: float
) -> torch.Tensor:
    """Return for each row that is free its heaviest free neighbor, or -1.

    Parameters
    ----------
    S : torch.Tensor of shape (n, n)
        CSR, symmetric weights.
    sizes : tensor of shape (n,)
        Points w of each row; an edge weighs s_ij (1 / w_i + 1 / w_j).
    free : tensor of bool of shape (n,)
        Which rows may be joined.
    cap : float
        Most points of both together.

    Returns
    -------
    tensor of int64 of shape (n,)
        Columns, of equal weights the first.
    """
    n, i, j = S.shape[0], rows_of(S).to(torch.int64), S.col_indices().to(torch.int64)
    allowed = (i != j) & free[i] & free[j] & (sizes[i] + sizes[j] <= cap)
    i, j, values = i[allowed], j[allowed], S.values()[allowed]
    weights = values * (1.0 / sizes[i] + 1.0 / sizes[j])
    best = torch.zeros(n, dtype=weights.dtype, device=weights.device)
    best.scatter_reduce_(0, i, weights, "amax")
    hit = weights == best[i]
    first = torch.full((n,), n, dtype=torch.int64, device=weights.device)
    first.scatter_reduce_(0, i[hit], j[hit], "amin")
    return torch.where(first < n, first, -1)


def gathered(S: torch.Tensor, groups: torch.Tensor, number: int) -> torch.Tensor:
    """Return P' S P, the sums of entries between groups, symmetric to the bit.

    The upper half is summed, each sum in one thread, so that it is the same every time.

    Parameters
    ----------
    S : torch.Tensor of shape (n, n)
        CSR, symmetric.
    groups : tensor of int64 of shape (n,)
        The group of each row and column.
    number : int
        How many groups there are.

    Returns
    -------
    torch.Tensor of shape (number, number)
        CSR.
    """
    i, j = groups[rows_of(S)], groups[S.col_indices()]
    upper = i <= j
    key, order = torch.sort((i * number + j)[upper], stable=True)
    values = S.values()[upper][order]
    del i, j, upper, order
    key, lengths = torch.unique_consecutive(key, return_counts=True)
    total = torch.segment_reduce(values, "sum", lengths=lengths)
    off = key // number < key % number
    mirrored = key[off] % number * number + key[off] // number
    key, order = torch.sort(torch.cat([key, mirrored]))
    return csr_of_keys(key, torch.cat([total, total[off]])[order], (number, number))
