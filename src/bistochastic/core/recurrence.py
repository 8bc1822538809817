"""The three-term recurrence of Chebyshev polynomials, for holders without their own."""

from collections.abc import Sequence
from typing import Any


def recurrence(
    S: Any,
    X: Any,
    Y: Any,
    center: float,
    terms: Sequence[tuple[float, float]],
    accuracy: float = 0.0,
) -> Any:
    """Return the last of the blocks Z_k = a (S - center I) Z_(k-1) + c Z_(k-2).

    Parameters
    ----------
    S : Graph
        Graph.
    X, Y : array of shape (n, b)
        The first two blocks.
    center : float
        What is taken off the diagonal.
    terms : sequence of (float, float)
        The a and c of each block.
    accuracy : float, default=0.0
        Relative errors that would not matter; other bodies may compute in singles.

    Returns
    -------
    array of shape (n, b)
        The last block.
    """
    for a, c in terms:
        X, Y = Y, a * (S.apply(Y) - center * Y) + c * X
    return Y
