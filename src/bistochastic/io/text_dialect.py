"""How a file of text is written: encoding, separator, header, points and commas."""

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bistochastic.core.errors import FileError, InputError, several
from bistochastic.core.parameters import Count
from bistochastic.io.memory_limit import readable
from bistochastic.io.optional import needed

MISSING = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan",
    "NULL", "null", "None", "none",
)  # fmt: skip
VOID = ("?", "-", ".", "*", "missing", "unknown", "n.a.", "nil", "void")
SEPARATORS = ("\t", ";", "|", ",")  # commas may be decimal, so they come last
SAMPLE = 1 << 16  # bytes from which separator and header are found
BLOCK = 1 << 22  # the fewest bytes that are read at a time
LONGEST = 1 << 28  # the most bytes of a row
WIDEST = 1_000_000  # the most columns of a table
MAGIC = {
    b"PK\x03\x04": "a ZIP archive (or an Excel workbook: save it as CSV)",
    b"PAR1": "a Parquet file (name it .parquet)",
    b"\x89HDF": "an HDF5 file (name it .h5ad, .mat or .cool)",
    b"\x93NUMPY": "a NumPy array (name it .npy)",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (save it as CSV)",
}
NO_TEXT = {"undefined", "punycode", "idna", "unicode-escape", "raw-unicode-escape"}
DECIMAL_COMMA = re.compile(r"[+-]?[\d.]*,\d+([eE][+-]?\d+)?")
BY_COMMAS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
BY_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?")
SIGNED = re.compile(r"([$€£¥]|[A-Z]{3} )?\s*[+-]?[\d.,]+\s*([$€£¥%]|[A-Za-z]{1,3})?")
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")


class LongRowError(FileError):
    """A row does not fit into the blocks that are read."""


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
    thousands : str, optional
        What stands between thousands, as in 1,234.5.
    skip : int
        Lines before the one with names.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | None = None
    missing: tuple[str, ...] = ()
    thousands: str | None = None
    skip: int = 0

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise InputError(f"--decimal {self.decimal!r}: it is '.' or ','.")
        self._check_marks()
        mark = self.thousands
        if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in "+-"):
            raise InputError(f"--thousands {mark!r}: it is one mark, as ',' or '.'.")
        if mark is not None and mark == self.decimal:
            raise InputError(f"--thousands {mark!r} is the decimal point already.")
        try:
            known = codecs.lookup(self.encoding)
            good = known._is_text_encoding and known.name not in NO_TEXT
        except (LookupError, ValueError):
            good = False
        if not good:
            raise InputError(
                f"--encoding {self.encoding!r}: there is none of this name; try utf-8, "
                "latin-1 or cp1252."
            )
        object.__setattr__(self, "encoding", known.name)

    def _check_marks(self) -> None:
        """Refuse a separator that no reader takes, and texts that no file holds."""
        mark = self.separator
        one = isinstance(mark, str) and len(mark) == 1 and mark.isascii()
        if mark is not None and not (one and mark not in '"\r\n\0'):
            raise InputError(
                f"--separator {mark!r}: it is one ASCII character, as ';', and neither "
                "a quotation mark nor the end of a line."
            )
        for text in (*self.missing, self.thousands or ""):
            try:
                str.encode(text)
            except (TypeError, UnicodeEncodeError):
                raise InputError(
                    f"{text!r} cannot be looked for in a file: it is no text in UTF-8."
                ) from None
        Count(0)("skip", self.skip)

    @property
    def void(self) -> tuple[str, ...]:
        """The texts that stand for a missing value."""
        return MISSING + tuple(self.missing)


def opened(path: Path) -> Any:
    """Open a file, decompressed as its name says."""
    pa = needed("pyarrow", path)
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
    file = pa.OSFile(os.fsencode(path))  # names need not be UTF-8
    return pa.input_stream(file, compression=codec.get(path.suffix.lower()))


@contextmanager
def explained(path: Path, layout: Layout) -> Iterator[None]:
    """Say of pyarrow's errors where they are and what to do."""
    pa = needed("pyarrow", path)
    try:
        yield
    except (pa.ArrowException, UnicodeError, OSError) as error:
        said = str(error)
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
        if ragged:
            row, wanted, got = map(int, ragged.groups())
            raise FileError(
                f"{path}: {several(got, 'field')} in row {row}, counting the first "
                f"line, which has {wanted}. Mend the row; or name the separator "
                "(--separator), or the number of lines above the names (--skip)."
            ) from None
        if isinstance(error, UnicodeError) or "UTF8" in said:
            raise FileError(_undecoded(path, layout.encoding)) from None
        if "straddl" in said:
            raise LongRowError(
                f"{path}: a row is longer than {readable(LONGEST)}, or a quotation "
                "mark is never closed."
            ) from None
        raise FileError(f"{path} cannot be read: {said.splitlines()[0]}") from None


def _undecoded(path: Path, encoding: str) -> str:
    """Say where a file is not in the encoding."""
    where = ""
    try:
        with opened(path) as stream:
            lines = 1
            wrapped = io.TextIOWrapper(stream, encoding=encoding, newline="\n")
            while part := wrapped.read(1 << 20):
                lines += part.count("\n")
    except UnicodeDecodeError as error:
        rest = bytes(error.object[: error.start]).count(b"\n")
        byte = bytes(error.object[error.start : error.start + 1]).hex()
        where = f", line {lines + rest}: byte 0x{byte} is not {encoding}"
    except Exception:  # the other error is the one to tell
        where = ""
    return (
        f"{path}{where or f' is not {encoding}'}. Name the encoding, as --encoding "
        "latin-1 (or cp1252, as Excel on Windows writes it), or save it as UTF-8."
    )


def sample_of(path: Path, layout: Layout, limit: int) -> tuple[str, int]:
    """Return the first lines, and the size of a block to read.

    Parameters
    ----------
    path : Path
        The file.
    layout : Layout
        How it is written.
    limit : int
        Bytes that may be read.

    Returns
    -------
    text : str
        At least one line.
    block : int
        Bytes.
    """
    with explained(path, layout), opened(path) as stream:
        raw = stream.read(SAMPLE)
        for magic, kind in MAGIC.items():
            if raw.startswith(magic):
                raise FileError(f"{path} is {kind}, not a table of text.")
        if not raw.strip():
            raise FileError(f"{path} is empty.")
        wide = layout.encoding.startswith(("utf-16", "utf-32"))
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff") and not wide:
            raise FileError(f"{path} is in UTF-16; say so with --encoding utf-16.")
        if b"\0" in raw and not wide:
            raise FileError(f"{path} is not text: it has bytes of zero.")
        while raw.count(b"\n") <= layout.skip and len(raw) < min(LONGEST, limit):
            more = stream.read(len(raw))
            if not more:
                break
            raw += more
        ended = not stream.read(1)
    longest = max(len(line) for line in raw.split(b"\n"))
    text = raw.decode(layout.encoding, errors="replace").removeprefix("\ufeff")
    text = _below(path, text, layout.skip, ended)
    if not text.strip():
        behind = f" behind {several(layout.skip, 'line')}" if layout.skip else ""
        raise FileError(f"{path} is empty{behind}.")
    return text, min(max(BLOCK, 4 * longest), LONGEST)


def _below(path: Path, text: str, skip: int, ended: bool) -> str:
    """Return what stands below the lines that are skipped, if there are so many."""
    lines = text.count("\n")
    if skip > lines and ended:
        there = several(lines + (not text.endswith("\n")), "line")
        raise FileError(f"{path} has {there}, and --skip {skip} leaves none of them.")
    if skip > lines:
        raise FileError(
            f"{path}: --skip {skip} leaves out more than the {readable(len(text))} "
            "that may stand above the names."
        )
    return text.split("\n", skip)[skip]


def separator_of(path: Path, sample: str, layout: Layout) -> str:
    """Return the separator that cuts the first lines into equally many fields."""
    if layout.separator is not None:
        return layout.separator
    usual = "\t" if ".tsv" in path.suffixes else ","
    usual = ";" if usual == layout.decimal else usual
    lines = sample.splitlines()
    lines = lines[: min(20, len(lines) - (len(lines) > 2))]  # the last may be cut off
    best, most = usual, 0
    for separator in dict.fromkeys((usual if usual != "," else "\t", *SEPARATORS)):
        if separator == layout.decimal:
            continue
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error:
            continue
        width, times = Counter(widths).most_common(1)[0] if widths else (1, 0)
        if width > 1 and times > most:
            best, most = separator, times
    return best


def first_fields(path: Path, sample: str, separator: str) -> list[str]:
    """Return the fields of the first line that has any."""
    if sample.count(separator) > WIDEST and len(sample.split("\n", 1)[0]) > WIDEST:
        raise FileError(f"{path} has more than {WIDEST:,} columns.")
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


def header_of(fields: list[str], layout: Layout) -> tuple[bool, list[str]]:
    """Tell whether the first line has names, and what to say about it."""
    if layout.header is not None:
        return layout.header, []
    numbers = 0
    for field in map(str.strip, fields):
        if field in layout.void:
            continue
        try:
            float(field.replace(layout.decimal, "."))
        except ValueError:
            return True, []
        numbers += 1
    if not numbers:
        return True, []
    note = (
        "The first line has only numbers, so it is taken as data (--header says "
        "otherwise); columns have their numbers as names."
    )
    return False, [note]


def misplaced(layout: Layout) -> str:
    """Return a pattern of texts with a mark of thousands where none can be."""
    mark, point = re.escape(layout.thousands or ""), re.escape(layout.decimal)
    return rf"{mark}\d{{0,2}}(\D|$)|{mark}\d{{4}}|{point}.*{mark}|^[+-]?{mark}"


def why_no_number(text: str, layout: Layout) -> tuple[str, bool]:
    """Return what is wrong with a text that should be a number, and a sure advice.

    Parameters
    ----------
    text : str
        The text.
    layout : Layout
        How the file is written.

    Returns
    -------
    what : str
        The middle of a sentence.
    sure : bool
        Whether the sentence ends there.
    """
    text = text.strip()
    if text.lower() in VOID or text.startswith("#"):
        advice = f"If it stands for a missing value, add --missing {text!r}."
        return f"which is not a number. {advice}", True
    if not layout.thousands and layout.decimal == ",":
        if BY_POINTS.fullmatch(text):
            return "a number with points between thousands? Add --thousands '.'.", True
    elif not layout.thousands:
        if BY_COMMAS.fullmatch(text):
            which = "between thousands (--thousands ',') or before decimals (--decimal"
            return f"a number with commas: {which} ',')?", True
        if BY_POINTS.fullmatch(text) and "," in text:
            return "a number as 1.234,5? Add --decimal ',' --thousands '.'.", True
        if DECIMAL_COMMA.fullmatch(text):
            return "a number with a decimal comma? Add --decimal ','.", True
    if DATE.fullmatch(text):
        return "a date? Dates", False
    if SIGNED.fullmatch(text):
        return "a number with a sign or a unit, which has to go first. Texts", False
    return "not a number. Texts", False
