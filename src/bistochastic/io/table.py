"""A table as it comes from a file: numbers, and beside them ids and labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bistochastic.core.errors import FileError, listed
from bistochastic.io.categories import ADVICE
from bistochastic.io.paths import FilePath

LABELS = (
    "y",
    "labels",
    "target",
)  # names of an array of labels, best first


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its name.
    texts : tuple of str, optional
        The different texts of a column that had texts; its values are then numbers of
        these.

    Examples
    --------
    >>> from bistochastic.io import Column
    >>> Column("color", ("blue", "red")).texts
    ('blue', 'red')
    """

    name: str
    texts: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Table:
    r"""Rows of a file.

    Attributes
    ----------
    values : array or sparse matrix of shape (n_rows, n_columns)
        Numbers; not a number where a value is missing.
    columns : tuple of Column
        What they are.
    ids : array of shape (n_rows,), optional
        The names of the rows.
    id_name : str
        The name of the column that these were in.
    labels : array of shape (n_rows,), optional
        The column to compare clusters with; None where it is missing.
    notes : list of str
        What was decided while reading, for people.
    embedded : bool
        Whether the values are coordinates that belong together, not columns with units
        of their own.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bistochastic.io import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "points.csv"
    ...     _ = path.write_text("name,x,y\na,1,2\nb,3,4\n")
    ...     table = read_table(path, id="name")
    >>> table.names, table.values.shape, list(table.ids)
    (['x', 'y'], (2, 2), ['a', 'b'])
    """

    values: Any
    columns: tuple[Column, ...]
    ids: Any = None
    id_name: str = "row"
    labels: Any = None
    notes: list[str] = field(default_factory=list)
    embedded: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


@dataclass(frozen=True)
class Roles:
    """Which columns to use, and for what.

    Attributes
    ----------
    use : sequence of str
        Names or patterns, as ``gene_*``, of columns to use; empty for all others.
    drop : sequence of str
        Names or patterns of columns to leave out.
    id : str, optional
        The column that names the rows.
    label : str, optional
        The column to compare clusters with.
    encode : bool or tuple of str
        Whether columns of texts are taken as categories, or which columns are; refused
        otherwise.
    exact : bool
        Whether `use` has names only, no patterns.
    advice : str
        What to do about a column of texts.
    """

    use: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id: str | None = None
    label: str | None = None
    encode: bool | tuple[str, ...] = False
    exact: bool = False
    advice: str = ADVICE

    def encodes(self, name: str) -> bool:
        """Tell whether a column is taken as categories if it has texts."""
        return self.encode if isinstance(self.encode, bool) else name in self.encode

    def demands(self, name: str) -> bool:
        """Tell whether a column is taken as categories whatever it has."""
        return not isinstance(self.encode, bool) and name in self.encode

    def naming(self, name: str, because: str) -> tuple["Roles", list[str]]:
        """Take a column as names of the rows, unless it or another has a role.

        Parameters
        ----------
        name : str
            The column.
        because : str
            The beginning of the sentence that says so.

        Returns
        -------
        roles : Roles
            With that column as the id, or left out if another is.
        notes : list of str
            What was decided, for people.
        """
        if name in (*self.use, *self.drop, self.id, self.label):
            return self, []
        if self.id is not None:
            note = f"{because} is left out (--use {name!r} uses it)."
            return replace(self, drop=(*self.drop, name)), [note]
        note = f"{because} is taken as names of the rows (--use {name!r} uses it)."
        return replace(self, id=name), [note]

    def of(
        self, path: FilePath, names: Sequence[str]
    ) -> tuple[list[int], int | None, int | None]:
        """Return the positions of the columns to use, of the id and of the label.

        Parameters
        ----------
        path : path
            The file, for messages.
        names : list of str
            Names of its columns.

        Returns
        -------
        use : list of int
            Columns of values.
        id, label : int or None
            Columns with a role of their own.
        """
        known = {name: place for place, name in enumerate(names)}
        find = partial(_matching, path, names=names, known=known)
        id_, label = (
            None if name is None else _one(path, name, names, find(name))
            for name in (self.id, self.label)
        )
        left = {place for name in self.drop for place in find(name)}
        if self.exact:
            used = [place for name in self.use for place in _exactly(path, name, known)]
        else:
            used = [place for name in self.use for place in find(name)]
        if not self.use:
            left |= {place for place in (id_, label) if place is not None}
            used = list(range(len(names)))
        used = [place for place in dict.fromkeys(used) if place not in left]
        if not used:
            raise FileError(
                f"{path}: no column is left to use of {listed(names)}; ids, labels and "
                "dropped columns do not count."
            )
        return used, id_, label


def _one(path: FilePath, name: str, names: Sequence[str], found: list[int]) -> int:
    if len(found) > 1:
        raise FileError(
            f"{path}: {name!r} fits {len(found)} columns "
            f"({listed(names[place] for place in found)}), and one is needed."
        )
    return found[0]


def _exactly(path: FilePath, name: str, known: dict[str, int]) -> list[int]:
    if name not in known:
        raise FileError(f"{path} has no column {name!r}, which the model needs.")
    return [known[name]]


def _matching(
    path: FilePath, name: str, names: Sequence[str], known: dict[str, int]
) -> list[int]:
    """Return the columns that a name, a pattern or a list of names means."""
    if name in known:
        return [known[name]]
    found = [i for i, other in enumerate(names) if fnmatchcase(other, name)]
    if not found and "," in name:
        parts = [part.strip() for part in name.split(",")]
        return [i for part in parts for i in _matching(path, part, names, known)]
    if not found:
        near = get_close_matches(name, names[:1000], 3)
        hint = f"Perhaps {listed(map(repr, near))}?" if near else ""
        raise FileError(
            f"{path} has no column {name!r}. {hint or f'It has {listed(names, 10)}.'}"
        )
    return found


def unique_names(path: FilePath, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names of which no two are the same, and notes on what was renamed.

    Parameters
    ----------
    path : path
        The file, for messages.
    names : list of str
        Names as they are.

    Returns
    -------
    names : list of str
        The second ``a`` becomes ``a.1``, as in pandas; columns without a name get
        their number.
    notes : list of str
        A sentence, if any was renamed.
    """
    taken, made, renamed = set(names), [], []
    seen = set()
    for place, name in enumerate(names):
        new = name or f"column {place + 1}"
        number = 0
        while new in seen or (new in taken and new != name):
            number += 1
            new = f"{name or 'column'}.{number}"
        if new != name:
            renamed.append(f"{name!r} to {new!r}")
        seen.add(new)
        made.append(new)
    if not renamed:
        return made, []
    return made, [f"Columns without a name of their own, renamed: {listed(renamed)}."]


def encoded_columns(
    names: Sequence[str], use: Sequence[int], words: Mapping[int, Any], values: Any
) -> list[Column]:
    """Return what columns of values are, and give their texts numbers by their order.

    Parameters
    ----------
    names : sequence of str
        Names of all columns of a file.
    use : sequence of int
        Which of them the values are.
    words : mapping of int to Categories
        The texts of those that are categories.
    values : array
        Numbers, of which those of texts are changed in place.

    Returns
    -------
    list of Column
        One for each column of values.
    """
    return [
        Column(
            names[place],
            words[place].ordered(values[:, at]) if place in words else None,
        )
        for at, place in enumerate(use)
    ]


def plain(values: Any, names: Iterable[Any] | None = None, **more: Any) -> Table:
    """Return a table of numbers alone.

    Parameters
    ----------
    values : array or sparse matrix of shape (n_rows, n_columns)
        Numbers.
    names : sequence of str, optional
        Names of the columns; their numbers from 1 by default.
    **more : object
        Other attributes of the table.

    Returns
    -------
    Table
        The table.
    """
    if names is None:
        names = map(str, range(1, values.shape[1] + 1))
    return Table(values, tuple(map(Column, map(str, names))), **more)


def selected(
    path: FilePath, table: Table, roles: Roles, labels_too: bool = True
) -> Table:
    """Return a table with the columns that were asked for, out of numbers.

    Parameters
    ----------
    path : path
        The file, for messages.
    table : Table
        All columns.
    roles : Roles
        Which to use.
    labels_too : bool
        Whether the id and the label may be columns of the table.

    Returns
    -------
    Table
        Some columns.
    """
    if not (roles.use or roles.drop or (labels_too and (roles.id or roles.label))):
        return table
    if not labels_too:
        roles = replace(roles, id=None, label=None)
    use, name, label = roles.of(path, table.names)
    X = table.values
    more: dict[str, Any] = {}
    if name is not None:
        more |= {"ids": _column(X, name), "id_name": table.names[name]}
    if label is not None:
        more["labels"] = _column(X, label)
    kept = X if use == list(range(X.shape[1])) else X[:, use]
    columns = tuple(table.columns[place] for place in use)
    return Table(
        kept, columns,
        **{
            "ids": table.ids, "id_name": table.id_name, "labels": table.labels,
            "notes": table.notes, "embedded": table.embedded,
        } | more,
    )  # fmt: skip


def _column(X: Any, place: int) -> Any:
    column = X[:, [place]]
    column = column.toarray() if hasattr(column, "toarray") else np.asarray(column)
    column = column.ravel()
    whole = np.isfinite(column).all() and (column == np.round(column)).all()
    return column.astype(np.int64) if whole else column


def check_numbers(path: FilePath, values: Any) -> Any:
    """Refuse values that are not real numbers, as a kind."""
    kind = values.dtype.kind
    if kind not in "bif" and kind != "u":
        what = {"c": "complex numbers", "O": "objects", "V": "records"}
        raise FileError(
            f"{path}: the array holds {what.get(kind, 'texts or dates')} "
            f"({values.dtype}), and numbers are needed."
        )
    return values


def checked_sparse(
    path: FilePath, parts: Sequence[Any], shape: tuple[int, ...], kind: Any
) -> Any:
    """Return a sparse matrix, if its indices lie inside of its shape.

    Parameters
    ----------
    path : path
        The file, for messages.
    parts : sequence of array
        Values, indices, and where rows (or columns) end.
    shape : tuple of int
        Rows and columns.
    kind : {csr_array, csc_array}
        How it is held.

    Returns
    -------
    csr_array or csc_array
        The matrix.
    """
    data, indices, ends = parts
    good = all(part.ndim == 1 for part in parts)
    good = good and all(part.dtype.kind in "iu" for part in (indices, ends))
    if good:
        indices, ends = indices.astype(np.int64), ends.astype(np.int64)
        along, across = shape if kind is csr_array else shape[::-1]
        good = ends.size == along + 1 and ends[0] == 0 and ends[-1] == data.size
        good = good and (np.diff(ends) >= 0).all() and indices.size == data.size
    if good and indices.size:
        good = indices.min() >= 0 and indices.max() < across
    if not good:
        raise FileError(
            f"{path}: its sparse matrix is damaged; an index is outside of the shape "
            f"{shape}, or the rows do not add up."
        )
    return kind((data, indices, ends), shape=shape)
