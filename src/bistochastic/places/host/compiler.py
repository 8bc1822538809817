"""Numba's compiler; what it made is kept on disk where a folder can be written to."""

import pickle
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

UNREADABLE = (OSError, EOFError, ValueError, pickle.UnpicklingError)
_said = False


class Cache(FunctionCache):
    """A cache on disk that a full disk or a damaged file cannot stop a fit by."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled before; None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except UNREADABLE:
            with suppress(OSError):
                self.flush()  # what is damaged is written anew
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if the disk can."""
        try:
            super().save_overload(sig, data)
        except UNREADABLE as error:
            _say(str(error))


def loops(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles loops, which let go of Python meanwhile.

    Parameters
    ----------
    **options : object
        Other options of Numba.

    Returns
    -------
    callable
        The decorator. Where no folder can be written to, as on machines whose disks
        are read-only, each process compiles anew, and a warning says so once.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        made = njit(nogil=True, **options)(function)
        try:
            made._cache = Cache(function)
        except (RuntimeError, OSError) as error:
            _say(str(error))
        return made

    return decorate


def _say(reason: str) -> None:
    """Warn, the first time, that compiled code is not kept."""
    global _said
    if _said:
        return
    _said = True
    warnings.warn(
        "Compiled loops cannot be kept on disk, so that each process compiles them "
        "anew, which takes up to a minute. Let NUMBA_CACHE_DIR name a folder that can "
        f"be written to. ({reason})",
        stacklevel=2,
    )
