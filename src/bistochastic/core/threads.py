"""Threads of libraries: one limit for the process, and none at all after a fork."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

_in_child = False


class OneThread:
    """Keeps libraries at one thread while anybody in this process asks for it.

    Their numbers of threads belong to the process. Limits that are set and restored by
    each caller overwrite one another when callers overlap: the first to leave frees the
    others, and the last restores the limit of the first for good. So callers are
    counted: the first to enter sets the limit, the last to leave takes it back.

    Parameters
    ----------
    api : str, optional
        Which libraries, as threadpoolctl calls them; all by default.
    """

    def __init__(self, api: str | None = None) -> None:
        self._api = api
        self.forget()

    def forget(self) -> None:
        """Start again with nobody inside, as after a fork."""
        self._lock = threading.Lock()
        self._inside: set[object] = set()
        self._before: list[tuple[Any, int]] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the limit for the length of a with statement."""
        caller = object()
        try:  # an interrupt may come at any moment
            with self._lock:
                self._inside.add(caller)
                if len(self._inside) == 1:
                    self._limit()
            yield
        finally:
            with self._lock:
                self._inside.discard(caller)
                if not self._inside:
                    self._restore()
                    self._before = []

    def _limit(self) -> None:
        """Set the limit; remember the numbers that the libraries had."""
        from threadpoolctl import ThreadpoolController

        found = ThreadpoolController()
        if self._api is not None:
            found = found.select(user_api=self._api)
        if not self._before:  # of a limit that an interrupt left
            self._before = [(lib, lib.num_threads) for lib in found.lib_controllers]
        for library, _ in self._before:
            library.set_num_threads(1)

    def _restore(self) -> None:
        for library, number in self._before:
            if library.num_threads != 1:  # others have set it meanwhile
                continue
            # newer versions of threadpoolctl only let the thread that set a limit take
            # it back, and that one may have left before
            release = getattr(library, "clear_controlling_thread", _nothing)
            release(force=True)
            library.set_num_threads(number)
            release(force=True)


def _nothing(force: bool) -> None:
    """Stand in for a method that some libraries have."""


# blocks are narrow; two pools of threads on the same cores cost 3 to 65 times what
# they save
one_blas_thread = OneThread("blas")
_one_thread = OneThread()


def _forked() -> None:
    global _in_child
    _in_child = True
    one_blas_thread.forget()
    _one_thread.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def forked() -> bool:
    """Tell whether this process was forked after this library was loaded."""
    return _in_child


def safely() -> AbstractContextManager[Any]:
    """Return a context in which libraries use one thread, if others would hang.

    The pools of OpenMP do not survive a fork, and calls of them hang.
    """
    return _one_thread() if forked() else nullcontext()
