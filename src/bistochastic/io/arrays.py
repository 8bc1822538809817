"""Arrays and matrices: NPY, NPZ, MTX and MAT, never unpickled."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
from scipy import io as scipy_io
from scipy.sparse import csc_array, csr_array

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import FileError, listed
from bistochastic.io import hdf
from bistochastic.io.memory_limit import DEFLATED, check_size
from bistochastic.io.paths import FilePath
from bistochastic.io.table import LABELS, check_numbers, checked_sparse

ENTRY = 4  # the fewest bytes of an entry in an MTX file
HEADER = 1 << 16  # the most bytes of the header of an array
NAMES = ("X", "data", "arr_0")  # names of an array of points, best first
SPARSE = {"data", "shape", "format"}
NUMBERS = ("double", "single", "sparse", "logical", "int", "uint")


@contextmanager
def explained(path: FilePath, kind: str) -> Iterator[None]:
    """Turn what a library says of a broken file into a sentence."""
    try:
        yield
    except FileError:
        raise
    except MemoryError:
        raise FileError(f"{path}: there is not enough memory to read it.") from None
    except Exception as error:  # readers raise nearly everything on broken files
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FileError(f"{path} is not {kind}, or is damaged: {said}") from None


def read_npy(path: Path, limit: int) -> Any:
    """Return an array of numbers, mapped from the file, not read.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        Bytes that it may take; a map takes none.

    Returns
    -------
    array
        The array, read-only.
    """
    with explained(path, "an NPY file"):
        with path.open("rb") as stream:
            shape, _, dtype = _header(path, stream)
            begin = stream.tell()
        check_numbers(path, np.empty(0, dtype))
        size = dtype.itemsize * int(np.prod(shape, dtype=object))
        there = path.stat().st_size - begin
        if size > there:
            raise FileError(
                f"{path} is cut off: its header promises {size:,} bytes of numbers, "
                f"and {there:,} are there."
            )
        if not size:
            return np.empty(shape, dtype)
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _header(path: FilePath, stream: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Return shape, order and type of an array, as the stream's header says."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        raise FileError(f"{path}: arrays of version {version} are not read.")
    shape, order, dtype = read[version](stream, max_header_size=HEADER)
    if dtype.hasobject:
        raise FileError(
            f"{path} holds pickled objects, which could run code when they are read; "
            "they are not. Save the numbers alone, as by "
            "numpy.save(path, X.astype(float))."
        )
    if any(length < 0 for length in shape):
        raise FileError(f"{path}: the shape {shape} is none.")
    return shape, order, dtype


class Archive:
    """An NPZ file, whose arrays are measured before they are read.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        Bytes that all that is read of it may take.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit
        with explained(path, "an NPZ file"):
            self._zip = zipfile.ZipFile(path)
        self._members, self._taken = {}, 0
        for info in self._zip.infolist():
            if info.filename.endswith(".npy"):
                self._members[info.filename.removesuffix(".npy")] = info

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def header(self, name: str) -> tuple[tuple[int, ...], Any]:
        """Return the shape and the type of an array, without reading it."""
        with explained(self.path, "an NPZ file"), self._open(name) as stream:
            shape, _, dtype = _header(f"{self.path}, array {name!r}", stream)
        return shape, dtype

    def read(self, name: str) -> Any:
        """Return an array.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        array
            The array.
        """
        shape, dtype = self.header(name)
        where = f"{self.path}, array {name!r}"
        size = dtype.itemsize * int(np.prod(shape, dtype=object))
        promised = self._members[name].file_size
        if size > promised:
            raise FileError(
                f"{where} is cut off: its header promises {size:,} bytes, and "
                f"{promised:,} are there."
            )
        self._taken += size
        check_size(where, self._taken, self.limit, "what is read of it so far")
        with explained(self.path, "an NPZ file"), self._open(name) as stream:
            return np.lib.format.read_array(
                stream, allow_pickle=False, max_header_size=HEADER
            )

    def text(self, name: str, most: int) -> str:
        """Return the text of a member that is no array."""
        with explained(self.path, "an archive"):
            info = self._zip.getinfo(name)
            check_size(f"{self.path}, {name}", info.file_size, most)
            return self._zip.read(info).decode("utf-8")

    def _open(self, name: str) -> IO[bytes]:
        info = self._members[name]
        if info.flag_bits & 1:
            raise FileError(f"{self.path} is encrypted; save it without a password.")
        return self._zip.open(info)


def read_npz(path: Path, key: str | None, limit: int) -> tuple[Any, Any]:
    """Return the points of an NPZ file, and their labels if it has such.

    Parameters
    ----------
    path : Path
        The file, of `numpy.savez` or `scipy.sparse.save_npz`.
    key : str, optional
        The name of the array; by default X, data or arr_0, or the only one that is
        a matrix.
    limit : int
        Bytes that an array may take.

    Returns
    -------
    X : array or csr_array
        The matrix.
    y : array or None
        The array y, labels or target, if it has a number or a text for each row.
    """
    with Archive(path, limit) as archive:
        if set(archive.names) >= SPARSE:
            return _sparse(path, archive), None
        key = _chosen(path, archive, key)
        X = check_numbers(f"{path}, array {key!r}", archive.read(key))
        for name in (name for name in LABELS if name in archive.names and name != key):
            try:
                shape, dtype = archive.header(name)
            except FileError:
                continue  # pickled labels are not read, and not needed
            if shape == X.shape[:1] and dtype.kind in "biufUS":
                return X, archive.read(name)
    return X, None


def _chosen(path: Path, archive: Archive, key: str | None) -> str:
    names = archive.names
    if key is not None:
        if key not in names:
            raise FileError(f"{path} has no array {key!r}; it has {listed(names, 10)}.")
        return key
    for name in NAMES:
        if name in names:
            return name
    matrices = []
    for name in names[:1000]:
        try:
            if len(archive.header(name)[0]) == 2:
                matrices.append(name)
        except FileError:
            continue
    if len(matrices) == 1:
        return matrices[0]
    what = f"several ({listed(matrices)})" if matrices else "no"
    raise FileError(
        f"{path} has {what} matrices among its arrays ({listed(names, 10)}); name one "
        "with --key."
    )


def _sparse(path: Path, archive: Archive) -> csr_array:
    """Return the matrix of `scipy.sparse.save_npz`, checked."""
    shape = archive.read("shape")
    form = archive.read("format").item()
    form = form.decode("ascii", "replace") if isinstance(form, bytes) else str(form)
    if form not in ("csr", "csc"):
        raise FileError(
            f"{path} holds a sparse matrix as {form!r}; save it as "
            "scipy.sparse.save_npz(path, S.tocsr())."
        )
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise FileError(f"{path}: the shape of its sparse matrix is none.")
    shape = tuple(int(length) for length in shape)
    check_size(path, 8 * max(shape), archive.limit, f"a matrix of shape {shape}")
    parts = [archive.read(name) for name in ("data", "indices", "indptr")]
    check_numbers(path, parts[0])
    kind = csr_array if form == "csr" else csc_array
    return csr_array(checked_sparse(path, parts, shape, kind))


def read_mtx(path: Path, limit: int) -> Any:
    """Return a matrix in the Matrix Market format, sparse if the file is.

    Parameters
    ----------
    path : Path
        The file; compressed if its name ends in .gz.
    limit : int
        Bytes that it may take.

    Returns
    -------
    array or csr_array
        The matrix; both halves, where the file has one.
    """
    with explained(path, "a Matrix Market file"):
        with _named(path) as name:
            rows, columns, entries, form, kind, _ = scipy_io.mminfo(name)
        size = path.stat().st_size
        if path.suffix.lower() == ".gz":
            size *= DEFLATED
        least = ENTRY * entries if form == "coordinate" else entries
        if form == "array":
            check_size(path, 8 * rows * columns, limit, f"{rows:,} x {columns:,}")
        if kind == "complex":
            raise FileError(f"{path}: complex numbers; real ones are needed.")
        if least > size:
            raise FileError(
                f"{path} is cut off: its header promises {entries:,} entries, more "
                f"than {size:,} bytes can hold."
            )
        check_size(path, 40 * entries + 16 * max(rows, columns), limit)
        with _named(path) as name:
            matrix = scipy_io.mmread(name)
    return csr_array(matrix) if is_sparse(matrix) else np.asarray(matrix)


@contextmanager
def _named(path: Path) -> Iterator[str]:
    """Yield a name for SciPy, whose reader of MTX takes UTF-8 only."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        with TemporaryDirectory() as folder:
            packed = path.suffix.lower() in (".gz", ".bz2")
            name = Path(folder) / f"matrix{path.suffix.lower() if packed else '.mtx'}"
            name.symlink_to(path.resolve())
            yield str(name)
    else:
        yield str(path)


def read_mat(path: Path, key: str | None, limit: int) -> tuple[Any, Any]:
    """Return a matrix of a MATLAB file.

    Parameters
    ----------
    path : Path
        The file, of any version.
    key : str, optional
        The name of the variable; by default X or data, or the only matrix.
    limit : int
        Bytes that it may take.

    Returns
    -------
    X : array or csr_array
        The matrix.
    y : array or None
        The variable y, labels or target, if it has a number for each row.
    """
    if path.open("rb").read(4) == b"\x89HDF" or hdf.is_hdf(path):
        return hdf.read_mat73(path, key, limit)
    with explained(path, "a MATLAB file"):
        known = {name: (shape, kind) for name, shape, kind in scipy_io.whosmat(path)}
        names = {
            name: shape
            for name, (shape, kind) in known.items()
            if kind.startswith(NUMBERS) and len(shape) == 2
        }
        key = hdf.chosen(path, names, key, list(known))
        size = 8 * int(np.prod(names[key], dtype=object))
        if known[key][1] == "sparse":
            size = max(16 * max(names[key]), DEFLATED * path.stat().st_size)
            size = min(size, 24 * int(np.prod(names[key], dtype=object)) + 8)
        check_size(f"{path}, {key}", size, limit)
        labels = [name for name in LABELS if name in names and name != key]
        held = scipy_io.loadmat(path, variable_names=[key, *labels])
        X = held[key]
        X = csr_array(X) if is_sparse(X) else np.ascontiguousarray(X)
        check_numbers(path, X)
    for name in labels:
        y = held.get(name)
        if y is not None and not is_sparse(y) and y.size == X.shape[0]:
            return X, y.ravel()
    return X, None
