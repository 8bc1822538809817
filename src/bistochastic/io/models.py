"""Saved models: arrays and JSON in one archive, which no reader has to trust."""

import json
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, issparse

import bistochastic
from bistochastic.core.errors import FileError, InputError, listed
from bistochastic.io.arrays import Archive
from bistochastic.io.limits import memory_limit
from bistochastic.io.writing import replacing
from bistochastic.neighbors import Points

FORMAT = 1  # raised when an older reader could not read what is written
ABOUT = "model.json"
LONGEST = 1 << 26  # bytes of JSON
PRIVATE = ("_points", "_n_others")  # what `predict` needs besides fitted attributes


def save(estimator, path, *, extra=None, force=False):
    """Write a fitted estimator as arrays and JSON.

    Parameters
    ----------
    estimator : estimator
        One of this library's.
    path : path
        Where to write.
    extra : dict, optional
        More to keep with it: numbers, texts, lists and arrays.
    force : bool
        Whether a file that is there may be replaced.

    See Also
    --------
    load : Reads it again.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bistochastic import ANCMM
    >>> from bistochastic.io import load, save
    >>> X = load_iris().data
    >>> model = ANCMM(3).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "iris.model")
    ...     again = load(Path(folder) / "iris.model")
    >>> bool((again.predict(X) == model.labels_).all())
    True
    """
    name = type(estimator).__name__
    if type(estimator) is not _classes().get(name):
        raise InputError(
            f"{name} is not an estimator of bistochastic ({listed(_classes(), 9)}); "
            "joblib.dump saves others."
        )
    held = {}
    attributes = {
        key: _packed(value, f"{name}.{key}", held)
        for key, value in vars(estimator).items()
        if not key.startswith("_") or key in PRIVATE
    }
    about = {
        "format": FORMAT,
        "bistochastic": bistochastic.__version__,
        "estimator": name,
        "attributes": attributes,
        "extra": _packed(extra or {}, "extra", held),
    }
    with replacing(path, force) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(ABOUT, json.dumps(about, allow_nan=False))
        for key, value in held.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)


def load(path, *, max_memory=None):
    """Read an estimator that `save` wrote; nothing in the file is run.

    Parameters
    ----------
    path : path
        The file.
    max_memory : int, optional
        Bytes that an array of it may take; half of the memory there is by default.

    Returns
    -------
    estimator
        Fitted as it was.

    See Also
    --------
    save : Writes it.
    """
    return load_with_extra(path, max_memory=max_memory)[0]


def load_with_extra(path, *, max_memory=None):
    """Read an estimator and what was kept with it.

    Parameters
    ----------
    path : path
        The file.
    max_memory : int, optional
        Bytes that an array of it may take; half of the memory there is by default.

    Returns
    -------
    estimator
        Fitted as it was.
    extra : dict
        What `save` was given.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path}: there is no such file.")
    if not zipfile.is_zipfile(path):
        raise FileError(f"{path} is not a model of bistochastic, or is cut off.")
    with Archive(path, memory_limit(max_memory)) as archive:
        about = _about(path, archive)
        name = about["estimator"]
        if name not in _classes():
            raise FileError(f"{path} holds a {name!r}, which bistochastic has not.")
        try:
            estimator = _classes()[name]()
            attributes = {
                key: _unpacked(value, archive)
                for key, value in about["attributes"].items()
            }
            extra = _unpacked(about["extra"], archive)
            _fill(estimator, attributes)
        except FileError:
            raise
        except Exception as error:
            raise FileError(
                f"{path} is damaged: {type(error).__name__}: {error}"
            ) from None
    return estimator, extra


def _about(path, archive):
    """Return what the archive says of itself, if this version can read it."""
    try:
        about = json.loads(archive.text(ABOUT, LONGEST))
        version, writer = int(about["format"]), str(about["bistochastic"])
    except FileError as error:
        raise FileError(f"{path} is not a model of bistochastic. ({error})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileError(f"{path} is damaged: {ABOUT} cannot be read.") from None
    if version > FORMAT:
        raise FileError(
            f"{path} was written by bistochastic {writer} in format {version}; this "
            f"version, {bistochastic.__version__}, reads up to {FORMAT}. Update "
            "bistochastic."
        )
    wanted = {"estimator": str, "attributes": dict, "extra": dict}
    for key, kind in wanted.items():
        if not isinstance(about.get(key), kind):
            raise FileError(f"{path} is damaged: {ABOUT} has no {key}.")
    return about


def _fill(estimator, attributes):
    """Set parameters and fitted attributes, checked as far as they can be."""
    parameters = estimator.get_params(deep=False)
    given = {key: attributes.pop(key) for key in parameters if key in attributes}
    estimator.set_params(**given)
    if hasattr(estimator, "_check"):
        estimator._check()
    for key, value in attributes.items():
        if key not in PRIVATE and not (key.endswith("_") and not key.startswith("_")):
            raise ValueError(f"an attribute {key!r}")
        setattr(estimator, key, value)
    labels = attributes.get("labels_")
    if labels is not None:
        good = labels.ndim == 1 and labels.dtype.kind == "i" and labels.size
        points = attributes.get("_points")
        if not good or labels.min() < 0 or labels.max() >= labels.size:
            raise ValueError("labels that are none")
        if points is not None and points.X.shape[0] != labels.size:
            raise ValueError("labels and points differ in number")


def _classes():
    """Return the estimators that may be saved, by name."""
    names = bistochastic.ESTIMATORS
    return {
        name: getattr(import_module(module), name)
        for name, module in names.items()
        if name[0].isupper() and name != "NumberEstimate"
    }


def _packed(value, where, held):
    """Return a value as JSON, its arrays put aside under numbers."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [_packed(part, where, held) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [_packed(part, where, held) for part in value]}
    if isinstance(value, dict):
        pairs = [[key, _packed(part, where, held)] for key, part in value.items()]
        return {"dict": pairs}
    if isinstance(value, Points):
        parts = {"X": value.X, "metric": value.metric, "center": value.center}
        return {"points": _packed(parts, where, held)}
    if issparse(value):
        S = csr_array(value)
        parts = [S.data, S.indices, S.indptr]
        packed = [_packed(part, where, held) for part in parts]
        return {"csr": [*packed, list(S.shape)]}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return {"objects": [_packed(part, where, held) for part in value.tolist()]}
    if isinstance(value, np.ndarray | np.generic):
        name = f"a{len(held)}"
        held[name] = np.asarray(value)
        return {"scalar" if isinstance(value, np.generic) else "array": name}
    raise InputError(
        f"{where} is a {type(value).__name__}, which cannot be saved as arrays and "
        "JSON. Use a metric by its name and a whole number as random_state, or "
        "joblib.dump, which keeps anything and runs code when it is read."
    )


def _unpacked(value, archive):
    """Return the value that was packed."""
    if isinstance(value, list):
        return [_unpacked(part, archive) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "float":
        return float(held)
    if kind == "tuple":
        return tuple(_unpacked(part, archive) for part in held)
    if kind == "dict":
        return {key: _unpacked(part, archive) for key, part in held}
    if kind == "points":
        return Points(**_unpacked(held, archive))
    if kind == "csr":
        *parts, shape = held
        parts = tuple(_unpacked(part, archive) for part in parts)
        S = csr_array(parts, shape=tuple(shape))
        S.check_format(full_check=True)
        return S
    if kind == "objects":
        made = np.empty(len(held), dtype=object)
        made[:] = [_unpacked(part, archive) for part in held]
        return made
    if kind not in ("array", "scalar") or held not in archive.names:
        raise ValueError(f"no {kind} {held!r}")
    found = archive.read(held)
    return found[()] if kind == "scalar" else found
