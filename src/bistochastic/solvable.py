"""What the functions on matrices share: the part that is solved, and the way back."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bistochastic.core.arrays import on_cpu
from bistochastic.core.errors import InputError
from bistochastic.core.parameters import ASSIGNMENT
from bistochastic.core.protocols import Graph, Scores
from bistochastic.core.quiet import silent
from bistochastic.core.run import Run, Status
from bistochastic.places.matrices import Held, Wanted, hold
from bistochastic.scaling.feasibility import Scalable
from bistochastic.scaling.residual import worst

LARGEST_EXPONENT = 1e12  # beyond it, exp(omega log s + a + a') has no digits left
TINIEST = 5e-324  # the smallest number: what was added is not nothing
TOLERANCE = {32: 1e-5, 64: 1e-10}  # default errors of row sums, by bits of the numbers


@dataclass(frozen=True, eq=False)
class Solvable:
    """A checked matrix of which all rows, or some, have a solution.

    Attributes
    ----------
    held : Held
        The matrix of the caller.
    ready : Scalable
        What can be solved of it.
    """

    held: Held
    ready: Scalable

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.held.graph.n

    @property
    def rows(self) -> Any:
        """The rows that take part."""
        return slice(None) if self.ready.kept is None else self.ready.kept

    @cached_property
    def core(self) -> Any:
        """The matrix of the rows that take part."""
        kept = self.ready.kept
        return self.ready.graph if kept is None else self.ready.graph.part(kept)

    @property
    def dropped(self) -> np.ndarray:
        """The rows that take no part."""
        if self.ready.kept is None:
            return np.empty(0, dtype=np.intp)
        return np.setdiff1d(np.arange(self.n), self.ready.kept)

    @property
    def shift(self) -> float:
        """What was added to the diagonal, in the caller's unit."""
        shift = float(self.ready.shift * self.held.unit * self.held.unit)
        return max(shift, TINIEST) if self.ready.shift else shift

    def tolerance(self, tol: float | None) -> float:
        """Return the wanted error of row sums."""
        return TOLERANCE[self.held.bits] if tol is None else float(tol)

    def whole(self, values: Any, rest: float = 0.0) -> Any:
        """Return a vector over all rows, `rest` for those that take no part."""
        if self.ready.kept is None:
            return values
        whole = np.full(self.n, rest)
        whole[self.ready.kept] = on_cpu(values)
        return self.ready.graph.vector(whole)

    def rounded(
        self, done: Run, matrix: Any, tol: float, m: Any = 1.0
    ) -> tuple[Status, float]:
        """Return how a run ended, and the residual of what the caller gets.

        Singles are made of doubles in the end, or summed up in singles on the way; so
        that is measured again. `m` are the marginals, those of all rows or one number.
        """
        if self.held.bits == 64 or self.held.elsewhere:
            return done.status, done.residual
        given = hold(matrix, Wanted(signed=True, double=True)).graph
        sums = on_cpu(given.apply(given.ones()))[self.rows]
        residual = float(worst(sums, m if np.ndim(m) == 0 else m[self.rows]))
        if done.status is Status.CONVERGED and not residual <= tol:
            return Status.STALLED, residual
        return done.status, residual


def logarithms(S: Graph, omega: float) -> Scores:
    """Return log S, if omega leaves it digits.

    Parameters
    ----------
    S : Graph
        Weights.
    omega : float
        What the logarithms are to be multiplied by.

    Returns
    -------
    Scores
        The logarithms.
    """
    scores = S.log()
    farthest = max(scores.deviation(), float(np.max(np.abs(on_cpu(scores.highest())))))
    if omega * farthest > LARGEST_EXPONENT:
        raise InputError(
            f"omega={omega:g} times logarithms of size {farthest:.3g} is so large that "
            f"no digits of the plan would be right. {ASSIGNMENT}"
        )
    return scores


def warn(result: Any, equal: bool = True, advice: str = "") -> None:
    """Warn, for the caller of a public function, that the tolerance was not reached.

    Parameters
    ----------
    result : Result
        What the function returns.
    equal : bool, default=True
        Whether all marginals are the same.
    advice : str, optional
        What else to do.
    """
    if silent():
        return
    from sklearn.exceptions import ConvergenceWarning

    advice = {
        Status.LIMIT: "Raise max_iter.",
        Status.STALLED: "Raise tol.",
        Status.CYCLED: "Corollary 2 supposes that its iteration converges.",
        Status.OVERFLOW: "The entries are too far apart in size.",
    }[result.status] + advice
    if not equal and result.status is not Status.LIMIT:
        advice = "It may be that no matrix with this pattern has these marginals."
    warnings.warn(
        f"The row sums are not within the tolerance. {result} {advice}",
        ConvergenceWarning,
        stacklevel=4,  # past the decorator
    )
