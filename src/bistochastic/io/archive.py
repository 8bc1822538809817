"""Values as arrays and JSON in one archive, and back."""

import json
import zipfile
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_array

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError
from bistochastic.io.arrays import Archive
from bistochastic.neighbors.points import Points

ABOUT = "about.json"
LONGEST = 1 << 29  # the most bytes of JSON in an archive


def pack(stream: IO[bytes], value: Any, about: dict[str, Any] | None = None) -> None:
    """Write a value.

    Parameters
    ----------
    stream : file
        Where to.
    value : object
        Numbers, texts, arrays, sparse matrices, and lists, tuples and dicts of such.
    about : dict, optional
        What can be read before anything else.
    """
    held: dict[str, Any] = {}
    made = {"value": packed(value, "value", held)} | (about or {})
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(ABOUT, json.dumps(made, allow_nan=False))
        for key, array in held.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def described(archive: Archive) -> dict[str, Any]:
    """Return what `pack` was told of the value, and the value still packed."""
    return json.loads(archive.text(ABOUT, LONGEST))


def unpack(archive: Archive, about: dict[str, Any]) -> Any:
    """Return the value.

    Parameters
    ----------
    archive : Archive
        What `pack` wrote.
    about : dict
        What `described` returned.

    Returns
    -------
    object
        The value.
    """
    return unpacked(about["value"], archive)


def packed(value: Any, where: str, held: dict[str, Any]) -> Any:
    """Return a value as JSON, its arrays put aside under numbers."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [packed(part, where, held) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [packed(part, where, held) for part in value]}
    if isinstance(value, dict):
        pairs = [
            [key, packed(part, f"{where}.{key}", held)] for key, part in value.items()
        ]
        return {"dict": pairs}
    if isinstance(value, Points):
        about = {"X": value.X, "metric": value.metric, "center": value.center}
        return {"points": packed(about, where, held)}
    if is_sparse(value):
        S = csr_array(value)
        parts = [S.data, S.indices, S.indptr]
        return {"csr": [*(packed(p, where, held) for p in parts), list(S.shape)]}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return {"objects": [packed(part, where, held) for part in value.tolist()]}
    if isinstance(value, np.ndarray | np.generic):
        name = f"a{len(held)}"
        held[name] = np.asarray(value)
        return {"scalar" if isinstance(value, np.generic) else "array": name}
    raise InputError(
        f"{where} is a {type(value).__name__}, which cannot be saved as arrays and "
        "JSON. Use a metric by its name and a whole number as random_state, or "
        "joblib.dump, which keeps anything and runs code when it is read."
    )


def unpacked(value: Any, archive: Archive) -> Any:
    """Return the value that was packed."""
    if isinstance(value, list):
        return [unpacked(part, archive) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "float":
        return float(held)
    if kind == "tuple":
        return tuple(unpacked(part, archive) for part in held)
    if kind == "dict":
        return {key: unpacked(part, archive) for key, part in held}
    if kind == "points":
        return Points(**unpacked(held, archive))
    if kind == "csr":
        *parts, shape = held
        parts = tuple(unpacked(part, archive) for part in parts)
        S = csr_array(parts, shape=tuple(shape))
        S.check_format(full_check=True)
        return S
    if kind == "objects":
        made = np.empty(len(held), dtype=object)
        made[:] = [unpacked(part, archive) for part in held]
        return made
    if kind not in ("array", "scalar") or held not in archive.names:
        raise ValueError(f"no {kind} {held!r}")
    found = archive.read(held)
    return found[()] if kind == "scalar" else found
