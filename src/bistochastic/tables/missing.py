"""Values that are missing: filled, left out with their rows, or refused."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bistochastic.core.errors import InputError, check_choice, several
from bistochastic.io.table import Table
from bistochastic.tables.preparation import Preparation

FILLS: dict[str, Callable[[Any], Any]] = {"median": np.nanmedian, "mean": np.nanmean}
LEARNING = (
    "Fill them (--impute median), leave out the rows (--drop-missing) or a column"
)
APPLYING = "Leave out the rows (--drop-missing), or make the model with --impute"


def fill_gaps(
    name: Any, table: Table, X: Any, impute: str, made: Preparation
) -> list[str]:
    """Put something where values are missing, in place; learn it of every column.

    Parameters
    ----------
    name : path or str
        What messages call the table.
    table : Table
        Its columns.
    X : array
        Its values, which are changed.
    impute : {"median", "mean"}
        What to put there; for texts it is a category of its own.
    made : Preparation
        Gets to know what was put.

    Returns
    -------
    list of str
        What was decided, for people.
    """
    check_choice("impute", impute, FILLS)
    void = np.isnan(X)
    for at, column in enumerate(table.columns):
        if void[:, at].all():
            raise InputError(
                f"{name}: column {column.name!r} has no values at all; leave it out "
                f"(--drop {column.name!r})."
            )
        if column.texts:  # a category of its own
            value = float(len(column.texts))
            made.texts[column.name] = (*column.texts, "")
        else:
            value = float(FILLS[impute](X[:, at]))
        made.fill[column.name] = value
        X[void[:, at], at] = value
    number = int(void.sum())
    if not number:
        return []
    return [f"{several(number, 'missing value')} filled by the {impute}."]


def complete_rows(
    name: Any, table: Table, X: Any, drop_missing: bool, advice: str
) -> tuple[Any, list[str]]:
    """Return which rows have all values; refuse others unless they may be dropped.

    Parameters
    ----------
    name : path or str
        What messages call the table.
    table : Table
        Its columns.
    X : array
        Its values.
    drop_missing : bool
        Whether rows with missing values may be left out.
    advice : str
        LEARNING or APPLYING: what to do about missing values.

    Returns
    -------
    kept : array of bool
        Which rows these are.
    notes : list of str
        What was decided, for people.
    """
    if X.dtype.kind != "f":
        return np.ones(X.shape[0], dtype=bool), []
    infinite = np.argwhere(np.isinf(X))
    if infinite.size:
        row, at = infinite[0]
        raise InputError(
            f"{name}: row {row + 1} of column {table.names[at]!r} is infinite, and "
            "values must be finite."
        )
    void = np.isnan(X)
    kept = ~void.any(axis=1)
    if kept.all():
        return kept, []
    lost = int((~kept).sum())
    worst = _worst(table, void) if advice is LEARNING else ""
    if not kept.any():
        cure = "Fill them (--impute median), or leave out a column"
        cure = cure if advice is LEARNING else "Make the model with --impute"
        raise InputError(f"{name}: every row has a missing value. {cure}{worst}.")
    if not drop_missing:
        row, at = np.argwhere(void)[0]
        raise InputError(
            f"{name}: row {row + 1} of column {table.names[at]!r} is missing; in all "
            f"{several(int(void.sum()), 'value')} of {several(lost, 'row')} and "
            f"{several(int(void.any(axis=0).sum()), 'column')}. {advice}{worst}."
        )
    return kept, [f"{several(lost, 'row')} with missing values left out."]


def _worst(table: Table, void: Any) -> str:
    """Name the column with most missing values, as one to leave out."""
    counts = void.sum(axis=0)
    at = int(counts.argmax())
    return f" (--drop {table.names[at]!r}, which lacks {counts[at]:,})"


def check_sparse(name: Any, table: Table) -> None:
    """Refuse values of a sparse matrix that are not finite.

    Parameters
    ----------
    name : path or str
        What messages call the table.
    table : Table
        The table, with a sparse matrix.
    """
    X = table.values
    if X.dtype.kind == "f" and not np.isfinite(X.data).all():
        held = X.tocoo()
        place = int(np.flatnonzero(~np.isfinite(held.data))[0])
        row, at = (int(axis[place]) for axis in held.coords)
        raise InputError(
            f"{name}: row {row + 1} of column {table.names[at]!r} is "
            f"{held.data[place]}, and values must be finite; in a sparse matrix they "
            "cannot be filled."
        )
