"""The one loop that stops; algorithms yield their iterates for ever."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

PROGRESS = 0.999  # a residual that fell by less than this factor has not fallen
ROUNDING = 1e-12  # a residual this small that does not fall has hit rounding


class Status(Enum):
    """How a run ended; the value is the sentence a person reads.

    Examples
    --------
    >>> from bistochastic import Status, marcus_mapping
    >>> result = marcus_mapping([[2.0, 1.0], [1.0, 3.0]])
    >>> result.status is Status.CONVERGED
    True
    >>> print(result.status)
    converged: the residual is within the tolerance
    """

    CONVERGED = "converged: the residual is within the tolerance"
    LIMIT = "reached the limit of iterations before the tolerance"
    STALLED = "stalled: the residual stopped falling before the tolerance"
    CYCLED = "cycled: the iterates jump between two points and will not settle"
    OVERFLOW = "overflow: an iterate left the range of floating-point numbers"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Run:
    """What a run leaves behind.

    Attributes
    ----------
    value : array
        The iterate with the smallest residual.
    status : Status
        How the run ended.
    n_iter : int
        Number of iterates.
    residuals : tuple of float
        The residuals that were measured: of every iterate, unless that costs extra.
    """

    value: Any
    status: Status
    n_iter: int
    residuals: tuple[float, ...]

    @property
    def residual(self) -> float:
        """The residual of `value`."""
        return min(self.residuals, key=_rank)

    @property
    def least(self) -> float:
        """The same; infinite if it is not a number."""
        return _rank(self.residual)


def _rank(residual: float) -> float:
    return math.inf if math.isnan(residual) else residual


def run(
    steps: Iterator[tuple[Any, Any]], *, tol: float, max_iter: int, patience: int = 100
) -> Run:
    """Draw iterates until the residual is within `tol` or there is no hope of it.

    Parameters
    ----------
    steps : iterator of (value, residual)
        The algorithm. Values must not be changed after they were yielded. A residual
        may be None where it was not measured; that of the first must be.
    tol : float
        Wanted residual.
    max_iter : int
        How many iterates to draw.
    patience : int, default=100
        How many measured ones, at least 2, may pass without a new smallest residual.

    Returns
    -------
    Run
        The best iterate, how it ended, and the residuals.
    """
    residuals: list[float] = []
    best: Any = None
    least = mark = math.inf
    waited = n_iter = 0
    recent: tuple[Any, ...] = ()
    status = Status.LIMIT
    with np.errstate(all="ignore"):  # what is not finite is judged here
        for value, residual in steps:
            n_iter += 1
            if residual is None:
                if n_iter < max_iter:
                    continue
                break
            error = float(residual)  # the only wait for a device
            residuals.append(error)
            if best is None or error < least:
                best, least = value, error
            if not math.isfinite(error):
                status = Status.OVERFLOW
                break
            if error <= tol:
                status = Status.CONVERGED
                break
            if error < PROGRESS * mark:
                mark, waited, recent = error, 0, ()
            else:
                waited += 1
            allowed = patience if least > ROUNDING else min(patience, 20)
            if waited >= allowed - 2:  # not before: values are large
                recent = (*recent[-2:], value)
            if waited >= allowed and len(recent) == 3:
                status = Status.CYCLED if _alternate(recent) else Status.STALLED
                break
            if n_iter >= max_iter:
                break
            del value  # the next one may need its memory
    return Run(best, status, n_iter, tuple(residuals))


def _alternate(recent: tuple[Any, ...]) -> bool:
    """Tell whether every second iterate is the same and the others are not."""
    first, second, third = recent
    if not is_array_api_obj(first):  # matrices are not compared
        return False
    xp = array_namespace(first)
    jump = float(xp.max(xp.abs(third - second)))
    if jump <= ROUNDING * float(xp.max(xp.abs(third))):
        return False
    return float(xp.max(xp.abs(third - first))) < 1e-3 * jump
