"""Runs that can be killed and taken up again: one line of JSON for each cell."""

import gzip
import json
import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from bistochastic import __version__
from bistochastic.core.errors import InputError, several
from bistochastic.core.jobs import workers
from bistochastic.core.memory import peak_memory
from bistochastic.core.progress import wrote
from bistochastic.datasets import load
from bistochastic.datasets.load import PAPER, catalogue
from bistochastic.io.paths import FilePath
from bistochastic.paper.protocol import (
    DEFAULT,
    METHODS,
    PROTOCOLS,
    TOYS,
    VERSION,
    Cell,
    Record,
    cells,
    partitions,
    prepared,
    scored,
)


def wanted(
    sets: Iterable[str] = PAPER,
    methods: Collection[str] = METHODS,
    protocols: Iterable[str] = PROTOCOLS,
    toys: Iterable[str] = TOYS,
) -> list[Cell]:
    """List the cells of Tables 1, 3, 4 and 5.

    Parameters
    ----------
    sets, methods, protocols, toys : sequences of str
        Which of them; `toys` are the moons of Table 1, by seed.

    Returns
    -------
    list of Cell
        The label-free ones first: they are few.
    """
    made = []
    for protocol in sorted(protocols):
        for toy in toys:
            shown = [m for m in ("CAN", "ANCMM", DEFAULT) if m in methods]
            made += cells(protocol, toy, "shapes", shown)
        for name in sets:
            made += cells(protocol, name, catalogue()[name]["kind"], methods)
    return made


def records(path: FilePath) -> dict[str, Record]:
    """Read the records of earlier runs.

    Parameters
    ----------
    path : path
        A file with one JSON object a line, or that compressed (.gz); what a killed run
        left of a last line is left out, and so are records of other versions of the
        protocol.

    Returns
    -------
    dict
        Records by the key of their cell.
    """
    path = Path(path)
    found: dict[str, Record] = {}
    if not path.is_file():
        return found
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in data.decode("utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
            if record["version"] == VERSION:
                found.setdefault(record["key"], record)
        except (ValueError, KeyError, TypeError):
            continue
    return found


def run(
    todo: Sequence[Cell],
    path: FilePath,
    *,
    folder: FilePath | None = None,
    jobs: int | None = None,
    listen: Callable[[int, Record], object] = lambda done, record: None,
) -> dict[str, Record]:
    """Run the cells that have no record yet, and write one for each.

    Parameters
    ----------
    todo : sequence of Cell
        What is wanted.
    path : path
        Where the records are kept.
    folder : path, optional
        Where the sets are, as in `load`.
    jobs : int, optional
        How many processes; one for each core by default.
    listen : callable
        Called with the number of cells that are done and the last record.

    Returns
    -------
    dict
        All records of these cells, by their keys.
    """
    from joblib import Parallel, delayed

    path = Path(path)
    done = records(path)
    left = [cell for cell in todo if cell.key not in done]
    count = len(todo) - len(left)
    if left and path.suffix == ".gz":
        raise InputError(
            f"{path} lacks {several(len(left), 'run')}, and nothing can be added to a "
            "compressed file; unpack it first (gunzip)."
        )
    if left:
        pool = Parallel(
            n_jobs=workers(-1 if jobs is None else jobs),
            return_as="generator_unordered",
            batch_size=1,
        )
        with _safe_path(), _appended(path) as stream:
            found = pool(delayed(one)(cell, folder) for cell in left)
            for record in found:
                stream.write((json.dumps(record) + "\n").encode())
                stream.flush()
                os.fsync(stream.fileno())
                wrote(path)
                done[record["key"]] = record
                count += 1
                listen(count, record)
    return {cell.key: done[cell.key] for cell in todo}


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep worker processes from importing what lies in the working folder."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _appended(path: Path) -> BinaryIO:
    """Open a file of records to add to, behind its last whole line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = path.open("ab+")
    size = stream.seek(0, os.SEEK_END)
    if size:
        stream.seek(max(0, size - (1 << 24)))
        tail = stream.read()
        cut = len(tail) - (tail.rfind(b"\n") + 1)
        if cut:
            stream.truncate(size - cut)
    stream.seek(0, os.SEEK_END)
    return stream


def one(cell: Cell, folder: FilePath | None = None) -> Record:
    """Run one cell.

    Parameters
    ----------
    cell : Cell
        What to run.
    folder : path, optional
        Where the sets are.

    Returns
    -------
    dict
        Its record.
    """
    from threadpoolctl import threadpool_limits

    X, y = _points(cell.set, cell.preparation, None if folder is None else str(folder))
    c = len(set(y.tolist()))
    begin = time.perf_counter()
    with threadpool_limits(1):  # as many processes as cores do the work
        made = [
            scored(y, labels) | {"clusters": number}
            for labels, number in partitions(cell, X, c)
        ]
    peak = peak_memory()
    return {
        "key": cell.key,
        "version": VERSION,
        "protocol": cell.protocol,
        "set": cell.set,
        "method": cell.method,
        "preparation": cell.preparation,
        "options": cell.options,
        "seeds": list(range(cell.starts)),
        "wanted": c,
        "scores": made,
        "seconds": round(time.perf_counter() - begin, 3),
        **({} if peak is None else {"megabytes": peak}),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
    }


@lru_cache(maxsize=2)
def _points(name: str, way: str, folder: Any) -> tuple[Any, Any]:
    """Return points and labels, kept for the next cells of the same process."""
    name, _, seed = name.partition(":")
    held = load(name, folder=folder, seed=int(seed or 1))
    return prepared(way, held.data), held.target


def _versions() -> dict[str, str]:
    names = ("numpy", "scipy", "scikit-learn")
    held = {"bistochastic": __version__, "python": platform.python_version()}
    return held | {name: version(name) for name in names}


def best(found: Sequence[Record], *, label_free: bool = False) -> dict[str, Any]:
    """Return what a protocol reports of the records of a method on a set.

    Parameters
    ----------
    found : sequence of dict
        Records.
    label_free : bool
        Whether there is one record with one partition; otherwise the partition with
        the best accuracy is chosen, among those with the wanted number of clusters if
        there are such.

    Returns
    -------
    dict
        Scores, number of clusters, preparation and options of the partition; "runs",
        how many there were, "exact", how many had the wanted number of clusters, and
        "mean" and "deviation" of the accuracy over the starts of the chosen cell.
    """
    every = [(record, score) for record in found for score in record["scores"]]
    if label_free and len(every) != 1:
        raise ValueError(f"{len(every)} partitions, where labels may not choose")
    exact = [pair for pair in every if pair[1]["clusters"] == pair[0]["wanted"]]
    record, score = max(exact or every, key=lambda pair: pair[1]["ACC"])
    over = [other["ACC"] for other in record["scores"]]
    mean = sum(over) / len(over)
    deviation = (sum((value - mean) ** 2 for value in over) / len(over)) ** 0.5
    return score | {
        "preparation": record["preparation"],
        "options": record["options"],
        "runs": len(every),
        "exact": len(exact),
        "mean": round(mean, 2),
        "deviation": round(deviation, 2),
    }
