"""Tables of text: CSV and TSV, read twice so that nothing is held twice."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bistochastic.core.errors import FileError
from bistochastic.io import categories
from bistochastic.io.memory_limit import check_size
from bistochastic.io.optional import needed
from bistochastic.io.table import Column, Roles, Table, encoded_columns, unique_names
from bistochastic.io.text_dialect import (
    LONGEST,
    Layout,
    LongRowError,
    explained,
    first_fields,
    header_of,
    misplaced,
    opened,
    sample_of,
    separator_of,
    why_no_number,
)

TRUTH = {"false": 0.0, "no": 0.0, "true": 1.0, "yes": 1.0}
OBJECT = 60  # bytes that a text takes besides its characters


@dataclass(eq=False)
class Seen:
    """What the first reading saw in a column."""

    text: tuple[int, str] | None = None  # row and text of the first that is no number
    infinite: tuple[int, str] | None = None  # row and text of the first infinite one
    truth: bool = True  # whether all of its values are true or false

    @property
    def categories(self) -> bool:
        """Whether it has texts."""
        return self.text is not None and not self.truth


def read_text(path: Path, roles: Roles, layout: Layout, limit: int) -> Table:
    """Read a table of text.

    Parameters
    ----------
    path : Path
        The file; compressed by gzip, bzip2, zstd or lz4 if its name says so.
    roles : Roles
        Which columns to use, and for what.
    layout : Layout
        How it is written.
    limit : int
        Bytes that its contents may take.

    Returns
    -------
    Table
        The columns that are used.
    """
    first, block = sample_of(path, layout, limit)
    separator = separator_of(path, first, layout)
    fields = first_fields(path, first, separator)
    header, notes = header_of(fields, layout)
    names = fields if header else [str(i + 1) for i in range(len(fields))]
    unnamed = header and len(names) > 1 and not names[0].strip()
    names, more = unique_names(path, [name.strip() for name in names])
    notes += more
    if unnamed:
        roles, more = roles.naming(names[0], "The first column has no name, and")
        notes += more
    use, name, label = roles.of(path, names)
    while True:
        reader = Reader(path, separator, layout, header, len(names), block)
        try:
            n, seen = _scanned(reader, names, use, (name, label), roles, limit)
            break
        except LongRowError:
            if block >= LONGEST:
                raise
            block = min(8 * block, LONGEST)
    _check_texts(path, names, use, seen, roles, layout)
    values, columns, texts = _filled(reader, n, names, use, seen, (name, label))
    needed("pyarrow").default_memory_pool().release_unused()
    return Table(
        values,
        tuple(columns),
        ids=texts[0],
        id_name="row" if name is None else names[name],
        labels=texts[1],
        notes=notes + categories.note(columns),
    )


@dataclass(eq=False)
class Reader:
    """Reads a file of text in blocks of rows, all fields as texts."""

    path: Path
    separator: str
    layout: Layout
    header: bool
    width: int
    block: int

    def blocks(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield (first row, list of columns of texts) for each block."""
        pa, csv = needed("pyarrow", self.path), needed("pyarrow.csv", self.path)
        names = [f"f{i}" for i in range(self.width)]
        start, last = 0, ""
        with explained(self.path, self.layout):
            options = {
                "read_options": csv.ReadOptions(
                    use_threads=False,
                    block_size=self.block,
                    column_names=names,
                    skip_rows=self.layout.skip,
                    encoding=self.layout.encoding,
                ),
                "parse_options": csv.ParseOptions(
                    delimiter=self.separator, newlines_in_values=True
                ),
                "convert_options": csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                ),
            }
            with opened(self.path) as stream, csv.open_csv(stream, **options) as held:
                for number, batch in enumerate(held):
                    rows = batch.slice(1) if self.header and not number else batch
                    if rows.num_rows:
                        yield start, rows.columns
                        last = rows.columns[-1][-1].as_py()
                    start += rows.num_rows
        if "\n" in last and not _closed(self.path):
            raise FileError(
                f"{self.path}: a quotation mark is never closed; it begins the field "
                f"{last[:30]!r} in the last column of row {start:,}."
            )

    @cached_property
    def _void(self) -> Any:
        return needed("pyarrow").array(self.layout.void)

    def words(self, texts: Any) -> Any:
        """Return texts without spaces around them, null where a value is missing."""
        pa, pc = needed("pyarrow", self.path), needed("pyarrow.compute", self.path)
        texts = pc.utf8_trim_whitespace(texts)
        void = pc.is_in(texts, value_set=self._void)
        return pc.if_else(void, pa.scalar(None, pa.string()), texts)

    def numbers(self, texts: Any) -> tuple[Any, Any]:
        """Return a column of texts as numbers, or the place of one that is none.

        Parameters
        ----------
        texts : pyarrow array
            Texts of a block.

        Returns
        -------
        numbers : array or None
            Not a number where a value is missing.
        place : int or None
            The first that is neither a number nor missing.
        """
        pa, pc = needed("pyarrow", self.path), needed("pyarrow.compute", self.path)
        layout = self.layout
        if layout.decimal == "." and not (layout.missing or layout.thousands):
            with suppress(pa.ArrowInvalid):  # nothing missing, no spaces: mostly so
                return pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False), None
        texts = self.words(texts)
        wrong = None
        if layout.thousands:
            wrong = pc.match_substring_regex(texts, misplaced(layout))
            texts = pc.replace_substring(texts, layout.thousands, "")
        if layout.decimal == ",":
            point = pc.match_substring(texts, ".")
            wrong = point if wrong is None else pc.or_(wrong, point)
            texts = pc.replace_substring(texts, ",", ".")
        if wrong is not None:
            wrong = pc.fill_null(wrong, False)
            if pc.any(wrong).as_py():
                return None, pc.index(wrong, True).as_py()
        try:
            made = pc.cast(texts, pa.float64())
        except pa.ArrowInvalid:
            return None, _first_wrong(texts)
        return made.to_numpy(zero_copy_only=False), None


def _closed(path: Path) -> bool:
    """Tell whether a file ends with a quotation mark, line ends aside."""
    tail = b""
    with opened(path) as stream:
        while part := stream.read(1 << 20):
            tail = (tail + part)[-64:]
    return tail.rstrip(b"\r\n\0 ").endswith(b'"')


def _first_wrong(texts: Any) -> int:
    """Return the place of the first text that is not a number, by bisection."""
    pa, pc = needed("pyarrow"), needed("pyarrow.compute")
    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            pc.cast(texts.slice(low, middle - low), pa.float64())
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _scanned(
    reader: Reader,
    names: list[str],
    use: list[int],
    apart: tuple[int | None, int | None],
    roles: Roles,
    limit: int,
) -> tuple[int, dict[int, Seen]]:
    """Read once: count rows, and see what is in the columns."""
    n, seen = 0, {place: Seen() for place in use}
    for place in use:
        if roles.demands(names[place]):
            seen[place] = Seen(text=(0, ""), truth=False)
    held = 0
    for start, columns in reader.blocks():
        n = start + len(columns[0])
        for one in apart:
            if one is not None:
                held += columns[one].nbytes + OBJECT * len(columns[one])
        wanted = 8 * n * len(use) + held
        check_size(reader.path, wanted, limit, f"{n:,} rows or more")
        for place in use:
            _look(reader, seen[place], columns[place], start)
    if not n:
        raise FileError(f"{reader.path} has a first line with names, and no rows.")
    return n, seen


def _look(reader: Reader, known: Seen, texts: Any, start: int) -> None:
    """Note whether the texts of a block are numbers."""
    numbers, wrong = reader.numbers(texts)
    if numbers is not None:
        known.truth &= bool(np.isnan(numbers).all())
        infinite = np.flatnonzero(np.isinf(numbers))
        if infinite.size and known.infinite is None:
            first = int(infinite[0])
            known.infinite = (start + first, texts[first].as_py())
        return
    if known.truth:
        known.truth = all(map(_truth, reader.words(texts).unique().to_pylist()))
    if known.text is None:
        known.text = (start + wrong, texts[wrong].as_py())


def _truth(text: str | None) -> bool:
    return text is None or text.lower() in TRUTH


def _check_texts(
    path: Path,
    names: list[str],
    use: list[int],
    seen: dict[int, Seen],
    roles: Roles,
    layout: Layout,
) -> None:
    """Refuse infinite values, and columns of texts unless they are categories."""
    for place in use:
        infinite = seen[place].infinite
        if infinite is not None and not seen[place].categories:
            row, text = infinite
            raise FileError(
                f"{path}: row {row + 1} of column {names[place]!r} is {text!r}, and "
                "values must be finite."
            )
    texts = [
        place
        for place in use
        if seen[place].categories and not roles.encodes(names[place])
    ]
    first = seen[texts[0]].text if texts else None
    if first is None:
        return
    row, text = first
    shown = repr(text if len(text) <= 40 else text[:37] + "...")
    what, sure = why_no_number(text, layout)
    said = f"{path}: row {row + 1} of column {names[texts[0]]!r} is {shown}, {what}"
    if sure:
        raise FileError(said)
    raise categories.refused(said, [names[i] for i in texts[1:]], roles.advice)


def _filled(
    reader: Reader,
    n: int,
    names: list[str],
    use: list[int],
    seen: dict[int, Seen],
    apart: tuple[int | None, int | None],
) -> tuple[Any, list[Column], list[Any]]:
    """Read again, into arrays that are there already.

    Returns
    -------
    values : array of shape (n, n_used)
        Numbers, and numbers of texts.
    columns : list of Column
        What they are.
    texts : list of array or None
        The columns that stand apart, as texts.
    """
    values = np.empty((n, len(use)))
    words = {
        place: categories.Categories(reader.path, names[place])
        for place, known in seen.items()
        if known.categories
    }
    texts: list[Any] = [None if p is None else np.empty(n, dtype=object) for p in apart]
    end, (name, label) = 0, apart
    for start, columns in reader.blocks():
        end = start + len(columns[0])
        if end > n:
            break
        for at, place in enumerate(use):
            if place in words:
                found = words[place].codes(reader.words(columns[place]))
            elif seen[place].text is not None:
                found = _truths(reader.words(columns[place]))
            else:
                found = reader.numbers(columns[place])[0]
            values[start:end, at] = found
        if name is not None:  # an id may be NA
            trimmed = needed("pyarrow.compute").utf8_trim_whitespace(columns[name])
            texts[0][start:end] = trimmed.to_pylist()
        if label is not None:
            texts[1][start:end] = reader.words(columns[label]).to_pylist()
    if end != n:
        raise FileError(f"{reader.path} changed while it was read.")
    return values, encoded_columns(names, use, words, values), texts


def _truths(words: Any) -> list[float]:
    """Return truth values as numbers."""
    return [
        np.nan if text is None else TRUTH[text.lower()] for text in words.to_pylist()
    ]
