"""Rules for the penalty lambda: doubled and halved, or bracketed and bisected."""

import math
from dataclasses import dataclass, replace
from typing import Any

SAME = 1e-9  # relative difference of values of the same graph
NARROW = 1.02  # a bracket of lambda this tight is not divided any more


@dataclass(frozen=True)
class Penalty:
    """The paper's rule for lambda: doubled or halved, by Theorem 3.

    As printed it halves lambda unless the rank is too large, hence also where it is
    right; here it rests there.

    Attributes
    ----------
    start : float
        The first lambda.
    rate : float
        By which it grows or shrinks.
    """

    start: float
    rate: float = 2.0

    def after(self, lam: float, number: Any, c: int, value: Any = None) -> Any:
        """Return lambda for the next step, by the number of components."""
        if lam == 0:  # of the first graph
            return self.start
        if number < c:  # the rank of L is larger than n - c
            return self.rate * lam
        return lam / self.rate if number > c else lam


@dataclass
class Bracket:
    """A rule for lambda that grows it, then bisects.

    Attributes
    ----------
    start : float
        The first lambda.
    growth : float
        Factor while there are too few components.
    fixed : bool
        Whether no penalty can bring a component of the first graph to another.
    low, high : float or None
        The last lambda with too few and with too many components.
    last : Objective or None
        The value of the step before.
    """

    start: float
    growth: float
    fixed: bool = False
    low: float | None = None
    high: float | None = None
    last: Any = None

    def resumed(self, lam: float) -> "Bracket":
        """Return a new rule that starts where another ended, or a step before."""
        return replace(self, start=lam / self.growth if lam else self.start)

    def after(self, lam: float, number: Any, c: int, value: Any = None) -> Any:
        """Return lambda for the next step, or None if there is none left to try.

        Lambda grows while it changes the graph: what is left of it in the end are
        bridges, and edges between equal rows of F.
        """
        if lam == 0:  # of the first graph
            return None if self.fixed and number > c else self.start
        if number < c:
            self.low = lam
        else:
            self.high = lam
        if self.high is None:
            last, self.last = self.last, value
            return None if _idle(last, value) else lam * self.growth
        if self.low is None:
            return lam / self.growth**2
        if self.high < NARROW * self.low:
            return None
        return self.low**0.5 * self.high**0.5


def _idle(last: Any, value: Any) -> bool:
    """Tell whether lambda outweighs all else, and the graph is the last one again."""
    if last is None or value.penalty < value.norm:
        return False
    pairs = ((last.distance, value.distance), (last.norm, value.norm))
    return all(math.isclose(one, two, rel_tol=SAME) for one, two in pairs)
