"""What NumPy does with numbers that leave the range, while this library works.

Whatever `np.seterr` says in the caller's program: infinities, zeros and NaN are looked
at where they matter, and statuses and errors say what was found. Every function and
method that users call sets the state once; nothing below has to.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


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
