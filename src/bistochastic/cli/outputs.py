"""What a command will write, looked at before it works."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from bistochastic.cli.console import UsageError, Voice
from bistochastic.core.errors import listed
from bistochastic.io.optional import needed
from bistochastic.io.paths import parts, same
from bistochastic.io.writing import check_new
from bistochastic.report import check_installed

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")
GRAPHS = (".npz", ".mtx", ".npy")
PAGES = (".html", ".htm")


def check_outputs(
    voice: Voice,
    inputs: Sequence[Path],
    outputs: Mapping[str, str | None],
    force: bool,
    *,
    endings: Mapping[str, tuple[str, ...]],
    streams: Sequence[str] = (),
    again: Sequence[str] = (),
) -> None:
    """Refuse what cannot be written, or lies where something is read or written.

    Parameters
    ----------
    voice : Voice
        Gets to know what will be written.
    inputs : sequence of path
        Files that the command reads.
    outputs : dict
        Where to write, by option; None for what is not wanted.
    force : bool
        Whether files that are there may be replaced.
    endings : dict
        How the names of an option's files may end, if not in any way.
    streams : sequence of str
        Options for which ``-`` is standard output.
    again : sequence of str
        Options whose file may be one that is read, since it holds all of that.
    """
    for name, out in outputs.items():
        if out == "" or (out == "-" and name not in streams):
            raise UsageError(f"--{name} {out!r}: name a file.")
    wanted = {name: out for name, out in outputs.items() if out and out != "-"}
    taken: list[tuple[Path | str, str]] = []
    taken += [(parts(path)[0], "read from") for path in inputs]
    for name, out in wanted.items():
        allowed = endings.get(name)
        if allowed and not out.lower().endswith(allowed):
            raise UsageError(f"--{name} {out}: name it {listed(allowed, 9)}.")
        for place, how in taken:
            may = name in again and how == "read from"
            if same(place, out) and _file(out) and not may:
                raise UsageError(f"--{name} {out}: that file is {how} already.")
        check_new(out, force)
        _check_libraries(out)
        taken.append((out, "written"))
    voice.planned = list(wanted.values())


def _file(path: str) -> bool:
    """Tell whether a path is not one of a device or a pipe."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # not there yet
        return True


def _check_libraries(out: str) -> None:
    """Say what is not installed that a file of this name needs."""
    if out.lower().endswith((".parquet", ".pq")):
        needed("pyarrow", out)
    if out.lower().endswith(PAGES):
        check_installed()
