"""The log of a fit: its history, lines on the screen, callbacks."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bistochastic.core.errors import several
from bistochastic.core.progress import Progress, tell


@dataclass(eq=False)
class FitLog:
    """Follows a fit: keeps its history, prints, and calls callbacks.

    Attributes
    ----------
    estimator : GraphClusterer
        What is fitted.
    X : array
        The data, for callbacks.
    """

    estimator: Any
    X: Any

    def __post_init__(self) -> None:
        self._clock = time.perf_counter()
        self._told: Any = None
        self._part, self._parts = 0, 1

    def begin(self, max_iter: int, parts: int = 1) -> None:
        """Say that the fit begins, with so many steps at most in so many parts."""
        self._parts = parts
        if getattr(self.estimator, "_skl_callbacks", None):
            told = self.estimator._init_callback_context(max_subtasks=max_iter)
            told.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
            self._told = told

    def over(
        self, steps: Any, history: Any, fitted: Callable[..., Any]
    ) -> Iterator[Any]:
        """Pass steps on until a callback stops them.

        Parameters
        ----------
        steps : iterator of (step, residual)
            The algorithm.
        history : list of dict
            Gets what is recorded of each step.
        fitted : callable
            Makes the fitted attributes of a step.

        Yields
        ------
        tuple
            What `steps` yields.
        """
        for step, residual in steps:
            self.note(step, history)
            stop = self._told is not None and self._reported(fitted(step))
            yield step, residual
            del step  # the next one may need its memory
            if stop:
                return

    def next_part(self) -> None:
        """Say that the next part begins."""
        self._part += 1
        tell(Progress(self._part, self._parts, 0, {}))

    def note(self, step: Any, history: Any) -> None:
        """Record a step as the one that is kept, and print it if that is wanted."""
        now = time.perf_counter()
        seconds, self._clock = now - self._clock, now
        for record in history:
            record["kept"] = False
        history.append(step.record() | {"seconds": seconds, "kept": True})
        tell(Progress(self._part, self._parts, len(history), history[-1]))
        if self.estimator.verbose:
            name, number = type(self.estimator).__name__, len(history)
            print(f"[{name}] step {number}: {step}, {seconds:.2f} s")

    def tried(self, k: int, refine: str, trial: Any) -> None:
        """Print what was found on aggregates, if that is wanted."""
        if self.estimator.verbose:
            name, number = type(self.estimator).__name__, trial.held.sizes.size
            print(
                f"[{name}] {k} neighbors, {refine}, on {number} aggregates: "
                f"{several(trial.step.number, 'component')} after "
                f"{several(trial.n_iter, 'step')}"
            )

    def stage(self) -> None:
        """Say that a stage is over; it cannot stop the fit."""
        if self._told is not None:
            self._reported({})

    def end(self) -> None:
        """Say that the fit is over."""
        if self._told is not None:
            self._told.call_on_fit_task_end(
                estimator=self.estimator, X=self.X, reconstruction_attributes={}
            )

    def _reported(self, made: Any) -> Any:
        """Call the callbacks for one step; tell whether one wants to stop."""
        task = self._told.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return task.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, reconstruction_attributes=made
        )
