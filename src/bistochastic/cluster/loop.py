"""Algorithm 2: the loop of all methods with the rank constraint."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bistochastic.cluster.step import Step, objective
from bistochastic.core.protocols import Costs
from bistochastic.graph.components import components
from bistochastic.graph.refine import unit_rows
from bistochastic.spectrum.ky_fan import ky_fan


def ancmm(
    costs: Costs,
    c: int,
    first: Any,
    update: Callable[..., Any],
    *,
    alpha: Any,
    penalty: Any,
    unit: bool = False,
    sizes: Any = None,
    start: Any = None,
    guess: Any = None,
    tol: float | None = None,
    rng: np.random.Generator | None = None,
    rank: Callable[..., Any] | None = None,
) -> Iterator[Any]:
    """Yield the steps of Algorithm 2, one for each pass of its while loop.

    Parameters
    ----------
    costs : Costs
        Plain costs of the candidates.
    c : int
        Wanted number of components.
    first : Learned
        The first graph, line 1.
    update : callable
        Makes a graph (Learned) of costs, lines 4-6.
    alpha : float or array of shape (n,)
        Weight of the squared norm, for the objective.
    penalty : Penalty
        The rule for lambda.
    unit : bool, default=False
        Whether the rows of F are divided by their lengths.
    sizes : array of shape (n,), optional
        Numbers of points, if rows stand for aggregates.
    start : Embedding, optional
        What stands for the F of the first graph, as a coarser level found it.
    guess : Embedding, optional
        Of a similar graph, where the search for that F begins.
    tol : float, optional
        Errors of eigenvectors; by default, as `ky_fan` has it.
    rng : numpy.random.Generator, optional
        Starts the eigensolver.
    rank : callable, optional
        Says how bad a number of components is; by default, by how many it differs from
        c.

    Yields
    ------
    tuple of (Step, int)
        The step, and how bad its number of components is.
    """
    graph, found, F, lam = first, None, None, 0.0
    known = start is not None
    while True:
        number, labels = components(graph.S)  # Theorem 3
        value = objective(graph, alpha, lam, F)
        bad = rank(number) if rank else abs(number - c)
        yield Step(graph, found, lam, number, labels, value), bad
        lam = penalty.after(lam, number, c, value)
        if lam is None:  # nothing left to try
            return
        if known:
            found, known = start, False
            F = penalized(found, unit)
        elif not found or number <= c:  # kept while there are too many
            how = {"last": found or guess, "tol": tol, "rng": rng, "sizes": sizes}
            found = ky_fan(graph.S, c, labels, **how)  # line 3, Eq. (11)
            F = penalized(found, unit)
        graph = None  # its memory is needed
        graph = update(costs.plus(lam, F))  # lines 4-6


def penalized(found: Any, unit: Any) -> Any:
    """Return the rows f_i whose distances are penalized."""
    return unit_rows(found.F) if found and unit else found and found.F
