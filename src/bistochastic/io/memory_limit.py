"""How much memory a file may take, before any of it is taken."""

import os
from pathlib import Path

from bistochastic.core.errors import FileError
from bistochastic.core.parameters import Count
from bistochastic.io.paths import FilePath

DEFLATED = 1032  # the largest factor by which a deflate stream can grow
GROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def memory_limit(given: float | None = None) -> int:
    """Return how many bytes the contents of a file may take.

    Parameters
    ----------
    given : int, optional
        The limit that was asked for.

    Returns
    -------
    int
        The limit; by default half of what the machine, or the group of processes that
        this one is in, has.
    """
    if given is not None:
        whole = isinstance(given, float) and given.is_integer()
        Count(1)("max_memory", int(given) if whole else given)
        return int(given)
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        total = 1 << 33
    for group in GROUPS:
        try:
            total = min(total, int(group.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return total // 2


def check_size(
    path: FilePath, wanted: int, limit: int, what: str = "its contents"
) -> None:
    """Refuse a file that would take more memory than it may.

    Parameters
    ----------
    path : path
        The file.
    wanted : int
        Bytes that it would take.
    limit : int
        Bytes that it may take.
    what : str
        What takes them.
    """
    if wanted > limit:
        raise FileError(
            f"{path}: {what} would take {readable(wanted)}, more than the "
            f"{readable(limit)} that reading may take. Select fewer columns or rows, "
            "or raise the limit (max_memory, --max-memory)."
        )


def readable(number: float) -> str:
    """Write a number of bytes for people, as in ``1.5 GB``."""
    if number < 1000:
        return f"{number} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        number /= 1000
        if number < 1000:
            return f"{number:.3g} {unit}"
    return f"{number / 1000:.3g} PB"
