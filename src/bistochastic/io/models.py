"""Saved models: arrays and JSON in one archive, which no reader has to trust."""

import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

from array_api_compat import is_dask_array, is_torch_array

import bistochastic
from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import FileError, InputError, listed
from bistochastic.io.archive import ABOUT, described, pack, unpack
from bistochastic.io.arrays import Archive
from bistochastic.io.memory_limit import memory_limit
from bistochastic.io.model_checks import check
from bistochastic.io.paths import FilePath, checked_file
from bistochastic.io.writing import replacing

FORMAT = 1  # version of the format; raised when older readers cannot read it
PRIVATE = (
    "_points",
    "_n_others",
    "_row_sums",
)  # what `predict` needs besides fitted attributes


def save(
    estimator: Any,
    path: FilePath,
    *,
    extra: dict[str, Any] | None = None,
    force: bool = False,
) -> None:
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
    attributes = {
        key: on_cpu(value) if is_torch_array(value) or is_dask_array(value) else value
        for key, value in estimator.__getstate__().items()
        if not key.startswith("_") or key in PRIVATE
    }
    if attributes.get("device") is not None:
        attributes["device"] = str(attributes["device"])
    about = {
        "format": FORMAT,
        "bistochastic": bistochastic.__version__,
        "estimator": name,
    }
    held = {"attributes": attributes, "extra": extra or {}}
    with replacing(path, force) as stream:
        pack(stream, held, about)


def load(path: FilePath, *, max_memory: float | None = None) -> Any:
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

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bistochastic import ANCMM
    >>> from bistochastic.io import load, save
    >>> model = ANCMM(3).fit(load_iris().data)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "iris.model")
    ...     load(Path(folder) / "iris.model").n_clusters_
    3
    """
    return load_with_extra(path, max_memory=max_memory)[0]


def load_with_extra(
    path: FilePath, *, max_memory: float | None = None
) -> tuple[Any, dict[str, Any]]:
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
    path = checked_file(path)
    if not zipfile.is_zipfile(path):
        raise FileError(f"{path} is not a model of bistochastic, or is cut off.")
    with Archive(path, memory_limit(max_memory)) as archive:
        about = _about(path, archive)
        name = about["estimator"]
        if name not in _classes():
            raise FileError(f"{path} holds a {name!r}, which bistochastic has not.")
        try:
            estimator = _classes()[name]()
            held = unpack(archive, about)
            _fill(estimator, held["attributes"])
            extra = dict(held["extra"])
        except FileError:
            raise
        except InputError as error:
            raise FileError(f"{path} is damaged: {error}") from None
        except Exception as error:
            raise FileError(
                f"{path} is damaged: {type(error).__name__}: {error}"
            ) from None
    return estimator, extra


def _about(path: Path, archive: Archive) -> dict[str, Any]:
    """Return what the archive says of itself, if this version can read it."""
    try:
        about = described(archive)
        version, writer = int(about["format"]), str(about["bistochastic"])
    except FileError as error:
        raise FileError(f"{path} is not a model of bistochastic. ({error})") from None
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        raise FileError(f"{path} is damaged: {ABOUT} cannot be read.") from None
    if version > FORMAT:
        raise FileError(
            f"{path} was written by bistochastic {writer} in format {version}; this "
            f"version, {bistochastic.__version__}, reads up to {FORMAT}. Update "
            "bistochastic."
        )
    if not isinstance(about.get("estimator"), str):
        raise FileError(f"{path} is damaged: {ABOUT} names no estimator.")
    return about


def _fill(estimator: Any, attributes: dict[str, Any]) -> None:
    """Set parameters and fitted attributes, checked for all that reads them."""
    parameters = estimator.get_params(deep=False)
    given = {key: attributes.pop(key) for key in parameters if key in attributes}
    estimator.set_params(**given)
    estimator._check()
    for key, value in attributes.items():
        if key not in PRIVATE and not (key.endswith("_") and not key.startswith("_")):
            raise InputError(
                f"{key!r} is no attribute of a {type(estimator).__name__}."
            )
        setattr(estimator, key, value)
    if attributes:
        check(estimator, attributes)


def _classes() -> dict[str, Any]:
    """Return the estimators that may be saved, by name."""
    names = bistochastic.ESTIMATORS
    return {
        name: getattr(import_module(module), name)
        for name, module in names.items()
        if name[0].isupper() and name != "NumberEstimate"
    }
