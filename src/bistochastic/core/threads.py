"""Threads in a forked process: the pools of OpenMP do not survive, and calls hang."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_in_child = False


def _forked() -> None:
    global _in_child
    _in_child = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def forked() -> bool:
    """Tell whether this process was forked after this library was loaded."""
    return _in_child


def safely() -> AbstractContextManager[Any]:
    """Return a context in which libraries use one thread, if others would hang."""
    if not forked():
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
