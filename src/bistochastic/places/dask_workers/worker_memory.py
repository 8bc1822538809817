"""Memory that workers keep while a fit goes on.

Dask starts workers so that the C library gives every large array back to the system
the moment it is freed. A fit frees and takes arrays of some MB thousands of times, and
a third of its time went into getting zeroed pages again.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from distributed import WorkerPlugin

from bistochastic.places.dask_workers.block import SCRATCH

TRIM, MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt
ASKED = "MALLOC_TRIM_THRESHOLD_"  # where Dask says that memory goes back at once
ALWAYS = 1 << 17  # bytes of an array that is given back when it is freed
KEPT = 64 << 20  # bytes that are kept, and again as many lie between others
LEAST = 2 << 30  # limit of a worker from which on it can spare them


class Keeping(WorkerPlugin):
    """Lets a worker keep some freed memory, until it is told to stop.

    Parameters
    ----------
    freed : bool
        Whether what the C library frees is kept, besides what tasks keep themselves.
    """

    def __init__(self, freed: bool) -> None:
        self._freed = freed

    def setup(self, worker: Any) -> None:
        """Keep some, where the worker was started to keep none."""
        limit = getattr(worker.memory_manager, "memory_limit", None) or LEAST
        self._freed = self._freed and limit >= LEAST and _set(KEPT, KEPT // 2)

    def teardown(self, worker: Any) -> None:
        """Give all of it back, and keep none any more."""
        SCRATCH.clear()
        asked = os.environ.get(ASKED, "0")
        if self._freed and _set(int(asked), ALWAYS):
            ctypes.CDLL(None).malloc_trim(0)
            for _ in range(worker.state.nthreads):  # each has memory of its own
                worker.executors["default"].submit(bytearray, ALWAYS // 2 + 1)


def _set(trim: int, mapped: int) -> bool:
    """Tell the C library, if it is one that can be told and has been told."""
    if not os.environ.get(ASKED, "").isdigit():
        return False  # it finds out by itself what to keep
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(TRIM, trim) and mallopt(MAP, mapped))


@contextmanager
def keeping(client: Any, *, freed: bool) -> Iterator[None]:
    """Let workers keep some memory."""
    name = f"bistochastic-{uuid4().hex}"
    with suppress(OSError):  # a worker that goes just now needs to keep nothing
        client.register_plugin(Keeping(freed), name=name)
    try:
        yield
    finally:
        with suppress(Exception):  # no result is given up for it
            client.unregister_worker_plugin(name)
