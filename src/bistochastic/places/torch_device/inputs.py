"""Tensors that people pass: looked at, and fetched where the host is to work."""

from typing import Any

from scipy.sparse import csr_array

from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError, InputTypeError

GRADIENTS = "X requires gradients, and they are not passed on. Call it with X.detach()."


def fetched(X: Any) -> Any:
    """Return a tensor as a NumPy array, or a SciPy CSR array if it is compressed."""
    import torch

    _check_data(X)
    if X.is_floating_point() and X.dtype not in (torch.float32, torch.float64):
        X = X.double()
    if X.layout is torch.strided:
        return on_cpu(X.resolve_conj().resolve_neg())
    X = X.coalesce() if X.layout is torch.sparse_coo else X
    X = X.to_sparse_csr()
    parts = (X.values(), X.col_indices(), X.crow_indices())
    return csr_array(tuple(map(on_cpu, parts)), shape=tuple(X.shape))


def _check_data(X: Any) -> None:
    if X.requires_grad:
        raise InputTypeError(GRADIENTS)
    if X.is_meta:
        raise InputTypeError("X is a tensor on the meta device, without data.")


def checked_tensor(X: Any) -> Any:
    """Return a tensor of points that can be used, or say why it cannot."""
    import torch

    _check_data(X)
    if X.layout is not torch.strided:
        raise InputTypeError(
            f"X is a tensor of layout {X.layout}; points are dense. Pass X.to_dense()."
        )
    if X.is_complex():
        raise InputTypeError(f"X has element type {X.dtype}; real numbers are needed.")
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(
            f"X has shape {tuple(X.shape)}; a row for each point and a column for each "
            "feature are needed, and at least one of both."
        )
    X = X if X.dtype in (torch.float32, torch.float64) else X.double()
    bad = ~torch.isfinite(X)
    if bool(bad.any()):
        i, j = (int(k[0]) for k in torch.nonzero(bad, as_tuple=True))
        raise InputError(
            f"X[{i}, {j}] is {float(X[i, j])}: Input X contains NaN or infinity. "
            "Impute it, or leave such rows out."
        )
    return X
