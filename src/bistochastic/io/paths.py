"""Names of files: what they name, what can be read, and which are the same."""

import os
import stat
from difflib import get_close_matches
from pathlib import Path

from bistochastic.core.errors import FileError, listed

FilePath = str | os.PathLike[str]  # what a file is named by
COOLS = (".cool", ".mcool")
ONCE = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def parts(path: FilePath) -> tuple[Path, str]:
    """Split the name of a map in a COOL file, as ``FILE::/resolutions/10000``.

    Parameters
    ----------
    path : path
        What was named.

    Returns
    -------
    file : Path
        The file. Where a file has :: in its name, that is the file.
    group : str
        What stands behind ::, or nothing.
    """
    whole = str(path)
    file, _, group = whole.rpartition("::")
    named = file.lower().endswith(COOLS) or os.path.isfile(file)
    if named and not os.path.exists(whole):
        return Path(file), group
    return Path(whole), ""


def checked_file(path: FilePath) -> Path:
    """Return the path of a file that can be read, from begin to end and again.

    Parameters
    ----------
    path : path
        What was named, perhaps with a part of a COOL file.

    Returns
    -------
    Path
        The same.
    """
    file, _ = parts(path)
    try:
        mode = os.stat(file).st_mode
        if stat.S_ISDIR(mode):
            raise FileError(f"{file} is a folder; name a file.")
        if not stat.S_ISREG(mode):
            raise FileError(
                f"{file} is {ONCE.get(stat.S_IFMT(mode), 'no file')}, and files are "
                "read more than once. Save it as a file first; on the command line - "
                "reads standard input."
            )
        with open(file, "rb") as stream:
            begun = bool(stream.read(1))
    except (FileNotFoundError, NotADirectoryError):
        near = [p.name for p in file.parent.glob("*")] if file.parent.is_dir() else []
        close = get_close_matches(file.name, near, 3)
        hint = f" Perhaps {listed(close)}?" if close else ""
        raise FileError(f"{file}: there is no such file.{hint}") from None
    except OSError as error:
        raise FileError(f"{file} cannot be opened: {error.strerror}.") from None
    except ValueError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file!r} cannot be opened: {error}.") from None
    if not begun:
        raise FileError(f"{file} is empty.")
    return Path(path)


def same(one: FilePath, other: FilePath) -> bool:
    """Tell whether two names are of one file, by whatever links.

    Parameters
    ----------
    one, other : path
        Names.

    Returns
    -------
    bool
        Whether what is written to one would be read from the other.
    """
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # one is not there yet
        return os.path.realpath(one) == os.path.realpath(other)
