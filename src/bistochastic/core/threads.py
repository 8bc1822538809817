"""Threads of libraries: one limit for the process, and none at all after a fork."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

_in_child = False


class OneThread:
    """Keeps libraries at one thread while anybody in this process asks for it.

    Most numbers of threads belong to the process. Limits that are set and restored by
    each caller overwrite one another when callers overlap: the first to leave frees the
    others, and the last restores the limit of the first for good. So callers are
    counted: the first to enter sets the limit, the last to leave takes it back. The
    numbers of OpenMP belong to the thread that asks: every thread has its own count.

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
        self._process = _Limit()
        self._threads = threading.local()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the limit for the length of a with statement."""
        mine = self._threads.__dict__.setdefault("limit", _Limit())
        with self._process.kept(self._shared), mine.kept(self._own):
            yield

    def _shared(self) -> list[Any]:
        return [library for library in self._found() if not _of_openmp(library)]

    def _own(self) -> list[Any]:
        return [library for library in self._found() if _of_openmp(library)]

    def _found(self) -> list[Any]:
        from threadpoolctl import ThreadpoolController

        found = ThreadpoolController()
        if self._api is not None:
            found = found.select(user_api=self._api)
        return found.lib_controllers


class _Limit:
    """Some libraries at one thread, from the first caller until the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside: set[object] = set()
        self._before: list[tuple[Any, int]] = []

    @contextmanager
    def kept(self, libraries: Callable[[], list[Any]]) -> Iterator[None]:
        caller = object()
        try:  # an interrupt may come at any moment
            with self._lock:
                self.inside.add(caller)
                if len(self.inside) == 1:
                    self._set(libraries)
            yield
        finally:
            with self._lock:
                self.inside.discard(caller)
                if not self.inside:
                    self._restore()
                    self._before = []

    def _set(self, libraries: Callable[[], list[Any]]) -> None:
        """Set the limit; remember the numbers that the libraries had."""
        if not self._before:  # of a limit that an interrupt left
            self._before = [(each, each.num_threads) for each in libraries()]
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


def _of_openmp(library: Any) -> bool:
    return "openmp" in (
        getattr(library, "user_api", ""),
        getattr(library, "threading_layer", ""),
    )


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
