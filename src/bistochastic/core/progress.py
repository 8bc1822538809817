"""Who listens to long work: a command line with a bar, or nobody."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Let a function hear of the progress of all that is fitted in the block.

    Parameters
    ----------
    listener : callable
        Called with a Progress after each step.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(progress: Progress) -> None:
    """Tell whoever listens."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)
