"""HDF5 files: H5AD of anndata, COOL of cooler, and MAT of MATLAB from 7.3 on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import FileError, listed
from bistochastic.io.memory_limit import check_size
from bistochastic.io.optional import needed
from bistochastic.io.paths import FilePath, parts
from bistochastic.io.table import LABELS, checked_sparse

MAGIC = b"\x89HDF\r\n\x1a\n"
POINTS = ("X", "data")  # names of a matrix of points, best first
HALF = "symmetric-upper"  # storage mode of a COOL file with one half of the contacts
PARTS = (  # data sets of a map of contacts in a COOL file
    "bins/chrom", "bins/start", "bins/end", "pixels/bin1_id", "pixels/bin2_id",
    "pixels/count", "chroms/name",
)  # fmt: skip


def is_hdf(path: Path) -> bool:
    """Tell whether a file is in HDF5, which may begin at a multiple of 512 bytes."""
    with path.open("rb") as stream:
        for begin in (0, 512, 1024, 2048):
            stream.seek(begin)
            if stream.read(8) == MAGIC:
                return True
    return False


@contextmanager
def opened(path: Path, kind: str) -> Iterator[Any]:
    """Open an HDF5 file, and turn what is said of a broken one into a sentence."""
    h5py = needed("h5py", path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (FileError, KeyboardInterrupt):
        raise
    except MemoryError:
        raise FileError(f"{path}: there is not enough memory to read it.") from None
    except Exception as error:  # of HDF5, which says what it was doing, not what to do
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FileError(f"{path} is not {kind}, or is damaged: {said}") from None


def chosen(
    path: Path, shapes: dict[str, Any], key: str | None, names: Sequence[str] = ()
) -> str:
    """Return the name of the matrix to read.

    Parameters
    ----------
    path : path
        The file.
    shapes : dict
        Shapes of the matrices by name.
    key : str, optional
        The name that was asked for.
    names : sequence of str
        All names, for the message.

    Returns
    -------
    str
        The name.
    """
    if key is not None:
        if key not in shapes:
            what = "holds no matrix of numbers there" if key in names else "has no such"
            raise FileError(
                f"{path}: --key {key!r}: the file {what}; matrices: "
                f"{listed(shapes, 10) or 'none'}."
            )
        return key
    for name in POINTS:
        if name in shapes:
            return name
    wide = [name for name, shape in shapes.items() if min(shape) > 1] or list(shapes)
    if len(wide) == 1:
        return wide[0]
    what = f"several matrices ({listed(wide)}); name one" if wide else "no matrix"
    raise FileError(f"{path} has {what} with --key." if wide else f"{path} has {what}.")


def read_mat73(path: Path, key: str | None, limit: int) -> tuple[Any, Any]:
    """Return a matrix of a MATLAB file from version 7.3 on, as `read_mat` does."""
    with opened(path, "a MATLAB file") as file:
        h5py = needed("h5py", path)
        shapes = {}
        for name, item in file.items():
            if isinstance(item, h5py.Dataset):
                full = not item.attrs.get("MATLAB_empty", 0)
                if item.ndim == 2 and item.dtype.kind in "iufb" and full:
                    shapes[name] = item.shape[::-1]
            elif "MATLAB_sparse" in item.attrs:
                columns = item["jc"].size - 1
                shapes[name] = (int(item.attrs["MATLAB_sparse"]), columns)
        key = chosen(path, shapes, key, list(file))
        X = _matrix(path, file[key], shapes[key], limit)
        for name in LABELS:
            fits = sorted(shapes.get(name, ())) == sorted([1, X.shape[0]])
            if fits and name != key and not hasattr(file[name], "keys"):
                return X, np.asarray(file[name][()]).ravel()
    return X, None


def _matrix(path: Path, item: Any, shape: tuple[int, int], limit: int) -> Any:
    """Return a matrix of MATLAB's, which lies by columns."""
    if not hasattr(item, "keys"):
        check_size(path, item.dtype.itemsize * item.size, limit)
        return np.ascontiguousarray(item[()].T)
    check_size(path, 16 * item["jc"].size + 8 * shape[0], limit)
    if "data" not in item:  # nothing is stored of a matrix of zeros
        return csr_array(shape)
    check_size(path, 24 * item["data"].size, limit)
    parts = [item[name][()] for name in ("data", "ir", "jc")]
    return csr_array(checked_sparse(path, parts, shape, csc_array))


def read_h5ad(
    path: Path, key: str | None, id: str | None, label: str | None, limit: int
) -> dict[str, Any]:
    """Return the cells of an annotated data set as a table.

    Parameters
    ----------
    path : Path
        The file.
    key : str, optional
        What to read: "X", or the name of an entry of obsm or of layers; by default
        X_pca if it is there, as in scanpy, else X.
    id, label : str, optional
        Columns of obs.
    limit : int
        Bytes that the matrix may take.

    Returns
    -------
    dict
        What a table is made of: values, names, ids, id_name, labels, notes, embedded.
    """
    anndata = needed("anndata", path)
    with opened(path, "an H5AD file") as file:
        if "X" not in file and "obsm" not in file:
            raise FileError(f"{path} is not an H5AD file: it has neither X nor obsm.")
        inside = {f"obsm/{name}" for name in file.get("obsm", ())}
        inside |= {f"layers/{name}" for name in file.get("layers", ())}
        place, notes = _representation(path, file, key, inside)
        _check_item(path, file[place], limit)
        _check_obs(path, file, limit)
        values = _rows(anndata.io.read_elem(file[place]))
        obs = anndata.io.read_elem(file["obs"])
        if values.ndim != 2 or values.shape[0] != len(obs):
            raise FileError(
                f"{path}: {place} has shape {values.shape}, and obs has {len(obs)} "
                "rows."
            )
        embedded = place.startswith("obsm/")
        names = None
        if not embedded and "var" in file:
            names = list(map(str, anndata.io.read_elem(file["var"]).index))
    if names is not None and len(names) != values.shape[1]:
        raise FileError(
            f"{path}: {place} has {values.shape[1]} columns, var {len(names)}."
        )
    held = {"values": values, "names": names, "notes": notes, "embedded": embedded}
    return _annotations(path, obs, id, label) | held


def _rows(values: Any) -> Any:
    """Return what anndata has read as an array, or in compressed rows."""
    if not is_sparse(values):
        return np.asarray(values)
    rows = csr_array(values)
    rows.sum_duplicates()
    return rows


def _annotations(
    path: Path, obs: Any, id: str | None, label: str | None
) -> dict[str, Any]:
    """Return names of the cells and labels, as parts of a table."""
    if id is None:
        ids = obs.index.astype(str).to_numpy(dtype=object)
        taken = {"ids": ids, "id_name": "cell"}
    else:
        taken = {"ids": _of_obs(path, obs, id), "id_name": id}
    if label is not None:
        taken["labels"] = _of_obs(path, obs, label)
    return taken


def _representation(
    path: Path, file: Any, key: str | None, inside: set[str]
) -> tuple[str, list[str]]:
    if key is None:
        if "obsm/X_pca" in inside:
            note = "Cells are described by obsm/X_pca (--key X takes the matrix itself)"
            return "obsm/X_pca", [f"{note}."]
        if "X" not in file:
            raise FileError(f"{path} has no X; name one of {listed(inside)} by --key.")
        return "X", []
    wanted = (key, f"obsm/{key}", f"layers/{key}")
    found = [place for place in wanted if place in inside or place == "X" == key]
    if not found or found[0] not in file:
        raise FileError(
            f"{path} has no {key!r} in obsm or layers; it has X, "
            f"{listed(sorted(inside), 10)}."
        )
    return found[0], []


def _check_item(path: Path, item: Any, limit: int) -> None:
    """Refuse a matrix that is too large, or whose indices lead out of it."""
    if not hasattr(item, "keys"):
        check_size(path, item.dtype.itemsize * item.size, limit)
        if item.dtype.kind not in "iufb":
            raise FileError(f"{path}: {item.name} holds {item.dtype}, not numbers.")
        return
    if "data" not in item or "shape" not in item.attrs:
        raise FileError(f"{path}: {item.name} is neither a matrix nor sparse.")
    shape = tuple(int(length) for length in item.attrs["shape"])
    check_size(path, 24 * item["data"].size + 16 * max(shape), limit)
    kind = csr_array if "csr" in str(item.attrs["encoding-type"]) else csc_array
    parts = [item[name][()] for name in ("data", "indices", "indptr")]
    checked_sparse(path, parts, shape, kind)


def _check_obs(path: Path, file: Any, limit: int) -> None:
    """Refuse annotations that are too large."""
    h5py = needed("h5py", path)
    for name in ("obs", "var"):
        if name not in file or not isinstance(file[name], h5py.Group):
            if name == "obs":
                raise FileError(f"{path} is not an H5AD file: it has no obs.")
            continue
        sizes: list[int] = []
        file[name].visititems(
            lambda _, item, sizes=sizes: sizes.append(
                item.size * max(item.dtype.itemsize, 64)
                if isinstance(item, h5py.Dataset) and item.size
                else 0
            )
        )
        check_size(f"{path}, {name}", sum(sizes), limit)


def _of_obs(path: Path, obs: Any, name: str) -> Any:
    if name not in obs:
        raise FileError(
            f"{path} has no column {name!r} in obs; it has {listed(obs.columns, 10)}."
        )
    column = obs[name]
    held = np.empty(len(column), dtype=object)
    held[:] = [None if void else str(value)
               for value, void in zip(column, column.isna(), strict=True)]  # fmt: skip
    return held


def read_cool(uri: FilePath, limit: int) -> tuple[csr_array, list[str]]:
    """Return the contacts of a COOL file as a symmetric matrix.

    Parameters
    ----------
    uri : str
        The file; of a file with several resolutions, ``FILE::/resolutions/10000``.
    limit : int
        Bytes that the matrix may take.

    Returns
    -------
    matrix : csr_array
        Contacts, both halves.
    names : list of str
        The bins, as ``chr1:0-10000``.
    """
    cooler = needed("cooler", uri)
    path, group = parts(uri)
    with opened(path, "a COOL file") as file:
        root = _map(path, file, group)
        n, entries = root["bins/start"].size, root["pixels/count"].size
        check_size(path, 64 * entries + 64 * n, limit)
        i, j = (root[f"pixels/bin{end}_id"][()] for end in (1, 2))
        count = root["pixels/count"][()].astype(np.float64)
        if not i.size == j.size == count.size:
            raise FileError(f"{path} is damaged: its columns differ in length.")
        if i.size and not (min(i.min(), j.min()) >= 0 and max(i.max(), j.max()) < n):
            raise FileError(f"{path} is damaged: a bin of its pixels is none of {n}.")
        stored = str(root.attrs.get("storage-mode", HALF))
        bins = cooler.Cooler(f"{path}::{group or '/'}").bins()[
            ["chrom", "start", "end"]
        ][:]
    if stored == HALF:
        off = i != j
        i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
        count = np.concatenate([count, count[off]])
    S = csr_array((count, (i, j)), shape=(n, n))
    names = [
        f"{chrom}:{start}-{end}"
        for chrom, start, end in bins.itertuples(index=False, name=None)
    ]
    return S, names


def _map(path: Path, file: Any, group: str) -> Any:
    """Return the map of contacts that is named in a file, if it has all its parts."""
    if not group and "resolutions" in file:
        places = sorted(file["resolutions"], key=lambda name: (len(name), name))
        raise FileError(
            f"{path} has several resolutions ({listed(places, 10)}); name one as "
            f"{path}::/resolutions/{places[0]}."
        )
    if group and group not in file:
        raise FileError(f"{path} has no {group}.")
    root = file[group or "/"]
    for part in PARTS:
        if part not in root:
            raise FileError(f"{path} is not a COOL file: it has no {part}.")
    return root


def write_weights(
    path: FilePath, group: str, name: str, weights: Any, facts: dict[str, Any]
) -> None:
    """Write the weights of bins into a COOL file, as cooler's balancing does.

    Parameters
    ----------
    path : path
        A copy of the file, to change.
    group : str
        Where in the file the map is.
    name : str
        Name of the column, by cooler's habit ``weight``.
    weights : array of shape (n_bins,)
        What contacts are multiplied with; not a number for bins that were left out.
    facts : dict
        Numbers and words to keep with it.
    """
    h5py = needed("h5py", path)
    with h5py.File(path, "r+") as file:
        bins = file[group or "/"]["bins"]
        if name in bins:
            del bins[name]
        made = bins.create_dataset(
            name, data=weights, compression="gzip", compression_opts=6
        )
        made.attrs.update(facts)
