"""Files out: whole or not at all, and never over another one unasked."""

import csv
import io
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np
from scipy.io import mmwrite
from scipy.sparse import csr_array, save_npz

from bistochastic.core.errors import OutputError
from bistochastic.core.progress import wrote
from bistochastic.io.optional import needed
from bistochastic.io.paths import FilePath

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_new(path: FilePath, force: bool = False) -> None:
    """Refuse to write over a file, or where there is no folder.

    Parameters
    ----------
    path : path
        Where to write.
    force : bool
        Whether a file that is there may be replaced.
    """
    try:
        path = Path(path).resolve()
        folder, file = path.parent.is_dir(), path.is_file()
        exists, loop = path.is_dir(), path.is_symlink()
    except (OSError, RuntimeError, ValueError) as error:  # names too long, loops
        raise OutputError(f"{path} cannot be written: {error}.") from None
    if loop:
        raise OutputError(f"{path} cannot be written: it is a link to itself.")
    if exists:
        raise OutputError(f"{path} is a folder; name a file.")
    if not folder:
        raise OutputError(f"{path}: there is no folder {path.parent}.")
    if file and not force:
        raise OutputError(
            f"{path} is there already; force (--force) writes over it, or name another."
        )
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: the folder {path.parent} cannot be written to.")


@contextmanager
def replacing(path: FilePath, force: bool = False) -> Iterator[IO[bytes]]:
    """Write a file that takes its place when it is complete.

    Parameters
    ----------
    path : path
        Where to write.
    force : bool
        Whether a file that is there may be replaced.

    Yields
    ------
    file
        To write bytes to. If anything goes wrong, what was at `path` stays as it was.
    """
    path = Path(path)
    if _special(path):
        try:
            with path.open("wb") as stream:
                yield stream
        except OSError as error:
            raise OutputError(f"{path} was not written: {error.strerror}.") from error
        wrote(path)
        return
    with beside(path, force) as name, open(name, "w+b") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def beside(path: FilePath, force: bool = False) -> Iterator[str]:
    """Make a file beside another that takes its place when the block ends well.

    Parameters
    ----------
    path : path
        Where the file is wanted.
    force : bool
        Whether a file that is there may be replaced.

    Yields
    ------
    str
        Where to write, in the same folder.
    """
    check_new(path, force)
    named, path = path, Path(path).resolve()
    name = ""
    try:
        handle, name = tempfile.mkstemp(".part", ".bistochastic-", path.parent)
        os.close(handle)
        yield name
        os.chmod(name, _mode(path))
        _placed(name, path, force)
        wrote(named)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError) and not isinstance(error, OutputError):
            raise OutputError(
                f"{path} was not written: {error.strerror or error}. What was there "
                "before is as it was."
            ) from error
        raise


def _special(path: Path) -> bool:
    """Tell whether a path is a device or a pipe."""
    try:
        return path.exists() and not (path.is_file() or path.is_dir())
    except OSError:
        return False


def _mode(path: Path) -> int:
    """Return the permissions of the file, or those of a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _placed(name: str, path: Path, force: bool) -> None:
    """Give a complete file its name, at once."""
    if not force:
        try:
            os.link(name, path)  # unlike a rename, it fails if one came meanwhile
        except FileExistsError:
            raise OutputError(f"{path} came to be while it was written.") from None
        except OSError:  # a file system without links
            os.replace(name, path)
            return
        os.unlink(name)
    else:
        os.replace(name, path)
    with suppress(OSError):  # so that the name outlives a loss of power
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def write_labels(
    path: FilePath | TextIO,
    labels: Any,
    *,
    ids: Any = None,
    id_name: str = "row",
    value_name: str = "cluster",
    columns: dict[str, Any] | None = None,
    force: bool = False,
    raw: bool = False,
) -> int:
    """Write the cluster of each row, as CSV, TSV or Parquet.

    Parameters
    ----------
    path : path or file
        Where to write; the end of its name says how. A file gets CSV.
    labels : array of int
        Clusters.
    ids : array, optional
        Names of the rows; their numbers from 1 by default.
    id_name, value_name : str
        Names of that column and of the one with the clusters.
    columns : dict, optional
        More columns, by name.
    force : bool
        Whether a file that is there may be replaced.
    raw : bool
        In text, names that a spreadsheet would take for formulas, as ``=1+1``, get an
        apostrophe before them; True leaves them as they are.

    Returns
    -------
    int
        Number of names that got one.

    Examples
    --------
    >>> import sys
    >>> from bistochastic.io import write_labels
    >>> _ = write_labels(sys.stdout, [0, 1, 0], ids=["a", "b", "c"])
    row,cluster
    a,0
    b,1
    c,0
    """
    ids = np.arange(1, len(labels) + 1) if ids is None else ids
    id_name += "_" * (id_name in (value_name, *(columns or ())))
    held = {id_name: ids, value_name: labels} | (columns or {})
    if hasattr(path, "write"):
        text, marked = _text(held, ",", raw)
        path.write(text)
        return marked
    path = Path(path)
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq"):
        pa, pq = needed("pyarrow", path), needed("pyarrow.parquet", path)
        arrays_ = {name: pa.array(list(values)) for name, values in held.items()}
        with replacing(path, force) as stream:
            pq.write_table(pa.table(arrays_), stream)
        return 0
    if ending not in (".csv", ".tsv", ".txt"):
        raise OutputError(f"{path}: labels are written as .csv, .tsv or .parquet.")
    text, marked = _text(held, "\t" if ending == ".tsv" else ",", raw)
    with replacing(path, force) as stream:
        stream.write(text.encode("utf-8", "surrogateescape"))
    return marked


def _text(held: dict[str, Any], separator: str, raw: bool) -> tuple[str, int]:
    """Return a table as text, and the number of names that were marked."""
    marked = 0

    def safe(value: Any) -> Any:
        nonlocal marked
        if raw or not isinstance(value, str) or not value.startswith(FORMULA):
            return "" if value is None else value
        with suppress(ValueError):
            float(value)
            return value  # a negative number
        marked += 1
        return "'" + value

    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    writer.writerow([safe(name) for name in held])
    columns = [v.tolist() if hasattr(v, "tolist") else list(v) for v in held.values()]
    for row in zip(*columns, strict=True):
        writer.writerow([safe(value) for value in row])
    return out.getvalue(), marked


def write_graph(path: FilePath, S: Any, *, force: bool = False) -> None:
    """Write a graph, as NPZ (`scipy.sparse.load_npz` reads it), MTX or NPY.

    Parameters
    ----------
    path : path
        Where to write; the end of its name says how.
    S : sparse matrix or array
        The graph.
    force : bool
        Whether a file that is there may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from scipy.sparse import eye_array
    >>> from bistochastic.io import read_matrix, write_graph
    >>> with TemporaryDirectory() as folder:
    ...     write_graph(Path(folder) / "S.npz", eye_array(3, format="csr"))
    ...     read_matrix(Path(folder) / "S.npz")[0].nnz
    3
    """
    path = Path(path)
    ending = path.suffix.lower()
    check_new(path, force)
    if ending == ".npy":
        with replacing(path, force) as stream:
            np.save(stream, S.toarray() if hasattr(S, "toarray") else np.asarray(S))
    elif ending in (".npz", ".mtx"):
        with replacing(path, force) as stream:
            if ending == ".npz":
                save_npz(stream, csr_array(S))
            else:
                mmwrite(stream, csr_array(S), symmetry="general")
    else:
        raise OutputError(f"{path}: graphs are written as .npz, .mtx or .npy.")


def write_summary(
    path: FilePath, summary: dict[str, Any], *, force: bool = False
) -> None:
    """Write a summary as JSON.

    Parameters
    ----------
    path : path
        Where to write.
    summary : dict
        What to write; arrays become lists, what is not a number becomes null.
    force : bool
        Whether a file that is there may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bistochastic.io import write_summary
    >>> with TemporaryDirectory() as folder:
    ...     write_summary(Path(folder) / "summary.json", {"rows": 178})
    ...     "178" in (Path(folder) / "summary.json").read_text()
    True
    """
    with replacing(path, force) as stream:
        stream.write(as_json(summary).encode())


def as_json(summary: Any) -> str:
    """Return a summary as JSON that any program reads."""
    return json.dumps(_simple(summary), indent=2, allow_nan=False) + "\n"


def _simple(value: Any) -> Any:
    """Return what JSON can hold of a value."""
    if isinstance(value, dict):
        return {str(name): _simple(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_simple(held) for held in value]
    if isinstance(value, np.ndarray | np.generic):
        return _simple(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
