"""Files in: which reader reads a file, by its name."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import FileError, listed
from bistochastic.io import arrays
from bistochastic.io.categories import ADVICE
from bistochastic.io.memory_limit import memory_limit
from bistochastic.io.parquet import read_parquet
from bistochastic.io.paths import FilePath, checked_file, parts
from bistochastic.io.sandbox import read_apart
from bistochastic.io.table import (
    Roles,
    Table,
    check_numbers,
    plain,
    selected,
    unique_names,
)
from bistochastic.io.text import read_text
from bistochastic.io.text_dialect import Layout

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
KINDS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".tab": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".npy": "npy", ".npz": "npz", ".mtx": "mtx", ".mat": "mat",
    ".h5ad": "h5ad", ".cool": "cool", ".mcool": "cool",
}  # fmt: skip
INSTEAD = {
    ".xlsx": "Save the sheet as CSV.",
    ".xls": "Save the sheet as CSV.",
    ".ods": "Save the sheet as CSV.",
    ".json": "Save the rows as CSV or Parquet.",
    ".feather": "Save it as Parquet.",
    ".rds": "In R, write.csv(x, file) writes a table.",
    ".pkl": "Pickles run code when they are read. Save the numbers as NPY or Parquet.",
    ".pickle": "Pickles run code when they are read. Save the numbers as NPY or CSV.",
    ".joblib": "Joblib files run code when they are read. Save the numbers as NPY.",
}


def kind_of(path: FilePath, given: str | None = None) -> str:
    """Return what kind of file it is.

    Parameters
    ----------
    path : Path
        The file.
    given : str, optional
        The kind that was asked for.

    Returns
    -------
    str
        One of the kinds.
    """
    kinds = list(dict.fromkeys(KINDS.values()))
    if given is not None:
        kind = KINDS.get(f".{given.lower().lstrip('.')}")
        if kind is None:
            raise FileError(f"There is no format {given!r}; use {listed(kinds, 9)}.")
        return _whole(path, kind)
    name = parts(path)[0].name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    ending = Path(name).suffix
    if ending not in KINDS:
        hint = INSTEAD.get(ending, "If it is one of these, say so with --format.")
        raise FileError(
            f"{path}: files that are read are CSV, TSV, Parquet, NPY, NPZ, MTX, MAT, "
            f"H5AD and COOL, by the end of their names. {hint}"
        )
    return _whole(path, KINDS[ending])


def _whole(path: FilePath, kind: str) -> str:
    """Return the kind, unless a part is named of a file that has none."""
    if parts(path)[1] and kind != "cool":
        raise FileError(
            f"{path}: there is no such file; of files that are not COOL, :: does not "
            "name a part."
        )
    return kind


def read_table(
    path: FilePath,
    *,
    use: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    id: str | None = None,
    label: str | None = None,
    encode: bool | Collection[str] = False,
    key: str | None = None,
    format: str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
    missing: Sequence[str] = (),
    thousands: str | None = None,
    skip: int = 0,
    max_memory: float | None = None,
    exact: bool = False,
    advice: str = ADVICE,
) -> Table:
    r"""Read rows of numbers, one for each thing to cluster, from a file.

    Nothing in a file is run, and what it takes in memory is known before it is taken.

    Parameters
    ----------
    path : path
        CSV or TSV (also compressed: .gz, .bz2, .zst, .lz4), Parquet, NPY, NPZ, MTX, MAT
        or H5AD, by the end of its name.
    use, drop : sequence of str
        Names of columns, or patterns as ``gene_*``, to use and to leave out; all are
        used by default, but the two that follow.
    id : str, optional
        The column that names the rows.
    label : str, optional
        The column to compare clusters with.
    encode : bool or collection of str
        Whether columns of texts are taken as categories, or which columns are; by
        default such are refused.
    key : str, optional
        The array of an NPZ or MAT file; of an H5AD file "X" or the name of an entry of
        obsm or layers.
    format : str, optional
        What kind of file it is, if its name does not say so.
    separator : str, optional
        Between the fields of a text; found in the first lines if not given.
    decimal : {".", ","}, default="."
        The decimal point of a text.
    encoding : str, default="utf-8"
        Of the characters of a text.
    header : bool, optional
        Whether the first line of a text has names; by default it has unless it is all
        numbers.
    missing : sequence of str
        Texts that stand for a missing value, besides the usual ones.
    thousands : str, optional
        What stands between thousands in a text, as in 1,234.5.
    skip : int, default=0
        Lines of a text before the one with names.
    max_memory : int, optional
        Bytes that its contents may take; half of the memory there is by default.
    exact : bool, default=False
        Whether `use` has names only, no patterns.
    advice : str
        What a message about a column of texts tells to do.

    Returns
    -------
    Table
        Numbers, names of columns, ids and labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bistochastic.io import read_table
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plants.csv"
    ...     _ = file.write_text("plant,height,width\na,1.5,2\nb,3,4\n")
    ...     table = read_table(file, id="plant")
    >>> table.values
    array([[1.5, 2. ],
           [3. , 4. ]])
    >>> table.names, list(table.ids)
    (['height', 'width'], ['a', 'b'])
    """
    path = checked_file(path)
    kind, limit = kind_of(path, format), memory_limit(max_memory)
    use, drop = ([names] if isinstance(names, str) else names for names in (use, drop))
    encode = encode if isinstance(encode, bool) else tuple(encode)
    roles = Roles(tuple(use), tuple(drop), id, label, encode, exact, advice)
    if kind == "csv":
        marks = (separator, decimal, encoding, header, tuple(missing), thousands, skip)
        return read_text(path, roles, Layout(*marks), limit)
    if kind == "parquet":
        return read_parquet(path, roles, limit)
    if kind == "h5ad":
        return _cells(path, roles, key, limit)
    if kind == "cool":
        raise FileError(
            f"{path} is a map of contacts, not a table; `bistochastic scale` reads it."
        )
    X, y = _array(path, kind, key, limit)
    return selected(path, plain(X, labels=y), roles)


def _cells(path: Path, roles: Roles, key: str | None, limit: int) -> Table:
    """Return the cells of an annotated data set."""
    held = read_apart("h5ad", path, limit, key=key, id=roles.id, label=roles.label)
    if held["names"] is not None:
        held["names"], more = unique_names(path, held["names"])
        held["notes"] += more
    return selected(path, plain(**held), roles, labels_too=False)


def _array(path: Path, kind: str, key: str | None, limit: int) -> tuple[Any, Any]:
    """Return a matrix, and labels if the file has such."""
    y = None
    if kind == "npy":
        X = arrays.read_npy(path, limit)
    elif kind == "npz":
        X, y = arrays.read_npz(path, key, limit)
    elif kind == "mtx":
        X = read_apart(kind, path, limit)
    else:
        X, y = read_apart(kind, path, limit, key=key)
    check_numbers(path, X)
    if not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    if X.ndim == 1:
        X = X[:, None]
    if X.ndim != 2:
        raise FileError(f"{path} holds an array of shape {X.shape}; rows are needed.")
    if not X.shape[0] or not X.shape[1]:
        raise FileError(f"{path} holds an empty matrix, of shape {X.shape}.")
    return X, y


def read_matrix(
    path: FilePath,
    *,
    key: str | None = None,
    format: str | None = None,
    max_memory: float | None = None,
    advice: str = ADVICE,
    **layout: Any,
) -> tuple[Any, list[str] | None]:
    """Read a square matrix of affinities or contacts from a file.

    Parameters
    ----------
    path : path
        MTX, NPZ, NPY, MAT, CSV, TSV, Parquet or COOL (of several resolutions,
        ``FILE::/resolutions/10000``).
    key : str, optional
        The array of an NPZ or MAT file.
    format : str, optional
        What kind of file it is, if its name does not say so.
    max_memory : int, optional
        Bytes that the matrix may take; half of the memory there is by default.
    advice : str
        What a message about a column of texts tells to do.
    **layout : object
        How a file of text is written, as in `read_table`.

    Returns
    -------
    matrix : array or csr_array of shape (n, n)
        The matrix.
    names : list of str or None
        What its rows are called, if the file says so.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from bistochastic.io import read_matrix
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "S.npy", np.eye(3))
    ...     S, names = read_matrix(Path(folder) / "S.npy")
    ...     S.shape
    (3, 3)
    """
    path = checked_file(path)
    kind, limit = kind_of(path, format), memory_limit(max_memory)
    names = None
    if kind == "cool":
        S, names = read_apart(kind, path, limit)
    elif kind in ("csv", "parquet"):
        table = read_table(
            path, format=format, max_memory=max_memory, advice=advice, **layout
        )
        S = table.values
        names = table.ids if table.ids is not None else table.names
        names = list(map(str, names))
    elif kind == "h5ad":
        raise FileError(f"{path} holds cells, not a square matrix.")
    else:
        S, _ = _array(path, kind, key, limit)
    if S.shape[0] != S.shape[1]:
        raise FileError(
            f"{path} holds a matrix of shape {S.shape}; one row and one column are "
            "needed for each thing."
        )
    _check_finite(path, S)
    return S, names


def _check_finite(path: FilePath, S: Any) -> None:
    """Refuse a matrix with an entry that is not finite."""
    if np.isfinite(S.data if is_sparse(S) else S).all():
        return
    if is_sparse(S):
        entries = S.tocoo()
        place = int(np.flatnonzero(~np.isfinite(entries.data))[0])
        row, column = (int(axis[place]) for axis in entries.coords)
    else:
        row, column = map(int, np.argwhere(~np.isfinite(S))[0])
    raise FileError(
        f"{path}: row {row + 1}, column {column + 1} is not a finite number."
    )
