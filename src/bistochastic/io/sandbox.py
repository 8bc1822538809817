"""Readers of other people's formats, in a process that may fall over.

Libraries that parse binary formats crash or hang on some damaged files. Here that
happens to another process, which also has bounds on its memory and time, and this one
says that the file is damaged.
"""

import json
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bistochastic.core.errors import FileError, InputError, MissingError
from bistochastic.io import arrays, hdf
from bistochastic.io.archive import described, pack, unpack
from bistochastic.io.paths import parts

READERS: dict[str, Callable[..., Any]] = {
    "cool": hdf.read_cool,
    "h5ad": hdf.read_h5ad,
    "mat": arrays.read_mat,
    "mtx": arrays.read_mtx,
}
SPARE = 4 << 30  # bytes of memory that libraries map for themselves
MOST = 1 << 62  # the largest limit, in bytes, that the system takes
SECONDS = 30  # seconds of a processor that any file may take
RATE = 1 << 20  # bytes of a file for each second more
REFUSED, MISSING = 3, 4
CHILD = Path(__file__).with_name("child.py")
STARTED = "started"
LIBRARIES = (
    "anndata", "array_api_compat", "cooler", "h5py", "joblib", "llvmlite", "numba",
    "numpy", "pandas", "scipy", "sklearn", "threadpoolctl",
)  # fmt: skip


def read_apart(kind: str, path: Path, limit: int, **options: Any) -> Any:
    """Read a file in another process.

    Parameters
    ----------
    kind : str
        Which reader.
    path : Path
        The file.
    limit : int
        Bytes that its contents may take.
    **options : object
        Other arguments of the reader: texts, numbers, lists.

    Returns
    -------
    object
        What the reader returns.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        task = {"kind": kind, "path": str(path), "limit": limit, "options": options}
        done = _ran(path, json.dumps(task | {"result": str(result)}))
        if done.returncode in (REFUSED, MISSING):
            said = json.loads(done.stdout.strip().splitlines()[-1])
            raise FileError(said) if done.returncode == REFUSED else MissingError(said)
        if done.returncode:
            raise FileError(
                f"{path} cannot be read: it is damaged, or made to do harm; its reader "
                f"{_end(done)}."
            )
        with arrays.Archive(result, 4 * limit + SPARE) as archive:
            return unpack(archive, described(archive))


def _ran(path: Path, task: str) -> subprocess.CompletedProcess[str]:
    """Run a task in a Python that imports nothing from the working folder."""
    names = f"utf8={sys.flags.utf8_mode}"  # of files, decoded there as they are here
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-X", names, str(CHILD), *_places()],
            input=task,
            capture_output=True,
            text=True,
        )
        started, said = done.stdout.startswith(STARTED), _end(done)
    except OSError as error:
        started, said = False, f"failed ({error.strerror})"
    if not started:
        raise InputError(
            f"{path} is read in a process of its own, which {said} before it came to "
            "the file."
        )
    return done


def _places() -> list[str]:
    """Return where libraries lie that an isolated Python would not find.

    These are the folders that libraries have been imported from here, and the user's
    own installation. Other folders of this process's path are not handed on.
    """
    held = (getattr(sys.modules.get(name), "__file__", None) for name in LIBRARIES)
    found = [Path(file) for file in held if file]
    places = [str(f.parents[1] if f.stem == "__init__" else f.parent) for f in found]
    if site.ENABLE_USER_SITE:
        places.append(site.getusersitepackages())
    return list(dict.fromkeys(places))


def _end(done: subprocess.CompletedProcess[str]) -> str:
    """Say how a process ended."""
    if done.returncode == -24:
        return "did not come to an end"
    if done.returncode < 0:
        return f"crashed (signal {-done.returncode})"
    said = done.stderr.strip().splitlines()
    return f"failed ({said[-1] if said else done.returncode})"


def child() -> None:
    """Read a file as standard input says, and write what it holds."""
    print(STARTED, flush=True)
    task = json.loads(sys.stdin.read())
    _bound(parts(task["path"])[0], task["limit"])
    try:
        read = READERS[task["kind"]]
        value = read(Path(task["path"]), limit=task["limit"], **task["options"])
        with open(task["result"], "wb") as stream:
            pack(stream, value)
    except MissingError as error:
        where = "; it has to be installed: PYTHONPATH is not used to read such files"
        print(json.dumps(f"{error}{where if 'PYTHONPATH' in os.environ else ''}"))
        sys.exit(MISSING)
    except FileError as error:
        print(json.dumps(str(error)))
        sys.exit(REFUSED)
    except MemoryError:
        print(json.dumps(f"{task['path']}: there is not enough memory to read it."))
        sys.exit(REFUSED)


def _bound(path: Path, limit: int) -> None:
    """Bound the memory and the time of this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    memory = min(4 * limit + SPARE, MOST)
    seconds = SECONDS + path.stat().st_size // RATE
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(what, (most, hard))
