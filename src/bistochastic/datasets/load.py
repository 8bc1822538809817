"""The sets of Table 2: found in a folder, with scikit-learn, or fetched when asked."""

import hashlib
import os
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from bistochastic.core.errors import FileError, InputError, listed

FOLDER = "BISTOCHASTIC_DATA"
TOY = "moons"
PAPER = (
    "tr41", "orl", "arsmall", "letter", "yale", "wine", "feret", "movement", "ecoli",
    "yeast",
)  # fmt: skip


@cache
def catalogue() -> dict[str, Any]:
    """Return what is known of each set, by name."""
    held = files("bistochastic.datasets").joinpath("catalogue.toml")
    return tomllib.loads(held.read_text(encoding="utf-8"))


def load(
    name: str, *, folder: Any = None, download: bool = False, seed: int = 1
) -> Any:
    """Load a set of the paper.

    Parameters
    ----------
    name : str
        One of Table 2 (tr41, orl, arsmall, letter, yale, wine, feret, movement, ecoli,
        yeast), a variant (letter_full, yale_32x32, feret_dup, yeast_1470), or "moons",
        the toy of Table 1.
    folder : path, optional
        Where NAME.npz files with X and y are; by default what the environment variable
        BISTOCHASTIC_DATA names. Wine comes with scikit-learn.
    download : bool, default=False
        Whether to fetch a public copy from OpenML, into scikit-learn's data home, if
        the set is not there. Sets that may not be passed on are never fetched.
    seed : int, default=1
        Seed of the toy.

    Returns
    -------
    Bunch
        data, target (from 0), name, title, kind ("table", "faces" or "text"), and what
        is known of it: source, terms, doubts, printed (objects, attributes, classes as
        the paper has them).

    Raises
    ------
    FileError
        If the set is not there, with where to get it and under which terms, or if it
        is another one than its name says.

    Examples
    --------
    >>> from bistochastic.datasets import load
    >>> wine = load("wine")
    >>> wine.data.shape, wine.kind
    ((178, 13), 'table')
    """
    from sklearn.utils import Bunch

    if name == TOY:
        from sklearn.datasets import make_moons

        X, y = make_moons(200, noise=0.13, random_state=seed)
        return Bunch(data=X, target=y, name=TOY, title="Two moons", kind="shapes")
    if name not in catalogue():
        names = listed([TOY, *catalogue()], 20)
        raise InputError(f"There is no set {name!r}; there are {names}.")
    known = catalogue()[name]
    X, y = _found(name, known, folder, download)
    _check(name, known, X, y)
    return Bunch(data=X, target=y, name=name, **known)


def digest(X: Any) -> str:
    """Return a checksum of the rows of X that does not depend on their order."""
    X = np.ascontiguousarray(X, dtype="<f8")
    return hashlib.sha256(X[np.lexsort(X.T[::-1])].tobytes()).hexdigest()


def _found(
    name: str, known: dict[str, Any], folder: Any, download: bool
) -> tuple[Any, Any]:
    """Return points and labels, from the first place that has them."""
    folder = folder or os.environ.get(FOLDER)
    file = Path(folder) / f"{name}.npz" if folder else None
    if file is not None and file.is_file():
        with np.load(file, allow_pickle=False) as held:
            return held["X"].astype(np.float64), held["y"].astype(np.int64)
    if name == "wine":
        from sklearn.datasets import load_wine

        return load_wine(return_X_y=True)
    if download and "openml" in known:
        return _fetched(name, known["openml"])
    where = f"{file} is not there" if file else f"{FOLDER} names no folder"
    copy = "there is no public copy that could be fetched"
    if "openml" in known:
        copy = f"load({name!r}, download=True) fetches {known['openml']} of OpenML"
    raise FileError(
        f"The set {name!r} is missing: {where}, and {copy}. Source: {known['source']} "
        f"Terms: {known['terms']} Put {name}.npz, with arrays X and y, into a folder "
        f"and set {FOLDER} to it."
    )


def _fetched(name: str, public: str) -> tuple[Any, Any]:
    """Fetch a set from OpenML, or say why that did not work."""
    from sklearn.datasets import fetch_openml

    try:
        held = fetch_openml(public, version=1, as_frame=False, parser="liac-arff")
    except Exception as error:  # of the network, or of the server
        raise FileError(f"{public} of OpenML could not be fetched: {error}") from None
    X = held.data.toarray() if hasattr(held.data, "toarray") else held.data
    _, y = np.unique(held.target, return_inverse=True)
    X = np.asarray(X, dtype=np.float64)
    if name == "letter":  # the first 30 rows of each class
        rows = np.concatenate([np.flatnonzero(y == c)[:30] for c in range(26)])
        X, y = X[rows], y[rows]
    return X, y.astype(np.int64)


def _check(name: str, known: dict[str, Any], X: Any, y: Any) -> None:
    """Refuse a set that is another one than its name says."""
    sizes = np.bincount(y)
    found = [int(sizes.min()), int(sizes.max())]
    right = list(X.shape) == known["shape"] and sizes.size == known["classes"]
    if not right or found != known["sizes"] or digest(X) != known["digest"]:
        raise FileError(
            f"What was found as {name!r} is another set: its shape is {X.shape}, with "
            f"{sizes.size} classes, or its values differ from those of the catalogue "
            f"({known['shape']}, {known['classes']} classes)."
        )
