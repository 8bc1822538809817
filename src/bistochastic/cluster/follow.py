"""A run of the loop of Algorithm 2, followed to its end."""

from collections.abc import Callable
from typing import Any

from bistochastic.core.run import run


def followed(
    log: Any, steps: Any, fitted: Callable[..., Any], max_iter: int
) -> tuple[Any, Any]:
    """Run to a step with the wanted number of components, or to the last.

    Parameters
    ----------
    log : FitLog
        Keeps the history, prints, and calls callbacks.
    steps : iterator of (step, residual)
        The algorithm.
    fitted : callable
        Makes the fitted attributes of a step.
    max_iter : int
        Most steps.

    Returns
    -------
    step : Step
        The first with the smallest residual.
    history : list of dict
        What is recorded of each step.
    """
    history: list[dict[str, Any]] = []
    log.next_part()
    watched = log.over(steps, history, fitted)
    done = run(watched, tol=0, max_iter=max_iter, patience=max_iter + 2)
    numbers = [record["n_components"] for record in history]
    for record in history:
        record["kept"] = False
    history[numbers.index(done.value.number)]["kept"] = True
    return done.value, history
