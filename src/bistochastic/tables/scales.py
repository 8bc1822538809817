"""How columns of numbers are scaled, and which of them look like no numbers at all."""

from typing import Any

import numpy as np

from bistochastic.core.arrays import is_sparse
from bistochastic.core.errors import InputError, check_choice
from bistochastic.core.parameters import PAIRS
from bistochastic.io.table import Table

SCALES = ("zscore", "minmax", "none")
CONSTANT = 1e-14  # the spread, relative to the largest value, of a constant column
TINY = 1e-300  # the least number that a column is divided by
FEWEST = 10  # the fewest rows for which a column can be taken to count them


def chosen_scale(table: Table, asked: str | None, metric: str) -> tuple[str, str]:
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
    if asked is not None:
        check_choice("scale", asked, SCALES)
    sparse = is_sparse(table.values)
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


def shift_and_factor(X: Any, numbers: Any, scale: str) -> tuple[Any, Any, Any]:
    """Return what to subtract and divide by, and the columns that are constant.

    Parameters
    ----------
    X : array
        Values.
    numbers : array of bool
        Which columns are numbers; others are left as they are.
    scale : {"zscore", "minmax"}
        How they are scaled.

    Returns
    -------
    shift, factor : array
        One for each column.
    constant : array of int
        Columns that are the same in every row.
    """
    places = np.flatnonzero(numbers)
    shift, factor = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for at in places:
        column = X[:, at].astype(np.float64)
        largest = np.abs(column).max(initial=0.0)
        if scale == "zscore":
            top = max(largest, TINY)  # no overflow
            shift[at] = top * (column / top).mean()
            factor[at] = top * (column / top - shift[at] / top).std()
        else:
            shift[at] = column.min()
            factor[at] = column.max() - shift[at]
        if not factor[at] > CONSTANT * largest:
            factor[at] = 0.0
    constant = places[factor[places] == 0]
    factor[constant] = 1.0
    return shift, factor, constant


def counter_warnings(table: Table) -> list[str]:
    """Return a warning for each column that only counts the rows.

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
    if is_sparse(X) or X.shape[0] < FEWEST or table.embedded:
        return []
    found = []
    for at, column in enumerate(table.columns):
        if column.texts is None and np.ptp(np.diff(X[: 2 * FEWEST, at])) == 0:
            steps = np.diff(X[:, at])
            if steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0):
                found.append(column.name)
    return [
        f"Column {name!r} counts the rows, and is used as a number like the others; if "
        f"it is their name, add --id {name!r}."
        for name in found
    ]
