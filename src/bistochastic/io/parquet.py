"""Parquet tables, read in batches into an array that is there already."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bistochastic.core.errors import FileError
from bistochastic.io import categories
from bistochastic.io.memory_limit import check_size
from bistochastic.io.optional import needed
from bistochastic.io.table import Roles, Table, encoded_columns, unique_names

ROWS = 1 << 15  # rows that are read at a time
OBJECT = 60  # bytes that a text takes besides its characters


def read_parquet(path: Path, roles: Roles, limit: int) -> Table:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    roles : Roles
        Which columns to use, and for what.
    limit : int
        Bytes that its numbers may take.

    Returns
    -------
    Table
        The columns that are used.
    """
    pa, pq = needed("pyarrow", path), needed("pyarrow.parquet", path)
    try:
        with pa.memory_map(os.fsencode(path)) as source:  # names need not be UTF-8
            with pq.ParquetFile(source) as file:
                names = file.schema_arrow.names
                texts = [name for name in names if _is_text(file, name)]
            with pq.ParquetFile(source, read_dictionary=texts) as file:
                return _read(path, file, roles, limit)
    except pa.ArrowException as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileError(
            f"{path} is not a Parquet file, or is damaged: {said}"
        ) from None
    except (OSError, ValueError, UnicodeError) as error:
        if isinstance(error, FileError | FileNotFoundError | PermissionError):
            raise
        raise FileError(f"{path} is damaged: {error}") from None


def _read(path: Path, file: Any, roles: Roles, limit: int) -> Table:
    """Read the columns that are used, as numbers, and those that stand apart."""
    schema = file.schema_arrow
    names, notes = unique_names(path, schema.names)
    for index in _index(schema, names):
        roles, more = roles.naming(index, f"The index of the data frame, {index!r},")
        notes += more
    use, name, label = roles.of(path, names)
    n = file.metadata.num_rows
    if not n:
        raise FileError(f"{path} has no rows.")
    kinds = _checked(path, schema, names, use, roles)
    check_size(path, 8 * n * len(use), limit, f"{n:,} rows of numbers")
    words = {
        place: categories.Categories(path, names[place])
        for place in use
        if kinds[place] == "text"
    }
    apart = {p: np.empty(n, dtype=object) for p in (name, label) if p is not None}
    values = np.empty((n, len(use)))
    _fill(path, file, names, use, words, values, apart, limit)
    needed("pyarrow").default_memory_pool().release_unused()
    columns = encoded_columns(names, use, words, values)
    return Table(
        values,
        tuple(columns),
        ids=None if name is None else apart[name],
        id_name="row" if name is None else names[name],
        labels=None if label is None else apart[label],
        notes=notes + categories.note(columns),
    )


def _fill(
    path: Path,
    file: Any,
    names: list[str],
    use: list[int],
    words: dict[int, categories.Categories],
    values: Any,
    apart: dict[int, Any],
    limit: int,
) -> None:
    """Read all rows into the arrays of values and of columns that stand apart."""
    n, held = len(values), 0
    for start, batch in _batches(path, file, n, file.schema_arrow, [*use, *apart]):
        rows = slice(start, start + batch.num_rows)
        for at, place in enumerate(use):
            values[rows, at] = (
                words[place].codes(batch[place])
                if place in words
                else _numbers(path, names[place], batch[place], start)
            )
        for place, texts in apart.items():
            held += batch[place].nbytes + OBJECT * batch.num_rows
            check_size(path, 8 * n * len(use) + held, limit, "names and labels")
            texts[rows] = _objects(batch[place])


def _index(schema: Any, names: list[str]) -> list[str]:
    """Return the columns that were the index of a data frame of pandas."""
    try:
        held = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        found = [name for name in held["index_columns"] if isinstance(name, str)]
    except (ValueError, KeyError, TypeError):
        return []
    return [name for name in found if name in names]


@dataclass(frozen=True, eq=False)
class Batch:
    """Columns of some rows, by their place in the file.

    Attributes
    ----------
    num_rows : int
        How many rows.
    columns : dict
        Arrays of pyarrow.
    """

    num_rows: int
    columns: dict[int, Any]

    def __getitem__(self, place: int) -> Any:
        return self.columns[place]


def _batches(
    path: Path, file: Any, n: int, schema: Any, places: list[int]
) -> Iterator[tuple[int, Batch]]:
    """Yield (first row, batch) for some rows at a time, of the columns that count."""
    start, names = 0, schema.names
    places = sorted(set(places))
    chosen = [names[place] for place in places]
    alone = len(set(names)) == len(names) and not any("." in name for name in chosen)
    columns = chosen if alone else None  # columns of one name can only be read together
    for held in file.iter_batches(ROWS, columns=columns, use_threads=False):
        if start + held.num_rows > n:
            break
        found = [held.column(i if alone else p) for i, p in enumerate(places)]
        for column in found:
            if isinstance(column, needed("pyarrow").DictionaryArray):
                column.validate(full=True)  # numbers of texts may lead astray
        yield start, Batch(held.num_rows, dict(zip(places, found, strict=True)))
        start += held.num_rows
    if start != n:
        raise FileError(f"{path} is damaged: it has not the {n:,} rows that it says.")


def _is_text(file: Any, name: str) -> bool:
    """Tell whether a column has texts, which are read as numbers of different ones."""
    pt, schema = needed("pyarrow").types, file.schema_arrow
    if schema.names.count(name) > 1:
        return False
    kind = schema.field(name).type
    return pt.is_string(kind) or pt.is_large_string(kind)


def _objects(column: Any) -> Any:
    """Return values as objects, equal texts as one."""
    pt = needed("pyarrow").types
    if not pt.is_dictionary(column.type):
        return column.to_pylist()
    different = np.empty(len(column.dictionary) + 1, dtype=object)
    different[:-1] = column.dictionary.to_pylist()
    places = column.indices.fill_null(len(different) - 1)
    return different[places.to_numpy(zero_copy_only=False)]


def _checked(
    path: Path, schema: Any, names: list[str], use: list[int], roles: Roles
) -> dict[int, str]:
    """Return the kind of each column that is used; refuse those that are none."""
    pt = needed("pyarrow").types
    kinds, wrong = {}, []
    for place in use:
        kind = schema.field(place).type
        kind = kind.value_type if pt.is_dictionary(kind) else kind
        number = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
        if number or pt.is_boolean(kind) or pt.is_null(kind):
            kinds[place] = "number"
        elif pt.is_string(kind) or pt.is_large_string(kind):
            kinds[place] = "text"
            if not roles.encodes(names[place]):
                wrong.append(place)
        else:
            raise FileError(
                f"{path}: column {names[place]!r} holds {kind}, not numbers. Leave it "
                "out (--drop), or make columns of numbers of it."
            )
    if wrong:
        said = f"{path}: column {names[wrong[0]]!r} holds texts, which"
        others = [names[place] for place in wrong[1:]]
        raise categories.refused(said, others, roles.advice)
    return kinds


def _numbers(path: Path, name: str, column: Any, start: int) -> Any:
    pa, pc = needed("pyarrow"), needed("pyarrow.compute")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    made = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.flatnonzero(np.isinf(made))
    if infinite.size:
        raise FileError(
            f"{path}: row {start + infinite[0] + 1} of column {name!r} is infinite, "
            "and values must be finite."
        )
    return made
