"""The rows that a command works on: a table, and the coordinates made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bistochastic.io.table import Table
from bistochastic.tables import Preparation, PreparedTable


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that was read and made ready.

    Attributes
    ----------
    file : str
        The file, as the user named it.
    table : Table
        What it has.
    preparation : Preparation
        What was done to its columns.
    X : array or sparse matrix
        Coordinates of the rows that are kept.
    kept : array of bool
        Which these are.
    notes : list of str
        What was decided, for people.
    """

    file: str
    table: Table
    preparation: Preparation
    X: Any
    kept: Any
    notes: list[str]

    @classmethod
    def of(
        cls, file: str, table: Table, made: PreparedTable, more: Sequence[str] = ()
    ) -> "Rows":
        """Return the rows of a table that was made ready.

        Parameters
        ----------
        file : str
            The file, as the user named it.
        table : Table
            What it has.
        made : PreparedTable
            Its coordinates.
        more : sequence of str
            More notes.

        Returns
        -------
        Rows
            All of them together.
        """
        notes = [*made.notes, *more]
        return cls(file, table, made.preparation, made.X, made.kept, notes)

    @property
    def number(self) -> int:
        """How many rows are kept."""
        return self.X.shape[0]

    @property
    def truth(self) -> Any:
        """The labels to compare with of the rows that are kept, if there are any."""
        if self.table.labels is None:
            return None
        return np.asarray(self.table.labels)[self.kept]
