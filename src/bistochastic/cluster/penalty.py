"""Rules for the penalty lambda: doubled and halved, or bracketed and bisected."""

from dataclasses import dataclass, replace
from typing import Any

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

    def after(self, lam: float, number: Any, c: int) -> Any:
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
    """

    start: float
    growth: float
    fixed: bool = False
    low: float | None = None
    high: float | None = None

    def resumed(self, lam: float) -> "Bracket":
        """Return a new rule that starts where another ended, or a step before."""
        return replace(self, start=lam / self.growth if lam else self.start)

    def after(self, lam: float, number: Any, c: int) -> Any:
        """Return lambda for the next step, or None if there is none left to try."""
        if lam == 0:  # of the first graph
            return None if self.fixed and number > c else self.start
        if number < c:
            self.low = lam
        else:
            self.high = lam
        if self.high is None:
            return lam * self.growth
        if self.low is None:
            return lam / self.growth**2
        if self.high < NARROW * self.low:
            return None
        return self.low**0.5 * self.high**0.5
