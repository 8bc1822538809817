"""What NumPy and warnings do while this library works.

Whatever `np.seterr` says in the caller's program: infinities, zeros and NaN are looked
at where they matter, and statuses and errors say what was found. Every function and
method that users call sets the state once; nothing below has to.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silently() -> Iterator[None]:
    """Let functions of this library not warn: their status is looked at, and told.

    The filters of Python's own warnings belong to all threads, and must not be changed.
    """
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def silent() -> bool:
    """Tell whether somebody else warns."""
    return _silent.get()


def quietly(function: Function) -> Function:
    """Make a function that users call work in the state of this library."""
    return np.errstate(all="ignore")(function)


class Quiet:
    """A task that works in that state on a worker.

    Parameters
    ----------
    task : callable
        The task.
    """

    def __init__(self, task: Callable[..., Any]) -> None:
        self._task = task

    def __call__(self, *given: Any) -> Any:
        """Run the task."""
        with np.errstate(all="ignore"):
            return self._task(*given)
