"""Tables of text: CSV and TSV, read twice so that nothing is held twice."""

import csv
import io
import re
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bistochastic.core.errors import FileError, several
from bistochastic.io import categories
from bistochastic.io.limits import check_size, readable
from bistochastic.io.optional import needed
from bistochastic.io.table import Column, Table, unique_names

MISSING = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan",
    "NULL", "null", "None", "none",
)  # fmt: skip
SEPARATORS = (",", "\t", ";", "|")
SAMPLE, BLOCK, LONGEST = 1 << 16, 1 << 22, 1 << 28
MAGIC = {
    b"PK\x03\x04": "a ZIP archive (or an Excel workbook: save it as CSV)",
    b"PAR1": "a Parquet file (name it .parquet)",
    b"\x89HDF": "an HDF5 file (name it .h5ad, .mat or .cool)",
    b"\x93NUMPY": "a NumPy array (name it .npy)",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (save it as CSV)",
}
TRUTH = ("false", "true")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
DATE = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?\s*")


@dataclass(frozen=True)
class Layout:
    """How a text file is written.

    Attributes
    ----------
    separator : str, optional
        Between fields; found in the first lines if not given.
    decimal : {".", ","}
        The decimal point.
    encoding : str
        Of the characters.
    header : bool, optional
        Whether the first line has names; by default it has unless it is all numbers.
    missing : tuple of str
        Texts that stand for a missing value, besides the usual ones.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | None = None
    missing: tuple[str, ...] = ()


@dataclass(eq=False)
class Seen:
    """What the first reading saw in a column."""

    text: tuple | None = None  # (row, text) of the first that is not a number
    truth: bool = True  # whether all of its values are true or false

    @property
    def categories(self):
        """Whether it has texts."""
        return self.text is not None and not self.truth


def read_text(path, roles, layout, limit):
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
        Bytes that its numbers may take.

    Returns
    -------
    Table
        The columns that are used.
    """
    first, block = _sample(path, layout)
    separator = layout.separator or _separator(path, first)
    fields = _first_fields(path, first, separator)
    header, notes = _header(fields, layout)
    names = fields if header else [str(i + 1) for i in range(len(fields))]
    unnamed = header and len(names) > 1 and not names[0].strip()
    names, more = unique_names(path, [name.strip() for name in names])
    notes += more
    if unnamed:
        roles, more = roles.naming(names[0], "The first column has no name, and")
        notes += more
    use, name, label = roles.of(path, names)
    reader = Reader(path, separator, layout, header, len(names), block)
    n, seen = _scanned(path, reader, use, limit)
    _check_texts(path, names, use, seen, roles, layout)
    values, columns, texts = _filled(path, reader, n, names, use, seen, (name, label))
    notes += categories.note(columns)
    needed("pyarrow").default_memory_pool().release_unused()
    return Table(
        values,
        tuple(columns),
        ids=texts[0],
        id_name="row" if name is None else names[name],
        labels=texts[1],
        notes=notes,
    )


@dataclass(eq=False)
class Reader:
    """Reads a file of text in blocks of rows, all fields as texts."""

    path: object
    separator: str
    layout: Layout
    header: bool
    width: int
    block: int

    def blocks(self):
        """Yield (first row, list of columns of texts) for each block."""
        pa, csv_ = needed("pyarrow", self.path), needed("pyarrow.csv", self.path)
        names = [f"f{i}" for i in range(self.width)]
        with explained(self.path, self.layout):
            stream = opened(self.path)
            with (
                stream,
                csv_.open_csv(
                    stream,
                    read_options=csv_.ReadOptions(
                        use_threads=False,
                        block_size=self.block,
                        column_names=names,
                        encoding=self.layout.encoding,
                    ),
                    parse_options=csv_.ParseOptions(
                        delimiter=self.separator, newlines_in_values=True
                    ),
                    convert_options=csv_.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        strings_can_be_null=False,
                    ),
                ) as batches,
            ):
                start = 0
                for number, batch in enumerate(batches):
                    rows = batch.slice(1) if self.header and not number else batch
                    if rows.num_rows:
                        yield start, rows.columns
                    start += rows.num_rows

    def words(self, texts):
        """Return texts without spaces around them, null where a value is missing."""
        pa, pc = needed("pyarrow", self.path), needed("pyarrow.compute", self.path)
        texts = pc.utf8_trim_whitespace(texts)
        void = pc.is_in(texts, value_set=self.void)
        return pc.if_else(void, pa.scalar(None, pa.string()), texts)

    @cached_property
    def void(self):
        """The texts that stand for a missing value."""
        return needed("pyarrow").array(MISSING + self.layout.missing)

    def numbers(self, texts):
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
        if self.layout.decimal == "." and not self.layout.missing:
            with suppress(pa.ArrowInvalid):  # nothing missing, no spaces: mostly so
                return pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False), None
        texts = self.words(texts)
        if self.layout.decimal == ",":
            point = pc.fill_null(pc.match_substring(texts, "."), False)
            if pc.any(point).as_py():
                return None, pc.index(point, True).as_py()
            texts = pc.replace_substring(texts, ",", ".")
        try:
            made = pc.cast(texts, pa.float64())
        except pa.ArrowInvalid:
            return None, _first_wrong(texts)
        return made.to_numpy(zero_copy_only=False), None


def _first_wrong(texts):
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


def opened(path):
    """Open a file, decompressed as its name says."""
    pa = needed("pyarrow", path)
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
    return pa.input_stream(str(path), compression=codec.get(path.suffix.lower()))


@contextmanager
def explained(path, layout):
    """Say of pyarrow's errors where they are and what to do."""
    pa = needed("pyarrow", path)
    try:
        yield
    except (pa.ArrowException, UnicodeError, LookupError, OSError) as error:
        said = str(error)
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
        if ragged:
            line, wanted, got = map(int, ragged.groups())
            raise FileError(
                f"{path}, line {line}: {several(got, 'field')}, where the first line "
                f"has {wanted}. Mend the line, or name the separator (--separator) if "
                "it is another one."
            ) from None
        if isinstance(error, LookupError):
            raise FileError(
                f"{path}: there is no encoding {layout.encoding!r}; try utf-8, latin-1 "
                "or cp1252."
            ) from None
        if isinstance(error, UnicodeError) or "UTF8" in said:
            raise FileError(_undecoded(path, layout.encoding)) from None
        if "straddl" in said:
            raise FileError(
                f"{path}: a row is longer than {readable(LONGEST)}, or a quotation "
                "mark is never closed."
            ) from None
        raise FileError(f"{path} cannot be read: {said.splitlines()[0]}") from None


def _undecoded(path, encoding):
    """Say where a file is not in the encoding."""
    where = ""
    try:
        with opened(path) as stream:
            lines = 1
            wrapped = io.TextIOWrapper(stream, encoding=encoding, newline="\n")
            while part := wrapped.read(1 << 20):
                lines += part.count("\n")
    except UnicodeError as error:
        rest = bytes(error.object[: error.start]).count(b"\n")
        byte = bytes(error.object[error.start : error.start + 1]).hex()
        where = f", line {lines + rest}: byte 0x{byte} is not {encoding}"
    except Exception:  # the other error is the one to tell
        where = ""
    return (
        f"{path}{where or f' is not {encoding}'}. Name the encoding, as --encoding "
        "latin-1 (or cp1252, as Excel on Windows writes it), or save it as UTF-8."
    )


def _sample(path, layout):
    """Return the first lines, decoded, and the size of a block."""
    with explained(path, layout), opened(path) as stream:
        raw = stream.read(SAMPLE)
        for magic, kind in MAGIC.items():
            if raw.startswith(magic):
                raise FileError(f"{path} is {kind}, not a table of text.")
        if not raw.strip():
            raise FileError(f"{path} is empty.")
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff") and "16" not in layout.encoding:
            raise FileError(f"{path} is in UTF-16; say so with --encoding utf-16.")
        if b"\0" in raw and not layout.encoding.lower().startswith("utf-16"):
            raise FileError(f"{path} is not text: it has bytes of zero.")
        while b"\n" not in raw and len(raw) < LONGEST:
            more = stream.read(len(raw))
            if not more:
                break
            raw += more
        block = min(max(BLOCK, 4 * raw.rfind(b"\n"), 4 * _longest(raw)), LONGEST)
        text = raw.decode(layout.encoding, errors="replace")
    return text.removeprefix("\ufeff"), block


def _longest(raw):
    return max(len(line) for line in raw.split(b"\n"))


def _separator(path, sample):
    """Return the separator that cuts the first lines into equally many fields."""
    usual = "\t" if ".tsv" in path.suffixes else ","
    lines = sample.splitlines()
    lines = lines[: min(20, len(lines) - (len(lines) > 2))]  # the last may be cut off
    best, most = usual, (0, 1)
    for separator in (usual, *SEPARATORS):
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error:
            continue
        width, times = Counter(widths).most_common(1)[0] if widths else (1, 0)
        if width > 1 and (times, width) > most:
            best, most = separator, (times, width)
    return best


def _first_fields(path, sample, separator):
    usual = csv.field_size_limit(LONGEST)
    try:
        lines = io.StringIO(sample, newline="")
        return next(row for row in csv.reader(lines, delimiter=separator) if row)
    except (csv.Error, StopIteration, TypeError):
        raise FileError(
            f"{path}: the first line cannot be cut into fields at {separator!r}; the "
            "separator is one character, as --separator ';'."
        ) from None
    finally:
        csv.field_size_limit(usual)


def _header(fields, layout):
    """Tell whether the first line has names, and what to say about it."""
    if layout.header is not None:
        return layout.header, []
    try:
        for text in fields:
            float(text.strip().replace(layout.decimal, "."))
    except ValueError:
        return True, []
    note = (
        "The first line has only numbers, so it is taken as data (--header says "
        "otherwise); columns have their numbers as names."
    )
    return False, [note]


def _scanned(path, reader, use, limit):
    """Read once: count rows, and see what is in the columns."""
    n, seen = 0, {place: Seen() for place in use}
    for start, columns in reader.blocks():
        n = start + len(columns[0])
        check_size(path, 8 * n * len(use), limit, f"{n:,} rows or more of numbers")
        for place in use:
            _look(reader, seen[place], columns[place], start)
    if not n:
        raise FileError(f"{path} has a first line with names, and no rows.")
    return n, seen


def _look(reader, known, texts, start):
    """Note whether the texts of a block are numbers."""
    numbers, wrong = reader.numbers(texts)
    if numbers is not None:
        known.truth &= bool(np.isnan(numbers).all())
        infinite = np.flatnonzero(np.isinf(numbers))
        if not infinite.size:
            return
        wrong = int(infinite[0])
    elif known.truth:
        known.truth = all(map(_truth, reader.words(texts).unique().to_pylist()))
    if known.text is None:
        known.text = (start + wrong, texts[wrong].as_py())


def _truth(text):
    return text is None or text.lower() in TRUTH


def _check_texts(path, names, use, seen, roles, layout):
    """Refuse columns of texts, unless they are wanted as categories."""
    texts = [place for place in use if seen[place].categories]
    if not texts or roles.encode:
        return
    row, text = seen[texts[0]].text
    shown = repr(text if len(text) <= 40 else text[:37] + "...")
    said = f"{path}: row {row + 1} of column {names[texts[0]]!r} is {shown}, "
    if layout.decimal == "." and DECIMAL_COMMA.fullmatch(text):
        raise FileError(f"{said}a number with a decimal comma? Add --decimal ','.")
    if text.strip().lower().lstrip("+-") in ("inf", "infinity"):
        raise FileError(f"{said}and values must be finite.")
    if text.strip() in ("?", "-", ".", "*", "missing", "unknown"):
        raise FileError(
            f"{said}which is not a number. If it stands for a missing value, add "
            f"--missing {text.strip()!r}."
        )
    what = "a date? Dates" if DATE.fullmatch(text) else "not a number. Texts"
    raise categories.refused(f"{said}{what}", [names[place] for place in texts[1:]])


def _filled(path, reader, n, names, use, seen, apart):
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
    words = {}
    for place, known in seen.items():
        if known.text is not None:
            first = () if known.categories else TRUTH
            words[place] = categories.Categories(path, names[place], first)
    texts = [None if place is None else np.empty(n, dtype=object) for place in apart]
    end = 0
    for start, columns in reader.blocks():
        end = start + len(columns[0])
        if end > n:
            break
        for at, place in enumerate(use):
            values[start:end, at] = _values(
                reader, columns[place], words.get(place), seen[place]
            )
        for held, place in zip(texts, apart, strict=True):
            if held is not None:
                held[start:end] = reader.words(columns[place]).to_pylist()
    if end != n:
        raise FileError(f"{path} changed while it was read.")
    columns = [
        Column(
            names[place],
            words[place].ordered(values[:, at]) if seen[place].categories else None,
        )
        for at, place in enumerate(use)
    ]
    return values, columns, texts


def _values(reader, texts, words, known):
    """Return the numbers, or the numbers of texts, of a block."""
    if words is None:
        return reader.numbers(texts)[0]
    found = reader.words(texts)
    if not known.categories:
        found = needed("pyarrow.compute").utf8_lower(found)
    return words.codes(found)
