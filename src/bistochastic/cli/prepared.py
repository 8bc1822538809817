"""From the columns of a table to coordinates: filled, one-hot, scaled."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from bistochastic.core.errors import InputError, listed, several

APART = 0.5**0.5  # of a category's column, so that two texts are at distance one
SCALES = ("zscore", "minmax", "none")
FILLS = {"median": np.nanmedian, "mean": np.nanmean}


@dataclass(eq=False)
class Preparation:
    """What is done to the columns of a table, learned from one and kept for others.

    Attributes
    ----------
    names : list of str
        Columns, as they are read.
    texts : dict
        The texts of columns that are categories, by name.
    scale : {"zscore", "minmax", "none"}
        What is done to the columns of numbers.
    fill : dict
        What stands for missing values, by name of the column.
    shift, factor : array
        What is subtracted from the columns of numbers, and what they are divided by.
    key : str, optional
        What was read of the file, if it has several arrays.
    """

    names: list
    texts: dict
    scale: str
    fill: dict = field(default_factory=dict)
    shift: Any = None
    factor: Any = None
    key: Any = None

    def kept(self):
        """Return what is saved with a model."""
        return dict(vars(self))


def scale_of(table, asked):
    """Return how the columns are scaled, and a sentence that says so.

    Parameters
    ----------
    table : Table
        The table.
    asked : str or None
        What was asked for.

    Returns
    -------
    scale : str
        One of the scales.
    note : str
        What was decided, for people.
    """
    sparse = issparse(table.values)
    if asked is None and (sparse or table.embedded):
        what = "The matrix is sparse" if sparse else "These are coordinates"
        return "none", f"{what}: columns are taken as they are (--scale)."
    if sparse and asked != "none":
        raise InputError(
            f"--scale {asked} would fill the zeros of a sparse matrix; --scale none "
            "leaves them."
        )
    said = {
        "zscore": "Columns are scaled to mean 0 and deviation 1 (--scale none: as they "
        "are).",
        "minmax": "Columns are scaled to [0, 1].",
        "none": "Columns are taken as they are.",
    }
    return asked or "zscore", said[asked or "zscore"]


def learned(path, table, *, scale, impute=None, drop_missing=False, key=None):
    """Learn from a table what to do to its columns, and do it.

    Parameters
    ----------
    path : path
        The file, for messages.
    table : Table
        The table; its values may be changed.
    scale : str
        One of the scales.
    impute : {"median", "mean"}, optional
        What to put where values are missing.
    drop_missing : bool
        Whether rows with missing values are left out.
    key : str, optional
        What was read of the file.

    Returns
    -------
    preparation : Preparation
        For other tables with these columns.
    X : array or sparse matrix
        Coordinates of the rows that are kept.
    kept : array of bool
        Which these are.
    notes : list of str
        What was decided, for people.
    """
    made = Preparation(
        table.names, {c.name: c.texts for c in table.columns if c.texts}, scale, key=key
    )
    X, notes = table.values, []
    if issparse(X):
        return made, X, np.ones(X.shape[0], dtype=bool), notes
    X, kept = _without_missing(path, table, X, impute, drop_missing, made, notes)
    X = _writable(X) if scale != "none" or made.texts else X
    numbers = np.array([c.texts is None for c in table.columns])
    if scale != "none":
        made.shift, made.factor, flat = _spread(X, numbers, scale)
        if flat.size:
            names = listed((repr(table.names[place]) for place in flat), 8)
            verb = "is" if flat.size == 1 else "are"
            notes.append(
                f"{several(flat.size, 'column')} ({names}) {verb} the same in every "
                "row, and told nothing apart."
            )
    return made, _coordinates(X, numbers, made), kept, notes


def applied(path, table, made, *, drop_missing=False):
    """Do to a table what was learned from another.

    Parameters
    ----------
    path : path
        The file, for messages.
    table : Table
        The table, with the same columns; its values may be changed.
    made : Preparation
        What was learned.
    drop_missing : bool
        Whether rows with missing values are left out.

    Returns
    -------
    X : array or sparse matrix
        Coordinates of the rows that are kept.
    kept : array of bool
        Which these are.
    notes : list of str
        What was decided, for people.
    """
    X, notes = table.values, []
    if issparse(X):
        return X, np.ones(X.shape[0], dtype=bool), notes
    X = _writable(X) if made.scale != "none" or made.texts else X
    for at, column in enumerate(table.columns):
        _recoded(path, X[:, at], column, made.texts.get(column.name), notes)
    fill = [made.fill.get(name) for name in table.names]
    if any(value is not None for value in fill):
        X = _writable(X)
        for at, value in enumerate(fill):
            if value is not None:
                X[np.isnan(X[:, at]), at] = value
    kept = _complete(path, table, X, drop_missing, notes)
    numbers = np.array([name not in made.texts for name in table.names])
    return _coordinates(X[kept] if not kept.all() else X, numbers, made), kept, notes


def _recoded(path, values, column, texts, notes):
    """Give texts of a column the numbers that they had before, in place."""
    if (column.texts is None) != (texts is None) and not np.isnan(values).all():
        was, now = "texts", "numbers"
        if texts is None:
            was, now = now, was
        raise InputError(
            f"{path}: column {column.name!r} has {now}, and had {was} when the model "
            "was made."
        )
    if not texts or not column.texts:
        return
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([place.get(text, -1) for text in column.texts], dtype=float)
    there = ~np.isnan(values)
    values[there] = codes[values[there].astype(np.int64)]
    if new := [text for text in column.texts if text not in place]:
        notes.append(
            f"Column {column.name!r} has texts that were not there when the model was "
            f"made ({listed(map(repr, new))}); they are like none of the others."
        )


def _without_missing(path, table, X, impute, drop_missing, made, notes):
    """Fill or leave out what is missing."""
    void = np.isnan(X) if X.dtype.kind == "f" else np.zeros((0, X.shape[1]), bool)
    if impute and void.any():
        X = _writable(X)
        for at in np.flatnonzero(void.any(axis=0)):
            column = table.columns[at]
            if void[:, at].all():
                raise InputError(
                    f"{path}: column {column.name!r} has no values at all; leave it "
                    f"out (--drop {column.name!r})."
                )
            if column.texts:  # a category of its own
                value = float(len(column.texts))
                made.texts[column.name] = (*column.texts, "")
            else:
                value = float(FILLS[impute](X[:, at]))
            made.fill[column.name] = value
            X[void[:, at], at] = value
        number = int(void.sum())
        notes.append(f"{several(number, 'missing value')} filled by the {impute}.")
    kept = _complete(path, table, X, drop_missing, notes)
    return X[kept] if not kept.all() else X, kept


def _complete(path, table, X, drop_missing, notes):
    """Return which rows have all values; refuse others unless they may be dropped."""
    if X.dtype.kind != "f":
        return np.ones(X.shape[0], dtype=bool)
    infinite = np.argwhere(np.isinf(X))
    if infinite.size:
        row, at = infinite[0]
        raise InputError(
            f"{path}: row {row + 1} of column {table.names[at]!r} is infinite, and "
            "values must be finite."
        )
    void = np.isnan(X)
    kept = ~void.any(axis=1)
    if kept.all():
        return kept
    lost = int((~kept).sum())
    if not kept.any():
        raise InputError(
            f"{path}: every row has a missing value. Fill them (--impute median), or "
            f"leave out a column ({_worst(table, void)})."
        )
    if not drop_missing:
        row, at = np.argwhere(void)[0]
        raise InputError(
            f"{path}: row {row + 1} of column {table.names[at]!r} is missing; in all "
            f"{several(int(void.sum()), 'value')} of {several(lost, 'row')} and "
            f"{several(int(void.any(axis=0).sum()), 'column')}. Fill them (--impute "
            "median), leave out the rows (--drop-missing) or a column "
            f"({_worst(table, void)})."
        )
    notes.append(f"{several(lost, 'row')} with missing values left out.")
    return kept


def _worst(table, void):
    counts = void.sum(axis=0)
    at = int(counts.argmax())
    return f"--drop {table.names[at]!r}, which lacks {counts[at]:,}"


def _spread(X, numbers, scale):
    """Return what to subtract and divide by, and the columns that are constant."""
    places = np.flatnonzero(numbers)
    shift, factor = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for at in places:
        column = X[:, at].astype(np.float64)
        if scale == "zscore":
            top = max(np.abs(column).max(initial=0.0), 1e-300)  # no overflow
            shift[at] = top * (column / top).mean()
            factor[at] = top * ((column - shift[at]) / top).std()
        else:
            shift[at] = column.min()
            factor[at] = column.max() - shift[at]
        if not factor[at] > 1e-14 * np.abs(column).max(initial=0.0):
            factor[at] = 0.0
    flat = places[factor[places] == 0]
    factor[flat] = 1.0
    return shift, factor, flat


def _coordinates(X, numbers, made):
    """Return scaled columns, and for each category a column of its own."""
    if made.shift is not None:
        if len(made.shift) != X.shape[1]:
            raise InputError("The model was made of another number of columns.")
        X -= made.shift.astype(X.dtype, copy=False)
        X /= made.factor.astype(X.dtype, copy=False)
    if numbers.all():
        return X
    parts = [X[:, numbers]]
    for at in np.flatnonzero(~numbers):
        texts = made.texts[made.names[at]]
        parts.append(APART * (X[:, [at]] == np.arange(len(texts))))
    return np.hstack(parts)


def _writable(X):
    """Return values as numbers with a point, in an array that may be changed."""
    kind = np.float32 if X.dtype == np.float32 else np.float64
    if X.dtype == kind and X.flags.writeable:
        return X
    return np.array(X, dtype=kind)
