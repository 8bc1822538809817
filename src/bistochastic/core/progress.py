"""Who listens to long work and hears of files: a command line, or nobody."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far a fit has come.

    Attributes
    ----------
    part, parts : int
        Which of several fits, as for the numbers of neighbors that are tried.
    step : int
        Which of its steps; 0 before the first.
    record : dict
        What is recorded of the step.
    """

    part: int
    parts: int
    step: int
    record: dict[str, Any]

    @property
    def fraction(self) -> float:
        """How much is done, if a fit takes as many steps as most do."""
        return (self.part - 1 + min(self.step, 9) / 10) / self.parts


Listener = Callable[[Progress], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_keeper: ContextVar[Callable[[str], None] | None] = ContextVar("keeper", default=None)


@contextmanager
def _held(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def heard(listener: Listener) -> AbstractContextManager[None]:
    """Let a function hear of the progress of all that is fitted in the block.

    Parameters
    ----------
    listener : callable
        Called with a Progress after each step.
    """
    return _held(_listener, listener)


def tell(progress: Progress) -> None:
    """Tell whoever listens."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)


def kept(keeper: Callable[[str], None]) -> AbstractContextManager[None]:
    """Let a function hear of each file that is complete in the block.

    Parameters
    ----------
    keeper : callable
        Called with the name of the file.
    """
    return _held(_keeper, keeper)


def wrote(path: Any) -> None:
    """Say that a file is complete, or has more in it that stays."""
    keeper = _keeper.get()
    if keeper is not None:
        keeper(str(path))
