"""The same numbers in the many kinds of arrays that users hold."""

from pathlib import Path

import numpy as np
from scipy import sparse

DENSE = (
    "C", "C", "C", "F", "read-only", "reversed", "strided", "memmap", "list",
    "float32", "float16", "int", "bool", "longdouble", "frame",
)  # fmt: skip
SPARSE = ("csr", "csr", "csc", "coo", "lil", "dok", "bsr", "messy", "int64", "matrix")


def formed(case, A, folder, allow_sparse=True):
    """Return an array in a drawn form, and the numbers that this form holds.

    Numbers of a form with fewer digits are those after rounding.
    """
    names = DENSE + SPARSE if allow_sparse else DENSE
    name = case.pick(*names)
    with np.errstate(all="ignore"):
        made, truth = MAKERS.get(name, _sparse)(name, np.array(A), case, folder)
    case.note(f"in the form {name}")
    return made, truth


def _plain(name, A, case, folder):
    if name == "F":
        return np.asfortranarray(A), A
    if name == "read-only":
        A.setflags(write=False)
    if name == "reversed":
        return A[::-1, ::-1].copy()[::-1, ::-1], A
    if name == "strided":
        wide = np.full((2 * A.shape[0], 3 * A.shape[1]), np.nan)
        wide[::2, ::3] = A
        return wide[::2, ::3], A
    if name == "list":
        return A.tolist(), A
    return A, A


def _memmap(name, A, case, folder):
    path = Path(folder) / f"{case.number}-{case.rng.integers(1 << 40)}.npy"
    np.save(path, A)
    return np.load(path, mmap_mode="r"), A


def _frame(name, A, case, folder):
    try:
        import pandas as pd
    except ImportError:
        return A, A
    square = A.shape[0] == A.shape[1]
    return pd.DataFrame(A, columns=range(A.shape[1])) if square else pd.DataFrame(A), A


def _number(name, A, case, folder):
    kinds = {"int": np.int64, "bool": bool}
    if name == "int":
        size = np.abs(A[np.isfinite(A)]).max(initial=0.0)
        if not np.isfinite(A).all():
            return A, A
        A = np.rint(A * (9 / size if size else 1))
    made = A.astype(kinds.get(name, name))
    return made, made.astype(np.float64)


def _sparse(name, A, case, folder):
    if not np.isfinite(A).all() and name in ("messy", "dok", "lil"):
        name = "csr"
    if name == "messy":
        return _messy(A, case), A
    if name == "int64":
        made = sparse.csr_array(A)
        made.indices, made.indptr = (
            v.astype(np.int64) for v in (made.indices, made.indptr)
        )
        return made, A
    if name == "matrix":
        return sparse.csr_matrix(A), A
    return getattr(sparse, f"{name}_array")(A), A


def _messy(A, case):
    """Return a CSR array with unsorted indices, stored zeros and halves."""
    i, j = np.nonzero(A)
    zeros = np.argwhere(A == 0)
    zeros = zeros[case.rng.permutation(len(zeros))[: len(i) // 4 + 1]]
    half = A[i, j] / 2
    whole = half + half == A[i, j]  # of denormal numbers it is not
    rows = np.concatenate([i, i[whole], zeros[:, 0], zeros[:, 1] % len(A)])
    columns = np.concatenate([j, j[whole], zeros[:, 1], zeros[:, 0] % A.shape[1]])
    values = np.concatenate([np.where(whole, half, A[i, j]), half[whole]])
    values = np.concatenate([values, np.zeros(rows.size - values.size)])
    order = case.rng.permutation(rows.size)
    order = order[np.argsort(rows[order], kind="stable")]
    ends = np.searchsorted(rows[order], np.arange(len(A) + 1))
    return sparse.csr_array((values[order], columns[order], ends), shape=A.shape)


MAKERS = {
    **dict.fromkeys(("C", "F", "read-only", "reversed", "strided", "list"), _plain),
    **dict.fromkeys(("float32", "float16", "longdouble", "int", "bool"), _number),
    "memmap": _memmap,
    "frame": _frame,
}
