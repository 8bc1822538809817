"""From the columns of a table to coordinates: filled, one-hot, scaled."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from bistochastic.core.errors import InputError, listed, several

APART = 0.5**0.5  # of a category's column, so that two texts are at distance one
SCALES = ("zscore", "minmax", "none")
FILLS = {"median": np.nanmedian, "mean": np.nanmean}
PAIRS = ("precomputed", "affinity")
OUTSIDE = 1.0  # of a column's range: how far beyond it a value is worth a word
LARGEST = 1 << 30  # entries of a sparse matrix that may be filled
LAYOUT = {  # how a file was read, and what says so
    "key": str, "separator": str, "decimal": str, "encoding": str, "header": bool,
    "missing": list | tuple, "thousands": str, "skip": int,
}  # fmt: skip


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
    layout : dict
        How the file is read.
    fill : dict
        What stands for missing values, by name of the column.
    shift, factor : array
        What is subtracted from the columns of numbers, and what they are divided by.
    low, high : array
        The range of each column of numbers.
    """

    names: list
    texts: dict
    scale: str
    layout: dict = field(default_factory=dict)
    fill: dict = field(default_factory=dict)
    shift: Any = None
    factor: Any = None
    low: Any = None
    high: Any = None

    def kept(self):
        """Return what is saved with a model."""
        return dict(vars(self))

    def described(self):
        """Return names of coordinates, and what brings them back to their units.

        Returns
        -------
        names : list of str
            One for each coordinate: numbers first, then each text of each category.
        shift, factor : array
            A coordinate times `factor` plus `shift` is what stood in the file.
        """
        d = len(self.names)
        numbers = [at for at in range(d) if self.names[at] not in self.texts]
        shift = np.zeros(d) if self.shift is None else self.shift
        factor = np.ones(d) if self.factor is None else self.factor
        names = [self.names[at] for at in numbers]
        for name in self.names:
            names += [f"{name} = {text}" for text in self.texts.get(name, ())]
        more = len(names) - len(numbers)
        return (
            names,
            np.concatenate([shift[numbers], np.zeros(more)]),
            np.concatenate([factor[numbers], np.full(more, 1 / APART)]),
        )

    def numbered(self):
        """Tell whether the columns had no names but their numbers."""
        return self.names == [str(i + 1) for i in range(len(self.names))]

    def checked(self, width):
        """Return it, if it can be what it says; raise otherwise.

        Parameters
        ----------
        width : int
            How many coordinates have to come out.

        Returns
        -------
        Preparation
            The same.
        """
        d = len(self.names)
        more = [text for held in self.texts.values() for text in held]
        good = (
            self.scale in SCALES
            and isinstance(self.names, list)
            and all(isinstance(text, str) for text in [*self.names, *more])
            and len(set(self.names)) == d
            and set(self.texts) | set(self.fill) <= set(self.names)
            and d - len(self.texts) + len(more) == width
            and all(np.isfinite(float(value)) for value in self.fill.values())
            and (self.low is None) == (self.high is None)
            and (self.shift is None) == (self.factor is None) == (self.scale == "none")
            and (self.factor is None or bool((self.factor != 0).all()))
        )
        for held in (self.shift, self.factor, self.low, self.high):
            good = good and (
                held is None
                or (
                    (held.shape == (d,) and held.dtype == float)
                    and bool(np.isfinite(held).all())
                )
            )
        self.layout = dict(self.layout)
        for name, value in self.layout.items():
            good = good and (value is None or isinstance(value, LAYOUT[name]))
        good = good and all(isinstance(t, str) for t in self.layout.get("missing", ()))
        if not good:
            raise ValueError("no preparation")
        return self


def scale_of(table, asked, metric):
    """Return how the columns are scaled, and a sentence that says so.

    Parameters
    ----------
    table : Table
        The table.
    asked : str or None
        What was asked for.
    metric : str
        What is measured.

    Returns
    -------
    scale : str
        One of the scales.
    note : str
        What was decided, for people.
    """
    sparse = issparse(table.values)
    if metric in PAIRS:
        if asked not in (None, "none"):
            raise InputError(
                f"--scale {asked}: with --metric {metric} the file holds pairs of "
                "rows, not columns; leave it out."
            )
        return "none", "Columns are taken as they are."
    if asked is None and (sparse or table.embedded):
        what = "The matrix is sparse" if sparse else "These are coordinates"
        return "none", f"{what}: columns are taken as they are (--scale)."
    if sparse and asked != "none":
        raise InputError(
            f"--scale {asked} would fill the zeros of a sparse matrix; --scale none "
            "leaves them."
        )
    what = "Numbers are" if any(c.texts for c in table.columns) else "Columns are"
    said = {
        "zscore": f"{what} scaled to mean 0 and deviation 1 (--scale none: as they "
        "are).",
        "minmax": f"{what} scaled to [0, 1].",
        "none": "Columns are taken as they are.",
    }
    return asked or "zscore", said[asked or "zscore"]


def counting(table):
    """Return a warning if a column only counts the rows.

    Parameters
    ----------
    table : Table
        The table, as it was read or scaled.

    Returns
    -------
    list of str
        What to say.
    """
    X = table.values
    if issparse(X) or X.shape[0] < 10 or table.embedded:
        return []
    found = []
    for at, column in enumerate(table.columns):
        if column.texts is None and np.ptp(np.diff(X[:20, at])) == 0:
            steps = np.diff(X[:, at])
            if steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0):
                found.append(column.name)
    return [
        f"Column {name!r} counts the rows, and is used as a number like the others; if "
        f"it is their name, add --id {name!r}."
        for name in found
    ]


def learned(path, table, *, scale, impute=None, drop_missing=False, layout=None):
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
    layout : dict
        How the file was read.

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
        table.names,
        {c.name: c.texts for c in table.columns if c.texts},
        scale,
        layout or {},
    )
    X, notes = table.values, []
    if issparse(X):
        _check_sparse(path, table)
        return made, X, np.ones(X.shape[0], dtype=bool), notes
    if impute:
        X = _filled(path, table, X, impute, made, notes)
    kept = _complete(path, table, X, drop_missing, notes, LEARNING)
    X = X if kept.all() else X[kept]
    numbers = np.array([c.texts is None for c in table.columns])
    made.low, made.high = (
        np.array(f(axis=0), dtype=np.float64) for f in (X.min, X.max)
    )
    X = _writable(X) if scale != "none" or made.texts else X
    if scale != "none":
        made.shift, made.factor, flat = _spread(X, numbers, scale)
        if flat.size:
            names = listed((repr(table.names[place]) for place in flat), 8)
            one = flat.size == 1
            notes.append(
                f"{several(flat.size, 'column')} ({names}) {'is' if one else 'are'} "
                f"the same in every row, and {'tells' if one else 'tell'} nothing."
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
    X, notes = table.values, list(table.notes)
    if issparse(X):
        _check_sparse(path, table)
        if made.scale == "none" and not made.texts:
            return X, np.ones(X.shape[0], dtype=bool), notes
        if X.shape[0] * X.shape[1] > LARGEST:
            raise InputError(
                f"{path} is sparse, and the model's columns were not; {X.shape} values "
                "are too many to fill the zeros in."
            )
        X = X.toarray()
    X = _writable(X) if made.scale != "none" or made.texts or made.fill else X
    for at, name in enumerate(made.names):
        _recoded(X, at, table.columns[at].texts, name, made, notes)
        if name in made.fill:
            X[np.isnan(X[:, at]), at] = made.fill[name]
    kept = _complete(path, table, X, drop_missing, notes, APPLYING)
    X = X if kept.all() else X[kept]
    numbers = np.array([name not in made.texts for name in made.names])
    notes += _far(X, numbers, kept, made)
    return _coordinates(X, numbers, made), kept, notes


def _recoded(X, at, now, name, made, notes):
    """Give texts of a column the numbers that they had before, in place."""
    texts = made.texts.get(name)
    if texts is None or now is None:
        return
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([place.get(text, -1) for text in now], dtype=float)
    there = ~np.isnan(X[:, at])
    X[there, at] = codes[X[there, at].astype(np.int64)]
    if new := [text for text in now if text not in place]:
        notes.append(
            f"Column {name!r} has texts that were not there when the model was made "
            f"({listed(repr(text[:30]) for text in new)}); they are like none of the "
            "others."
        )


def _far(X, numbers, kept, made):
    """Return a note on rows far outside of what the model has seen."""
    if made.low is None or not X.shape[0]:
        return []
    reach = OUTSIDE * np.where(numbers, made.high - made.low, np.inf)
    outside = (X < made.low - reach) | (X > made.high + reach)
    rows = np.flatnonzero(outside.any(axis=1))
    if not rows.size:
        return []
    first = int(np.flatnonzero(outside[rows[0]])[0])
    row = int(np.flatnonzero(kept)[rows[0]]) + 1
    return [
        f"{several(rows.size, 'row')} far outside of what the model was made of, as "
        f"row {row} by column {made.names[first]!r}: they go to the nearest cluster, "
        "whatever the confidence."
    ]


def _filled(path, table, X, impute, made, notes):
    """Put something where values are missing; learn it of every column."""
    X = _writable(X)
    void = np.isnan(X)
    for at, column in enumerate(table.columns):
        if void[:, at].all():
            raise InputError(
                f"{path}: column {column.name!r} has no values at all; leave it out "
                f"(--drop {column.name!r})."
            )
        if column.texts:  # a category of its own
            value = float(len(column.texts))
            made.texts[column.name] = (*column.texts, "")
        else:
            value = float(FILLS[impute](X[:, at]))
        made.fill[column.name] = value
        X[void[:, at], at] = value
    if number := int(void.sum()):
        notes.append(f"{several(number, 'missing value')} filled by the {impute}.")
    return X


LEARNING = (
    "Fill them (--impute median), leave out the rows (--drop-missing) or a column"
)
APPLYING = "Leave out the rows (--drop-missing), or make the model with --impute"


def _complete(path, table, X, drop_missing, notes, advice):
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
    worst = _worst(table, void) if advice is LEARNING else ""
    if not kept.any():
        cure = "Fill them (--impute median), or leave out a column"
        cure = cure if advice is LEARNING else "Make the model with --impute"
        raise InputError(f"{path}: every row has a missing value. {cure}{worst}.")
    if not drop_missing:
        row, at = np.argwhere(void)[0]
        raise InputError(
            f"{path}: row {row + 1} of column {table.names[at]!r} is missing; in all "
            f"{several(int(void.sum()), 'value')} of {several(lost, 'row')} and "
            f"{several(int(void.any(axis=0).sum()), 'column')}. {advice}{worst}."
        )
    notes.append(f"{several(lost, 'row')} with missing values left out.")
    return kept


def _worst(table, void):
    counts = void.sum(axis=0)
    at = int(counts.argmax())
    return f" (--drop {table.names[at]!r}, which lacks {counts[at]:,})"


def _check_sparse(path, table):
    """Refuse values of a sparse matrix that are not finite."""
    X = table.values
    if X.dtype.kind == "f" and not np.isfinite(X.data).all():
        held = X.tocoo()
        place = int(np.flatnonzero(~np.isfinite(held.data))[0])
        row, at = (int(axis[place]) for axis in held.coords)
        raise InputError(
            f"{path}: row {row + 1} of column {table.names[at]!r} is "
            f"{held.data[place]}, and values must be finite; in a sparse matrix they "
            "cannot be filled."
        )


def _spread(X, numbers, scale):
    """Return what to subtract and divide by, and the columns that are constant."""
    places = np.flatnonzero(numbers)
    shift, factor = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for at in places:
        column = X[:, at].astype(np.float64)
        if scale == "zscore":
            top = max(np.abs(column).max(initial=0.0), 1e-300)  # no overflow
            shift[at] = top * (column / top).mean()
            factor[at] = top * (column / top - shift[at] / top).std()
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
