"""The file that a command reads, wherever it comes from."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bistochastic.cli.console import Voice
from bistochastic.cli.request import Reading
from bistochastic.core.errors import InputError

PART = 1 << 20  # bytes of standard input that are copied at a time


@contextmanager
def at_hand(voice: Voice, reading: Reading, text: str = ".csv") -> Iterator[Path]:
    """Give a file a path: standard input is kept in a file while it is needed.

    Parameters
    ----------
    voice : Voice
        Gets to know what to call it.
    reading : Reading
        The file.
    text : str
        The kind of standard input, unless said.

    Yields
    ------
    Path
        The file.
    """
    if reading.file != "-":
        yield Path(reading.file)
        return
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("Standard input is closed; name a file.")
    ending = f".{reading.format.lstrip('.')}" if reading.format else text
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{ending}"
        voice.known_as = {str(path): "standard input", path.name: "standard input"}
        with path.open("wb") as file:
            while part := sys.stdin.buffer.read(PART):
                file.write(part)
        yield path
