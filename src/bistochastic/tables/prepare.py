"""From the columns of a table to coordinates: filled, one-hot, scaled."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, listed, several
from bistochastic.core.quiet import quietly
from bistochastic.io.table import Roles, Table, selected
from bistochastic.tables.missing import (
    APPLYING,
    LEARNING,
    check_sparse,
    complete_rows,
    fill_gaps,
)
from bistochastic.tables.preparation import (
    APART,
    Preparation,
    has_numbered_columns,
)
from bistochastic.tables.scales import (
    chosen_scale,
    counter_warnings,
    shift_and_factor,
)

OUTSIDE = 1.0  # ranges of a column beyond which a value lies far outside of it
LARGEST = 1 << 30  # the most entries of a sparse matrix whose zeros are filled in


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """Rows of a table as coordinates that an estimator takes.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_kept, n_coordinates)
        Coordinates of the rows that are kept: numbers first, then a column for each
        text of each category.
    kept : array of bool of shape (n_rows,)
        Which rows these are.
    notes : list of str
        What was decided while reading and preparing, for people.
    preparation : Preparation
        What was done, for other tables with these columns.

    See Also
    --------
    prepare_table : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from bistochastic.io import Column, Table
    >>> from bistochastic.tables import prepare_table
    >>> table = Table(np.array([[1.0], [np.nan], [3.0]]), (Column("height"),))
    >>> prepared = prepare_table(table, scale="minmax", drop_missing=True)
    >>> prepared.X.ravel(), prepared.kept
    (array([0., 1.]), array([ True, False,  True]))
    >>> prepared.notes
    ['1 row with missing values left out.']
    """

    X: Any
    kept: Any
    notes: list[str]
    preparation: Preparation


@quietly
def prepare_table(
    table: Table,
    *,
    scale: str | None = None,
    impute: str | None = None,
    drop_missing: bool = False,
    metric: str = "euclidean",
    layout: dict[str, Any] | None = None,
    name: Any = "The table",
    copy: bool = True,
) -> PreparedTable:
    r"""Prepare the columns of a table as ``bistochastic cluster FILE`` does.

    Columns of numbers are scaled, columns of texts become categories of which any two
    are at distance one, missing values are filled, left out or refused.

    Parameters
    ----------
    table : Table
        Rows, as `bistochastic.io.read_table` gives them.
    scale : {"zscore", "minmax", "none"}, optional
        How columns of numbers are scaled; by default "zscore", and "none" for sparse
        matrices, embeddings and pairs of rows.
    impute : {"median", "mean"}, optional
        What to put where values are missing; texts get a category of their own.
    drop_missing : bool, default=False
        Whether rows with missing values are left out; otherwise they are refused.
    metric : str, default="euclidean"
        What will be measured; "precomputed" and "affinity" mean that the table holds
        pairs of rows.
    layout : dict, optional
        How the file was read, to be kept: options of `read_table`.
    name : path or str, default="The table"
        What messages call the table.
    copy : bool, default=True
        Whether the values of the table have to stay as they are. False saves memory.

    Returns
    -------
    PreparedTable
        Coordinates, which rows they are of, and what was done.

    See Also
    --------
    apply_preparation : Does the same to new rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bistochastic.io import read_table
    >>> from bistochastic.tables import apply_preparation, prepare_table
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plants.csv"
    ...     _ = file.write_text("height,color\n1,red\n3,blue\n")
    ...     table = read_table(file, encode=True)
    ...     _ = file.write_text("color,height\nred,5\n")
    ...     new = read_table(file, encode=["color"])
    >>> prepared = prepare_table(table)
    >>> prepared.X.round(2)
    array([[-1.  ,  0.  ,  0.71],
           [ 1.  ,  0.71,  0.  ]])
    >>> apply_preparation(new, prepared.preparation).X.round(2)
    array([[3.  , 0.  , 0.71]])
    """
    chosen, said = chosen_scale(table, scale, metric)
    for text in counter_warnings(table):
        warnings.warn(text, stacklevel=3)
    notes = table.notes + ([said] if scale is None else [])
    texts = {c.name: c.texts for c in table.columns if c.texts}
    made = Preparation(table.names, texts, chosen, layout or {})
    X, every = table.values, np.ones(table.values.shape[0], dtype=np.bool_)
    if is_sparse(X):
        check_sparse(name, table)
        return PreparedTable(X, every, notes, made)
    if impute:
        X = _writable(X, copy)
        notes += fill_gaps(name, table, X, impute, made)
    kept, more = complete_rows(name, table, X, drop_missing, LEARNING)
    X = X if kept.all() else X[kept]
    made.low, made.high = (
        np.array(f(axis=0), dtype=np.float64) for f in (X.min, X.max)
    )
    if chosen != "none" or made.texts:
        X = _writable(X, copy and X is table.values)
    notes += more + _learn_scale(X, made)
    return PreparedTable(_coordinates(X, made), kept, notes, made)


@quietly
def apply_preparation(
    table: Table,
    preparation: Preparation,
    *,
    drop_missing: bool = False,
    name: Any = "The table",
    copy: bool = True,
) -> PreparedTable:
    """Do to a table what was learned from another.

    Parameters
    ----------
    table : Table
        Rows with the same columns, which are found by their names, in any order.
        Columns of categories have to be read as such:
        ``read_table(file, encode=tuple(preparation.texts))``.
    preparation : Preparation
        What was learned.
    drop_missing : bool, default=False
        Whether rows with missing values are left out, if these were not filled when the
        preparation was learned; otherwise they are refused.
    name : path or str, default="The table"
        What messages call the table.
    copy : bool, default=True
        Whether the values of the table have to stay as they are. False saves memory.

    Returns
    -------
    PreparedTable
        Coordinates, which rows they are of, and what was done.

    See Also
    --------
    prepare_table : Learns a preparation.

    Examples
    --------
    >>> import numpy as np
    >>> from bistochastic.io import Column, Table
    >>> from bistochastic.tables import apply_preparation, prepare_table
    >>> columns = (Column("height"), Column("width"))
    >>> learned = prepare_table(Table(np.array([[1.0, 2], [3, 6]]), columns))
    >>> new = Table(np.array([[8.0, 1]]), columns[::-1])
    >>> apply_preparation(new, learned.preparation).X
    array([[-1.,  2.]])
    """
    table = _same_columns(name, table, preparation)
    X, every = table.values, np.ones(table.values.shape[0], dtype=np.bool_)
    notes = list(table.notes)
    if is_sparse(X):
        check_sparse(name, table)
        if preparation.scale == "none" and not preparation.texts:
            return PreparedTable(X, every, notes, preparation)
        X = _dense(name, X)
    if preparation.scale != "none" or preparation.texts or preparation.fill:
        X = _writable(X, copy and X is table.values)
    for at, known in enumerate(preparation.names):
        notes += _recode(X[:, at], table.columns[at].texts, known, preparation)
        if known in preparation.fill:
            X[np.isnan(X[:, at]), at] = preparation.fill[known]
    kept, more = complete_rows(name, table, X, drop_missing, APPLYING)
    X = X if kept.all() else X[kept]
    notes += more + _far_rows(X, kept, preparation)
    return PreparedTable(_coordinates(X, preparation), kept, notes, preparation)


def _same_columns(name: Any, table: Table, made: Preparation) -> Table:
    """Return a table with the columns that a preparation is for, in their order."""
    if has_numbered_columns(made):
        if table.values.shape[1] != len(made.names):
            raise InputError(
                f"{name} has {several(table.values.shape[1], 'column')} to use, and "
                f"the model was made of {len(made.names)}."
            )
    elif table.names != made.names:
        roles = Roles(use=tuple(made.names), exact=True)
        table = selected(name, table, roles, labels_too=False)
    for column, known in zip(table.columns, made.names, strict=True):
        then, now = known in made.texts, column.texts is not None
        if (then and not now) or (column.texts and not then):
            kinds = ("texts", "numbers") if then else ("numbers", "texts")
            raise InputError(
                f"{name}: column {column.name!r} had {kinds[0]} when the model was "
                f"made, and has {kinds[1]} now; read it as it was read then."
            )
    return table


def _dense(name: Any, X: Any) -> Any:
    """Return a sparse matrix as an array, unless that is too large."""
    if X.shape[0] * X.shape[1] > LARGEST:
        raise InputError(
            f"{name} is sparse, and the model's columns were not; {X.shape} values "
            "are too many to fill the zeros in."
        )
    return X.toarray()


def _writable(X: Any, copy: bool) -> Any:
    """Return values as numbers with a point, in an array that may be changed."""
    kind = np.float32 if X.dtype == np.float32 else np.float64
    if X.dtype == kind and X.flags.writeable and not copy:
        return X
    return np.array(X, dtype=kind)


def _numbers(made: Preparation) -> Any:
    """Return which columns are numbers."""
    return np.array([name not in made.texts for name in made.names])


def _learn_scale(X: Any, made: Preparation) -> list[str]:
    """Learn what scales the columns; return a note on those that are constant."""
    if made.scale == "none":
        return []
    made.shift, made.factor, flat = shift_and_factor(X, _numbers(made), made.scale)
    if not flat.size:
        return []
    names = listed((repr(made.names[place]) for place in flat), 8)
    one = flat.size == 1
    return [
        f"{several(flat.size, 'column')} ({names}) {'is' if one else 'are'} the same "
        f"in every row, and {'tells' if one else 'tell'} nothing."
    ]


def _recode(
    values: Any, now: tuple[str, ...] | None, name: str, made: Preparation
) -> list[str]:
    """Give texts of a column the numbers that they had before, in place."""
    texts = made.texts.get(name)
    if texts is None or now is None:
        return []
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([place.get(text, -1) for text in now], dtype=float)
    there = ~np.isnan(values)
    values[there] = codes[values[there].astype(np.int64)]
    new = [text for text in now if text not in place]
    if not new:
        return []
    return [
        f"Column {name!r} has texts that were not there when the model was made "
        f"({listed(repr(text[:30]) for text in new)}); they are like none of the "
        "others."
    ]


def _far_rows(X: Any, kept: Any, made: Preparation) -> list[str]:
    """Return a note on rows far outside of what the model has seen."""
    if made.low is None or not X.shape[0]:
        return []
    reach = OUTSIDE * np.where(_numbers(made), made.high - made.low, np.inf)
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


def _coordinates(X: Any, made: Preparation) -> Any:
    """Return scaled columns, and for each category a column of its own."""
    if made.shift is not None:
        X -= made.shift.astype(X.dtype, copy=False)
        X /= made.factor.astype(X.dtype, copy=False)
    numbers = _numbers(made)
    if numbers.all():
        return X
    parts = [X[:, numbers]]
    for at in np.flatnonzero(~numbers):
        texts = made.texts[made.names[at]]
        parts.append(APART * (X[:, [at]] == np.arange(len(texts))))
    return np.hstack(parts)
